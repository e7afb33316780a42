// Every kernel of the registry that a plan can be made to name: the same small problem in the first two cache levels,
// with the instruction set capped and the kernel forced.
#include <skua/skua.h>
#include <string.h>
#include <algorithm>
#include <functional>
#include <set>

#include "session.h"

namespace bench {
namespace {

Layer conv(size_t size, size_t c, size_t out_c, size_t kernel, size_t stride, size_t groups) {
  Layer l;
  l.op = Op::conv, l.h = l.w = size, l.c = c, l.out_c = out_c, l.kh = l.kw = kernel, l.sh = l.sw = stride,
  l.groups = groups, l.bias = true;
  l.top = l.left = l.bottom = l.right = kernel / 2;
  infer_output(l);
  return l;
}

// Problems in which a kernel of this description may be at work.
std::vector<Layer> untyped_probes(const skua_kernel_info& k) {
  std::vector<Layer> list;
  const std::string name = k.name, family = k.family;
  if (family == "gemm" && k.mr && k.nr) {
    Layer l;
    l.op = Op::gemm, l.k = 256, l.n = k.nr * std::max<size_t>(1, 96 / k.nr),
    l.m = k.mr * std::max<size_t>(1, 48 / k.mr);
    list.push_back(l);
  }
  if (family == "unary" || family == "binary" || family == "elementwise") {
    const std::string what = name.substr(0, name.find(std::string("_") + skua_dtype_name(k.type) + "_"));
    Layer l;
    l.c = l.out_c = 2048;  // three tensors fit the first-level cache
    l.op = Op::unary;
    if (parse_unary(what, &l.unary)) list.push_back(l);
    l.op = Op::binary;
    if (parse_binary(what, &l.binary)) list.push_back(l);
  }
  if (family == "depthwise")
    for (size_t kernel : {3, 5, 7})
      for (size_t stride : {1, 2}) {
        list.push_back(conv(28, 64, 64, kernel, stride, 64));
        list.push_back(conv(28, 64, 128, kernel, stride, 64));
        list.push_back(conv(28, 64, 64, kernel, stride, 16));
      }
  if (family == "conv" || family == "winograd")
    for (const Layer& l :
         {conv(28, 64, 64, 3, 1, 1), conv(56, 3, 32, 3, 2, 1), conv(56, 3, 64, 7, 2, 1), conv(28, 64, 64, 1, 1, 1)})
      list.push_back(l);
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

std::vector<Layer> probes(const skua_kernel_info& k) {
  std::vector<Layer> list = untyped_probes(k);
  for (Layer& l : list) l.type = k.type;
  return list;
}

// Operators that are no layer of the corpus: made and planned through the C interface.
struct Call {
  std::function<skua_status(skua_context*, skua_op**)> create;
  std::vector<skua_tensor> inputs;
};

std::vector<Call> calls(const std::string& family, skua_dtype type) {
  std::vector<Call> list;
  const skua_tensor wide = skua_tensor_2d(type, 32, 256), image = skua_tensor_4d(type, 1, 14, 14, 64);
  if (family == "select" || family == "elementwise")
    list.push_back({[=](skua_context* c, skua_op** op) {
                      skua_select_desc d = SKUA_SELECT_DESC_INIT;
                      d.type = type;
                      return skua_select_create(c, &d, op);
                    },
                    {wide, wide, wide}});
  if (family == "reduce")
    for (int kind = 0; kind < SKUA_REDUCE_KIND_COUNT; ++kind)
      for (int axis : {-1, 0})
        list.push_back({[=](skua_context* c, skua_op** op) {
                          skua_reduce_desc d = SKUA_REDUCE_DESC_INIT;
                          d.kind = skua_reduce_kind(kind), d.type = type, d.axis_count = 1, d.axes[0] = axis;
                          return skua_reduce_create(c, &d, op);
                        },
                        {wide}});
  if (family == "normalize" || family == "softmax") {
    for (bool log : {false, true})
      for (int axis : {-1, 0})
        list.push_back({[=](skua_context* c, skua_op** op) {
                          skua_softmax_desc d = SKUA_SOFTMAX_DESC_INIT;
                          d.input_type = d.output_type = type, d.log = log, d.axis = axis;
                          return skua_softmax_create(c, &d, op);
                        },
                        {wide}});
    for (skua_norm_kind kind : {SKUA_NORM_LAYER, SKUA_NORM_RMS, SKUA_NORM_BATCH, SKUA_NORM_GROUP, SKUA_NORM_INSTANCE})
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW}) {
        const bool rows = kind <= SKUA_NORM_RMS;
        list.push_back({[=](skua_context* c, skua_op** op) {
                          static float values[256];
                          for (float& v : values) v = 1;
                          skua_norm_desc d = SKUA_NORM_DESC_INIT;
                          d.kind = kind, d.type = type, d.layout = layout, d.groups = kind == SKUA_NORM_GROUP ? 2 : 1;
                          d.channels = rows ? 256 : layout == SKUA_LAYOUT_NHWC ? 64 : 14;
                          const bool batch = kind == SKUA_NORM_BATCH;
                          return skua_norm_create(c, &d, values, kind == SKUA_NORM_RMS ? nullptr : values,
                                                  batch ? values : nullptr, batch ? values : nullptr, op);
                        },
                        {rows ? wide : image}});
      }
  }
  if (family == "resize")
    for (skua_resize_kind kind : {SKUA_RESIZE_NEAREST, SKUA_RESIZE_BILINEAR})
      for (skua_layout layout : {SKUA_LAYOUT_NHWC, SKUA_LAYOUT_NCHW})
        list.push_back({[=](skua_context* c, skua_op** op) {
                          skua_resize2d_desc d = SKUA_RESIZE2D_DESC_INIT;
                          d.kind = kind, d.type = type, d.layout = layout, d.out_h = 28, d.out_w = 28;
                          return skua_resize2d_create(c, &d, op);
                        },
                        {image}});
  if (family == "data")
    for (int what = 0; what < 3; ++what)
      list.push_back({[=](skua_context* c, skua_op** op) {
                        if (what == 0) {
                          skua_transpose_desc d = SKUA_TRANSPOSE_DESC_INIT;
                          d.type = type, d.rank = 2, d.perm[0] = 1;
                          return skua_transpose_create(c, &d, op);
                        }
                        skua_slice_desc d = SKUA_SLICE_DESC_INIT;
                        d.type = type, d.rank = 2, d.size[0] = d.size[1] = SIZE_MAX;
                        if (what == 1) d.step[1] = 2;
                        else d.begin[1] = 1;
                        return skua_slice_create(c, &d, op);
                      },
                      {wide}});
  for (skua_dtype to : bench::types)
    if (family == "data" || family == "elementwise" || family == "convert")
      list.push_back({[=](skua_context* c, skua_op** op) {
                        skua_convert_desc d = SKUA_CONVERT_DESC_INIT;
                        d.input_type = type, d.output_type = to;
                        if (type == SKUA_DTYPE_S8) d.input_q = byte_quantization;
                        if (to == SKUA_DTYPE_S8) d.output_q = byte_quantization;
                        return skua_convert_create(c, &d, op);
                      },
                      {wide}});
  if (family == "pooling")
    for (skua_pool_kind kind : {SKUA_POOL_MAX_INDICES, SKUA_POOL_MAX, SKUA_POOL_AVERAGE})
      list.push_back({[=](skua_context* c, skua_op** op) {
                        skua_pool2d_desc d = SKUA_POOL2D_DESC_INIT;
                        d.kind = kind, d.type = type, d.kernel_h = d.kernel_w = 3;
                        d.layout = kind == SKUA_POOL_MAX_INDICES ? SKUA_LAYOUT_NHWC : SKUA_LAYOUT_NCHW;
                        return skua_pool2d_create(c, &d, op);
                      },
                      {image}});
  return list;
}

struct Case {
  std::string name, isa, family;
  int layer = -1, call = -1;  // index into probes() or calls()
};

struct Ready {
  // A layer:
  std::unique_ptr<Contestant> context;
  Operands operands;
  Memory x, second, y;
  std::unique_ptr<Prepared> prepared;
  // A call:
  skua_context* plain = nullptr;
  skua_op* op = nullptr;
  skua_plan* plan = nullptr;
  std::vector<Memory> memory;
  std::vector<skua_buffer> inputs, outputs;
  Memory workspace;
  size_t workspace_size = 0;
  double bytes = 0;

  ~Ready() {
    skua_plan_destroy(plan);
    skua_op_destroy(op);
    skua_context_destroy(plain);
  }
  void run() {
    if (prepared) prepared->run();
    else
      skua_plan_run(plan, inputs.data(), inputs.size(), outputs.data(), outputs.size(), workspace.data(),
                    workspace_size, executor());
  }
};

// The layer with this kernel; false when the plan names another one.
bool prepare(const std::string& kernel, const std::string& isa, const Layer& l, Ready& r) {
  r.context = make_skua({kernel, isa});
  if (!r.context) return false;
  r.operands = make_operands(l, 1);
  r.x = Memory(r.operands.x, l.type);
  r.second = Memory(r.operands.second, l.type);
  r.y.resize(l.out_count());
  std::string why;
  r.prepared = r.context->prepare(l, r.operands.weights.data(),
                                  r.operands.bias.empty() ? nullptr : r.operands.bias.data(), {r.x.data(), 0},
                                  {r.operands.second.empty() ? nullptr : r.second.data(), 0}, {r.y.data(), 0}, &why);
  r.bytes = l.bytes();
  return r.prepared && r.prepared->kernel() == kernel;
}

bool prepare(const std::string& kernel, const std::string& isa, const Call& call, Ready& r) {
  skua_context_options options = SKUA_CONTEXT_OPTIONS_INIT;
  options.kernel_filter = kernel.c_str();
  options.max_isa = isa.c_str();
  if (skua_context_create(&options, &r.plain) != SKUA_STATUS_OK || call.create(r.plain, &r.op) != SKUA_STATUS_OK)
    return false;
  if (skua_op_plan(r.op, call.inputs.data(), call.inputs.size(), nullptr, 0, &r.plan) != SKUA_STATUS_OK ||
      kernel != skua_plan_kernel(r.plan))
    return false;
  std::vector<skua_tensor> outputs(skua_op_output_count(r.op));
  if (skua_plan_outputs(r.plan, outputs.data(), outputs.size()) != SKUA_STATUS_OK) return false;
  for (const std::vector<skua_tensor>* list : {&call.inputs, static_cast<const std::vector<skua_tensor>*>(&outputs)})
    for (const skua_tensor& t : *list) {
      size_t count = 1;
      for (uint32_t d = 0; d < t.rank; ++d) count *= t.shape[d];
      std::vector<float> values;
      fill(values, count, 3, -1, 1);
      r.memory.emplace_back(values, t.type);
      (list == &outputs ? r.outputs : r.inputs).push_back(skua_host_buffer(r.memory.back().data()));
      r.bytes += double(size_of(t.type)) * double(count);
    }
  r.workspace_size = skua_plan_workspace(r.plan, uint32_t(effort.threads));
  r.workspace.resize(r.workspace_size / 4 + 1);
  return skua_plan_run(r.plan, r.inputs.data(), r.inputs.size(), r.outputs.data(), r.outputs.size(), r.workspace.data(),
                       r.workspace_size, executor()) == SKUA_STATUS_OK;
}

std::vector<Case> all_cases(const Session& session) {
  std::vector<Case> cases;
  std::set<std::string> sets;  // up to the cap; those of GPUs are none
  skua_isa_info isa;
  for (size_t i = 0; i < skua_isa_count() && skua_isa_at(i, &isa) == SKUA_STATUS_OK; ++i) {
    sets.insert(isa.name);
    if (isa_cap == isa.name) break;
  }
  skua_kernel_info info;
  for (size_t i = 0; i < skua_kernel_count(); ++i) {
    if (skua_kernel_at(i, &info) != SKUA_STATUS_OK || !info.usable || !sets.count(info.isa) ||
        !session.wanted(info.name))
      continue;
    const std::vector<skua_dtype>& types = session.options.types;
    if (std::find(types.begin(), types.end(), info.type) == types.end()) continue;
    Case c = {info.name, info.isa, info.family};
    const std::vector<Layer> layers = probes(info);
    const std::vector<Call> list = calls(c.family, info.type);
    for (size_t k = 0; k < layers.size() && c.layer < 0; ++k)
      if (Ready ready; prepare(c.name, c.isa, layers[k], ready)) c.layer = int(k);
    for (size_t k = 0; k < list.size() && c.layer < 0 && c.call < 0; ++k)
      if (Ready ready; prepare(c.name, c.isa, list[k], ready)) c.call = int(k);
    if (c.layer >= 0 || c.call >= 0) cases.push_back(c);
  }
  return cases;
}

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const Case& c : all_cases(session)) names.push_back(c.name);
  return names;
}

void run_case(Session& session, const Case& c) {
  Result r;
  r.suite = "kernels";
  r.name = r.kernel = c.name;
  r.isa = c.isa;
  r.op = c.family;
  skua_kernel_info info = {};
  for (size_t i = 0; i < skua_kernel_count(); ++i)
    if (skua_kernel_at(i, &info) == SKUA_STATUS_OK && c.name == info.name) break;
  r.type = info.type;
  Ready ready;
  if (c.layer >= 0) {
    const Layer l = probes(info)[size_t(c.layer)];
    if (!prepare(c.name, c.isa, l, ready)) return;
    r.algorithm = ready.prepared->algorithm();
    r.flops = l.flops();
    memset(ready.y.data(), 0xff, ready.y.size() * sizeof(float));  // NaN in every type
    ready.run();
    std::vector<float> result(ready.y.size());
    load(ready.y.data(), result.size(), l.type, result.data());
    if (const std::string wrong = check_against_formula(l, ready.operands, result.data(), &c.name); !wrong.empty())
      r.error = "wrong result: " + wrong;
  } else {
    if (!prepare(c.name, c.isa, calls(c.family, r.type)[size_t(c.call)], ready)) return;
    r.algorithm = skua_plan_algorithm(ready.plan);
  }
  if (r.error.empty()) {
    const Timing t = race({{[&] { ready.run(); }}}, effort.quick ? 0.25 : 1)[0];
    r.bytes = ready.bytes;
    session.set_time(r, t, r.bytes);
  }
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) {
  for (const Case& c : all_cases(session))
    if (std::find(names.begin(), names.end(), c.name) != names.end()) {
      session.progress(c.name);
      session.each_thread_count([&] { run_case(session, c); });
    }
}

}  // namespace

const Suite kernels_suite = {list, run};

}  // namespace bench
