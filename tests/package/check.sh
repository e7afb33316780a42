#!/usr/bin/env bash
# Installs a build of Skua and builds a C program against it, outside the source tree.
#   check.sh cmake|pkgconfig BUILD WORK PROGRAM
# BUILD decides between static and shared; WORK is emptied; PROGRAM.c lies beside this script.
set -euo pipefail
how=$1 build=$(realpath "$2") work=$3 program=$4
here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "check.sh: $*" >&2; exit 1; }

rm -rf "$work"
mkdir -p "$work/source" "$work/build"
work=$(realpath "$work")
cp "$here/$program.c" "$here/CMakeLists.txt" "$work/source/"
cmake --install "$build" --prefix "$work/prefix" > "$work/install.log"
libdir=$(dirname "$(find "$work/prefix" -name 'libskua.*' | sort | head -n 1)")
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# What is installed must not remember where it was built.
if grep -rlIF -e "$build" -e "$(cd "$here/../.." && pwd)" "$work/prefix"; then fail "installed files name the build tree"; fi

case $how in
  cmake)
    cmake -G Ninja -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DPROGRAM="$program" > "$work/configure.log"
    cmake --build "$work/build" > "$work/build.log" || { cat "$work/build.log"; fail "the program does not build"; } ;;
  pkgconfig)
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    [[ $(pkg-config --modversion skua) == "$(sed -n 's/.*SKUA_VERSION_STRING "\(.*\)"/\1/p' "$work/prefix/include/skua/version.h")" ]] ||
      fail "skua.pc and version.h disagree on the version"
    module=skua
    if [[ $program == threads ]]; then module=skua_pthreadpool; fi
    read -ra flags <<< "$(pkg-config --cflags --libs "$module")"
    cc -std=c11 -O2 "$work/source/$program.c" -o "$work/build/$program" "${flags[@]}" ;;
  *) fail "unknown way $how" ;;
esac

"$work/build/$program"
needed=$(readelf -d "$work/build/$program" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
if grep -q 'stdc++' <<< "$needed"; then fail "the program needs libstdc++"; fi
drivers='NEEDED.*\(OpenCL\|vulkan\)'  # are opened at run time
if readelf -d "$work/build/$program" | grep -q "$drivers"; then fail "the program needs a GPU's driver library"; fi

if [[ -e $libdir/libskua.so ]]; then
  grep -q 'libskua\.so\.[0-9]' <<< "$needed" || fail "the program does not use the versioned shared library: $needed"
  if readelf -d "$libdir/libskua.so" | grep -q 'NEEDED.*stdc++'; then fail "the shared library needs libstdc++"; fi
  if readelf -d "$libdir/libskua.so" | grep -q "$drivers"; then fail "the shared library needs a GPU's driver library"; fi
  foreign=$(readelf --dyn-syms -W "$libdir/libskua.so" | awk '$7 ~ /^[0-9]+$/ && $8 !~ /^skua_/ { print $8 }')
  [[ -z $foreign ]] || fail "the shared library shows more than its interface: $(head -n 5 <<< "$foreign")"
elif grep -q skua <<< "$needed"; then
  fail "the program needs a shared skua beside the static one"
fi
