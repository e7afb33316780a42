#include "contestant.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <algorithm>
#include <map>
#include <sstream>

#include "shapes_text.h"

namespace bench {
namespace {

constexpr size_t kMostInSeries = 1000;

struct Parser {
  Corpus& corpus;
  std::string error;

  bool fail(const std::string& text) {
    error = text;
    return false;
  }

  int find(const std::string& name) const {
    for (size_t i = corpus.tensors.size(); i-- > 0;)
      if (corpus.tensors[i].name == name) return int(i);
    return -1;
  }

  static bool sizes(const std::string& text, std::vector<size_t>& out) {
    out.clear();
    const char* p = text.c_str();
    while (*p >= '0' && *p <= '9') {
      char* end;
      out.push_back(strtoull(p, &end, 10));
      p = end;
      if (*p == 'x' || *p == ',') ++p;
    }
    return !*p && !out.empty();
  }

  int add_tensor(const Layer& l, const std::string& name) {
    FeatureMap t;
    t.h = l.out_h;
    t.w = l.out_w;
    t.c = l.out_c;
    t.name = name;
    corpus.tensors.push_back(t);
    return int(corpus.tensors.size()) - 1;
  }

  void take_input(Layer& l, int tensor) {
    const FeatureMap& t = corpus.tensors[size_t(tensor)];
    l.h = t.h;
    l.w = t.w;
    l.c = t.c;
  }

  bool concat(std::istringstream& words, const std::string& line_name) {
    Layer l;
    l.op = Op::concat;
    std::vector<int> parts;
    for (std::string word; words >> word;) {
      if (word.rfind("name=", 0) == 0) continue;
      const int t = find(word);
      if (t < 0) return fail("no tensor is named " + word);
      const FeatureMap& part = corpus.tensors[size_t(t)];
      if (part.parent >= 0) return fail(word + " is a part of another concat");
      l.h = l.out_h = part.h;
      l.w = l.out_w = part.w;
      l.out_c += part.c;
      parts.push_back(t);
    }
    const int whole = add_tensor(l, line_name);
    size_t channel = 0;
    for (int t : parts) {
      corpus.tensors[size_t(t)].parent = whole;
      corpus.tensors[size_t(t)].channel = channel;
      channel += corpus.tensors[size_t(t)].c;
    }
    corpus.output = whole;  // its parts are written where they belong: no step
    return true;
  }

  bool line(const std::string& text) {
    std::istringstream words(text);
    std::string verb, word;
    words >> verb;
    if (verb == "name") return bool(words >> corpus.name);
    if (verb == "source") {
      std::getline(words >> std::ws, word);
      corpus.source += (corpus.source.empty() ? "" : " ") + word;
      return true;
    }
    if (verb == "device") return corpus.of_device = true;
    std::vector<size_t> v;
    if (verb == "input") {
      words >> word;
      if (!sizes(word, v) || v.size() != 3) return fail("input HxWxC");
      Layer l;
      l.out_h = v[0];
      l.out_w = v[1];
      l.out_c = v[2];
      if (network_extent) l.out_h = l.out_w = network_extent;
      corpus.network = true;
      corpus.input = corpus.output = add_tensor(l, "input");
      return true;
    }
    std::string name;
    if (const size_t at = text.find("name="); at != std::string::npos)
      name = text.substr(at + 5, text.find(' ', at) - at - 5);
    if (verb == "concat") return concat(words, name);

    Step step;
    Layer& l = step.layer;
    step.name = name;
    step.x = corpus.output;
    bool same = false, multiplier = false;
    std::vector<std::string> plain;
    size_t times = 1;
    while (words >> word) {
      const size_t eq = word.find('=');
      const std::string key = eq == std::string::npos ? "" : word.substr(0, eq),
                        value = eq == std::string::npos ? "" : word.substr(eq + 1);
      if (key == "in") {
        if (sizes(value, v) && v.size() == 3) {
          l.h = v[0];
          l.w = v[1];
          l.c = v[2];
        } else if ((step.x = find(value)) < 0) {
          return fail("no tensor is named " + value);
        }
      } else if (key == "add") {
        if ((step.second = find(value)) < 0) return fail("no tensor is named " + value);
        l.residual = true;
      } else if (key == "pad") {
        if (value == "same") same = true;
        else if (sizes(value, v) && v.size() == 1) l.top = l.left = l.bottom = l.right = v[0];
        else if (sizes(value, v) && v.size() == 4) l.top = v[0], l.left = v[1], l.bottom = v[2], l.right = v[3];
        else return fail("pad=P, pad=TOP,LEFT,BOTTOM,RIGHT or pad=same");
      } else if (key == "stride" && sizes(value, v)) l.sh = v[0], l.sw = v.back();
      else if (key == "dilation" && sizes(value, v)) l.dh = v[0], l.dw = v.back();
      else if (key == "groups" && sizes(value, v)) l.groups = v[0];
      else if (key == "multiplier" && sizes(value, v)) times = v[0], multiplier = true;
      else if (key == "weights") {
        const size_t colon = value.find(':');
        const std::string type = value.substr(0, colon);
        if ((type != "s8" && type != "s4") || (colon != std::string::npos && !sizes(value.substr(colon + 1), v)))
          return fail("weights=s8, weights=s4 or weights=s4:BLOCK");
        l.quantized = type == "s8" ? SKUA_DTYPE_S8 : SKUA_DTYPE_S4;
        if (colon != std::string::npos) l.block = v[0];
      } else if (key == "name") continue;
      else if (word == "quantize_a") l.quantize_a = true;
      else if (word == "zero_points") l.zero_points = true;
      else if (word == "ceil") l.ceil_mode = true;
      else if (key.empty() && (verb == "unary" || verb == "binary") && plain.empty()) plain.push_back(word);
      else if (key.empty() && parse_activation(word, &l.activation)) continue;
      else if (key.empty()) plain.push_back(word);
      else return fail("unknown: " + word);
    }
    if (corpus.network && !l.c) take_input(l, step.x);
    const auto plain_sizes = [&](size_t i, size_t count) {
      return i < plain.size() && sizes(plain[i], v) && v.size() == count;
    };
    l.out_c = l.c;
    if (verb == "gemm" || verb == "matmul") {
      if (!plain_sizes(0, 3)) return fail(verb + " MxNxK");
      l.op = Op::gemm, l.m = v[0], l.n = v[1], l.k = v[2];
      l.two_inputs = verb == "matmul";
      if (l.two_inputs && corpus.network) return fail("matmul belongs to no network");
    } else if (verb == "fc") {
      if (!plain_sizes(0, 1)) return fail("fc OUT");
      l.op = Op::gemm, l.m = 1, l.n = v[0], l.k = l.h * l.w * l.c, l.bias = true;
      l.out_h = l.out_w = 1, l.out_c = l.n;
    } else if (verb == "softmax") {
      l.op = Op::softmax;
      if (plain_sizes(0, 2)) l.m = v[0], l.n = v[1];
      else l.m = 1, l.n = l.h * l.w * l.c;
      l.out_h = l.h, l.out_w = l.w;
    } else if (verb == "conv" || verb == "depthwise" || verb == "deconv" || verb == "max_pool" ||
               verb == "average_pool") {
      if (!plain_sizes(0, 2)) return fail(verb + " KHxKW");
      if (!l.c) return fail("in=HxWxC is missing");
      l.kh = v[0], l.kw = v[1];
      l.op = verb == "deconv"         ? Op::deconv
             : verb == "max_pool"     ? Op::max_pool
             : verb == "average_pool" ? Op::average_pool
                                      : Op::conv;
      if (verb == "depthwise") l.groups = l.c, l.out_c = l.c * times;
      else if (verb == "conv" || verb == "deconv") {
        if (!plain_sizes(1, 1)) return fail(verb + " KHxKW OUT");
        l.out_c = v[0];
        if (l.c % l.groups || l.out_c % l.groups) return fail("groups do not divide the channels");
      }
      if (same) set_same_padding(l);
      l.bias = l.op == Op::conv || l.op == Op::deconv;
      infer_output(l);
    } else if (verb == "global_pool") {
      l.op = Op::global_pool, l.out_h = l.out_w = 1;
    } else if (verb == "unary" || verb == "binary") {
      if (plain.empty() || !(verb == "unary" ? parse_unary(plain[0], &l.unary) : parse_binary(plain[0], &l.binary)))
        return fail(verb + " KIND [COUNT]");
      l.op = verb == "unary" ? Op::unary : Op::binary;
      if (plain_sizes(1, 1)) l.c = l.out_c = v[0];
      if (l.op == Op::binary && corpus.network) {
        if (plain.size() < 2 || (step.second = find(plain[1])) < 0) return fail("binary KIND TENSOR");
        const FeatureMap& other = corpus.tensors[size_t(step.second)];
        if (other.count() > l.h * l.w * l.c) {
          std::swap(step.x, step.second);
          take_input(l, step.x);
        }
        l.broadcast = corpus.tensors[size_t(step.second)].count() != l.h * l.w * l.c;
      } else if (l.op == Op::binary && plain.back() == "by_channel") {
        l.broadcast = true;
      }
      l.out_h = l.h, l.out_w = l.w, l.out_c = l.c;
    } else if (verb == "resize") {
      if (!plain_sizes(0, 2)) return fail("resize HxW");
      l.op = Op::resize, l.out_h = v[0], l.out_w = v[1];
    } else {
      return fail("unknown operator " + verb);
    }
    if ((l.quantize_a || l.zero_points || l.quantized_weights()) && (verb != "gemm" || !l.quantized_weights()))
      return fail("weights= belongs to gemm, quantize_a and zero_points to weights=");
    if (multiplier && verb != "depthwise") return fail("multiplier= belongs to depthwise");
    if (corpus.network) {
      step.y = corpus.output = add_tensor(l, name);
    }
    corpus.steps.push_back(step);
    return true;
  }

  // "8..64:8 conv 1x1 32 in=14x14x?"
  bool series(const std::string& text) {
    size_t from = 0, to = 0, by = 1;
    int end = 0;
    if (sscanf(text.c_str(), "%zu..%zu%n:%zu%n", &from, &to, &end, &by, &end) < 2 || text[size_t(end)] != ' ' || !by ||
        from >= to || (to - from) / by >= kMostInSeries || text.find('?') == std::string::npos || corpus.network)
      return fail(
          "a series is A..B or A..B:BY, of 1000 layers at most, and a layer with ? for its extent, in no network");
    Series all = {corpus.steps.size(), 0};
    for (; from <= to; from += by, ++all.count) {
      std::string one = text.substr(size_t(end) + 1);
      for (size_t at; (at = one.find('?')) != std::string::npos;) one.replace(at, 1, std::to_string(from));
      if (!line(one)) return false;
      if (corpus.steps.size() != all.first + all.count + 1) return fail("a series is of layers");
      corpus.steps.back().in_series = true;
    }
    corpus.series.push_back(all);
    return true;
  }
};

}  // namespace

bool parse_corpus(const char* file, const char* text, Corpus* out, std::string* error) {
  Parser parser{*out, ""};
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (const size_t hash = line.find('#'); hash != std::string::npos) line.resize(hash);
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    if (!(isdigit(static_cast<unsigned char>(line[0])) ? parser.series(line) : parser.line(line))) {
      *error = std::string(file) + ":" + std::to_string(number) + ": " + parser.error;
      return false;
    }
  }
  return true;
}

size_t network_extent = 0;
std::vector<Corpus> own_shapes;

size_t Corpus::stride(int tensor) const {
  if (tensor < 0) return 0;
  while (tensors[size_t(tensor)].parent >= 0) tensor = tensors[size_t(tensor)].parent;
  return tensors[size_t(tensor)].c;
}

const std::vector<Corpus>& corpora(skua_dtype type) {
  static const std::vector<Corpus> all = [] {
    std::vector<Corpus> list = own_shapes;
    if (!list.empty()) return list;
    for (const ShapesFile& file : shapes_files) {
      Corpus c;
      std::string error;
      if (!parse_corpus(file.name, file.text, &c, &error)) {
        fprintf(stderr, "skua-bench: %s\n", error.c_str());
        exit(2);
      }
      if (!c.of_device || on_device()) list.push_back(c);
    }
    return list;
  }();
  static std::map<skua_dtype, std::vector<Corpus>> typed;
  std::vector<Corpus>& of = typed[type];
  if (of.empty()) {
    of = all;
    for (Corpus& c : of) {
      c.type = type;
      for (Step& s : c.steps) s.layer.type = type;
      // Networks of bytes end in the scores: not every peer has a softmax of bytes.
      if (type == SKUA_DTYPE_S8 && c.network && c.steps.back().layer.op == Op::softmax) {
        c.output = c.steps.back().x;
        c.steps.pop_back();
      }
    }
  }
  return of;
}

bool is_block(const Corpus& net, size_t first) {
  if (first + 3 > net.steps.size()) return false;
  const Step* s = &net.steps[first];
  const auto point = [](const Layer& l) {
    return l.op == Op::conv && l.kh * l.kw * l.sh * l.sw * l.groups == 1 && l.top + l.left + l.bottom + l.right == 0;
  };
  if (!point(s[0].layer) || !point(s[2].layer) || !s[1].layer.depthwise() || s[1].layer.c != s[1].layer.out_c ||
      s[0].layer.residual || s[1].layer.residual)
    return false;
  for (size_t k = 0; k < 2; ++k) {
    const int between = s[k].y;
    if (s[k + 1].x != between || net.tensors[size_t(between)].parent >= 0) return false;
    for (size_t i = 0; i < net.steps.size(); ++i)
      if ((net.steps[i].x == between && i != first + k + 1) || net.steps[i].second == between) return false;
    for (const FeatureMap& t : net.tensors)
      if (t.parent == between) return false;
  }
  return true;
}

Arena plan_memory(const Corpus& net, bool blocks) {
  const size_t count = net.tensors.size(), line = 64 / size_of(net.type);
  const auto root = [&](int t) {
    while (net.tensors[size_t(t)].parent >= 0) t = net.tensors[size_t(t)].parent;
    return size_t(t);
  };
  std::vector<int> first(count, -1), last(count, -1);
  const auto touch = [&](int tensor, int when) {
    if (tensor < 0) return;
    const size_t r = root(tensor);
    if (first[r] < 0) first[r] = when;
    last[r] = std::max(last[r], when);
  };
  touch(net.input, 0);
  last[root(net.input)] = int(net.steps.size());  // runs are repeated on the same input
  for (size_t i = 0; i < net.steps.size(); ++i) {
    touch(net.steps[i].x, int(i + (blocks && is_block(net, i) ? 2 : 0)));
    touch(net.steps[i].second, int(i));
    touch(net.steps[i].y, int(i));
  }
  last[root(net.output)] = int(net.steps.size());
  if (!net.steps.empty()) last[root(net.steps.back().x)] = int(net.steps.size());  // compared after a run

  Arena arena;
  arena.offset.assign(count, 0);
  std::vector<size_t> order, placed;
  for (size_t t = 0; t < count; ++t)
    if (first[t] >= 0) order.push_back(t);
  // Large ones first, each at the lowest place that is free during its life.
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t ca = net.tensors[a].count(), cb = net.tensors[b].count();
    return ca != cb ? ca > cb : a < b;
  });
  for (size_t t : order) {
    const size_t size = (net.tensors[t].count() + line - 1) / line * line;
    size_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t o : placed) {
        const size_t o_size = (net.tensors[o].count() + line - 1) / line * line;
        if (first[o] <= last[t] && first[t] <= last[o] && at < arena.offset[o] + o_size &&
            arena.offset[o] < at + size) {
          at = arena.offset[o] + o_size;
          moved = true;
        }
      }
    }
    arena.offset[t] = at;
    placed.push_back(t);
    arena.size = std::max(arena.size, at + size);
  }
  for (size_t t = 0; t < count; ++t)
    if (net.tensors[t].parent >= 0) {
      size_t channel = 0;
      for (int p = int(t); net.tensors[size_t(p)].parent >= 0; p = net.tensors[size_t(p)].parent)
        channel += net.tensors[size_t(p)].channel;
      arena.offset[t] = arena.offset[root(int(t))] + channel;
    }
  return arena;
}

}  // namespace bench
