# ./dev gpu [pack]: everything that can be said of the GPU at hand, in one go: correctness first, then the bars. `pack` leaves a folder that needs no compiler where the GPU is.
need cmake ninja-build g++ libgtest-dev opencl-c-headers libvulkan-dev glslc
build gpu skua_gpu_tests skua-bench
out=build/gpu-evidence
rm -rf "$out"
mkdir -p "$out"
cp build/gpu/tests/gpu_*_test build/gpu/bench/skua-bench scripts/gpu-evidence.sh "$out"
strip "$out"/gpu_*_test "$out/skua-bench"
if [[ ${1-} == pack ]]; then
  say "$out is ready, $(du -sm "$out" | cut -f 1) MiB: carry it to the machine with the GPU and call gpu-evidence.sh in it"
  exit 0
fi
exec "$out/gpu-evidence.sh" "$@"
