#!/usr/bin/env bash
# Gate: what a program with one f32 convolution grows by, statically linked for 32-bit Arm, stripped, unused sections dropped.
#   one_operator.sh COMPILER BUILD WORK LIMIT_KIB [EMULATOR ...]
# BUILD holds a libskua.a with that operator alone.
set -euo pipefail
compiler=$1 build=$2 work=$3 limit=$4
shift 4
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work"
for program in empty one_operator; do
  "$compiler" -std=c11 -Os -march=armv7-a -mfpu=vfpv3-d16 -mfloat-abi=hard -ffunction-sections -fdata-sections -I "$here/../../include" \
    "$here/size/$program.c" -o "$work/$program" -static -Wl,--gc-sections -s "$build/libskua.a" -lm
done
"$@" "$work/one_operator"
exec python3 "$here/size_budget.py" --program "$work/one_operator" --empty "$work/empty" --limit "$limit"
