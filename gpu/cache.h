// A file of what drivers compiled: programs of OpenCL one by one, the pipeline cache of Vulkan as one entry. Drivers
// trust such bytes blindly (PoCL 3.1 crashes on a truncated binary), so nothing reaches a driver that this library did
// not write itself, whole, for this device, driver and version of the library: anything else is passed over, with the
// reason in the log, and compiled again.
//
//   header    magic, format, number of entries, device key, total size, checksum of all
//   entries   key, size, bytes up to a multiple of 8
#pragma once
#include "gpu/device.h"

namespace skua::gpu {

struct CacheKey {
  uint64_t a, b;
};
CacheKey cache_key(const void* data, size_t size, CacheKey seed = {0xcbf29ce484222325, 0x9ae16a3b2f90404f});
// of the texts themselves, not of their addresses
CacheKey cache_key(const ProgramKey& key, bool spirv, const char* prelude = kernel_prelude);

// Reads the file that the context names, if it names one, and sets device->cache. Fails on nothing but memory.
skua_status cache_open(Device* device);
// Writes what was added, together with what others have written to the file since it was read: a temporary file,
// renamed. Nothing added: nothing written.
skua_status cache_write(ProgramCache* cache);
void cache_close(Device* device);  // does not write

// The bytes stay until the next put of the same key.
const void* cache_find(const ProgramCache* cache, CacheKey key, size_t* size);
void cache_put(ProgramCache* cache, CacheKey key, const void* data, size_t size);  // copies
void cache_drop(ProgramCache* cache, CacheKey key, const char* why);               // the driver refused it

}  // namespace skua::gpu
