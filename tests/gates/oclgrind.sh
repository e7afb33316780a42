#!/usr/bin/env bash
# Gate: kernels on a simulated device that sees every access outside of a buffer, every race between threads and every use of what nobody wrote. oclgrind.sh TESTS WORK LIBRARY: TESTS holds the GPU test programs.
set -euo pipefail
tests=$1 work=$2 library=${3:-/usr/lib/oclgrind/liboclgrind-rt.so}
mkdir -p "$work"
[[ -f $library ]] || { echo "$library is missing (Debian: oclgrind)"; exit 1; }
export SKUA_OPENCL_LIBRARY=$library OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 SKUA_VULKAN_LIBRARY=/nonexistent SKUA_TEST_SMALL=1 SKUA_TEST_GPU_PAIRS=1
bad=0
run() {
  local log=$work/$1.log
  rm -f "$log"
  OCLGRIND_LOG=$log "$tests/$1" --gtest_filter="$2" || bad=1
  # It exits with 0 whatever it finds: what it says goes to the log.
  if [[ -s $log ]]; then head -20 "$log"; bad=1; fi
}
run gpu_gemm_test 'gpu_gemm.epilogue:gpu_gemm.few_rows:gpu_gemm.any_offset:gpu_gemm.f32_of_halves'
run gpu_conv_test 'gpu_conv.epilogue:gpu_conv.planes:gpu_conv.depthwise:gpu_conv.transposed:gpu_pool.*'
run gpu_unary_test GpuUnary.Strides
run gpu_elementwise_test 'GpuBinary.BroadcastingStridesActivations:GpuSelect.*:GpuConvert.*'
run gpu_data_test '*'
run gpu_rows_test '*'
run gpu_bytes_products_test '-gpu_bytes.gemm_vectors:gpu_bytes.conv_taps:gpu_bytes.conv_transposed'
run gpu_bytes_test 'gpu_bytes.convert:gpu_bytes.unary:gpu_bytes.data_movement:gpu_bytes.pooling:gpu_bytes.pooling_and_reductions_in_parts:gpu_bytes.softmax:gpu_bytes.reductions:gpu_bytes.resize'
run gpu_winograd_test '*'
# Uses of what was never written, in registers and local memory too, of texts that are not optimised: this check does not know LLVM's freeze, which optimising brings.
unset OCLGRIND_DATA_RACES
export OCLGRIND_UNINITIALIZED=1 OCLGRIND_BUILD_OPTIONS=-cl-opt-disable
run gpu_gemm_test 'gpu_gemm.few_rows:gpu_gemm.any_offset'
run gpu_conv_test 'gpu_conv.depthwise:gpu_conv.planes'
run gpu_unary_test GpuUnary.Strides
run gpu_elementwise_test 'GpuSelect.*:GpuConvert.*'
run gpu_data_test '*'
run gpu_rows_test 'GpuSoftmax.*:GpuReduce.LongColumns'
run gpu_bytes_test gpu_bytes.pooling
exit $bad
