// What calls cost beside the work: create, plan and run of small operators; how fast weights are packed.
#include <skua/skua.h>
#include <algorithm>
#include <functional>

#include "session.h"

namespace bench {
namespace {

struct Overhead {
  const char* name;
  Layer layer;
  enum { create, plan, plan_in_place, run } what;
};

std::vector<Overhead> all() {
  Layer conv;
  conv.op = Op::conv;
  conv.h = conv.w = 56, conv.c = conv.out_c = 64, conv.kh = conv.kw = 3,
  conv.top = conv.left = conv.bottom = conv.right = 1, conv.bias = true;
  infer_output(conv);
  Layer late = conv;
  late.h = late.w = 14, late.c = late.out_c = 512;
  infer_output(late);
  Layer pointwise = late;
  pointwise.kh = pointwise.kw = 1, pointwise.top = pointwise.left = pointwise.bottom = pointwise.right = 0;
  infer_output(pointwise);
  Layer depthwise = conv;
  depthwise.groups = 64;
  Layer gemm;
  gemm.op = Op::gemm, gemm.m = 1, gemm.n = gemm.k = 16;
  Layer large = gemm;
  large.n = large.k = 1024;
  Layer nibbles = gemm;
  nibbles.n = nibbles.k = 4096, nibbles.quantized = SKUA_DTYPE_S4, nibbles.quantize_a = true;
  Layer blocks = nibbles;
  blocks.block = 32;
  Layer row = nibbles;
  row.n = 1, row.quantized = SKUA_DTYPE_S8;
  Layer add;
  add.op = Op::binary, add.c = add.out_c = 16;
  Layer relu = add;
  relu.op = Op::unary;
  return {{"create_conv2d_f32/3x3s1_56x56x64-64", conv, Overhead::create},
          {"create_conv2d_f32/3x3s1_14x14x512-512", late, Overhead::create},
          {"create_conv2d_f32/1x1s1_14x14x512-512", pointwise, Overhead::create},
          {"create_gemm_f32/1x1024x1024", large, Overhead::create},
          {"create_gemm_f32/1x4096x4096_s4_quantize_a", nibbles, Overhead::create},
          {"create_gemm_f32/1x4096x4096_s4:32_quantize_a", blocks, Overhead::create},
          {"plan_conv2d_f32/3x3s1_56x56x64-64", conv, Overhead::plan},
          {"plan_init_conv2d_f32/3x3s1_56x56x64-64", conv, Overhead::plan_in_place},
          {"plan_depthwise_f32/3x3s1_56x56x64", depthwise, Overhead::plan},
          {"plan_gemm_f32/1x1024x1024", large, Overhead::plan},
          {"plan_binary_f32/add_16", add, Overhead::plan},
          {"run_binary_f32/add_16", add, Overhead::run},
          {"run_unary_f32/relu_16", relu, Overhead::run},
          {"run_gemm_f32/1x16x16", gemm, Overhead::run},
          {"run_gemm_f32/1x1x4096_s8_quantize_a", row, Overhead::run}};  // hardly more than the row's quantisation
}

std::vector<std::string> list(const Session& session) {
  std::vector<std::string> names;
  for (const Overhead& o : all())
    if (session.wanted(o.name)) names.push_back(o.name);
  return names;
}

void run_case(Session& session, const Overhead& o) {
  Result r;
  r.suite = "overhead";
  r.name = o.name;
  r.op = r.name.substr(0, r.name.find('_'));
  const Layer& l = o.layer;
  const Operands operands = make_operands(l, 1);
  Memory x(operands.x), second(operands.second), y(l.out_count());
  const float* bias = operands.bias.empty() ? nullptr : operands.bias.data();
  const View vx = {x.data(), 0}, vs = {operands.second.empty() ? nullptr : second.data(), 0}, vy = {y.data(), 0};
  std::string why;
  const auto fail = [&] {
    r.error = "unsupported: " + why;
    session.add(r);
  };

  std::vector<Racer> runs;
  std::vector<Contestant*> who = {session.ours.get()};
  std::vector<std::unique_ptr<Prepared>> prepared;
  const Constants constants(l, operands.weights.data(), bias);
  skua_op* op = nullptr;
  skua_tensor inputs[2];
  const size_t count = library_inputs(l, inputs);
  if (o.what == Overhead::run) {
    prepared.push_back(session.ours->prepare(l, operands.weights.data(), bias, vx, vs, vy, &why));
    if (!prepared[0]) return fail();
    for (auto& peer : session.peers)
      if (auto p = peer->prepare(l, operands.weights.data(), bias, vx, vs, vy, &why)) {
        prepared.push_back(std::move(p));
        who.push_back(peer.get());
        r.peers.push_back({peer->name(), 0, 0});
      }
    for (size_t i = 0; i < prepared.size(); ++i) runs.push_back({[&p = prepared[i]] { p->run(); }, who[i]});
    r.kernel = prepared[0]->kernel();
  } else {
    if (library_create(*session.ours, l, constants, &op) != SKUA_STATUS_OK) {
      why = skua_error_text();
      return fail();
    }
    if (o.what == Overhead::create) {
      runs.push_back({[&] {
        skua_op* made = nullptr;
        library_create(*session.ours, l, constants, &made);
        skua_op_destroy(made);
      }});
      // theirs with what they do for shapes they know; not oneDNN's, which tries several forms before
      for (auto& peer : session.peers) {
        if (std::string(peer->name()) == "onednn") continue;
        const auto make = [&, peer = peer.get()] {
          return peer->prepare(l, operands.weights.data(), bias, vx, vs, vy, &why) != nullptr;
        };
        if (!make()) continue;
        runs.push_back({[make] { make(); }});
        r.peers.push_back({peer->name(), 0, 0});
      }
    } else if (o.what == Overhead::plan)
      runs.push_back({[&] {
        skua_plan* plan = nullptr;
        skua_op_plan(op, inputs, count, nullptr, 0, &plan);
        skua_plan_destroy(plan);
      }});
    else
      runs.push_back({[&] {
        alignas(64) static char memory[16384];
        skua_plan* plan = nullptr;
        skua_op_plan_init(op, inputs, count, nullptr, 0, memory, sizeof memory, &plan);
      }});
  }
  const std::vector<Timing> times = race(runs);
  r.ns = times[0].ns;
  r.noise = times[0].noise;
  if (o.what == Overhead::create) r.bandwidth = l.weight_bytes() / r.ns;
  for (size_t i = 1; i < times.size(); ++i) r.peers[i - 1].ns = times[i].ns, r.peers[i - 1].noise = times[i].noise;
  skua_op_destroy(op);
  session.add(std::move(r));
}

void run(Session& session, const std::vector<std::string>& names) {
  for (const Overhead& o : all())
    if (std::find(names.begin(), names.end(), o.name) != names.end()) {
      session.progress(o.name);
      session.each_thread_count([&] { run_case(session, o); });
    }
}

}  // namespace

const Suite overhead_suite = {list, run};

}  // namespace bench
