# ./dev test [PART ...] [-R REGEX]: every build, then one ctest run over all of them (tests/matrix). With -R only what its tests run is built.
all=(native clang sanitizers x86-emulated arm64 armhf package)
parts=() filter=()
while (( $# )); do
  case $1 in
    -R) [[ ${2-} ]] || { echo "dev: -R wants a regular expression" >&2; exit 2; }
      filter=(-R "$2"); shift 2 ;;
    *)
      [[ " ${all[*]} " == *" $1 "* ]] || { echo "dev: no part is called $1; the parts are ${all[*]}" >&2; exit 2; }
      parts+=("$1"); shift ;;
  esac
done
everything=OFF
if (( ! ${#parts[@]} )); then parts=("${all[@]}") everything=ON; fi
wanted() { local part; for part; do [[ " ${parts[*]} " == *" $part "* ]] && return 0; done; return 1; }

packages=(cmake ninja-build ccache g++ pkg-config python3 libgtest-dev libgmock-dev libcpuinfo-dev libpthreadpool-dev)
if wanted native clang arm64 armhf; then packages+=(llvm-22); fi
if wanted native clang sanitizers arm64; then packages+=(clang-19); fi
if wanted native; then packages+=(glslc spirv-tools oclgrind); fi
if wanted native clang package; then packages+=(glslc opencl-c-headers libvulkan-dev); fi
if wanted native; then packages+=(ocl-icd-libopencl1 pocl-opencl-icd libvulkan1 vulkan-validationlayers); fi
if wanted sanitizers; then packages+=(libclang-rt-19-dev); fi
if wanted native arm64; then packages+=(llvm-19); fi
if wanted native arm64; then packages+=(g++-aarch64-linux-gnu); fi
if wanted native armhf; then packages+=(g++-arm-linux-gnueabihf); fi
need "${packages[@]}"
if wanted x86-emulated arm64 armhf; then need_qemu; fi
if wanted x86-emulated; then need_bochs; fi
if wanted native && (( ! ${#filter[@]} )); then need_lavapipe; fi
if wanted arm64; then need_sysroot arm64; fi
if wanted armhf; then need_sysroot armhf; fi

export SKUA_SPIRV_CACHE=$PWD/build/spirv
builds=()
if wanted native x86-emulated package; then builds+=(native); fi
if wanted clang; then builds+=(clang); fi
if wanted sanitizers; then builds+=(asan "tsan skua_thread_tests"); fi
if wanted arm64; then builds+=(arm64 "arm64-clang skua_gemm_neon skua_gemm_neon_fp16 skua_gemm_neon_bf16 skua_gemm_int8_neon skua_gemm_int8_neon_dot skua_gemm_int8_neon_i8mm"); fi
if wanted arm64; then builds+=("asan-arm64 gemm_test gemm_types_test depthwise_test conv_test winograd_test"); fi
if wanted armhf; then builds+=(armhf armhf-conv armhf-conv-types); fi
if wanted armhf; then builds+=("asan-armhf gemm_test gemm_types_test depthwise_test conv_test simd_test"); fi
if wanted package; then builds+=(shared selection); fi

account=$PWD/build/test/account
list_tests() {
  rm -rf build/test
  mkdir -p "$account"
  local matrix=(-DSKUA_BUILDS="$PWD/build" -DSKUA_PARTS="$(IFS=';'; echo "${parts[*]}")" -DSKUA_PARTS_ARE_ALL=$everything -DSKUA_ACCOUNT="$account")
  cmake -G Ninja -S tests/matrix -B build/test "${matrix[@]}" --no-warn-unused-cli > build/test.configure.log 2>&1 ||
    { cat build/test.configure.log; exit 1; }
}
if (( ${#filter[@]} )); then
  for each in "${builds[@]}"; do configure ${each%% *}; done
  list_tests
  found=$(ctest --test-dir build/test "${filter[@]}" --show-only=json-v1 | python3 tests/matrix/builds_of.py build/test/CTestTestfile.cmake "$PWD/build" "${builds[@]}")
  mapfile -t builds <<< "$found"
  if grep -qE '^native$|^native .*gpu' <<< "$found"; then need_lavapipe; fi
fi
for each in "${builds[@]}"; do
  if [[ $each ]]; then build $each; fi
done
list_tests
say "testing: ${parts[*]}"
# ctest's own summary is held back and closes the output, after the account.
set +e
ctest --test-dir build/test -j "$jobs" --output-on-failure --no-tests=error "${filter[@]}" 2>&1 |
  awk -v summary=build/test/summary '/ tests passed, / { held = 1 } held { print > summary; next } { print; fflush() }'
status=${PIPESTATUS[0]}
set -e
if [[ $everything == ON && ! ${filter[*]} ]]; then
  say "what was executed, where"
  python3 tests/account.py "$account" || true
fi
say "$((SECONDS / 60)) min $((SECONDS % 60)) s in all"
[[ ! -f build/test/summary ]] || cat build/test/summary
exit "$status"
