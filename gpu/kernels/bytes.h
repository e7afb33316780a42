// Bytes in memory: buffers are words of 32 bits, four bytes each, the first lowest. Nothing else is asked of a device,
// and s8 and u8 are one text: bytes count as s8 once `flip`, 0 or 0x80808080, was added to their words without carries,
// u8 q then as q - 128. What requantises is docs/quantization.md's: a product of floats, rounded, then nothing that
// could be fused with it.
#define FLIP_U8 (-0x7f7f7f80)  // 0x80808080
#define SIGNED(v) (((v) << 24) >> 24)
#define UNPACK(w) MAKE_I4((w) << 24 >> 24, (w) << 16 >> 24, (w) << 8 >> 24, (w) >> 24)
#define BYTE_OF(b, at) ((b[(at) >> 2] >> (((at) & 3) * 8)) & 255)
#define HALF_OF(b, at) ((b[(at) >> 1] >> (((at) & 1) * 16)) & 65535)
#pragma OPENCL FP_CONTRACT OFF
// Some bits of a word whose others belong to other threads.
#define PUT_BITS(b, word, shift, mask, v)                        \
  {                                                              \
    ATOMIC_AND(b, word, ~((mask) << (shift)));                   \
    ATOMIC_OR(b, word, ((v) & (mask)) << (shift));               \
  }

// sum * m * 2^(e - 31) in fixed point, m from 0 on, e from -31 to 30: dispatch/requantize.h.
FUNCTION int fixed_twice(int sum, int m, int e) {
  // which counts as 2^32 less where its upper bit is set
  int right = max(-e, 0), mask = ~(-1 << right), x = sum << max(e, 0), two = m << 1;
  int h = ADD_LOW(ADD_LOW(MUL_HIGH(x, two), two < 0 ? x : 0), MUL_LOW(x, two) < 0 ? 1 : 0);
  return (h >> right) + ((h & mask) > (mask >> 1) + (h < 0 ? 1 : 0) ? 1 : 0);
}
FUNCTION int fixed_once(int sum, int m, int e) {
  int n = 31 - e, low = MUL_LOW(sum, m), high = MUL_HIGH(sum, m);
  if (n > 32) return (high + (1 << (n - 33))) >> (n - 32);
  int up = ADD_LOW(low, 1 << (n - 1));
  high = high - ((low & ~up) >> 31);  // carries
  if (n == 32) return high;
  return ADD_LOW(up >> n & (0x7fffffff >> (n - 1)), high << (32 - n));
}
FUNCTION int fixed_point(int kind, int sum, int m, int e) {
  return kind == 1 ? fixed_twice(sum, m, e) : fixed_once(sum, m, e);
}
#define FIXED4(kind, v, m, e)                                                             \
  MAKE_I4(fixed_point(kind, (v).x, (m).x, (e).x), fixed_point(kind, (v).y, (m).y, (e).y), \
          fixed_point(kind, (v).z, (m).z, (e).z), fixed_point(kind, (v).w, (m).w, (e).w))

// To the nearest f16, ties to even, whatever the driver does; NaN stays one.
FUNCTION int half_bits(F x) {
  int bits = AS_INT(x), sign = (bits >> 16) & 0x8000, m = bits & 0x7fffffff;
  if (m > 0x7f800000) return sign | 0x7e00;
  if (m >= 0x477ff000) return sign | 0x7c00;
  if (m < 0x38800000) return sign | TO_INT(RINT(AS_FLOAT(m) * 16777216.0f));
  return sign | ((m + 0xfff + ((m >> 13) & 1) - 0x38000000) >> 13);
}
FUNCTION F half_value(int h) {
  int m = h & 0x7fff, sign = (h & 0x8000) << 16;
  if (m < 0x400) return AS_FLOAT(AS_INT(TO_FLOAT(m) * 5.9604644775390625e-8f) | sign);
  return AS_FLOAT((m >= 0x7c00 ? 0x7f800000 | (m & 0x3ff) << 13 : (m << 13) + 0x38000000) | sign);
}

FUNCTION int bfloat_bits(F x) {
  int bits = AS_INT(x), m = bits & 0x7fffffff;
  return ((m > 0x7f800000 ? bits | 0x400000 : bits + 0x7fff + (bits >> 16 & 1)) >> 16) & 65535;
}

// Results: `type` 0 bytes (v is clamped to what they hold less their zero point), 1 f16, 2 f32, 4 bf16. PUT4: four
// neighbours, `at` in vectors of 4; PUT1: one, `at` in elements.
FUNCTION int bytes_of(F4 v, I4 zero) {
  I4 q = TO_INT4(RINT(v)) + zero;
  return (q.x & 255) | (q.y & 255) << 8 | (q.z & 255) << 16 | q.w << 24;
}
#define PUT4(type, b, at, v, zero)                                     \
  {                                                                    \
    if (type == 0) b[at] = bytes_of(v, zero);                          \
    else if (type == 1) {                                              \
      b[2 * (at)] = half_bits((v).x) | half_bits((v).y) << 16;         \
      b[2 * (at) + 1] = half_bits((v).z) | half_bits((v).w) << 16;     \
    } else if (type == 4) {                                            \
      b[2 * (at)] = bfloat_bits((v).x) | bfloat_bits((v).y) << 16;     \
      b[2 * (at) + 1] = bfloat_bits((v).z) | bfloat_bits((v).w) << 16; \
    } else {                                                           \
      b[4 * (at)] = AS_INT((v).x);                                     \
      b[4 * (at) + 1] = AS_INT((v).y);                                 \
      b[4 * (at) + 2] = AS_INT((v).z);                                 \
      b[4 * (at) + 3] = AS_INT((v).w);                                 \
    }                                                                  \
  }
#if V == 4
#define I I4
#define SPLAT_I SPLAT_I4
#define TO_F TO_FLOAT4
#define READI READ4I
#define UPDATEI UPDATE4I
#define GET_BYTES(b, at, flip) UNPACK(b[at] ^ (flip))
#define GET_HALF(b, at)                                                         \
  MAKE4(half_value(b[2 * (at)] & 65535), half_value(b[2 * (at)] >> 16 & 65535), \
        half_value(b[2 * (at) + 1] & 65535), half_value(b[2 * (at) + 1] >> 16 & 65535))
#define GET_BFLOAT(b, at)                                            \
  MAKE4(AS_FLOAT(b[2 * (at)] << 16), AS_FLOAT(b[2 * (at)] & -65536), \
        AS_FLOAT(b[2 * (at) + 1] << 16), AS_FLOAT(b[2 * (at) + 1] & -65536))
#define GET_FLOAT(b, at) \
  MAKE4(AS_FLOAT(b[4 * (at)]), AS_FLOAT(b[4 * (at) + 1]), AS_FLOAT(b[4 * (at) + 2]), AS_FLOAT(b[4 * (at) + 3]))
#define PUT PUT4
#define FIXED_V FIXED4
#else
#define I int
#define SPLAT_I(x) (x)
#define TO_F TO_FLOAT
#define READI READ1I
#define UPDATEI UPDATE1I
#define GET_BYTES(b, at, flip) SIGNED(BYTE_OF(b, at) ^ (flip))
#define GET_HALF(b, at) half_value(HALF_OF(b, at))
#define GET_BFLOAT(b, at) AS_FLOAT(HALF_OF(b, at) << 16)
#define GET_FLOAT(b, at) AS_FLOAT(b[at])
#define PUT PUT1
#define FIXED_V fixed_point
#endif
#define PUT1(type, b, at, v, zero)                                                     \
  {                                                                                    \
    if (type == 0) PUT_BITS(b, (at) >> 2, ((at) & 3) * 8, 255, TO_INT(RINT(v)) + zero) \
    else if (type == 1) PUT_BITS(b, (at) >> 1, ((at) & 1) * 16, 65535, half_bits(v))   \
    else if (type == 4) PUT_BITS(b, (at) >> 1, ((at) & 1) * 16, 65535, bfloat_bits(v)) \
    else b[at] = AS_INT(v);                                                            \
  }
