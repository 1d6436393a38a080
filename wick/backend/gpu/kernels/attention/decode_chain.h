#pragma once

// Chains of fma for decode.gpu. Each chain adds in index order; loads run ahead of the additions.

#include "wick/backend/gpu/kernels/device/element.h"

namespace wick::gpu {

/// For kRows rows r, and i from `first` to `end` in order: adds factors[r · row + i] · x to a[r],
/// where x is the pair of elements at base[i · step + offset]. The loads of a block of kBlock steps
/// are in flight while the block before is added. The remaining steps are loaded in blocks of
/// kTail. All byte offsets from `base` are below 4 GiB.
template <u32 kRows, u32 kBlock, u32 kTail, class T>
WICK_DEVICE void add_chain(float (&a)[kRows][2], const T* base, u32 offset, u32 step,
                           const float* factors, u32 row, i32 first, i32 end) {
  u32 at = (static_cast<u32>(first) * step + offset) * sizeof(T);
  const u32 step_bytes = step * sizeof(T);
  const auto load = [&]() WICK_INLINE {
    const auto x = *reinterpret_cast<const Vec<T, 2>*>(reinterpret_cast<const char*>(base) + at);
    at += step_bytes;
    return x;
  };
  const auto add = [&](const Vec<T, 2>& x, u32 r, float factor) WICK_INLINE {
    a[r][0] = fma(factor, x[0], a[r][0]);
    a[r][1] = fma(factor, x[1], a[r][1]);
  };
  i32 i = first;
#pragma unroll 1
  for (; i < end && i % 4 != 0; ++i) {
    const Vec<T, 2> x = load();
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) add(x, r, factors[r * row + i]);
  }
  constexpr i32 kWhole = kBlock;
  Vec<T, 2> now[kBlock] = {}, next[kBlock] = {};
#pragma unroll 1
  for (i32 ahead = i; ahead + kWhole <= end || i < ahead; ahead += kWhole) {
    if (ahead + kWhole <= end) {
#pragma unroll
      for (u32 n = 0; n < kBlock; ++n) next[n] = load();
    }
    if (i < ahead) {
#pragma unroll
      for (u32 n = 0; n < kBlock; n += 4) {
#pragma unroll
        for (u32 r = 0; r < kRows; ++r) {
          const auto f = *reinterpret_cast<const Vec<float, 4>*>(factors + r * row + i + n);
#pragma unroll
          for (u32 j = 0; j < 4; ++j) add(now[n + j], r, f[j]);
        }
      }
      i += kWhole;
    }
    if (ahead + kWhole > end) break;
#pragma unroll
    for (u32 n = 0; n < kBlock; ++n) now[n] = next[n];
  }
#pragma unroll 1
  for (; i < end; i += static_cast<i32>(kTail)) {
    Vec<T, 2> x[kTail];
#pragma unroll
    for (u32 n = 0; n < kTail; ++n) {
      if (i + static_cast<i32>(n) < end) x[n] = load();
    }
#pragma unroll
    for (u32 n = 0; n < kTail; ++n) {
      if (i + static_cast<i32>(n) < end) {
#pragma unroll
        for (u32 r = 0; r < kRows; ++r) add(x[n], r, factors[r * row + i + n]);
      }
    }
  }
}

/// Calls add(block) for `blocks` blocks in order. load(to, number) loads one while the block before
/// it is added; its number may be `blocks`.
template <class Block, class Load, class Add>
WICK_DEVICE void add_blocks(i32 blocks, const Load& load, const Add& add) {
  if (blocks <= 0) return;
  Block even, odd;
  load(even, 0);
  i32 block = 0;
#pragma unroll 1
  for (; block + 1 < blocks; block += 2) {
    load(odd, block + 1);
    add(even);
    load(even, block + 2);
    add(odd);
  }
  if (block < blocks) add(even);
}

/// For kRows rows r: a[r] = Σ factors[r · row + i] · base[i · kStep], i from `first` to `end` in
/// order. It is for threads with few chains, whose latency counts. It reads whole groups of four
/// factors, also behind `end`. The loads of a block are in flight while the block before is added:
/// they are widened only when they are added, and no branch lies between them and the additions, so
/// that the compiler can't move them there.
template <u32 kRows, u32 kStep, class T>
WICK_DEVICE void add_latency_chains(float (&a)[kRows], const T* base, const float* factors, u32 row,
                                    i32 first, i32 end) {
  constexpr i32 kBlock = 16 / kRows;
  struct Block {
    u32 x[kBlock];
    Vec<float, 4> f[kRows][kBlock / 4];
  };
  const auto stored = [](T x) WICK_INLINE -> u32 {
    if constexpr (sizeof(T) == 4) {
      return f32_bits(x);
    } else {
      return x.bits;
    }
  };
  const auto value = [](u32 x) WICK_INLINE -> float {
    if constexpr (sizeof(T) == 4) {
      return bits_f32(x);
    } else {
      return widen(__builtin_bit_cast(T, static_cast<u16>(x)));
    }
  };
#pragma unroll
  for (u32 r = 0; r < kRows; ++r) a[r] = 0.0f;
  i32 i = first;
#pragma unroll 1
  for (; i < end && i % 4 != 0; ++i) {
#pragma unroll
    for (u32 r = 0; r < kRows; ++r)
      a[r] = fma(factors[r * row + i], widen(base[i * i32{kStep}]), a[r]);
  }
  const i32 blocks = i < end ? (end - i) / kBlock : 0, start = i;
  const auto load = [&](Block& to, i32 block) WICK_INLINE {
    const i32 at = start + (block < blocks ? block : blocks - 1) * kBlock;
    const T* from = base + at * i32{kStep};
#pragma unroll
    for (u32 n = 0; n < kBlock; ++n) to.x[n] = stored(from[n * kStep]);
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
#pragma unroll
      for (u32 n = 0; n < kBlock / 4; ++n) {
        to.f[r][n] = *reinterpret_cast<const Vec<float, 4>*>(factors + r * row + at + 4 * n);
      }
    }
  };
  const auto add = [&](const Block& y) WICK_INLINE {
#pragma unroll
    for (u32 n = 0; n < kBlock; ++n) {
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) a[r] = fma(y.f[r][n / 4][n % 4], value(y.x[n]), a[r]);
    }
  };
  add_blocks<Block>(blocks, load, add);
  i += blocks * kBlock;
#pragma unroll 1
  for (; i < end; i += 4) {
    u32 x[4];
#pragma unroll
    for (i32 n = 0; n < 4; ++n) x[n] = stored(base[(i + n < end ? i + n : i) * i32{kStep}]);
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const auto f = *reinterpret_cast<const Vec<float, 4>*>(factors + r * row + i);
#pragma unroll
      for (i32 n = 0; n < 4; ++n) {
        if (i + n < end) a[r] = fma(f[static_cast<u32>(n)], value(x[n]), a[r]);
      }
    }
  }
}

/// For kRows rows r, and i from `first` to `end` in order: adds factors[r][i] · x to a[r], where x
/// is the pair of elements at base[i · kStep]. The loads of a block are in flight while the block
/// before is added. Factors are aligned to 16 bytes.
template <u32 kRows, u32 kStep, class T>
WICK_DEVICE void add_pair_chains(float (&a)[kRows][2], const T* base,
                                 const float* const (&factors)[kRows], i32 first, i32 end) {
  constexpr i32 kBlock = 8;
  struct Block {
    Vec<T, 2> x[kBlock];
    Vec<float, 4> f[kRows][kBlock / 4];
  };
  const auto add_one = [&](i32 i) WICK_INLINE {
    const auto x = *reinterpret_cast<const Vec<T, 2>*>(base + i * i32{kStep});
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      a[r][0] = fma(factors[r][i], x[0], a[r][0]);
      a[r][1] = fma(factors[r][i], x[1], a[r][1]);
    }
  };
  i32 i = first;
#pragma unroll 1
  for (; i < end && i % 4 != 0; ++i) add_one(i);
  const i32 start = i, blocks = i < end ? (end - i) / kBlock : 0;
  const auto load = [&](Block& to, i32 block) WICK_INLINE {
    const i32 at = start + (block < blocks ? block : blocks - 1) * kBlock;
#pragma unroll
    for (i32 n = 0; n < kBlock; ++n) {
      to.x[n] = *reinterpret_cast<const Vec<T, 2>*>(base + (at + n) * i32{kStep});
    }
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
#pragma unroll
      for (i32 n = 0; n < kBlock / 4; ++n) {
        to.f[r][n] = *reinterpret_cast<const Vec<float, 4>*>(factors[r] + at + 4 * n);
      }
    }
  };
  const auto add = [&](const Block& y) WICK_INLINE {
#pragma unroll
    for (u32 n = 0; n < static_cast<u32>(kBlock); ++n) {
      const float x0 = y.x[n][0], x1 = y.x[n][1];
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) {
        const float factor = y.f[r][n / 4][n % 4];
        a[r][0] = fma(factor, x0, a[r][0]);
        a[r][1] = fma(factor, x1, a[r][1]);
      }
    }
  };
  add_blocks<Block>(blocks, load, add);
  i += blocks * kBlock;
#pragma unroll 1
  for (; i < end; ++i) add_one(i);
}

}  // namespace wick::gpu
