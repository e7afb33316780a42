// Packed blobs: good ones with bytes changed, cut off or added, and plain rubbish. What is accepted must run.
#include <skua/conv.h>
#include <skua/gemm.h>
#include <skua/packed.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

using namespace skua_fuzz;

namespace {

std::vector<uint8_t> blob_of(skua_op* op) {
  const size_t size = skua_op_packed_size(op);
  void* memory = aligned_alloc(SKUA_PACKED_ALIGNMENT, (size + 63) / 64 * 64);
  if (skua_op_packed_write(op, memory, size) != SKUA_STATUS_OK) abort();
  std::vector<uint8_t> blob(size);
  memcpy(blob.data(), memory, size);
  free(memory);
  skua_op_destroy(op);
  return blob;
}

const std::vector<std::vector<uint8_t>>& good_blobs() {
  static const std::vector<std::vector<uint8_t>> blobs = [] {
    const Values values(4096);
    std::vector<std::vector<uint8_t>> made;
    skua_op* op;
    skua_gemm_desc gemm = SKUA_GEMM_DESC_INIT;
    gemm.n = 9, gemm.k = 5;
    if (skua_gemm_create(context(), &gemm, values.data(), values.data(), &op) != SKUA_STATUS_OK) abort();
    made.push_back(blob_of(op));
    // Quantised rows by weights of s8, and of s4 with zero points.
    const std::vector<float> scales(18, 0.5f);
    const std::vector<int32_t> zeros(18, 3);
    gemm = SKUA_GEMM_DESC_INIT;
    gemm.n = 9, gemm.k = 40, gemm.ldb = 10, gemm.quantize_a = true, gemm.b_type = SKUA_DTYPE_S8, gemm.b_q.scale = 0.5f;
    std::vector<std::vector<uint8_t>> rows;
    if (skua_gemm_create(context(), &gemm, values.data(), nullptr, &op) != SKUA_STATUS_OK) abort();
    rows.push_back(blob_of(op));
    gemm.b_type = SKUA_DTYPE_S4, gemm.b_q.block_size = 32, gemm.b_q.scales = scales.data(), gemm.b_q.axis = 1,
    gemm.b_q.zero_points = zeros.data();
    if (skua_gemm_create(context(), &gemm, values.data(), values.data(), &op) != SKUA_STATUS_OK) abort();
    rows.push_back(blob_of(op));
    skua_conv2d_desc conv = SKUA_CONV2D_DESC_INIT;
    conv.kernel_h = conv.kernel_w = 3, conv.in_channels = 4, conv.out_channels = 5;
    if (skua_conv2d_create(context(), &conv, values.data(), nullptr, &op) != SKUA_STATUS_OK) abort();
    made.push_back(blob_of(op));
    made.insert(made.end(), rows.begin(), rows.end());
    return made;
  }();
  return blobs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  const uint32_t which = bytes.below(5);
  std::vector<uint8_t> blob;
  const bool known = which < good_blobs().size();
  if (known) {
    blob = good_blobs()[which];
    for (uint32_t edits = bytes.below(4); edits--;) {
      // Mostly in the header and the descriptor, which come first.
      const size_t at = bytes.flag() ? bytes.byte() : bytes.byte() << 8 | bytes.byte();
      if (at < blob.size()) blob[at] = uint8_t(bytes.byte());
    }
    if (bytes.byte() >= 240) blob.resize(bytes.byte() << 8 | bytes.byte());
  } else if (size > 1) {
    blob.assign(data + 1, data + size);
  }
  // Of the exact size, or read past the end goes unseen.
  void* memory = nullptr;
  if (posix_memalign(&memory, SKUA_PACKED_ALIGNMENT, blob.size() ? blob.size() : 1)) abort();
  if (!blob.empty()) memcpy(memory, blob.data(), blob.size());
  skua_op* op = nullptr;
  const bool accepted = made(skua_op_create_packed(context(), memory, blob.size(), &op), op);
  // Only an undamaged blob may pass; bytes behind it are another's business.
  const bool good = known && blob.size() >= good_blobs()[which].size() &&
                    memcmp(blob.data(), good_blobs()[which].data(), good_blobs()[which].size()) == 0;
  if (accepted != good) abort();
  if (accepted) {
    const skua_tensor input = which == 0  ? skua_tensor_2d(SKUA_DTYPE_F32, 3, 5)
                              : which > 1 ? skua_tensor_2d(SKUA_DTYPE_F32, 3, 40)
                                          : skua_tensor_4d(SKUA_DTYPE_F32, 1, 6, 7, 4);
    plan_and_run(op, &input, 1);
    skua_op_destroy(op);
  }
  free(memory);
  return 0;
}
