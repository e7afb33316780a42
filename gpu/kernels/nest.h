// A thread's place in an elementwise dispatch: a row (in units of V elements) and three loops around it. The host's
// side: gpu/nest.h.
CONSTANT(0, NESTED, 0)   // more than one row
CONSTANT(1, SCALARS, 0)  // bit o: operand o is one value for a row
#define NEST_ARGS int n; int e0; int e1; int e2;
#define NEST_OPERAND(t) int t##_offset; int t##_0; int t##_1; int t##_2; int t##_3;
#define NEST_PLACE                                        \
  int i0 = GLOBAL(0), i1 = 0, i2 = 0, i3 = 0;             \
  if (i0 >= p.n) return;                                  \
  if (NESTED == 1) {                                      \
    i1 = i0 / p.e0; i0 -= i1 * p.e0;                      \
    i2 = i1 / p.e1; i1 -= i2 * p.e1;                      \
    i3 = i2 / p.e2; i2 -= i3 * p.e2;                      \
  }
#define NEST_AT(t) (p.t##_offset + i0 * p.t##_0 + i1 * p.t##_1 + i2 * p.t##_2 + i3 * p.t##_3)
