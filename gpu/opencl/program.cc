// Programs: compiled from text, or taken from the program cache. They live as long as the device and are found again by
// their key.
#include <stdio.h>

#include "gpu/opencl/backend.h"

namespace skua::gpu::opencl {
namespace {

bool same(const ProgramKey& a, const ProgramKey& b) {
  return a.text == b.text && !memcmp(a.local, b.local, sizeof a.local) &&
         !memcmp(a.constants, b.constants, sizeof a.constants);
}

skua_status build_failure(ClDevice* d, const ProgramKey& key, cl_program program, cl_int error) {
  char log[4096] = "";
  if (d->cl->clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, nullptr) != CL_SUCCESS)
    log[0] = 0;
  if (d->ctx->log && log[0]) d->ctx->log(d->ctx->log_ctx, SKUA_LOG_WARNING, log);
  const char* line = strstr(log, "error");
  line = line ? line : log;
  return fail(SKUA_STATUS_DRIVER_ERROR, "OpenCL: the driver does not compile %s: %s (%d): %.*s", key.text->name,
              error_name(error), int(error), int(strcspn(line, "\n")), line);
}

// A program of the cache that the driver takes: with its kernel in p.
bool from_cache(ClDevice* d, CacheKey key, const char* options, Program* p) {
  const Functions& cl = *d->cl;
  size_t size;
  const auto* bytes = static_cast<const unsigned char*>(cache_find(d->cache, key, &size));
  if (!bytes) return false;
  cl_int loaded = CL_SUCCESS, error;
  const cl_program program = cl.clCreateProgramWithBinary(d->context, 1, &d->id, &size, &bytes, &loaded, &error);
  if (error == CL_SUCCESS && loaded != CL_SUCCESS) error = loaded;
  if (error == CL_SUCCESS) error = cl.clBuildProgram(program, 1, &d->id, options, nullptr, nullptr);
  if (error == CL_SUCCESS) error = cl.clCreateKernelsInProgram(program, 1, &p->kernel, nullptr);
  if (error == CL_SUCCESS) {
    p->program = program;
    return true;
  }
  if (program) cl.clReleaseProgram(program);
  cache_drop(d->cache, key, error_name(error));
  return false;
}

void to_cache(ClDevice* d, CacheKey key, cl_program program) {
  const Functions& cl = *d->cl;
  size_t size = 0;
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || !size) return;
  auto* bytes = static_cast<unsigned char*>(allocate(d->ctx, size, 16));
  if (bytes && cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) == CL_SUCCESS)
    cache_put(d->cache, key, bytes, size);
  release(d->ctx, bytes, size);
}

skua_status compile(ClDevice* d, const ProgramKey& key, Program* p) {
  const Functions& cl = *d->cl;
  char options[512];
  // Products of bytes are words of OpenCL C 3.0, subgroups of 2.0.
  const char* language = d->about.integer_dot && strstr(key.text->options, "-DDOT=1")         ? "CL3.0"
                         : d->about.opencl < 2 || !strstr(key.text->options, "-DSUBGROUPS=1") ? "CL1.2"
                         : d->about.opencl >= 3                                               ? "CL3.0"
                                                                                              : "CL2.0";
  int n = snprintf(options, sizeof options, "-cl-std=%s %s -DL0=%d -DL1=%d -DL2=%d", language, key.text->options,
                   key.local[0], key.local[1], key.local[2]);
  for (uint32_t i = 0; i < kMaxConstants; ++i)
    n += snprintf(options + n, sizeof options - size_t(n), " -DC%u=%d", i, int(key.constants[i]));
  cl_int error;
  const CacheKey cached = d->cache ? cache_key(key, false) : CacheKey{};
  if (from_cache(d, cached, options, p)) return SKUA_STATUS_OK;
  const char* source[] = {kernel_prelude, key.text->source};
  p->program = cl.clCreateProgramWithSource(d->context, 2, source, nullptr, &error);
  if (error != CL_SUCCESS) return driver_error(d, "clCreateProgramWithSource", error);
  error = cl.clBuildProgram(p->program, 1, &d->id, options, nullptr, nullptr);
  skua_status status = error == CL_SUCCESS ? SKUA_STATUS_OK : build_failure(d, key, p->program, error);
  if (status == SKUA_STATUS_OK) {
    error = cl.clCreateKernelsInProgram(p->program, 1, &p->kernel, nullptr);
    if (error != CL_SUCCESS) status = driver_error(d, "clCreateKernelsInProgram", error);
  }
  size_t most = 0;
  if (status == SKUA_STATUS_OK && cl.clGetKernelWorkGroupInfo(p->kernel, d->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most,
                                                              &most, nullptr) == CL_SUCCESS) {
    const size_t wanted = size_t(key.local[0]) * key.local[1] * key.local[2];
    if (wanted > most) {
      status = SKUA_UNSUPPORTED_("OpenCL: %s wants work-groups of %zu threads, this device allows it %zu",
                                 key.text->name, wanted, most);
      cl.clReleaseKernel(p->kernel);
    }
  }
  if (status != SKUA_STATUS_OK) cl.clReleaseProgram(p->program);
  else if (d->cache) to_cache(d, cached, p->program);
  return status;
}

}  // namespace

skua_status program(Device* base, const ProgramKey& key, const Program** out) {
  ClDevice* d = of(base);
  pthread_mutex_lock(&d->compiling);
  Program* p = d->programs;
  while (p && !same(p->key, key)) p = p->next;
  skua_status status = SKUA_STATUS_OK;
  if (!p) {
    p = make<Program>(d);
    if (!p) {
      status = out_of_memory("program", sizeof *p);
    } else if ((status = compile(d, key, p)) != SKUA_STATUS_OK) {
      release(d->ctx, p, sizeof *p);
    } else {
      pthread_mutex_init(&p->setting, nullptr);
      p->key = key;
      p->next = d->programs;
      d->programs = p;
      ++d->program_count;
    }
  }
  pthread_mutex_unlock(&d->compiling);
  if (status == SKUA_STATUS_OK) *out = p;
  return status;
}

void destroy_programs(ClDevice* d) {
  for (Program* p = d->programs; p;) {
    Program* next = p->next;
    d->cl->clReleaseKernel(p->kernel);
    d->cl->clReleaseProgram(p->program);
    pthread_mutex_destroy(&p->setting);
    release(d->ctx, p, sizeof *p);
    p = next;
  }
}

}  // namespace skua::gpu::opencl
