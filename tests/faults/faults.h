// Driver libraries that stand before the real ones (SKUA_OPENCL_LIBRARY, SKUA_VULKAN_LIBRARY): they count the calls
// that can fail, let the n-th fail, and count the objects that live.
#pragma once

struct Faults {
  long fail_at;    // 1: the next call that can fail; 0: none
  int code;        // what it returns
  long calls;      // that can fail, since it was set to 0
  long failed;     // how many did
  char name[64];   // the last that did
  long live;       // objects made and not destroyed
  long unwaited;   // OpenCL: parts unmapped since a queue was waited for
  int discrete;    // Vulkan: memory that the host sees is not the device's
  // 1: devices say that they are of OpenCL 1.1, or Vulkan 1.0; 2: Vulkan's loader is of 1.0; 3: no device has a queue
  // that computes
  int old;
};

extern "C" Faults* skua_faults(void);
