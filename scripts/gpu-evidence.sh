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

# What a bare machine may lack: the loaders (from beside this script), the note of where NVIDIA's driver is, the path of its BLAS.
libraries=$(ldconfig -p 2> /dev/null)
mkdir -p "$out/loaders"
for library in "$here"/loaders/*; do
  [[ $libraries == *"$(basename "$library") "* ]] || cp "$library" "$out/loaders/"
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$out/loaders
look() { find /usr/local /usr/lib /opt "$@" 2> /dev/null | head -n 1; }
shopt -s nullglob
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

# step NAME SHARE COMMAND...: at most so many hundredths of the time, and not beyond the `deadline` (seconds since the start).
step() {
  local name=$1 limit=$((seconds * $2 / 100)) start=$SECONDS status
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

# Several tests at a time: drivers compile on the CPU.
deadline=$((seconds * 40 / 100)) at_once=$(($(nproc) / 2))
(( at_once >= 1 )) || at_once=1
(( at_once <= 6 )) || at_once=6
rm -f "$out/a_test_failed"
for test in gemm conv rows bytes_products contract unary elementwise data network half bytes image winograd special inverted_residual lifetime engine_opencl engine_vulkan tune choice cache fuzz; do
  [[ -x $here/gpu_${test}_test ]] || continue
  while (( $(jobs -rp | wc -l) >= at_once )); do sleep 0.2; done
  { step "gpu_${test}_test" 40 "$here/gpu_${test}_test" || touch "$out/a_test_failed"; } &
done
wait
[[ ! -e $out/a_test_failed ]] || failed=1

# The bars first: products against the vendor's and CLBlast, memory against copies, f16 against f32; 3x3 layers by Winograd and as implicit products; weights as images and as buffers; sums of
# f16. Then whole networks with the CPU beside them.
deadline=$((seconds - 3))
bench() { "$here/skua-bench" --device "$device" --threads "$threads" --quick "$@"; }
# tell NAME PATTERN [PREFIX]: what a step printed, as far as it came.
tell() { [[ ! -e $out/$1_$api.log ]] || summary "$(grep -E "$2" "$out/$1_$api.log" | sed "s|^|${3-}|")"; }
# forced NAME KERNEL FILTER TYPES: the layers once more, by kernels or algorithms of this name.
forced() {
  SKUA_KERNEL=$2 step "$1_$api" 3 bash -c 'bench "$@"' - --suite layers --peers none --filter "$3" --type "$4" --json "$out/$1_$api.json"
  tell "$1" '^[a-z0-9_]+/' "$2: "
}
export -f bench
for device in "${devices[@]}"; do
  api=${device%:*}
  export here device threads
  step "layers_$api" 12 bash -c 'bench "$@"' - --suite layers --filter '/device/' --type f32,f16 --json "$out/layers_$api.json" --html "$out/layers_$api.html"
  tell layers '/device/|^  peak|^  copy|peer '
  step "convolutions_$api" 6 bash -c 'bench "$@"' - --suite layers --filter 'resnet50/3x3s1|mobilenet_v2/' --json "$out/convolutions_$api.json"
  tell convolutions 'resnet50/3x3s1|depthwise'
  for kernel in winograd_f2x2 winograd_f4x4 tile64 tile128 rows8; do forced "3x3_$kernel" $kernel 'resnet50/3x3s1' f32,f16; done
  forced images '*_image_*' 'gemm_f[0-9]*/device/2048|resnet50/(3x3|1x1)s1_28|mobilenet_v2/.*_56' f32,f16
  step "fast_$api" 4 bash -c 'bench "$@"' - --numerics fast --suite layers --peers none --filter 'gemm_f16/device/|resnet50/3x3s1|depthwise_f16/device/' --type f16 --json "$out/fast_$api.json"
  tell fast '^[a-z0-9_]+/|^  peak|numerics' 'fast: '
done
for device in "${devices[@]}"; do
  api=${device%:*}
  step "networks_$api" 12 bash -c 'bench "$@"' - --suite networks --filter 'mobilenet_v1|mobilenet_v2|resnet50' --type f32,f16,s8 --json "$out/networks_$api.json" --html "$out/networks_$api.html"
  tell networks '^network|programs;|start without'
  step "fast_networks_$api" 5 bash -c 'bench "$@"' - --numerics fast --suite networks --peers none --filter 'mobilenet_v2|resnet50' --type f16 --json "$out/fast_networks_$api.json"
  tell fast_networks '^network' 'fast: '
done
summary "$SECONDS s in all; results in $out"
exit $failed
