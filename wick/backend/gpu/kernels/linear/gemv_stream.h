#pragma once

// Gemv by weights of floats that stream through a thread block: the body of the kernels of
// gemv_stream.gpu and gemv_route.gpu. The former says what it computes.

#include "wick/backend/gpu/kernels/linear/row_input.h"
#include "wick/backend/gpu/kernels/linear/shared_x.h"

namespace wick::gpu {

inline constexpr u32 kMostStreamWarps = kStreamThreads / kWarp;
/// Rows whose sums are combined at once.
template <u32 kX>
inline constexpr u32 kSpan = 64 / kX;

extern WICK_SHARED Bytes16 dynamic_shared[];

/// Iterates over the rows of a thread block: a lane has one vector of each of kChunk rows at a
/// time.
template <u32 kChunk>
struct Stream {
  const Bytes16* weights;
  u32 pitch, packs;  // pitch: vectors from one row to the next; packs: vectors of a row
  u32 row, last;     // the rows left: [row, last)
  u32 pack;          // the lane's vector in the row

  /// The lane's vector of row `of` of the chunk; zeros if it doesn't exist.
  WICK_DEVICE Bytes16 load(u32 of) const {
    if (row + of >= last || pack >= packs) return {};
    return load_streamed(weights + ((row + of) * pitch + pack));
  }
  WICK_DEVICE void next() {
    pack += block_threads();
    if (pack - thread_index() >= packs) {
      pack = thread_index();
      row += kChunk;
    }
  }
};

/// One step of warp_sum for kCount rows. Half of the rows stay in lanes whose index has the bit,
/// the other half in the other lanes.
template <u32 kBit, u32 kCount>
WICK_DEVICE void halve(float* v) {
  const bool upper = (lane() & kBit) != 0;
#pragma unroll
  for (u32 i = 0; i < kCount / 2; ++i) {
    const float mine = upper ? v[i + kCount / 2] : v[i], other = upper ? v[i] : v[i + kCount / 2];
    v[i] = mine + shuffle_xor<kBit>(other);
  }
}
/// The sums of eight or four rows over the warp, in warp_sum's order. Each sum ends in kWarp /
/// kChunk neighbouring lanes, that of the first row in the first ones.
template <u32 kChunk>
WICK_DEVICE float warp_sums(float (&v)[kChunk]) {
  halve<16, kChunk>(v);
  halve<8, kChunk / 2>(v);
  float sum = v[0];
  if constexpr (kChunk == 8) {
    halve<4, 2>(v);
    sum = v[0];
  } else {
    static_assert(kChunk == 4);
    sum = sum + shuffle_xor<4>(sum);
  }
  sum = sum + shuffle_xor<2>(sum);
  return sum + shuffle_xor<1>(sum);
}

/// x_rows: the rows of x, at most kX. b is the weights, whose rows are whole vectors, padded with
/// zeros behind k. `ahead`: bytes of a thread block's rows, a multiple of 16, that are prefetched
/// while earlier kernels run. input: the single row, if it is the rms_norm of a row; otherwise
/// input.x is null.
template <class W, u32 kX, class Rows>
WICK_DEVICE void gemv_stream(void* out, const void* x, const Bytes16* weights, const Gemm& p,
                             const Rows& x_rows, u32 x_format, u32 ahead, const RowInput& input) {
  using X = SharedX<W, kX>;
  // kChunk: rows of which a lane holds a vector each. kLanes: lanes that end with the same sum.
  constexpr u32 kPack = X::kPack, kChunk = kX * kPack > 32 ? 4 : 8, kLanes = kWarp / kChunk;
  WICK_SHARED float sums_of_warps[2][kX][kMostStreamWarps][kSpan<kX>];
  const u32 first = static_cast<u32>(u64{p.n} * block_index() / grid_blocks());
  const u32 last = static_cast<u32>(u64{p.n} * (block_index() + 1) / grid_blocks());
  const u32 pitch = static_cast<u32>(p.b_row) / kPack;
  Stream<kChunk> stream = {weights, pitch, (p.k + kPack - 1) / kPack, first, last, thread_index()};
  const u32 steps = (stream.packs + block_threads() - 1) / block_threads();
  Bytes16 held[kChunk];
#pragma unroll
  for (u32 r = 0; r < kChunk; ++r) held[r] = stream.load(r);
  if (thread_index() == 0) {  // prefetches what follows the vectors that are being loaded
    const u64 all = u64{last - first} * pitch * 16, skip = steps == 1 ? kChunk * pitch * 16 : 0;
    const u64 left = all > skip ? all - skip : 0;
    const u32 now = left < ahead ? static_cast<u32>(left) : ahead;
    if (now != 0) {
      prefetch_bytes(reinterpret_cast<const char*>(weights + u64{first} * pitch) + skip, now);
    }
  }
  const X shared_x(dynamic_shared, steps * block_threads());
  const RowMemory row_memory(input, dynamic_shared + steps * block_threads() * X::kPlanes);
  const bool makes_row = kMakesRows && kX == 1 && input.x != nullptr;
  if (makes_row) RowMemory::prefetch_weights(input);
  pdl_launch_dependents();
  pdl_wait();
  if (makes_row) {
    const float factor = row_memory.load(input, 0);
    shared_x.fill_by(0, [&](u32 e, float(&v)[4]) { row_memory.get(input, e, factor, v); });
  } else {
    shared_x.fill(x, x_format, p, x_rows, 0);
  }
  sync();

  u32 span = first, buffer = 0;
  for (u32 row = first; row < last; row += kChunk) {
    float sums[kX][kChunk] = {};
    for (u32 s = 0; s < steps; ++s) {
      stream.next();
#pragma unroll
      for (u32 four = 0; four < kPack / 4; ++four) {
        float v[kX][4];
#pragma unroll
        for (u32 i = 0; i < kX; ++i)
          shared_x.get(i, s * block_threads() + thread_index(), four, v[i]);
#pragma unroll
        for (u32 r = 0; r < kChunk; ++r) {
#pragma unroll
          for (u32 e = 0; e < 4; ++e) {
            const float w = weight_at<W>(held[r], 4 * four + e);
#pragma unroll
            for (u32 i = 0; i < kX; ++i) sums[i][r] = fma(v[i][e], w, sums[i][r]);
          }
          if (four + 1 == kPack / 4) held[r] = stream.load(r);
        }
      }
    }
#pragma unroll
    for (u32 i = 0; i < kX; ++i) {
      const float sum = warp_sums(sums[i]);
      if (lane() % kLanes == 0) {
        sums_of_warps[buffer][i][warp_index()][row - span + lane() / kLanes] = sum;
      }
    }
    const u32 done = row + kChunk < last ? row + kChunk : last;
    if (done - span < kSpan<kX> && done < last) continue;
    sync();
    const u32 rows = done - span;
    for (u32 at = thread_index(); at < rows * kX; at += block_threads()) {
      const u32 i = at / rows, r = at - i * rows;
      if (!x_rows.has(i)) break;
      float y = sums_of_warps[buffer][i][0][r];
      for (u32 t = 1; t < block_threads() / kWarp; ++t) y = y + sums_of_warps[buffer][i][t][r];
      const u32 j = span + r;
      const u32 to = x_rows.place(i);
      if (p.residual != nullptr) y = y + p.residual[to * p.residual_row + j * p.residual_col];
      store_as(out, p.format, to * p.out_row + j * p.out_col, y);
    }
    span = done;
    buffer ^= 1;
  }
}

}  // namespace wick::gpu
