#include "gpu/winograd.h"

#include "winograd/points.h"

namespace skua::gpu {
namespace {

int outputs_of(WinogradForm form) { return form == WinogradForm::f4x4 ? 4 : 2; }
size_t points_of(WinogradForm form) { return form == WinogradForm::f4x4 ? 36 : 16; }

struct Taps {
  double at[6][3];
};
consteval Taps taps(int m) {
  Taps t = {};
  for (int i = 0; i < m + 2; ++i)
    for (int k = 0; k < 3; ++k) t.at[i][k] = winograd::tap(m, i, k, 3);
  return t;
}
constexpr Taps kTwo = taps(2), kFour = taps(4);

// V 4 holds 16 points of 4 channels in registers, 36 of them do not fit: F(4,3) takes single channels, which neighbours
// read side by side.
skua_status choose_transform(const skua_op* op, const KernelTexts& texts, int f2v1, WinogradForm form, bool vectors,
                             Element element, size_t channels, const int32_t (&constants)[3], Chosen& chosen) {
  const WorkGroup group = map_group(op->ctx->gpu->about, channels / (vectors ? 4 : 1));
  const int entry = f2v1 + (form == WinogradForm::f4x4 ? 2 : vectors);
  return choose(op,
                {&text_of(texts, entry, 3, skua_dtype(element)),
                 {group.local[0], group.local[1], group.local[2]},
                 {constants[0], constants[1], constants[2]}},
                chosen);
}
skua_status choose_in(const skua_op* op, WinogradForm form, bool vectors, const WinogradLayer& l, Chosen& chosen) {
  return choose_transform(op, winograd_in_texts, winograd_in_f32_f2v1, form, vectors, l.element, l.in_channels, {},
                          chosen);
}
skua_status choose_out(const skua_op* op, WinogradForm form, bool vectors, const WinogradLayer& l, Chosen& chosen) {
  return choose_transform(op, winograd_out_texts, winograd_out_f32_f2v1, form, vectors, l.element, l.out_channels,
                          {l.activation.kind, int32_t(l.residual_kind), l.bias}, chosen);
}

}  // namespace

size_t winograd_weights(WinogradForm form, size_t in_channels, size_t out_channels) {
  return mul_sat(mul_sat(round_up(in_channels, 4), round_up(out_channels, 4)), points_of(form));
}

void winograd_transform_weights(WinogradForm form, size_t in_channels, size_t out_channels, const WinogradWeights& w,
                                float* to) {
  const int side = outputs_of(form) + 2;
  const Taps& g = side == 6 ? kFour : kTwo;
  const size_t columns = round_up(out_channels, 4), step = round_up(in_channels, 4) * columns,
               size = element_bytes(w.type);
  memset(to, 0, winograd_weights(form, in_channels, out_channels) * sizeof(float));
  for (size_t i = 0; i < in_channels; ++i)
    for (size_t o = 0; o < out_channels; ++o) {
      double half[3][6];  // w G^T
      for (size_t y = 0; y < 3; ++y) {
        float row[3];
        pack_row(3, static_cast<const char*>(w.from) + (o * w.o + i * w.i + y * w.y) * size, w.x, w.type, row,
                 Element::f32);
        for (int b = 0; b < side; ++b)
          half[y][b] = double(row[0]) * g.at[b][0] + double(row[1]) * g.at[b][1] + double(row[2]) * g.at[b][2];
      }
      for (int a = 0; a < side; ++a)
        for (int b = 0; b < side; ++b)
          to[size_t(a * side + b) * step + i * columns + o] =
              float(g.at[a][0] * half[0][b] + g.at[a][1] * half[1][b] + g.at[a][2] * half[2][b]);
    }
}

skua_status make_winograd(const skua_op* op, WinogradForm form, const WinogradLayer& l, WinogradStep& to) {
  const size_t m = size_t(outputs_of(form)), points = points_of(form);
  to = {};
  to.form = form;
  to.tiles_y = ceil_div(l.out_h, m);
  to.tiles_x = ceil_div(l.out_w, m);
  to.tiles = to.tiles_y * to.tiles_x * l.batch;
  to.k = round_up(l.in_channels, 4);
  to.n = round_up(l.out_channels, 4);
  to.vector_in = form == WinogradForm::f2x2 && l.in_channels % 4 == 0 && fours(l.in);
  to.vector_out =
      form == WinogradForm::f2x2 && l.out_channels % 4 == 0 && fours(l.out) && (!l.residual_kind || fours(l.residual));
  const size_t values = mul_sat(mul_sat(to.tiles, points), to.k), products = mul_sat(mul_sat(to.tiles, points), to.n);
  if (values > INT32_MAX || products > INT32_MAX)
    return SKUA_UNSUPPORTED_("%s: %zu tiles of Winograd's transform; kernels count in 32 bits", op->cls->name,
                             to.tiles);
  to.products_at = round_up(values * sizeof(float), SKUA_WORKSPACE_ALIGNMENT);
  to.workspace = to.products_at + products * sizeof(float);
  Product& g = to.product;
  g.constant = true;
  g.texels = l.texels;
  g.element = Element::f32;
  g.m = to.tiles; g.n = to.n; g.k = to.k; g.z = points;
  g.a_m = to.k; g.a_k = 1; g.a_z = to.tiles * to.k;
  g.b_k = to.n; g.b_n = 1; g.b_z = to.k * to.n;
  g.c_m = to.n; g.c_z = to.tiles * to.n;
  g.alpha = 1;
  g.activation.kind = -1;
  SKUA_TRY(make_product(op, g, true, to.multiply));
  SKUA_TRY(choose_in(op, form, to.vector_in, l, to.in));
  return choose_out(op, form, to.vector_out, l, to.out);
}

skua_status record_winograd(const RecordArgs& args, const WinogradLayer& l, const WinogradStep& s,
                            const skua_device_buffer* weights, const skua_device_buffer* bias) {
  const skua_op* const op = args.plan->op;
  const skua_buffer values = {nullptr, args.workspace->device, args.workspace->offset},
                    products = {nullptr, values.device, values.offset + s.products_at};
  const skua_span values_span = {s.tiles * s.product.z * s.k * sizeof(float), sizeof(float), true},
                  products_span = {s.tiles * s.product.z * s.n * sizeof(float), sizeof(float), true};
  {
    Launch in(args);
    const int32_t x = in.input(0), v = in.bind(values, values_span, true);
    Chosen chosen = s.in;
    bool vectors = s.vector_in;
    if (vectors && x % 4) {
      vectors = false;
      SKUA_TRY(choose_in(op, s.form, false, l, chosen));  // rare: compiled now
    }
    const size_t unit = vectors ? 4 : 1;
    in.add_size(s.k / unit); in.add_size(l.in_channels / unit);
    in.add_size(s.tiles);
    in.add_size(s.tiles_x);
    in.add_size(s.tiles_y);
    in.add_size(l.in_w);
    in.add_size(l.in_h);
    in.add_size(l.pad_left);
    in.add_size(l.pad_top);
    add_map(in, 0, x, l.in, int32_t(unit));
    in.add_offset(1, size_t(v), uint32_t(unit)); in.add_size(s.tiles * s.k / unit); in.add_size(s.k / unit);
    SKUA_TRY(in.record(chosen, s.k / unit, s.tiles));
  }
  const Binding bindings[6] = {{values.device, values.offset, values_span.bytes, false},
                               {weights, 0, weights->size, false},
                               {},
                               {},
                               {values.device, products.offset, products_span.bytes, true}};
  SKUA_TRY(record_product(args.plan, s.product, s.multiply,
                          {values.offset / sizeof(float), 0, products.offset / sizeof(float), 0}, bindings,
                          args.stream));
  Launch out(args);
  const int32_t m = out.bind(products, products_span, false);
  out.bind_own(bias ? bias : weights);
  const int32_t r = l.residual_kind ? out.input(1) : 0;
  if (!l.residual_kind) out.bind_again(1);
  const int32_t y = out.output(0);
  Chosen chosen = s.out;
  bool vectors = s.vector_out;
  if (vectors && (y | r) % 4) {
    vectors = false;
    SKUA_TRY(choose_out(op, s.form, false, l, chosen));
  }
  const size_t unit = vectors ? 4 : 1, channels = l.out_channels / unit;
  out.add_size(channels);
  out.add_size(s.tiles);
  out.add_size(s.tiles_x);
  out.add_size(s.tiles_y);
  out.add_size(l.out_w);
  out.add_size(l.out_h);
  out.add_offset(0, size_t(m), uint32_t(unit)); out.add_size(s.tiles * s.n / unit); out.add_size(s.n / unit);
  add_map(out, 3, y, l.out, int32_t(unit));
  add_map(out, 2, r, l.residual, int32_t(unit));
  out.add(bits_of(l.activation.a));
  out.add(bits_of(l.activation.b));
  return out.record(chosen, channels, s.tiles);
}

void explain_winograd(const skua_plan* plan, const WinogradStep& s, Text& text) {
  text.add("  %s, %zu tiles of %d x %d outputs; transforms %s, %s\n", winograd_form_name(s.form), s.tiles,
           outputs_of(s.form), outputs_of(s.form), s.in.text->name, s.out.text->name);
  explain_product(plan, s.product, s.multiply, text);
}

}  // namespace skua::gpu
