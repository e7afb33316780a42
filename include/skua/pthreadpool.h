/* Adapter for pthreadpool. Built when CMake finds pthreadpool; in the library of its own, skua_pthreadpool. */
#ifndef SKUA_PTHREADPOOL_H_
#define SKUA_PTHREADPOOL_H_

#include <skua/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pthreadpool;

/* Borrows the pool (NULL: runs on the calling thread). The pool must outlive the executor's last use. */
SKUA_API skua_executor skua_executor_from_pthreadpool(struct pthreadpool* pool);

#ifdef __cplusplus
}
#endif
#endif
