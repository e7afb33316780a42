#include "gpu/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <skua/version.h>
#include "core/op.h"

namespace skua::gpu {

namespace {

constexpr char kMagic[8] = {'s', 'k', 'u', 'a', 'p', 'r', 'o', 'g'};
constexpr uint32_t kFormat = 1;
constexpr size_t kMostBytes = size_t(256) << 20;

struct Header {
  char magic[8];
  uint32_t format, n_entries;
  uint64_t device;
  uint64_t total_size;
  uint64_t checksum;  // of the whole file with this field 0
};
struct EntryHeader {
  CacheKey key;
  uint64_t size;
};
static_assert(sizeof(Header) == 40 && sizeof(EntryHeader) == 24);

struct Entry {
  Entry* next;
  size_t size;
  CacheKey key;
  bool dead;  // dropped; whoever holds the bytes may still read them
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(this + 1); }
};

bool equal(CacheKey a, CacheKey b) { return a.a == b.a && a.b == b.b; }

}  // namespace

struct ProgramCache {
  Device* device;
  uint64_t device_key;
  mutable pthread_mutex_t lock;
  Entry* entries;
  bool changed;
  char path[256];
};

namespace {

struct Locked {
  explicit Locked(const ProgramCache* c) : cache(c) { pthread_mutex_lock(&cache->lock); }
  ~Locked() { pthread_mutex_unlock(&cache->lock); }
  const ProgramCache* cache;
};

void say(const ProgramCache* c, skua_log_level level, const char* format, ...) __attribute__((format(printf, 3, 4)));
void say(const ProgramCache* c, skua_log_level level, const char* format, ...) {
  const skua_context* ctx = c->device->ctx;
  if (!ctx->log) return;
  char text[512];
  const size_t n = size_t(snprintf(text, sizeof text, "program cache %s: ", c->path));
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, sizeof text - n, format, args);
  va_end(args);
  ctx->log(ctx->log_ctx, level, text);
}

uint64_t device_key(const Device* d) {
  const skua_device_info& i = d->about.info;
  char text[512];
  const int n = snprintf(text, sizeof text, "%s|%s|%s|%s|%s|%zu", d->api->name, i.name, i.vendor, i.driver,
                         SKUA_VERSION_STRING, sizeof(void*));
  return hash(text, n < 0 ? 0 : min(size_t(n), sizeof text));
}

uint64_t checksum(const unsigned char* file, size_t size) {
  Header h;
  memcpy(&h, file, sizeof h);
  h.checksum = 0;
  return hash(file + sizeof h, size - sizeof h, hash(&h, sizeof h));
}

Entry* find(const ProgramCache* c, CacheKey key) {
  for (Entry* e = c->entries; e; e = e->next)
    if (!e->dead && equal(e->key, key)) return e;
  return nullptr;
}

bool insert(ProgramCache* c, CacheKey key, const void* data, size_t size) {
  auto* e =
      static_cast<Entry*>(allocate(c->device->ctx, sizeof(Entry) + size, alignof(Entry) < 8 ? 8 : alignof(Entry)));
  if (!e) return false;
  *e = {c->entries, size, key, false};
  if (size) memcpy(e->bytes(), data, size);
  c->entries = e;
  return true;
}

struct File {
  unsigned char* bytes;
  size_t size;
};

// NULL: there is none, or it is no use, which the log tells.
File read_file(const ProgramCache* c, skua_status& status, bool may_lack = false) {
  const int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT && !may_lack) say(c, SKUA_LOG_INFO, "does not exist yet");
    else if (errno != ENOENT) say(c, SKUA_LOG_WARNING, "%s; ignored", strerror(errno));
    return {};
  }
  File f = {};
  struct stat about;
  const char* why = nullptr;
  if (fstat(fd, &about) != 0) why = strerror(errno);
  else if (!S_ISREG(about.st_mode)) why = "is no regular file";
  else if (about.st_size < off_t(sizeof(Header))) why = "shorter than its header";
  else if (uint64_t(about.st_size) > kMostBytes) why = "larger than any that this library writes";
  if (!why) {
    f.size = size_t(about.st_size);
    f.bytes = static_cast<unsigned char*>(allocate(c->device->ctx, f.size, 16));
    if (!f.bytes) status = out_of_memory("program cache", f.size);
  }
  if (f.bytes) {
    size_t have = 0;
    while (have < f.size) {
      const ssize_t n = read(fd, f.bytes + have, f.size - have);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      have += size_t(n);
    }
    Header h;
    memcpy(&h, f.bytes, sizeof h);
    if (have < f.size) why = "cannot be read";
    else if (memcmp(h.magic, kMagic, sizeof kMagic)) why = "is no program cache";
    else if (h.format != kFormat) why = "of another format";
    else if (h.total_size != f.size) why = "truncated";
    else if (h.checksum != checksum(f.bytes, f.size)) why = "damaged: the checksum does not match";
    else if (h.device != c->device_key) why = "of another device, driver or version of the library";
    if (why) {
      release(c->device->ctx, f.bytes, f.size);
      f = {};
    }
  }
  close(fd);
  if (why) say(c, SKUA_LOG_WARNING, "%s; ignored", why);
  return f;
}

// visit(key, data, size) for every entry of a file that read_file() accepted.
template <class Visit> void each_entry(const File& f, Visit visit) {
  Header h;
  memcpy(&h, f.bytes, sizeof h);
  size_t at = sizeof h;
  for (uint32_t i = 0; i < h.n_entries && f.size - at >= sizeof(EntryHeader); ++i) {
    EntryHeader e;
    memcpy(&e, f.bytes + at, sizeof e);
    at += sizeof e;
    if (e.size > f.size - at) return;
    visit(e.key, f.bytes + at, size_t(e.size));
    at += min(round_up(size_t(e.size), 8), f.size - at);
  }
}

bool write_all(int fd, const unsigned char* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = write(fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += size_t(n);
  }
  return true;
}

}  // namespace

CacheKey cache_key(const void* data, size_t size, CacheKey seed) {
  return {hash(data, size, seed.a), hash(data, size, seed.b)};
}

CacheKey cache_key(const ProgramKey& key, bool spirv, const char* prelude) {
  const KernelText& t = *key.text;
  CacheKey k = spirv ? cache_key(t.spirv, t.spirv_bytes)
                     : cache_key(t.source, strlen(t.source), cache_key(prelude, strlen(prelude)));
  k = cache_key(t.options, strlen(t.options), k);
  k = cache_key(key.local, sizeof key.local, k);
  return cache_key(key.constants, sizeof key.constants, k);
}

skua_status cache_open(Device* device) {
  const char* path = device->ctx->program_cache;
  if (!path[0]) return SKUA_STATUS_OK;
  auto* c = static_cast<ProgramCache*>(allocate(device->ctx, sizeof(ProgramCache), alignof(ProgramCache)));
  if (!c) return out_of_memory("program cache", sizeof *c);
  memset(static_cast<void*>(c), 0, sizeof *c);
  c->device = device;
  c->device_key = device_key(device);
  pthread_mutex_init(&c->lock, nullptr);
  snprintf(c->path, sizeof c->path, "%s", path);
  skua_status status = SKUA_STATUS_OK;
  const File f = read_file(c, status);
  if (f.bytes) {
    size_t count = 0;
    each_entry(f, [&](CacheKey key, const void* data, size_t size) {
      if (!find(c, key)) insert(c, key, data, size) ? ++count : 0;
    });
    say(c, SKUA_LOG_INFO, "read %zu entr%s, %zu KB", count, count == 1 ? "y" : "ies", f.size >> 10);
    release(device->ctx, f.bytes, f.size);
  }
  device->cache = c;
  if (status != SKUA_STATUS_OK) cache_close(device);
  return status;
}

void cache_close(Device* device) {
  ProgramCache* c = device->cache;
  if (!c) return;
  device->cache = nullptr;
  while (Entry* e = c->entries) {
    c->entries = e->next;
    release(c->device->ctx, e, sizeof *e + e->size);
  }
  pthread_mutex_destroy(&c->lock);
  release(c->device->ctx, c, sizeof *c);
}

const void* cache_find(const ProgramCache* c, CacheKey key, size_t* size) {
  *size = 0;
  if (!c) return nullptr;
  Locked lock(c);
  Entry* e = find(c, key);
  if (!e) return nullptr;
  *size = e->size;
  return e->bytes();
}

void cache_put(ProgramCache* c, CacheKey key, const void* data, size_t size) {
  if (!c) return;
  Locked lock(c);
  Entry* old = find(c, key);
  if (old && old->size == size && !memcmp(old->bytes(), data, size)) return;
  if (!insert(c, key, data, size)) return;  // it works without
  if (old) old->dead = true;
  c->changed = true;
}

void cache_drop(ProgramCache* c, CacheKey key, const char* why) {
  if (!c) return;
  Locked lock(c);
  Entry* e = find(c, key);
  if (!e) return;
  say(c, SKUA_LOG_WARNING, "the driver refuses an entry (%s); compiled again", why);
  e->dead = true;
  c->changed = true;
}

skua_status cache_write(ProgramCache* c) {
  if (!c) return SKUA_STATUS_OK;
  Locked lock(c);
  if (!c->changed) return SKUA_STATUS_OK;
  // a device or pipe would become a file
  if (struct stat about; stat(c->path, &about) == 0 && !S_ISREG(about.st_mode)) {
    say(c, SKUA_LOG_WARNING, "is no regular file; not written");
    return fail(SKUA_STATUS_IO_ERROR, "program cache %s: is no regular file", c->path);
  }
  skua_status status = SKUA_STATUS_OK;
  const ErrorText before;
  // What others have written since: theirs where we have nothing, and nothing that the driver refused here.
  const File f = read_file(c, status, true);
  if (f.bytes)
    each_entry(f, [&](CacheKey key, const void* data, size_t size) {
      for (Entry* e = c->entries; e; e = e->next)
        if (equal(e->key, key)) return;
      insert(c, key, data, size);
    });
  release(c->device->ctx, f.bytes, f.size);
  before.restore();

  Header h = {};
  size_t size = sizeof h;
  for (Entry* e = c->entries; e; e = e->next)
    if (!e->dead) size += sizeof(EntryHeader) + round_up(e->size, 8), ++h.n_entries;
  if (size > kMostBytes) return say(c, SKUA_LOG_WARNING, "would be %zu bytes; not written", size), SKUA_STATUS_OK;
  auto* bytes = static_cast<unsigned char*>(allocate(c->device->ctx, size, 16));
  if (!bytes) return out_of_memory("program cache", size);
  memset(bytes, 0, size);
  size_t at = sizeof h;
  for (Entry* e = c->entries; e; e = e->next) {
    if (e->dead) continue;
    const EntryHeader eh = {e->key, e->size};
    memcpy(bytes + at, &eh, sizeof eh);
    memcpy(bytes + at + sizeof eh, e->bytes(), e->size);
    at += sizeof eh + round_up(e->size, 8);
  }
  memcpy(h.magic, kMagic, sizeof kMagic);
  h.format = kFormat;
  h.device = c->device_key;
  h.total_size = size;
  memcpy(bytes, &h, sizeof h);
  h.checksum = checksum(bytes, size);
  memcpy(bytes, &h, sizeof h);

  // Its own name for every writer: whoever renames last is the file, whole.
  char temporary[sizeof c->path + 32];
  snprintf(temporary, sizeof temporary, "%s.%ld.%p", c->path, long(getpid()), static_cast<void*>(c));
  const int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = to >= 0 && write_all(to, bytes, size);
  const bool closed = to >= 0 && close(to) == 0;
  if (!written || !closed || rename(temporary, c->path) != 0) {
    const int error = errno;
    say(c, SKUA_LOG_WARNING, "%s; not written", strerror(error));
    if (to >= 0) unlink(temporary);
    status = fail(SKUA_STATUS_IO_ERROR, "program cache %s: %s", c->path, strerror(error));
  } else {
    c->changed = false;
    status = SKUA_STATUS_OK;
    say(c, SKUA_LOG_INFO, "wrote %zu entr%s, %zu KB", size_t(h.n_entries), h.n_entries == 1 ? "y" : "ies", size >> 10);
  }
  release(c->device->ctx, bytes, size);
  return status;
}

}  // namespace skua::gpu
