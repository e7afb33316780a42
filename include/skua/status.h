/* Errors are values: every function that can fail returns one of these, and leaves a sentence in skua_error_text().
 * What it would have given (*out) is then NULL. */
#ifndef SKUA_STATUS_H_
#define SKUA_STATUS_H_

#include <skua/version.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum skua_status {
  SKUA_STATUS_OK = 0,
  SKUA_STATUS_INVALID_ARGUMENT = 1,  /* an argument is out of range, inconsistent, or NULL; nothing was changed */
  /* valid, but this build or this version has no kernel for it; the text says what */
  SKUA_STATUS_UNSUPPORTED = 2,
  SKUA_STATUS_OUT_OF_MEMORY = 3,     /* the allocator returned NULL; everything taken so far was given back */
  SKUA_STATUS_INCOMPATIBLE_BLOB = 4, /* packed weights or a cache file: damaged, or from another version or format */
  SKUA_STATUS_NO_DEVICE = 5,         /* the driver library, or the device asked for, is not there */
  SKUA_STATUS_DEVICE_LOST = 6,       /* the GPU context is gone; destroy it and create another */
  SKUA_STATUS_DRIVER_ERROR = 7,      /* the GPU driver refused a call; the text carries its code */
  SKUA_STATUS_IO_ERROR = 8           /* a file could not be read or written */
} skua_status;

/* Name of a status, e.g. "INVALID_ARGUMENT". Static storage; "UNKNOWN" for any other value. */
SKUA_API const char* skua_status_name(skua_status status);

/* Why the last call on this thread that returned a status other than OK did so: "conv2d: stride_h is 0,
 * must be 1 or more".
 * The text belongs to the calling thread, stays until its next failing call, and is "" before the first. Never NULL. */
SKUA_API const char* skua_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
