# ./dev gpu [pack]: everything that can be said of the GPU at hand, in one go: correctness first, then the bars. `pack` leaves an archive that needs no compiler where the GPU is.
need cmake ninja-build g++ libgtest-dev opencl-c-headers libvulkan-dev glslc ocl-icd-libopencl1 libvulkan1 libclblast1
build gpu skua_gpu_tests skua-bench
out=build/gpu-evidence
rm -rf "$out"
mkdir -p "$out/loaders"
cp build/gpu/tests/gpu_*_test build/gpu/bench/skua-bench scripts/gpu-evidence.sh "$out"
rm -f "$out/gpu_faults_test"  # about drivers that fail: its library stays in the build
strip "$out"/gpu_*_test "$out/skua-bench"
for library in libOpenCL.so.1 libvulkan.so.1 libclblast.so.1; do cp -L "$(ldconfig -p | awk -v name=$library '$1 == name { print $NF; exit }')" "$out/loaders/"; done
if [[ ${1-} == pack ]]; then
  tar -C build -czf build/gpu-evidence.tar.gz gpu-evidence
  say "build/gpu-evidence.tar.gz is ready, $(du -sm build/gpu-evidence.tar.gz | cut -f 1) MiB: unpack it where the GPU is and call gpu-evidence/gpu-evidence.sh"
  exit 0
fi
exec "$out/gpu-evidence.sh"
