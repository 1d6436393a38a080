#pragma once

// The whole dialect of GPU kernels: nothing else in this folder names a vendor. Compiled by clang
// for AMD, by nvcc and by both vendors' run-time compilers, without any of their headers.
//
// Threads are the threads of a thread block, thread blocks the blocks of a grid. Lanes are counted
// in logical warps of 32 everywhere: a wave of 64 works as two warps, so that the order of a
// reduction is the same.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/device/features.h"
#include "wick/math/fn.h"
#include "wick/math/half.h"

#if defined(__AMDGCN__) || (defined(__HIP__) && defined(__clang__))
#define WICK_AMD 1
#define WICK_DEVICE __attribute__((device, always_inline)) inline
/// After the arguments of a lambda: arrays that it refers to stay in registers only if it is
/// inlined.
#define WICK_INLINE __attribute__((always_inline))
#define WICK_SHARED __attribute__((shared))
#define WICK_GLOBAL __attribute__((global))
// clang takes launch_bounds and ignores it for AMD: without this it reckons with 1024 threads, and
// with as few registers each. The thread blocks a multiprocessor is to hold it chooses by itself.
#define WICK_BOUNDS(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define WICK_ARGUMENTS
#else
#define WICK_AMD 0
#define WICK_DEVICE __device__ __forceinline__
#define WICK_INLINE
#define WICK_SHARED __shared__
#define WICK_GLOBAL __global__
#define WICK_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
// Arguments are read where the driver put them: taking the address of one makes no copy.
#define WICK_ARGUMENTS __grid_constant__
#endif
#define WICK_RESTRICT __restrict__

/// WICK_KERNEL(name, Args, threads) { … }: a kernel by that very name, for thread blocks of
/// `threads`, which takes the struct wick::gpu::Args by value as `args`. Further arguments: the
/// least thread blocks that a multiprocessor is to hold at once. Some kernels copy a small struct
/// of pointers out of `args` before functions take it by reference: AMD's compiler then knows that
/// they point to global memory, and NVIDIA's keeps fewer registers. What is indexed as it runs, as
/// a nest is, would come to lie in local memory if it were copied.
#define WICK_KERNEL(name, Args, ...)                   \
  extern "C" WICK_GLOBAL void WICK_BOUNDS(__VA_ARGS__) \
      name(WICK_ARGUMENTS const wick::gpu::Args args)

namespace wick::gpu {

using namespace wick::math;

/// What a load or a store moves at most.
struct alignas(16) Bytes16 {
  u32 w[4];
};

#if WICK_AMD

WICK_DEVICE u32 thread_index() { return __builtin_amdgcn_workitem_id_x(); }
/// Threads of a thread block.
WICK_DEVICE u32 block_threads() { return __builtin_amdgcn_workgroup_size_x(); }
WICK_DEVICE u32 block_index() { return __builtin_amdgcn_workgroup_id_x(); }
WICK_DEVICE u32 block_index_y() { return __builtin_amdgcn_workgroup_id_y(); }
/// Thread blocks along the first axis. Source: the hidden arguments of code objects from version 5
/// on.
WICK_DEVICE u32 grid_blocks() {
  return *(const __attribute__((address_space(4))) u32*)__builtin_amdgcn_implicitarg_ptr();
}

/// All threads of the thread block come here before any goes on; what they wrote is seen by all.
WICK_DEVICE void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/// x of the lane whose number differs in the bits of kMask.
template <u32 kMask>
WICK_DEVICE u32 shuffle_xor(u32 x) {
  const int y = static_cast<int>(x);
  if constexpr (kMask == 1) {
    return static_cast<u32>(__builtin_amdgcn_update_dpp(0, y, 0xb1, 0xf, 0xf, true));
  } else if constexpr (kMask == 2) {
    return static_cast<u32>(__builtin_amdgcn_update_dpp(0, y, 0x4e, 0xf, 0xf, true));
  } else {
    return static_cast<u32>(__builtin_amdgcn_ds_swizzle(y, 0x1f | kMask << 10));
  }
}

/// x of the warp's next lane; the last one has the first's. All of the warp come here; on AMD a
/// lane that doesn't answers 0.
WICK_DEVICE u32 from_next_lane(u32 x) {
  const u32 next =
      (thread_index() & (__AMDGCN_WAVEFRONT_SIZE__ - kWarp)) | ((thread_index() + 1) % kWarp);
  return static_cast<u32>(
      __builtin_amdgcn_ds_bpermute(static_cast<i32>(next * 4), static_cast<i32>(x)));
}

/// c + Σ a_i·b_i over the four signed bytes of each.
WICK_DEVICE i32 dot4(i32 a, i32 b, i32 c) {
#if WICK_DOT4_MIXED
  return __builtin_amdgcn_sudot4(true, a, true, b, c, false);
#elif WICK_DOT4_SIGNED
  return __builtin_amdgcn_sdot4(a, b, c, false);
#else
  for (int i = 0; i < 4; ++i) c += static_cast<i8>(a >> 8 * i) * static_cast<i8>(b >> 8 * i);
  return c;
#endif
}

/// Puts `wanted` where `expected` is, as one step among all threads of the device; gives what was
/// there.
WICK_DEVICE u32 compare_and_swap(u32* at, u32 expected, u32 wanted) {
  __hip_atomic_compare_exchange_strong(at, &expected, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
/// Adds one, as one step among all threads of the device; gives what was there.
WICK_DEVICE u32 count_up(u32* at) {
  return __hip_atomic_fetch_add(at, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/// The same in a thread block's shared memory.
WICK_DEVICE u32 count_in_block(u32* at) {
  return __hip_atomic_fetch_add(at, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
WICK_DEVICE void add_in_block(u64* at, u64 x) {
  __hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
/// For how many lanes of the warp x is true. All of them come here.
WICK_DEVICE u32 warp_count(bool x) {
#if __AMDGCN_WAVEFRONT_SIZE__ == 64
  const u64 lanes = __builtin_amdgcn_ballot_w64(x);
  return static_cast<u32>(
      __builtin_popcount(static_cast<u32>(thread_index() % 64 < 32 ? lanes : lanes >> 32)));
#else
  return static_cast<u32>(__builtin_popcount(__builtin_amdgcn_ballot_w32(x)));
#endif
}

/// What this thread has written is seen by all threads of the device before what it writes from
/// here on.
WICK_DEVICE void device_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

/// The lower halves of two words as one, the first's lower; or, if `upper` is 1 rather than 0, the
/// upper ones.
WICK_DEVICE u32 same_halves(u32 first, u32 second, u32 upper) {
  return __builtin_amdgcn_perm(second, first, 0x05040100u + upper * 0x02020202u);
}
/// So, too, the first's bytes before the second's, one by one.
WICK_DEVICE u32 alternate_bytes(u32 first, u32 second, u32 upper) {
  return __builtin_amdgcn_perm(second, first, 0x05010400u + upper * 0x02020202u);
}
/// Byte j as a float.
WICK_DEVICE float byte_float(u32 x, u32 j) { return static_cast<float>(x >> 8 * j & 0xff); }
/// A product of integers below 2^23, exact below 2^31: 32 bits would take four times as long.
WICK_DEVICE i32 multiply_small(i32 a, i32 b) {
  return (static_cast<i32>(static_cast<u32>(a) << 8) >> 8) *
         (static_cast<i32>(static_cast<u32>(b) << 8) >> 8);
}

/// Makes the compiler forget what it knows of a register's value, and with it what it has computed
/// from it: so that it computes it again rather than keep it.
WICK_DEVICE void forget(u32& x) { asm volatile("" : "+v"(x)); }

/// For kernels of a chain that were launched early: see LaunchWishes.
WICK_DEVICE void pdl_wait() {}
WICK_DEVICE void pdl_launch_dependents() {}

/// A word as memory has it now, where work in front may be changing it.
WICK_DEVICE u32 load_now(const u32* from) { return *from; }

/// Brings a line of memory nearer, where hardware takes such hints. It may be changed afterwards.
WICK_DEVICE void prefetch(const void*) {}

/// 16 bytes by one load, one store. Left to itself the compiler copies them by memcpy, which keeps
/// arrays of them out of registers, or word by word.
WICK_DEVICE Bytes16 load_whole(const Bytes16* from) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  const Four v = *reinterpret_cast<const Four*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
/// 16 bytes out of the two sixteens, aligned to their size, that they lie in: both are there,
/// unless kAloneWithinWords. They begin at a multiple of kUnit bytes.
template <u32 kUnit>
WICK_DEVICE Bytes16 load_between(const void* at) {
  typedef u32 Four __attribute__((ext_vector_type(4), aligned(4)));
  const u32 past = static_cast<u32>(reinterpret_cast<u64>(at)) % 4;
  const u32* words = reinterpret_cast<const u32*>(reinterpret_cast<u64>(at) - past);
  const Four v = *reinterpret_cast<const Four*>(words);
  if constexpr (kUnit == 4) return {{v.x, v.y, v.z, v.w}};
  // The fifth word is mostly the first of the next lane: asked of memory by every lane, it would
  // have all lines come twice. What lies at 0, as a lane that isn't here says, follows nothing that
  // needs a fifth.
  const u32 low = static_cast<u32>(reinterpret_cast<u64>(words));
  u32 fifth = from_next_lane(v.x);
  if (from_next_lane(low) != low + 16 && past != 0) fifth = words[4];
  const u32 w[5] = {v.x, v.y, v.z, v.w, fifth};
  Bytes16 x;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) x.w[i] = static_cast<u32>((u64{w[i + 1]} << 32 | w[i]) >> past * 8);
  return x;
}
/// Whether load_between reads nothing but the words that its bytes lie in.
inline constexpr bool kAloneWithinWords = true;
WICK_DEVICE void store_whole(Bytes16* to, const Bytes16& x) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  *reinterpret_cast<Four*>(to) = Four{x.w[0], x.w[1], x.w[2], x.w[3]};
}
/// Asks for bytes, a multiple of 16, to be brought nearer: for threads that others need not wait
/// for.
WICK_DEVICE void prefetch_bytes(const void*, u32) {}

/// 16 bytes that nobody will read again soon.
WICK_DEVICE Bytes16 load_streamed(const Bytes16* from) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  const Four v = __builtin_nontemporal_load(reinterpret_cast<const Four*>(from));
  return {{v.x, v.y, v.z, v.w}};
}

/// The larger of two numbers, or the other one of a NaN; of two zeros either.
WICK_DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
WICK_DEVICE float smaller(float a, float b) { return __builtin_fminf(a, b); }

/// The same of two pairs of a 16-bit type.
template <class T>
WICK_DEVICE u32 larger_two(u32 a, u32 b) {
  if constexpr (kSame<T, bf16>) {
    const float low = larger(bits_f32(a << 16), bits_f32(b << 16));
    const float high = larger(bits_f32(a & 0xffff0000u), bits_f32(b & 0xffff0000u));
    return f32_bits(low) >> 16 | (f32_bits(high) & 0xffff0000u);
  } else {
    typedef _Float16 Two __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(
        u32, __builtin_elementwise_max(__builtin_bit_cast(Two, a), __builtin_bit_cast(Two, b)));
  }
}
template <class T>
WICK_DEVICE u32 smaller_two(u32 a, u32 b) {
  constexpr u32 kSigns = 0x80008000u;
  return larger_two<T>(a ^ kSigns, b ^ kSigns) ^ kSigns;
}

/// Two values in a 16-bit type, the first in the lower half of the word.
template <class T>
WICK_DEVICE u32 narrow_two(float low, float high) {
  return u32{from_f32<T>(low).bits} | u32{from_f32<T>(high).bits} << 16;
}

#else  // NVIDIA

WICK_DEVICE u32 thread_index() { return threadIdx.x; }
WICK_DEVICE u32 block_threads() { return blockDim.x; }
WICK_DEVICE u32 block_index() { return blockIdx.x; }
WICK_DEVICE u32 block_index_y() { return blockIdx.y; }
WICK_DEVICE u32 grid_blocks() { return gridDim.x; }
WICK_DEVICE void sync() { __syncthreads(); }
/// Of something in shared memory, for instructions that take no other.
WICK_DEVICE u32 shared_address(const void* at) {
  return static_cast<u32>(__cvta_generic_to_shared(at));
}
template <u32 kMask>
WICK_DEVICE u32 shuffle_xor(u32 x) {
  return __shfl_xor_sync(~0u, x, kMask);
}
WICK_DEVICE u32 from_next_lane(u32 x) { return __shfl_sync(~0u, x, (thread_index() + 1) % kWarp); }
WICK_DEVICE i32 dot4(i32 a, i32 b, i32 c) { return __dp4a(a, b, c); }
WICK_DEVICE u32 compare_and_swap(u32* at, u32 expected, u32 wanted) {
  return atomicCAS(at, expected, wanted);
}
WICK_DEVICE u32 count_up(u32* at) { return atomicAdd(at, 1u); }
WICK_DEVICE u32 count_in_block(u32* at) { return atomicAdd(at, 1u); }
WICK_DEVICE void add_in_block(u64* at, u64 x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(x));
}
WICK_DEVICE u32 warp_count(bool x) { return static_cast<u32>(__popc(__ballot_sync(~0u, x))); }
WICK_DEVICE void device_fence() { __threadfence(); }
#if WICK_CLUSTER
WICK_DEVICE void pdl_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
WICK_DEVICE void pdl_launch_dependents() { asm volatile("griddepcontrol.launch_dependents;"); }
#else
WICK_DEVICE void pdl_wait() {}
WICK_DEVICE void pdl_launch_dependents() {}
#endif
WICK_DEVICE u32 same_halves(u32 first, u32 second, u32 upper) {
  return __byte_perm(first, second, 0x5410u + upper * 0x2222u);
}
WICK_DEVICE u32 alternate_bytes(u32 first, u32 second, u32 upper) {
  return __byte_perm(first, second, 0x5140u + upper * 0x2222u);
}
WICK_DEVICE float byte_float(u32 x, u32 j) {  // through the bits of 2^23
  return bits_f32(__byte_perm(x, 0x4b000000u, 0x7440u + j)) - 8388608.0f;
}
WICK_DEVICE i32 multiply_small(i32 a, i32 b) { return a * b; }
WICK_DEVICE void forget(u32& x) { asm volatile("" : "+r"(x)); }
WICK_DEVICE u32 load_now(const u32* from) {  // past the caches of the multiprocessor
  u32 x;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
  return x;
}
WICK_DEVICE void prefetch(const void* line) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(line));
}
#if WICK_CLUSTER
WICK_DEVICE void prefetch_bytes(const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes));
}
#else
WICK_DEVICE void prefetch_bytes(const void*, u32) {}
#endif
WICK_DEVICE float larger(float a, float b) { return fmaxf(a, b); }
WICK_DEVICE float smaller(float a, float b) { return fminf(a, b); }
/// Of two pairs of a 16-bit type the larger or the smaller numbers: the other one of a NaN, or, by
/// `_or_nan`, NaN; of two zeros either.
#define WICK_OF_TWO_PAIRS(name, instruction)                             \
  template <class T>                                                     \
  WICK_DEVICE u32 name(u32 a, u32 b) {                                   \
    u32 y;                                                               \
    if constexpr (kSame<T, bf16>) {                                      \
      asm(instruction ".bf16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b)); \
    } else {                                                             \
      asm(instruction ".f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));  \
    }                                                                    \
    return y;                                                            \
  }
WICK_OF_TWO_PAIRS(larger_two, "max")
WICK_OF_TWO_PAIRS(larger_two_or_nan, "max.NaN")
WICK_OF_TWO_PAIRS(smaller_two, "min")
#undef WICK_OF_TWO_PAIRS
template <class T>
WICK_DEVICE u32 narrow_two(float low, float high) {
  u32 y;
  if constexpr (kSame<T, bf16>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  }
  return y;
}

WICK_DEVICE Bytes16 load_whole(const Bytes16* from) { return *from; }
WICK_DEVICE void store_whole(Bytes16* to, const Bytes16& x) { *to = x; }

inline constexpr bool kAloneWithinWords = false;
template <u32 kUnit>
WICK_DEVICE Bytes16 load_between(const void* at) {
  const u64 address = reinterpret_cast<u64>(at);
  const u32 past = static_cast<u32>(address) % 16;
  const auto* sixteens = reinterpret_cast<const Bytes16*>(address - past);
  const Bytes16 low = sixteens[0], high = sixteens[1];
  u32 w[8] = {low.w[0], low.w[1], low.w[2], low.w[3], high.w[0], high.w[1], high.w[2], high.w[3]};
#pragma unroll
  for (u32 i = 0; i < 6; ++i) w[i] = (past & 8) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (u32 i = 0; i < 5; ++i) w[i] = (past & 4) != 0 ? w[i + 1] : w[i];
  Bytes16 x;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    x.w[i] = kUnit == 4 ? w[i] : static_cast<u32>((u64{w[i + 1]} << 32 | w[i]) >> past % 4 * 8);
  }
  return x;
}

WICK_DEVICE Bytes16 load_streamed(const Bytes16* from) {
  Bytes16 x;
  asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.w[0]), "=r"(x.w[1]), "=r"(x.w[2]), "=r"(x.w[3])
               : "l"(from));
  return x;
}

#endif

/// A unit of any size, by one load.
template <class U>
WICK_DEVICE U load_whole(const U* from) {
  if constexpr (WICK_AMD && sizeof(U) == 16 && alignof(U) == 16) {
    return __builtin_bit_cast(U, load_whole(reinterpret_cast<const Bytes16*>(from)));
  } else if constexpr (WICK_AMD && sizeof(U) == 8 && alignof(U) == 8) {
    return __builtin_bit_cast(U, *reinterpret_cast<const u64*>(from));
  } else {
    return *from;
  }
}

WICK_DEVICE u32 lane() { return thread_index() % kWarp; }
/// The warp within the thread block.
WICK_DEVICE u32 warp_index() { return thread_index() / kWarp; }

WICK_DEVICE void forget(float& x) {
  u32 b = f32_bits(x);
  forget(b);
  x = bits_f32(b);
}
WICK_DEVICE void forget(i32& x) {
  u32 b = static_cast<u32>(x);
  forget(b);
  x = static_cast<i32>(b);
}

template <u32 kMask>
WICK_DEVICE float shuffle_xor(float x) {
  return bits_f32(shuffle_xor<kMask>(f32_bits(x)));
}
template <u32 kMask>
WICK_DEVICE i32 shuffle_xor(i32 x) {
  return static_cast<i32>(shuffle_xor<kMask>(static_cast<u32>(x)));
}
template <u32 kMask>
WICK_DEVICE u64 shuffle_xor(u64 x) {
  const u64 low = shuffle_xor<kMask>(static_cast<u32>(x));
  return low | u64{shuffle_xor<kMask>(static_cast<u32>(x >> 32))} << 32;
}
template <u32 kMask>
WICK_DEVICE double shuffle_xor(double x) {
  return bits_f64(shuffle_xor<kMask>(f64_bits(x)));
}

WICK_DEVICE float from_next_lane(float x) { return bits_f32(from_next_lane(f32_bits(x))); }
WICK_DEVICE u64 from_next_lane(u64 x) {
  const u64 low = from_next_lane(static_cast<u32>(x));
  return low | u64{from_next_lane(static_cast<u32>(x >> 32))} << 32;
}
WICK_DEVICE double from_next_lane(double x) { return bits_f64(from_next_lane(f64_bits(x))); }

/// How many elements x lies past the last place where kN of them are aligned to their size.
template <u32 kN, class T>
WICK_DEVICE u32 elements_past(const T* x) {
  return static_cast<u32>(reinterpret_cast<u64>(x) / sizeof(T) % kN);
}

/// Reports a mistake in what the kernel was given; the first one counts.
WICK_DEVICE void report(FaultLine* line, FaultKind kind, u32 note, i64 value) {
  if (compare_and_swap(&line->taken, 0, 1) == 0) *line->to = {kind, note, value};
}

/// The largest of the warp's.
WICK_DEVICE u32 largest_of_warp(u32 x) {
#if WICK_MMA
  return __reduce_max_sync(~0u, x);
#else
  u32 y = shuffle_xor<16>(x);
  x = y > x ? y : x;
  y = shuffle_xor<8>(x);
  x = y > x ? y : x;
  y = shuffle_xor<4>(x);
  x = y > x ? y : x;
  y = shuffle_xor<2>(x);
  x = y > x ? y : x;
  y = shuffle_xor<1>(x);
  return y > x ? y : x;
#endif
}

/// lane + lane^16, then ^8, ^4, ^2, ^1: the last five steps of the order of row sums.
template <class T>
WICK_DEVICE T warp_sum(T x) {
  x = x + shuffle_xor<16>(x);
  x = x + shuffle_xor<8>(x);
  x = x + shuffle_xor<4>(x);
  x = x + shuffle_xor<2>(x);
  return x + shuffle_xor<1>(x);
}

}  // namespace wick::gpu
