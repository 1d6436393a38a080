#pragma once

// <hip/hip_cooperative_groups.h>: the grid, the block, tiles of a wave, and coalesced threads.

#include "hip_runtime.h"

namespace cooperative_groups {

#define WICK_GROUP __device__ inline

namespace details {
WICK_GROUP unsigned rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
WICK_GROUP unsigned block_items() { return blockDim.x * blockDim.y * blockDim.z; }

/// What a cooperative launch's blocks wait with; its address is a hidden argument.
struct GridWait {
  uint64_t several;
  unsigned number, count;
  uint64_t items_before, items;
  unsigned arrived, reserved;
  unsigned blocks;
};
WICK_GROUP GridWait* grid_wait() {
  using Hidden = const __attribute__((address_space(4))) uint64_t*;
  const auto hidden = (Hidden)__builtin_amdgcn_implicitarg_ptr();
  return reinterpret_cast<GridWait*>(hidden[__oclc_ABI_version < 500 ? 6 : 11]);
}
/// The count of arrived blocks is in the low half of a word whose high half numbers the waits.
WICK_GROUP void wait_for_blocks() {
  __syncthreads();
  if (rank_in_block() == 0) {
    GridWait* wait = grid_wait();
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    const unsigned before = atomicAdd(&wait->arrived, 1u);
    if ((before & 0xffff) == wait->blocks - 1) {
      atomicAdd(&wait->arrived, 0x10000 - wait->blocks);
    } else {
      while ((__hip_atomic_load(&wait->arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) >>
              16) == before >> 16) {
        __builtin_amdgcn_s_sleep(1);
      }
    }
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  }
  __syncthreads();
}
}  // namespace details

/// Some threads of a block. The derived types say which.
class thread_group {
 public:
  WICK_GROUP unsigned size() const { return size_; }
  WICK_GROUP unsigned num_threads() const { return size_; }
  WICK_GROUP unsigned thread_rank() const {
    return kind_ == Kind::block ? details::rank_in_block()
           : kind_ == Kind::tile
               ? details::rank_in_block() % size_
               : static_cast<unsigned>(__builtin_popcountll(lanes_ & __lanemask_lt()));
  }
  WICK_GROUP bool is_valid() const { return true; }
  WICK_GROUP void sync() const {
    if (kind_ == Kind::block) {
      __syncthreads();
    } else {
      __syncwarp();
    }
  }

 protected:
  enum class Kind { block, tile, coalesced };
  WICK_GROUP thread_group(Kind kind, unsigned size, uint64_t lanes = 0)
      : kind_(kind), size_(size), lanes_(lanes) {}
  Kind kind_;
  unsigned size_;
  uint64_t lanes_;
};

class thread_block : public thread_group {
 public:
  static WICK_GROUP unsigned size() { return details::block_items(); }
  static WICK_GROUP unsigned thread_rank() { return details::rank_in_block(); }
  static WICK_GROUP dim3 group_index() { return blockIdx; }
  static WICK_GROUP dim3 thread_index() { return threadIdx; }
  static WICK_GROUP dim3 group_dim() { return blockDim; }
  static WICK_GROUP dim3 dim_threads() { return blockDim; }
  static WICK_GROUP void sync() { __syncthreads(); }

 private:
  friend WICK_GROUP thread_block this_thread_block();
  WICK_GROUP thread_block() : thread_group(Kind::block, details::block_items()) {}
};
WICK_GROUP thread_block this_thread_block() { return thread_block(); }

/// All blocks of a cooperative launch.
class grid_group {
 public:
  static WICK_GROUP bool is_valid() { return details::grid_wait() != nullptr; }
  static WICK_GROUP unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static WICK_GROUP unsigned long long size() { return num_blocks() * details::block_items(); }
  static WICK_GROUP unsigned long long num_threads() { return size(); }
  static WICK_GROUP dim3 group_dim() { return gridDim; }
  static WICK_GROUP unsigned long long block_rank() {
    return blockIdx.x + static_cast<unsigned long long>(gridDim.x) *
                            (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  static WICK_GROUP unsigned long long thread_rank() {
    return block_rank() * details::block_items() + details::rank_in_block();
  }
  static WICK_GROUP void sync() { details::wait_for_blocks(); }
};
WICK_GROUP grid_group this_grid() { return grid_group(); }

/// `kSize` consecutive lanes of a wave: a power of two.
template <unsigned kSize, class Parent = void>
class thread_block_tile : public thread_group {
  static_assert(kSize >= 1 && kSize <= 64 && (kSize & (kSize - 1)) == 0, "a tile's size");

 public:
  WICK_GROUP explicit thread_block_tile() : thread_group(Kind::tile, kSize) {}
  static constexpr WICK_GROUP unsigned size() { return kSize; }
  static constexpr WICK_GROUP unsigned num_threads() { return kSize; }
  static WICK_GROUP unsigned thread_rank() { return details::rank_in_block() % kSize; }
  static WICK_GROUP unsigned meta_group_rank() { return details::rank_in_block() / kSize; }
  static WICK_GROUP unsigned meta_group_size() {
    return (details::block_items() + kSize - 1) / kSize;
  }
  WICK_GROUP void sync() const { __syncwarp(); }
  template <class T>
  WICK_GROUP T shfl(T value, int source) const {
    return __shfl(value, source, kSize);
  }
  template <class T>
  WICK_GROUP T shfl_up(T value, unsigned delta) const {
    return __shfl_up(value, delta, kSize);
  }
  template <class T>
  WICK_GROUP T shfl_down(T value, unsigned delta) const {
    return __shfl_down(value, delta, kSize);
  }
  template <class T>
  WICK_GROUP T shfl_xor(T value, unsigned mask) const {
    return __shfl_xor(value, static_cast<int>(mask), kSize);
  }
  WICK_GROUP unsigned long long ballot(int predicate) const {
    return __ballot64(predicate) >> (__lane_id() & ~(kSize - 1)) & (~0ull >> (64 - kSize));
  }
  WICK_GROUP int any(int predicate) const { return ballot(predicate) != 0; }
  WICK_GROUP int all(int predicate) const { return ballot(predicate == 0) == 0; }
};

template <unsigned kSize, class Parent>
WICK_GROUP thread_block_tile<kSize, Parent> tiled_partition(const Parent&) {
  return thread_block_tile<kSize, Parent>();
}

/// The lanes of a wave that are active together.
class coalesced_group : public thread_group {
 public:
  WICK_GROUP explicit coalesced_group(uint64_t lanes)
      : thread_group(Kind::coalesced, static_cast<unsigned>(__builtin_popcountll(lanes)), lanes) {}
  template <class T>
  WICK_GROUP T shfl(T value, int rank) const {
    uint64_t left = lanes_;
    for (int i = 0; i < rank % static_cast<int>(size_); ++i) left &= left - 1;
    return __wick::from_lane(value, __builtin_ctzll(left));
  }
  WICK_GROUP unsigned long long ballot(int predicate) const {
    unsigned long long result = 0, at = 1;
    const unsigned long long votes = __ballot64(predicate);
    for (uint64_t left = lanes_; left != 0; left &= left - 1, at <<= 1) {
      if ((votes >> __builtin_ctzll(left) & 1) != 0) result |= at;
    }
    return result;
  }
  WICK_GROUP int any(int predicate) const { return ballot(predicate) != 0; }
  WICK_GROUP int all(int predicate) const { return ballot(predicate == 0) == 0; }
};
WICK_GROUP coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class Group>
WICK_GROUP void sync(const Group& group) {
  group.sync();
}

#undef WICK_GROUP

}  // namespace cooperative_groups
