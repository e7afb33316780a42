// Normalisations on the CPU: what a task does, and how work is cut. The ways: normalize/README.md.
#include "core/families.h"
#include "normalize/norm.h"
#include "normalize/norm_kernel.h"

namespace skua {
namespace norm {
namespace {

struct Task {
  const Plan* plan;
  const Op* op;
  const char* x;
  char* y;
  size_t element;        // bytes
  float *scale, *shift;  // of all images
  size_t units, pieces;
};

void rows_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const size_t from = piece_begin(p.count, t.pieces, index), to = piece_begin(p.count, t.pieces, index + 1);
  const uint32_t last = p.rows.rank - 1;
  const ptrdiff_t bytes = ptrdiff_t(t.element);
  note_use(t.op->rows);
  walk(p.rows, from, to, [&](ptrdiff_t x, ptrdiff_t y, size_t rows) {
    code_of<NormRowsFn>(t.op->rows)(rows, p.n, t.x + x * bytes, size_t(p.rows.x[last]), t.y + y * bytes,
                                    size_t(p.rows.y[last]), t.op->gamma, t.op->beta, t.op->config.epsilon);
  });
}

// NHWC: pixels times scale plus shift; the factors are those of the image.
void pixels_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const size_t image = index / t.pieces, piece = index % t.pieces;
  const uint32_t last = p.rows.rank - 1;
  const float *scale = t.scale + image * p.n, *shift = t.shift + image * p.n;
  const ptrdiff_t bytes = ptrdiff_t(t.element);
  const char* const from = t.x + image * p.x_image * t.element;
  char* const to = t.y + image * p.y_image * t.element;
  note_use(t.op->affine);
  walk(p.rows, piece_begin(p.count, t.pieces, piece), piece_begin(p.count, t.pieces, piece + 1),
       [&](ptrdiff_t x, ptrdiff_t y, size_t pixels) {
         code_of<NormAffineFn>(t.op->affine)(pixels, p.n, from + x * bytes, size_t(p.rows.x[last]), to + y * bytes,
                                             size_t(p.rows.y[last]), scale, shift);
       });
}

size_t group_count(const Op& op) {
  return op.config.kind == SKUA_NORM_GROUP ? op.config.groups : size_t(op.config.channels);
}

// Scale and shift of the channels [c0, c0 + channels), which share mean and squared deviations over `count` elements.
void set_factors(const Op& op, size_t c0, size_t channels, double mean, double squares, double count, float* scale,
                 float* shift) {
  const double factor = 1 / __builtin_sqrt(squares / count + double(op.config.epsilon));
  for (size_t c = 0; c < channels; ++c) {
    const double s = factor * double(op.gamma[c0 + c]);
    scale[c] = float(s);
    shift[c] = float(double(op.beta[c0 + c]) - mean * s);
  }
}

// NHWC: statistics of some groups of an image, all pixels.
void statistics_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const Op& op = *t.op;
  const size_t image = index / t.pieces, piece = index % t.pieces, groups = group_count(op), each = p.n / groups;
  const size_t g0 = piece_begin(groups, t.pieces, piece), g1 = piece_begin(groups, t.pieces, piece + 1), c0 = g0 * each,
               channels = (g1 - g0) * each;
  if (g0 == g1) return;
  const uint32_t last = p.rows.rank - 1;
  // Until the factors are there, shift holds the means and scale the sums.
  float *scale = t.scale + image * p.n + c0, *shift = t.shift + image * p.n + c0;
  const char* const from = t.x + (image * p.x_image + c0) * t.element;
  auto sums = [&](const Kernel* kernel, const float* mean, float* to) {
    bool add = false;
    note_use(kernel);
    walk(p.rows, 0, p.count, [&](ptrdiff_t x, ptrdiff_t, size_t pixels) {
      code_of<NormSumColumnsFn>(kernel)(pixels, channels, from + x * ptrdiff_t(t.element), size_t(p.rows.x[last]), mean,
                                        to, add);
      add = true;
    });
  };
  const double count = double(p.count) * double(each);
  sums(op.sum, nullptr, shift);
  for (size_t g = 0; g < g1 - g0; ++g) {
    double sum = 0;
    for (size_t c = 0; c < each; ++c) sum += double(shift[g * each + c]);
    for (size_t c = 0; c < each; ++c) shift[g * each + c] = float(sum / count);
  }
  sums(op.squares, shift, scale);
  for (size_t g = 0; g < g1 - g0; ++g) {
    double squares = 0;
    for (size_t c = 0; c < each; ++c) squares += double(scale[g * each + c]);
    set_factors(op, c0 + g * each, each, double(shift[g * each]), squares, count, scale + g * each, shift + g * each);
  }
}

// NCHW: groups of channels (BATCH: single channels), each with its statistics, of all images.
void planes_task(void* arg, size_t index, uint32_t) {
  const Task& t = *static_cast<const Task*>(arg);
  const Plan& p = *t.plan;
  const Op& op = *t.op;
  const size_t groups = group_count(op), each = size_t(op.config.channels) / groups;
  const uint32_t last = p.rows.rank - 1;
  note_use(op.affine);
  for (size_t u = piece_begin(t.units, t.pieces, index); u < piece_begin(t.units, t.pieces, index + 1); ++u) {
    const size_t image = u / groups, c0 = u % groups * each;
    const ptrdiff_t bytes = ptrdiff_t(t.element);
    const char* x = t.x + (image * p.x_image + c0 * p.x_channel) * t.element;
    char* y = t.y + (image * p.y_image + c0 * p.y_channel) * t.element;
    double mean = 0, squares = 0;
    const double count = double(p.count) * double(p.n) * double(each);
    if (has_statistics(op.config.kind)) {
      auto sums = [&](const Kernel* kernel, float about) {
        double total = 0;
        note_use(kernel);
        for (size_t c = 0; c < each; ++c)
          walk(p.rows, 0, p.count, [&](ptrdiff_t off, ptrdiff_t, size_t rows) {
            total += double(code_of<NormSumRowsFn>(kernel)(rows, p.n, x + (ptrdiff_t(c * p.x_channel) + off) * bytes,
                                                           size_t(p.rows.x[last]), about));
          });
        return total;
      };
      mean = double(float(sums(op.sum, 0) / count));
      squares = sums(op.squares, float(mean));
    }
    for (size_t c = 0; c < each; ++c) {
      float scale = op.gamma[c0 + c], shift = op.beta[c0 + c];
      if (has_statistics(op.config.kind)) set_factors(op, c0 + c, 1, mean, squares, count, &scale, &shift);
      walk(p.rows, 0, p.count, [&](ptrdiff_t x_off, ptrdiff_t y_off, size_t rows) {
        code_of<NormAffineFn>(op.affine)(rows, p.n, x + (ptrdiff_t(c * p.x_channel) + x_off) * bytes,
                                         size_t(p.rows.x[last]), y + (ptrdiff_t(c * p.y_channel) + y_off) * bytes,
                                         size_t(p.rows.y[last]), &scale, &shift);
      });
    }
  }
}

}  // namespace

void run(const RunArgs& args) {
  const Plan& p = plan_of(args.plan);
  const Op& op = op_of(args.plan);
  const Config& c = op.config;
  if (element_count(p.outputs[0]) == 0) return;
  Task t = {&p, &op, args.in<char>(0), args.out<char>(0), element_bytes(Element(c.type)), nullptr, nullptr, 1, 1};
  const double row_cycles = double(p.n) * 0.3;  // one pass, from the second-level cache
  if (by_rows(c.kind)) {
    t.pieces = pieces_for(args, p.count, 3 * row_cycles + 40);
    parallel(args, t.pieces, rows_task, &t);
  } else if (c.layout == SKUA_LAYOUT_NCHW) {
    t.units = p.images * group_count(op);
    const double plane = row_cycles * double(p.count) * double(c.channels / group_count(op));
    t.pieces = pieces_for(args, t.units, has_statistics(c.kind) ? 3 * plane + 60 : plane + 10);
    parallel(args, t.pieces, planes_task, &t);
  } else {
    t.scale = const_cast<float*>(op.gamma);
    t.shift = const_cast<float*>(op.beta);
    if (has_statistics(c.kind)) {
      t.scale = static_cast<float*>(args.workspace);
      t.shift = t.scale + p.images * p.n;
      const size_t groups = group_count(op);
      // At least a few cache lines of channels a task.
      const size_t units = min(groups, ceil_div(p.n, 64));
      t.pieces =
          min(units,
              ceil_div(pieces_for(args, units * p.images, 2 * row_cycles * double(p.count) / double(units)), p.images));
      parallel(args, t.pieces * p.images, statistics_task, &t);
    }
    t.pieces = ceil_div(pieces_for(args, p.count * p.images, row_cycles + 4), p.images);
    parallel(args, t.pieces * p.images, pixels_task, &t);
  }
}

}  // namespace norm
}  // namespace skua
