#!/usr/bin/env bash
# gpu-evidence.sh [OUT]: beside skua-bench and the gpu_*_test programs. Correctness first, then the bars; within SKUA_GPU_SECONDS (580), whatever hangs.
# Everything goes to OUT (default: results beside this script): summary.txt, a log for each step, JSON and HTML of the measurements. Exit status: 0 when every step passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/results}
mkdir -p "$out"
seconds=${SKUA_GPU_SECONDS:-580} threads=${SKUA_GPU_THREADS:-$(nproc)} failed=0
summary() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }
: > "$out/summary.txt"

shopt -s nullglob
# What a bare machine may lack: the loaders (from beside this script), the note of where NVIDIA's driver is, the path of its BLAS.
libraries=$(ldconfig -p 2> /dev/null)
mkdir -p "$out/loaders"
for library in "$here"/loaders/*; do
  [[ $libraries == *"$(basename "$library") "* ]] || cp "$library" "$out/loaders/"
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$out/loaders
look() { find /usr/local /usr/lib /opt "$@" 2> /dev/null | head -n 1; }
vendors=(/etc/OpenCL/vendors/*.icd) drivers=(/usr/share/vulkan/icd.d/*.json /etc/vulkan/icd.d/*.json)
if (( ! ${#vendors[@]} )) && driver=$(look -name 'libnvidia-opencl.so.1') && [[ $driver ]]; then
  mkdir -p "$out/vendors"
  echo "$driver" > "$out/vendors/nvidia.icd"
  export OCL_ICD_VENDORS=$out/vendors
fi
if (( ! ${#drivers[@]} )) && [[ -z ${VK_DRIVER_FILES-} ]] && driver=$(look -name 'nvidia_icd*.json') && [[ $driver ]]; then export VK_DRIVER_FILES=$driver; fi
if [[ $libraries != *libcublas.so.* ]] && blas=$(look -name 'libcublas.so.1[1-9]') && [[ $blas ]]; then
  export SKUA_CUBLAS_LIBRARY=$blas LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname "$blas")
fi

# step NAME LIMIT COMMAND...: at most so many seconds, and not beyond the `deadline` (seconds since the start).
step() {
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  (( limit <= deadline - SECONDS )) || limit=$((deadline - SECONDS))
  (( limit >= 3 )) || { summary "SKIPPED $name: no time is left"; failed=1; return 1; }
  timeout -k 2 "$limit" "$@" > "$out/$name.log" 2>&1
  status=$?
  case $status in
    0) summary "ok      $name, $((SECONDS - start)) s" ;;
    124 | 137) summary "STOPPED $name after $limit s"; failed=1 ;;
    *) summary "FAILED  $name ($status), $((SECONDS - start)) s; the end of its log:"; tail -n 15 "$out/$name.log" | tee -a "$out/summary.txt"; failed=1 ;;
  esac
  return $status
}

# Which devices there are: skua-bench says it in its first lines, or why not.
devices=()
for api in opencl vulkan; do
  if timeout 60 "$here/skua-bench" --device "$api:0" --suite layers --filter 'unary_f32/relu_16384$' --peers clblast,cublas --quick > "$out/$api.log" 2>&1; then
    devices+=("$api:0")
    summary "$(sed '/^$/,$d' "$out/$api.log")"
  else
    summary "no $api: $(tail -n 1 "$out/$api.log")"
  fi
done
(( ${#devices[@]} )) || { summary "no device"; exit 1; }

# What computes on the CPU shows that the steps run, not how fast: networks of small images, and no layer of a GPU's size.
software=0
if grep -q SOFTWARE "$out/summary.txt"; then
  software=1
  summary "a dry run: $(grep -c SOFTWARE "$out/summary.txt") of ${#devices[@]} devices are software; layers are few and small, images 64 x 64"
fi
# pick LAYERS SMALL: the filter of a step.
pick() { (( software )) && echo "$2" || echo "$1"; }

# Several tests at a time: drivers compile on the CPU. Each may take twice its part of what is left, so that a slow one leaves time to the others; the shortest come first, then products and convolutions.
deadline=$((seconds * 40 / 100)) at_once=$(($(nproc) / 2))
(( at_once >= 1 )) || at_once=1
(( at_once <= 6 )) || at_once=6
rm -f "$out/a_test_failed"
tests=()
for test in choice engine_vulkan contract engine_opencl lifetime tune cache half data network gemm conv winograd inverted_residual bytes_products bytes unary elementwise rows image special fuzz; do
  [[ ! -x $here/gpu_${test}_test ]] || tests+=("$test")
done
left=${#tests[@]}
for test in "${tests[@]}"; do
  while (( $(jobs -rp | wc -l) >= at_once )); do sleep 0.2; done
  share=$(((deadline - SECONDS) * at_once * 2 / left))
  { step "gpu_${test}_test" $((share > 10 ? share : 10)) "$here/gpu_${test}_test" || touch "$out/a_test_failed"; } &
  left=$((left - 1))
done
wait
[[ ! -e $out/a_test_failed ]] || failed=1

# The bars first, on every device before anything else: products against the vendor's and CLBlast, memory against copies, f16 against f32; then whole networks with the CPU beside them. What a choice
# costs comes last: 3x3 layers by Winograd and as implicit products, weights as images and as buffers, sums of f16.
bench() { "$here/skua-bench" --device "$device" --threads "$threads" --quick "$@"; }
# measure NAME SHARE ARGUMENTS...: at most so many hundredths of the time.
measure() {
  local name=$1 limit=$((seconds * $2 / 100))
  shift 2
  step "${name}_$api" "$limit" bash -c 'bench "$@"' - "$@" --json "$out/${name}_$api.json"
}
# tell NAME PATTERN [PREFIX]: what a step printed, as far as it came.
tell() { [[ ! -e $out/$1_$api.log ]] || summary "$(grep -E "$2" "$out/$1_$api.log" | sed "s|^|${3-}|")"; }
# forced NAME KERNEL FILTER TYPES: the layers once more, by kernels or algorithms of this name.
forced() {
  SKUA_KERNEL=$2 measure "$1" 3 --suite layers --peers none --filter "$3" --type "$4"
  tell "$1" '^[a-z0-9_]+/' "$2: "
}
# each FUNCTION END: on every device, not beyond END hundredths of the time.
each() {
  deadline=$((seconds * $2 / 100 - 3))
  for device in "${devices[@]}"; do
    api=${device%:*}
    "$1"
  done
}
layers() {
  measure layers 12 --suite layers --filter "$(pick '/device/' 'gemm_f[0-9]*/512x512x512$|unary_f[0-9]*/relu_16384$')" --type f32,f16 --html "$out/layers_$api.html"
  tell layers '^[a-z0-9_]+/|^  peak|^  copy|peer '
  measure convolutions 6 --suite layers --filter "$(pick 'resnet50/3x3s1|mobilenet_v2/' 'resnet50/3x3s1_7x7|mobilenet_v2/.*_7x7')"
  tell convolutions 'resnet50/3x3s1|depthwise'
}
networks() {
  local small=()
  (( ! software )) || small=(--resolution 64)
  measure networks 12 "${small[@]}" --suite networks --filter "$(pick 'mobilenet_v1|mobilenet_v2|resnet50' 'mobilenet_v2|resnet50')" --type f32,f16,s8 --html "$out/networks_$api.html"
  tell networks '^network|programs;|start without'
  measure fast_networks 5 "${small[@]}" --numerics fast --suite networks --peers none --filter "$(pick 'mobilenet_v2|resnet50' 'mobilenet_v2')" --type f16
  tell fast_networks '^network' 'fast: '
}
choices() {
  for kernel in winograd_f2x2 winograd_f4x4 tile64 tile128 rows8; do forced "3x3_$kernel" $kernel "$(pick 'resnet50/3x3s1' 'resnet50/3x3s1_7x7')" f32,f16; done
  forced images '*_image_*' "$(pick 'gemm_f[0-9]*/device/2048|resnet50/(3x3|1x1)s1_28|mobilenet_v2/.*_56' 'resnet50/1x1s1_7x7')" f32,f16
  measure fast 4 --numerics fast --suite layers --peers none --filter "$(pick 'gemm_f16/device/|resnet50/3x3s1|depthwise_f16/device/' 'resnet50/3x3s1_7x7')" --type f16
  tell fast '^[a-z0-9_]+/|^  peak|numerics' 'fast: '
}
export -f bench
export here device threads
each layers 70
each networks 90
each choices 100
summary "$SECONDS s in all; results in $out"
exit $failed
