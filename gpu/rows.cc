// Softmax, normalisations, reductions and resize on GPUs. The CPU's classes check, plan the shapes and call these.
#include "core/quantize.h"
#include "gpu/choice.h"
#include "gpu/launch.h"

namespace skua::gpu {
namespace {

skua_status too_large(const skua_plan* plan) {
  return SKUA_UNSUPPORTED_("%s: a tensor reaches over 2^31 elements; kernels count in 32 bits", plan->op->cls->name);
}
bool fits(const skua_plan* plan) {
  for (size_t i = 0; i < plan->n_inputs; ++i)
    if (span_of(plan->inputs[i]).bytes / span_of(plan->inputs[i]).element > INT32_MAX ||
        element_count(plan->inputs[i]) > INT32_MAX)
      return false;
  const skua_span y = span_of(plan->outputs[0]);
  return y.bytes / y.element <= INT32_MAX && element_count(plan->outputs[0]) <= INT32_MAX;
}

// Threads that share a row: a power of 2, no more than it has elements for.
uint16_t row_threads(const skua_plan* plan, size_t n) {
  const Description& about = plan->op->ctx->gpu->about;
  uint16_t threads = 256;
  while (threads > 32 &&
         (threads > about.group_threads || threads > 2 * line_threads(about) || size_t(threads) / 2 >= n))
    threads /= 2;
  return threads;
}
// The text of rows: `first`, or the one behind it, by subgroups, of `variants` in each type.
const KernelText& rows_text(const skua_plan* plan, const KernelTexts& texts, int first, int variants, skua_dtype type,
                            uint16_t threads, bool by_subgroups = true) {
  return text_of(texts, first + (by_subgroups && choose_subgroups(plan->op->ctx->gpu->about, threads)), variants, type);
}
bool is_bytes(const skua_plan* plan) { return is_int8(Element(plan->inputs[0].type)); }
bool is_u8(const skua_plan* plan) { return plan->inputs[0].type == SKUA_DTYPE_U8; }
bool is_kept(const Chosen& c) { return strstr(c.text->name, "kept") != nullptr; }
bool is_row(const KernelText& text) { return strstr(text.name, "rows") != nullptr; }

// Rows that stay in the registers of a work-group: by vectors of 4, 4 a thread (KEPT of the texts). 0: this row does
// not, else the threads.
constexpr size_t kKept = 4;
uint16_t kept_threads(const skua_plan* plan, size_t n) {
  if (n % 4 || n / 4 > kKept * row_threads(plan, n / 4)) return 0;
  uint16_t threads = row_threads(plan, n / 4);
  while (threads > 32 && n / 4 <= kKept * threads / 2) threads /= 2;
  return threads;
}

// A work-group, or a thread, for each of `count` results.
skua_status record_all(Launch& l, const Chosen& c, size_t count) {
  return is_row(*c.text) ? l.record_groups(c, {{count, 1, 1}}) : l.record(c, count);
}

}  // namespace

// ---- softmax --------------------------------------------------------------------------------------------------------
namespace {

// `aligned`: the offsets are multiples of 4.
skua_status choose_softmax(const skua_plan* plan, const SoftmaxShape& s, bool aligned, Chosen& chosen) {
  const bool rows = s.inner == 1;
  const skua_dtype type = plan->outputs[0].type;
  aligned = aligned && rows && s.x_step == 1 && s.y_step == 1 && s.x_block % 4 == 0 && s.y_block % 4 == 0;
  const uint16_t kept = aligned ? kept_threads(plan, s.n) : uint16_t(0),
                 threads = kept   ? kept
                           : rows ? row_threads(plan, s.n)
                                  : line_threads(plan->op->ctx->gpu->about);
  const KernelText& text =
      rows ? rows_text(plan, softmax_texts, kept ? softmax_f32_kept_rows : softmax_f32_rows, 5, type, threads)
           : text_of(softmax_texts, softmax_f32_columns, 5, type);
  return choose(plan->op, {&text, {threads, 1, 1}, {s.logarithm, threads}}, chosen);
}

}  // namespace

skua_status plan_softmax(skua_plan* plan, const SoftmaxShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  const bool rows = s.inner == 1;
  if (is_bytes(plan)) {
    constexpr size_t kMost = 65000;  // sums of their exponentials fit two words
    if (s.n > kMost) return SKUA_UNSUPPORTED_("softmax: %zu bytes along the axis, at most %zu on a GPU", s.n, kMost);
    const uint16_t threads = rows ? row_threads(plan, s.n) : line_threads(plan->op->ctx->gpu->about);
    plan->text = &softmax_bytes_texts.texts[rows ? softmax_bytes_s8_rows : softmax_bytes_s8_columns];
    return choose(plan->op, {plan->text, {threads, 1, 1}, {threads}}, chosen);
  }
  SKUA_TRY(choose_softmax(plan, s, true, chosen));
  plan->text = chosen.text;
  return SKUA_STATUS_OK;
}

skua_status open_softmax_bytes(const skua_op* op, bool logarithm, const int32_t (&powers)[256],
                               skua_device_buffer** there) {
  if (logarithm)
    return SKUA_UNSUPPORTED_(
        "softmax: log is true; the logarithm of a sum of bytes is made of double, which GPUs may lack");
  return upload(op, powers, sizeof powers, there);
}

skua_status record_softmax(const RecordArgs& args, const SoftmaxShape& s, const Chosen& planned,
                           const SoftmaxOfBytes* bytes) {
  Launch l(args);
  const size_t x = size_t(l.input(0)), y = size_t(l.output(0)), count = s.outer * s.inner;
  if (bytes) l.bind_own(bytes->powers);
  Chosen chosen = planned;
  if (is_kept(chosen) && (x % 4 || y % 4)) SKUA_TRY(choose_softmax(args.plan, s, false, chosen));
  const size_t v = is_kept(chosen) ? 4 : 1, values[] = {s.n / v, s.outer, s.inner, s.per_block, s.n * s.inner / v};
  for (size_t value : values) l.add_size(value);
  l.add_offset(0, x, uint32_t(v));
  l.add_size(s.x_block / v);
  l.add_size(s.x_step);
  l.add_offset(1, y, uint32_t(v));
  l.add_size(s.y_block / v);
  l.add_size(s.y_step);
  if (bytes) {
    const int32_t step = bits_of(bytes->step);  // above 0, no denormal
    l.add(bytes->flip); l.add((step & 0x7fffff) | 0x800000); l.add((step >> 23) - 150);
    l.add(bytes->to.zero_point); l.add(bits_of(bytes->to.low)); l.add(bits_of(bytes->to.high));
  } else {
    l.add(bits_of(s.scale));
  }
  return record_all(l, chosen, count);
}

// ---- normalisation --------------------------------------------------------------------------------------------------
namespace {

skua_status choose_norm(const skua_plan* plan, const NormShape& s, bool aligned, Chosen& chosen) {
  const size_t n = s.extent[0] * s.extent[1] * s.extent[2];
  aligned = aligned && n == s.extent[0] && s.x[0] == 1 && s.y[0] == 1 && s.channel[0] == 1 && s.row_channel == 0;
  for (int i = 0; i < 3; ++i) aligned = aligned && s.row_x[i] % 4 == 0 && s.row_y[i] % 4 == 0;
  const uint16_t kept = aligned ? kept_threads(plan, n) : uint16_t(0), threads = kept ? kept : row_threads(plan, n);
  return choose(
      plan->op,
      {&rows_text(plan, norm_texts, kept ? norm_f32_kept_rows : norm_f32_rows, 4, plan->outputs[0].type, threads),
       {threads, 1, 1},
       {s.rms, threads}},
      chosen);
}

}  // namespace

skua_status plan_norm(skua_plan* plan, const NormShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  SKUA_TRY(choose_norm(plan, s, true, chosen));
  plan->text = chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_norm(const RecordArgs& args, const NormShape& s, const Chosen& planned,
                        const skua_device_buffer* factors, size_t channels) {
  Launch l(args);
  const size_t x = size_t(l.input(0));
  l.bind_own(factors);
  const size_t y = size_t(l.output(0)), rows = s.rows[0] * s.rows[1] * s.rows[2];
  Chosen chosen = planned;
  if (is_kept(chosen) && (x % 4 || y % 4)) SKUA_TRY(choose_norm(args.plan, s, false, chosen));
  const size_t v = is_kept(chosen) ? 4 : 1;
  const size_t counts[] = {s.extent[0] * s.extent[1] * s.extent[2] / v, rows, s.extent[0], s.extent[1]};
  for (size_t value : counts) l.add_size(value);
  const size_t* const steps[] = {s.x, s.y, s.channel};
  for (const size_t* step : steps)
    for (int i = 0; i < 3; ++i) l.add_size(step[i]);
  l.add_size(s.rows[0]);
  l.add_size(s.rows[1]);
  const size_t* const row_steps[] = {s.row_x, s.row_y};
  for (const size_t* step : row_steps)
    for (int i = 0; i < 3; ++i) l.add_size(step[i] / v);
  l.add_size(s.row_channel);
  l.add_offset(0, x, uint32_t(v));
  l.add_offset(2, y, uint32_t(v));
  l.add_size(round_up(channels, 4) / v);
  l.add(bits_of(s.epsilon));
  return record_all(l, chosen, rows);
}

// ---- reduction ------------------------------------------------------------------------------------------------------
namespace {

size_t terms_of(const ReduceShape& s) { return s.reduced[0] * s.reduced[1] * s.reduced[2]; }
size_t results_of(const ReduceShape& s) { return s.kept[0] * s.kept[1] * s.kept[2]; }

// `n`: terms of this dispatch. Parts are joined by rows, whatever they were cut from.
ProgramKey reduce_key(const skua_plan* plan, const ReduceShape& s, bool vectors, Part part, size_t n) {
  const bool arg = plan->outputs[0].type == SKUA_DTYPE_S32, rows = s.along_rows || part == Part::joins;
  const uint16_t threads = rows ? row_threads(plan, vectors ? n / 16 : n) : line_threads(plan->op->ctx->gpu->about);
  if (is_bytes(plan))
    return {&reduce_bytes_texts.texts[rows ? reduce_bytes_s8_rows : reduce_bytes_s8_columns],
            {threads, 1, 1},
            {int32_t(s.kind), threads, is_u8(plan), int32_t(part)}};
  const int first = arg       ? (rows ? reduce_f32_arg_rows : reduce_f32_arg_columns)
                    : vectors ? reduce_f32_vector_rows
                    : rows    ? reduce_f32_rows
                              : reduce_f32_columns;
  const skua_dtype type = plan->inputs[0].type;
  // There is no instruction for products on OpenCL.
  const KernelText& text = rows && !arg
                               ? rows_text(plan, reduce_texts, first, 7, type, threads, s.kind != SKUA_REDUCE_PROD)
                               : text_of(reduce_texts, first, 7, type);
  // Long columns are shared by threads, 16 of them by a work-group.
  const uint16_t slices = !rows && !arg && n >= 64 && threads >= 32 ? uint16_t(threads / 16) : uint16_t(1);
  return {&text, {uint16_t(threads / slices), slices, 1}, {int32_t(s.kind), threads, slices, int32_t(part)}};
}

skua_status record_pass(const RecordArgs& args, const ReduceShape& s, const ReduceStep& step, Part part,
                        const ReduceOfBytes* bytes) {
  Launch l(args);
  const size_t x = size_t(l.input(0)), y = size_t(l.output(0)), results = results_of(s), terms = terms_of(s);
  const size_t space =
      part == Part::all ? 0
                        : size_t(l.bind(*args.workspace, {step.workspace, sizeof(float), true}, part == Part::gives));
  Chosen chosen = part == Part::joins ? step.joins : step.chosen;
  const auto by_vectors = [&] { return strstr(chosen.text->name, "vector") != nullptr; };
  if (by_vectors() && x % 4) SKUA_TRY(choose(args.plan->op, reduce_key(args.plan, s, false, part, step.share), chosen));
  const size_t v = by_vectors() ? 4 : 1, n = part == Part::joins ? step.parts : terms / v,
               share = part == Part::joins ? step.parts : step.share / v;
  l.add_size(n);
  l.add_size(share);
  if (!bytes) l.add_size(terms);
  const size_t values[] = {results,           s.reduced[0], s.reduced[1], s.reduced_step[0],  s.reduced_step[1],
                           s.reduced_step[2], s.kept[0],    s.kept[1],    s.kept_step[0] / v, s.kept_step[1] / v,
                           s.kept_step[2] / v};
  for (size_t value : values) l.add_size(value);
  l.add_offset(0, x, uint32_t(v));
  l.add_offset(1, y);
  if (part == Part::all) l.bind_again(1);
  l.add_offset(2, space);
  if (bytes) {
    l.add(bytes->zeros - (is_u8(args.plan) ? 128 * bytes->terms : 0)); l.add(bits_of(bytes->factor));
    l.add(bytes->to.zero_point); l.add(bits_of(bytes->to.low)); l.add(bits_of(bytes->to.high));
  }
  return l.record_groups(chosen, {{is_row(*chosen.text) ? results : ceil_div(results, chosen.local[0]),
                                   part == Part::gives ? step.parts : 1, 1}});
}

}  // namespace

skua_status plan_reduce(skua_plan* plan, const ReduceShape& s, ReduceStep& step) {
  if (!fits(plan)) return too_large(plan);
  const size_t terms = terms_of(s), results = results_of(s);
  bool vectors = s.along_rows && !is_bytes(plan) && plan->outputs[0].type != SKUA_DTYPE_S32 && terms == s.reduced[0] &&
                 s.reduced_step[0] == 1 && terms % 4 == 0;
  for (size_t kept : s.kept_step) vectors = vectors && kept % 4 == 0;
  ProgramKey key = reduce_key(plan, s, vectors, Part::all, terms);
  const bool rows = is_row(*key.text);
  const size_t v = vectors ? 4 : 1, groups = rows ? results : ceil_div(results, key.local[0]);
  const size_t parts =
      choose_parts(plan->op->ctx->gpu->about, terms / v, groups, key.local[0] * key.local[1], key.local[rows ? 0 : 1]);
  step.share = round_up(ceil_div(terms, parts), v);
  step.parts = ceil_div(terms, step.share);
  if (step.parts > 1) {
    step.workspace = step.parts * results * sizeof(float);
    key = reduce_key(plan, s, vectors, Part::gives, step.share);
    SKUA_TRY(choose(plan->op, reduce_key(plan, s, false, Part::joins, step.parts), step.joins));
  }
  SKUA_TRY(choose(plan->op, key, step.chosen));
  plan->text = key.text;
  return SKUA_STATUS_OK;
}

skua_status record_reduce(const RecordArgs& args, const ReduceShape& s, const ReduceStep& step,
                          const ReduceOfBytes* bytes) {
  SKUA_TRY(record_pass(args, s, step, step.parts > 1 ? Part::gives : Part::all, bytes));
  return step.parts > 1 ? record_pass(args, s, step, Part::joins, bytes) : SKUA_STATUS_OK;
}

// ---- resize ---------------------------------------------------------------------------------------------------------
namespace {

const KernelText& resize_text(const skua_plan* plan, bool vectors) {
  if (is_bytes(plan)) return resize_bytes_texts.texts[vectors ? resize_bytes_s8_v4 : resize_bytes_s8_v1];
  return text_of(resize_texts, vectors ? resize_f32_v4 : resize_f32_v1, 2, plan->outputs[0].type);
}
// `aligned`: the offsets are multiples of 4.
skua_status choose_resize(const skua_plan* plan, const ResizeShape& s, bool aligned, Chosen& chosen) {
  bool vectors = aligned && s.channels % 4 == 0;
  const size_t steps[] = {s.x_batch, s.x_plane, s.x_row, s.x_pixel, s.y_batch, s.y_plane, s.y_row, s.y_pixel};
  for (size_t step : steps) vectors = vectors && step % 4 == 0;
  const WorkGroup group = map_group(plan->op->ctx->gpu->about, s.channels / (vectors ? 4 : 1));
  return choose(plan->op,
                {&resize_text(plan, vectors),
                 {group.local[0], group.local[1], group.local[2]},
                 {s.bilinear, int32_t(s.coordinates), is_u8(plan)}},
                chosen);
}

}  // namespace

skua_status plan_resize(skua_plan* plan, const ResizeShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  const size_t most = INT32_MAX / 4;
  if (mul_sat(s.in_h, s.out_h) > most || mul_sat(s.in_w, s.out_w) > most)
    return SKUA_UNSUPPORTED_("resize2d: %zu to %zu rows or %zu to %zu columns are too many; kernels count in 32 bits",
                             s.in_h, s.out_h, s.in_w, s.out_w);
  // weights are quotients of (512 * rest + den) by 2 * den, where rest < den = 2 * out
  constexpr size_t kMostOfBytes = INT32_MAX / 1026;
  if (is_bytes(plan) && s.bilinear && max(s.out_h, s.out_w) > kMostOfBytes)
    return SKUA_UNSUPPORTED_("resize2d: %zu x %zu bytes; a blend has %zu in a dimension at most on a GPU", s.out_h,
                             s.out_w, kMostOfBytes);
  SKUA_TRY(choose_resize(plan, s, true, chosen));
  plan->text = chosen.text;
  return SKUA_STATUS_OK;
}

skua_status record_resize(const RecordArgs& args, const ResizeShape& s, const Chosen& planned) {
  Launch l(args);
  const size_t x = size_t(l.input(0)), y = size_t(l.output(0));
  Chosen chosen = planned;
  const KernelText* const v4 = &resize_text(args.plan, true);
  if (chosen.text == v4 && (x % 4 || y % 4)) SKUA_TRY(choose_resize(args.plan, s, false, chosen));
  const size_t v = chosen.text == v4 ? 4 : 1;
  const size_t counts[] = {s.channels / v, s.out_w, s.out_h, s.in_w, s.in_h, s.planes};
  const size_t x_steps[] = {s.x_batch, s.x_plane, s.x_row, s.x_pixel},
               y_steps[] = {s.y_batch, s.y_plane, s.y_row, s.y_pixel};
  for (size_t count : counts) l.add_size(count);
  l.add_offset(0, x, uint32_t(v));
  for (size_t step : x_steps) l.add_size(step / v);
  l.add_offset(1, y, uint32_t(v));
  for (size_t step : y_steps) l.add_size(step / v);
  return l.record(chosen, s.channels / v, ceil_div(s.out_w, v), s.out_h * s.images);  // v pixels a thread, too
}

}  // namespace skua::gpu
