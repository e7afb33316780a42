# 64-bit Arm Linux, built and run on another machine: cmake --preset arm64.
set(_skua_arch arm64)
set(_skua_triple aarch64-linux-gnu)
set(_skua_cpu aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/cross.cmake")
