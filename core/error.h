// Errors are values: a status, and a sentence in the calling thread's error text.
#pragma once
#include <skua/status.h>

namespace skua {

// Writes the text (printf format) and returns the status:
// `return fail(SKUA_STATUS_INVALID_ARGUMENT, "%s: stride_h is 0", op);`
skua_status fail(skua_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The text as it was, for a call that succeeds after something in it has failed: text belongs to the last failing call.
struct ErrorText {
  char text[320];
  ErrorText();
  skua_status restore() const { return fail(SKUA_STATUS_OK, "%s", text); }
};

// fail(SKUA_STATUS_INVALID_ARGUMENT, ...)
#define SKUA_INVALID(...) ::skua::fail(SKUA_STATUS_INVALID_ARGUMENT, __VA_ARGS__)
#define SKUA_UNSUPPORTED_(...) ::skua::fail(SKUA_STATUS_UNSUPPORTED, __VA_ARGS__)
#define SKUA_TRY(expression)                                             \
  do {                                                                   \
    if (skua_status skua_s_ = (expression); skua_s_ != SKUA_STATUS_OK) return skua_s_; \
  } while (0)

}  // namespace skua
