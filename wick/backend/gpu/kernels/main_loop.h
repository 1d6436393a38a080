#pragma once

// Main loops: the sums of a tile of a product, one implementation for each matrix unit.
//
// A loop is a class with
//   kM, kN            rows of a and of b that a group multiplies
//   kLoopItems        items of the group
//   kSharedWords      words of shared memory, 16-byte aligned
//   run(a, b, k, shared)   multiplies rows of a and b along k, all items together
//   each(visit)       visit(row, column, sums): the item's sums, four neighbouring columns a time
// so that kernels choose one by the types alone and differ in what they do with the sums.
//
// This file: the operands, what is done with sums, and PlainLoop, for every dtype and architecture.

#include "wick/backend/gpu/kernels/element.h"
#include "wick/backend/gpu/kernels/product.h"

namespace wick::gpu {

inline constexpr u32 kLoopItems = 256;

/// Rows of a matrix from a tile's first on: `rows` of them exist.
template <class T>
struct TileRows {
  const T* data;
  i64 row_stride, k_stride;
  u32 rows;
};

// ---- What is added: floats in f32 or f64, integers modulo 2^32 or 2^64.

WICK_DEVICE u32 widen(u8 x) { return x; }
WICK_DEVICE u32 widen(i16 x) { return static_cast<u32>(i32{x}); }
WICK_DEVICE u32 widen(u32 x) { return x; }
WICK_DEVICE u64 widen(i64 x) { return static_cast<u64>(x); }

WICK_DEVICE float multiply_add(float a, float b, float sum) { return fma(a, b, sum); }
WICK_DEVICE double multiply_add(double a, double b, double sum) { return fma(a, b, sum); }
WICK_DEVICE u32 multiply_add(u32 a, u32 b, u32 sum) { return a * b + sum; }
WICK_DEVICE u64 multiply_add(u64 a, u64 b, u64 sum) { return a * b + sum; }

/// Four neighbours in shared memory.
template <class S>
struct alignas(16) Four {
  S v[4];
};

/// A tile's rows on their way to shared memory, kDepth of k at a time, widened and turned: there
/// the rows of one k are neighbours. Neighbouring items read neighbours in memory, be those rows or
/// k.
template <class T, u32 kRows, u32 kDepth>
class PlainStage {
 public:
  using Sum = decltype(widen(T()));
  static constexpr u32 kPitch = kRows + 16 / sizeof(Sum);
  static constexpr u32 kElems = kPitch * kDepth;

  WICK_DEVICE explicit PlainStage(const TileRows<T>& from) : k_stride_(from.k_stride) {
    // Along k, 8 k by 32 rows at a time: no two lanes of a team store to one bank.
    along_k_ = from.row_stride != 1;
    row_ = along_k_ ? item() / 8 : item() % kRows;
    k_ = along_k_ ? item() % 8 : item() / kRows;
    for (u32 s = 0; s < kEach; ++s) {
      const u32 row = row_ + row_step(s) < from.rows ? row_ + row_step(s) : from.rows - 1;
      at_[s] = from.data + row * from.row_stride + (k_ + k_step(s)) * k_stride_;
    }
  }

  /// The next elements; zeros behind the last `left` k.
  WICK_DEVICE void load(u32 left) {
#pragma unroll
    for (u32 s = 0; s < kEach; ++s) {
      held_[s] = T{};
      if (left >= kDepth || k_ + k_step(s) < left) held_[s] = *at_[s];
      at_[s] += kDepth * k_stride_;
    }
  }
  WICK_DEVICE void store(Sum* shared) const {
#pragma unroll
    for (u32 s = 0; s < kEach; ++s) {
      shared[(k_ + k_step(s)) * kPitch + row_ + row_step(s)] = widen(held_[s]);
    }
  }

 private:
  static constexpr u32 kEach = kRows * kDepth / kLoopItems;
  WICK_DEVICE u32 row_step(u32 s) const { return along_k_ ? s % (kRows / 32) * 32 : 0; }
  WICK_DEVICE u32 k_step(u32 s) const {
    return along_k_ ? s / (kRows / 32) * 8 : s * (kLoopItems / kRows);
  }

  const T* at_[kEach];
  T held_[kEach];
  i64 k_stride_;
  u32 row_, k_;
  bool along_k_;
};

/// Fused multiply-adds, in the order of k: f32, f64 and integer sums have the CPU's bits.
///
/// A team has a quarter of the tile's rows and half of its columns; a lane has blocks of 4 by 4.
template <class A, class B, u32 kTile, u32 kDepth>
class PlainLoop {
 public:
  static constexpr u32 kM = kTile, kN = kTile;
  using StageA = PlainStage<A, kM, kDepth>;
  using StageB = PlainStage<B, kN, kDepth>;
  using Sum = typename StageA::Sum;
  static constexpr u32 kSharedWords = 2 * (StageA::kElems + StageB::kElems) * sizeof(Sum) / 4;

  WICK_DEVICE void run(const TileRows<A>& a, const TileRows<B>& b, u32 k, u32* shared_words) {
    Sum* const shared = reinterpret_cast<Sum*>(shared_words);
    StageA stage_a(a);
    StageB stage_b(b);
    const u32 slabs = (k + kDepth - 1) / kDepth;
    if (slabs == 0) return;
    stage_a.load(k);
    stage_b.load(k);
    stage_a.store(shared);
    stage_b.store(shared + StageA::kElems);
    sync();
    for (u32 slab = 0; slab < slabs; ++slab) {
      Sum* const now = shared + slab % 2 * kSlabElems;
      Sum* const next = shared + (slab + 1) % 2 * kSlabElems;
      const bool more = slab + 1 < slabs;
      if (more) {
        const u32 left = k - (slab + 1) * kDepth;
        stage_a.load(left);
        stage_b.load(left);
      }
      multiply(now, now + StageA::kElems);
      if (more) {
        stage_a.store(next);
        stage_b.store(next + StageA::kElems);
      }
      sync();
    }
  }

  template <class Visit>
  WICK_DEVICE void each(Visit&& visit) const {
#pragma unroll
    for (u32 i = 0; i < kBlocks * 4; ++i) {
#pragma unroll
      for (u32 j = 0; j < kBlocks; ++j) {
        visit(first_row() + i / 4 * 16 + i % 4, first_column() + j * 32, &sums_[i][4 * j]);
      }
    }
  }

 private:
  static constexpr u32 kSlabElems = StageA::kElems + StageB::kElems;
  static constexpr u32 kBlocks = kTile / 64;
  WICK_DEVICE static u32 first_row() { return team() / 2 * (kM / 4) + lane() / 8 * 4; }
  WICK_DEVICE static u32 first_column() { return team() % 2 * (kN / 2) + lane() % 8 * 4; }

  WICK_DEVICE void multiply(const Sum* a, const Sum* b) {
#pragma unroll 4  // more takes registers
    for (u32 p = 0; p < kDepth; ++p) {
      Four<Sum> x[kBlocks], y[kBlocks];
#pragma unroll
      for (u32 i = 0; i < kBlocks; ++i) {
        x[i] = *reinterpret_cast<const Four<Sum>*>(a + p * StageA::kPitch + first_row() + i * 16);
        y[i] =
            *reinterpret_cast<const Four<Sum>*>(b + p * StageB::kPitch + first_column() + i * 32);
      }
#pragma unroll
      for (u32 i = 0; i < kBlocks * 4; ++i) {
#pragma unroll
        for (u32 j = 0; j < kBlocks * 4; ++j) {
          sums_[i][j] = multiply_add(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sums_[i][j]);
        }
      }
    }
  }

  Sum sums_[kBlocks * 4][kBlocks * 4] = {};
};

// ---- What is done with sums.

/// The bits of a sum as OutFormat says.
WICK_DEVICE u32 encode(u32 format, float x) {
  if (format == kStoreF32) return f32_bits(x);
  return format == kStoreF16 ? from_f32<f16>(x).bits : from_f32<bf16>(x).bits;
}
/// Stores it as one element.
WICK_DEVICE void store_as(void* out, u32 format, i64 at, float x) {
  const u32 bits = encode(format, x);
  if (format == kStoreF32) {
    static_cast<u32*>(out)[at] = bits;
  } else {
    static_cast<u16*>(out)[at] = static_cast<u16>(bits);
  }
}
/// Four neighbours at once.
WICK_DEVICE void store_four_as(void* out, u32 format, const float (&x)[4]) {
  struct alignas(8) Words {
    u32 w[2];
  };
  if (format == kStoreF32) {
    *static_cast<Pack<float, 4>*>(out) = Pack<float, 4>::of(x);
  } else {
    Words words;
#pragma unroll
    for (u32 i = 0; i < 2; ++i) {
      words.w[i] = format == kStoreF16 ? narrow_two<f16>(x[2 * i], x[2 * i + 1])
                                       : narrow_two<bf16>(x[2 * i], x[2 * i + 1]);
    }
    *static_cast<Words*>(out) = words;
  }
}

/// Stores a tile's sums of floats: scaled, with the residual, in the format asked for.
template <class Loop>
WICK_DEVICE void store_floats(const Loop& loop, void* out, const Product& p, const i64 (&start)[4],
                              const TilePlace& place) {
  const u32 first_row = place.row * Loop::kM, first_column = place.column * Loop::kN;
  const u32 rows = p.m - first_row, columns = p.n - first_column;
  const u32 shift = p.format == kStoreF32 ? 2 : 1;
  char* const to = static_cast<char*>(out) +
                   ((start[0] + first_row * p.out_row + first_column * p.out_col) << shift);
  const float* const residual =
      p.residual + start[3] + first_row * p.residual_row + first_column * p.residual_col;
  const float* const scales = p.scale + u64{place.matrix} * p.m + first_row;
  if (p.fours != 0) {
    loop.each([&](u32 row, u32 column, const float* sums) {
      if (row >= rows || column >= columns) return;
      const float scale = p.scale != nullptr ? scales[row] : 1.0f;
      float x[4];
#pragma unroll
      for (u32 j = 0; j < 4; ++j) x[j] = sums[j] * scale;
      if (p.residual != nullptr) {
        const Four<float> added =
            *reinterpret_cast<const Four<float>*>(residual + row * p.residual_row + column);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) x[j] = x[j] + added.v[j];
      }
      store_four_as(to + (row * p.out_row << shift) + (column << shift), p.format, x);
    });
  } else {
    loop.each([&](u32 row, u32 column, const float* sums) {
      if (row >= rows) return;
      const float scale = p.scale != nullptr ? scales[row] : 1.0f;
      float x[4] = {sums[0], sums[1], sums[2], sums[3]};
#pragma unroll 1  // for the code's size
      for (u32 j = 0; j < 4 && column < columns; ++j, ++column) {
        float y = x[0] * scale;
        if (p.residual != nullptr) {
          y = y + residual[row * p.residual_row + column * p.residual_col];
        }
        store_as(to, p.format, row * p.out_row + column * p.out_col, y);
        x[0] = x[1];
        x[1] = x[2];
        x[2] = x[3];
      }
    });
  }
}

/// Stores a tile's sums in T.
template <class T, class Loop>
WICK_DEVICE void store_plainly(const Loop& loop, void* out, const Product& p, const i64 (&start)[4],
                               const TilePlace& place) {
  loop.each([&](u32 row, u32 column, const typename Loop::Sum* sums) {
    row += place.row * Loop::kM;
    column += place.column * Loop::kN;
    if (row >= p.m) return;
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      if (column + j >= p.n) break;
      T& to = static_cast<T*>(out)[start[0] + row * p.out_row + (column + j) * p.out_col];
      if constexpr (kSame<T, f8e4m3> || kSame<T, double>) {
        to = narrow<T>(sums[j]);
      } else {
        to = static_cast<T>(sums[j]);
      }
    }
  });
}

/// Stores a tile's sums; T is what a's elements are stored as.
template <class T, class Loop>
WICK_DEVICE void store_tile(const Loop& loop, void* out, const Product& p, const i64 (&start)[4],
                            const TilePlace& place) {
  if constexpr (kSame<T, float> || kSame<T, f16> || kSame<T, bf16>) {
    store_floats(loop, out, p, start, place);
  } else {
    store_plainly<T>(loop, out, p, start, place);
  }
}

/// A kernel's work: the loop for its tile, then the stores. T: how a's elements are stored.
template <class T, class A, class B, class Loop, class Shared>
WICK_DEVICE void multiply_tile(Loop& loop, void* out, const A* a, const B* b, const Product& p,
                               Shared* shared) {
  TilePlace place(group(), (p.m + Loop::kM - 1) / Loop::kM, (p.n + Loop::kN - 1) / Loop::kN);
  place.matrix += p.first;
  i64 start[4];
  p.batch.locate(place.matrix, start);
  const u32 row = place.row * Loop::kM, column = place.column * Loop::kN;
  loop.run(TileRows<A>{a + start[1] + row * p.a_row, p.a_row, p.a_k, p.m - row},
           TileRows<B>{b + start[2] + column * p.b_row, p.b_row, p.b_k, p.n - column}, p.k, shared);
  store_tile<T>(loop, out, p, start, place);
}

}  // namespace wick::gpu
