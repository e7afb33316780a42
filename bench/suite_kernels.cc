// Every kernel of the registry that a plan can be made to name: the same small problem in the first two cache levels, with the instruction set capped and
// the kernel forced.
#include <skua/skua.h>
#include <math.h>
#include <algorithm>

#include "session.h"

namespace bench {
namespace {

Layer conv(size_t size, size_t c, size_t out_c, size_t kernel, size_t stride, size_t groups) {
  Layer l;
  l.op = Op::conv, l.h = l.w = size, l.c = c, l.out_c = out_c, l.kh = l.kw = kernel, l.sh = l.sw = stride, l.groups = groups, l.bias = true;
  l.top = l.left = l.bottom = l.right = kernel / 2;
  infer_output(l);
  return l;
}

// Problems in which a kernel of this description may be at work.
std::vector<Layer> probes(const skua_kernel_info& k) {
  std::vector<Layer> list;
  const std::string name = k.name, family = k.family;
  if (family == "gemm" && k.mr && k.nr) {
    Layer l;
    l.op = Op::gemm, l.k = 256, l.n = k.nr * std::max<size_t>(1, 96 / k.nr), l.m = k.mr * std::max<size_t>(1, 48 / k.mr);
    list.push_back(l);
  }
  if (name.rfind("unary_f32_", 0) == 0 || name.rfind("binary_f32_", 0) == 0) {
    const bool unary = name[0] == 'u';
    const size_t first = name.find("_f32_") + 5;
    const std::string what = name.substr(first, name.rfind('_') - first);
    Layer l;
    l.op = unary ? Op::unary : Op::binary, l.c = l.out_c = 4096;
    if (unary ? parse_unary(what, &l.unary) : parse_binary(what, &l.binary)) list.push_back(l);
  }
  if (family == "depthwise")
    for (size_t kernel : {3, 5, 7})
      for (size_t stride : {1, 2}) {
        list.push_back(conv(28, 64, 64, kernel, stride, 64));
        list.push_back(conv(28, 64, 128, kernel, stride, 64));
      }
  if (family == "conv" || family == "winograd")
    for (const Layer& l : {conv(28, 64, 64, 3, 1, 1), conv(56, 3, 32, 3, 2, 1), conv(56, 3, 64, 7, 2, 1), conv(28, 64, 64, 1, 1, 1)}) list.push_back(l);
  if (family == "pooling")
    for (Op op : {Op::max_pool, Op::average_pool, Op::global_pool})
      for (size_t stride : {1, 2}) {
        Layer l = conv(28, 64, 64, 3, stride, 1);
        l.op = op, l.bias = false;
        if (op == Op::global_pool) l.out_h = l.out_w = 1;
        list.push_back(l);
      }
  if (family == "normalize" || family == "softmax") {
    Layer l;
    l.op = Op::softmax, l.m = 16, l.n = 512;
    list.push_back(l);
  }
  if (family == "resize") {
    Layer l;
    l.op = Op::resize, l.h = l.w = 14, l.c = l.out_c = 64, l.out_h = l.out_w = 28;
    list.push_back(l);
  }
  return list;
}

struct Case {
  std::string name, isa;
  Layer layer;
};

struct Ready {
  std::unique_ptr<Contestant> context;
  Operands operands;
  Memory x, second, y;
  std::unique_ptr<Prepared> prepared;
};

// The layer with this kernel; false when the plan names another one.
bool prepare(const std::string& kernel, const std::string& isa, const Layer& l, Ready& r) {
  r.context = make_skua(kernel, isa);
  if (!r.context) return false;
  r.operands = make_operands(l, 1);
  r.x = Memory(r.operands.x);
  r.second = Memory(r.operands.second);
  r.y.resize(l.out_count());
  std::string why;
  r.prepared = r.context->prepare(l, r.operands.weights.data(), r.operands.bias.empty() ? nullptr : r.operands.bias.data(), {r.x.data(), 0},
                                  {r.operands.second.empty() ? nullptr : r.second.data(), 0}, {r.y.data(), 0}, &why);
  return r.prepared && r.prepared->kernel() == kernel;
}

std::vector<Case> all_cases(const Session& session) {
  std::vector<Case> cases;
  skua_kernel_info info;
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    if (skua_kernel_at(i, &info) != SKUA_STATUS_OK || !info.usable || !session.wanted(info.name)) continue;
    for (const Layer& l : probes(info)) {
      Ready ready;
      if (!prepare(info.name, info.isa, l, ready)) continue;
      cases.push_back({info.name, info.isa, l});
      break;
    }
  }
  return cases;
}

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const Case& c : all_cases(session)) names.push_back(c.name);
  return names;
}

void run(Session& session, const std::vector<std::string>&) {
  for (const Case& c : all_cases(session)) {
    session.progress(c.name);
    Result r;
    r.suite = "kernels";
    r.name = r.kernel = c.name;
    r.isa = c.isa;
    r.op = c.layer.kind().substr(0, c.layer.kind().rfind('_'));
    Ready ready;
    if (!prepare(c.name, c.isa, c.layer, ready)) continue;
    r.algorithm = ready.prepared->algorithm();
    std::fill_n(ready.y.data(), ready.y.size(), NAN);
    ready.prepared->run();
    if (const std::string wrong = check_against_formula(c.layer, ready.operands, ready.y.data()); !wrong.empty()) {
      r.error = "wrong result: " + wrong;
      session.add(std::move(r));
      continue;
    }
    const Timing t = race({[&] { ready.prepared->run(); }}, effort.quick ? 0.5 : 1)[0];
    r.ns = t.ns;
    r.noise = t.noise;
    r.flops = c.layer.flops();
    r.bytes = c.layer.bytes();
    r.gflops = r.flops / r.ns;
    r.bandwidth = r.bytes / r.ns;
    if (const double roof = session.machine.roofline_ns(c.isa, r.flops, r.bytes, effort.threads); roof > 0) r.peak_share = roof / r.ns;
    session.add(std::move(r));
  }
}

}  // namespace

const Suite kernels_suite = {list, run};

}  // namespace bench
