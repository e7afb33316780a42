// The convolution operators: choice of the algorithm, run. See conv.h.
#include "conv/conv.h"

#include <math.h>

namespace skua {
namespace {

const ConvOp& op_of(const skua_plan* plan) { return *static_cast<const ConvOp*>(plan->op); }
const ConvPlan& plan_of(const skua_plan* plan) { return *static_cast<const ConvPlan*>(plan); }

void use_map(const ConvConfig& c, const ConvMap& m, size_t channels, size_t& batch, size_t& row, size_t& pixel,
             size_t& image, size_t& plane, size_t& line) {
  if (c.layout == SKUA_LAYOUT_NHWC) {
    batch = m.image; row = m.row; pixel = m.pixel;
    return;
  }
  // of the caller's; converted maps are dense, so that taps side by side are one segment (150x150x3-20 of 3x3 with a
  // stride of 3 in a third of the time)
  image = m.image; plane = m.plane; line = m.row;
  pixel = channels; row = pixel * m.w; batch = row * m.h;
}

// ---- choice ---------------------------------------------------------------------------------------------------------
const char* not_winograd(const ConvConfig& c, uint32_t algorithm) {
  if (algorithm == kWinogradF4x4_5x5) return "it is for bytes";
  if (const char* why = no_winograd_window(c, winograd_variant(algorithm))) return why;
  if (c.numerics == SKUA_NUMERICS_STRICT) return "numerics is STRICT";
  if (c.winograd_element != uint32_t(Element::f32)) {
    if (algorithm == kWinogradF6x6) return "it is not computed in f16";
    if (!winograd_half_by_default(winograd_variant(algorithm)) && c.numerics != SKUA_NUMERICS_FAST)
      return "its error in f16 needs numerics FAST";
  }
  if (c.in_channels < winograd_least_channels(winograd_variant(algorithm), map_element(c)) &&
      c.numerics != SKUA_NUMERICS_FAST)
    return "its error at this depth needs numerics FAST";
  return nullptr;
}
const char* not_depthwise(const ConvConfig& c) {
  if (c.transposed) return "the convolution is transposed";
  if (c.groups != c.in_channels || c.groups == 1) return "groups is not in_channels";
  return nullptr;
}

const char* not_grouped(const ConvConfig& c) {
  if (c.transposed) return "the convolution is transposed";
  if (c.groups == 1 || c.groups == c.in_channels || c.in_channels != c.out_channels)
    return "there are no groups of as many inputs as outputs, two or more";
  return c.depthwise.vector ? nullptr : "no kernel holds whole groups in whole vectors";
}

const char* not_applicable(const ConvConfig& c, uint32_t a) {
  return a == kDirect      ? nullptr
         : a == kDepthwise ? not_depthwise(c)
         : a == kGrouped   ? not_grouped(c)
                           : not_winograd(c, a);
}

}  // namespace

const char* no_winograd_window(const ConvConfig& c, WinogradVariant variant) {
  if (c.transposed) return "the convolution is transposed";
  const uint32_t taps = uint32_t(winograd_taps(variant));
  if (c.kernel_h != taps || c.kernel_w != taps) return taps == 3 ? "the kernel is not 3x3" : "the kernel is not 5x5";
  const uint32_t stride = uint32_t(winograd_stride(variant));
  if (c.stride_h != stride || c.stride_w != stride) return stride == 1 ? "the stride is not 1" : "the stride is not 2";
  return c.groups != 1 ? "there are groups" : nullptr;
}

const char* conv_algorithm_name(uint32_t a) {
  if (a == kDirect) return "direct";
  if (a == kDepthwise) return "depthwise";
  if (a == kGrouped) return "grouped";
  return winograd_name(winograd_variant(a));
}

WinogradShape winograd_shape(const DirectShape& s) {
  return {s.batch,      s.in_h,         s.in_w,     s.in_channels, s.out_h,
          s.out_w,      s.out_channels, s.pad_top,  s.pad_left,    s.dilation_h,
          s.dilation_w, s.in_row,       s.in_pixel, s.in_batch,    s.out_row,
          s.out_pixel,  s.out_batch,    s.res_row,  s.res_pixel,   s.res_batch,
          s.element,    s.result,       0};
}

bool conv_applies(const ConvConfig& c, uint32_t algorithm) { return !not_applicable(c, algorithm); }

static skua_status choose(const skua_op* op, const ConvConfig& c, uint32_t packed, ConvPlan& p, Text* text,
                          bool forced) {
  const DirectShape& s = p.shape;
  const skua_context* ctx = op->ctx;
  bool any = false;
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    const char* name = conv_algorithm_name(a);
    const char* why = not_applicable(c, a);
    if (!why && !(packed >> a & 1)) why = "the weights were not packed for it";
    if (!why && forced && !glob_match(ctx->filter, name)) why = "the kernel filter asks for another";
    double cycles = 0;
    DirectPlan direct = {};
    WinogradPlan winograd = {};
    WinogradShape ws = {};
    DepthwiseShape ds = {};
    const Kernel* kernel = nullptr;
    if (!why && a == kDirect) {
      kernel = direct_tile(ctx, s, &c.format, nullptr, &p.choice);
      if (!kernel) why = "no kernel for its panel format";
      else {
        SKUA_TRY(direct_plan(op, s, kernel, has_function(c.activation), direct));
        cycles = direct.cycles;
        name = direct.name;
      }
    } else if (!why && (a == kDepthwise || a == kGrouped)) {
      ds = {s.batch,     s.in_h,       s.in_w,       s.in_channels, s.out_channels / s.in_channels,
            s.out_h,     s.out_w,      s.kernel_h,   s.kernel_w,    s.stride_h,
            s.stride_w,  s.dilation_h, s.dilation_w, s.pad_top,     s.pad_left,
            s.in_row,    s.in_pixel,   s.in_batch,   s.out_row,     s.out_pixel,
            s.out_batch, s.res_row,    s.res_pixel,  s.res_batch};
      if (a == kGrouped) ds.group = s.in_channels / s.groups;
      kernel = depthwise_choose(ctx, ds, c.depthwise, nullptr, &p.choice);
      if (!kernel)
        why = a == kGrouped ? "no kernel for this window or an image this small" : "no kernel for its packed format";
      else cycles = depthwise_cycles(kernel, ds);
    } else if (!why) {
      ws = winograd_shape(s);
      if (!winograd_plan(ctx, winograd_variant(a), ws, winograd_format(c), &winograd, &p.choice))
        why = "no kernel for its panel format, or too large";
      else {
        cycles = winograd_cycles(winograd, ws);
        kernel = winograd.tile;
      }
    }
    if (text) {
      if (why) text->add("    %s: turned down, %s\n", name, why);
      else text->add("    %s with %s: %.0f cycles predicted\n", name, kernel->name, cycles);
    }
    if (why || (any && cycles >= p.cycles)) continue;
    any = true;
    p.chosen = a;
    p.cycles = cycles;
    p.algorithm = name;
    p.kernel = kernel;
    p.direct = direct;
    p.depthwise = ds;
    p.winograd = winograd;
    p.winograd_shape = ws;
  }
  if (any) return SKUA_STATUS_OK;
  if (forced && !p.choice.seen) return choose(op, c, packed, p, text, false);  // not this shape
  return SKUA_UNSUPPORTED_("%s: no kernel in this build%s%s", op->cls->name,
                           ctx->filter[0] ? ", under the kernel filter " : "", ctx->filter);
}

skua_status conv_choose(const skua_op* op, const ConvConfig& c, uint32_t packed, ConvPlan& p, Text* text) {
  const char* filter = op->ctx->filter;
  bool forced = false;  // the filter names an algorithm that can serve this convolution
  for (uint32_t a = 0; a < kConvAlgorithms; ++a)
    forced |= filter[0] && (packed >> a & 1) && !not_applicable(c, a) && glob_match(filter, conv_algorithm_name(a));
  return choose(op, c, packed, p, text, forced);
}

namespace {

skua_status open(skua_op* base) {
  ConvOp& op = *static_cast<ConvOp*>(base);
  const ConvConfig& c = op.config;
  const char* name = op.cls->name;
  size_t offset[kConvAlgorithms], floats = 0;
  const bool sane =
      c.kernel_h && c.kernel_w && c.stride_h && c.stride_w && c.dilation_h && c.dilation_w && c.groups &&
      c.in_channels && c.out_channels && c.in_channels % c.groups == 0 && c.out_channels % c.groups == 0 &&
      c.residual <= SKUA_RESIDUAL_AFTER_ACTIVATION && c.numerics <= SKUA_NUMERICS_FAST &&
      c.layout <= SKUA_LAYOUT_NCHW && c.padding_mode <= SKUA_PADDING_SAME_LOWER &&
      c.element <= uint8_t(Element::bf16) && (!c.weights || c.weights == c.element) &&
      (!c.winograd_element || (c.winograd_element == uint32_t(Element::f16) && map_element(c) == Element::f16)) &&
      c.packed && !(c.packed >> kConvAlgorithms) && bool(c.transposed) == !strcmp(name, "conv2d_transpose") &&
      (!c.transposed || (uint64_t(c.stride_h) * c.stride_w <= 4096 && c.output_padding_h < c.stride_h &&
                         c.output_padding_w < c.stride_w));
  if (!sane || !conv_layout(c, offset, floats) || floats * sizeof(float) != op.weights_size)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB, "%s: the packed description is inconsistent", name);
  SKUA_TRY(need_float(name, "input_type", skua_dtype(c.element)));
  SKUA_TRY(check_activation(name, c.activation));
  const auto* w = static_cast<const float*>(op.weights);
  op.bias = c.has_bias ? w : nullptr;
  bool usable = false;
  for (uint32_t a = 0; a < kConvAlgorithms; ++a) {
    if (!(c.packed >> a & 1)) continue;
    op.weights_of[a] = w + offset[a];
    if (a == kDepthwise || a == kGrouped) {
      DepthwiseShape s = {1,
                          8,
                          8,
                          c.in_channels,
                          c.out_channels / c.in_channels, 8, 8, c.kernel_h, c.kernel_w, c.stride_h, c.stride_w,
                          c.dilation_h, c.dilation_w, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      if (a == kGrouped) s.group = c.in_channels / c.groups;
      usable |= !not_applicable(c, a) && c.depthwise.element == map_element(c) &&
                depthwise_choose(op.ctx, s, c.depthwise, nullptr);
    } else {
      DirectShape s = {};
      s.batch = 1; s.in_h = s.in_w = s.out_h = s.out_w = 8;
      s.in_channels = c.in_channels; s.out_channels = c.out_channels; s.groups = c.groups;
      s.kernel_h = c.kernel_h;
      s.kernel_w = c.kernel_w;
      s.stride_h = c.stride_h;
      s.stride_w = c.stride_w;
      s.dilation_h = s.dilation_w = 1;
      s.element = s.result = map_element(c); s.weights = Element(c.weights); s.numerics = skua_numerics(c.numerics);
      const WinogradShape ws = winograd_shape(s);
      WinogradPlan winograd;
      s.dilation_h = c.dilation_h;
      s.dilation_w = c.dilation_w;
      s.transposed = c.transposed;
      usable |= a == kDirect ? choose_tile(op.ctx, 1, 1, 1, &c.format, nullptr, nullptr, direct_types(s)) != nullptr
                             : !not_winograd(c, a) &&
                                   winograd_plan(op.ctx, winograd_variant(a), ws, winograd_format(c), &winograd);
    }
  }
  if (!usable)
    return fail(SKUA_STATUS_INCOMPATIBLE_BLOB,
                "%s: weights are packed as %s for panels of %u columns and vectors of %u, %u of the depth together; "
                "this context (%s) has no such kernel",
                name, skua_dtype_name(skua_dtype(c.format.element)), c.format.nr, c.format.vector, c.format.kr,
                skua_context_isa(op.ctx));
  op.n_inputs = 1 + (c.residual != SKUA_RESIDUAL_NONE);
  op.n_outputs = 1;
  SKUA_TRY(resolve_activation(&op, c.activation, op.activation));
  return c.packed & (1u << kDepthwise | 1u << kGrouped)
             ? resolve_activation(&op, c.activation, op.map_activation, map_element(c))
             : SKUA_STATUS_OK;
}

skua_status make_plan(const skua_op* base, const PlanShapes& shapes, skua_plan* out) {
  const ConvConfig& c = static_cast<const ConvOp*>(base)->config;
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  DirectShape& s = p.shape;
  ConvMap in;
  SKUA_TRY(conv_plan_shapes(base, c, shapes, skua_dtype(c.element), in, s, p.outputs[0]));
  use_map(c, in, c.in_channels, s.in_batch, s.in_row, s.in_pixel, p.in_image, p.in_plane, p.in_line);
  if (c.residual != SKUA_RESIDUAL_NONE) {
    SKUA_TRY(need_type(base, shapes, 1, skua_dtype(c.element)));
    SKUA_TRY(need_same_shape(base, shapes, 1, p.outputs[0]));
    ConvMap r = {};
    SKUA_TRY(conv_map(base, c, "input", 1, shapes.inputs[1], c.out_channels, r));
    use_map(c, r, c.out_channels, s.res_batch, s.res_row, s.res_pixel, p.res_image, p.res_plane, p.res_line);
  }
  return SKUA_STATUS_OK;
}

DirectOperands operands(const ConvOp& op) {
  return {op.weights_of[kDirect], op.bias, &op.activation, skua_residual(op.config.residual), nullptr, nullptr, nullptr,
          nullptr};
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const ConvConfig& c = static_cast<const ConvOp*>(base)->config;
  ConvPlan& p = *static_cast<ConvPlan*>(out);
  DirectShape& s = p.shape;
  ConvMap m = {};
  SKUA_TRY(conv_map(base, c, "output", 0, p.outputs[0], c.out_channels, m));
  use_map(c, m, c.out_channels, s.out_batch, s.out_row, s.out_pixel, p.out_image, p.out_plane, p.out_line);
  if (c.layout == SKUA_LAYOUT_NCHW) {
    size_t total = 0;
    bool ok = mul(s.batch, s.in_batch, p.in_floats) && mul(s.batch, s.out_batch, p.out_floats) &&
              add(p.in_floats, p.out_floats, total) && add(total, p.out_floats, total) && total <= SIZE_MAX / 16;
    p.in_floats = round_up(p.in_floats, 16), p.out_floats = round_up(p.out_floats, 16);  // whole lines
    // the last row of one pixel is narrowed by whole vectors
    if (Element(c.element) != Element::f32) p.out_floats += 16;
    if (!ok) return SKUA_INVALID("%s: the feature maps are larger than the address space", base->cls->name);
    if (c.residual != SKUA_RESIDUAL_NONE) p.res_floats = p.out_floats;
  }
  SKUA_TRY(conv_choose(base, c, c.packed, p, nullptr));
  p.named = base->ctx->filter[0] && glob_match(base->ctx->filter, conv_algorithm_name(p.chosen));
  if (c.layout == SKUA_LAYOUT_NHWC && p.chosen == kDirect)
    pointwise_row(p.direct, s, operands(*static_cast<const ConvOp*>(base)), p.row);
  return SKUA_STATUS_OK;
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  const ConvPlan& p = plan_of(plan);
  const size_t maps = (p.in_floats + p.res_floats + p.out_floats) * sizeof(float);
  switch (p.chosen) {
    case kDirect: return add_sat(maps, direct_workspace(p.direct, concurrency));
    case kDepthwise: case kGrouped: return add_sat(maps, depthwise_workspace(p.depthwise, p.kernel, concurrency));
    default: return add_sat(maps, winograd_workspace(p.winograd, p.winograd_shape, concurrency));
  }
}

// ---- NCHW -----------------------------------------------------------------------------------------------------------
// Stretches of pixels of an image: [channels][pixels] of any type <-> [pixels][channels] of f32. Blocks of 16x16 are
// transposed in registers; lines without a gap are one, as lines of 7 or 14 pixels have no such block.
struct Convert {
  const void* from;
  void* to;
  Element element;              // of the NCHW side
  size_t channels;
  size_t image, plane, line;    // NCHW strides
  size_t batch, row;            // NHWC strides
  const Kernel *kernel, *rows;  // gemm_pack; gemm_rows on the way out of f32
  size_t lines, width;          // of an image
  size_t stretch, per_line;
};

constexpr size_t kTogether = 16;
// Up to `most` from `at` on, whole sixteens; less than one is left: the last sixteen.
struct Piece {
  size_t first, count;
};
inline Piece next_piece(size_t at, size_t end, size_t most) {
  const size_t left = end - at;
  return left >= kTogether  ? Piece{at, min(left / kTogether * kTogether, most)}
         : end >= kTogether ? Piece{end - kTogether, kTogether}
                            : Piece{at, left};
}

// Sixteens by a size that is known: gcc makes `rep movs` of others, which begins slowly.
inline void copy_floats(size_t n, const float* from, float* to) {
  size_t i = 0;
  for (; i + kTogether <= n; i += kTogether) memcpy(to + i, from + i, kTogether * sizeof(float));
  for (; i < n; ++i) to[i] = from[i];
}

void to_nhwc_task(void* arg, size_t index, uint32_t) {
  const Convert& c = *static_cast<const Convert*>(arg);
  const size_t begin = index % c.per_line * c.stretch, y = index / c.per_line % c.lines,
               n = index / c.per_line / c.lines, count = min(c.stretch, c.width - begin);
  const void* from = at(c.from, c.element, ptrdiff_t(n * c.image + y * c.line + begin));
  float* to = static_cast<float*>(c.to) + n * c.batch + y * c.row + begin * c.channels;
  // Many channels of sixteen pixels after each other, which are streams that are written; but planes a page apart share
  // a set of L1, from which lines are gone before the next pixels (Zen 5, whole layers, depthwise: 14x14x512 of 3x3 38
  // us, all pixels after each other 54; 64x112x64 of 1x3 with a stride of 3 116 and 67).
  const size_t most = c.channels < 64 || c.plane % 1024 == 0 ? c.stretch : kTogether;
  note_use(c.kernel);
  for (size_t x = 0; x < count;) {
    const Piece p = next_piece(x, count, most);
    code_of<GemmPackFn>(c.kernel)(p.count, c.channels, c.channels, at(from, c.element, ptrdiff_t(p.first)), 1, c.plane,
                                  to + p.first * c.channels);
    x = p.first + p.count;
  }
}

void to_nchw_task(void* arg, size_t index, uint32_t) {
  const Convert& c = *static_cast<const Convert*>(arg);
  const size_t begin = index % c.per_line * c.stretch, y = index / c.per_line % c.lines,
               n = index / c.per_line / c.lines, count = min(c.stretch, c.width - begin);
  const float* from = static_cast<const float*>(c.from) + n * c.batch + y * c.row + begin * c.channels;
  void* const to = at(c.to, c.element, ptrdiff_t(n * c.image + y * c.line + begin));
  if (c.rows) note_use(c.rows);
  if (count == 1 && c.plane == 1) {  // the only pixel
    void* row = to;
    if (c.rows)
      code_of<GemmRowTableFn>(c.rows)().finish(
          {1, c.channels, const_cast<float*>(from), c.channels, &row, nullptr, false, 0, -INFINITY, INFINITY});
    else copy_floats(c.channels, from, static_cast<float*>(to));
    return;
  }
  constexpr size_t kWide = 64, kDeep = 2 * kTogether;
  float block[kDeep * kWide];
  void* rows[kDeep];
  note_use(c.kernel);
  for (size_t x0 = 0; x0 < count;) {
    const Piece x = next_piece(x0, count, kWide);
    for (size_t k0 = 0; k0 < c.channels;) {
      const Piece k = next_piece(k0, c.channels, kDeep);
      code_of<GemmPackFn>(c.kernel)(k.count, x.count, x.count, from + x.first * c.channels + k.first, 1, c.channels,
                                    block);
      for (size_t i = 0; i < k.count; ++i) {
        rows[i] = at(to, c.element, ptrdiff_t((k.first + i) * c.plane + x.first));
        if (!c.rows) copy_floats(x.count, block + i * x.count, static_cast<float*>(rows[i]));
      }
      if (c.rows)
        code_of<GemmRowTableFn>(c.rows)().finish(
            {k.count, x.count, block, x.count, rows, nullptr, false, 0, -INFINITY, INFINITY});
      k0 = k.first + k.count;
    }
    x0 = x.first + x.count;
  }
}

void convert(const RunArgs& args, skua_task task, size_t batch, Convert c) {
  if (c.line == c.width) c.width *= c.lines, c.row *= c.lines, c.lines = 1;
  c.stretch = min(max(round_up(8192 / c.channels, 64), 64), 1024);  // some 32 KB
  c.per_line = ceil_div(c.width, c.stretch);
  parallel(args, batch * c.lines * c.per_line, task, &c);
}

void run(const RunArgs& args) {
  const ConvPlan& p = plan_of(args.plan);
  const ConvOp& op = op_of(args.plan);
  const DirectShape& s = p.shape;
  if (!s.batch || !s.out_h || !s.out_w) return;
  const bool residual = op.config.residual != SKUA_RESIDUAL_NONE;
  if (p.row.run && (args.concurrency() == 1 || p.cycles < kAlone))
    return run_only(p.row, p.kernel, args.in<void>(0), args.out<void>(0), residual ? args.in<void>(1) : nullptr);
  const void* in = args.in<char>(0);
  const void* res = residual ? args.in<char>(1) : nullptr;
  void* out = args.out<char>(0);
  auto* space = static_cast<float*>(args.workspace);
  const bool nchw = op.config.layout == SKUA_LAYOUT_NCHW;
  const auto element = Element(op.config.element);
  if (nchw) {
    const Kernel* pack = find_pack(op.ctx, element, Element::f32);
    convert(args, to_nhwc_task, s.batch,
            {in, space, element, s.in_channels, p.in_image, p.in_plane, p.in_line, s.in_batch, s.in_row, pack, nullptr,
             s.in_h, s.in_w, 0, 0});
    in = space;
    space += p.in_floats;
    if (residual) {
      convert(args, to_nhwc_task, s.batch,
              {res, space, element, s.out_channels, p.res_image, p.res_plane, p.res_line, s.res_batch, s.res_row, pack,
               nullptr, s.out_h, s.out_w, 0, 0});
      res = space;
      space += p.res_floats;
    }
    out = space;
    space += p.out_floats;
  }
  const auto mode = skua_residual(op.config.residual);
  switch (p.chosen) {
    case kDirect:
      direct_run(args, p.direct, s, {op.weights_of[kDirect], op.bias, &op.activation, mode, in, res, out, space});
      break;
    case kDepthwise: case kGrouped:
      depthwise_run(args, p.depthwise, p.kernel, op.weights_of[p.chosen], op.map_activation, mode, in, res, out, space);
      break;
    default:
      winograd_run(args, p.winograd, p.winograd_shape, op.weights_of[p.chosen], op.bias, op.activation, mode, in, res,
                   out, space);
      break;
  }
  if (nchw) {
    const Kernel* rows =
        element == Element::f32 ? nullptr : find_kernel(op.ctx, gemm_tables, KernelKind::gemm_rows, 0, element);
    convert(args, to_nchw_task, s.batch,
            {out, args.out<char>(0), element, s.out_channels, p.out_image, p.out_plane, p.out_line, s.out_batch,
             s.out_row, find_pack(op.ctx, Element::f32, Element::f32), rows, s.out_h, s.out_w, 0, 0});
  }
}

void explain(const skua_plan* plan, Text& text) {
  const ConvPlan& p = plan_of(plan);
  const ConvOp& op = op_of(plan);
  const DirectShape& s = p.shape;
  const Machine m = machine_for(p.kernel->isa);
  const double flops = 2.0 * double(s.batch * s.out_h * s.out_w) * double(s.out_channels) *
                       double(s.in_channels / s.groups) * double(s.kernel_h) * double(s.kernel_w);
  text.add("  input %zux%zux%zu, kernel %ux%u, stride %ux%u, dilation %ux%u, groups %zu, padding %zu top, %zu left\n",
           s.in_h, s.in_w, s.in_channels, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w,
           s.groups, s.pad_top, s.pad_left);
  if (kTileRegisters && p.chosen == kDirect && p.direct.gathers) explain_gather(p.direct, text);
  else if (kTileRegisters && p.chosen == kDirect && p.direct.pads) explain_padded(p.direct, text);
  else if (p.chosen == kDirect)
    text.add("  bands of %zu output rows, %zu regions, strips %zu bytes, tile %ux%u\n", p.direct.band, p.direct.regions,
             p.direct.strip, p.kernel->mr, p.kernel->nr);
  if (p.cycles > 0)
    text.add("  predicted %.1f direct flops per cycle, roofline of the multiply-adds %.1f\n", flops / p.cycles,
             2 * m.fma_ports * p.kernel->vector * (p.chosen == kDirect ? double(table_of(p.kernel).rate) : 1));
  if (p.chosen == kDirect && !p.direct.row) explain_cores(p.direct.tiles, text);
  if (p.chosen == kDepthwise) explain_cores(depthwise_on_cores(op.ctx, p.kernel), text);
  if (p.chosen >= kWinogradF2x2) text.add("  %zu tiles, %zu at a time\n", p.winograd.tiles, p.winograd.block);
  if (p.chosen >= kWinogradF2x2) explain_cores(p.winograd.on_cores, text);
  if (p.chosen == kDirect) explain_types(p.kernel, s.numerics, "weights packed", text);
  else {
    const bool depthwise = p.chosen == kDepthwise || p.chosen == kGrouped,
               half = (depthwise ? op.config.depthwise.weights : p.winograd.element) != Element::f32;
    text.add("  weights packed as %s; sums %s\n", half ? "f16" : "f32",
             !half       ? "f32"
             : depthwise ? "f16"
                         : "f16, 64 terms at a time, then f32");
  }
  text.add("  candidates:\n");
  ConvPlan again = p;
  again.choice = {};
  conv_choose(&op, op.config, op.config.packed, again, &text);
}

}  // namespace

extern const OpClass conv2d_class, conv2d_transpose_class, inverted_residual_part_class;
const OpClass conv2d_class = {
    .name = "conv2d", .id = 3,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(ConvOp), .plan_size = sizeof(ConvPlan), .config_offset = offsetof(ConvOp, config),
    .config_size = sizeof(ConvConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain, .remake = conv_remake,
};
const OpClass conv2d_transpose_class = {
    .name = "conv2d_transpose", .id = 4,
    .inputs = "the input, the residual if there is one",
    .op_size = sizeof(ConvOp), .plan_size = sizeof(ConvPlan), .config_offset = offsetof(ConvOp, config),
    .config_size = sizeof(ConvConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};
const OpClass inverted_residual_part_class = {
    .name = "inverted_residual", .id = 0,
    .op_size = sizeof(ConvOp), .plan_size = sizeof(ConvPlan), .config_offset = offsetof(ConvOp, config),
    .config_size = sizeof(ConvConfig),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .explain = explain,
};

}  // namespace skua
