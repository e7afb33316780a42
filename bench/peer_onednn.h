// What oneDNN's adapter makes of one layer: peer_onednn_layer.cc builds it, peer_onednn.cc races it.
#pragma once
#include <dnnl.hpp>
#include <map>
#include <unordered_map>
#include "contestant.h"

namespace bench::onednn {

using dnnl::memory;
using tag = dnnl::memory::format_tag;
constexpr auto f32 = memory::data_type::f32;
// Maps of s8 are u8 without a zero point for it, the form it is fastest with; weights are s8.
inline memory::data_type data_type(skua_dtype type) {
  return type == SKUA_DTYPE_F16    ? memory::data_type::f16
         : type == SKUA_DTYPE_BF16 ? memory::data_type::bf16
         : type == SKUA_DTYPE_S8   ? memory::data_type::u8
                                   : f32;
}

struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> args;
};
inline memory::dim d(size_t x) { return memory::dim(x); }
inline memory::dims map_dims(size_t h, size_t w, size_t c) { return {1, d(c), d(h), d(w)}; }
inline memory::desc map_desc(memory::data_type type, size_t h, size_t w, size_t c, size_t stride) {
  return {map_dims(h, w, c), type, memory::dims{d(h * w * stride), 1, d(w * stride), d(stride)}};
}

struct Engine {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

// Buffers of a network: a tensor's place is free again after its last use.
struct Places {
  Engine& cpu;
  std::multimap<size_t, void*> free;
  std::vector<std::unique_ptr<Memory>> owned;
  std::map<void*, size_t> sizes;
  explicit Places(Engine& e) : cpu(e) {}
  memory get(const memory::desc& md) {
    const size_t size = md.get_size();
    auto it = free.lower_bound(size);
    void* p;
    if (it != free.end()) {
      p = it->second;
      free.erase(it);
    } else {
      owned.push_back(std::make_unique<Memory>(size / sizeof(float) + 1));
      p = owned.back()->data();
      sizes[p] = size;
    }
    return {md, cpu.engine, p};
  }
  void release(const memory& m) {
    void* p = m.get_data_handle();
    if (sizes.count(p)) free.insert({sizes[p], p});
  }
};

struct Built {
  std::vector<Call> reorders;  // of the input into the layout the primitive wants
  Call call;
  memory output;
};

// winograd: any, and Winograd's algorithm, which convolution_auto never takes
enum class Layout { any, nhwc, winograd };
inline bool has_winograd(const Layer& l) {
  return l.op == Op::conv && l.groups == 1 && l.kh == 3 && l.kw == 3 && l.sh == 1 && l.sw == 1 && l.dh == 1 &&
         l.dw == 1;
}
enum class Product { inner, matmul };

// Prepares one layer on an input that lies in `src`. Constants are packed here. Throws dnnl::error where oneDNN has no
// implementation.
bool build(Engine& cpu, Places& places, const Layer& l, const float* weights, const float* bias, const memory& src,
           const memory* second, Layout layout, Product product, Built& out);

}  // namespace bench::onednn
