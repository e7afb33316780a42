#!/usr/bin/env bash
# gpu-evidence.sh [OUT]: beside skua-bench and the gpu_*_test programs. Correctness first, then the bars; within SKUA_GPU_SECONDS (580), whatever hangs.
# Everything goes to OUT (default: results beside this script): summary.txt, a log for each step, JSON and HTML of the measurements. Exit status: 0 when every step passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/results}
mkdir -p "$out"
seconds=${SKUA_GPU_SECONDS:-580} threads=${SKUA_GPU_THREADS:-$(nproc)} failed=0 told=$out/summary.txt
summary() { printf '%s\n' "$*" | tee -a "$told"; }
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
    *) summary "FAILED  $name ($status), $((SECONDS - start)) s; the end of its log:"; tail -n 15 "$out/$name.log" | tee -a "$told"; failed=1 ;;
  esac
  return $status
}

# Which devices there are: skua-bench says it in its first lines, or why not; of Vulkan what the loader says.
devices=()
for api in opencl vulkan; do
  loader=
  [[ $api != vulkan ]] || loader=error
  if VK_LOADER_DEBUG=$loader timeout 60 "$here/skua-bench" --device "$api:0" --suite layers --filter 'unary_f32/relu_16384$' --peers clblast,cublas --quick > "$out/$api.log" 2>&1; then
    devices+=("$api:0")
    summary "$(sed '/^ERROR/d; /^$/,$d' "$out/$api.log")"
  else
    summary "no $api: $(tail -n 1 "$out/$api.log")" "$(grep '^ERROR' "$out/$api.log" | sort -u | head -n 5)"
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

# Many tests at a time, each API and each quarter of the longer ones in a process of its own: drivers compile on the CPU, one program after another. The longest come first.
deadline=$((seconds * 40 / 100)) at_once=$(($(nproc) - 1))
(( at_once >= 1 )) || at_once=1
(( at_once <= 14 )) || at_once=14
rm -f "$out"/*_test_*.failed
# test NAME API SHARD OF
test_shard() {
  export GTEST_SHARD_INDEX=$3 GTEST_TOTAL_SHARDS=$4
  case $2 in
    opencl) export SKUA_VULKAN_LIBRARY=none ;;
    vulkan) export SKUA_OPENCL_LIBRARY=none ;;
  esac
  local name=gpu_$1_test_$2_$3 told=/dev/null
  step "$name" "$deadline" "$here/gpu_$1_test" > "$out/$name.said" || touch "$out/$name.failed"
}
shards_of() { case $1 in conv | gemm | rows | bytes | bytes_products | special | image | elementwise | unary | data | half | cache | tune) echo 4 ;; *) echo 1 ;; esac; }
tests=() begun=$SECONDS
for test in conv gemm rows bytes_products bytes unary special elementwise image data winograd fuzz half tune cache network inverted_residual contract lifetime engine_vulkan engine_opencl choice; do
  [[ ! -x $here/gpu_${test}_test ]] || tests+=("$test")
done
for test in "${tests[@]}"; do
  for ((shard = 0, of = $(shards_of "$test"); shard < of; ++shard)); do
    for device in "${devices[@]}"; do
      while (( $(jobs -rp | wc -l) >= at_once )); do sleep 0.1; done
      test_shard "$test" "${device%:*}" $shard $of &
    done
  done
done
wait
for test in "${tests[@]}"; do
  for device in "${devices[@]}"; do
    api=${device%:*}
    if compgen -G "$out/gpu_${test}_test_${api}_*.failed" > /dev/null; then
      failed=1
      summary "$(cat "$out"/gpu_${test}_test_${api}_*.said | grep -v '^ok')"
    else
      summary "ok      gpu_${test}_test on $api, $(cat "$out"/gpu_${test}_test_${api}_*.log | grep -c '^\[       OK') tests, $(cat "$out"/gpu_${test}_test_${api}_*.said | grep -o '[0-9]* s$' | sort -n | tail -n 1)"
    fi
  done
done
rm -f "$out"/*.said "$out"/*_test_*.failed
summary "tests: $((SECONDS - begun)) s"

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
  measure layers 12 --suite layers --filter "$(pick '/device/' 'gemm_f[0-9]*/512x512x512$|unary_f[0-9]*/relu_16384$')" --type f32,f16 --peers clblast,cublas --html "$out/layers_$api.html"
  tell layers '^[a-z0-9_]+/|^  peak|^  copy|peer '
  measure convolutions 10 --suite layers --peers none --filter "$(pick 'resnet50/|mobilenet_v2/' 'resnet50/3x3s1_7x7|mobilenet_v2/.*_7x7')"
  tell convolutions '^[a-z0-9_]+/|^layers:'
}
networks() {
  local small=()
  (( ! software )) || small=(--resolution 64)
  measure networks 10 "${small[@]}" --suite networks --filter "$(pick 'mobilenet_v1|mobilenet_v2|resnet50' 'mobilenet_v2|resnet50')" --type f32,f16,s8 --html "$out/networks_$api.html"
  tell networks '^network|programs;|start without|wrong'
  measure fast_networks 4 "${small[@]}" --numerics fast --suite networks --peers none --filter "$(pick 'mobilenet_v2|resnet50' 'mobilenet_v2')" --type f16
  tell fast_networks '^network' 'fast: '
}
choices() {
  for kernel in winograd_f2x2 winograd_f4x4 tile64 tile128 rows8; do forced "3x3_$kernel" $kernel "$(pick 'resnet50/3x3s1' 'resnet50/3x3s1_7x7')" f32; done
  for kind in rows tile; do forced "bytes_$kind" "$kind*" "$(pick 'resnet50/' 'resnet50/3x3s1_7x7')" s8; done
  forced images '*_image_*' "$(pick 'gemm_f[0-9]*/device/2048|resnet50/(3x3|1x1)s1_28|mobilenet_v2/.*_56' 'resnet50/1x1s1_7x7')" f32,f16
  measure fast 4 --numerics fast --suite layers --peers none --filter "$(pick 'gemm_f16/device/|resnet50/3x3s1|depthwise_f16/device/' 'resnet50/3x3s1_7x7')" --type f16
  tell fast '^[a-z0-9_]+/|^  peak|numerics' 'fast: '
}

# bars: what the library is held to on a GPU, read from the logs of one API. A line is: figure, bar, whether it is met; a bar without a figure was not measured.
bars() {
  summary "
$api: bar                                                               figure      wanted   met"
  local logs=() log
  for log in layers convolutions networks 3x3_winograd_f2x2 3x3_winograd_f4x4 3x3_tile64 3x3_tile128 3x3_rows8; do [[ ! -e $out/${log}_$api.log ]] || logs+=("$out/${log}_$api.log"); done
  awk '
    function line(name, value, unit, wanted, met) { printf "  %-68s %8s%-3s %9s   %s\n", name, value, unit, wanted, value == "" ? "not measured" : wanted == "-" ? "" : met ? "yes" : "NO" }
    function least(name, value, unit, wanted) { line(name, value, unit, ">= " wanted, value + 0 >= wanted) }
    function most(name, value, unit, wanted) { line(name, value, unit, "<= " wanted, value + 0 <= wanted) }
    function ratio(peer,  i) { for (i = 1; i < NF; ++i) if ($i == peer) return $(i + 1) + 0; return "" }
    function us(i) { return $(i + 1) == "ms" ? $i * 1000 : $i + 0 }
    /^network_/ { network = $1; if (/ from the CPU/) ++agree }
    /wrong result/ { ++wrong }
    /programs;/ { programs = $1 > programs ? $1 : programs; for (i = 1; i < NF; ++i) if ($i == "us" && $(i + 1) == "on") { host[network] = $(i - 1); if ($(i - 1) > worst_host) { worst_host = $(i - 1); worst_at = network } }
                    if (match($0, /[(][0-9.]+ the library/) && substr($0, RSTART + 1) + 0 > own + 0) own = substr($0, RSTART + 1) + 0 }
    /start without/ { if (network ~ /f32.mobilenet_v2/) { for (i = 1; i < NF; ++i) if ($i == "it" && $(i + 2) == "ms") warm = $(i + 1) } }
    /^[a-z0-9_]+_f[0-9]+\/device\// { if (!($1 in share)) for (i = 4; i < 8; ++i) if ($i ~ /%$/) { share[$1] = $i + 0; break }
      if (ratio("cublas") != "") blas[$1] = ratio("cublas"); if (ratio("clblast") != "") clb[$1] = ratio("clblast"); if (ratio("f32") != "") half[$1] = ratio("f32") }
    FILENAME ~ /convolutions_/ && /^[a-z0-9_]+\/.*regret/ { for (i = 1; i < NF; ++i) if ($i == "regret" && $(i + 1) + 0 > most_regret) { most_regret = $(i + 1) + 0; regret_at = $1 } }
    FILENAME ~ /convolutions_/ && /^layers:/ { for (i = 1; i < NF; ++i) if ($i == "regret") mean_regret = $(i + 1) + 0 }
    /^conv2d_f32\/resnet50\/3x3s1/ { if (FILENAME ~ /convolutions_/) { chosen[$1] = us(2); order[++n] = $1 } else if (!($1 in best) || us(2) < best[$1]) best[$1] = us(2) }
    END {
      g = "gemm_f32/device/4096x4096x4096"
      least("f32 product of 4096, of the vendor'"'"'s BLAS", g in blas ? blas[g] : "", "x", 0.6)
      least("f32 product of 4096, of CLBlast", g in clb ? clb[g] : "", "x", 1.0)
      split("depthwise_f32/device/3x3s1_448x448x256 depthwise_f32/device/3x3s2_448x448x256 max_pool_f32/device/2x2s2_448x448x256 average_pool_f32/device/3x3s2_448x448x256 unary_f32/device/relu_67108864 unary_f32/device/sigmoid_67108864 binary_f32/device/add_33554432", at, " ")
      for (i = 1; i <= 7; ++i) least(at[i] ", of copy bandwidth", share[at[i]], "%", 80)
      for (i = 1; i <= 7; ++i) { h = at[i]; sub("_f32", "_f16", h); least(h ", of f32", half[h], "x", 1.5) }
      for (i = 1; i <= n; ++i) if (order[i] in best) most(order[i] ", of the best kind forced", sprintf("%.2f", chosen[order[i]] / best[order[i]]), "x", 1.1)
      most("host work an operator, the worst network (" worst_at ")", worst_host, "us", 5)
      if (own != "") most("  of which the library'"'"'s own", own, "us", 5)
      most("warm start of MobileNet V2", warm, "ms", 300)
      most("programs of a network", programs, "", 30)
      line("networks whose scores agree with the CPU'"'"'s", agree, "", "all", !wrong)
      line("regret, products and convolutions of the networks, mean", mean_regret == "" ? "" : mean_regret, "%", "-", 1)
      if (most_regret) line("  the worst: " regret_at, most_regret, "%", "-", 1)
    }' "${logs[@]}" | tee -a "$told"
}
export -f bench
export here device threads
each layers 76
each networks 92
each choices 100
each bars 100
summary "$SECONDS s in all; results in $out"
exit $failed
