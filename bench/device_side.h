// This library on a GPU: operators and networks resident in its memory, timed by its own clock. Contestants of a run
// with --device.
#pragma once
#include "contestant.h"
#include "machine.h"

namespace bench {

// Where a Skua contestant of a device has its layers and networks made. `ours` comes from make_skua().
std::unique_ptr<Prepared> device_layer(Contestant& ours, const Layer& layer, const float* weights, const float* bias,
                                       View x, View second, View y, std::string* why);
std::unique_ptr<PreparedNetwork> device_network(Contestant& ours, const Corpus& network, std::string* why);

// What skua_device_list() says of it; false: there is no such device.
bool find_device(skua_device device, skua_device_info* info);

// The machine that shares are of: multiply-adds of a loop in registers, and copies of several sizes, both by kernels of
// this program (peak.k); where the library's internals cannot be reached, by a large product and by relu.
Machine measure_device(Contestant& ours, const skua_device_info& info, bool quick);

// Nanoseconds of a multiply-add loop that keeps every compute unit busy, and what it does; of a copy that reads and
// writes so many bytes together. False: it cannot be run here.
// half: of f16; false where the device has none
bool device_multiply_adds(skua_context* context, bool half, double* flops, double* ns);
bool device_copy(skua_context* context, size_t bytes, double* ns);

// What the vendors' libraries are given of a product: bytes of the layer's type; the bias once for each row. False: it
// is none of theirs.
struct DenseProduct {
  std::vector<unsigned char> b, bias;
  size_t a_bytes = 0, c_bytes = 0;
};
bool dense_product(const Layer& layer, const float* weights, const float* bias, bool half, DenseProduct* out,
                   std::string* why);

std::unique_ptr<Contestant> make_clblast(const skua_device_info& device, std::string* why);
std::unique_ptr<Contestant> make_cublas(const skua_device_info& device, std::string* why);

}  // namespace bench
