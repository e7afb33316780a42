// The kernels' dialect as OpenCL C 1.2. What the words mean: common.h. The options of a text define STORE16, NAME (of
// the function: KernelText::name) and its own macros; the host adds C0 .. C7 (constants) and L0 .. L2 (work-group).
// Arguments: the bindings in order, then the struct Args by value.
// What a compiler does not have is left to the other form of the text.
#if SUBGROUPS && !defined(cl_khr_subgroups) && !defined(__opencl_c_subgroups)
#undef SUBGROUPS
#define SUBGROUPS 0
#endif
#if SUBGROUPS
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#define SUBGROUP_ADD sub_group_reduce_add
#define SUBGROUP_MAX sub_group_reduce_max
#define SUBGROUP_MIN sub_group_reduce_min
#define SUBGROUP ((int)get_sub_group_id())
#define SUBGROUP_COUNT ((int)get_num_sub_groups())
#define SUBGROUP_FIRST (get_sub_group_local_id() == 0)
#endif
#define F float
#define F4 float4
#define I4 int4
#if BF16
#define STORAGE1 ushort
#define STORAGE4 ushort4
#define RAW4 ushort4
#define LDRAW4(b, i) b[i]
#define WIDE_RAW4(v) as_float4(convert_uint4(v) << 16)
#define LD1(b, i) as_float((uint)b[i] << 16)
#define LD4(b, i) WIDE_RAW4(b[i])
#define ST1(b, i, v) b[i] = bfloat1_(v)
#define ST4(b, i, v) b[i] = bfloat4_(v)
static ushort bfloat1_(float v) {
  uint u = as_uint(v);
  return (ushort)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 64u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
static ushort4 bfloat4_(float4 v) { return (ushort4)(bfloat1_(v.x), bfloat1_(v.y), bfloat1_(v.z), bfloat1_(v.w)); }
#elif STORE16
#define STORAGE1 half
#define LD1(b, i) vload_half(i, b)
#define ST1(b, i, v) vstore_half_rte(v, i, b)
#ifdef __NV_CL_C_VERSION
// NVIDIA's compiler makes four loads of two bytes of a vload_half4.
#define STORAGE4 ulong
#define RAW4 ulong
#define LDRAW4(b, i) b[i]
#define WIDE_RAW4(v) half4_(v)
#define LD4(b, i) half4_(b[i])
#define ST4(b, i, v) b[i] = halves_(v)
static float4 half4_(ulong u) {
  float4 v;
  __asm__(
      "{.reg .b16 a, b, c, d; mov.b64 {a, b, c, d}, %4; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; cvt.f32.f16 %2, c; "
      "cvt.f32.f16 %3, d;}"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "l"(u));
  return v;
}
static ulong halves_(float4 v) {
  ulong u;
  __asm__(
      "{.reg .b16 a, b, c, d; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; cvt.rn.f16.f32 c, %3; cvt.rn.f16.f32 d, %4; "
      "mov.b64 %0, {a, b, c, d};}"
      : "=l"(u)
      : "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w));
  return u;
}
#else
#define STORAGE4 half
#define RAW4 float4
#define LDRAW4 LD4
#define WIDE_RAW4(v) (v)
#define LD4(b, i) vload_half4(i, b)
#define ST4(b, i, v) vstore_half4_rte(v, i, b)
#endif
#else
#define STORAGE1 float
#define STORAGE4 float4
#define RAW4 float4
#define LDRAW4(b, i) b[i]
#define WIDE_RAW4(v) (v)
#define LD1(b, i) b[i]
#define LD4(b, i) b[i]
#define ST1(b, i, v) b[i] = (v)
#define ST4(b, i, v) b[i] = (v)
#endif
#if STORE16
#define STORAGE1B ushort
#define STORAGE4B ushort4
#define LD1B(b, i) ((uint)b[i])
#define LD4B(b, i) convert_uint4(b[i])
#define ST1B(b, i, v) b[i] = (ushort)(v)
#define ST4B(b, i, v) b[i] = convert_ushort4(v)
#else
#define STORAGE1B uint
#define STORAGE4B uint4
#define LD1B(b, i) b[i]
#define LD4B(b, i) b[i]
#define ST1B(b, i, v) b[i] = (v)
#define ST4B(b, i, v) b[i] = (v)
#endif
#if ARITH16 && defined(cl_khr_fp16) && !defined(__NV_CL_C_VERSION)
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define H4 half4
#define LDH4(b, i) vload4(i, b)
#define SPLAT_H4(x) ((half4)(x))
#define WIDE4(h) convert_float4(h)
#else
#define H4 float4
#define LDH4 LD4
#define SPLAT_H4 SPLAT4
#define WIDE4(h) (h)
#endif
#define RAW4_ZERO ((RAW4)(0))
#define BITS uint
#define BITS4 uint4
#define READ1(i, name) __global const STORAGE1* restrict name
#define READ4(i, name) __global const STORAGE4* restrict name
#if TEXELS
#define READ4T(i, name) __read_only image1d_buffer_t name
#define LD4T(b, i) read_imagef(b, i)
#else
#define READ4T READ4
#define LD4T LD4
#endif
#define READ1F(i, name) __global const float* restrict name
#define READ4F(i, name) __global const float4* restrict name
#define READ1B(i, name) __global const STORAGE1B* restrict name
#define READ4B(i, name) __global const STORAGE4B* restrict name
#define READ1I(i, name) __global const int* restrict name
#define READ4I(i, name) __global const int4* restrict name
#define WRITE1(i, name) __global STORAGE1* name
#define WRITE4(i, name) __global STORAGE4* name
#define WRITE1F(i, name) __global float* name
#define WRITE4F(i, name) __global float4* name
#define WRITE1B(i, name) __global STORAGE1B* name
#define WRITE4B(i, name) __global STORAGE4B* name
#define WRITE1I(i, name) __global int* name
#define UPDATE1I WRITE1I
#define UPDATE4I(i, name) __global int4* name
#define UPDATE1F WRITE1F
#define UPDATE4F WRITE4F
#define UPDATE1 WRITE1
#define UPDATE4 WRITE4

#define ARGS(members) typedef struct { members int group0; int group1; int group2; } Args;
#define CONSTANT(i, name, value) enum { name = C##i };
#define FUNCTION static
#define KERNEL_ __kernel __attribute__((reqd_work_group_size(L0, L1, L2))) void
#define KERNEL1(name, a) KERNEL_ NAME(a, const Args p) {
#define KERNEL2(name, a, b) KERNEL_ NAME(a, b, const Args p) {
#define KERNEL3(name, a, b, c) KERNEL_ NAME(a, b, c, const Args p) {
#define KERNEL4(name, a, b, c, d) KERNEL_ NAME(a, b, c, d, const Args p) {
#define KERNEL5(name, a, b, c, d, e) KERNEL_ NAME(a, b, c, d, e, const Args p) {
#define KERNEL6(name, a, b, c, d, e, f) KERNEL_ NAME(a, b, c, d, e, f, const Args p) {
#define SHARED(type, name, n) __local type name[n];
#define PUT_FLOAT(tile, i, v) ((__local float*)tile)[i] = (v)
#define PUT_WORD(tile, i, v) ((__local int*)tile)[i] = (v)
#define BODY
#define END }

#define GLOBAL(i) (GROUP(i) * L##i + LOCAL(i))
#define LOCAL(i) ((int)get_local_id(i))
#define GROUP(i) ((int)get_group_id(i) + p.group##i)
#define UNROLLED _Pragma("unroll")
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)

#define SPLAT4(x) ((F4)(x))
#define SPLAT4B(x) ((BITS4)(x))
#define MAKE4(a, b, c, d) ((F4)(a, b, c, d))
#define FMA(a, b, c) mad(a, b, c)
#define AS_FLOAT(i) as_float(i)
#define AS_BITS(i) ((BITS)(i))
#define AS_INT(f) as_int(f)
#define TO_FLOAT(i) ((float)(i))
#define TO_FLOAT4(i) convert_float4(i)
#define TO_INT(f) ((int)(f))
#define TO_INT4(f) convert_int4(f)
#define SPLAT_I4(x) ((I4)(x))
#define MAKE_I4(a, b, c, d) ((I4)(a, b, c, d))
#define MUL_HIGH(a, b) mul_hi(a, b)
#define MUL_LOW(a, b) as_int(as_uint(a) * as_uint(b))
#define ADD_LOW(a, b) as_int(as_uint(a) + as_uint(b))
#define ATOMIC_AND(b, i, v) atomic_and(&b[i], v)
#define ATOMIC_OR(b, i, v) atomic_or(&b[i], v)
// c and the products of four bytes; DOT: by one instruction, where the compiler has it.
#if DOT && (defined(__opencl_c_integer_dot_product_input_4x8bit_packed) || defined(cl_khr_integer_dot_product))
#define DOT4(a, b, c) (dot_4x8packed_ss_int(as_uint(a), as_uint(b)) + (c))
#else
#define DOT4(a, b, c) ((c) + ((a) << 24 >> 24) * ((b) << 24 >> 24) + ((a) << 16 >> 24) * ((b) << 16 >> 24) + \
                       ((a) << 8 >> 24) * ((b) << 8 >> 24) + ((a) >> 24) * ((b) >> 24))
#endif
#define LESS(a, b) ((a) < (b))
#define LESS_EQUAL(a, b) ((a) <= (b))
#define EQUAL(a, b) ((a) == (b))
#define SELECT(c, t, f) ((c) ? (t) : (f))
#define ABS(x) fabs(x)
#define RINT(x) rint(x)
#define EXACT
#define RSQRT(x) rsqrt(x)
#define POW(x, y) pow(x, y)
#define COPYSIGN(x, y) copysign(x, y)
