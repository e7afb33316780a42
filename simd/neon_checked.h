// In a build with AddressSanitizer: what it cannot see of NEON's loads and stores, told to it. GCC hides the memory of
// AArch32's vector loads and stores in functions of its own, and of AArch64's that of structures.
// Loops in assembly tell nothing: pages without access around the operands of tests are for them.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __asan_loadN(const void*, size_t);
extern "C" void __asan_storeN(const void*, size_t);

#define SKUA_SEEN(how, p, bytes, access) (__asan_##how##N(p, bytes), access)

#define vst4_u16(p, x) SKUA_SEEN(store, p, 32, vst4_u16(p, x))
#if defined(__aarch64__)
#define vld1q_u8_x4(p) SKUA_SEEN(load, p, 64, vld1q_u8_x4(p))
#else
#define vld1q_f32(p) SKUA_SEEN(load, p, 16, vld1q_f32(p))
#define vld1q_s32(p) SKUA_SEEN(load, p, 16, vld1q_s32(p))
#define vld1q_u16(p) SKUA_SEEN(load, p, 16, vld1q_u16(p))
#define vld1q_s8(p) SKUA_SEEN(load, p, 16, vld1q_s8(p))
#define vld1q_u8(p) SKUA_SEEN(load, p, 16, vld1q_u8(p))
#define vld1_f32(p) SKUA_SEEN(load, p, 8, vld1_f32(p))
#define vld1_s32(p) SKUA_SEEN(load, p, 8, vld1_s32(p))
#define vld1_u16(p) SKUA_SEEN(load, p, 8, vld1_u16(p))
#define vld1_s8(p) SKUA_SEEN(load, p, 8, vld1_s8(p))
#define vld1_u8(p) SKUA_SEEN(load, p, 8, vld1_u8(p))
#define vld1q_dup_f32(p) SKUA_SEEN(load, p, 4, vld1q_dup_f32(p))
#define vld1q_dup_u16(p) SKUA_SEEN(load, p, 2, vld1q_dup_u16(p))
#define vld1_dup_u16(p) SKUA_SEEN(load, p, 2, vld1_dup_u16(p))
#define vld1_lane_f32(p, x, i) SKUA_SEEN(load, p, 4, vld1_lane_f32(p, x, i))
#define vld1_lane_s32(p, x, i) SKUA_SEEN(load, p, 4, vld1_lane_s32(p, x, i))
#define vld1_lane_u16(p, x, i) SKUA_SEEN(load, p, 2, vld1_lane_u16(p, x, i))
#define vst1q_f32(p, x) SKUA_SEEN(store, p, 16, vst1q_f32(p, x))
#define vst1q_s32(p, x) SKUA_SEEN(store, p, 16, vst1q_s32(p, x))
#define vst1q_u16(p, x) SKUA_SEEN(store, p, 16, vst1q_u16(p, x))
#define vst1q_s8(p, x) SKUA_SEEN(store, p, 16, vst1q_s8(p, x))
#define vst1q_u8(p, x) SKUA_SEEN(store, p, 16, vst1q_u8(p, x))
#define vst1_f32(p, x) SKUA_SEEN(store, p, 8, vst1_f32(p, x))
#define vst1_s32(p, x) SKUA_SEEN(store, p, 8, vst1_s32(p, x))
#define vst1_u16(p, x) SKUA_SEEN(store, p, 8, vst1_u16(p, x))
#define vst1_s8(p, x) SKUA_SEEN(store, p, 8, vst1_s8(p, x))
#define vst1_u8(p, x) SKUA_SEEN(store, p, 8, vst1_u8(p, x))
#define vst1_lane_f32(p, x, i) SKUA_SEEN(store, p, 4, vst1_lane_f32(p, x, i))
#define vst1_lane_s32(p, x, i) SKUA_SEEN(store, p, 4, vst1_lane_s32(p, x, i))
#define vst1_lane_u16(p, x, i) SKUA_SEEN(store, p, 2, vst1_lane_u16(p, x, i))
#endif
#endif
