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

deadline=$((seconds * 40 / 100))
for test in contract unary elementwise data gemm conv rows network half bytes bytes_products image winograd special inverted_residual lifetime engine_opencl engine_vulkan tune choice cache fuzz; do
  [[ -x $here/gpu_${test}_test ]] && step "gpu_${test}_test" 15 "$here/gpu_${test}_test"
done

# Whole networks with the CPU beside them, then the layers of the bars: products against the vendor's and CLBlast, memory against copies, 3x3 layers.
deadline=$((seconds - 3))
for device in "${devices[@]}"; do
  api=${device%:*}
  bench() { "$here/skua-bench" --device "$device" --threads "$threads" --quick "$@"; }
  export -f bench; export here device threads
  step "networks_$api" 15 bash -c 'bench "$@"' - --suite networks --filter 'mobilenet_v1|mobilenet_v2|resnet50' --type f32,f16 --json "$out/networks_$api.json" --html "$out/networks_$api.html"
  summary "$(grep -E '^network|programs;|start without' "$out/networks_$api.log")"
  step "layers_$api" 12 bash -c 'bench "$@"' - --suite layers --filter '/device/' --type f32,f16 --json "$out/layers_$api.json" --html "$out/layers_$api.html"
  summary "$(grep -E '/device/|^  peak|^  copy|peer ' "$out/layers_$api.log")"
  step "convolutions_$api" 8 bash -c 'bench "$@"' - --suite layers --filter 'resnet50/3x3s1|mobilenet_v2/' --json "$out/convolutions_$api.json"
  summary "$(grep -E 'resnet50/3x3s1|depthwise' "$out/convolutions_$api.log")"
done
summary "$SECONDS s in all; results in $out"
exit $failed
