// The kernels' dialect as GLSL 4.5 for Vulkan. What the words mean: common.h. Specialisation constants: 0 .. 7 of the
// text, 8 .. 10 the work-group, 11 ROUND, 12 BF16, 13 TEXELS; bindings in set 0; Args are the push constants.
#extension GL_EXT_control_flow_attributes : require
#if STORE16
#extension GL_EXT_shader_16bit_storage : require
#endif
#if ARITH16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#if DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
#if SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#define SUBGROUP_ADD subgroupAdd
#define SUBGROUP_MAX subgroupMax
#define SUBGROUP_MIN subgroupMin
#define SUBGROUP int(gl_SubgroupID)
#define SUBGROUP_COUNT int(gl_NumSubgroups)
#define SUBGROUP_FIRST subgroupElect()
#endif
layout(local_size_x_id = 8, local_size_y_id = 9, local_size_z_id = 10) in;
#define F float
#define F4 vec4
#define I4 ivec4
#if STORE16
#define STORAGE1 float16_t
#define STORAGE4 f16vec4
#define STORAGE1B uint16_t
#define STORAGE4B u16vec4
// 1 where the driver does not promise how it rounds to f16: then what it gets needs no rounding.
layout(constant_id = 11) const int ROUND = 0;
float HALF_(float v) {
  uint bits = floatBitsToUint(v), u = bits & 0x7fffffffu, near = (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;
  if (ROUND == 0 || u > 0x7f800000u) return v;
  if (u >= 0x477ff000u) near = 0x7f800000u;  // 65520: half way from the largest to the next
  // below 2^-14 halves are 2^-24 apart
  if (u < 0x38800000u) near = floatBitsToUint(roundEven(uintBitsToFloat(u) * 16777216.0) * (1.0 / 16777216.0));
  return uintBitsToFloat(near | (bits & 0x80000000u));
}
vec4 HALF_(vec4 v) {
  if (ROUND == 0) return v;
  return vec4(HALF_(v.x), HALF_(v.y), HALF_(v.z), HALF_(v.w));
}
// 1: the 16 bits are those of a bf16, which every binding shows under a second name.
layout(constant_id = 12) const int BF16 = 0;
uint bfloat_(float v) {
  uint u = floatBitsToUint(v);
  return (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 64u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
uvec4 bfloat_(vec4 v) { return uvec4(bfloat_(v.x), bfloat_(v.y), bfloat_(v.z), bfloat_(v.w)); }
#define LD1(b, i) (BF16 == 1 ? uintBitsToFloat(uint(b##_bits[i]) << 16) : float(b[i]))
#define LD4(b, i) (BF16 == 1 ? uintBitsToFloat(uvec4(b##_bits[i]) << 16) : vec4(b[i]))
#define ST1(b, i, v) { if (BF16 == 1) b##_bits[i] = uint16_t(bfloat_(v)); else b[i] = float16_t(HALF_(v)); }
#define ST4(b, i, v) { if (BF16 == 1) b##_bits[i] = u16vec4(bfloat_(v)); else b[i] = f16vec4(HALF_(v)); }
#define STORAGE_(i, access, n, name)  \
  BLOCK_(i, access, STORAGE##n, name) \
  layout(std430, set = 0, binding = i) access buffer name##_bits_block { STORAGE##n##B name##_bits[]; };
#else
#define STORAGE1 float
#define STORAGE4 vec4
#define STORAGE1B uint
#define STORAGE4B uvec4
#define LD1(b, i) float(b[i])
#define LD4(b, i) vec4(b[i])
#define ST1(b, i, v) b[i] = (v)
#define ST4(b, i, v) b[i] = (v)
#define STORAGE_(i, access, n, name) BLOCK_(i, access, STORAGE##n, name)
#endif
#define RAW4 vec4
#define RAW4_ZERO vec4(0.0)
#define LDRAW4 LD4
#define WIDE_RAW4(v) (v)
#define BITS uint
#define BITS4 uvec4
#define LD1B(b, i) BITS(b[i])
#define LD4B(b, i) BITS4(b[i])
#define ST1B(b, i, v) b[i] = STORAGE1B(v)
#define ST4B(b, i, v) b[i] = STORAGE4B(v)
#if ARITH16
#define H4 f16vec4
#define LDH4(b, i) b[i]
f16vec4 FMA(f16vec4 a, f16vec4 b, f16vec4 c) { return fma(a, b, c); }
#else
#define H4 vec4
#define LDH4 LD4
#endif
#define SPLAT_H4(x) H4(x)
#define WIDE4(h) vec4(h)
#define BLOCK_(i, access, type, name) layout(std430, set = 0, binding = i) access buffer name##_block { type name[]; };
#define READ1(i, name) STORAGE_(i, readonly, 1, name)
#define READ4(i, name) STORAGE_(i, readonly, 4, name)
// Binding 8 is read in place of the buffer where TEXELS is 1.
layout(constant_id = 13) const int TEXELS = 0;
#define READ4T(i, name) READ4(i, name) layout(set = 0, binding = 8) uniform samplerBuffer name##_texels;
#define LD4T(b, i) (TEXELS == 1 ? texelFetch(b##_texels, i) : LD4(b, i))
#define READ1F(i, name) BLOCK_(i, readonly, float, name)
#define READ4F(i, name) BLOCK_(i, readonly, vec4, name)
#define READ1B(i, name) BLOCK_(i, readonly, STORAGE1B, name)
#define READ4B(i, name) BLOCK_(i, readonly, STORAGE4B, name)
#define READ1I(i, name) BLOCK_(i, readonly, int, name)
#define READ4I(i, name) BLOCK_(i, readonly, ivec4, name)
#define WRITE1(i, name) STORAGE_(i, writeonly, 1, name)
#define WRITE4(i, name) STORAGE_(i, writeonly, 4, name)
#define WRITE1F(i, name) BLOCK_(i, writeonly, float, name)
#define WRITE4F(i, name) BLOCK_(i, writeonly, vec4, name)
#define WRITE1B(i, name) BLOCK_(i, writeonly, STORAGE1B, name)
#define WRITE4B(i, name) BLOCK_(i, writeonly, STORAGE4B, name)
#define WRITE1I(i, name) BLOCK_(i, writeonly, int, name)
#define UPDATE1I(i, name) BLOCK_(i, , int, name)
#define UPDATE4I(i, name) BLOCK_(i, , ivec4, name)
#define UPDATE1F(i, name) BLOCK_(i, , float, name)
#define UPDATE4F(i, name) BLOCK_(i, , vec4, name)
#define UPDATE1(i, name) STORAGE_(i, , 1, name)
#define UPDATE4(i, name) STORAGE_(i, , 4, name)

#define ARGS(members) layout(push_constant) uniform Args { members int group0; int group1; int group2; } p;
#define CONSTANT(i, name, value) layout(constant_id = i) const int name = value;
#define FUNCTION
#define KERNEL1(name, a) a
#define KERNEL2(name, a, b) a b
#define KERNEL3(name, a, b, c) a b c
#define KERNEL4(name, a, b, c, d) a b c d
#define KERNEL5(name, a, b, c, d, e) a b c d e
#define KERNEL6(name, a, b, c, d, e, f) a b c d e f
#define SHARED(type, name, n) shared type name[n];
#define PUT_FLOAT(tile, i, v) tile[(i) / 4][(i) % 4] = (v)
#define PUT_WORD PUT_FLOAT
#define BODY void main()
#define END

#define GLOBAL(i) (GROUP(i) * int(gl_WorkGroupSize[i]) + LOCAL(i))
#define LOCAL(i) int(gl_LocalInvocationID[i])
#define GROUP(i) (int(gl_WorkGroupID[i]) + p.group##i)
#define UNROLLED [[unroll]]
#define BARRIER barrier()

#define SPLAT4(x) vec4(x)
#define SPLAT4B(x) uvec4(x)
#define MAKE4(a, b, c, d) vec4(a, b, c, d)
#define AS_FLOAT(i) intBitsToFloat(i)
#define AS_BITS(i) BITS(i)
#define AS_INT(f) floatBitsToInt(f)
#define TO_FLOAT(i) float(i)
#define TO_FLOAT4(i) vec4(i)
#define TO_INT(f) int(f)
#define TO_INT4(f) ivec4(f)
#define SPLAT_I4(x) ivec4(x)
#define MAKE_I4(a, b, c, d) ivec4(a, b, c, d)
int MUL_HIGH(int a, int b) {
  int high, low;
  imulExtended(a, b, high, low);
  return high;
}
#define MUL_LOW(a, b) ((a) * (b))
#define ADD_LOW(a, b) ((a) + (b))
#define ATOMIC_AND(b, i, v) atomicAnd(b[i], v)
#define ATOMIC_OR(b, i, v) atomicOr(b[i], v)
#if DOT
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [ 6019, 6018 ],
                  id = 4450) int dot4_(int a, int b, spirv_literal int packed);
#define DOT4(a, b, c) (dot4_(a, b, 0) + (c))
#else
#define DOT4(a, b, c) ((c) + ((a) << 24 >> 24) * ((b) << 24 >> 24) + ((a) << 16 >> 24) * ((b) << 16 >> 24) + \
                       ((a) << 8 >> 24) * ((b) << 8 >> 24) + ((a) >> 24) * ((b) >> 24))
#endif
#define SELECT(c, t, f) mix(f, t, c)
#define ABS(x) abs(x)
#define RINT(x) roundEven(x)
#define EXACT precise
#define RSQRT(x) inversesqrt(x)
#define POW(x, y) pow(x, y)
#define COPYSIGN(x, y) intBitsToFloat((floatBitsToInt(x) & 0x7fffffff) | (floatBitsToInt(y) & int(0x80000000u)))
float FMA(float a, float b, float c) { return fma(a, b, c); }
vec4 FMA(vec4 a, vec4 b, vec4 c) { return fma(a, b, c); }
vec4 FMA(float a, vec4 b, vec4 c) { return fma(vec4(a), b, c); }
bool LESS(float a, float b) { return a < b; }
bvec4 LESS(vec4 a, vec4 b) { return lessThan(a, b); }
bool LESS_EQUAL(float a, float b) { return a <= b; }
bvec4 LESS_EQUAL(vec4 a, vec4 b) { return lessThanEqual(a, b); }
bool EQUAL(float a, float b) { return a == b; }
bvec4 EQUAL(vec4 a, vec4 b) { return equal(a, b); }
