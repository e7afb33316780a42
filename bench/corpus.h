// The corpus: bench/shapes/*.txt, built into the program. A file is a list of layers, or a network (it has an `input`
// line), where each line's input is the line before unless it says otherwise.
#pragma once
#include <string>
#include <vector>
#include "layer.h"

namespace bench {

struct Step {
  Layer layer;
  std::string name;
  int x = -1, second = -1, y = -1;  // tensors; -1 = none
  bool in_series = false;           // of --suite steps only
};

struct FeatureMap {
  size_t h = 1, w = 1, c = 0;
  int parent = -1;                  // the concatenation this tensor is a slice of
  size_t channel = 0;               // its first channel there
  std::string name;
  size_t count() const { return h * w * c; }
};

// Layers that differ in one extent, each larger than the one before.
struct Series {
  size_t first = 0, count = 0;
};

struct Corpus {
  std::string name, source;
  bool network = false, of_device = false;  // of_device: of --device only
  std::vector<Series> series;
  skua_dtype type = SKUA_DTYPE_F32;  // of every layer
  int input = -1, output = -1;
  std::vector<Step> steps;
  std::vector<FeatureMap> tensors;  // of a network
  size_t stride(int tensor) const;  // of its pixels, elements; 0 for none
};

extern size_t network_extent;  // height and width of the networks' images; 0 = as their files say. Set before corpora()
extern std::vector<Corpus> own_shapes;  // of --shapes, in place of bench/shapes. Set before corpora()
const std::vector<Corpus>& corpora(skua_dtype type = SKUA_DTYPE_F32);

// False with a text that names the line when the file is not one.
bool parse_corpus(const char* file, const char* text, Corpus* out, std::string* error);

// Places every tensor of a network in one arena: those that live at the same time do not overlap. Offsets in elements,
// multiples of 64 bytes.
struct Arena {
  std::vector<size_t> offset;
  size_t size = 0;
};
Arena plan_memory(const Corpus& network, bool blocks);  // blocks: the input of one lives until its end

// Steps first .. first + 2 are a 1x1 convolution, the depthwise convolution of its result and a 1x1 convolution of
// that, and nobody else needs what is in between.
bool is_block(const Corpus& network, size_t first);

}  // namespace bench
