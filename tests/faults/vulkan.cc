// libskua_faults_vulkan.so: the loader's one entry, and every function that the library asks it for, wrapped.
#include <dlfcn.h>
#include <string.h>

#include <type_traits>

#include "gpu/vulkan/vulkan.h"
#include "tests/faults/counted.h"

namespace {

bool makes(const char* name) { return !strncmp(name, "Create", 6) || !strcmp(name, "AllocateMemory"); }
bool destroys(const char* name) { return !strncmp(name, "Destroy", 7) || !strcmp(name, "FreeMemory"); }

PFN_vkVoidFunction instance_proc(VkInstance instance, const char* name);
PFN_vkVoidFunction device_proc(VkDevice device, const char* name);

// One type for each function: its real address and its name.
template <class Tag, class Function> struct Wrapped;
template <class Tag, class R, class... A> struct Wrapped<Tag, R(VKAPI_PTR*)(A...)> {
  static inline R (VKAPI_PTR* real)(A...);
  static R VKAPI_PTR call(A... a) {
    if constexpr (std::is_same_v<R, VkResult>) {
      if (fails(Tag::name)) return VkResult(faults.code);
      const R r = real(a...);
      if (r == VK_SUCCESS && makes(Tag::name)) count(1);
      return r;
    } else {
      if (destroys(Tag::name)) count(-1);
      return real(a...);
    }
  }
};
#define SKUA_WRAP(function) \
  struct Tag##function { static constexpr const char* name = #function; }; \
  using Wrapped##function = Wrapped<Tag##function, PFN_vk##function>;
SKUA_VK_GLOBAL(SKUA_WRAP)
SKUA_VK_INSTANCE(SKUA_WRAP)
SKUA_VK_DEVICE(SKUA_WRAP)

// Two memory types in place of each: the device's, which the host does not see, and one that it does.
void VKAPI_PTR memory_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* p) {
  WrappedGetPhysicalDeviceMemoryProperties::real(device, p);
  if (!faults.discrete) return;
  p->memoryTypeCount = 2;
  p->memoryTypes[1] = p->memoryTypes[0];
  p->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  p->memoryTypes[1].propertyFlags &= ~VkMemoryPropertyFlags(VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
}
void VKAPI_PTR requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements* r) {
  WrappedGetBufferMemoryRequirements::real(device, buffer, r);
  if (faults.discrete) r->memoryTypeBits = 3;
}
VkResult VKAPI_PTR allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info, const VkAllocationCallbacks* with,
                                   VkDeviceMemory* memory) {
  VkMemoryAllocateInfo i = *info;
  if (faults.discrete) i.memoryTypeIndex = 0;
  return WrappedAllocateMemory::call(device, &i, with, memory);
}

void VKAPI_PTR properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* p) {
  WrappedGetPhysicalDeviceProperties2::real(device, p);
  if (faults.old == 1) p->properties.apiVersion = VK_API_VERSION_1_0;
}
void VKAPI_PTR families(VkPhysicalDevice device, uint32_t* count, VkQueueFamilyProperties* list) {
  WrappedGetPhysicalDeviceQueueFamilyProperties::real(device, count, list);
  for (uint32_t i = 0; faults.old == 3 && list && i < *count; ++i)
    list[i].queueFlags &= ~VkQueueFlags(VK_QUEUE_COMPUTE_BIT);
}
PFN_vkEnumerateInstanceVersion real_version;
VkResult VKAPI_PTR version(uint32_t* v) {
  const VkResult r = real_version(v);
  if (faults.old == 2) *v = VK_API_VERSION_1_0;
  return r;
}

template <class W> PFN_vkVoidFunction wrap(PFN_vkVoidFunction real) {
  if (!real) return nullptr;
  W::real = reinterpret_cast<decltype(W::real)>(real);
  return reinterpret_cast<PFN_vkVoidFunction>(W::call);
}

PFN_vkVoidFunction wrapped(const char* name, PFN_vkVoidFunction real) {
  PFN_vkVoidFunction to = real;
#define SKUA_FIND(function) \
  if (!strcmp(name, "vk" #function)) to = wrap<Wrapped##function>(real);
  SKUA_VK_GLOBAL(SKUA_FIND)
  SKUA_VK_INSTANCE(SKUA_FIND)
  SKUA_VK_DEVICE(SKUA_FIND)
  if (!strcmp(name, "vkGetDeviceProcAddr")) return reinterpret_cast<PFN_vkVoidFunction>(device_proc);
  if (!strcmp(name, "vkGetPhysicalDeviceProperties2")) return reinterpret_cast<PFN_vkVoidFunction>(properties);
  if (!strcmp(name, "vkGetPhysicalDeviceQueueFamilyProperties")) return reinterpret_cast<PFN_vkVoidFunction>(families);
  if (!strcmp(name, "vkEnumerateInstanceVersion") && real) {
    real_version = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(real);
    return reinterpret_cast<PFN_vkVoidFunction>(version);
  }
  if (!strcmp(name, "vkGetPhysicalDeviceMemoryProperties"))
    return reinterpret_cast<PFN_vkVoidFunction>(memory_properties);
  if (!strcmp(name, "vkGetBufferMemoryRequirements")) return reinterpret_cast<PFN_vkVoidFunction>(requirements);
  if (!strcmp(name, "vkAllocateMemory")) return reinterpret_cast<PFN_vkVoidFunction>(allocate_memory);
  return to;
}

PFN_vkGetInstanceProcAddr real_instance_proc() {
  static void* library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(dlsym(library, "vkGetInstanceProcAddr")) : nullptr;
}
PFN_vkVoidFunction instance_proc(VkInstance instance, const char* name) {
  const auto real = real_instance_proc();
  return real ? wrapped(name, real(instance, name)) : nullptr;
}
PFN_vkVoidFunction device_proc(VkDevice device, const char* name) {
  return wrapped(name, WrappedGetDeviceProcAddr::real(device, name));
}

}  // namespace

extern "C" {
Faults* skua_faults(void) { return &faults; }
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  return instance_proc(instance, name);
}
}
