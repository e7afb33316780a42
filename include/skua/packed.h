/* Packed weights are a thing of their own: written once, mapped from a file, shared by many ops and threads.
 *
 * A blob holds an op's descriptor and its weights in the layout of the kernels, with a header (magic, format version,
 * operator, sizes, checksum). It is position independent; its bytes depend on the kernels' panel format, which
 * skua_op_create_packed() checks: a damaged, truncated or foreign blob, or one packed for another panel width, is
 * refused with SKUA_STATUS_INCOMPATIBLE_BLOB and the reason.
 *
 * The panel format follows the instruction set, and of bytes and half types also which dot products or half arithmetic
 * there are beside it, which skua_context_isa() does not name: keep the original weights for the day a blob is refused,
 * or a blob packed under each max_isa that the program will meet. A blob of a lower set opens on a higher one and runs
 * with kernels of its own format.
 *
 * Bias and epilogue are in the blob. `size` may exceed the blob's own. */
#ifndef SKUA_PACKED_H_
#define SKUA_PACKED_H_

#include <skua/op.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SKUA_PACKED_ALIGNMENT 64

/* Bytes that skua_op_packed_write() writes; 0 for ops without weights (a convert's scales are none) and on a GPU. */
SKUA_API size_t skua_op_packed_size(const skua_op* op);

/* dst: aligned to SKUA_PACKED_ALIGNMENT, size >= skua_op_packed_size(op). */
SKUA_API skua_status skua_op_packed_write(const skua_op* op, void* dst, size_t size);

/* An op that borrows the blob (no copy): it must stay, unchanged and aligned to SKUA_PACKED_ALIGNMENT, until the op is
 * destroyed. Any number of ops, contexts and threads may share one blob. Reads every byte once for the checksum. */
SKUA_API skua_status skua_op_create_packed(skua_context* context, const void* blob, size_t size, skua_op** out);

#ifdef __cplusplus
}
#endif
#endif
