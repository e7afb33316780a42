# 32-bit Arm Linux with hardware floating point, built and run on another machine: cmake --preset armhf.
set(_skua_arch armhf)
set(_skua_triple arm-linux-gnueabihf)
set(_skua_cpu arm)
# Plain hard-float ARMv7: what is not a kernel runs on every such core. dispatch/isa.def switches NEON on for the units that need it.
set(CMAKE_C_FLAGS_INIT "-march=armv7-a -mfpu=vfpv3-d16 -mfloat-abi=hard")
set(CMAKE_CXX_FLAGS_INIT "-march=armv7-a -mfpu=vfpv3-d16 -mfloat-abi=hard -Wno-psabi")
include("${CMAKE_CURRENT_LIST_DIR}/cross.cmake")
