// Inverted residual block: expand (1x1), depthwise, project (1x1) as one operator made of three convolutions that run
// over bands of output rows.
//
//   x  --1x1-->  ring: the expanded rows under a band  --depthwise-->  rows of the band  --1x1 (+ residual)-->  y
//                the next band keeps the rows that both need
//
// Ring and rows of a band take half of the second-level cache: the expanded maps, the largest of the three by far,
// never go to the third and back. Every element is the same chain of operations as with three operators. A block that
// fits whole is one band, computed by all workers; else tasks are runs of output rows, each with its own ring, and
// compute the rows under their first outputs again.
#include "conv/conv.h"
#include "core/window.h"
#include "gpu/operators.h"

namespace skua {

extern const OpClass inverted_residual_part_class;  // conv2d under this operator's name

namespace {

constexpr int kExpand = 0, kDepthwiseStage = 1, kProject = 2, kStages = 3;

struct Config {
  ConvConfig stage[kStages];
  uint64_t weights_size[kStages];
};
struct BlockOp : skua_op {
  Config config;
  ConvOp stage[kStages];  // their weights are inside this operator's
};
struct BlockPlan : skua_plan {
  ConvPlan stage[kStages];  // for one image and the rows of one band
  size_t batch, in_h, out_h, pad_top;
  size_t band, ring;        // rows: of outputs, and of expanded rows under them
  double cycles;            // of all
  // the share of them that one more piece of an image costs: rows that it expands, and its neighbour too
  double expand_twice;
};

const BlockOp& op_of(const skua_plan* plan) { return *static_cast<const BlockOp*>(plan->op); }
const BlockPlan& plan_of(const skua_plan* plan) { return *static_cast<const BlockPlan*>(plan); }

// Why three convolutions are no block; NULL if they are.
const char* unfit(const ConvConfig (&s)[kStages]) {
  for (const ConvConfig& c : s) {
    if (c.transposed) return "a stage is transposed";
    if (c.layout != SKUA_LAYOUT_NHWC) return "layout must be NHWC in expand, depthwise and project";
  }
  const ConvConfig* const products[] = {&s[kExpand], &s[kProject]};
  for (const ConvConfig* c : products)
    if (c->kernel_h != 1 || c->kernel_w != 1 || c->stride_h != 1 || c->stride_w != 1 || c->groups != 1 ||
        (c->padding_mode == SKUA_PADDING_EXPLICIT && (c->pad_top || c->pad_left || c->pad_bottom || c->pad_right)))
      return "expand and project must be 1x1 convolutions of one group without stride or padding";
  const ConvConfig& d = s[kDepthwiseStage];
  if (d.groups != d.in_channels || d.out_channels != d.in_channels || d.groups < 2)
    return "depthwise must have groups = in_channels = out_channels, 2 or more";
  if (s[kExpand].out_channels != d.in_channels) return "depthwise in_channels must be what expand gives";
  if (s[kProject].in_channels != d.out_channels) return "project in_channels must be what depthwise gives";
  if (s[kExpand].residual || d.residual) return "residual must be NONE in expand and depthwise";
  return nullptr;
}

skua_status open(skua_op* base) {
  BlockOp& op = *static_cast<BlockOp*>(base);
  const Config& c = op.config;
  const uint32_t packed[kStages] = {1u << kDirect, 1u << kDepthwise, 1u << kDirect};
  bool sane = !unfit(c.stage);
  size_t at = 0;
  for (int i = 0; i < kStages && sane; ++i) {
    sane = c.stage[i].packed == packed[i] && c.weights_size[i] <= op.weights_size - at;
    if (!sane) break;
    ConvOp& s = op.stage[i];
    s.cls = &inverted_residual_part_class;
    s.ctx = op.ctx;
    s.config = c.stage[i];
    s.weights = static_cast<const char*>(op.weights) + at;
    s.weights_size = size_t(c.weights_size[i]);
    SKUA_TRY(inverted_residual_part_class.open(&s));
    at += s.weights_size;
  }
  if (!sane || at != op.weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed description is inconsistent", op.cls->name);
  op.n_inputs = op.stage[kProject].n_inputs;
  op.n_outputs = 1;
  return SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  const BlockOp& op = *static_cast<const BlockOp*>(base);
  BlockPlan& p = *static_cast<BlockPlan*>(out);
  skua_tensor in[2] = {shapes.inputs[0], {}};
  SKUA_TRY(need_rank(base, shapes, 0, 4));
  for (int i = 0; i < kStages; ++i) {
    ConvPlan& s = p.stage[i];
    s.op = &op.stage[i];
    if (i == kProject && op.n_inputs > 1) in[1] = shapes.inputs[1];
    SKUA_TRY(inverted_residual_part_class.plan(s.op, {in, op.stage[i].n_inputs}, &s));
    if (i < kProject) set_dense(s.outputs[0]);
    in[0] = s.outputs[0];
  }
  p.outputs[0] = p.stage[kProject].outputs[0];
  return SKUA_STATUS_OK;
}

skua_status finish(const skua_op* base, skua_plan* out) {
  BlockPlan& p = *static_cast<BlockPlan*>(out);
  DirectShape &e = p.stage[kExpand].shape, &d = p.stage[kDepthwiseStage].shape, &j = p.stage[kProject].shape;
  p.batch = d.batch;
  p.in_h = d.in_h;
  p.out_h = d.out_h;
  p.pad_top = d.pad_top;
  const size_t span = size_t(d.dilation_h) * (d.kernel_h - 1) + 1, ring_row = d.in_w * d.in_channels,
               row = d.out_w * d.out_channels;
  const size_t budget = machine_for(Isa::scalar).l2 / 2 / element_bytes(d.element);
  const auto ring_of = [&](size_t rows) { return rows ? min((rows - 1) * d.stride_h + span, p.in_h) : 0; };
  p.band = p.out_h;
  while (p.band > 2 && ring_of(p.band) * ring_row + p.band * row > budget)
    p.band = min(p.band - 1, ceil_div(p.out_h, ceil_div(p.out_h, p.band) + 1));
  p.band += p.band < p.out_h && p.band % 2;  // depthwise tiles have two rows
  // Every band reads the weights again; whole maps are written to memory beyond L2 and read from there.
  const uint64_t* const sizes = static_cast<const BlockOp*>(base)->config.weights_size;
  const double weights = double(sizes[kExpand]) + double(sizes[kProject]);
  const double maps =
      2 * double(element_bytes(d.element)) * (double(p.in_h) * double(ring_row) + double(p.out_h) * double(row));
  if (p.band && double(ceil_div(p.out_h, p.band) - 1) * weights >= maps) p.band = p.out_h;
  p.ring = ring_of(p.band);
  const double bands = p.band ? double(p.batch) * double(p.out_h) / double(p.band) : 0;
  e.batch = d.batch = j.batch = 1;
  e.in_h = e.out_h = d.in_h = p.ring;
  d.out_h = j.in_h = j.out_h = p.band;
  p.stage[kProject].outputs[0] = p.outputs[0];
  for (ConvPlan& s : p.stage) {
    SKUA_TRY(inverted_residual_part_class.finish(s.op, &s));
    p.cycles += s.cycles * bands;
    p.named |= base->ctx->filter[0] &&
               (glob_match(base->ctx->filter, s.algorithm) || glob_match(base->ctx->filter, s.kernel->name));
  }
  const size_t shared = span - min(span, size_t(d.stride_h));
  p.expand_twice =
      p.cycles > 0 ? p.stage[kExpand].cycles * bands / p.cycles * double(shared) / double(max(p.in_h * p.batch, 1)) : 0;
  p.kernel = p.stage[kExpand].kernel;
  p.algorithm = p.band < p.out_h ? "bands" : "whole";
  return SKUA_STATUS_OK;
}

Element element_in(const BlockPlan& p) { return p.stage[kDepthwiseStage].shape.element; }
size_t ring_bytes(const BlockPlan& p) {
  return round_up(p.ring * p.stage[kDepthwiseStage].shape.in_row * element_bytes(element_in(p)), 64);
}
size_t rows_bytes(const BlockPlan& p) {
  return round_up(p.band * p.stage[kDepthwiseStage].shape.out_row * element_bytes(element_in(p)), 64);
}
// Bytes of one ring with its band, and of what the stages need beside it.
size_t space_for(const BlockPlan& p, uint32_t concurrency) {
  size_t stage = max(direct_workspace(p.stage[kExpand].direct, concurrency),
                     direct_workspace(p.stage[kProject].direct, concurrency));
  stage =
      max(stage, depthwise_workspace(p.stage[kDepthwiseStage].depthwise, p.stage[kDepthwiseStage].kernel, concurrency));
  return add_sat(ring_bytes(p) + rows_bytes(p), stage > SIZE_MAX - 64 ? stage : round_up(stage, 64));
}
size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const BlockPlan& p = plan_of(plan);
  return p.band < p.out_h ? max(mul_sat(space_for(p, 1), concurrency), space_for(p, concurrency))
                          : space_for(p, concurrency);
}

// Output rows [y0, y1) of an image; at most a band. The ring holds the expanded rows [first, end).
struct Ring {
  char* rows;
  size_t first, end;
};
void compute_band(const RunArgs& args, const BlockPlan& p, size_t image, size_t y0, size_t y1, Ring& ring) {
  const BlockOp& op = op_of(args.plan);
  const DirectShape &e = p.stage[kExpand].shape, &j = p.stage[kProject].shape;
  DepthwiseShape d = p.stage[kDepthwiseStage].depthwise;
  const size_t top = y0 * d.stride_h, bottom = (y1 - 1) * d.stride_h + size_t(d.dilation_h) * (d.kernel_h - 1) + 1;
  const size_t first = top > p.pad_top ? min(top - p.pad_top, p.in_h) : 0,
               end = max(bottom > p.pad_top ? min(bottom - p.pad_top, p.in_h) : 0, first);
  char *rows = ring.rows + ring_bytes(p), *space = rows + rows_bytes(p);
  const Element type = element_in(p);
  const size_t ring_row = d.in_row * element_bytes(type);
  if (first < ring.end && first > ring.first)
    memmove(ring.rows, ring.rows + (first - ring.first) * ring_row, (ring.end - first) * ring_row);
  if (first >= ring.end) ring.end = first;
  ring.first = first;
  if (end > ring.end) {
    DirectShape s = e;
    s.in_h = s.out_h = end - ring.end;
    const ConvOp& o = op.stage[kExpand];
    direct_run(args, p.stage[kExpand].direct, s,
               {o.weights_of[kDirect], o.bias, &o.activation, SKUA_RESIDUAL_NONE,
                at(args.in<char>(0), type, ptrdiff_t(image * s.in_batch + ring.end * s.in_row)), nullptr,
                ring.rows + (ring.end - first) * ring_row, space});
    ring.end = end;
  }
  d.in_h = end - first;
  d.out_h = y1 - y0;
  d.pad_top = p.pad_top > top ? p.pad_top - top : 0;
  const ConvOp& o = op.stage[kDepthwiseStage];
  depthwise_run(args, d, p.stage[kDepthwiseStage].kernel, o.weights_of[kDepthwise], o.map_activation,
                SKUA_RESIDUAL_NONE, ring.rows, nullptr, rows, space);
  DirectShape s = j;
  s.in_h = s.out_h = y1 - y0;
  const ConvOp& q = op.stage[kProject];
  const void* residual =
      q.config.residual ? at(args.in<char>(1), type, ptrdiff_t(image * s.res_batch + y0 * s.res_row)) : nullptr;
  direct_run(args, p.stage[kProject].direct, s,
             {q.weights_of[kDirect], q.bias, &q.activation, skua_residual(q.config.residual), rows, residual,
              at(args.out<char>(0), type, ptrdiff_t(image * s.out_batch + y0 * s.out_row)), space});
}

// Above this share of work done twice, workers that wait for each other after every stage of a band lose less (measured
// with two, docs/cores.md).
constexpr double kMostTwice = 0.05;

struct Run {
  RunArgs args;  // of a task: no executor
  size_t pieces, pairs;  // pairs of output rows in an image
};

void task(void* arg, size_t index, uint32_t worker) {
  const Run& r = *static_cast<const Run*>(arg);
  const BlockPlan& p = plan_of(r.args.plan);
  char* rows = static_cast<char*>(r.args.workspace) + worker * space_for(p, 1);
  const size_t to = piece_begin(p.batch * r.pairs, r.pieces, index + 1);
  for (size_t u = piece_begin(p.batch * r.pairs, r.pieces, index), next; u < to; u = next) {
    const size_t image = u / r.pairs;
    next = min(to, (image + 1) * r.pairs);
    const size_t begin = (u - image * r.pairs) * 2, end = min((next - image * r.pairs) * 2, p.out_h);
    Ring ring = {rows, 0, 0};
    for (size_t y = begin; y < end; y += p.band) compute_band(r.args, p, image, y, min(y + p.band, end), ring);
  }
}

void run(const RunArgs& args) {
  const BlockPlan& p = plan_of(args.plan);
  if (!p.batch || !p.out_h || !p.stage[kProject].shape.out_w) return;
  Run r = {args, 1, ceil_div(p.out_h, 2)};
  r.args.executor = nullptr;
  r.pieces =
      min(pieces_for(args, p.batch * r.pairs, p.cycles / double(p.batch * r.pairs)), size_t(args.workers()) * 2);
  const double twice = p.expand_twice * double(r.pieces - min(r.pieces, p.batch));
  if (p.band < p.out_h && twice < kMostTwice) return parallel(args, r.pieces, task, &r);
  // One band after the other, each by all workers.
  for (size_t image = 0; image < p.batch; ++image) {
    Ring ring = {static_cast<char*>(args.workspace), 0, 0};
    for (size_t y = 0; y < p.out_h; y += p.band) compute_band(args, p, image, y, min(y + p.band, p.out_h), ring);
  }
}

void explain(const skua_plan* plan, Text& text) {
  const BlockPlan& p = plan_of(plan);
  text.add("  bands of %zu output rows of %zu, over %zu expanded rows: %zu bytes\n", p.band, p.out_h, p.ring,
           ring_bytes(p) + rows_bytes(p));
  const char* const names[kStages] = {"expand", "depthwise", "project"};
  for (int i = 0; i < kStages; ++i)
    text.add("  %s: algorithm %s, kernel %s\n", names[i], p.stage[i].algorithm, p.stage[i].kernel->name);
}

}  // namespace

extern const OpClass inverted_residual_class;
const OpClass inverted_residual_class = {
    .name = "inverted_residual", .id = 50,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(BlockOp), .plan_size = sizeof(BlockPlan), .config_offset = offsetof(BlockOp, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};

}  // namespace skua

using namespace skua;

extern "C" skua_status skua_inverted_residual_create(skua_context* context, const skua_inverted_residual_desc* desc,
                                                     const void* const* weights, const void* const* biases,
                                                     skua_op** out) {
  const char* name = inverted_residual_class.name;
  const char* const stage_names[kStages] = {"inverted_residual: expand", "inverted_residual: depthwise",
                                            "inverted_residual: project"};
  skua_inverted_residual_desc d;
  SKUA_TRY(read_desc(name, context, desc, d, out));
  if (!weights) return SKUA_INVALID("%s: weights is NULL", name);
  const skua_conv2d_desc* const descs[kStages] = {&d.expand, &d.depthwise, &d.project};
  const uint32_t algorithms[kStages] = {1u << kDirect, 1u << kDepthwise, 1u << kDirect};
  skua_op* stages[kStages] = {};
  skua_op* base = nullptr;
  Config c;
  memset(&c, 0, sizeof c);
  skua_status status = SKUA_STATUS_OK;
  for (int i = 0; i < kStages; ++i) {
    const char* const stage = stage_names[i];
    SKUA_TRY(check_desc(stage, descs[i], descs[i]->struct_size, sizeof *descs[i]));
    SKUA_TRY(need_float(stage, "input_type", descs[i]->input_type));
    SKUA_TRY(conv_config(stage, *descs[i], c.stage[i]));
    if (!weights[i]) return SKUA_INVALID("%s: weights is NULL", stage);
    const char* const fields[kStages] = {"expand.input_type", "depthwise.input_type", "project.input_type"};
    SKUA_TRY(need_same_type(name, fields[i], descs[i]->input_type, fields[kExpand], descs[kExpand]->input_type));
  }
  if (const char* why = unfit(c.stage)) return SKUA_INVALID("%s: %s", name, why);
  SKUA_ON_GPU(context, create_inverted_residual(context, c.stage, d, weights, biases, out));
  size_t size = 0;
  for (int i = 0; i < kStages && status == SKUA_STATUS_OK; ++i) {
    status = conv_create(inverted_residual_part_class, context, *descs[i], algorithms[i], weights[i],
                         biases ? biases[i] : nullptr, &stages[i]);
    if (status != SKUA_STATUS_OK) break;
    c.stage[i] = static_cast<const ConvOp*>(stages[i])->config;
    c.weights_size[i] = stages[i]->weights_size;
    size = add_sat(size, stages[i]->weights_size);
  }
  if (status == SKUA_STATUS_OK) status = new_op(inverted_residual_class, context, 1, 1, size, &base);
  if (status == SKUA_STATUS_OK) {
    memcpy(&static_cast<BlockOp*>(base)->config, &c, sizeof c);
    auto* to = static_cast<char*>(op_weights(base));
    for (const skua_op* s : stages) {
      memcpy(to, s->weights, s->weights_size);
      to += s->weights_size;
    }
  }
  for (skua_op* s : stages) skua_op_destroy(s);
  return status == SKUA_STATUS_OK ? open_op(base, out) : status;
}
