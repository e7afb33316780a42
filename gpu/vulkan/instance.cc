// The loader, the instance, and what its devices are.
#include "gpu/vulkan/vulkan.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

namespace skua::gpu::vulkan {
namespace {

VkBool32 VKAPI_PTR say(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT,
                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  const auto* ctx = static_cast<const skua_context*>(user);
  ctx->log(ctx->log_ctx, severity >= VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT ? SKUA_LOG_WARNING : SKUA_LOG_INFO,
           data->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messenger_info(const skua_context* ctx) {
  auto info = vk<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  info.pfnUserCallback = say;
  info.pUserData = const_cast<skua_context*>(ctx);
  return info;
}

// `given`: the caller's loader; NULL: the library's is looked for.
skua_status open_library(Instance& in, void* given = nullptr) {
  const char* names[] = {getenv("SKUA_VULKAN_LIBRARY"), "libvulkan.so.1", "libvulkan.so"};
  const bool told = names[0] && names[0][0];
  char why[256] = "";
  for (int i = told ? 0 : 1; i < (told ? 1 : 3) && !in.library && !given; ++i) {
    in.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    const char* const reason = in.library ? nullptr : dlerror();
    const size_t n = strlen(why);
    snprintf(why + n, sizeof why - n, "%s%s", n ? "; " : "", reason ? reason : names[i]);
  }
  if (!in.library && !given)
    return fail(SKUA_STATUS_NO_DEVICE, "Vulkan: no driver: %s%s", told ? "SKUA_VULKAN_LIBRARY: " : "", why);
  in.GetInstanceProcAddr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(given ? given : dlsym(in.library, "vkGetInstanceProcAddr"));
  if (!in.GetInstanceProcAddr) return fail(SKUA_STATUS_NO_DEVICE, "Vulkan: the library has no vkGetInstanceProcAddr");
#define SKUA_VK_FIND(name)                                                                      \
  if (!(in.name = reinterpret_cast<PFN_vk##name>(in.GetInstanceProcAddr(nullptr, "vk" #name)))) \
    return fail(SKUA_STATUS_NO_DEVICE, "Vulkan: the library has no vk" #name);
  SKUA_VK_GLOBAL(SKUA_VK_FIND)
#undef SKUA_VK_FIND
  in.EnumerateInstanceVersion =
      reinterpret_cast<PFN_vkEnumerateInstanceVersion>(in.GetInstanceProcAddr(nullptr, "vkEnumerateInstanceVersion"));
  uint32_t version = VK_API_VERSION_1_0;
  if (in.EnumerateInstanceVersion && in.EnumerateInstanceVersion(&version) != VK_SUCCESS) version = VK_API_VERSION_1_0;
  if (version < VK_API_VERSION_1_1)
    return fail(SKUA_STATUS_NO_DEVICE, "Vulkan: the library is of version 1.0, 1.1 is needed");
  return SKUA_STATUS_OK;
}

bool instance_has(const Instance& in, const char* name) {
  VkExtensionProperties list[64];
  uint32_t n = 64;
  if (in.EnumerateInstanceExtensionProperties(nullptr, &n, list) < VK_SUCCESS) return false;
  for (uint32_t i = 0; i < n; ++i)
    if (!strcmp(list[i].extensionName, name)) return true;
  return false;
}

VkPhysicalDeviceProperties properties(const Instance& in, VkPhysicalDevice device) {
  auto p = vk<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  in.GetPhysicalDeviceProperties2(device, &p);
  return p.properties;
}

skua_status find_functions(Instance& in) {
#define SKUA_VK_FIND(name)                                                                         \
  if (!(in.name = reinterpret_cast<PFN_vk##name>(in.GetInstanceProcAddr(in.handle, "vk" #name)))) \
    return fail(SKUA_STATUS_NO_DEVICE, "Vulkan: the library has no vk" #name);
  SKUA_VK_INSTANCE(SKUA_VK_FIND)
#undef SKUA_VK_FIND
  return SKUA_STATUS_OK;
}

skua_status create(const skua_context* ctx, Instance& in) {
  auto app = vk<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  app.pEngineName = "skua";
  app.apiVersion = VK_API_VERSION_1_1;
  const char* extensions[2];
  auto info = vk<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &app;
  info.ppEnabledExtensionNames = extensions;
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(ctx);
  const bool listen = ctx && ctx->log && instance_has(in, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (listen) {
    extensions[info.enabledExtensionCount++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    info.pNext = &messenger;  // for what happens while the instance is made and destroyed
  }
#ifdef VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR
  if (instance_has(in, "VK_KHR_portability_enumeration")) {
    extensions[info.enabledExtensionCount++] = "VK_KHR_portability_enumeration";
    info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
#endif
  const VkResult made = in.CreateInstance(&info, nullptr, &in.handle);
  if (made != VK_SUCCESS) {
    in.handle = nullptr;
    if (made == VK_ERROR_INCOMPATIBLE_DRIVER)
      return fail(SKUA_STATUS_NO_DEVICE,
                  "Vulkan: no driver is installed, or none that can be opened (VK_LOADER_DEBUG=error tells why)");
    return check(nullptr, made, "vkCreateInstance");
  }
  SKUA_TRY(find_functions(in));
  if (listen)
    if (auto make = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
            in.GetInstanceProcAddr(in.handle, "vkCreateDebugUtilsMessengerEXT")))
      if (make(in.handle, &messenger, nullptr, &in.messenger) != VK_SUCCESS) in.messenger = VK_NULL_HANDLE;

  VkPhysicalDevice found[16];
  uint32_t n = 16;
  const VkResult listed = in.EnumeratePhysicalDevices(in.handle, &n, found);
  if (listed < VK_SUCCESS) return check(nullptr, listed, "vkEnumeratePhysicalDevices");
  snprintf(in.why, sizeof in.why, "no driver has a device");
  for (int software = 0; software < 2; ++software)
    for (uint32_t i = 0; i < n; ++i) {
      const VkPhysicalDeviceProperties p = properties(in, found[i]);
      if ((p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) != (software != 0)) continue;
      if (p.apiVersion < VK_API_VERSION_1_1)
        snprintf(in.why, sizeof in.why, "%.100s is of version %u.%u, 1.1 is needed", p.deviceName,
                 VK_API_VERSION_MAJOR(p.apiVersion), VK_API_VERSION_MINOR(p.apiVersion));
      else if (queue_family(in, found[i], nullptr) < 0)
        snprintf(in.why, sizeof in.why, "%.100s has no queue that computes", p.deviceName);
      else in.devices[in.n_devices++] = found[i];
    }
  return SKUA_STATUS_OK;
}

Vendor vendor_of(const VkPhysicalDeviceProperties& p) {
  if (p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) return Vendor::software;
  switch (p.vendorID) {
    case 0x5143: return Vendor::adreno;
    case 0x13B5: return Vendor::mali;
    case 0x1010: return Vendor::powervr;
    case 0x106B: return Vendor::apple;
    case 0x10DE: return Vendor::nvidia;
    case 0x8086: return Vendor::intel;
    case 0x1002: case 0x1022: return Vendor::amd;
  }
  return Vendor::unknown;
}
const char* vendor_name(const VkPhysicalDeviceProperties& p, char* text, size_t size) {
  switch (p.vendorID) {
    case 0x5143: return "Qualcomm";
    case 0x13B5: return "Arm";
    case 0x1010: return "Imagination";
    case 0x106B: return "Apple";
    case 0x10DE: return "NVIDIA";
    case 0x8086: return "Intel";
    case 0x1002: case 0x1022: return "AMD";
    case 0x10005: return "Mesa";
  }
  snprintf(text, size, "vendor 0x%x", p.vendorID);
  return text;
}

}  // namespace

skua_status open_instance(const skua_context* ctx, Instance& in) {
  memset(static_cast<void*>(&in), 0, sizeof in);
  skua_status s = open_library(in);
  if (s == SKUA_STATUS_OK) s = create(ctx, in);
  if (s != SKUA_STATUS_OK) close_instance(in);
  return s;
}

skua_status take_instance(const skua_vulkan_objects& given, Instance& in) {
  memset(static_cast<void*>(&in), 0, sizeof in);
  in.is_callers = true;
  const struct {
    const char* name;
    const void* value;
  } needed[] = {{"instance", given.instance},
                {"physical_device", given.physical_device},
                {"device", given.device},
                {"queue", given.queue}};
  for (const auto& n : needed)
    if (!n.value) return SKUA_INVALID("context: vulkan.%s is NULL", n.name);
  if (!given.lock_queue != !given.unlock_queue)
    return SKUA_INVALID("context: vulkan has only one of lock_queue and unlock_queue");
  SKUA_TRY(open_library(in, given.get_instance_proc_addr));
  in.handle = static_cast<VkInstance>(given.instance);
  SKUA_TRY(find_functions(in));
  in.devices[in.n_devices++] = static_cast<VkPhysicalDevice>(given.physical_device);
  const uint32_t version = properties(in, in.devices[0]).apiVersion;
  if (version < VK_API_VERSION_1_1)
    return fail(SKUA_STATUS_NO_DEVICE, "context: vulkan.physical_device is of version %u.%u, 1.1 is needed",
                VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
  return SKUA_STATUS_OK;
}

// The library stays open, and so does the process's first instance: with its last one the loader closes the driver,
// whose destructors of threads' data would then be called where it was (NVIDIA's 580 crashes or hangs so when a thread
// ends).
void close_instance(Instance& in) {
  static VkInstance kept;
  if (in.messenger)
    if (auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
            in.GetInstanceProcAddr(in.handle, "vkDestroyDebugUtilsMessengerEXT")))
      destroy(in.handle, in.messenger, nullptr);
  VkInstance none = nullptr;
  if (in.handle && !in.is_callers &&
      !__atomic_compare_exchange_n(&kept, &none, in.handle, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    if (auto destroy = reinterpret_cast<PFN_vkDestroyInstance>(in.GetInstanceProcAddr(in.handle, "vkDestroyInstance")))
      destroy(in.handle, nullptr);
  memset(static_cast<void*>(&in), 0, sizeof in);
}

int queue_family(const Instance& in, VkPhysicalDevice device, uint32_t* timestamp_bits) {
  VkQueueFamilyProperties list[16];
  uint32_t n = 16;
  in.GetPhysicalDeviceQueueFamilyProperties(device, &n, list);
  int best = -1;
  for (uint32_t i = 0; i < n; ++i)
    if ((list[i].queueFlags & VK_QUEUE_COMPUTE_BIT) && list[i].queueCount &&
        (best < 0 || (!list[best].timestampValidBits && list[i].timestampValidBits)))
      best = int(i);
  if (best >= 0 && timestamp_bits) *timestamp_bits = list[best].timestampValidBits;
  return best;
}

bool has_extension(const Instance& in, VkPhysicalDevice device, const char* name) {
  VkExtensionProperties list[320];  // 80 KB; drivers have up to ~250
  uint32_t n = 320;
  if (in.EnumerateDeviceExtensionProperties(device, nullptr, &n, list) < VK_SUCCESS) return false;
  for (uint32_t i = 0; i < n; ++i)
    if (!strcmp(list[i].extensionName, name)) return true;
  return false;
}

Features::Features(const Instance& in, VkPhysicalDevice device) {
  n_extensions = 0;
  all = vk<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  storage16 = vk<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  storage8 = vk<VkPhysicalDevice8BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES);
  arithmetic =
      vk<VkPhysicalDeviceShaderFloat16Int8Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES);
  dot = vk<VkPhysicalDeviceShaderIntegerDotProductFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES);
  void** next = &all.pNext;
  // The instance is one of version 1.1, and what later versions made core are extensions to it, whatever the device's
  // version: to be switched on by name.
  auto chain = [&](auto& features, const char* extension) {
    if (extension) {
      if (!has_extension(in, device, extension)) return;
      extensions[n_extensions++] = extension;
    }
    *next = &features;
    next = &features.pNext;
  };
  chain(storage16, nullptr);
  chain(storage8, "VK_KHR_8bit_storage");
  chain(arithmetic, "VK_KHR_shader_float16_int8");
  chain(dot, "VK_KHR_shader_integer_dot_product");
  f16_rounding = f16_preserve = f32_nan = f16_nan = false;
  if (has_extension(in, device, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME)) {
    extensions[n_extensions++] = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME;
    auto floats =
        vk<VkPhysicalDeviceFloatControlsProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES);
    auto p = vk<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &floats);
    in.GetPhysicalDeviceProperties2(device, &p);
    f16_rounding = floats.shaderRoundingModeRTEFloat16 &&
                   floats.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
    f32_nan = floats.shaderSignedZeroInfNanPreserveFloat32;
    f16_nan = floats.shaderSignedZeroInfNanPreserveFloat16;
    f16_preserve = floats.shaderDenormPreserveFloat16 &&
                   floats.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE;
  }
  if (has_extension(in, device, "VK_KHR_portability_subset")) extensions[n_extensions++] = "VK_KHR_portability_subset";
  in.GetPhysicalDeviceFeatures2(device, &all);
  // What no kernel uses stays off; bounds checks cost time.
  all.features = {};
}

void describe(const Instance& in, uint32_t index, const skua_vulkan_objects* given, Description& d) {
  memset(static_cast<void*>(&d), 0, sizeof d);
  const VkPhysicalDevice device = in.devices[index];
  auto subgroup = vk<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  auto sizes =
      vk<VkPhysicalDeviceMaintenance3Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, &subgroup);
  auto driver = vk<VkPhysicalDeviceDriverProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, &sizes);
  auto all = vk<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &sizes);
  const VkPhysicalDeviceProperties& p = all.properties;
  const uint32_t version = properties(in, device).apiVersion;
  if (version >= VK_API_VERSION_1_2 || has_extension(in, device, "VK_KHR_driver_properties")) all.pNext = &driver;
  // Vulkan itself does not tell how many compute units there are; three vendors do.
  auto nvidia = vk<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV, all.pNext);
  if (has_extension(in, device, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) all.pNext = &nvidia;
  auto amd = vk<VkPhysicalDeviceShaderCorePropertiesAMD>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD,
                                                         all.pNext);
  if (has_extension(in, device, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) all.pNext = &amd;
#ifdef VK_ARM_shader_core_builtins
  auto arm = vk<VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM, all.pNext);
  if (has_extension(in, device, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME)) all.pNext = &arm;
#endif
  in.GetPhysicalDeviceProperties2(device, &all);

  const Features f(in, device);
  d.vendor = vendor_of(p);
  d.group_threads = p.limits.maxComputeWorkGroupInvocations;
  for (int i = 0; i < 3; ++i) {
    d.group_extent[i] = p.limits.maxComputeWorkGroupSize[i];
    d.group_count[i] = p.limits.maxComputeWorkGroupCount[i];
  }
  d.local_bytes = p.limits.maxComputeSharedMemorySize;
  d.subgroup = subgroup.subgroupSize;
  d.subgroup_sums = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT);
  d.buffer_bytes = sizes.maxMemoryAllocationSize;
  d.binding_bytes = p.limits.maxStorageBufferRange;
  d.texels = p.limits.maxTexelBufferElements;
  d.offset_alignment = uint32_t(max(p.limits.minStorageBufferOffsetAlignment, 16));  // vectors of four stay whole
  d.f16_storage = f.storage16.storageBuffer16BitAccess && (!given || given->storage_16bit);
  d.f16_rounding = f.f16_rounding && (!given || given->float_controls);
  d.f16_preserve = f.f16_preserve && (!given || given->float_controls);
  d.f32_nan = f.f32_nan && (!given || given->float_controls);
  d.f16_nan = f.f16_nan && (!given || given->float_controls);
  d.f16_arithmetic = d.f16_storage && f.arithmetic.shaderFloat16 && (!given || given->float16);
  d.integer_dot = (!given || given->integer_dot) && f.dot.shaderIntegerDotProduct && f.arithmetic.shaderInt8 &&
                  f.storage8.storageBuffer8BitAccess;
  d.unified_memory =
      p.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU || p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  uint32_t bits = 0;
  queue_family(in, device, &bits);
  d.tick_nanoseconds = bits ? double(p.limits.timestampPeriod) : 0;

  skua_device_info& info = d.info;
  info.device = {SKUA_DEVICE_API_VULKAN, index};
  info.compute_units =
      nvidia.shaderSMCount + amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
#ifdef VK_ARM_shader_core_builtins
  info.compute_units += arm.shaderCoreCount;
#endif
  char text[32];
  snprintf(info.name, sizeof info.name, "%.95s", p.deviceName);
  snprintf(info.vendor, sizeof info.vendor, "%s", vendor_name(p, text, sizeof text));
  const int n = snprintf(info.driver, sizeof info.driver, "Vulkan %u.%u.%u", VK_API_VERSION_MAJOR(p.apiVersion),
                         VK_API_VERSION_MINOR(p.apiVersion), VK_API_VERSION_PATCH(p.apiVersion));
  if (driver.driverName[0])
    snprintf(info.driver + n, sizeof info.driver - size_t(n), ", %.24s %.44s", driver.driverName, driver.driverInfo);
  else snprintf(info.driver + n, sizeof info.driver - size_t(n), ", driver 0x%x", p.driverVersion);
  char words[64];
  snprintf(words, sizeof words, "%s%s%s%s", d.f16_storage ? " f16_storage" : "", d.f16_arithmetic ? " f16" : "",
           d.integer_dot ? " integer_dot" : "", d.subgroup_sums ? " subgroups" : "");
  snprintf(info.features, sizeof info.features, "%s", words[0] ? words + 1 : "");
  VkPhysicalDeviceMemoryProperties memory;
  in.GetPhysicalDeviceMemoryProperties(device, &memory);
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i)
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) &&
        memory.memoryHeaps[i].size > info.memory_bytes)
      info.memory_bytes = memory.memoryHeaps[i].size;
  info.is_software = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  info.has_f16 = d.f16_arithmetic;
  info.has_int8_dot = d.integer_dot;
  tell_limits(d);
}

}  // namespace skua::gpu::vulkan
