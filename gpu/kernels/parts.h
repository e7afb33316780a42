// Reductions of many terms to few results, in two dispatches: the terms are cut into parts of `part`, whose results go
// to `partial` (GIVES_PARTS), and these are joined (JOINS). The order of sums is fixed by shape and device. PART 0: all
// in one dispatch.
#define GIVES_PARTS 1
#define JOINS 2
// v, in the first of the SLICES threads that share a work-group's terms from..to: TERM(i), joined by joined() in four
// chains each, by turns. `parts`: 256 of local memory, for 16 threads in the first dimension.
#define SUM_SLICES(type, first)                                            \
  type v = first, v1 = v, v2 = v, v3 = v;                                  \
  for (int i = from + slice; i < to; i += SLICES) {                        \
    type next = joined(v, TERM(i));                                        \
    v = v1;                                                                \
    v1 = v2;                                                               \
    v2 = v3;                                                               \
    v3 = next;                                                             \
  }                                                                        \
  v = joined(joined(v, v1), joined(v2, v3));                               \
  if (SLICES > 1) {                                                        \
    parts[slice * 16 + l] = v;                                             \
    BARRIER;                                                               \
    for (int s = 1; s < SLICES && slice == 0; s++) v = joined(v, parts[s * 16 + l]); \
  }
