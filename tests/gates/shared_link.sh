#!/usr/bin/env bash
# Gate: every object of a static build would do in a shared library: position-independent, nothing missing, no C++ runtime, no symbol but the interface shown.
#   shared_link.sh BUILD WORK
set -euo pipefail
build=$1 work=$2
mkdir -p "$work"
library=$work/libskua.so
c++ -shared -o "$library" -Wl,-z,defs,-z,text -Wl,--as-needed -Wl,--whole-archive "$build/libskua.a" -Wl,--no-whole-archive -lcpuinfo -ldl
foreign=$(readelf --dyn-syms -W "$library" | awk '$7 ~ /^[0-9]+$/ && $8 !~ /^skua_/ { print $8 }')
[[ -z $foreign ]] || { echo "shared_link.sh: shown beside the interface: $foreign" >&2; exit 1; }
if readelf -d "$library" | grep 'NEEDED.*stdc++'; then echo "shared_link.sh: needs the C++ runtime" >&2; exit 1; fi
