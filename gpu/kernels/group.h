// What the THREADS threads of a work-group make of a value each: REDUCE(v, by_subgroup, join) leaves the result in v of
// every thread, the same for the same device. `parts`, 256 of local memory, is read last: a BARRIER before it is
// written again. With SUBGROUPS an instruction reduces what runs in step, however many these are, and local memory
// serves what is left.
#define ADD(a, b) ((a) + (b))
#if SUBGROUPS
#define REDUCE(v, by_subgroup, join)                                       \
  v = by_subgroup(v);                                                      \
  if (SUBGROUP_FIRST) parts[SUBGROUP] = v;                                 \
  BARRIER;                                                                 \
  v = parts[0];                                                            \
  for (int i = 1; i < SUBGROUP_COUNT; i++) v = join(v, parts[i]);
#else
#define REDUCE(v, by_subgroup, join)                                       \
  parts[l] = v;                                                            \
  for (int left = THREADS / 2; left > 0; left /= 2) {                      \
    BARRIER;                                                               \
    if (l < left) parts[l] = join(parts[l], parts[l + left]);              \
  }                                                                        \
  BARRIER;                                                                 \
  v = parts[0];
#endif
