// Half-precision arithmetic, above Armv8.0.
#include <arm_neon.h>
float16x8_t canary_half(float16x8_t a, float16x8_t b, float16x8_t c) { return vfmaq_f16(c, a, b); }
