#pragma once

// Gemv of one column: the body of the kernels of gemv.gpu and gemv_experts.gpu.

#include "wick/backend/gpu/kernels/device/dot.h"
#include "wick/backend/gpu/kernels/linear/quantized.h"
#include "wick/backend/gpu/kernels/linear/row_input.h"

namespace wick::gpu {

/// block_dot() of four-bit weights by dot products of unsigned with signed bytes, which take the
/// high nibbles where they are: 16 times their sum is shifted once.
template <class Q>
constexpr bool kDotsInPlace = WICK_DOT4_MIXED && (kSame<Q, Q4_0> || kSame<Q, Q4_1>);
template <class Q>
WICK_DEVICE i32 dot_in_place(const Bytes16& nibbles, const Bytes16& low, const Bytes16& high,
                             i32 sum) {
  i32 dot = 0;
#if WICK_DOT4_MIXED
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    dot = dot4_mixed(nibbles.w[i] & 0xf0f0f0f0u, static_cast<i32>(high.w[i]), dot);
  }
  dot >>= 4;
  if constexpr (kSame<Q, Q4_0>) dot -= 8 * sum;
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    dot = dot4(static_cast<i32>(nibbles.w[i] & 0x0f0f0f0fu), static_cast<i32>(low.w[i]), dot);
  }
#endif
  return dot;
}

/// Whether gemv on AMD multiplies the format's quants as nibbles: dot_nibbles().
template <class Q>
constexpr bool kDotsOfNibbles = (WICK_DOT8_MIXED || WICK_DOT8_UNSIGNED) &&
                                (kSame<Q, Q4_0> || kSame<Q, Q4_1> || kSame<Q, Q4_K>);
WICK_DEVICE Bytes16 nibbles_of(const Bytes16& half) {
#if WICK_DOT8_MIXED || WICK_DOT8_UNSIGNED
  return to_nibbles(half);
#else
  return half;
#endif
}
WICK_DEVICE i32 nibble_dot(const Bytes16& nibbles, const Bytes16& low, const Bytes16& high) {
#if WICK_DOT8_MIXED || WICK_DOT8_UNSIGNED
  return dot_nibbles(nibbles, low, high);
#else
  return 0;
#endif
}

/// Shared memory for `room` chunks of kColumns columns: their values, their scales, and the sums of
/// the thread block's units. kLoadedAlone: load_alone() loads them, otherwise load().
template <u32 kColumns, bool kLoadedAlone = false>
struct Staged {
  Bytes16* q;
  ActivationScale* scales;
  float* parts;
  u32 chunks;

  WICK_DEVICE Staged(Bytes16* shared, u32 room) : q(shared), chunks(room) {
    scales = reinterpret_cast<ActivationScale*>(q + kColumns * 2 * kChunkBlocks * room);
    parts = reinterpret_cast<float*>(scales + kColumns * kChunkBlocks * room);
  }
  /// Loads chunks [first, first + count) of the columns from `first_column` on, which have `all`
  /// chunks each. The last column is repeated past the end.
  WICK_DEVICE void load(const Bytes16* from_q, const ActivationScale* from_scales, u32 first,
                        u32 count, u32 all, u32 first_column, u32 columns) const {
#pragma unroll
    for (u32 c = 0; c < kColumns; ++c) {
      const u32 column = first_column + c;
      const u64 from = u64{column < columns ? column : columns - 1} * all + first;
      const Bytes16* s = reinterpret_cast<const Bytes16*>(from_scales) + from * 4;
      for (u32 i = thread_index(); i < count * 16; i += block_threads()) {
        q[c * chunks * 16 + i] = from_q[from * 16 + i];
      }
      for (u32 i = thread_index(); i < count * 4; i += block_threads()) {
        reinterpret_cast<Bytes16*>(scales)[c * chunks * 4 + i] = s[i];
      }
    }
  }
  /// load() of all `chunks` chunks of one column for gemv on AMD: `scales` follows `q`. For q4_1
  /// the sums of blocks become the bits of d · sum. Formats with kDotsOfNibbles get nibbles.
  template <class Q>
  WICK_DEVICE void load_alone(const Bytes16* from_q, const ActivationScale* from_scales) const {
    const Bytes16* const s = reinterpret_cast<const Bytes16*>(from_scales);
    const u32 values = chunks * 16, all = chunks * 20;
    const auto copy = [&](u32 i) WICK_INLINE {
      Bytes16 x = i < values ? from_q[i] : s[i - values];
      if (kDotsOfNibbles<Q> && i < values) x = nibbles_of(x);
      if (kSame<Q, Q4_1> && i >= values) {
#pragma unroll
        for (u32 j = 0; j < 4; j += 2) {
          x.w[j + 1] =
              f32_bits(bits_f32(x.w[j]) * static_cast<float>(static_cast<i32>(x.w[j + 1])));
        }
      }
      q[i] = x;
    };
    // Mostly there is one step, which doesn't pay for a loop's set-up.
    u32 i = thread_index();
    if (i >= all) return;
    copy(i);
#pragma unroll 1
    for (i += block_threads(); i < all; i += block_threads()) copy(i);
  }
  /// Index in `parts` of the sums of a unit's column. On AMD odd units, which the upper half of a
  /// warp takes, are swapped to avoid bank conflicts with even ones.
  WICK_DEVICE static u32 place(u32 unit, u32 column) {
    return (unit * kColumns + (WICK_AMD && kColumns > 1 ? column ^ unit % 2 : column)) * kUnitRows;
  }
  /// Multiplies a row of a unit with the columns' chunk at index `chunk`, and stores the sums at
  /// index `unit` of `parts`. count: blocks that aren't padding, uniform in the warp. Padding adds
  /// 0 to sums that aren't −0.
  template <class Q>
  WICK_DEVICE void multiply(const UnitRow<Q>& w, u32 chunk, u32 unit, u32 row,
                            u32 count = kChunkBlocks) const {
    float p[kColumns] = {};
    if constexpr (Q::kShared) {
      add_superblock<Q>(p, w, chunk);
    } else if (count == kChunkBlocks) {
#pragma unroll
      for (u32 j = 0; j < kChunkBlocks; ++j) add_block(p, w, chunk, j);
    } else {
#pragma unroll
      for (u32 j = 0; j < kChunkBlocks - 1; ++j) {
        if (j >= count) break;
        add_block(p, w, chunk, j);
      }
    }
#pragma unroll
    for (u32 c = 0; c < kColumns; ++c) parts[place(unit, c) + row] = p[c];
  }
  /// Block j of a chunk. Not for superblocks that share activation scales.
  template <class Q>
  WICK_DEVICE void add_block(float (&p)[kColumns], const UnitRow<Q>& w, u32 chunk, u32 j) const {
#pragma unroll
    for (u32 c = 0; c < kColumns; ++c) {
      const u32 at = (c * chunks + chunk) * kChunkBlocks + j;
      const ActivationScale s = scales[at];
      const Bytes16 low = load_whole(q + 2 * at), high = load_whole(q + 2 * at + 1);
      i32 dot;
      if constexpr (kLoadedAlone && kDotsOfNibbles<Q>) {
        dot = nibble_dot(w.w[j], low, high) - static_cast<i32>(Q::kOffset) * s.sum;
      } else {
        dot = kDotsInPlace<Q> ? dot_in_place<Q>(w.w[j], low, high, s.sum)
                              : block_dot<Q>(w, j, low, high, s.sum);
      }
      if constexpr (Q::kMinimum) {
        const float product = kLoadedAlone && kSame<Q, Q4_1> ? bits_f32(static_cast<u32>(s.sum))
                                                             : s.d * static_cast<float>(s.sum);
        p[c] = fma(w.scales.minimum(j), product, p[c]);
      }
      p[c] = fma(w.scales.scale(j) * s.d, static_cast<float>(dot), p[c]);
    }
  }
  /// A row of a superblock: the four blocks that share an activation scale, then the other four.
  template <class Q>
  WICK_DEVICE void add_superblock(float (&p)[kColumns], const UnitRow<Q>& w, u32 chunk) const {
    if constexpr (kColumns == 1 || WICK_AMD) {
      add_shared<Q>(p, w, chunk, 0, 0);
      add_shared<Q>(p, w, chunk, kSharedBlocks, kSharedBlocks);
    } else {  // one loop body: otherwise loads of the second half are hoisted and spill registers
      UnitRow<Q> u = w;
#pragma unroll 1
      for (u32 first = 0; first < kChunkBlocks; first += kSharedBlocks) {
        add_shared<Q>(p, u, chunk, first, 0);
#pragma unroll
        for (u32 i = 0; i < Q::kQuants / 2; ++i) u.w[i] = u.w[Q::kQuants / 2 + i];
        u.scales.move_up();
      }
    }
  }
  /// Adds the chunk's four blocks from `first` on; `from` is the index of the first one in the
  /// row's registers.
  template <class Q>
  WICK_DEVICE void add_shared(float (&p)[kColumns], const UnitRow<Q>& w, u32 chunk, u32 first,
                              u32 from) const {
    constexpr bool kAlone = kColumns == 1;
    const ActivationScale* const scale = scales + chunk * kChunkBlocks + first;
    float minima = 0.0f;
    if constexpr (kAlone) {  // a single column's time is the latency of its dependent steps
      minima = minima_of(w.scales, scale, from);
      forget(minima);
    }
    i32 products[kColumns] = {};
    float t[kColumns];
#pragma unroll
    for (u32 j = 0; j < kSharedBlocks; ++j) {
      i32 factor = 1;
      if constexpr (Q::kFactor) factor = static_cast<i32>(w.scales.factor(from + j));
#pragma unroll
      for (u32 c = 0; c < kColumns; ++c) {
        const u32 at = (c * chunks + chunk) * kChunkBlocks + first + j;
        const Bytes16 low = load_whole(q + 2 * at), high = load_whole(q + 2 * at + 1);
        i32 dot;
        if constexpr (kLoadedAlone && kDotsOfNibbles<Q>) {
          dot = nibble_dot(w.w[from + j], low, high);
        } else if constexpr (kAlone && Q::kFactor) {
          dot = half_dot<Q, 0>(w, from + j, low) + half_dot<Q, 1>(w, from + j, high);
        } else {
          dot = block_dot<Q>(w, from + j, low, high, 0);
        }
        products[c] += Q::kFactor ? multiply_small(factor, dot) : dot;
        if constexpr (!kAlone) forget(products[c]);  // limits registers
        if (j + 1 == kSharedBlocks / 2 && Q::kSums == 2) {
          t[c] = w.scales.d() * static_cast<float>(products[c]);
          products[c] = 0;
        }
      }
    }
#pragma unroll
    for (u32 c = 0; c < kColumns; ++c) {
      const ActivationScale* const s = scale + c * chunks * kChunkBlocks;
      if constexpr (!kAlone) minima = minima_of(w.scales, s, from);
      const float sum = static_cast<float>(products[c]), d = w.scales.d();
      t[c] = Q::kSums == 2 ? fma(d, sum, t[c]) : d * sum;
      p[c] = add_half(p[c], t[c], w.scales.dmin(), minima, s[0].d);
    }
  }
  /// Σ mn · Σq of four blocks: the fast variant for one column, the one with few registers for more
  /// columns.
  template <class Q>
  WICK_DEVICE static float minima_of(const UnitScales<Q>& w, const ActivationScale* s, u32 from) {
    if constexpr (Q::kParts) {
      i32 sum = 0;
#pragma unroll
      for (u32 j = 0; j < kSharedBlocks; ++j) {
        const u32 sums = static_cast<u32>(s[j].sum);  // of the block's halves
        sum = dot_pair(sums, w.pair_offsets((from + j) / 2 * 2), (from + j) % 2, sum);
      }
      return static_cast<float>(sum);
    } else if constexpr (kColumns == 1) {
      const u32 offsets = w.offsets(from / kSharedBlocks);
      float sum = 0.0f;
#pragma unroll
      for (u32 j = 0; j < kSharedBlocks; ++j) {
        sum = fma(byte_float(offsets, j), static_cast<float>(s[j].sum), sum);
      }
      return sum;
    } else {
      i32 sum = 0;
#pragma unroll
      for (u32 j = 0; j < kSharedBlocks; ++j) {
        sum += multiply_small(static_cast<i32>(w.offset(from + j)), s[j].sum);
      }
      return static_cast<float>(sum);
    }
  }
};

/// Loads the first `count` blocks of a row of a unit, and their scales; `count` is uniform in the
/// warp. The quants of the other blocks stay undefined.
template <class Q>
WICK_DEVICE void load_blocks(UnitRow<Q>& w, const u8* unit, u32 row, u32 count) {
  if (Q::kSuper || count == kChunkBlocks) return w.load(unit, row);
  const Bytes16* from = reinterpret_cast<const Bytes16*>(unit) + row;
  const auto load = [&](u32 piece)
                        WICK_INLINE { w.w[piece] = load_streamed(from + piece * kUnitRows); };
#pragma unroll
  for (u32 j = 0; j < kChunkBlocks - 1; ++j) {
    if (j >= count) break;
    load(Q::low_piece(j));
    if constexpr (Q::kBits == 8) load(Q::low_piece(j) + 1);
    if constexpr (Q::kFifth) {
      if (j % 4 == 0) load(Q::high_piece(j));
    }
  }
  w.scales.load(unit, row);
}

/// One column, `column` of the result, all of whose chunks fit shared memory. The last chunk may be
/// padded with blocks whose scales are zero. input_row: the row of `input`; if there is no input, q
/// and scales are the column.
template <class Q>
WICK_DEVICE void gemv(const LinearOut& out, u32 column, const u8* weights, const Bytes16* q,
                      const ActivationScale* scales, u32 chunks, u32 rows, u32 row_groups,
                      u32 blocks, const RowInput& input, u32 input_row, const GemvAhead& ahead,
                      Bytes16* shared) {
  const u32 units = row_groups * chunks, halves = block_threads() / kUnitRows;
  u32 row = thread_index() % kUnitRows;
  const u32 half = thread_index() / kUnitRows;
  // On AMD unit u is row group u % row_groups of chunk u / row_groups, otherwise row group u /
  // chunks of chunk u % chunks. In memory, the chunks of a row group follow one another.
  constexpr bool kByChunk = WICK_AMD;
  const u32 log = kByChunk ? row_groups - 1 : 0;
  const auto unit_at = [&](u32 unit) WICK_INLINE {
    const u32 at = kByChunk ? (unit & log) * chunks + (unit >> log) : unit;
    return weights + (u64{block_index()} * units + at) * kUnitBytes<Q>;
  };
  // The last thread block may have fewer row groups.
  const u32 groups = (rows + kUnitRows - 1) / kUnitRows - block_index() * row_groups;
  const u32 held = kByChunk || groups >= row_groups ? units : groups * chunks;
  const u8* next = unit_at(half);
  // The blocks of a warp's unit that aren't padding. The first lane has the lowest chunk.
  const auto blocks_of = [&](u32 unit) WICK_INLINE -> u32 {
    if constexpr (Q::kSuper) return kChunkBlocks;  // rows are whole chunks
#if WICK_AMD
    const u32 left = blocks - (of_first_lane(unit) >> log) * kChunkBlocks;
    return left < kChunkBlocks ? left : kChunkBlocks;
#else
    return kChunkBlocks;
#endif
  };
  UnitRow<Q> w;
  if (half < held) load_blocks(w, next, row, blocks_of(half));
  if (!WICK_AMD && thread_index() == 0) {
    const u32 left = held > halves ? (held - halves) * kUnitBytes<Q> : 0;
    const u32 own = left < ahead.own ? left : ahead.own;
    if (own != 0) prefetch_bytes(unit_at(halves), own);
    if (ahead.next != nullptr) {
      prefetch_bytes(static_cast<const u8*>(ahead.next) + block_index() * ahead.next_step,
                     ahead.next_bytes);
    }
  }
  pdl_launch_dependents();
  pdl_wait();
  // load_alone() keeps the activations in another form than quantize_row().
  constexpr bool kLoadsAlone = WICK_AMD && !kMakesRows;
  const Staged<1, kLoadsAlone> staged(shared, chunks);
  if (kMakesRows && input.x != nullptr) {
    const RowMemory memory(input, staged.parts + (units + row_groups) * kUnitRows);
    quantize_row<Q::kShared, Q::kShared && Q::kParts>(memory, input, input_row, chunks, staged.q,
                                                      staged.scales);
  } else if constexpr (kLoadsAlone) {
    staged.template load_alone<Q>(q, scales);
  } else {
    staged.load(q, scales, 0, chunks, chunks, 0, 1);
  }
  // Residuals are kept in shared memory, because a register for each would be one too many.
  const u32 first_row = block_index() * row_groups * kUnitRows;
  float* const residuals = staged.parts + units * kUnitRows;
  // The rows of this thread, which on AMD has at most one.
  const auto for_each_row = [&](auto&& act) WICK_INLINE {
#pragma unroll 1
    for (u32 at = thread_index(); at < row_groups * kUnitRows; at += block_threads()) {
      if (first_row + at < rows) act(at);
      if constexpr (WICK_AMD) break;
    }
  };
  for_each_row([&](u32 at)
                   WICK_INLINE { residuals[at] = residual_at(out, column, first_row + at); });
  sync();

  u32 chunk = half;  // NVIDIA: the chunk of the unit in its row group
  for (u32 unit = half; unit < held; unit += halves, chunk += halves) {
    if constexpr (kByChunk) {
      chunk = unit >> log;
      // On AMD `row` is found again when needed: one more register would cost occupancy.
      u32 thread = thread_index();
      forget(thread);
      row = thread % kUnitRows;
    } else {
      while (chunk >= chunks) chunk -= chunks;
    }
    staged.multiply(w, chunk, unit, row, blocks_of(unit));
    if constexpr (kByChunk) {  // found when needed: mostly there is one step
      next = unit_at(unit + halves);
    } else {
      next += halves * kUnitBytes<Q>;
    }
    if (unit + halves < held) load_blocks(w, next, row, blocks_of(unit + halves));
  }
  sync();

  for_each_row([&](u32 at) WICK_INLINE {
    if constexpr (WICK_AMD) forget(at);
    const u32 group = at / kUnitRows;
    const float* part =
        staged.parts + (kByChunk ? group : group * chunks) * kUnitRows + at % kUnitRows;
    const u32 next_part = (kByChunk ? row_groups : 1) * kUnitRows;
    float y = 0;
#pragma unroll 16
    for (u32 c = 0; c < chunks; ++c) y = y + part[c * next_part];
    store_result(out, column, first_row + at, y, residuals[at]);
  });
}

}  // namespace wick::gpu
