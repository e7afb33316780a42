/* Version of the library. Semantic: a major step may break source or binary compatibility, a minor step only adds.
 * Until 1.0 a minor step may break it, a patch does not; struct_size must be that of the library which runs,
 * another is refused. */
#ifndef SKUA_VERSION_H_
#define SKUA_VERSION_H_

#include <stdint.h>

#define SKUA_VERSION_MAJOR 0
#define SKUA_VERSION_MINOR 1
#define SKUA_VERSION_PATCH 0
#define SKUA_VERSION_STRING "0.1.0"

/* Marks every public symbol; the shared library hides all others. */
#if defined(_WIN32) && defined(SKUA_SHARED)
#ifdef SKUA_BUILDING
#define SKUA_API __declspec(dllexport)
#else
#define SKUA_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define SKUA_API __attribute__((visibility("default")))
#else
#define SKUA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that runs: major << 16 | minor << 8 | patch. May differ from the headers when
 * linked dynamically. */
SKUA_API uint32_t skua_version(void);

/* The same as text, e.g. "0.1.0". Static storage. */
SKUA_API const char* skua_version_string(void);

#ifdef __cplusplus
}
#endif
#endif
