# What the Arm toolchain files share: Debian's cross compiler (or clang), a sysroot for the libraries, and qemu to run what was built.
# Wants _skua_arch (Debian's name), _skua_triple and _skua_cpu (qemu's name) from the file that includes it.
#
#   SKUA_SYSROOT      where scripts/sysroot.sh unpacked the packages of the architecture (build/sysroot/<arch>)
#   SKUA_QEMU_CPU     the core that qemu shows to tests (max)
#   SKUA_CROSS_CLANG  a clang, such as clang-19, to compile with instead of GCC
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${_skua_cpu})
set(CMAKE_LIBRARY_ARCHITECTURE ${_skua_triple})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SKUA_SYSROOT SKUA_CROSS_CLANG)

get_filename_component(_skua_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
set(SKUA_SYSROOT "${_skua_root}/build/sysroot/${_skua_arch}" CACHE PATH "Unpacked Debian packages of ${_skua_arch}")
set(SKUA_QEMU_CPU max CACHE STRING "The core qemu-user emulates when ctest runs a test")
set(SKUA_CROSS_CLANG "" CACHE STRING "A clang to cross-compile with, such as clang-19, instead of GCC")

if(SKUA_CROSS_CLANG)
  string(REPLACE "clang" "clang++" _skua_clangxx "${SKUA_CROSS_CLANG}")
  set(CMAKE_C_COMPILER ${SKUA_CROSS_CLANG})
  set(CMAKE_CXX_COMPILER ${_skua_clangxx})
  set(CMAKE_C_COMPILER_TARGET ${_skua_triple})
  set(CMAKE_CXX_COMPILER_TARGET ${_skua_triple})
else()
  set(CMAKE_C_COMPILER ${_skua_triple}-gcc)
  set(CMAKE_CXX_COMPILER ${_skua_triple}-g++)
endif()

set(CMAKE_FIND_ROOT_PATH "${SKUA_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${SKUA_SYSROOT}/usr/lib/${_skua_triple}/pkgconfig:${SKUA_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${SKUA_SYSROOT}")
set(_skua_rpath "-Wl,-rpath-link,${SKUA_SYSROOT}/usr/lib/${_skua_triple}:${SKUA_SYSROOT}/lib/${_skua_triple}")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${_skua_rpath}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${_skua_rpath}")

# The recent qemu that ./dev fetched, else the machine's own.
find_program(SKUA_QEMU NAMES qemu-${_skua_cpu} qemu-${_skua_cpu}-static HINTS "${_skua_root}/build/tools/qemu/usr/bin"
  NO_CMAKE_FIND_ROOT_PATH)
if(SKUA_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${SKUA_QEMU};-L;${SKUA_SYSROOT};-cpu;${SKUA_QEMU_CPU}")
endif()
