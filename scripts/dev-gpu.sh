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
# What NVIDIA's Vulkan driver opens beside itself, display or not.
if scripts/sysroot.sh --alone amd64 build/tools/glvnd libglvnd0 libegl1 libglx0 libgl1 libopengl0 libgles2 libx11-6 libxext6 libxcb1 libxau6 libxdmcp6 libbsd0 libmd0; then
  for library in build/tools/glvnd/usr/lib/x86_64-linux-gnu/lib*.so.[0-9]; do cp -L "$library" "$out/loaders/"; done
fi
if [[ ${1-} == pack ]]; then
  tar -C build -czf build/gpu-evidence.tar.gz gpu-evidence
  say "build/gpu-evidence.tar.gz is ready, $(du -sm build/gpu-evidence.tar.gz | cut -f 1) MiB: unpack it where the GPU is and call gpu-evidence/gpu-evidence.sh"
  exit 0
fi
exec "$out/gpu-evidence.sh"
