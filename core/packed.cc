// Blobs of packed weights: header, config, weights. See skua/packed.h.
#include <skua/packed.h>
#include <string.h>
#include "core/op.h"
#include "core/op_classes.h"

namespace skua {
namespace {

constexpr char kMagic[8] = {'s', 'k', 'u', 'a', 'p', 'a', 'c', 'k'};
constexpr uint32_t kFormat = 15;  // raised whenever a config or a packed layout changes

struct BlobHeader {
  char magic[8];
  uint32_t format;
  uint32_t op_class;
  uint32_t n_inputs, n_outputs;
  uint64_t config_size, weights_offset, weights_size, total_size;
  uint64_t checksum;  // of everything after the header, and of the header with this field 0
};
static_assert(sizeof(BlobHeader) == 64);

// FNV-1a over 8-byte words with a final mix; four chains so that it runs at memory speed.
uint64_t checksum(const void* data, size_t size, uint64_t seed) {
  constexpr uint64_t prime = 0x100000001b3;
  uint64_t h[4] = {seed ^ 0xcbf29ce484222325, seed ^ 0x9ae16a3b2f90404f, seed ^ 0xc3a5c85c97cb3127,
                   seed ^ 0xb492b66fbe98f273};
  const char* p = static_cast<const char*>(data);
  size_t i = 0;
  for (; i + 32 <= size; i += 32)
    for (int j = 0; j < 4; ++j) {
      uint64_t w;
      memcpy(&w, p + i + 8 * j, 8);
      h[j] = (h[j] ^ w) * prime;
      h[j] ^= h[j] >> 29;
    }
  for (; i < size; ++i) h[0] = (h[0] ^ uint8_t(p[i])) * prime;
  uint64_t all = size;
  for (uint64_t x : h) { all = (all ^ x) * prime; all ^= all >> 32; }
  return all;
}

uint64_t blob_checksum(const BlobHeader& header, const void* blob) {
  BlobHeader h = header;
  h.checksum = 0;
  const uint64_t seed = checksum(&h, sizeof h, 0);
  return checksum(static_cast<const char*>(blob) + sizeof h, size_t(header.total_size) - sizeof h, seed);
}

const OpClass* packed_class(uint32_t id) {
  for (const OpClass* const* c = op_classes; *c; ++c)
    if ((*c)->id == id) return *c;
  return nullptr;
}

skua_status refuse(const char* why) { return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "packed blob: %s", why); }

}  // namespace

const char* packed_operator(uint32_t class_id) {
  switch (class_id) {
    case 1: return "gemm";
    case 3: return "conv2d";
    case 4: return "conv2d_transpose";
    case 24: return "conv2d of bytes";
    case 25: return "conv2d_transpose of bytes";
    case 26: return "depthwise conv2d of bytes";
    case 27: return "gemm of bytes";
    case 41: return "norm";
    case 50: return "inverted_residual";
    default: return "";
  }
}
}  // namespace skua

using namespace skua;

extern "C" {

size_t skua_op_packed_size(const skua_op* op) {
  if (!op || !op->weights_size || op->ctx->gpu || !packed_class(op->cls->id)) return 0;
  return round_up(sizeof(BlobHeader) + op->cls->config_size, SKUA_PACKED_ALIGNMENT) + op->weights_size;
}

skua_status skua_op_packed_write(const skua_op* op, void* dst, size_t size) {
  if (!op) return SKUA_INVALID("packed_write: op is NULL");
  if (!dst) return SKUA_INVALID("packed_write: dst is NULL");
  if (op->ctx->gpu)
    return SKUA_UNSUPPORTED_("packed_write: %s is on a GPU, whose weights are not written to blobs yet", op->cls->name);
  const size_t need = skua_op_packed_size(op);
  if (!need) return SKUA_UNSUPPORTED_("packed_write: %s has no packed weights", op->cls->name);
  if (reinterpret_cast<uintptr_t>(dst) % SKUA_PACKED_ALIGNMENT)
    return SKUA_INVALID("packed_write: dst is not aligned to %d bytes", SKUA_PACKED_ALIGNMENT);
  if (size < need) return SKUA_INVALID("packed_write: size is %zu, %zu are needed", size, need);
  BlobHeader h = {};
  memcpy(h.magic, kMagic, 8);
  h.format = kFormat;
  h.op_class = op->cls->id;
  h.n_inputs = op->n_inputs;
  h.n_outputs = op->n_outputs;
  h.config_size = op->cls->config_size;
  h.weights_offset = need - op->weights_size;
  h.weights_size = op->weights_size;
  h.total_size = need;
  char* to = static_cast<char*>(dst);
  memset(to, 0, size_t(h.weights_offset));
  memcpy(to + sizeof h, reinterpret_cast<const char*>(op) + op->cls->config_offset, op->cls->config_size);
  memcpy(to + h.weights_offset, op->weights, op->weights_size);
  h.checksum = blob_checksum(h, dst);
  memcpy(to, &h, sizeof h);
  return SKUA_STATUS_OK;
}

skua_status skua_op_create_packed(skua_context* context, const void* blob, size_t size, skua_op** out) {
  if (!out) return SKUA_INVALID("create_packed: out is NULL");
  *out = nullptr;
  if (!context) return SKUA_INVALID("create_packed: context is NULL");
  if (!blob) return SKUA_INVALID("create_packed: blob is NULL");
  if (context->gpu)
    return SKUA_UNSUPPORTED_(
        "create_packed: blobs hold weights packed for the CPU; on a GPU an operator is created from its weights");
  if (reinterpret_cast<uintptr_t>(blob) % SKUA_PACKED_ALIGNMENT)
    return SKUA_INVALID("create_packed: blob is not aligned to %d bytes", SKUA_PACKED_ALIGNMENT);
  BlobHeader h;
  if (size < sizeof h) return refuse("shorter than its header");
  memcpy(&h, blob, sizeof h);
  if (memcmp(h.magic, kMagic, 8)) return refuse("not a Skua blob");
  if (h.format != kFormat)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "packed blob: format %u, this library reads %u: pack the weights again",
                h.format, kFormat);
  if (h.total_size > size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "packed blob: truncated: size is %zu, its header says %llu", size,
                static_cast<unsigned long long>(h.total_size));
  const OpClass* const cls = packed_class(h.op_class);
  if (!cls) {
    if (const char* name = packed_operator(h.op_class); *name)
      return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "packed blob: %s is not in this build (SKUA_OPS, SKUA_TYPES)", name);
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "packed blob: this library has no operator %u", h.op_class);
  }
  if (h.config_size != cls->config_size ||
      h.weights_offset != round_up(sizeof h + cls->config_size, SKUA_PACKED_ALIGNMENT) || h.weights_size == 0 ||
      h.total_size < h.weights_offset || h.weights_size != h.total_size - h.weights_offset)
    return refuse("sizes in the header are inconsistent");
  if (blob_checksum(h, blob) != h.checksum) return refuse("checksum does not match: the blob is damaged");
  skua_op* op;
  SKUA_TRY(new_op(*cls, context, h.n_inputs, h.n_outputs, 0, &op));
  op->weights = static_cast<const char*>(blob) + h.weights_offset;
  op->weights_size = size_t(h.weights_size);
  op->borrowed = true;
  memcpy(reinterpret_cast<char*>(op) + cls->config_offset, static_cast<const char*>(blob) + sizeof h, cls->config_size);
  const skua_status status = open_op(op, out);
  // what is wrong is in the blob
  return status == SKUA_STATUS_INVALID_ARGUMENT ? SKUA_STATUS_INCOMPATIBLE_BLOB : status;
}

}  // extern "C"
