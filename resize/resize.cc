// Resize of feature maps, nearest and bilinear. See skua/resize.h for the coordinates, resize/README.md for the way
// through.
#include <skua/resize.h>

#include "core/families.h"
#include "core/op.h"
#include "core/quantize.h"
#include "gpu/operators.h"
#include "resize/resize_kernel.h"

namespace skua {
namespace {

struct Config {
  uint32_t kind, type, coordinates, layout, out_h, out_w;
};
struct Op : skua_op {
  Config config;
  const Kernel *pixels, *elements, *rows;  // rows: of blends
};

// An image here is one of NHWC, or one plane of NCHW with one channel.
struct Plan : skua_plan {
  size_t images, planes;                 // planes: images that belong to one index of dimension 0
  size_t in_h, in_w, out_h, out_w, channels;
  size_t x_batch, x_plane, x_row, x_pixel, y_batch, y_plane, y_row, y_pixel;
  bool by_elements;
  size_t block;                          // pixels of an output row that are done together
  size_t entries;                        // of the tables of a block
  size_t buffer;                         // floats of one blended row of a block
  gpu::Chosen chosen;
};

const Op& op_of(const skua_plan* plan) { return *static_cast<const Op*>(plan->op); }
const Plan& plan_of(const skua_plan* plan) { return *static_cast<const Plan*>(plan); }

// Neighbours of output position o and the second one's weight.
struct Source {
  size_t first, second;
  float weight;
};

// All in integers: coordinate = num / den exactly. Extents are below 2^31.
// bytes: the weight is rounded to a multiple of 1/256, so that blends of both directions are exact in f32.
Source bilinear(uint32_t coordinates, uint64_t o, uint64_t in, uint64_t out, bool bytes) {
  uint64_t num = o * in, den = out;
  if (coordinates == SKUA_RESIZE_HALF_PIXEL) {
    num = (2 * o + 1) * in;
    num = num > out ? num - out : 0;
    den = 2 * out;
  } else if (coordinates == SKUA_RESIZE_ALIGN_CORNERS) {
    num = o * (in - 1);
    den = out > 1 ? out - 1 : 1;
  }
  Source s;
  s.first = size_t(num / den);
  if (s.first >= in - 1) return {size_t(in - 1), size_t(in - 1), 0};
  s.second = s.first + 1;
  s.weight = bytes ? float((num % den * 512 + den) / (2 * den)) / 256 : float(double(num % den) / double(den));
  return s;
}

size_t nearest(uint32_t coordinates, uint64_t o, uint64_t in, uint64_t out) {
  uint64_t i;
  if (coordinates == SKUA_RESIZE_HALF_PIXEL) {
    const uint64_t num = (2 * o + 1) * in, den = 2 * out;
    i = num / den + (num % den != 0) - 1;  // (o + 0.5) * in / out - 0.5, ties down
  } else if (coordinates == SKUA_RESIZE_ALIGN_CORNERS) {
    const uint64_t num = o * (in - 1), den = out > 1 ? out - 1 : 1, rest = num % den;
    i = num / den;
    if (2 * rest > den || (2 * rest == den && (i & 1))) ++i;
  } else {
    i = o * in / out;
  }
  return size_t(i < in ? i : in - 1);
}

skua_status open(skua_op* base) {
  Op& op = *static_cast<Op*>(base);
  const bool blend = op.config.kind == SKUA_RESIZE_BILINEAR;
  const Element type = Element(op.config.type);
  SKUA_ON_GPU(op.ctx, need_gpu_movable(op.ctx, "resize2d", "type", skua_dtype(op.config.type)));
  const int bytes = int(element_bytes(type));  // nearest moves bits of any type
  auto find = [&](KernelKind blending, KernelKind copying) {
    return blend ? find_kernel(op.ctx, resize_tables, blending, -1, type)
                 : find_kernel(op.ctx, resize_tables, copying, bytes);
  };
  op.pixels = find(KernelKind::resize_blend_pixels, KernelKind::resize_copy_pixels);
  op.elements = find(KernelKind::resize_blend_elements, KernelKind::resize_copy_elements);
  op.rows = find(KernelKind::resize_blend_rows, KernelKind::resize_copy_pixels);
  return op.pixels && op.elements && op.rows ? SKUA_STATUS_OK : SKUA_UNSUPPORTED_("resize2d: no kernel in this build");
}

skua_status innermost(const char* what, const skua_tensor& t) {
  if (element_count(t) == 0 || t.shape[3] == 1 || t.stride[3] == 1) return SKUA_STATUS_OK;
  return SKUA_UNSUPPORTED_("resize2d: %s 0 has innermost stride %zu, must be 1", what, t.stride[3]);
}

skua_status make_plan(const skua_op* base, const PlanShapes& s, skua_plan* out) {
  const Config& c = static_cast<const Op*>(base)->config;
  Plan& p = *static_cast<Plan*>(out);
  SKUA_TRY(need_rank(base, s, 0, 4));
  SKUA_TRY(need_type(base, s, 0, skua_dtype(c.type)));
  const skua_tensor& x = s.inputs[0];
  SKUA_TRY(innermost("input", x));
  const bool nhwc = c.layout == SKUA_LAYOUT_NHWC;
  const uint32_t h = nhwc ? 1 : 2, w = h + 1, channel = nhwc ? 3 : 1;
  skua_tensor& y = p.outputs[0];
  y = tensor(x.type, 4);
  memcpy(y.shape, x.shape, sizeof y.shape);
  y.shape[h] = c.out_h;
  y.shape[w] = c.out_w;
  if (x.shape[0] && x.shape[channel]) {
    if (!x.shape[h] || x.shape[h] > INT32_MAX)
      return SKUA_INVALID("resize2d: input 0 has height %zu, must be 1..%d", x.shape[h], INT32_MAX);
    if (!x.shape[w] || x.shape[w] > INT32_MAX)
      return SKUA_INVALID("resize2d: input 0 has width %zu, must be 1..%d", x.shape[w], INT32_MAX);
  }
  p.images = x.shape[0] * (nhwc ? 1 : x.shape[1]);
  p.planes = nhwc ? 1 : x.shape[1];
  p.channels = nhwc ? x.shape[3] : 1;
  p.in_h = x.shape[h]; p.in_w = x.shape[w]; p.out_h = c.out_h; p.out_w = c.out_w;
  p.x_batch = x.stride[0]; p.x_plane = nhwc ? 0 : x.stride[1]; p.x_row = x.stride[h]; p.x_pixel = x.stride[w];
  p.algorithm = c.kind == SKUA_RESIZE_BILINEAR ? "bilinear" : "nearest";
  return SKUA_STATUS_OK;
}

[[maybe_unused]] gpu::ResizeShape gpu_shape(const Plan& p) {
  const Config& c = op_of(&p).config;
  return {p.images,     p.planes, p.channels, p.in_h,    p.in_w,    p.out_h, p.out_w,   p.x_batch,
          p.x_plane,    p.x_row,  p.x_pixel,  p.y_batch, p.y_plane, p.y_row, p.y_pixel, c.kind == SKUA_RESIZE_BILINEAR,
          c.coordinates};
}

skua_status finish(const skua_op* base, skua_plan* out) {
  const Op& op = *static_cast<const Op*>(base);
  Plan& p = *static_cast<Plan*>(out);
  const skua_tensor& y = p.outputs[0];
  SKUA_TRY(innermost("output", y));
  const bool nhwc = op.config.layout == SKUA_LAYOUT_NHWC;
  p.y_batch = y.stride[0];
  p.y_plane = nhwc ? 0 : y.stride[1];
  p.y_row = y.stride[nhwc ? 1 : 2];
  p.y_pixel = y.stride[nhwc ? 2 : 3];
  if (p.out_w == 1) p.y_pixel = p.channels;
  if (p.in_w == 1) p.x_pixel = 0;
  p.by_elements = p.channels < 4 && (op.config.kind == SKUA_RESIZE_BILINEAR || p.y_pixel == p.channels);
  p.kernel = p.by_elements ? op.elements : op.pixels;
  if (!p.channels) return SKUA_STATUS_OK;
  if (element_count(y)) SKUA_ON_GPU(op.ctx, plan_resize(&p, gpu_shape(p), p.chosen));
  constexpr size_t kBlock = 2048;  // floats: two blended rows and the output stay in the first-level cache
  p.block = min(p.out_w, max(kBlock / p.channels, 1));
  p.entries = round_up(p.by_elements ? p.block * p.channels : p.block, 16);
  p.buffer = op.config.kind == SKUA_RESIZE_BILINEAR ? round_up(p.block * p.channels, 16) : 0;
  return SKUA_STATUS_OK;
}

// One worker's: two tables of offsets, weights, two blended rows.
size_t worker_bytes(const Plan& p) {
  return p.entries * (2 * sizeof(size_t) + sizeof(float)) + 2 * p.buffer * sizeof(float);
}

size_t workspace(const skua_plan* plan, uint32_t concurrency) {
  return plan->op->ctx->gpu ? 0 : mul_sat(worker_bytes(plan_of(plan)), concurrency);
}

struct Tables {
  size_t *at0, *at1;
  float* weight;
};

// Offsets and weights of the output pixels [from, from + pixels) of a row.
void fill_tables(const Plan& p, const Config& c, size_t from, size_t pixels, const Tables& t) {
  const size_t each = p.by_elements ? p.channels : 1;
  for (size_t i = 0, e = 0; i < pixels; ++i) {
    Source s = {0, 0, 0};
    if (c.kind == SKUA_RESIZE_BILINEAR)
      s = bilinear(c.coordinates, from + i, p.in_w, p.out_w, is_int8(Element(c.type)));
    else s.first = nearest(c.coordinates, from + i, p.in_w, p.out_w);
    for (size_t k = 0; k < each; ++k, ++e) {
      t.at0[e] = s.first * p.x_pixel + k;
      t.at1[e] = s.second * p.x_pixel + k;
      t.weight[e] = s.weight;
    }
  }
}

struct Task {
  const RunArgs* args;
  size_t pieces;
};

void task(void* arg, size_t index, uint32_t worker) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = plan_of(t.args->plan);
  const Op& op = op_of(t.args->plan);
  const bool blend = op.config.kind == SKUA_RESIZE_BILINEAR;
  const size_t rows = p.images * p.out_h, from = piece_begin(rows, t.pieces, index),
               to = piece_begin(rows, t.pieces, index + 1);
  if (from == to) return;
  char* space = static_cast<char*>(t.args->workspace) + worker * worker_bytes(p);
  size_t* const offsets = reinterpret_cast<size_t*>(space);
  float* const weights = reinterpret_cast<float*>(offsets + 2 * p.entries);
  const Tables tables = {offsets, offsets + p.entries, weights};
  float* const buffer[2] = {weights + p.entries, weights + p.entries + p.buffer};
  const size_t bytes = element_bytes(Element(op.config.type));
  note_use(p.kernel);
  if (blend) note_use(op.rows);
  for (size_t begin = 0; begin < p.out_w; begin += p.block) {
    const size_t pixels = min(p.block, p.out_w - begin), n = pixels * p.channels;
    fill_tables(p, op.config, begin, pixels, tables);
    size_t held[2] = {SIZE_MAX, SIZE_MAX}, held_image = SIZE_MAX;  // source rows in the buffers
    const char* last = nullptr;                                   // the output row before, when it came from held[0]
    for (size_t r = from; r < to; ++r) {
      const size_t image = r / p.out_h, o = r % p.out_h;
      const char* x = t.args->in<char>(0) + (image / p.planes * p.x_batch + image % p.planes * p.x_plane) * bytes;
      char* y = t.args->out<char>(0) +
                (image / p.planes * p.y_batch + image % p.planes * p.y_plane + o * p.y_row + begin * p.y_pixel) * bytes;
      if (image != held_image) held[0] = held[1] = SIZE_MAX;
      held_image = image;
      if (!blend) {
        const size_t source = nearest(op.config.coordinates, o, p.in_h, p.out_h);
        const char* row = x + source * p.x_row * bytes;
        if (!p.by_elements) code_of<ResizeCopyPixelsFn>(p.kernel)(pixels, p.channels, row, tables.at0, y, p.y_pixel);
        else if (source == held[0]) memcpy(y, last, n * bytes);
        else code_of<ResizeCopyElementsFn>(p.kernel)(n, row, tables.at0, y);
        held[0] = source;
        last = y;
        continue;
      }
      const Source s = bilinear(op.config.coordinates, o, p.in_h, p.out_h, is_int8(Element(op.config.type)));
      auto blended = [&](size_t source, size_t other) {  // the buffer with that row; `other` stays
        const int which = held[0] == source ? 0 : held[1] == source ? 1 : held[0] == other ? 1 : 0;
        if (held[which] != source) {
          const char* row = x + source * p.x_row * bytes;
          if (p.by_elements)
            code_of<ResizeBlendElementsFn>(p.kernel)(n, row, tables.at0, tables.at1, weights, buffer[which]);
          else
            code_of<ResizeBlendPixelsFn>(p.kernel)(pixels, p.channels, row, tables.at0, tables.at1, weights,
                                                   buffer[which]);
          held[which] = source;
        }
        return buffer[which];
      };
      const float* a = blended(s.first, s.second);
      const float* b = s.weight == 0 ? a : blended(s.second, s.first);
      const bool dense = p.y_pixel == p.channels;
      code_of<ResizeBlendRowsFn>(op.rows)(dense ? 1 : pixels, dense ? n : p.channels, a, b, s.weight, y, p.y_pixel);
    }
  }
}

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  if (!p.images || !p.channels) return;
  const double per_element = p.by_elements ? 3 : 0.5;
  Task t = {&args, pieces_for(args, p.images * p.out_h, double(p.out_w) * double(p.channels) * per_element + 30)};
  parallel(args, t.pieces, task, &t);
}

#ifdef SKUA_BUILT_gpu
skua_status record(const RecordArgs& args) {
  return gpu::record_resize(args, gpu_shape(plan_of(args.plan)), plan_of(args.plan).chosen);
}
#endif

const OpClass resize_class = {
    .name = "resize2d", .id = 43,
    .op_size = sizeof(Op), .plan_size = sizeof(Plan), .config_offset = offsetof(Op, config),
    .config_size = sizeof(Config),
    .open = open, .plan = make_plan, .finish = finish, .workspace = workspace, .run = run,
    .record = SKUA_RECORD(record),
};

}  // namespace
}  // namespace skua

using namespace skua;

extern "C" skua_status skua_resize2d_create(skua_context* context, const skua_resize2d_desc* desc, skua_op** out) {
  skua_resize2d_desc d = {};
  SKUA_TRY(read_desc("resize2d", context, desc, d, out));
  const bool bytes = is_int8(Element(d.type));
  SKUA_TRY(bytes ? need_int8("resize2d", "type", d.type) : need_float("resize2d", "type", d.type, true));
  SKUA_TRY(need_quantization_of("resize2d", "input_q", d.input_q, d.type));
  SKUA_TRY(need_quantization_of("resize2d", "output_q", d.output_q, d.type));
  if (bytes && (d.input_q.scale != d.output_q.scale || d.input_q.zero_point != d.output_q.zero_point))
    return SKUA_UNSUPPORTED_(
        "resize2d: input_q and output_q differ; a resize keeps the quantisation, use convert for another");
  if (unsigned(d.kind) > SKUA_RESIZE_BILINEAR) return SKUA_INVALID("resize2d: kind is %d, unknown", int(d.kind));
  if (unsigned(d.coordinates) > SKUA_RESIZE_ASYMMETRIC)
    return SKUA_INVALID("resize2d: coordinates is %d, unknown", int(d.coordinates));
  if (unsigned(d.layout) > SKUA_LAYOUT_NCHW) return SKUA_INVALID("resize2d: layout is %d, unknown", int(d.layout));
  if (!d.out_h || d.out_h > INT32_MAX) return SKUA_INVALID("resize2d: out_h is %u, must be 1..%d", d.out_h, INT32_MAX);
  if (!d.out_w || d.out_w > INT32_MAX) return SKUA_INVALID("resize2d: out_w is %u, must be 1..%d", d.out_w, INT32_MAX);
  skua_op* op;
  SKUA_TRY(new_op(resize_class, context, 1, 1, 0, &op));
  static_cast<Op*>(op)->config = {uint32_t(d.kind),   uint32_t(d.type), uint32_t(d.coordinates),
                                  uint32_t(d.layout), d.out_h,          d.out_w};
  return open_op(op, out);
}
