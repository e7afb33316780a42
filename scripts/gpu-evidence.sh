#!/usr/bin/env bash
# gpu-evidence.sh [OUT]: beside skua-bench and the gpu_*_test programs. Correctness first, then the bars; under ten minutes, whatever hangs (SKUA_GPU_SECONDS=600 is shared out).
# Everything goes to OUT (default: results beside this script): summary.txt, a log for each step, JSON and HTML of the measurements. Exit status: 0 when every step passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/results}
mkdir -p "$out"
seconds=${SKUA_GPU_SECONDS:-600} threads=${SKUA_GPU_THREADS:-$(nproc)} failed=0
summary() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }
: > "$out/summary.txt"

# step NAME SHARE COMMAND...: at most so many hundredths of the time.
step() {
  local name=$1 limit=$((seconds * $2 / 100)) start=$SECONDS status
  shift 2
  timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1
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
  if "$here/skua-bench" --device "$api:0" --suite layers --filter 'unary_f32/relu_16384$' --peers none --quick > "$out/$api.log" 2>&1; then
    devices+=("$api:0")
    summary "$(head -n 8 "$out/$api.log")"
  else
    summary "no $api: $(tail -n 1 "$out/$api.log")"
  fi
done
(( ${#devices[@]} )) || { summary "no device"; exit 1; }

# Correctness: 45 of 100 parts. Drivers' caches are private: the second device run is as cold as the first.
for test in contract unary elementwise data gemm conv rows network choice cache fuzz; do
  [[ -x $here/gpu_${test}_test ]] && step "gpu_${test}_test" 12 "$here/gpu_${test}_test"
done

# Whole networks with the CPU beside them, then the layers of the bars: products against the vendor's and CLBlast, memory against copies.
for device in "${devices[@]}"; do
  api=${device%:*}
  step "networks_$api" 15 "$here/skua-bench" --device "$device" --suite networks --filter 'mobilenet_v1|mobilenet_v2|resnet50' --type f32,f16 --threads "$threads" --quick --json "$out/networks_$api.json" --html "$out/networks_$api.html" &&
    summary "$(grep -E '^network|programs|start without' "$out/networks_$api.log")"
  step "layers_$api" 12 "$here/skua-bench" --device "$device" --suite layers --filter '/device/' --type f32,f16 --threads "$threads" --quick --json "$out/layers_$api.json" --html "$out/layers_$api.html" &&
    summary "$(grep -E '/device/|^  peak|^  copy|peer ' "$out/layers_$api.log")"
  step "winograd_$api" 5 "$here/skua-bench" --device "$device" --suite layers --filter 'resnet50/3x3s1' --threads "$threads" --quick --json "$out/winograd_$api.json" && summary "$(grep resnet50/3x3s1 "$out/winograd_$api.log")"
done
summary "$((SECONDS)) s in all; results in $out"
exit $failed
