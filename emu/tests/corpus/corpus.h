#pragma once

// One source for device and host. Each work-item has an input record and an output record. On the
// host, a work-item is a fiber and LDS is a static array. Cross-lane instructions exchange values
// through memory there, so they may only be used where all work-items of a workgroup execute them.

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef half half16 __attribute__((ext_vector_type(16)));
typedef i16 short2 __attribute__((ext_vector_type(2)));
typedef u16 ushort2 __attribute__((ext_vector_type(2)));
typedef i16 short16 __attribute__((ext_vector_type(16)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef u32 uint2 __attribute__((ext_vector_type(2)));
typedef u32 uint3 __attribute__((ext_vector_type(3)));
typedef u32 uint4 __attribute__((ext_vector_type(4)));
typedef i32 int2 __attribute__((ext_vector_type(2)));
typedef i32 int4 __attribute__((ext_vector_type(4)));
typedef i32 int8 __attribute__((ext_vector_type(8)));

struct Input {
  u32 i[8];    // random bits and edge cases
  float f[8];  // numbers, zeros, infinities, denormals
  double d[4];
  half h[8];
  i64 l[4];
  u32 small[4];  // below 1024
};
struct Output {
  u32 w[32];
};

#ifdef __AMDGCN__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__
#define GLOBAL_VARIABLE __device__
#define CONSTANT_TABLE static __device__ const
#define LDS __shared__
#define DYNAMIC_LDS(type, name) extern __shared__ type name[]

DEVICE inline u32 item() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE inline u32 group() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE inline u32 items() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE inline void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE inline u32 lanes() { return __builtin_amdgcn_wavefrontsize(); }
DEVICE inline u32 lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)) % lanes();
}
DEVICE inline u32 bpermute(u32 from, u32 value) {
  return __builtin_amdgcn_ds_bpermute(from * 4, value);
}
DEVICE inline u32 bpermute64(u32 from, u32 value) { return bpermute(from, value); }
DEVICE inline u32 permute(u32 to, u32 value) { return __builtin_amdgcn_ds_permute(to * 4, value); }
#define SWIZZLE(value, pattern) __builtin_amdgcn_ds_swizzle(value, pattern)
#define DPP(old, value, control, rows, banks, bound) \
  __builtin_amdgcn_update_dpp(old, value, control, rows, banks, bound)
#define DPP8(value, select) __builtin_amdgcn_mov_dpp8(value, select)
#define PERMLANE16(old, value, lo, hi, fi, bound) \
  __builtin_amdgcn_permlane16(old, value, lo, hi, fi, bound)
#define PERMLANEX16(old, value, lo, hi, fi, bound) \
  __builtin_amdgcn_permlanex16(old, value, lo, hi, fi, bound)
DEVICE inline u32 read_lane(u32 value, u32 from) { return __builtin_amdgcn_readlane(value, from); }
DEVICE inline u32 read_first(u32 value) { return __builtin_amdgcn_readfirstlane(value); }
DEVICE inline u64 ballot(bool b) {
#if __AMDGCN_WAVEFRONT_SIZE == 64
  return __builtin_amdgcn_ballot_w64(b);
#else
  return __builtin_amdgcn_ballot_w32(b);
#endif
}
#define NOINLINE __attribute__((noinline))
// Since gfx11, dot products take signed and unsigned operands.
#if defined(__GFX9__) || defined(__GFX10__)
#define MIXED_DOTS 0
#else
#define MIXED_DOTS 1
#endif
// Features of some architectures only. The host has all of them.
#ifdef __GFX9__
#define ONLY_GFX9 1
#define SINCE_GFX10 0
#else
#define ONLY_GFX9 0
#define SINCE_GFX10 1
#endif
#else
#define ONLY_GFX9 1
#define SINCE_GFX10 1
#include <cmath>
#include <cstring>
extern "C" {
unsigned emu_item();
unsigned emu_group();
unsigned emu_items();
unsigned emu_lanes();
void emu_barrier();
/// Returns the values of all work-items, which remain valid until the next exchange.
const unsigned* emu_exchange(unsigned value);
void* emu_lds();
}
#define KERNEL extern "C" __attribute__((visibility("default"))) void
#define DEVICE static
#define GLOBAL_VARIABLE
#define CONSTANT_TABLE static const
#define LDS static
#define DYNAMIC_LDS(type, name) type* name = static_cast<type*>(emu_lds())
#define NOINLINE __attribute__((noinline))
inline u32 item() { return emu_item(); }
inline u32 group() { return emu_group(); }
inline u32 items() { return emu_items(); }
inline void barrier() { emu_barrier(); }
inline u32 lanes() { return emu_lanes(); }
inline u32 lane() { return item() % lanes(); }
inline const u32* wave_of(u32 value) { return emu_exchange(value) + item() / lanes() * lanes(); }
inline u32 bpermute(u32 from, u32 value) { return wave_of(value)[lane() / 32 * 32 + from % 32]; }
/// Permutes across all 64 lanes, as gfx9 does.
inline u32 bpermute64(u32 from, u32 value) { return wave_of(value)[from % 64]; }
inline u32 permute(u32 to, u32 value) {
  u32 values[64], targets[64], result = 0;
  memcpy(values, wave_of(value), lanes() * 4);
  memcpy(targets, wave_of(to), lanes() * 4);
  for (u32 i = 0; i < lanes(); ++i) {
    if (targets[i] % 32 == lane()) result = values[i];
  }
  return result;
}
inline u32 SWIZZLE(u32 value, u32 pattern) {
  const u32 l = lane();
  const u32 from = pattern & 0x8000
                       ? l / 4 * 4 + (pattern >> (2 * (l % 4)) & 3)
                       : l / 32 * 32 + ((((l % 32) & (pattern & 31)) | (pattern >> 5 & 31)) ^
                                        (pattern >> 10 & 31));
  return wave_of(value)[from];
}
inline u32 DPP(u32 old, u32 value, u32 control, u32 rows, u32 banks, bool bound) {
  const u32* all = wave_of(value);
  const u32 l = lane(), i = l % 16, n = control % 16;
  int from = -1;
  if (control < 0x100)
    from = static_cast<int>(l / 4 * 4 + (control >> (2 * (l % 4)) & 3));
  else if (control < 0x110)
    from = i + n < 16 ? static_cast<int>(l + n) : -1;
  else if (control < 0x120)
    from = i >= n ? static_cast<int>(l - n) : -1;
  else if (control < 0x130)
    from = static_cast<int>(l - i + (i + 16 - n) % 16);
  else if (control == 0x130)
    from = l < 63 ? static_cast<int>(l + 1) : -1;
  else if (control == 0x134)
    from = static_cast<int>((l + 1) % 64);
  else if (control == 0x138)
    from = static_cast<int>(l) - 1;
  else if (control == 0x13c)
    from = static_cast<int>((l + 63) % 64);
  else if (control == 0x142)
    from = static_cast<int>(l / 16 * 16) - 1;
  else if (control == 0x143)
    from = static_cast<int>(l / 32 * 32) - 1;
  else if (control == 0x140)
    from = static_cast<int>(l - i + 15 - i);
  else if (control == 0x141)
    from = static_cast<int>(l / 8 * 8 + 7 - l % 8);
  else if (control < 0x160)
    from = static_cast<int>(l - i + n);
  else
    from = static_cast<int>(l - i + (i ^ n));
  if (!(rows >> (l / 16) & 1) || !(banks >> (i / 4) & 1)) return old;
  return from >= 0 ? all[from] : bound ? 0 : old;
}
inline u32 DPP8(u32 value, u32 select) {
  return wave_of(value)[lane() / 8 * 8 + (select >> (3 * (lane() % 8)) & 7)];
}
inline u32 permlane(u32 value, u32 lo, u32 hi, u32 cross) {
  const u32 l = lane(), i = l % 16;
  return wave_of(value)[((l / 16) ^ cross) * 16 + ((i < 8 ? lo : hi) >> (4 * (i % 8)) & 15)];
}
inline u32 PERMLANE16(u32, u32 value, u32 lo, u32 hi, bool, bool) {
  return permlane(value, lo, hi, 0);
}
inline u32 PERMLANEX16(u32, u32 value, u32 lo, u32 hi, bool, bool) {
  return permlane(value, lo, hi, 1);
}
inline u32 read_lane(u32 value, u32 from) { return wave_of(value)[from % lanes()]; }
inline u32 read_first(u32 value) { return wave_of(value)[0]; }
inline u64 ballot(bool b) {
  const u32* all = wave_of(b);
  u64 mask = 0;
  for (u32 i = 0; i < lanes(); ++i) mask |= u64{all[i]} << i;
  return mask;
}
#endif

/// Rounds to f16 and clears the sign of zero. clang 19 fuses a product and its rounding into an
/// instruction that adds +0, and drops sums with +0 before a rounding.
DEVICE inline half narrow(float x) { return static_cast<half>(x == 0 ? 0.0f : x); }

/// Returns a difference with the sign of zero cleared: clang 19 turns +0 - x into a negation for
/// f16.
DEVICE inline half minus(half a, half b) {
  const half difference = a - b;
  return difference == 0 ? half(0) : difference;
}

DEVICE inline u32 index() { return group() * items() + item(); }

/// Returns the bits of a result. The sign and payload of NaN are canonical, since they are
/// unspecified.
DEVICE inline u32 bits(float x) { return x != x ? 0x7fc00000 : __builtin_bit_cast(u32, x); }
DEVICE inline u64 bits(double x) {
  return x != x ? 0x7ff8000000000000 : __builtin_bit_cast(u64, x);
}
DEVICE inline u32 bits(half x) { return x != x ? 0x7e00 : __builtin_bit_cast(u16, x); }

/// Writes values one after another.
#ifdef __AMDGCN__
#define DEVICE_METHOD __device__
#else
#define DEVICE_METHOD
#endif
struct Writer {
  u32* to;
  DEVICE_METHOD void put(u32 x) { *to++ = x; }
  DEVICE_METHOD void put(i32 x) { put(static_cast<u32>(x)); }
  DEVICE_METHOD void put(u64 x) {
    put(static_cast<u32>(x));
    put(static_cast<u32>(x >> 32));
  }
  DEVICE_METHOD void put(i64 x) { put(static_cast<u64>(x)); }
  DEVICE_METHOD void put(float x) { put(bits(x)); }
  DEVICE_METHOD void put(double x) { put(bits(x)); }
  DEVICE_METHOD void put(half x) { put(bits(x)); }
  DEVICE_METHOD void put(bool x) { put(static_cast<u32>(x)); }
};

#define ENTER                        \
  const Input& in = inputs[index()]; \
  Writer out{outputs[index()].w};    \
  (void)in;                          \
  (void)n
#define ARGUMENTS const Input* __restrict inputs, Output* __restrict outputs, u32 n
