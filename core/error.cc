#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace skua {
namespace {
thread_local char error_text[sizeof ErrorText::text];
}

skua_status fail(skua_status status, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error_text, sizeof error_text, format, args);
  va_end(args);
  return status;
}

ErrorText::ErrorText() { memcpy(text, error_text, sizeof text); }

}  // namespace skua

extern "C" {

const char* skua_error_text(void) { return skua::error_text; }

const char* skua_status_name(skua_status status) {
  switch (status) {
    case SKUA_STATUS_OK: return "OK";
    case SKUA_STATUS_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case SKUA_STATUS_UNSUPPORTED: return "UNSUPPORTED";
    case SKUA_STATUS_OUT_OF_MEMORY: return "OUT_OF_MEMORY";
    case SKUA_STATUS_INCOMPATIBLE_BLOB: return "INCOMPATIBLE_BLOB";
    case SKUA_STATUS_NO_DEVICE: return "NO_DEVICE";
    case SKUA_STATUS_DEVICE_LOST: return "DEVICE_LOST";
    case SKUA_STATUS_DRIVER_ERROR: return "DRIVER_ERROR";
    case SKUA_STATUS_IO_ERROR: return "IO_ERROR";
  }
  return "UNKNOWN";
}

uint32_t skua_version(void) { return SKUA_VERSION_MAJOR << 16 | SKUA_VERSION_MINOR << 8 | SKUA_VERSION_PATCH; }
const char* skua_version_string(void) { return SKUA_VERSION_STRING; }

}  // extern "C"
