/* Skua: neural-network kernels for CPUs and GPUs. Includes all of the API except skua/pthreadpool.h.
 *
 * Start with context.h (what a context is), op.h (create, plan, run), and the header of the operator you want. */
#ifndef SKUA_SKUA_H_
#define SKUA_SKUA_H_

#include <skua/context.h>
#include <skua/conv.h>
#include <skua/data.h>
#include <skua/device.h>
#include <skua/elementwise.h>
#include <skua/executor.h>
#include <skua/gemm.h>
#include <skua/kernel.h>
#include <skua/normalize.h>
#include <skua/op.h>
#include <skua/packed.h>
#include <skua/pool.h>
#include <skua/quantize.h>
#include <skua/reduce.h>
#include <skua/resize.h>
#include <skua/status.h>
#include <skua/stream.h>
#include <skua/tune.h>
#include <skua/types.h>
#include <skua/version.h>

#endif
