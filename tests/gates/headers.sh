#!/usr/bin/env bash
# Gate: every public header compiles alone, as C11 and as C++17, without a warning, with every compiler found.
#   headers.sh INCLUDE_DIR
set -euo pipefail
include=$1
flags=(-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -I "$include")
count=0 failed=0 compilers=()

check() { # compiler standard language header
  count=$((count + 1))
  if ! printf '#include "%s"\n' "$4" | "$1" "-std=$2" -x "$3" "${flags[@]}" -; then
    echo "FAILED: $4 as $2 with $1"
    failed=$((failed + 1))
  fi
}

for version in gcc clang-19 clang; do
  command -v "$version" > /dev/null || continue
  [[ $version == clang && " ${compilers[*]} " == *" clang-19 "* ]] && continue
  compilers+=("$version")
  for header in "$include"/skua/*.h; do
    name=skua/$(basename "$header")
    check "$version" c11 c "$name"
    check "$version" c++17 c++ "$name"
  done
done

# The gate itself must be able to fail.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'static inline int canary(long x) { return x; }' > "$work/canary.h"
if printf '#include "%s"\n' "$work/canary.h" | gcc -std=c11 -x c "${flags[@]}" - 2> "$work/log"; then
  echo "FAILED: a header with a narrowing conversion was accepted"
  failed=$((failed + 1))
fi

echo "$count compilations with ${compilers[*]}, $failed failed"
(( count > 0 && failed == 0 ))
