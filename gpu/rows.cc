// Softmax, normalisations, reductions and resize on GPUs. The CPU's classes check, plan the shapes and call these.
#include "core/quantize.h"
#include "gpu/choice.h"
#include "gpu/launch.h"

namespace skua::gpu {
namespace {

skua_status too_large(const skua_plan* plan) { return SKUA_UNSUPPORTED_("%s: a tensor reaches over 2^31 elements; kernels count in 32 bits", plan->op->cls->name); }
bool fits(const skua_plan* plan) {
  for (size_t i = 0; i < plan->n_inputs; ++i)
    if (span_of(plan->inputs[i]).bytes / span_of(plan->inputs[i]).element > INT32_MAX || element_count(plan->inputs[i]) > INT32_MAX) return false;
  const skua_span y = span_of(plan->outputs[0]);
  return y.bytes / y.element <= INT32_MAX && element_count(plan->outputs[0]) <= INT32_MAX;
}

// Threads that share a row: a power of 2, no more than it has elements for.
uint16_t row_threads(const skua_plan* plan, size_t n) {
  const Description& about = plan->op->ctx->gpu->about;
  uint16_t threads = 256;
  while (threads > 32 && (threads > about.group_threads || threads > 2 * line_threads(about) || size_t(threads) / 2 >= n)) threads /= 2;
  return threads;
}
// The text of rows: `first`, or the one behind it, by subgroups, of `variants` in each type.
const KernelText& rows_text(const skua_plan* plan, const KernelTexts& texts, int first, int variants, skua_dtype type, uint16_t threads, bool by_subgroups = true) {
  return text_of(texts, first + (by_subgroups && choose_subgroups(plan->op->ctx->gpu->about, threads)), variants, type);
}
bool is_bytes(const skua_plan* plan) { return is_int8(Element(plan->inputs[0].type)); }
bool is_u8(const skua_plan* plan) { return plan->inputs[0].type == SKUA_DTYPE_U8; }
bool is_row(const Chosen& c) { return strstr(c.text->name, "rows") != nullptr; }

// A work-group, or a thread, for each of `count` results.
skua_status record_all(Launch& l, const Chosen& c, size_t count) { return is_row(c) ? l.record_groups(c, {{count, 1, 1}}) : l.record(c, count); }

}  // namespace

// ---- softmax -------------------------------------------------------------------------------------------------------------------
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
  const uint16_t threads = rows ? row_threads(plan, s.n) : line_threads(plan->op->ctx->gpu->about);
  const skua_dtype type = plan->outputs[0].type;
  const KernelText& text = rows ? rows_text(plan, softmax_texts, softmax_f32_rows, 3, type, threads) : text_of(softmax_texts, softmax_f32_columns, 3, type);
  SKUA_TRY(choose(plan->op, {&text, {threads, 1, 1}, {s.logarithm, threads}}, chosen));
  plan->text = &text;
  return SKUA_STATUS_OK;
}

skua_status open_softmax_bytes(const skua_op* op, bool logarithm, const int32_t (&powers)[256], skua_device_buffer** there) {
  if (logarithm) return SKUA_UNSUPPORTED_("softmax: log is true; the logarithm of a sum of bytes is made of double, which GPUs may lack");
  return upload(op, powers, sizeof powers, there);
}

skua_status record_softmax(const RecordArgs& args, const SoftmaxShape& s, const Chosen& chosen, const SoftmaxOfBytes* bytes) {
  Launch l(args);
  const int32_t x = l.input(0), y = l.output(0);
  if (bytes) l.bind_own(bytes->powers);
  const size_t count = s.outer * s.inner, values[] = {s.n, s.outer, s.inner, s.per_block, s.n * s.inner};
  for (size_t v : values) l.add_size(v);
  l.add_offset(0, size_t(x));
  l.add_size(s.x_block);
  l.add_size(s.x_step);
  l.add_offset(1, size_t(y));
  l.add_size(s.y_block);
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

// ---- normalisation -------------------------------------------------------------------------------------------------------------
skua_status plan_norm(skua_plan* plan, const NormShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  const uint16_t threads = row_threads(plan, s.extent[0] * s.extent[1] * s.extent[2]);
  const KernelText& text = rows_text(plan, norm_texts, norm_f32_rows, 2, plan->outputs[0].type, threads);
  SKUA_TRY(choose(plan->op, {&text, {threads, 1, 1}, {s.rms, threads}}, chosen));
  plan->text = &text;
  return SKUA_STATUS_OK;
}

skua_status record_norm(const RecordArgs& args, const NormShape& s, const Chosen& chosen, const skua_device_buffer* factors, size_t channels) {
  Launch l(args);
  const int32_t x = l.input(0);
  l.bind_own(factors);
  const int32_t y = l.output(0);
  const size_t rows = s.rows[0] * s.rows[1] * s.rows[2];
  const size_t counts[] = {s.extent[0] * s.extent[1] * s.extent[2], rows, s.extent[0], s.extent[1]};
  for (size_t v : counts) l.add_size(v);
  const size_t* const steps[] = {s.x, s.y, s.channel};
  for (const size_t* v : steps)
    for (int i = 0; i < 3; ++i) l.add_size(v[i]);
  l.add_size(s.rows[0]);
  l.add_size(s.rows[1]);
  const size_t* const row_steps[] = {s.row_x, s.row_y};
  for (const size_t* v : row_steps)
    for (int i = 0; i < 3; ++i) l.add_size(v[i]);
  l.add_size(s.row_channel);
  l.add_offset(0, size_t(x));
  l.add_offset(2, size_t(y));
  l.add_size(round_up(channels, 4));
  l.add(bits_of(s.epsilon));
  return record_all(l, chosen, rows);
}

// ---- reduction -----------------------------------------------------------------------------------------------------------------
skua_status plan_reduce(skua_plan* plan, const ReduceShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  if (is_bytes(plan)) {
    const uint16_t threads = s.along_rows ? row_threads(plan, s.reduced[0] * s.reduced[1] * s.reduced[2]) : line_threads(plan->op->ctx->gpu->about);
    plan->text = &reduce_bytes_texts.texts[s.along_rows ? reduce_bytes_s8_rows : reduce_bytes_s8_columns];
    return choose(plan->op, {plan->text, {threads, 1, 1}, {int32_t(s.kind), threads, is_u8(plan)}}, chosen);
  }
  const bool arg = plan->outputs[0].type == SKUA_DTYPE_S32;
  const int first = arg ? (s.along_rows ? reduce_f32_arg_rows : reduce_f32_arg_columns) : s.along_rows ? reduce_f32_rows : reduce_f32_columns;
  const skua_dtype type = plan->inputs[0].type;
  const uint16_t threads = s.along_rows ? row_threads(plan, s.reduced[0] * s.reduced[1] * s.reduced[2]) : line_threads(plan->op->ctx->gpu->about);
  // There is no instruction for products on OpenCL.
  const KernelText& text = first == reduce_f32_rows ? rows_text(plan, reduce_texts, first, 5, type, threads, s.kind != SKUA_REDUCE_PROD) : text_of(reduce_texts, first, 5, type);
  SKUA_TRY(choose(plan->op, {&text, {threads, 1, 1}, {int32_t(s.kind), threads}}, chosen));
  plan->text = &text;
  return SKUA_STATUS_OK;
}

skua_status record_reduce(const RecordArgs& args, const ReduceShape& s, const Chosen& chosen, const ReduceOfBytes* bytes) {
  Launch l(args);
  const int32_t x = l.input(0), y = l.output(0);
  const size_t results = s.kept[0] * s.kept[1] * s.kept[2];
  const size_t values[] = {s.reduced[0] * s.reduced[1] * s.reduced[2], results, s.reduced[0], s.reduced[1], s.reduced_step[0], s.reduced_step[1], s.reduced_step[2],
                           s.kept[0], s.kept[1], s.kept_step[0], s.kept_step[1], s.kept_step[2]};
  for (size_t v : values) l.add_size(v);
  l.add_offset(0, size_t(x));
  l.add_offset(1, size_t(y));
  if (bytes) {
    l.add(bytes->zeros - (is_u8(args.plan) ? 128 * bytes->terms : 0)); l.add(bits_of(bytes->factor));
    l.add(bytes->to.zero_point); l.add(bits_of(bytes->to.low)); l.add(bits_of(bytes->to.high));
  }
  return record_all(l, chosen, results);
}

// ---- resize --------------------------------------------------------------------------------------------------------------------
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
  return choose(plan->op, {&resize_text(plan, vectors), {line_threads(plan->op->ctx->gpu->about), 1, 1}, {s.bilinear, int32_t(s.coordinates), is_u8(plan)}}, chosen);
}

}  // namespace

skua_status plan_resize(skua_plan* plan, const ResizeShape& s, Chosen& chosen) {
  if (!fits(plan)) return too_large(plan);
  const size_t most = INT32_MAX / 4;
  if (mul_sat(s.in_h, s.out_h) > most || mul_sat(s.in_w, s.out_w) > most) return SKUA_UNSUPPORTED_("resize2d: %zu to %zu rows or %zu to %zu columns are too many; kernels count in 32 bits", s.in_h, s.out_h, s.in_w, s.out_w);
  constexpr size_t kMostOfBytes = INT32_MAX / 1026;  // weights are quotients of (512 * rest + den) by 2 * den, where rest < den = 2 * out
  if (is_bytes(plan) && s.bilinear && max(s.out_h, s.out_w) > kMostOfBytes) return SKUA_UNSUPPORTED_("resize2d: %zu x %zu bytes; a blend has %zu in a dimension at most on a GPU", s.out_h, s.out_w, kMostOfBytes);
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
  const size_t v = chosen.text == v4 ? 4 : 1, n = s.images * s.out_h * s.out_w * (s.channels / v);
  const size_t counts[] = {n, s.channels / v, s.out_w, s.out_h, s.in_w, s.in_h, s.planes};
  const size_t x_steps[] = {s.x_batch, s.x_plane, s.x_row, s.x_pixel}, y_steps[] = {s.y_batch, s.y_plane, s.y_row, s.y_pixel};
  for (size_t count : counts) l.add_size(count);
  l.add_offset(0, x, uint32_t(v));
  for (size_t step : x_steps) l.add_size(step / v);
  l.add_offset(1, y, uint32_t(v));
  for (size_t step : y_steps) l.add_size(step / v);
  return record_all(l, chosen, n);
}

}  // namespace skua::gpu
