#pragma once

// Qualifiers and intrinsics of both vendors behind common names. clang compiles this file for AMD,
// nvcc for NVIDIA, and both vendors' run-time compilers compile it too. It includes none of their
// headers.
//
// A warp is 32 lanes on every device: a wave of 64 lanes works as two warps, which keeps the order
// of a reduction the same everywhere.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/device/features.h"
#include "wick/math/fn.h"
#include "wick/math/half.h"

#if defined(__AMDGCN__) || (defined(__HIP__) && defined(__clang__))
#define WICK_AMD 1
#define WICK_DEVICE __attribute__((device, always_inline)) inline
/// Goes behind the parameters of a lambda. Arrays that the lambda captures stay in registers only
/// if it is inlined.
#define WICK_INLINE __attribute__((always_inline))
#define WICK_SHARED __attribute__((shared))
#define WICK_GLOBAL __attribute__((global))
// clang ignores launch_bounds for AMD. Without this attribute it assumes blocks of 1024 threads and
// limits each thread's registers accordingly. The least number of resident blocks is ignored: clang
// chooses the occupancy itself.
#define WICK_BOUNDS(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define WICK_ARGUMENTS
#else
#define WICK_AMD 0
#define WICK_DEVICE __device__ __forceinline__
#define WICK_INLINE
#define WICK_SHARED __shared__
#define WICK_GLOBAL __global__
#define WICK_BOUNDS(...) __launch_bounds__(__VA_ARGS__)
// Arguments are read in parameter memory. Taking the address of one makes no copy.
#define WICK_ARGUMENTS __grid_constant__
#endif
#define WICK_RESTRICT __restrict__

/// `WICK_KERNEL(name, Args, threads) { … }` defines a kernel with exactly this name, for thread
/// blocks of at most `threads`. It takes the struct wick::gpu::Args by value, as `args`. A further
/// argument is the least number of thread blocks that a multiprocessor must hold at once.
///
/// Some kernels copy a small struct of pointers out of `args` before they pass it to functions by
/// reference. AMD's compiler then knows that the pointers point to global memory, and NVIDIA's
/// compiler keeps fewer registers. Structs that are indexed at run time, such as a strided index,
/// must not be copied: the copy would be in local memory.
#define WICK_KERNEL(name, Args, ...)                   \
  extern "C" WICK_GLOBAL void WICK_BOUNDS(__VA_ARGS__) \
      name(WICK_ARGUMENTS const wick::gpu::Args args)

namespace wick::gpu {

using namespace wick::math;

/// The most that one load or store moves.
struct alignas(16) Bytes16 {
  u32 w[4];
};

#if WICK_AMD

WICK_DEVICE u32 thread_index() { return __builtin_amdgcn_workitem_id_x(); }
/// Threads in a thread block.
WICK_DEVICE u32 block_threads() { return __builtin_amdgcn_workgroup_size_x(); }
/// The first active lane's x, which the compiler knows to be uniform in the wave.
WICK_DEVICE u32 of_first_lane(u32 x) { return __builtin_amdgcn_readfirstlane(x); }
WICK_DEVICE u32 block_index() { return __builtin_amdgcn_workgroup_id_x(); }
WICK_DEVICE u32 block_index_y() { return __builtin_amdgcn_workgroup_id_y(); }
/// Thread blocks along the first axis of the grid. Source: hidden kernel arguments of AMD code
/// objects, version 5 and later.
WICK_DEVICE u32 grid_blocks() {
  return *(const __attribute__((address_space(4))) u32*)__builtin_amdgcn_implicitarg_ptr();
}

/// A pointer to global memory that was read from memory. AMD's compiler can't know otherwise where
/// it points, and would use slower loads.
WICK_DEVICE const void* in_global(const void* at) {
  return (const void*)(const __attribute__((address_space(1))) void*)at;
}

/// Barrier of the thread block. What a thread has written before it is visible to the whole block
/// after it.
WICK_DEVICE void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

/// x of the lane that a DPP control names for this lane. DPP reads registers of the lane's row of
/// 16 lanes as part of an instruction, where ds_swizzle waits for the LDS.
template <u32 kControl>
WICK_DEVICE u32 by_dpp(u32 x) {
  return static_cast<u32>(
      __builtin_amdgcn_update_dpp(0, static_cast<int>(x), kControl, 0xf, 0xf, true));
}

/// x of the lane whose index is this lane's XOR kMask.
template <u32 kMask>
WICK_DEVICE u32 shuffle_xor(u32 x) {
  constexpr u32 kOne = 0xb1, kTwo = 0x4e, kThree = 0x1b;               // quad_perm
  constexpr u32 kRotated8 = 0x128, kMirrored8 = 0x141, kFour = 0x164;  // row_ror:8, row_xmask:4
  if constexpr (kMask == 1) {
    return by_dpp<kOne>(x);
  } else if constexpr (kMask == 2) {
    return by_dpp<kTwo>(x);
  } else if constexpr (kMask == 4 && WICK_WAVE == 32) {
    return by_dpp<kFour>(x);
  } else if constexpr (kMask == 4) {
    return by_dpp<kThree>(by_dpp<kMirrored8>(x));  // XOR 7, then XOR 3
  } else if constexpr (kMask == 8) {
    return by_dpp<kRotated8>(x);
#if WICK_WAVE == 32
  } else if constexpr (kMask == 16) {
    u32 y = __builtin_amdgcn_permlanex16(x, x, 0x76543210u, 0xfedcba98u, true, false);
    // Otherwise clang 19 moves it to where y is used, possibly into a branch that some lanes skip.
    asm volatile("" : "+v"(y));
    return y;
#endif
  } else {
    return static_cast<u32>(__builtin_amdgcn_ds_swizzle(static_cast<int>(x), 0x1f | kMask << 10));
  }
}

/// x of the warp's next lane; the last lane gets the first lane's. All lanes of the warp must call
/// it: on AMD a lane that doesn't call it contributes 0.
WICK_DEVICE u32 from_next_lane(u32 x) {
  const u32 next = (thread_index() & (WICK_WAVE - kWarp)) | ((thread_index() + 1) % kWarp);
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

/// Atomic compare-and-swap, relaxed, at device scope; returns the old value.
WICK_DEVICE u32 compare_and_swap(u32* at, u32 expected, u32 wanted) {
  __hip_atomic_compare_exchange_strong(at, &expected, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
/// Atomic increment, relaxed, at device scope; returns the old value.
WICK_DEVICE u32 count_up(u32* at) {
  return __hip_atomic_fetch_add(at, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
/// Atomic increment in shared memory, relaxed, at block scope; returns the old value.
WICK_DEVICE u32 count_in_block(u32* at) {
  return __hip_atomic_fetch_add(at, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
/// Atomic addition in shared memory, relaxed, at block scope.
WICK_DEVICE void add_in_block(u64* at, u64 x) {
  __hip_atomic_fetch_add(at, x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
/// Bit l is x of lane l of the warp. All lanes must call it.
WICK_DEVICE u32 warp_ballot(bool x) {
#if WICK_WAVE == 64
  const u64 lanes = __builtin_amdgcn_ballot_w64(x);
  return static_cast<u32>(thread_index() % 64 < 32 ? lanes : lanes >> 32);
#else
  return __builtin_amdgcn_ballot_w32(x);
#endif
}
/// Number of bits that are 1.
WICK_DEVICE u32 count_bits(u32 x) { return static_cast<u32>(__builtin_popcount(x)); }

/// Orders this thread's earlier writes before its later ones, for all threads of the device.
WICK_DEVICE void device_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

/// The lower halves of two words in one word, `first`'s in the lower half. With `upper` = 1 (not 0)
/// it takes the upper halves.
WICK_DEVICE u32 same_halves(u32 first, u32 second, u32 upper) {
  return __builtin_amdgcn_perm(second, first, 0x05040100u + upper * 0x02020202u);
}
/// Interleaves the bytes of the lower halves of two words, beginning with `first`'s. With `upper` =
/// 1 (not 0) it takes the upper halves.
WICK_DEVICE u32 alternate_bytes(u32 first, u32 second, u32 upper) {
  return __builtin_amdgcn_perm(second, first, 0x05010400u + upper * 0x02020202u);
}
/// Byte j of x as a float.
WICK_DEVICE float byte_float(u32 x, u32 j) { return static_cast<float>(x >> 8 * j & 0xff); }
/// Product of integers below 2^23 whose product is below 2^31. AMD multiplies 24 bits four times as
/// fast as 32.
WICK_DEVICE i32 multiply_small(i32 a, i32 b) {
  return (static_cast<i32>(static_cast<u32>(a) << 8) >> 8) *
         (static_cast<i32>(static_cast<u32>(b) << 8) >> 8);
}

/// Makes the compiler forget the value of a register and what it has computed from it. The compiler
/// then computes that again instead of keeping it in registers.
WICK_DEVICE void forget(u32& x) { asm volatile("" : "+v"(x)); }

/// Programmatic dependent launch (PDL), for kernels launched with LaunchWishes::pdl. pdl_wait()
/// waits for the previous kernels; pdl_launch_dependents() lets the next kernel start. AMD has no
/// PDL.
WICK_DEVICE void pdl_wait() {}
WICK_DEVICE void pdl_launch_dependents() {}

/// Reads a word from memory, not from a cache, because a previous kernel may still be changing it.
WICK_DEVICE u32 load_now(const u32* from) { return *from; }

/// Prefetches a cache line, where hardware takes such hints. The line may be changed afterwards.
WICK_DEVICE void prefetch(const void*) {}

/// Loads 16 bytes by one instruction. A plain assignment would become a memcpy, which keeps arrays
/// of Bytes16 out of registers, or one load for each word.
WICK_DEVICE Bytes16 load_whole(const Bytes16* from) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  const Four v = *reinterpret_cast<const Four*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
/// Loads 16 bytes from an address that is a multiple of kUnit bytes. They lie in two neighbouring,
/// aligned blocks of 16 bytes, which must both be readable unless kAloneWithinWords is true.
template <u32 kUnit>
WICK_DEVICE Bytes16 load_between(const void* at) {
  typedef u32 Four __attribute__((ext_vector_type(4), aligned(4)));
  const u32 past = static_cast<u32>(reinterpret_cast<u64>(at)) % 4;
  const u32* words = reinterpret_cast<const u32*>(reinterpret_cast<u64>(at) - past);
  const Four v = *reinterpret_cast<const Four*>(words);
  if constexpr (kUnit == 4) return {{v.x, v.y, v.z, v.w}};
  // The fifth word is usually the first word of the next lane. If each lane loaded it, all cache
  // lines would be read twice. An inactive lane reports address 0, which follows no address that
  // needs a fifth word.
  const u32 low = static_cast<u32>(reinterpret_cast<u64>(words));
  u32 fifth = from_next_lane(v.x);
  if (from_next_lane(low) != low + 16 && past != 0) fifth = words[4];
  const u32 w[5] = {v.x, v.y, v.z, v.w, fifth};
  Bytes16 x;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) x.w[i] = static_cast<u32>((u64{w[i + 1]} << 32 | w[i]) >> past * 8);
  return x;
}
/// Whether load_between reads only the words that hold its bytes.
inline constexpr bool kAloneWithinWords = true;
/// Stores 16 bytes by one instruction.
WICK_DEVICE void store_whole(Bytes16* to, const Bytes16& x) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  *reinterpret_cast<Four*>(to) = Four{x.w[0], x.w[1], x.w[2], x.w[3]};
}
/// Prefetches `bytes`, a multiple of 16, asynchronously, where hardware can.
WICK_DEVICE void prefetch_bytes(const void*, u32) {}

/// Loads 16 bytes that aren't read again soon.
WICK_DEVICE Bytes16 load_streamed(const Bytes16* from) {
  typedef u32 Four __attribute__((ext_vector_type(4)));
  const Four v = __builtin_nontemporal_load(reinterpret_cast<const Four*>(from));
  return {{v.x, v.y, v.z, v.w}};
}

/// 1/d with an error of at most 1 ulp. Not for denormals.
struct NearInverse {
  WICK_DEVICE float operator()(float d) const { return __builtin_amdgcn_rcpf(d); }
};

/// The larger of two numbers. If one of them is NaN, it is the other one. Of two zeros it is
/// either.
WICK_DEVICE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
/// The smaller of two numbers, with larger()'s rules for NaN and zeros.
WICK_DEVICE float smaller(float a, float b) { return __builtin_fminf(a, b); }

/// larger() of the lower halves and of the upper halves of two words, which hold values of a 16-bit
/// type.
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
/// smaller() of the lower halves and of the upper halves of two words.
template <class T>
WICK_DEVICE u32 smaller_two(u32 a, u32 b) {
  constexpr u32 kSigns = 0x80008000u;
  return larger_two<T>(a ^ kSigns, b ^ kSigns) ^ kSigns;
}

/// Rounds two values to a 16-bit type; `low` goes to the lower half of the word.
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
WICK_DEVICE const void* in_global(const void* at) {
  __builtin_assume(__isGlobal(at));
  return at;
}
WICK_DEVICE void sync() { __syncthreads(); }
/// Converts a pointer into shared memory to the 32-bit address that PTX instructions take.
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
WICK_DEVICE u32 warp_ballot(bool x) { return __ballot_sync(~0u, x); }
WICK_DEVICE u32 count_bits(u32 x) { return static_cast<u32>(__popc(static_cast<int>(x))); }
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
// The byte becomes the low mantissa bits of 2^23.
WICK_DEVICE float byte_float(u32 x, u32 j) {
  return bits_f32(__byte_perm(x, 0x4b000000u, 0x7440u + j)) - 8388608.0f;
}
WICK_DEVICE i32 multiply_small(i32 a, i32 b) { return a * b; }
WICK_DEVICE void forget(u32& x) { asm volatile("" : "+r"(x)); }
WICK_DEVICE u32 load_now(const u32* from) {  // ld.relaxed bypasses L1
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
/// Defines a function of two pairs of a 16-bit type. `max` and `min` give the other operand of a
/// NaN, `max.NaN` gives NaN. Of two zeros they give either.
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

/// Loads a value of any size by one instruction.
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
/// Index of the warp within the thread block.
WICK_DEVICE u32 warp_index() { return thread_index() / kWarp; }

/// warp_index(), which the compiler knows to be uniform where a wave is a warp.
WICK_DEVICE u32 uniform_warp_index() {
#if WICK_AMD && WICK_WAVE == 32
  return of_first_lane(warp_index());
#else
  return warp_index();
#endif
}

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

/// Number of elements between x and the last address at or below it where kN elements are aligned
/// to their size.
template <u32 kN, class T>
WICK_DEVICE u32 elements_past(const T* x) {
  return static_cast<u32>(reinterpret_cast<u64>(x) / sizeof(T) % kN);
}

/// Reports a fault. Only the first report is kept.
WICK_DEVICE void report(FaultLine* line, FaultKind kind, u32 note, i64 value) {
  if (compare_and_swap(&line->taken, 0, 1) == 0) *line->to = {kind, note, value};
}

/// Number of lanes of the warp for which x is true. All lanes must call it.
WICK_DEVICE u32 warp_count(bool x) { return count_bits(warp_ballot(x)); }

/// Maximum over the warp.
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

/// Sum over the warp, by XOR with 16, 8, 4, 2, 1: the last five steps of a row's sum.
template <class T>
WICK_DEVICE T warp_sum(T x) {
  x = x + shuffle_xor<16>(x);
  x = x + shuffle_xor<8>(x);
  x = x + shuffle_xor<4>(x);
  x = x + shuffle_xor<2>(x);
  return x + shuffle_xor<1>(x);
}

}  // namespace wick::gpu
