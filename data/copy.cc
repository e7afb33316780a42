#include "data/copy.h"

#include "core/families.h"
#include "gpu/operators.h"

namespace skua {

skua_status need_movable(const char* op, skua_dtype type) {
  if (!skua_dtype_bits(type)) return SKUA_INVALID("%s: type is %d, unknown", op, int(type));
  if (skua_dtype_bits(type) < 8)
    return SKUA_UNSUPPORTED_("%s: type is %s, whose elements are parts of bytes; it takes types of 32, 16 and 8 bits",
                             op, skua_dtype_name(type));
  return SKUA_STATUS_OK;
}

skua_status find_copy_kernels(const skua_op* op, skua_dtype type, CopyKernels& to) {
  const int bytes = int(skua_dtype_bits(type) / 8);
  to.element = size_t(bytes);
  SKUA_ON_GPU(op->ctx, need_gpu_movable(op->ctx, op->cls->name, "type", type));
  to.rows = find_kernel(op->ctx, data_tables, KernelKind::copy_rows, bytes);
  to.transposed = find_kernel(op->ctx, data_tables, KernelKind::copy_transposed, bytes);
  to.strided = find_kernel(op->ctx, data_tables, KernelKind::copy_strided, bytes);
  if (to.rows && to.transposed && to.strided) return SKUA_STATUS_OK;
  return SKUA_UNSUPPORTED_("%s: no kernel in this build", op->cls->name);
}

namespace {

size_t magnitude(ptrdiff_t stride) { return stride < 0 ? size_t(0) - size_t(stride) : size_t(stride); }

// Sorted so that y is walked in the order of memory, then merged.
void simplify(Nest& n) {
  for (uint32_t d = 1; d < n.rank; ++d)
    for (uint32_t at = d; at > 0 && magnitude(n.y[at - 1]) < magnitude(n.y[at]); --at) n.swap(at - 1, at);
  n.merge();
}

}  // namespace

Copy make_copy(const CopyKernels& kernels, const Nest& from) {
  Copy c = {};
  c.elements = 1;
  c.element = kernels.element;
  for (uint32_t d = 0; d < from.rank; ++d) c.elements *= from.extent[d];
  c.lines = c.group = 1;
  c.kernel = kernels.rows;
  if (!c.elements) return c;
  Nest& n = c.nest;
  n = from;
  simplify(n);
  if (n.rank == 1) {
    n.add(1, 0, 0);
    n.swap(0, 1);
  }
  const uint32_t last = n.rank - 1;
  if (n.y[last] == 1 && n.x[last] == 1) {
    c.kernel = kernels.rows;
  } else {
    c.kernel = kernels.strided;
    for (uint32_t d = 0; d < last && n.y[last] == 1; ++d)
      if (n.x[d] == 1) {  // to the place before the last
        for (; d + 1 < last; ++d) n.swap(d, d + 1);
        c.kernel = kernels.transposed;
        c.group = 64 / c.element;
        break;
      }
  }
  for (uint32_t d = 0; d < last; ++d) c.lines *= n.extent[d];
  return c;
}

double copy_cycles(const Copy& c) {
  switch (c.kernel->kind) {
    case KernelKind::copy_rows: return 0.5;
    case KernelKind::copy_transposed: return 1;
    default: return 1.5;
  }
}

void run_copy(const Copy& c, const void* from_x, void* to_y, size_t piece, size_t pieces) {
  if (!c.elements) return;
  const Nest& n = c.nest;
  const uint32_t row_dim = n.rank - 2, last = n.rank - 1;
  const size_t rows = n.extent[row_dim], groups_per_nest = ceil_div(rows, c.group),
               groups = c.lines / rows * groups_per_nest;
  // Whole lines are shared out when there are enough, parts of lines otherwise.
  size_t from = 0, to = groups, first = 0, end = n.extent[last];
  if (groups >= pieces) {
    from = piece_begin(groups, pieces, piece);
    to = piece_begin(groups, pieces, piece + 1);
  } else {
    const size_t line = 64 / c.element, blocks = ceil_div(end, line);
    first = piece_begin(blocks, pieces, piece) * line;
    end = min(end, piece_begin(blocks, pieces, piece + 1) * line);
  }
  if (from >= to || first >= end) return;
  note_use(c.kernel);
  const ptrdiff_t bytes = ptrdiff_t(c.element);
  const char* x = static_cast<const char*>(from_x) + ptrdiff_t(first) * n.x[last] * bytes;
  char* y = static_cast<char*>(to_y) + ptrdiff_t(first) * n.y[last] * bytes;
  const size_t count = end - first;
  size_t in = from % groups_per_nest;
  for (Place outer(n, row_dim, from / groups_per_nest); from < to; outer.next(), in = 0) {
    const size_t taken = min(groups_per_nest - in, to - from), row = in * c.group,
                 many = min(rows - row, taken * c.group);
    const char* a = x + (outer.x + ptrdiff_t(row) * n.x[row_dim]) * bytes;
    char* b = y + (outer.y + ptrdiff_t(row) * n.y[row_dim]) * bytes;
    switch (c.kernel->kind) {
      case KernelKind::copy_rows: code_of<CopyRowsFn>(c.kernel)(many, count, a, n.x[row_dim], b, n.y[row_dim]); break;
      case KernelKind::copy_transposed:
        code_of<CopyTransposedFn>(c.kernel)(many, count, a, n.x[last], b, n.y[row_dim]);
        break;
      default:
        code_of<CopyStridedFn>(c.kernel)(many, count, a, n.x[row_dim], n.x[last], b, n.y[row_dim], n.y[last]);
        break;
    }
    from += taken;
  }
}

void run_copy(const RunArgs& args, const Copy& copy, const void* x, void* y) {
  if (!copy.elements) return;
  struct Task {
    const Copy* copy;
    const void* x;
    void* y;
    size_t pieces;
  } task = {&copy, x, y, pieces_for(args, copy.elements, copy_cycles(copy))};
  parallel(args, task.pieces, [](void* arg, size_t i, uint32_t) {
    const Task& t = *static_cast<const Task*>(arg);
    run_copy(*t.copy, t.x, t.y, i, t.pieces);
  }, &task);
}

}  // namespace skua
