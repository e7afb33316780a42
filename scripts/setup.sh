# Sourced by ./dev: installs packages, fetches tools, configures and builds. Runs in the root of the repository.

jobs=$(nproc)
say() { printf '\n== %s\n' "$*"; }

as_root() {
  if (( EUID == 0 )); then "$@"
  elif command -v sudo > /dev/null; then sudo "$@"
  else echo "dev: packages are missing, and there is neither root nor sudo: $*" >&2; return 1
  fi
}

# need PACKAGE ...: installs what dpkg does not have yet.
need() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || missing+=("$package")
  done
  (( ${#missing[@]} )) || return 0
  say "installing ${missing[*]}"
  as_root apt-get -qq -oAcquire::Retries=3 update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y -oAcquire::Retries=3 -oDpkg::Use-Pty=0 install --no-install-recommends \
    "${missing[@]}" < /dev/null > /dev/null
}

# The recent qemu of Debian's backports, unpacked beside the build; Debian's own where there are no backports. The older one shows
# programs the host's /proc/cpuinfo, so detection by cpuinfo is not tested with it.
need_qemu() {
  local dir=build/tools/qemu
  [[ -f $dir/.unpacked ]] && return 0
  say "fetching qemu-user from backports into $dir"
  if scripts/sysroot.sh --suite bookworm-backports --alone amd64 "$dir" qemu-user; then
    find "$dir/usr/bin" -type f ! -name qemu-aarch64 ! -name qemu-arm ! -name qemu-x86_64 -delete
    find "$dir/usr/bin" -xtype l -delete
    rm -rf "$dir/usr/share" "$dir/usr/libexec"
  else
    echo "dev: backports cannot be reached; the older qemu of Debian 12 takes its place" >&2
    need qemu-user
  fi
}

# Vulkan on the CPU: Mesa's lavapipe of Debian's backports, unpacked beside the build; Debian's own, older one where there are no backports.
need_lavapipe() {
  local dir=build/tools/lavapipe
  [[ -f $dir/.unpacked ]] && return 0
  say "fetching mesa-vulkan-drivers from backports into $dir"
  if scripts/sysroot.sh --suite bookworm-backports amd64 "$dir" mesa-vulkan-drivers; then
    find "$dir" ! -type d -name 'libvulkan*' ! -name libvulkan_lvp.so -delete
    rm -rf "$dir"/{etc,lib,lib64,usr/share/doc,usr/lib/x86_64-linux-gnu/gconv}
  else
    echo "dev: backports cannot be reached; the older lavapipe of Debian 12 takes its place" >&2
    need mesa-vulkan-drivers
  fi
}

# Bochs, a processor with AVX-512 in software, and what a Linux that runs on it is made of (tests/matrix/guest.py), of the release after Debian 12, whose own Bochs is too old.
need_bochs() {
  local dir=build/tools/bochs
  [[ -f $dir/.unpacked ]] && return 0
  say "fetching bochs into $dir"
  if scripts/sysroot.sh --suite trixie amd64 "$dir" bochs bochs-term bochsbios vgabios linux-image-cloud-amd64 isolinux syslinux-common busybox-static xorriso; then
    rm -rf "$dir"/usr/share/{doc,icons,locale,X11,man} "$dir"/usr/lib/modules
  else
    echo "dev: Debian 13 cannot be reached; instruction sets above AVX2 run only where this machine has them" >&2
  fi
}

# need_sysroot ARCH: the libraries that tests of that architecture link with and run on.
need_sysroot() {
  local dir=build/sysroot/$1
  local packages=(libstdc++6 libcpuinfo-dev libpthreadpool-dev libgtest-dev libgmock-dev)
  [[ -f $dir/.unpacked ]] || say "unpacking the libraries of $1 into $dir"
  scripts/sysroot.sh "$1" "$dir" "${packages[@]}"
}

# configure PRESET
configure() {
  local launcher=() isas=()
  # AddressSanitizer runs on this processor alone: kernels above AVX2 are half of that build.
  if [[ $1 == asan ]] && ! grep -q avx512f /proc/cpuinfo; then isas=(-DSKUA_ISAS=avx2); fi
  if command -v ccache > /dev/null; then  # a second clone on the same machine, CI's too, then compiles what differs
    export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime  # for the tests' precompiled header
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  mkdir -p build
  cmake --preset "$1" "${launcher[@]}" "${isas[@]}" > "build/$1.log" 2>&1 || { tail -n 60 "build/$1.log"; return 1; }
}

# build PRESET [TARGET ...]
build() {
  local preset=$1 start=$SECONDS
  shift
  say "building $preset${1:+: $*} (tail -f build/$preset.log)"
  configure "$preset"
  if ! cmake --build "build/$preset" -j "$jobs" ${1:+--target "$@"} >> "build/$preset.log" 2>&1; then
    tail -n 60 "build/$preset.log"
    return 1
  fi
  echo "   done in $((SECONDS - start)) s"
}
