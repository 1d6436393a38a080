#pragma once

// Indices of threads and blocks, barriers and fences, and operations among the lanes of a wave.

#define WICK_LANES static __device__ inline

namespace __wick {

enum class What { thread, block, block_size, grid };

template <What kWhat, int kAxis>
WICK_LANES unsigned coordinate() {
#define WICK_AXIS(name)                        \
  kAxis == 0   ? __builtin_amdgcn_##name##_x() \
  : kAxis == 1 ? __builtin_amdgcn_##name##_y() \
               : __builtin_amdgcn_##name##_z()
  if constexpr (kWhat == What::thread) return WICK_AXIS(workitem_id);
  if constexpr (kWhat == What::block) return WICK_AXIS(workgroup_id);
  if constexpr (kWhat == What::block_size) return WICK_AXIS(workgroup_size);
  const unsigned items = WICK_AXIS(grid_size);
  const unsigned size = WICK_AXIS(workgroup_size);
  return (items + size - 1) / size;
#undef WICK_AXIS
}

template <What kWhat>
struct Coordinates {
  WICK_LANES unsigned get_x() { return coordinate<kWhat, 0>(); }
  WICK_LANES unsigned get_y() { return coordinate<kWhat, 1>(); }
  WICK_LANES unsigned get_z() { return coordinate<kWhat, 2>(); }
  __declspec(property(get = get_x)) unsigned x;
  __declspec(property(get = get_y)) unsigned y;
  __declspec(property(get = get_z)) unsigned z;
  __device__ operator dim3() const { return dim3(get_x(), get_y(), get_z()); }
  __device__ operator uint3() const { return uint3(get_x(), get_y(), get_z()); }
};

}  // namespace __wick

extern const __device__ __attribute__((weak)) __wick::Coordinates<__wick::What::thread> threadIdx;
extern const __device__ __attribute__((weak)) __wick::Coordinates<__wick::What::block> blockIdx;
extern const __device__ __attribute__((weak)) __wick::Coordinates<__wick::What::block_size>
    blockDim;
extern const __device__ __attribute__((weak)) __wick::Coordinates<__wick::What::grid> gridDim;

#define hipThreadIdx_x (__builtin_amdgcn_workitem_id_x())
#define hipThreadIdx_y (__builtin_amdgcn_workitem_id_y())
#define hipThreadIdx_z (__builtin_amdgcn_workitem_id_z())
#define hipBlockIdx_x (__builtin_amdgcn_workgroup_id_x())
#define hipBlockIdx_y (__builtin_amdgcn_workgroup_id_y())
#define hipBlockIdx_z (__builtin_amdgcn_workgroup_id_z())
#define hipBlockDim_x (__builtin_amdgcn_workgroup_size_x())
#define hipBlockDim_y (__builtin_amdgcn_workgroup_size_y())
#define hipBlockDim_z (__builtin_amdgcn_workgroup_size_z())
#define hipGridDim_x (gridDim.x)
#define hipGridDim_y (gridDim.y)
#define hipGridDim_z (gridDim.z)

WICK_LANES void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
WICK_LANES void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
WICK_LANES void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
WICK_LANES void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

#ifdef __AMDGCN_WAVEFRONT_SIZE__
static constexpr int warpSize = __AMDGCN_WAVEFRONT_SIZE__;
#else
#define warpSize (static_cast<int>(__builtin_amdgcn_wavefrontsize()))
#endif

WICK_LANES unsigned __lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}

WICK_LANES unsigned long long __ballot64(int predicate) {
  return __builtin_amdgcn_ballot_w64(predicate != 0);
}
WICK_LANES unsigned long long __ballot(int predicate) { return __ballot64(predicate); }
WICK_LANES unsigned long long __activemask() { return __ballot64(1); }
WICK_LANES int __any(int predicate) { return __ballot64(predicate) != 0; }
WICK_LANES int __all(int predicate) { return __ballot64(predicate == 0) == 0; }
WICK_LANES uint64_t __lanemask_eq() { return uint64_t{1} << __lane_id(); }
WICK_LANES uint64_t __lanemask_lt() { return __lanemask_eq() - 1; }
WICK_LANES uint64_t __lanemask_le() { return __lanemask_lt() | __lanemask_eq(); }
WICK_LANES uint64_t __lanemask_gt() { return ~__lanemask_le(); }
WICK_LANES uint64_t __lanemask_ge() { return ~__lanemask_lt(); }

namespace __wick {
/// Returns the value that the register of another lane has.
template <class T>
WICK_LANES T from_lane(T value, int lane) {
  static_assert(sizeof(T) <= 16, "a shuffle of more than 16 bytes");
  int words[(sizeof(T) + 3) / 4] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (int& word : words) word = __builtin_amdgcn_ds_bpermute(lane << 2, word);
  __builtin_memcpy(&value, words, sizeof(T));
  return value;
}
}  // namespace __wick

template <class T>
WICK_LANES T __shfl(T value, int source, int width = warpSize) {
  const int self = static_cast<int>(__lane_id());
  return __wick::from_lane(value, (source & (width - 1)) + (self & ~(width - 1)));
}
template <class T>
WICK_LANES T __shfl_up(T value, unsigned delta, int width = warpSize) {
  const int self = static_cast<int>(__lane_id()), source = self - static_cast<int>(delta);
  return __wick::from_lane(value, source < (self & ~(width - 1)) ? self : source);
}
template <class T>
WICK_LANES T __shfl_down(T value, unsigned delta, int width = warpSize) {
  const int self = static_cast<int>(__lane_id());
  const bool outside = (self & (width - 1)) + static_cast<int>(delta) >= width;
  return __wick::from_lane(value, outside ? self : self + static_cast<int>(delta));
}
template <class T>
WICK_LANES T __shfl_xor(T value, int mask, int width = warpSize) {
  const int self = static_cast<int>(__lane_id()), source = self ^ mask;
  return __wick::from_lane(value, source >= ((self + width) & ~(width - 1)) ? self : source);
}

// The forms with a mask of lanes, which must have 64 bits.
#define WICK_MASK(Mask) static_assert(sizeof(Mask) == 8, "the mask must be a 64-bit integer")

template <class Mask, class T>
WICK_LANES T __shfl_sync(Mask, T value, int source, int width = warpSize) {
  WICK_MASK(Mask);
  return __shfl(value, source, width);
}
template <class Mask, class T>
WICK_LANES T __shfl_up_sync(Mask, T value, unsigned delta, int width = warpSize) {
  WICK_MASK(Mask);
  return __shfl_up(value, delta, width);
}
template <class Mask, class T>
WICK_LANES T __shfl_down_sync(Mask, T value, unsigned delta, int width = warpSize) {
  WICK_MASK(Mask);
  return __shfl_down(value, delta, width);
}
template <class Mask, class T>
WICK_LANES T __shfl_xor_sync(Mask, T value, int lanes, int width = warpSize) {
  WICK_MASK(Mask);
  return __shfl_xor(value, lanes, width);
}
template <class Mask>
WICK_LANES unsigned long long __ballot_sync(Mask mask, int predicate) {
  WICK_MASK(Mask);
  return __ballot64(predicate) & mask;
}
template <class Mask>
WICK_LANES int __any_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
template <class Mask>
WICK_LANES int __all_sync(Mask mask, int predicate) {
  return __ballot_sync(mask, predicate == 0) == 0;
}
template <class Mask>
WICK_LANES void __syncwarp(Mask) {
  WICK_MASK(Mask);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
WICK_LANES void __syncwarp() { __syncwarp(~0ull); }

/// Returns the lanes of the mask whose value is that of this lane.
template <class Mask, class T>
WICK_LANES unsigned long long __match_any_sync(Mask mask, T value) {
  WICK_MASK(Mask);
  unsigned long long same = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    const T other = __wick::from_lane(value, lane);
    if (other == value) same |= 1ull << lane;
  }
  return same;
}
/// Returns the mask if all of its lanes have the same value, and 0 otherwise.
template <class Mask, class T>
WICK_LANES unsigned long long __match_all_sync(Mask mask, T value, int* same) {
  *same = __match_any_sync(mask, value) == mask;
  return *same ? mask : 0;
}

#define WICK_REDUCE(name, expression)                       \
  template <class Mask, class T>                            \
  WICK_LANES T __reduce_##name##_sync(Mask mask, T value) { \
    WICK_MASK(Mask);                                        \
    bool first = true;                                      \
    T a = value;                                            \
    for (int lane = 0; lane < warpSize; ++lane) {           \
      if ((mask >> lane & 1) == 0) continue;                \
      const T b = __wick::from_lane(value, lane);           \
      a = first ? b : static_cast<T>(expression);           \
      first = false;                                        \
    }                                                       \
    return a;                                               \
  }
WICK_REDUCE(add, a + b)
WICK_REDUCE(min, b < a ? b : a)
WICK_REDUCE(max, a < b ? b : a)
WICK_REDUCE(and, a& b)
WICK_REDUCE(or, a | b)
WICK_REDUCE(xor, a ^ b)
#undef WICK_REDUCE

WICK_LANES long long int __clock64() {
  return static_cast<long long>(__builtin_readcyclecounter());
}
WICK_LANES long long int clock64() { return __clock64(); }
WICK_LANES long long int __clock() { return __clock64(); }
WICK_LANES long long int clock() { return __clock64(); }
WICK_LANES long long int wall_clock64() {
  return static_cast<long long>(__builtin_readsteadycounter());
}
