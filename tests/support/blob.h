// The header of a packed blob, written again from its description, so that tests can forge one: core/packed.cc reads
// it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace skua_test {

struct BlobHeader {
  char magic[8];
  uint32_t format, op_class, n_inputs, n_outputs;
  uint64_t config_size, weights_offset, weights_size, total_size, checksum;
};
static_assert(sizeof(BlobHeader) == 64);

inline uint64_t blob_sum(const unsigned char* p, size_t size, uint64_t seed) {
  const uint64_t prime = 0x100000001b3;
  uint64_t chain[4] = {seed ^ 0xcbf29ce484222325, seed ^ 0x9ae16a3b2f90404f, seed ^ 0xc3a5c85c97cb3127,
                       seed ^ 0xb492b66fbe98f273};
  const size_t blocks = size / 32;
  for (size_t b = 0; b < blocks; ++b)
    for (size_t j = 0; j < 4; ++j) {
      uint64_t word;
      std::memcpy(&word, p + 32 * b + 8 * j, 8);
      chain[j] = (chain[j] ^ word) * prime;
      chain[j] ^= chain[j] >> 29;
    }
  for (size_t i = 32 * blocks; i < size; ++i) chain[0] = (chain[0] ^ p[i]) * prime;
  uint64_t sum = size;
  for (uint64_t c : chain) {
    sum = (sum ^ c) * prime;
    sum ^= sum >> 32;
  }
  return sum;
}

// Gives a changed blob the checksum that belongs to it.
inline void reseal(unsigned char* blob, size_t size) {
  if (size < sizeof(BlobHeader)) return;
  BlobHeader h;
  std::memcpy(&h, blob, sizeof h);
  h.checksum = 0;
  unsigned char bytes[sizeof h];
  std::memcpy(bytes, &h, sizeof h);
  const uint64_t total = h.total_size < size ? h.total_size : size;
  h.checksum = blob_sum(blob + sizeof h, total > sizeof h ? size_t(total) - sizeof h : 0, blob_sum(bytes, sizeof h, 0));
  std::memcpy(blob, &h, sizeof h);
}

}  // namespace skua_test
