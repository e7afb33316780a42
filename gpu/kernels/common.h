// The kernels' dialect: one text for OpenCL C and GLSL. prelude_cl.h and prelude_glsl.h give the words their meaning,
// gpu/CMakeLists.txt puts prelude, this file and the text together.
//
//   CONSTANT(i, KIND, 0)              the host's C<i>, known when the driver compiles; 0 is what the text is checked
//                                     with
//   ARGS(int n; int x_offset;)        32-bit arguments of a dispatch, 29 at most, used as p.n; floats travel as their
//                                     bits: AS_FLOAT(p.a)
//   KERNEL2(name, READ(0, x), WRITE(1, y)) SHARED(F4, tile, 64) BODY { ... } END
//   PUT_FLOAT, PUT_WORD(tile, i, v)   float or int i of SHARED vectors
//   READ1, READ4                      a binding by elements or by vectors of 4 (index in vectors); READ: by V. UPDATE
//                                     is read and written
//   READT, LDT                        one binding of a text may be read as texels of its buffer, by the same index:
//                                     constant weights, by vectors of 4 (by elements they are READ and LD)
//   LD, ST                            widen to float and round to the storage type (STORE16: f16, or bf16). READ1F,
//                                     READ4F: float in any text, read as b[i]; READ1I, READ4I: int
//   RAW4, LDRAW4, WIDE_RAW4           LD4 in two steps: read now, widened when it is wanted
//   READB, WRITEB, LDB, STB           the same as bits, which moves must not change: TBITS, V unsigned integers; SPLATB
//   F, F4, T; SPLAT                   float, 4 floats, V floats; all arithmetic is in them, but for bytes (bytes.h):
//                                     int, I4
//   H4, LDH4, SPLAT_H4; WIDE4         like F4, LD4; with ARITH16 (of STORE16) f16 as it is stored, to multiply and to
//                                     sum at most 64 terms of before it is widened. TH, LDH: by V
//   EXACT                             before the declaration of a result none of whose operations may be fused
//   MUL_HIGH, MUL_LOW, ADD_LOW        the halves of an int product of 64 bits, a sum that wraps
//   UNROLLED                          before a loop that counts to a constant; to one of CONSTANT, or glslc unrolls it
//                                     in the text
//   GLOBAL(i), LOCAL(i), GROUP(i)     this thread's place in what was asked for; a device that does not start as many
//                                     work-groups gets it in several dispatches
//   SUBGROUP_ADD, _MAX, _MIN          of the threads that run in step; SUBGROUP is their number, of SUBGROUP_COUNT, and
//                                     SUBGROUP_FIRST one of them (SUBGROUPS)
//   REPEAT(TM, M)                     M(0) M(1) .. M(TM - 1), TM a macro: no arrays in registers, drivers spill them
//
// Buffers are indexed, never pointed to, and only the kernel itself may name them (functions get values).
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define REPEAT_1(M) M(0)
#define REPEAT_2(M) REPEAT_1(M) M(1)
#define REPEAT_3(M) REPEAT_2(M) M(2)
#define REPEAT_4(M) REPEAT_3(M) M(3)
#define REPEAT_5(M) REPEAT_4(M) M(4)
#define REPEAT_6(M) REPEAT_5(M) M(5)
#define REPEAT_7(M) REPEAT_6(M) M(6)
#define REPEAT_8(M) REPEAT_7(M) M(7)
#define REPEAT(n, M) CAT(REPEAT_, n)(M)

#if V == 4
#define T F4
#define SPLAT SPLAT4
#define TH H4
#define LDH LDH4
#define SPLAT_H SPLAT_H4
#define WIDE WIDE4
#define LD LD4
#define ST ST4
#define READ READ4
#define WRITE WRITE4
#define UPDATE UPDATE4
#define READT READ4T
#define LDT LD4T
#define READF READ4F
#define WRITEF WRITE4F
#define UPDATEF UPDATE4F
#define TBITS BITS4
#define SPLATB SPLAT4B
#define LDB LD4B
#define STB ST4B
#define READB READ4B
#define WRITEB WRITE4B
#else
#define T F
#define SPLAT(x) (x)
#define TH F
#define LDH LD1
#define SPLAT_H(x) (x)
#define WIDE(x) (x)
#define LD LD1
#define ST ST1
#define READ READ1
#define WRITE WRITE1
#define UPDATE UPDATE1
#define READT READ1
#define LDT LD1
#define READF READ1F
#define WRITEF WRITE1F
#define UPDATEF UPDATE1F
#define TBITS BITS
#define SPLATB(x) (x)
#define LDB LD1B
#define STB ST1B
#define READB READ1B
#define WRITEB WRITE1B
#endif

#define INF AS_FLOAT(0x7f800000)
#define NAN_ AS_FLOAT(0x7fc00000)
// NaN passes: comparisons with it are false.
#define AT_LEAST(x, low) SELECT(LESS(x, low), low, x)
#define AT_MOST(x, high) SELECT(LESS(high, x), high, x)
