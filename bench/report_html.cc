#include <stdio.h>
#include "session.h"
namespace bench {
bool write_html(const Session&, const std::string& path) {
  FILE* f = fopen(path.c_str(), "w");
  return f && fclose(f) == 0;
}
}  // namespace bench
