// Programs: a compute pipeline of a text's SPIR-V, its constants and its work-group. They live as long as the device
// and are found again by their key.
#include "gpu/vulkan/vulkan.h"

namespace skua::gpu {

struct Program {
  ProgramKey key;
  VkPipeline pipeline;
  Program* next;
};

namespace vulkan {
namespace {

bool same(const ProgramKey& a, const ProgramKey& b) {
  return a.text == b.text && !memcmp(a.local, b.local, sizeof a.local) &&
         !memcmp(a.constants, b.constants, sizeof a.constants);
}
const Program* find(const VulkanDevice* d, const ProgramKey& key) {
  for (const Program* p = d->programs; p; p = p->next)
    if (same(p->key, key)) return p;
  return nullptr;
}

// The words of a text, as embed_spirv.cmake packs them.
void unpack(const uint32_t* from, uint32_t* to) {
  const uint32_t words = *from++;
  size_t at = 0;
  const auto digit = [&] {
    const uint32_t d = from[at / 8] >> (28 - at % 8 * 4) & 15;
    ++at;
    return d;
  };
  for (uint32_t i = 0; i < words; ++i) {
    uint32_t n = digit();
    for (to[i] = 0; n > 0; --n) to[i] = to[i] << 4 | digit();
  }
}

// The text, which also asks for what the driver can promise (SPV_KHR_float_controls): that f32 becomes the nearest f16,
// ties to even, and that the smallest of these stay; that NaN, infinities and the signs of zeros are computed with as
// IEEE 754 says. `to` has room for kModeWords more.
constexpr size_t kModeWords = 3 * 2 + 7 + 4 * 4;
size_t with_modes(const Description& about, skua_dtype type, const uint32_t* text, size_t words, uint32_t* to) {
  enum : uint32_t { kExtension = 10, kEntryPoint = 15, kExecutionMode = 16, kCapability = 17 };
  const bool half = type == SKUA_DTYPE_F16, half_nan = half && about.f16_nan;
  const struct { bool wanted; uint32_t capability, mode, bits; } modes[] = {
      {half && about.f16_rounding, 4467, 4462, 16},
      {half && about.f16_preserve, 4464, 4459, 16},
      {about.f32_nan, 4466, 4461, 32},
      {half_nan, about.f32_nan ? 0u : 4466u, 4461, 16}};
  bool any = false;
  uint32_t* const first = to;
  const auto put = [&](const void* from, size_t n) {
    memcpy(to, from, n * sizeof *to);
    to += n;
  };
  put(text, 5);
  for (const auto& m : modes) {
    const uint32_t capability[] = {2u << 16 | kCapability, m.capability};
    if (m.wanted && m.capability) put(capability, 2);
    any = any || m.wanted;
  }
  for (size_t at = 5, n; at < words; at += n) {
    const uint32_t code = text[at] & 0xffff, extension = 7u << 16 | kExtension;
    n = text[at] >> 16;
    if (code != kCapability && any) {
      put(&extension, 1);
      put("SPV_KHR_float_controls\0", 6);
      any = false;
    }
    put(text + at, n);
    for (const auto& m : modes) {
      const uint32_t mode[] = {4u << 16 | kExecutionMode, text[at + 2], m.mode, m.bits};
      if (code == kEntryPoint && m.wanted) put(mode, 4);
    }
  }
  return size_t(to - first);
}

skua_status make_module(VulkanDevice* d, const KernelText& text, VkShaderModule* module) {
  const size_t words = text.spirv[0], room = (2 * words + kModeWords) * sizeof(uint32_t);
  auto* const unpacked = static_cast<uint32_t*>(allocate(d->ctx, room, alignof(uint32_t)));
  if (!unpacked) return out_of_memory(text.name, room);
  uint32_t* const whole = unpacked + words;
  unpack(text.spirv, unpacked);
  auto info = vk<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  info.codeSize = with_modes(d->about, text.type, unpacked, words, whole) * sizeof(uint32_t);
  info.pCode = whole;
  const skua_status status =
      created(d, d->CreateShaderModule(d->handle, &info, nullptr, module), "vkCreateShaderModule", *module);
  release(d->ctx, unpacked, room);
  return status;
}

skua_status build(VulkanDevice* d, const ProgramKey& key, VkPipeline* pipeline) {
  const Description& about = d->about;
  const uint32_t threads = uint32_t(key.local[0]) * key.local[1] * key.local[2];
  if (!threads || threads > about.group_threads || key.local[0] > about.group_extent[0] ||
      key.local[1] > about.group_extent[1] || key.local[2] > about.group_extent[2])
    return SKUA_UNSUPPORTED_("%s: a work-group of %ux%ux%u is more than %s has", key.text->name, key.local[0],
                             key.local[1], key.local[2], about.info.name);
  VkShaderModule module;
  SKUA_TRY(make_module(d, *key.text, &module));
  // C0 .. C7 are the specialisation constants 0 .. 7, the work-group 8 .. 10, 11 whether kernels round to f16, 12
  // whether 16 bits are a bf16, 13 whether weights are read as texels. The driver passes over those that the text does
  // not have.
  constexpr uint32_t n = kMaxConstants + 6;
  uint32_t values[n];
  VkSpecializationMapEntry entries[n];
  const uint32_t ours[] = {
      key.local[0],       key.local[1], key.local[2], !about.f16_rounding, key.text->type == SKUA_DTYPE_BF16,
      key.text->by_texels};
  for (uint32_t i = 0; i < n; ++i) {
    values[i] = i < kMaxConstants ? uint32_t(key.constants[i]) : ours[i - kMaxConstants];
    entries[i] = {i, uint32_t(i * sizeof values[0]), sizeof values[0]};
  }
  const VkSpecializationInfo constants = {n, entries, sizeof values, values};
  auto pipeline_info = vk<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  pipeline_info.stage = vk<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  pipeline_info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  pipeline_info.stage.module = module;
  pipeline_info.stage.pName = "main";
  pipeline_info.stage.pSpecializationInfo = &constants;
  pipeline_info.layout = d->layout;
  const VkResult made = d->CreateComputePipelines(d->handle, d->pipelines, 1, &pipeline_info, nullptr, pipeline);
  d->DestroyShaderModule(d->handle, module, nullptr);
  return check(d, made, "vkCreateComputePipelines");
}

}  // namespace

skua_status program(Device* device, const ProgramKey& key, const Program** out) {
  *out = nullptr;
  VulkanDevice* d = device_of(device);
  SKUA_TRY(check_lost(d));
  if (!key.text->spirv) return SKUA_UNSUPPORTED_("%s: this build has no SPIR-V of it", key.text->name);
  {
    Locked lock(d->program_lock);
    if ((*out = find(d, key))) return SKUA_STATUS_OK;
  }
  // Built outside the lock, so that several threads build several programs. Two that build the same one throw one away.
  auto* made = make_zeroed<Program>(d->ctx);
  if (!made) return out_of_memory(key.text->name, sizeof *made);
  made->key = key;
  if (const skua_status s = build(d, key, &made->pipeline); s != SKUA_STATUS_OK) {
    release(d->ctx, made, sizeof *made);
    return s;
  }
  Locked lock(d->program_lock);
  if ((*out = find(d, key))) {
    d->DestroyPipeline(d->handle, made->pipeline, nullptr);
    release(d->ctx, made, sizeof *made);
    return SKUA_STATUS_OK;
  }
  made->next = d->programs;
  d->programs = made;
  ++d->program_count;
  *out = made;
  return SKUA_STATUS_OK;
}

void destroy_programs(VulkanDevice* d) {
  while (Program* p = d->programs) {
    d->programs = p->next;
    d->DestroyPipeline(d->handle, p->pipeline, nullptr);
    release(d->ctx, p, sizeof *p);
  }
}

skua_status create_pipelines(VulkanDevice* d) {
  auto p = vk<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  d->in.GetPhysicalDeviceProperties2(d->physical, &p);
  const VkPhysicalDeviceProperties& about = p.properties;
  d->pipelines_key = cache_key(about.pipelineCacheUUID, VK_UUID_SIZE);
  size_t size = 0;
  const void* bytes = cache_find(d->cache, d->pipelines_key, &size);
  if (bytes) {  // what the driver should look at itself
    VkPipelineCacheHeaderVersionOne h;
    if (size >= sizeof h) memcpy(&h, bytes, sizeof h);
    if (size < sizeof h || h.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || h.vendorID != about.vendorID ||
        h.deviceID != about.deviceID || memcmp(h.pipelineCacheUUID, about.pipelineCacheUUID, VK_UUID_SIZE)) {
      cache_drop(d->cache, d->pipelines_key, "pipeline cache of another driver");
      bytes = nullptr;
    }
  }
  auto info = vk<VkPipelineCacheCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO);
  info.initialDataSize = bytes ? size : 0;
  info.pInitialData = bytes;
  SKUA_VK_NEW(d, CreatePipelineCache, d->pipelines, d->handle, &info, nullptr);
  return SKUA_STATUS_OK;
}

// The driver's own bytes, if it built anything.
skua_status save(Device* device) {
  VulkanDevice* d = device_of(device);
  if (!d->cache || !d->programs) return SKUA_STATUS_OK;
  size_t size = 0;
  SKUA_VK(d, GetPipelineCacheData, d->handle, d->pipelines, &size, nullptr);
  void* bytes = size ? allocate(d->ctx, size, 16) : nullptr;
  if (!bytes) return size ? out_of_memory("program cache", size) : SKUA_STATUS_OK;
  size_t got = size;
  const VkResult r = d->GetPipelineCacheData(d->handle, d->pipelines, &got, bytes);
  if (r == VK_SUCCESS) cache_put(d->cache, d->pipelines_key, bytes, got);
  release(d->ctx, bytes, size);
  if (r != VK_INCOMPLETE) SKUA_TRY(check(d, r, "vkGetPipelineCacheData"));  // it grew meanwhile: the next time
  return cache_write(d->cache);
}

VkPipeline pipeline_of(const Program* program) { return program->pipeline; }
bool has_texels(const Program* program) { return program->key.text->has_texels; }
uint32_t threads_of(const Program* program) {
  return uint32_t(program->key.local[0]) * program->key.local[1] * program->key.local[2];
}

}  // namespace vulkan
}  // namespace skua::gpu
