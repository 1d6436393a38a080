#pragma once

// Parts that the kernels of attention's gradients share: which rows and keys a
// thread block processes, and the arithmetic between the matrix products. Only the loops that load
// tiles and multiply differ.
//
// A thread block holds a tile of one side and streams the tiles of the other side. The sums of the
// rows and dq hold rows (q and g) and stream keys (k and v); dk and dv hold keys and stream rows.
// The products of a tile are [held][streamed] in the layout of Lanes (flash_rows.h): Lanes::row(i)
// counts held rows or keys, Lanes::key(e) streamed ones. Besides, Lanes has kSpan, the held rows or
// keys of a warp, and of_row(e, i), the element of the column of e in row i; e is of row 0.

#include "wick/backend/gpu/kernels/attention/attention_bias.h"
#include "wick/backend/gpu/kernels/attention/flash_rows.h"
#include "wick/backend/gpu/kernels/attention/gradient_abi.h"

namespace wick::gpu {

enum GradientPass : u32 { kPassSums, kPassQueries, kPassKeys };

/// The query of a row of a key head, and its head.
struct RowPlace {
  u32 query, head;
  WICK_DEVICE RowPlace(const AttentionCall& c, u32 key_head, u32 row)
      : query(row / c.group), head(key_head * c.group + (row - row / c.group * c.group)) {}
};

/// The queries that see any of the keys [begin, end).
WICK_DEVICE KeyRange queries_seeing(const AttentionCall& c, i32 begin, i32 end) {
  const i32 shift = static_cast<i32>(c.keys) - static_cast<i32>(c.queries);
  KeyRange r = {0, static_cast<i32>(c.queries)};
  if (c.causal != 0) r.begin = larger(begin - shift, 0);
  if (c.window != 0) {
    r.end = smaller(end - 1 - shift + static_cast<i32>(c.window), r.end);
  }
  return r;
}

/// A power of two that brings numbers of at most 2 · limit below 2^15.
WICK_DEVICE float factor_for(float limit) {
  const i32 exponent = static_cast<i32>((f32_bits(limit) & 0x7fffffffu) >> 23);
  const i32 up = exponent == 255 ? 0 : smaller(larger(140 - exponent, -100), 100);
  return bits_f32(static_cast<u32>(127 + up) << 23);
}

/// The held side of a thread block and the arithmetic of one of its warps. kTile: rows or keys that
/// a tile has. Bias: NoBias, or ScoreBias for calls with a soft cap, a mask or slopes. Without
/// bias, scores are to base 2.
template <class T, GradientPass kPass, u32 kTile, class Lanes, class Bias, bool kSplits = true>
struct GradientWork {
  static constexpr bool kKeys = kPass == kPassKeys, kBiased = !kSame<Bias, NoBias>;
  /// Whether the gradients of scores need a factor: f16 has too few exponents.
  static constexpr bool kScales = kSplits && kSame<T, f16>;
  static constexpr u32 kRows = Lanes::kRows;
  static constexpr float kUnit = kBiased ? 1.0f : kLog2E;
  /// Weights are multiplied by this factor, which keeps both of their f16 terms in range.
  static constexpr float kWeightFactor = kScales ? 0x1p14f : 1.0f;
  static constexpr float kWeightInverse = kScales ? 0x1p-14f : 1.0f;

  const GradientCall& of;
  const AttentionCall& c;
  const Bias& bias;
  u32 key_head, batch, rows;
  u32 first;            // the first held row or key of the thread block
  u32 warp_row;         // the first of them that the warp computes
  KeyRange any;         // the streamed keys or rows
  RowSums* sums;        // of the key head's rows
  float factor = 1.0f;  // of the gradients of scores, if the thread block has one factor

  // Of the lane's held rows.
  KeyRange seen[kRows];
  float m[kRows], inverse[kRows], delta[kRows], by[kRows];

  WICK_DEVICE GradientWork(const GradientCall& call, const Bias& added, u32 first_of_warp)
      : of(call), c(call.call), bias(added), warp_row(first_of_warp) {}

  /// Finds what thread block `at` holds and streams. In a section of key heads, the tiles with most
  /// work come first.
  WICK_DEVICE void find(u32 at, const GradientGrid& grid, u32 held) {
    const u32 key_heads = c.heads / c.group, all = key_heads * c.batch, blocks = grid.blocks;
    const u32 before = at / (grid.section * blocks) * grid.section, left = all - before;
    const u32 wide = left < grid.section ? left : grid.section;
    at -= before * blocks;
    const u32 tile = at / wide, head = before + at - tile * wide;
    batch = head / key_heads;
    key_head = head - batch * key_heads;
    rows = c.queries * c.group;
    sums = of.sums + u64{batch * key_heads + key_head} * rows;
    if constexpr (kKeys) {
      first = tile * held;
      const i32 end = static_cast<i32>(first + held < c.keys ? first + held : c.keys);
      any = queries_seeing(c, static_cast<i32>(first), end);
      any = {any.begin * static_cast<i32>(c.group), any.end * static_cast<i32>(c.group)};
    } else {
      first = (blocks - 1 - tile) * held;
      const u32 last = first + held < rows ? first + held : rows;
      any = {keys_seen(c, c.keys, first / c.group).begin,
             keys_seen(c, c.keys, (last - 1) / c.group).end};
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) seen[i] = keys_seen(c, c.keys, row_of(i) / c.group);
    }
  }
  /// The lane's i-th held row; the last one of the key head if there are fewer.
  WICK_DEVICE u32 row_of(u32 i) const {
    const u32 row = first + warp_row + Lanes::row(i);
    return row < rows ? row : rows - 1;
  }
  /// Loads the sums of the lane's rows, and the factors of the gradients of their scores.
  WICK_DEVICE void load_sums() {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const RowSums x = sums[row_of(i)];
      by[i] = kScales ? factor_for(x.limit) : 1.0f;
      m[i] = x.largest, inverse[i] = x.inverse * kWeightFactor, delta[i] = x.delta;
    }
  }

  /// Finds one factor for the gradients of all scores of the thread block: that of the streamed row
  /// with the largest limit. most: a word of shared memory for each warp. All kThreads threads of
  /// the thread block call it.
  template <u32 kThreads>
  WICK_DEVICE void find_factor(u32* most) {
    u32 limit = 0;
    for (i32 row = any.begin + static_cast<i32>(thread_index()); row < any.end;
         row += static_cast<i32>(kThreads)) {
      const u32 bits = f32_bits(sums[row].limit);
      limit = bits > limit ? bits : limit;
    }
    limit = largest_of_warp(limit);
    if (lane() == 0) most[warp_index()] = limit;
    sync();
#pragma unroll
    for (u32 warp = 0; warp < kThreads / kWarp; ++warp) {
      limit = most[warp] > limit ? most[warp] : limit;
    }
    factor = factor_for(bits_f32(limit));
    sync();
  }

  // ---- Addresses

  /// Addresses of the elements of a streamed or held row: of q and g.
  struct QueryRow {
    const T *q, *g;
    WICK_DEVICE QueryRow(const GradientWork& w, u32 row) {
      const RowPlace at(w.c, w.key_head, row);
      q = static_cast<const T*>(w.c.q) + w.batch * w.c.q_batch + at.head * w.c.q_head +
          at.query * w.c.q_query;
      g = static_cast<const T*>(w.of.g) + w.batch * w.of.g_batch + at.head * w.of.g_head +
          at.query * w.of.g_query;
    }
  };
  WICK_DEVICE const T* key_at(u32 key) const {
    return static_cast<const T*>(c.k) + batch * c.k_batch + key_head * c.k_head + key * c.k_key;
  }
  WICK_DEVICE const T* value_at(u32 key) const {
    return static_cast<const T*>(c.v) + batch * c.v_batch + key_head * c.v_head + key * c.v_key;
  }

  // ---- Scores

  /// Shapes and biases the score of a dot product. bend: the derivative of the soft cap.
  WICK_DEVICE float biased(float dot, float& bend) const {
    float x = dot * c.scale;
    if (c.soft_cap > 0.0f) {
      const float t = tanh(x / c.soft_cap);
      bend = 1.0f - t * t;
      x = c.soft_cap * t;
    } else {
      bend = 1.0f;
    }
    return x;
  }
  /// Applies `biased` to all dot products of a lane, on AMD: a short loop that rotates the numbers.
  /// An unrolled one spills registers.
  template <u32 kCount>
  WICK_DEVICE void bias_all(float (&s)[kCount], float (&bend)[kCount]) const {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) s[e] = s[e] * c.scale, bend[e] = 1.0f;
    if (!(c.soft_cap > 0.0f)) return;
#pragma unroll 1
    for (u32 e = 0; e < kCount; ++e) {
      const float t = tanh(s[0] / c.soft_cap);
#pragma unroll
      for (u32 i = 1; i < kCount; ++i) s[i - 1] = s[i], bend[i - 1] = bend[i];
      s[kCount - 1] = c.soft_cap * t, bend[kCount - 1] = 1.0f - t * t;
    }
  }
  /// exp(score - largest). The difference is at most 0 but for rounding.
  WICK_DEVICE static float power(float score, float largest) {
    float x = score - largest;
    x = x > 0.0f ? 0.0f : x;  // a NaN stays
    return near_exp2(kBiased ? x * kLog2E : x);
  }
  WICK_DEVICE i32 own_key(u32 query) const {
    return static_cast<i32>(query + c.keys) - static_cast<i32>(c.queries);
  }

  /// Replaces the dot products of a tile of keys by scores; keys that a row doesn't see get -inf.
  template <u32 kCount>
  WICK_DEVICE void shape(i32 from, float (&s)[kCount], float (&bend)[kBiased ? kCount : 1]) const {
    const float units = c.scale * kUnit;
    if constexpr (kBiased && WICK_AMD) bias_all(s, bend);
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const bool whole = seen[i].begin <= from && seen[i].end >= from + static_cast<i32>(kTile);
      if constexpr (kBiased) {
        const RowPlace at(c, key_head, row_of(i));
        const RowBias terms(bias, batch, at.head, at.query);
        const i32 own = own_key(at.query);
#pragma unroll
        for (u32 e = 0; e < kCount; ++e) {
          if (Lanes::row_of(e) != i) continue;
          const i32 key = from + static_cast<i32>(Lanes::key(e));
          const float x = WICK_AMD ? s[e] : biased(s[e], bend[e]);
          const bool visible = key >= seen[i].begin && key < seen[i].end;
          s[e] = visible ? terms.add(x, key, own) : -detail::kInfF32;
        }
      } else {
#pragma unroll
        for (u32 e = 0; e < kCount; ++e) {
          if (Lanes::row_of(e) == i) s[e] = s[e] * units;
        }
        if (whole) continue;
#pragma unroll
        for (u32 e = 0; e < kCount; ++e) {
          if (Lanes::row_of(e) != i) continue;
          const i32 key = from + static_cast<i32>(Lanes::key(e));
          s[e] = key >= seen[i].begin && key < seen[i].end ? s[e] : -detail::kInfF32;
        }
      }
    }
  }

  // ---- The sums of the rows. Each lane has running sums over its own keys.

  struct Running {
    float m[kRows], l[kRows], products[kRows], limit[kRows];
    WICK_DEVICE Running() {
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) m[i] = -detail::kInfF32, l[i] = products[i] = limit[i] = 0.0f;
    }
  };
  /// Scales a lane's sums to a new largest score.
  WICK_DEVICE static float shrink(float& m, float largest) {
    const float before = m;
    m = largest;
    return largest == -detail::kInfF32 ? 0.0f : power(before, largest);
  }
  /// Adds a tile: s are scores, p the dot products of g and v.
  template <u32 kCount>
  WICK_DEVICE static void add_sums(Running& r, const float (&s)[kCount], const float (&p)[kCount]) {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      float largest = r.m[i];
#pragma unroll
      for (u32 e = 0; e < kCount; ++e) {
        if (Lanes::row_of(e) == i) largest = larger(s[e], largest);
      }
      const float by = shrink(r.m[i], largest);
      const float base = largest == -detail::kInfF32 ? 0.0f : largest;
      float l = 0.0f, products = 0.0f;
#pragma unroll
      for (u32 e = 0; e < kCount; ++e) {
        if (Lanes::row_of(e) != i) continue;
        const float x = power(s[e], base);
        l = l + x;
        products = fma(x, p[e], products);
        if constexpr (kScales) r.limit[i] = larger(abs(p[e]), r.limit[i]);
      }
      r.l[i] = fma(r.l[i], by, l);
      r.products[i] = fma(r.products[i], by, products);
    }
  }
  /// The sink of the lane's i-th row; -inf if it has none.
  WICK_DEVICE float sink_of_row(u32 i) const {
    if constexpr (kBiased) return sink_of(bias, RowPlace(c, key_head, row_of(i)).head);
    return -detail::kInfF32;
  }
  /// Combines the sums of the lanes that hold a row, adds the sink, and stores them.
  WICK_DEVICE void store_sums(const Running& r) const {
    const auto most = [](float a, float b) WICK_INLINE { return larger(a, b); };
    const auto sum = [](float a, float b) WICK_INLINE { return a + b; };
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      float own = r.m[i];
      float largest = Lanes::over_row(own, most);
      const float sink = sink_of_row(i);
      if constexpr (kBiased) largest = larger(sink, largest);
      const float by = shrink(own, largest);
      float l = Lanes::over_row(r.l[i] * by, sum);
      if constexpr (kBiased) l = l + (sink == -detail::kInfF32 ? 0.0f : power(sink, largest));
      const float products = Lanes::over_row(r.products[i] * by, sum);
      const float limit = Lanes::over_row(r.limit[i], most);
      const u32 row = first + warp_row + Lanes::row(i);
      if (row >= rows) continue;
      const bool blind = l == 0.0f;
      const float inverse_sum = blind ? 0.0f : 1.0f / l;
      sums[row] = {blind ? 0.0f : largest, inverse_sum, products * inverse_sum, limit};
    }
  }

  // ---- Weights, and gradients of scores

  /// Replaces the dot products of held rows and a tile of keys by weights.
  template <u32 kCount>
  WICK_DEVICE void weights_of_rows(i32 from, float (&s)[kCount],
                                   float (&bend)[kBiased ? kCount : 1]) const {
    shape(from, s, bend);
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      const u32 i = Lanes::row_of(e);
      s[e] = power(s[e], m[i]) * inverse[i];
    }
  }
  /// Replaces weights by the gradients of scores; p: the dot products of g and v.
  template <u32 kCount>
  WICK_DEVICE void gradients_of_rows(float (&s)[kCount], const float (&p)[kCount],
                                     const float (&bend)[kBiased ? kCount : 1]) const {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      const u32 i = Lanes::row_of(e);
      float x = p[e] - delta[i];
      if constexpr (kScales) x = x * (by[i] * kWeightInverse);
      if constexpr (kBiased) x = x * bend[e];
      s[e] = s[e] * x;
    }
  }

  /// Replaces the dot products of held keys and a tile of rows by weights. tile_sums: those of the
  /// tile's rows, in shared memory.
  template <u32 kCount>
  WICK_DEVICE void weights_of_keys(i32 from, const RowSums* tile_sums, float (&s)[kCount],
                                   float (&bend)[kBiased ? kCount : 1]) const {
    const i32 own = static_cast<i32>(first + warp_row), all = static_cast<i32>(rows);
    const i32 end = from + static_cast<i32>(kTile);
    const KeyRange of_first = keys_seen(c, c.keys, static_cast<u32>(from) / c.group),
                   of_last =
                       keys_seen(c, c.keys, static_cast<u32>(smaller(end, all) - 1) / c.group);
    if (!kBiased && end <= all && of_last.begin <= own &&
        of_first.end >= own + static_cast<i32>(Lanes::kSpan)) {
      const float units = c.scale * kUnit;
      for_columns(s, [&](u32 column, u32 e) WICK_INLINE {
        const RowSums& of_row = tile_sums[column];
        const float largest = of_row.largest, by_sum = of_row.inverse * kWeightFactor;
#pragma unroll
        for (u32 i = 0; i < kRows; ++i) {
          float& x = s[Lanes::of_row(e, i)];
          x = power(x * units, largest) * by_sum;
        }
      });
      return;
    }
    if constexpr (kBiased && WICK_AMD) bias_all(s, bend);
    for_columns(s, [&](u32 column, u32 e) WICK_INLINE {
      const i32 row = from + static_cast<i32>(column);
      const RowPlace at(c, key_head, static_cast<u32>(row < all ? row : 0));
      KeyRange range = keys_seen(c, c.keys, at.query);
      if (row >= all) range.end = range.begin;
      const RowSums& of_row = tile_sums[column];
      const float largest = of_row.largest, by_sum = of_row.inverse * kWeightFactor;
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        const u32 x = Lanes::of_row(e, i);
        const i32 key = own + static_cast<i32>(Lanes::row(i));
        const bool visible = key >= range.begin && key < range.end;
        float score;
        if constexpr (kBiased) {
          score = WICK_AMD ? s[x] : biased(s[x], bend[x]);
          if (visible) {
            score = RowBias(bias, batch, at.head, at.query).add(score, key, own_key(at.query));
          }
        } else {
          score = s[x] * (c.scale * kUnit);
        }
        s[x] = visible ? power(score, largest) * by_sum : 0.0f;
      }
    });
  }
  /// Replaces weights by the gradients of scores.
  template <u32 kCount>
  WICK_DEVICE void gradients_of_keys(const RowSums* tile_sums, float (&s)[kCount],
                                     const float (&p)[kCount],
                                     const float (&bend)[kBiased ? kCount : 1]) const {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      float x = p[e] - tile_sums[Lanes::key(e)].delta;
      if constexpr (kScales) x = x * (factor * kWeightInverse);
      if constexpr (kBiased) x = x * bend[e];
      s[e] = s[e] * x;
    }
  }

  /// Replaces weights, multiplied by the derivatives of the soft cap, by the gradients of scores.
  template <u32 kCount>
  WICK_DEVICE void gradients_of_keys(const RowSums* tile_sums, float (&s)[kCount],
                                     const float (&p)[kCount]) const {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      float x = p[e] - tile_sums[Lanes::key(e)].delta;
      if constexpr (kScales) x = x * (factor * kWeightInverse);
      s[e] = s[e] * x;
    }
  }

  // ---- Results

  /// Stores kN neighbouring elements of dq of the lane's row i, from element x on.
  template <u32 kN>
  WICK_DEVICE void store_query(u32 i, u32 x, const float (&y)[kN]) const {
    const u32 row = first + warp_row + Lanes::row(i);
    if (row >= rows || x >= c.d) return;
    const RowPlace at(c, key_head, row);
    T* to = static_cast<T*>(of.dq) + batch * of.dq_batch + at.head * of.dq_head +
            at.query * of.dq_query;
    put(to, of.dq_step, x, c.d, y, c.scale / by[i]);
  }
  template <u32 kN>
  WICK_DEVICE void store_key(u32 i, u32 x, const float (&y)[kN]) const {
    const u32 key = first + warp_row + Lanes::row(i);
    if (key >= c.keys || x >= c.d) return;
    T* to = static_cast<T*>(of.dk) + batch * of.dk_batch + key_head * of.dk_head + key * of.dk_key;
    put(to, of.dk_step, x, c.d, y, c.scale / factor);
  }
  template <u32 kN>
  WICK_DEVICE void store_value(u32 i, u32 x, const float (&y)[kN]) const {
    const u32 key = first + warp_row + Lanes::row(i);
    if (key >= c.keys || x >= c.e) return;
    T* to = static_cast<T*>(of.dv) + batch * of.dv_batch + key_head * of.dv_head + key * of.dv_key;
    put(to, of.dv_step, x, c.e, y, kWeightInverse);
  }

 private:
  /// Calls f(column, e) for each streamed row: e is its element in the lane's first held key.
  template <u32 kCount, class F>
  WICK_DEVICE static void for_columns(const float (&)[kCount], F&& f) {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      if (Lanes::row_of(e) == 0) f(Lanes::key(e), e);
    }
  }
  template <u32 kN>
  WICK_DEVICE static void put(T* to, i64 step, u32 x, u32 size, const float (&y)[kN], float times) {
    float z[kN];
#pragma unroll
    for (u32 j = 0; j < kN; ++j) z[j] = y[j] * times;
    T* const at = to + x * step;
    if (step == 1 && x + kN <= size && reinterpret_cast<u64>(at) % (kN * sizeof(T)) == 0) {
      *reinterpret_cast<Vec<T, kN>*>(at) = Vec<T, kN>::of(z);
      return;
    }
#pragma unroll
    for (u32 j = 0; j < kN; ++j) {
      if (x + j < size) at[j * step] = narrow<T>(z[j]);
    }
  }
};

#if WICK_FRAGMENTS

/// Lanes of products in fragments (fragment.h).
struct GradientFragments : FragmentLanes {
  static constexpr u32 kSpan = 16;
  WICK_DEVICE static constexpr u32 of_row(u32 e, u32 i) { return e + 2 * i; }
};

/// Calls f(n, i, x) for the pairs of sums of a lane: elements x and x + 1 of its row i, from the
/// fragment n.
template <u32 kWidth, class F>
WICK_DEVICE void for_pairs(F&& f) {
#pragma unroll
  for (u32 i = 0; i < GradientFragments::kRows; ++i) {
#pragma unroll
    for (u32 n = 0; n < kWidth / 8; ++n) f(n, i, 8 * n + 2 * (lane() % 4));
  }
}

#endif

}  // namespace wick::gpu
