#include "gpu/product.h"

#include <stdio.h>

namespace skua::gpu {

// ---- weights --------------------------------------------------------------------------------------------------------
bool weights_bytes(size_t bias, Element element, size_t n, size_t& bytes) {
  return n <= SIZE_MAX / 8 && bias <= SIZE_MAX / 8 &&
         add(bias_bytes(bias), round_up(n * element_bytes(element), 16), bytes);
}

skua_status upload_weights(WeightedOp& op, size_t bias, Element element, size_t n) {
  const auto* from = static_cast<const char*>(op.weights);
  const size_t bytes = round_up(n * element_bytes(element), 16), most = op.ctx->gpu->about.buffer_bytes;
  if (most && bytes > most)
    return SKUA_UNSUPPORTED_("%s: the weights have %zu bytes, a buffer of this device %zu at most", op.cls->name, bytes,
                             most);
  if (bias) SKUA_TRY(upload(&op, from, bias_bytes(bias), &op.bias_there));
  return n ? upload(&op, from + bias_bytes(bias), bytes, &op.weights_there, texels_of(element)) : SKUA_STATUS_OK;
}

void free_weights(skua_op* base) {
  auto& op = *static_cast<WeightedOp*>(base);
  free_buffer(op.weights_there);
  free_buffer(op.bias_there);
}

const KernelText* image_of(const KernelTexts& texts, const KernelText* text) {
  char name[64];
  snprintf(name, sizeof name, "%s_image", text->name);
  return find_text(texts, name);
}

template <class From, class To> static void pack(size_t n, const void* from, size_t step, void* to) {
  for (size_t i = 0; i < n; ++i) narrow(widen(static_cast<const From*>(from)[i * step]), static_cast<To*>(to)[i]);
}
template <class From> static void pack_as(size_t n, const void* from, size_t step, void* to, Element as) {
  if (as == Element::f16) pack<From, f16>(n, from, step, to);
  else if (as == Element::bf16) pack<From, bf16>(n, from, step, to);
  else pack<From, float>(n, from, step, to);
}
void pack_row(size_t n, const void* from, size_t step, Element type, void* to, Element as) {
  if (type == Element::f16) pack_as<f16>(n, from, step, to, as);
  else if (type == Element::bf16) pack_as<bf16>(n, from, step, to, as);
  else pack_as<float>(n, from, step, to, as);
}

int32_t pack_column(size_t depth, const int8_t* from, size_t step_k, Element type, int32_t zero, size_t columns,
                    size_t j, int8_t* to) {
  const uint8_t flip = uint8_t(flip_of(type));
  int32_t sum = 0;
  for (size_t k = 0; k < round_up(depth, 4); ++k) {
    const int8_t value = k < depth ? int8_t(uint8_t(from[k * step_k]) ^ flip) : int8_t(zero_of(type, zero));
    if (k < depth) sum += value;
    to[(k / 4 * columns + j) * 4 + k % 4] = value;
  }
  return sum;
}

void set_scale(int32_t* start, size_t columns, size_t j, uint32_t rounding, float scale, FixedScale fixed) {
  const bool is_float = rounding == SKUA_ROUNDING_FLOAT;
  start[columns + j] = is_float ? bits_of(scale) : fixed.multiplier;
  start[2 * columns + j] = is_float ? 0 : fixed.shift;
}

// ---- choice ---------------------------------------------------------------------------------------------------------
namespace {

bool fours(size_t extent, size_t step) { return extent <= 1 || step % 4 == 0; }
bool fours(const MapSteps& m, size_t images, size_t rows, size_t pixels) {
  return m.channel == 1 && fours(images, m.image) && fours(rows, m.row) && fours(pixels, m.pixel);
}

struct Vectors {
  bool a, b, c, along_k;
};
Vectors vectors_of(const Product& p, bool aligned) {
  Vectors v = {};
  v.b = p.constant;
  if (!aligned) return v;
  const size_t taps_h = p.in_h, taps_w = p.in_w;
  if (p.conv) {
    v.a = p.k % 4 == 0 && fours(p.a, p.batch, taps_h, taps_w);
    v.c =
        p.n % 4 == 0 && fours(p.c, p.batch, p.out_h, p.out_w) && (!p.residual || fours(p.r, p.batch, p.out_h, p.out_w));
  } else {
    v.a = p.k % 4 == 0 && p.a_k == 1 && fours(p.m, p.a_m) && fours(p.z, p.a_z);
    v.b = v.b || (p.n % 4 == 0 && p.b_n == 1 && fours(p.k, p.b_k) && fours(p.z, p.b_z));
    v.along_k = !v.b && !p.constant && v.a && p.b_k == 1 && fours(p.n, p.b_n) && fours(p.z, p.b_z);
    v.c = p.n % 4 == 0 && fours(p.m, p.c_m) && fours(p.z, p.c_z) &&
          (!p.residual || (fours(p.m, p.r_m) && fours(p.z, p.r_z)));
  }
  return v;
}

// The text of a kind for what can be read as vectors, which becomes what the text reads so; NULL if there is none. dot:
// by products of four bytes in one instruction.
const KernelText* bytes_text_of(const Product& p, ProductKind kind, bool dot, Vectors& v) {
  const bool all = v.a && v.b && v.c;
  if ((dot && !all) || (kind != kRows4 && !dot)) return nullptr;
  const auto pick = [&](const KernelTexts& texts, int entry) { return &texts.texts[entry]; };
  if (kind == kTile128 || kind == kVector) return nullptr;
  if (product_tile(kind))
    return p.conv ? pick(conv_bytes_texts, conv_bytes_s8_dot4x16 + int(kind - kTile16))
                  : pick(gemm_bytes_texts, gemm_bytes_s8_dot4x16 + int(kind - kTile16));
  if (kind == kRows8)
    return p.conv ? pick(conv_bytes_texts, conv_bytes_s8_dot4x8) : pick(gemm_bytes_texts, gemm_bytes_s8_dot4x8);
  if (dot) return p.conv ? pick(conv_bytes_texts, conv_bytes_s8_dot4x4) : pick(gemm_bytes_texts, gemm_bytes_s8_dot4x4);
  if (all) return p.conv ? pick(conv_bytes_texts, conv_bytes_s8_v4x4) : pick(gemm_bytes_texts, gemm_bytes_s8_v4x4);
  v = {false, p.constant, p.conv && v.c, false};
  if (p.conv) return pick(conv_bytes_texts, v.c ? conv_bytes_s8_a1 : conv_bytes_s8_v1);
  return pick(gemm_bytes_texts, p.constant ? gemm_bytes_s8_v1 : gemm_bytes_s8_b1);
}
// special: of bytes by dot, of f16 by products and sums in f16.
const KernelText* text_of(const Product& p, ProductKind kind, bool special, Storage storage, Vectors& v) {
  if (storage == Storage::image && (!p.texels || special)) return nullptr;
  if (is_int8(p.element)) return bytes_text_of(p, kind, special, v);
  const bool half = p.element == Element::f16, all = v.a && v.b && v.c;
  if (p.wide) {
    if (special || kind != kRows4 || storage == Storage::image) return nullptr;
    const KernelText* const texts = &gemm_texts.texts[half ? gemm_f16_w4x4 : gemm_bf16_w4x4];
    if (!all) v = {};
    return &texts[all ? 0 : 1];
  }
  if (special) {
    if (!p.half || !half || !all || (kind != kRows4 && kind != kRows8)) return nullptr;
    if (p.conv) return &conv_texts.texts[kind == kRows4 ? conv_f16_h4x4 : conv_f16_h4x8];
    return &gemm_texts.texts[kind == kRows4 ? gemm_f16_h4x4 : gemm_f16_h4x8];
  }
  const auto pick = [&](const KernelTexts& texts, int f32, int f16, Vectors reads) -> const KernelText* {
    v = reads;
    const KernelText* const text = &text_of(texts, f32, f16 - f32, skua_dtype(p.element));
    return storage == Storage::image ? image_of(texts, text) : text;
  };
  constexpr Vectors kAll = {true, true, true, false}, kB = {false, true, false, false},
                    kBC = {false, true, true, false}, kNone = {}, kAlongK = {true, true, false, true};
#define SKUA_PICK(family, variant, reads) pick(family##_texts, family##_f32_##variant, family##_f16_##variant, reads)
  switch (kind) {
    case kRows4:
      if (p.conv) return all ? SKUA_PICK(conv, v4x4, kAll) : v.c ? SKUA_PICK(conv, a1, kBC) : SKUA_PICK(conv, v1, kB);
      return all         ? SKUA_PICK(gemm, v4x4, kAll)
             : v.b       ? SKUA_PICK(gemm, v1, kB)
             : v.along_k ? SKUA_PICK(gemm, t1, kAlongK)
                         : SKUA_PICK(gemm, b1, kNone);
    case kRows8:
      if (!all) return nullptr;
      return p.conv ? SKUA_PICK(conv, v4x8, kAll) : SKUA_PICK(gemm, v4x8, kAll);
    case kTile16:
      if (!all) return nullptr;
      return p.conv ? SKUA_PICK(conv_tile, v4x16, kAll) : SKUA_PICK(gemm_tile, v4x16, kAll);
    case kTile16x32:
      if (!all) return nullptr;
      return p.conv ? SKUA_PICK(conv_tile, v4x16x32, kAll) : SKUA_PICK(gemm_tile, v4x16x32, kAll);
    case kTile32:
      if (!all) return nullptr;
      return p.conv ? SKUA_PICK(conv_tile, v4x32, kAll) : SKUA_PICK(gemm_tile, v4x32, kAll);
    case kTile64:
      if (p.conv) return all ? SKUA_PICK(conv_tile, v4x64, kAll) : v.c ? SKUA_PICK(conv_tile, a1, kBC) : nullptr;
      return all         ? SKUA_PICK(gemm_tile, v4x64, kAll)
             : v.b       ? SKUA_PICK(gemm_tile, v1, kB)
             : v.along_k ? SKUA_PICK(gemm_tile, t1, kAlongK)
                         : SKUA_PICK(gemm_tile, b1, kNone);
    case kTile128:
      return p.conv || !all ? nullptr : SKUA_PICK(gemm_tile, v4x128, kAll);
    case kVector:
      if (p.conv || !p.constant) return nullptr;
      return v.a ? SKUA_PICK(gemv, a4, (Vectors{true, true, false, false})) : SKUA_PICK(gemv, v1, kB);
    default: return nullptr;
  }
#undef SKUA_PICK
}

ProductSize size_of(const Product& p, bool aligned) {
  const Vectors v = vectors_of(p, aligned);
  return {p.m,
          p.n,
          p.k * (p.conv ? p.kernel_h * p.kernel_w : 1),
          p.z,
          v.a && v.b && v.c,
          p.constant,
          p.conv,
          is_int8(p.element),
          p.half && p.element == Element::f16,
          p.k % 16 == 0};
}

struct Arguments {
  ProductStep& to;
  bool ok;
  void add(size_t value, bool in_fours = false) {
    if (in_fours) value /= 4;
    ok = ok && value <= INT32_MAX && to.n_arguments < kMaxArguments;
    if (ok) to.arguments[to.n_arguments++] = int32_t(value);
  }
  void add_pair(size_t h, size_t w) {
    ok = ok && h < 32768 && w < 65536;
    add(h << 16 | w);
  }
  void add_bits(int32_t bits) {
    add(0);
    if (ok) to.arguments[to.n_arguments - 1] = bits;
  }
  void add_float(float f) { add_bits(bits_of(f)); }
};

// Where the offsets of A, B, C and the residual stand in the arguments.
constexpr uint8_t kConvOffsets[] = {11, 11, 16, 21}, kGemmOffsets[] = {3, 7, 11, 15};

bool fill_arguments(const Product& p, ProductStep& to) {
  Arguments a = {to, true};
  // blocks of rows and columns end behind them
  a.ok = p.m <= INT32_MAX - 65536 && p.n <= INT32_MAX - 65536 && p.z <= INT32_MAX;
  const bool bytes = is_int8(p.element);
  a.add(p.m); a.add(p.n); a.add(p.k);
  if (p.conv) {
    a.add(p.out_w); a.add(p.out_h); a.add(p.in_w); a.add(p.in_h);
    a.add_pair(p.kernel_h, p.kernel_w);
    a.add_pair(p.stride_h, p.stride_w);
    a.add_pair(p.dilation_h, p.dilation_w);
    a.add_pair(p.pad_top, p.pad_left);
    const struct {
      const MapSteps& m;
      bool fours;
    } maps[] = {{p.a, to.vector_a}, {p.c, to.vector_c}, {p.r, to.vector_c}};
    for (const auto& m : maps) {
      a.add(0);
      a.add(m.m.image, m.fours); a.add(m.m.row, m.fours); a.add(m.m.pixel, m.fours);
      a.add(m.m.channel);
    }
  } else {
    a.add(0); a.add(p.a_m, to.vector_a); a.add(p.a_k); a.add(p.a_z, to.vector_a);
    a.add(0); a.add(p.b_k, to.vector_b && !to.along_k); a.add(p.b_n, to.along_k); a.add(p.b_z, to.vector_b);
    a.add(0); a.add(p.c_m, to.vector_c); a.add(1); a.add(p.c_z, to.vector_c);
    a.add(0); a.add(p.r_m, to.vector_c); a.add(1); a.add(p.r_z, to.vector_c);
    if (!bytes) { a.add_float(p.alpha); a.add_float(p.beta); }
  }
  if (bytes) {
    const ProductBytes& q = p.q;
    const int32_t a_zero = zero_of(p.element, q.a_zero);
    a.add_bits(flip_of(p.element));
    const bool fixed = q.rounding != SKUA_ROUNDING_FLOAT;
    a.add_bits(p.conv ? a_zero : flip_of(q.b));
    if (p.constant) a.add((p.conv ? p.z : 1) * ceil_div(p.n, 4));  // scales lie behind the offsets
    else a.add_bits(fixed ? q.fixed.multiplier : bits_of(q.scale));
    if (p.conv) return a.ok;
    a.add_bits(q.zero);
    a.add_bits(a_zero);
    a.add_bits(zero_of(q.b, q.b_zero));
    a.add_float(q.low); a.add_float(q.high);
    a.add_bits(r_zero_of(q));
    a.add_bits(fixed ? q.fixed.shift : bits_of(q.residual.scale));
    return a.ok;
  }
  a.add_float(p.activation.a);
  a.add_float(p.activation.b);
  return a.ok;
}

// Whether the context's filter is that kernel's name, or its kind's.
bool names(const skua_op* op, const KernelText& text, ProductKind kind) {
  const char* const filter = op->ctx->filter;
  return filter[0] &&
         (glob_match(filter, text.names[op->ctx->gpu->api->number]) || glob_match(filter, product_kind_name(kind)));
}

}  // namespace

skua_status make_product(const skua_op* op, const Product& p, bool aligned, ProductStep& to, Choice* tried) {
  Device* const device = op->ctx->gpu;
  to = {};
  if (!p.m || !p.n || !p.z) return SKUA_STATUS_OK;
  const ProductChoice choice = choose_product(device->about, size_of(p, aligned));
  const Storage first = choose_storage(device->about, p.texels ? 1 : 0).first;
  Vectors v = {};
  // The first that the filter names; without one, or when it names none that can serve, the best. Tuning wants them one
  // by one.
  bool any = false;
  for (int pass = op->ctx->filter[0] ? 0 : 1; pass < 2 && !any; ++pass)
    for (uint32_t i = 0; i < 4 * choice.count && !to.text; ++i) {
      v = vectors_of(p, aligned);
      const ProductKind kind = ProductKind(choice.order[i / 4]);
      const bool special = i / 2 % 2 == 0;
      // OpenCL's text of bytes takes the instruction where the compiler has it: a filter may ask for it anywhere, and
      // tiles have no other form.
      if (special && is_int8(p.element)
              ? !device->about.integer_dot && !(device->api->number == 0 && (pass == 0 || product_tile(kind)))
              : special && !choose_half(device->about, size_of(p, aligned), kind))
        continue;
      const KernelText* text = text_of(p, kind, special, Storage(i % 2 ^ uint32_t(first)), v);
      if (!text || !text->source || (pass == 0 && !names(op, *text, kind))) continue;
      any = true;
      if (tried && tried->skip()) continue;
      to.text = text;
      to.kind = kind;
      to.named = pass == 0;
    }
  if (!to.text) return SKUA_UNSUPPORTED_("%s: no kernel in this build", op->cls->name);
  to.bytes = is_int8(p.element); to.constant = p.constant; to.conv = p.conv;
  to.element = uint8_t(element_bytes(p.element));
  to.result = uint8_t(element_bytes(to.bytes ? p.q.result : p.wide ? Element::f32 : p.element));
  to.vector_a = v.a; to.vector_b = v.b; to.vector_c = v.c; to.along_k = v.along_k;
  if (!fill_arguments(p, to))
    return SKUA_UNSUPPORTED_("%s: an extent or a step is too large for the kernels of %s", op->cls->name,
                             device->api->name);
  const size_t columns = ceil_div(p.n, 4);
  to.group = product_group(device->about, to.kind, columns);
  const uint16_t(&l)[3] = to.group.local;
  size_t(&groups)[3] = to.groups.count;
  groups[0] = ceil_div(columns, l[0]);
  groups[2] = p.z;
  if (const ProductTile* const tile = product_tile(to.kind)) {
    groups[0] = ceil_div(p.n, tile->columns);
    groups[1] = ceil_div(p.m, tile->rows);
  } else {
    groups[1] = ceil_div(p.m, to.kind == kVector ? 1 : size_t(to.kind == kRows8 ? 8 : 4) * l[1]);
  }
  ProgramKey key = {to.text,
                    {l[0], l[1], l[2]},
                    {p.activation.kind, int32_t(p.residual), p.bias, p.conv ? p.transposed : p.beta != 0}};
  if (is_int8(p.element)) {
    key.constants[0] = result_code(p.q.result);
    key.constants[1] = !p.constant ? 0 : p.q.each_zero ? 2 : zero_of(p.q.b, p.q.b_zero) != 0;
    key.constants[2] = p.bias && !p.constant;
    key.constants[4] = !p.residual ? 0 : p.q.result == Element::u8 ? 2 : 1;
    key.constants[5] = fixed_code(p.q.rounding);
  }
  if (to.kind == kVector) key.constants[4] = l[0];
  if (const ProductTile* const tile = product_tile(to.kind)) {
    const int32_t numbers[] = {tile->x, tile->y, tile->step, tile->buffers},
                  of_bytes[] = {tile->x | tile->y << 8, tile->step | tile->buffers << 8};
    if (to.bytes) memcpy(key.constants + 6, of_bytes, sizeof of_bytes);
    else memcpy(key.constants + 4, numbers, sizeof numbers);
  }
  return device->api->program(device, key, &to.program);
}

skua_status record_product(const skua_plan* plan, const Product& p, const ProductStep& step, const ProductOffsets& at,
                           const Binding (&bindings)[6], skua_stream* stream) {
  if (!step.text) return SKUA_STATUS_OK;  // no elements
  const ProductStep* use = &step;
  ProductStep other;
  if (((at.a % 4 && step.vector_a) || (at.b % 4 && step.vector_b && !step.constant) ||
       ((at.c % 4 || at.r % 4) && step.vector_c))) {
    SKUA_TRY(make_product(plan->op, p, false, other));  // rare: compiled now
    use = &other;
  }
  Dispatch d;
  d.program = use->program;
  d.n_bindings = use->bytes ? 6 : 5;
  for (uint32_t i = 0; i < d.n_bindings; ++i)
    d.bindings[i] = bindings[i].buffer ? bindings[i] : Binding{bindings[4].buffer, 0, 0, false};
  d.bindings[1].texels = use->text->by_texels;
  memcpy(d.arguments, use->arguments, use->n_arguments * sizeof use->arguments[0]);
  d.n_arguments = use->n_arguments;
  const uint8_t(&place)[4] = use->conv ? kConvOffsets : kGemmOffsets;
  const size_t offsets[] = {at.a / (use->vector_a ? 4 : 1), use->conv ? 0 : at.b / (use->vector_b ? 4 : 1),
                            at.c / (use->vector_c ? 4 : 1), at.r / (use->vector_c ? 4 : 1)};
  for (int i = 0; i < 4; ++i) {
    if (use->conv && i == 1) continue;
    if (offsets[i] > INT32_MAX / 2)
      return SKUA_UNSUPPORTED_("%s: an operand begins %zu elements into its buffer, too far for the kernels",
                               plan->op->cls->name, offsets[i]);
    d.arguments[place[i]] = int32_t(offsets[i]);
    Binding& b = d.bindings[i < 2 ? i : i == 2 ? 4 : use->bytes ? 5 : 3];
    if (!b.bytes) continue;
    b.argument = place[i];
    b.unit = uint8_t((i < 2 ? use->element : use->result) * ((i == 0   ? use->vector_a
                                                              : i == 1 ? use->vector_b
                                                                       : use->vector_c)
                                                                 ? 4
                                                                 : 1));
  }
  return start(plan->op, *use->text, d, use->groups, stream);
}

void explain_storage(const skua_plan* plan, const KernelText& kernel, bool texels, Text& text) {
  const skua_context& ctx = *plan->op->ctx;
  const StorageChoice storage = choose_storage(ctx.gpu->about, texels ? 1 : SIZE_MAX);
  const char* why = kernel.type == SKUA_DTYPE_BF16 ? "images hold no bf16" : storage.why;
  if (texels && kernel.by_texels != (storage.first == Storage::image)) {
    char image[64];
    snprintf(image, sizeof image, "%s_image_%s", kernel.name, ctx.gpu->api->isa);
    const bool filtered =
        ctx.filter[0] &&
        (kernel.by_texels || (kernel.has_texels && glob_match(ctx.filter, kernel.names[ctx.gpu->api->number]) &&
                              !glob_match(ctx.filter, image)));
    why = filtered              ? "the kernel filter asks for it"
          : plan->choice.wanted ? "a measurement chose it"
                                : "the kernel has no other form";
  }
  text.add("  weights as %s: %s\n", kernel.by_texels ? "an image" : "a buffer", why);
}

const char* why_f32_sums(const skua_op* op, Element e, bool fast, bool vectors, const char* other) {
  if (e != Element::f16) return "";
  return !fast                                 ? ": numerics is not FAST"
         : !op->ctx->gpu->about.f16_arithmetic ? ": the device has no f16 arithmetic"
         : !vectors                            ? ": not all is read by vectors"
                                               : other;
}

void explain_product(const skua_plan* plan, const Product& p, const ProductStep& step, Text& text) {
  if (!step.text) return;
  const skua_op* const op = plan->op;
  const ProductSize size = size_of(p, true);
  const ProductChoice choice = choose_product(op->ctx->gpu->about, size);
  text.add("  %zu rows, %zu columns, %zu terms, %zu of them; work-group %ux%ux%u\n", p.m, p.n,
           p.k * (p.conv ? p.kernel_h * p.kernel_w : 1), p.z, step.group.local[0], step.group.local[1],
           step.group.local[2]);
  if (is_int8(p.element))
    text.add("  sums s32, %s\n", strstr(step.text->name, "_dot") && op->ctx->gpu->about.integer_dot
                                     ? "four products of bytes an instruction"
                                     : "bytes multiplied one by one");
  else if (strstr(step.text->name, "_h4"))
    text.add(
        "  sums f16, of at most 64 terms, which are summed in f32: numerics is FAST, and the device multiplies f16\n");
  else
    text.add("  sums f32%s\n",
             why_f32_sums(op, p.element, p.half, size.vectors,
                          p.wide                                       ? ": C is f32"
                          : step.kind != kRows4 && step.kind != kRows8 ? ": only rows4 and rows8 sum f16"
                          : step.named                                 ? ": the kernel filter asks for it"
                                                                       : ": a measurement chose it"));
  text.add("  %s: %s\n  candidates:", product_kind_name(step.kind),
           step.kind == choice.order[0] ? choice.why
           : step.named                 ? "the kernel filter asks for it"
           : plan->choice.wanted        ? "a measurement chose it"
           : p.wide                     ? "the preferred one has no kernel for a C of f32"
                                        : "the preferred one has no kernel for these strides");
  for (uint32_t i = 0; i < choice.count; ++i) text.add(" %s", product_kind_name(choice.order[i]));
  text.add("\n");
  if (p.constant && !is_int8(p.element)) explain_storage(plan, *step.text, p.texels, text);
}

}  // namespace skua::gpu
