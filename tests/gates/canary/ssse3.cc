// A byte shuffle, above SSE2.
#include <tmmintrin.h>
__m128i canary_shuffle(__m128i a, __m128i b) { return _mm_shuffle_epi8(a, b); }
