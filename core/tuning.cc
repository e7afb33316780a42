// The table of measured choices and its file. See tuning.h.
#include "core/tuning.h"

#include <skua/version.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/op.h"

namespace skua {
namespace {

constexpr size_t kMaxFile = size_t(4) << 20, kMaxLine = 256;

void say(const skua_context* ctx, skua_log_level level, const char* format, ...) __attribute__((format(printf, 3, 4)));
void say(const skua_context* ctx, skua_log_level level, const char* format, ...) {
  if (!ctx->log) return;
  char text[512];
  const int n = snprintf(text, sizeof text, "tuning cache %s: ", ctx->tuning_cache);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, sizeof text - size_t(n), format, args);
  va_end(args);
  ctx->log(ctx->log_ctx, level, text);
}

// First line: format | library | CPU | what it can do. A file with another one is of no use here.
constexpr char kMagic[] = "skua tuning cache";
size_t header_line(char (&line)[kMaxLine]) {
  const Cpu& c = cpu();
  size_t n = size_t(snprintf(line, sizeof line, "%s 1 | %s | %s |", kMagic, skua_version_string(), c.name));
  for (int i = 0; i < kIsaCount; ++i)
    if (c.detected & isa_bit(Isa(i))) n += size_t(snprintf(line + n, sizeof line - n, " %s", kIsas[i].name));
  n += size_t(snprintf(line + n, sizeof line - n, "\n"));
  return n;
}

// <key> <candidate> <threads> <ns> <operator algorithm kernel> #<checksum of what stands before the space>
size_t entry_line(const TunedChoice& t, char (&line)[kMaxLine]) {
  const int n = snprintf(line, sizeof line - 16, "%016llx %u %u %llu %s", static_cast<unsigned long long>(t.key),
                         t.index, t.threads, static_cast<unsigned long long>(t.ns), t.name);
  return size_t(n) + size_t(snprintf(line + n, 16, " #%08x\n", uint32_t(hash(line, size_t(n)))));
}

bool number(const char*& p, const char* end, unsigned base, uint64_t most, uint64_t& value) {
  value = 0;
  const char* const first = p;
  for (; p < end && *p != ' '; ++p) {
    const unsigned digit = *p >= '0' && *p <= '9'   ? unsigned(*p - '0')
                           : *p >= 'a' && *p <= 'f' ? unsigned(*p - 'a') + 10
                                                    : 99;
    if (digit >= base || value > (most - digit) / base) return false;
    value = value * base + digit;
  }
  return p > first && p < end && *p++ == ' ';
}

// A line without its end. False: damaged.
bool parse(const char* line, size_t size, TunedChoice& t) {
  if (size < 12 || size >= kMaxLine || line[size - 10] != ' ' || line[size - 9] != '#') return false;
  const char *p = line + size - 8, *end = line + size - 10;
  char sum[9];
  snprintf(sum, sizeof sum, "%08x", uint32_t(hash(line, size - 10)));
  if (memcmp(p, sum, 8)) return false;
  uint64_t index, threads;
  p = line;
  if (!number(p, end, 16, UINT64_MAX, t.key) || !number(p, end, 10, UINT16_MAX, index) ||
      !number(p, end, 10, UINT32_MAX, threads) || !number(p, end, 10, UINT64_MAX, t.ns))
    return false;
  t.index = uint32_t(index);
  t.threads = uint32_t(threads);
  const size_t n = size_t(end - p);
  if (!t.key || !n || n >= sizeof t.name || memchr(p, 0, n)) return false;
  memcpy(t.name, p, n);
  t.name[n] = 0;
  return true;
}

// What a file holds, in the context's memory.
struct Contents {
  char* text;
  size_t size, capacity;
};

// Reads an open file. False after a word in the log, or (status) without memory.
bool read_file(const skua_context* ctx, int fd, Contents& c, skua_status& status) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
    return say(ctx, SKUA_LOG_WARNING, "not a regular file; ignored"), false;
  if (s.st_size < 0 || uint64_t(s.st_size) > kMaxFile)
    return say(ctx, SKUA_LOG_WARNING, "larger than %zu bytes; ignored", kMaxFile), false;
  c = {nullptr, 0, size_t(s.st_size) + 1};
  c.text = static_cast<char*>(allocate(ctx, c.capacity, 16));
  if (!c.text) return status = out_of_memory("tuning cache", c.capacity), false;
  while (c.size < c.capacity - 1) {
    const ssize_t n = read(fd, c.text + c.size, c.capacity - 1 - c.size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    c.size += size_t(n);
  }
  return true;
}

// The first field of the first line that is not as expected; the last one ends with the line.
void say_header(const skua_context* ctx, const Contents& c, const char* expected, size_t n) {
  const void* const newline =
      c.size >= sizeof kMagic && !memcmp(c.text, kMagic, sizeof kMagic - 1) ? memchr(c.text, '\n', c.size) : nullptr;
  if (!newline) return say(ctx, SKUA_LOG_WARNING, "not a tuning cache, or damaged; ignored");
  const char *found = c.text, *const found_end = static_cast<const char*>(newline), *const end = expected + n - 1;
  static const char* const fields[] = {"format", "library version", "CPU", "instruction sets"};
  for (const char* what : fields) {
    const auto field = [&](const char* from, const char* line_end) {
      const void* bar = what[0] == 'i' ? nullptr : memmem(from, size_t(line_end - from), " | ", 3);
      return bar ? static_cast<const char*>(bar) : line_end;
    };
    const char *f = field(found, found_end), *e = field(expected, end);
    if (f - found != e - expected || memcmp(found, expected, size_t(f - found))) {
      char text[100];  // of a file of any content: no control characters
      size_t k = 0;
      for (; k < sizeof text - 1 && found + k < f; ++k) text[k] = found[k] < ' ' || found[k] > '~' ? '?' : found[k];
      text[k] = 0;
      return say(ctx, SKUA_LOG_WARNING, "its %s is \"%s\", here it is \"%.*s\"; ignored", what, text, int(e - expected),
                 expected);
    }
    found = f + min(3, size_t(found_end - f));
    expected = e + min(3, size_t(end - e));
  }
  say(ctx, SKUA_LOG_WARNING, "its first line is damaged; ignored");
}

// Calls visit(entry, line, size with its end) for each good line; says why others are ignored.
template <class Visit> void each_entry(const skua_context* ctx, const Contents& c, Visit visit) {
  char header[kMaxLine];
  const size_t n = header_line(header);
  if (!c.size) return;
  if (c.size < n || memcmp(c.text, header, n)) return say_header(ctx, c, header, n);
  size_t damaged = 0, first = 0, number = 1;
  for (size_t at = n; at < c.size;) {
    ++number;
    const auto* end = static_cast<const char*>(memchr(c.text + at, '\n', c.size - at));
    TunedChoice t = {};
    if (end && parse(c.text + at, size_t(end - c.text) - at, t)) visit(t, c.text + at, size_t(end - c.text) - at + 1);
    else if (!damaged++) first = number;
    at = end ? size_t(end - c.text) + 1 : c.size;
  }
  if (damaged == 1) say(ctx, SKUA_LOG_WARNING, "line %zu is damaged; ignored", first);
  else if (damaged) say(ctx, SKUA_LOG_WARNING, "%zu damaged lines ignored, line %zu is the first", damaged, first);
}

bool write_all(int fd, const char* data, size_t size) {
  while (size) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    size -= size_t(n);
  }
  return true;
}

// The file, open and locked, or -1 after a word in the log. The lock belongs to the file that has the name now: a
// writer replaces it while others wait.
int lock_file(const skua_context* ctx) {
  for (int tries = 0; tries < 4000; ++tries) {
    const int fd = open(ctx->tuning_cache, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return say(ctx, SKUA_LOG_WARNING, "%s; not written", strerror(errno)), -1;
    struct stat mine, named;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      if (fstat(fd, &mine) == 0 && stat(ctx->tuning_cache, &named) == 0 && mine.st_ino == named.st_ino &&
          mine.st_dev == named.st_dev)
        return fd;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      say(ctx, SKUA_LOG_WARNING, "cannot be locked: %s; not written", strerror(errno));
      close(fd);
      return -1;
    }
    close(fd);
    const timespec pause = {0, 500000};
    nanosleep(&pause, nullptr);
  }
  return say(ctx, SKUA_LOG_WARNING, "locked by somebody else; not written"), -1;
}

// " @<device>" at the end of a name: whose choice it is, where it is not the CPU's.
void device_mark(const skua_context* ctx, char* to, size_t size) {
  snprintf(to, size, " @%08x", uint32_t(ctx->gpu_key));
}
bool is_ours(const skua_context* ctx, const TunedChoice& t) {
  const char* const mark = strstr(t.name, " @");
  char own[16] = "";
  if (ctx->gpu) device_mark(ctx, own, sizeof own);
  return mark ? !strcmp(mark, own) : !ctx->gpu;
}

TunedChoice*& bucket(const skua_context* ctx, uint64_t key) { return ctx->tuned[key % kTunedBuckets]; }
TunedChoice* first(const skua_context* ctx, uint64_t key) {
  return __atomic_load_n(&bucket(ctx, key), __ATOMIC_ACQUIRE);
}

}  // namespace

uint64_t hash(const void* data, size_t size, uint64_t h) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < size; ++i) h = (h ^ p[i]) * 0x100000001b3;
  return h ^ h >> 32;
}

uint64_t tuning_key(const skua_op* op, const PlanShapes& shapes) {
  uint64_t h = hash(reinterpret_cast<const char*>(op) + op->cls->config_offset, op->cls->config_size);
  const uint32_t numbers[] = {op->cls->id, op->ctx->isas, uint32_t(shapes.n_inputs)};
  h = hash(numbers, sizeof numbers, h);
  h = hash(op->ctx->filter, strlen(op->ctx->filter), h);
  if (op->ctx->gpu) h = hash(&op->ctx->gpu_key, sizeof op->ctx->gpu_key, h);
  for (size_t i = 0; i < shapes.n_inputs; ++i) {
    const skua_tensor& t = shapes.inputs[i];
    const uint32_t type_and_rank[] = {uint32_t(t.type), t.rank};
    h = hash(type_and_rank, sizeof type_and_rank, h);
    h = hash(t.shape, t.rank * sizeof t.shape[0], h);
    h = hash(t.stride, t.rank * sizeof t.stride[0], h);
  }
  return h ? h : 1;
}

uint64_t creation_key(const skua_context* ctx, uint32_t op_class, const void* config, size_t size, uint64_t hint_h,
                      uint64_t hint_w) {
  if (!hint_h || !hint_w || ctx->filter[0]) return 0;
  const uint64_t numbers[] = {op_class, ctx->isas, hint_h, hint_w, 1};
  const uint64_t h = hash(numbers, sizeof numbers, hash(config, size));
  return h ? h : 1;
}

uint32_t tuned_creation(const skua_context* ctx, uint64_t key) {
  const TunedChoice* t = key && __atomic_load_n(&ctx->any_tuned, __ATOMIC_ACQUIRE) ? find_tuned(ctx, key) : nullptr;
  return t ? t->index : 0;
}

void tuned_name(const skua_plan* plan, char (&name)[sizeof TunedChoice::name]) {
  const char* const kernel = skua_plan_kernel(plan);
  const int n = snprintf(name, sizeof name, "%s %s %s", plan->op->cls->name, plan->algorithm, kernel[0] ? kernel : "-");
  if (plan->op->ctx->gpu && n > 0 && size_t(n) < sizeof name)
    device_mark(plan->op->ctx, name + n, sizeof name - size_t(n));
}

const TunedChoice* find_tuned(const skua_context* ctx, uint64_t key) {
  const TunedChoice* t = first(ctx, key);
  while (t && t->key != key) t = t->next;
  return t;
}

skua_status remember_tuned(const skua_context* ctx, const TunedChoice& choice) {
  if (const TunedChoice* t = find_tuned(ctx, choice.key);
      t && t->measured == choice.measured && t->index == choice.index && !strcmp(t->name, choice.name))
    return SKUA_STATUS_OK;
  auto* t = static_cast<TunedChoice*>(allocate(ctx, sizeof choice, alignof(TunedChoice)));
  if (!t) return out_of_memory("tune", sizeof choice);
  *t = choice;
  t->next = first(ctx, choice.key);
  while (
      !__atomic_compare_exchange_n(&bucket(ctx, choice.key), &t->next, t, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
  }
  __atomic_store_n(&ctx->any_tuned, true, __ATOMIC_RELEASE);
  return SKUA_STATUS_OK;
}

void forget_tuned(skua_context* ctx) {
  for (TunedChoice* t : ctx->tuned)
    while (t) {
      TunedChoice* next = t->next;
      release(ctx, t, sizeof *t);
      t = next;
    }
}

skua_status load_tuned(skua_context* ctx) {
  const int fd = open(ctx->tuning_cache, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) say(ctx, SKUA_LOG_INFO, "does not exist yet");
    else say(ctx, SKUA_LOG_WARNING, "%s; ignored", strerror(errno));
    return SKUA_STATUS_OK;
  }
  skua_status status = SKUA_STATUS_OK;
  Contents c;
  if (read_file(ctx, fd, c, status)) {
    size_t count = 0, others = 0;
    each_entry(ctx, c, [&](const TunedChoice& t, const char*, size_t) {
      if (!is_ours(ctx, t)) ++others;
      else if (status == SKUA_STATUS_OK) status = remember_tuned(ctx, t), ++count;
    });
    if (!c.size) say(ctx, SKUA_LOG_INFO, "is empty");
    else if (count) say(ctx, SKUA_LOG_INFO, "read %zu choice%s", count, count == 1 ? "" : "s");
    if (others) say(ctx, SKUA_LOG_INFO, "%zu choice%s of other devices passed over", others, others == 1 ? "" : "s");
    release(ctx, c.text, c.capacity);
  }
  close(fd);
  return status;
}

skua_status save_tuned(const skua_context* ctx) {
  skua_status status = SKUA_STATUS_OK;
  const int fd = lock_file(ctx);
  if (fd < 0) return status;
  // What is there and was not measured here, then what was measured here.
  Contents old;
  if (read_file(ctx, fd, old, status)) {
    size_t capacity = kMaxLine + old.size;
    for (size_t b = 0; b < kTunedBuckets; ++b)
      for (const TunedChoice* t = first(ctx, b); t; t = t->next) capacity += t->measured ? kMaxLine : 0;
    auto* text = static_cast<char*>(allocate(ctx, capacity, 16));
    if (!text) {
      status = out_of_memory("tuning cache", capacity);
    } else {
      char line[kMaxLine];
      size_t size = header_line(line);
      memcpy(text, line, size);
      each_entry(ctx, old, [&](const TunedChoice& t, const char* from, size_t n) {
        if (const TunedChoice* mine = find_tuned(ctx, t.key); mine && mine->measured) return;
        memcpy(text + size, from, n);
        size += n;
      });
      for (size_t b = 0; b < kTunedBuckets; ++b)
        for (const TunedChoice* t = first(ctx, b); t; t = t->next) {
          // others may tune meanwhile: they write theirs
          if (!t->measured || find_tuned(ctx, t->key) != t || capacity - size < kMaxLine) continue;
          const size_t n = entry_line(*t, line);
          memcpy(text + size, line, n);
          size += n;
        }
      char temporary[sizeof ctx->tuning_cache + 8];
      snprintf(temporary, sizeof temporary, "%s.new", ctx->tuning_cache);
      unlink(temporary);
      const int to = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      struct stat mode;
      const bool written =
          to >= 0 && fstat(fd, &mode) == 0 && fchmod(to, mode.st_mode & 0777) == 0 && write_all(to, text, size);
      const bool closed = to >= 0 && close(to) == 0;
      if (!written || !closed || rename(temporary, ctx->tuning_cache) != 0) {
        say(ctx, SKUA_LOG_WARNING, "%s; not written", strerror(errno));
        unlink(temporary);
      }
      release(ctx, text, capacity);
    }
    release(ctx, old.text, old.capacity);
  }
  close(fd);
  return status;
}

}  // namespace skua
