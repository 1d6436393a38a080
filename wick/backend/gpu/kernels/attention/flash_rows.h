#pragma once

// Parts that the kernels of the bound form of docs/design/numerics/attention.md share: which rows a
// thread block computes, the splitting of queries and exponentials into terms of 16 bits, the
// softmax of a tile of scores, and the combination of splits. Only the main loops, which load tiles
// and multiply, differ.

#include "wick/backend/gpu/kernels/attention/flash_bias.h"
#include "wick/backend/gpu/kernels/device/fragment.h"
#include "wick/backend/gpu/kernels/device/wave.h"

namespace wick::gpu {

/// Terms of 16 bits into which an f32 is split.
template <class T>
constexpr u32 kSplit = flash_terms(!kSame<T, bf16>);

/// Rows that see so many keys need only two terms of each exponential: then 2^-18, the error of two
/// bf16 terms, is at most half of the bound, √n · 2^-22.
constexpr i32 kKeysForTwoTerms = 1024;

constexpr float kLog2E = 0x1.715476p0f;
/// Scores to base 2 from here on are rounded before the largest one is subtracted.
constexpr float kLargeScore = 0x1p16f;

/// Splits two numbers into kTerms terms each. The sum of kSplit<T> terms has all significant bits.
template <class T, u32 kTerms>
WICK_DEVICE void split_two(u32 (&to)[kTerms], float low, float high) {
#pragma unroll
  for (u32 i = 0; i < kTerms; ++i) {
    to[i] = narrow_two<T>(low, high);
    if (i + 1 == kTerms) break;
    Vec<T, 2> back;
    back.w[0] = to[i];
    low = low - back[0];
    high = high - back[1];
  }
}

/// Elements of a row of queries that a lane holds while a warp loads the row.
template <u32 kWidth>
constexpr u32 kQueryElements = kWidth / kWarp;

/// The rows of a thread block, query by query, the query heads of the GQA group side by side, and
/// the running softmax of those that a lane holds. kWidth: d and e, padded with zeros. Bias:
/// ScoreBias, or NoBias. Without terms, scores are to base 2, the scale is positive, and there is
/// no soft cap. Scores with terms aren't to base 2: a mask's largest finite numbers would overflow.
/// kCapped: with terms, there may be a soft cap.
///
/// Lanes: which scores a lane holds.
///   kRows        number of its rows
///   row(i)       index of its i-th row among the rows of its warp or wave
///   row_of(e)    which of its rows has element e of its scores or sums
///   key(e)       the key of score e, counted from the first key of the tile
///   kNeighbours  scores from a multiple of kNeighbours on are of one row and of neighbouring keys
///   over_row(x, f)   f of x over all lanes that hold the same row
template <class T, u32 kWidth, class Lanes, class Bias, bool kCapped = true>
struct FlashRows {
  // Exponentials for f16 are scaled by 2^14, which keeps both terms in range.
  static constexpr float kPower = kSame<T, f16> ? 14.0f : 0.0f;
  static constexpr u32 kRows = Lanes::kRows, kEach = kQueryElements<kWidth>;
  static constexpr bool kBiased = LaneBias<Lanes, Bias>::kAdds;
  static constexpr float kUnit = kBiased ? 1.0f : kLog2E;  // of the scores

  const AttentionCall& c;
  const CacheCall& cache;  // the source of the queries if they come from projections
  float* inverse;          // in shared memory, for f16: PowerOfTwo::back of each row of queries
  const T *keys_from, *values_from;
  u32 keys, first_row, rows, key_head, batch;
  u32 warp_row;  // the first of the block's rows that the warp computes
  KeyRange any, seen[kRows];
  /// by: what a dot product is multiplied by. m: the largest score so far; without terms, kPower
  /// less unless it is large, so that exp2(s·by − m) is the scaled exponential.
  float by[kRows], m[kRows], l[kRows];
  LaneBias<Lanes, Bias> bias;

  WICK_DEVICE FlashRows(const AttentionCall& call, const CacheCall& cache_call, const Bias& added,
                        u32 first_of_warp)
      : c(call), cache(cache_call), warp_row(first_of_warp), bias(added) {}

  /// Finds the rows of thread block `at` and the keys that they see. Thread blocks take `section`
  /// key heads after one another, whose keys then stay in the cache; among these, the last rows of
  /// all heads come first, because they see most keys. Returns false if the rows' positions lie
  /// outside the cache.
  WICK_DEVICE bool find_rows(u32 at, u32 blocks, u32 block_rows, u32 section) {
    const u32 key_heads = c.heads / c.group, all = key_heads * c.batch;
    const u32 first = at / (section * blocks) * section, left = all - first;
    const u32 wide = left < section ? left : section;
    at -= first * blocks;
    first_row = (blocks - 1 - at / wide) * block_rows;
    key_head = (first + at % wide) % key_heads;
    batch = (first + at % wide) / key_heads;
    keys = keys_of(c, batch);
    if (keys == 0 && thread_index() == 0) check_keys(c, batch);
    if (keys == 0 && c.positions != nullptr) return false;
    rows = c.queries * c.group;
    keys_from = static_cast<const T*>(c.k) + batch * c.k_batch + key_head * c.k_head;
    values_from = static_cast<const T*>(c.v) + batch * c.v_batch + key_head * c.v_head;
    const u32 last = first_row + block_rows < rows ? first_row + block_rows : rows;
    any = {keys_seen(c, keys, first_row / c.group).begin,
           keys_seen(c, keys, (last - 1) / c.group).end};
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const u32 row = row_of(i) < rows ? row_of(i) : rows - 1;
      seen[i] = keys_seen(c, keys, row / c.group);
      m[i] = -detail::kInfF32, l[i] = 0.0f;
    }
    return true;
  }
  /// The lane's rows, counted from the key head's first row.
  WICK_DEVICE u32 row_of(u32 i) const { return first_row + warp_row + Lanes::row(i); }

  /// Whether two terms of each exponential suffice for all rows of the thread block. The first row
  /// of a causal call sees the fewest keys. With a mask, a row may see any number.
  WICK_DEVICE bool takes_two_terms(u32 block_rows) const {
    if (kSplit<T> == 2) return true;
    if (bias.may_hide()) return false;
    const u32 last = first_row + block_rows < rows ? first_row + block_rows : rows;
    const KeyRange first = keys_seen(c, keys, first_row / c.group),
                   end = keys_seen(c, keys, (last - 1) / c.group);
    return first.end - first.begin >= kKeysForTwoTerms && end.end - end.begin >= kKeysForTwoTerms;
  }

  // ---- Queries

  // Rows of queries that a warp loads at once.
  static constexpr u32 kAtOnce = WICK_AMD ? 4 : 8;
  using Queries = float[kAtOnce][kEach];

  /// Loads rows of queries from the thread block's r-th on. Rows and elements that don't exist
  /// become zeros.
  template <class Load>
  WICK_DEVICE void load_rows(u32 r, Queries& x, Load&& load) const {
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      const u32 row = first_row + r + i < rows ? first_row + r + i : rows - 1;
      const u32 at = kEach * lane() < c.d ? kEach * lane() : 0;
      load(key_head * c.group + row % c.group, row / c.group, at, x[i]);
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; ++i) {
      const bool there = first_row + r + i < rows && kEach * lane() < c.d;
#pragma unroll
      for (float& each : x[i]) each = there ? each : 0.0f;
    }
  }
  /// Calls use(load). load(head, query, at, to): loads kEach elements of a query from `at` on.
  template <class Use>
  WICK_DEVICE void with_queries(Use&& use) const {
    if (cache.qkv != nullptr) {
      use([&](u32 head, u32 query, u32 at, float(&to)[kEach]) WICK_INLINE {
        const float* row = cache.qkv + (batch * c.queries + query) * cache.qkv_row +
                           head * i64{c.d} * cache.qkv_step;
#pragma unroll
        for (u32 i = 0; i < kEach; i += 2) {
          const Turned y(cache, row, (at + i) / 2, keys - c.queries + query);
          to[i] = y.x0, to[i + 1] = y.x1;
        }
      });
    } else if (c.dtype == kAttentionF32) {
      with_stored<float>(use);
    } else if (c.dtype == kAttentionF16) {
      with_stored<f16>(use);
    } else {
      with_stored<bf16>(use);
    }
  }
  template <class S, class Use>
  WICK_DEVICE void with_stored(Use&& use) const {
    use([&](u32 head, u32 query, u32 at, float(&to)[kEach]) WICK_INLINE {
      const i64 from = batch * c.q_batch + head * c.q_head + query * c.q_query + at * c.q_step;
#pragma unroll
      for (u32 i = 0; i < kEach; ++i) {
        to[i] = widen(static_cast<const S*>(c.q)[from + i * c.q_step]);
      }
    });
  }
  WICK_DEVICE void load_some(u32 r, Queries& x) const {
    with_queries([&](auto&& load) WICK_INLINE { load_rows(r, x, load); });
  }

  /// Whether the queries have the dtype of the keys, so that one term is exact.
  WICK_DEVICE bool has_whole_queries() const {
    return cache.qkv == nullptr && c.dtype == (kSame<T, f16> ? kAttentionF16 : kAttentionBf16);
  }

  /// Whether rows of queries are multiplied by powers of two before they are split.
  static constexpr bool kScalesQueries = kSame<T, f16>;
  /// The power of two by which a row of queries is multiplied, and its reciprocal. largest: the
  /// bits of the row's largest magnitude.
  struct PowerOfTwo {
    float by = 1.0f, back = 1.0f;
    WICK_DEVICE explicit PowerOfTwo(u32 largest) {
      if constexpr (!kScalesQueries) return;
      const i32 exponent = static_cast<i32>(largest >> 23);
      i32 up = 127 + 14 - exponent;
      up = up > 100 ? 100 : up < -100 ? -100 : up;
      if (exponent == 255) up = 0;
      by = bits_f32(static_cast<u32>(127 + up) << 23);
      back = bits_f32(static_cast<u32>(127 - up) << 23);
    }
  };

  /// Splits a row into terms and passes each pair to put(element, terms). For f16 the row is scaled
  /// to below 2^15.
  template <class Put>
  WICK_DEVICE void split_row(u32 r, const float (&x)[kEach], Put&& put) const {
    u32 largest = 0;
#pragma unroll
    for (const float each : x) {
      const u32 magnitude = f32_bits(each) & 0x7fffffffu;
      largest = magnitude > largest ? magnitude : largest;
    }
    const PowerOfTwo scale(kScalesQueries ? largest_of_warp(largest) : 0);
    if (kScalesQueries && lane() == 0) inverse[r] = scale.back;
#pragma unroll
    for (u32 i = 0; i < kEach; i += 2) {
      u32 terms[kSplit<T>];
      split_two<T>(terms, x[i] * scale.by, x[i + 1] * scale.by);
      put(kEach * lane() + i, terms);
    }
  }

  // ---- Softmax

  /// Computes `by`. split: the queries come from split_row. All queries are in shared memory.
  WICK_DEVICE void find_factors(bool split) {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      set_factor(i, kScalesQueries && split ? inverse[warp_row + Lanes::row(i)] : 1.0f);
    }
  }
  /// Computes `by` of the lane's row i. back: the reciprocal of the power of two that its query was
  /// multiplied by.
  WICK_DEVICE void set_factor(u32 i, float back) { by[i] = back * (c.scale * kUnit); }

  /// Replaces dot products of a tile of kKeys keys by exponentials. shrink: what sums so far must
  /// be multiplied by.
  template <u32 kKeys, u32 kCount>
  WICK_DEVICE void exponentials(i32 from, float (&s)[kCount], float (&shrink)[kRows]) {
    if constexpr (kBiased) add_terms<kKeys>(from, s);
    hide<kKeys>(from, s);
    float top[kRows], unit[kRows];
    bool large = false;
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      float largest = -detail::kInfF32;
#pragma unroll
      for (u32 e = 0; e < kCount; ++e) {
        if (Lanes::row_of(e) == i) largest = larger(s[e], largest);
      }
      largest = Lanes::over_row(largest, [](float a, float b) WICK_INLINE { return larger(a, b); });
      unit[i] = by[i];
      top[i] = kBiased ? largest : largest * unit[i];
      large = large || !(abs(top[i]) < kLargeScore);
    }
    if (!kBiased && large) {
      // The difference of an unrounded and a rounded score would be too far from 0.
#pragma unroll
      for (u32 e = 0; e < kCount; ++e) s[e] = s[e] * unit[Lanes::row_of(e)];
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) unit[i] = 1.0f;
    }
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      const bool shifts = !kBiased && kPower != 0.0f && !large;
      const float largest = larger(shifts ? top[i] - kPower : top[i], m[i]);
      // If no key has been seen, all exponentials must be zero, not NaN.
      const float base = largest == -detail::kInfF32 ? 0.0f : largest;
      shrink[i] = near_exp2(kBiased ? (m[i] - base) * kLog2E : m[i] - base);
      m[i] = largest;
      l[i] = l[i] * shrink[i];
#pragma unroll
      for (u32 e = 0; e < kCount; ++e) {
        if (Lanes::row_of(e) != i) continue;
        // Masks may be large numbers, so the difference from the largest score comes first.
        s[e] = near_exp2(kBiased ? fma(s[e] - base, kLog2E, kPower) : fma(s[e], unit[i], -base));
        l[i] = l[i] + s[e];
      }
    }
  }
  template <u32 kSums>
  WICK_DEVICE static void rescale(float (&o)[kSums], const float (&shrink)[kRows]) {
#pragma unroll
    for (u32 e = 0; e < kSums; ++e) o[e] = o[e] * shrink[Lanes::row_of(e)];
  }
  /// Replaces dot products of a tile of kKeys keys by exponentials, and scales earlier results to
  /// the new largest score.
  template <u32 kKeys, u32 kCount, u32 kSums>
  WICK_DEVICE void softmax(i32 from, float (&s)[kCount], float (&o)[kSums]) {
    float shrink[kRows];
    exponentials<kKeys>(from, s, shrink);
    if constexpr (WICK_AMD) {  // mostly no score of a tile is larger than those before it
      bool shrinks = false;
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) shrinks = shrinks || shrink[i] != 1.0f;
      if (!shrinks) return;
    }
    rescale(o, shrink);
  }

  /// Completes the sums of exponentials after the last tile.
  WICK_DEVICE void finish_sums() {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      l[i] = Lanes::over_row(l[i], [](float a, float b) WICK_INLINE { return a + b; });
    }
  }

  /// Adds the sinks to the sums of the lane's rows, after the last tile and finish_sums. Before the
  /// first tile, a large sink would make exponentials so small that f16 terms lose bits. One of
  /// several splits calls it.
  template <u32 kSums>
  WICK_DEVICE void add_sinks(float (&o)[kSums]) {
    if constexpr (kBiased) {
      if (!bias.has_sinks()) return;
      float shrink[kRows];
#pragma unroll
      for (u32 i = 0; i < kRows; ++i) {
        const float sink = bias.sink(*this, i), largest = larger(sink, m[i]);
        const float base = largest == -detail::kInfF32 ? 0.0f : largest;
        shrink[i] = near_exp2((m[i] - base) * kLog2E);
        m[i] = largest;
        l[i] = fma(l[i], shrink[i], near_exp2(fma(sink - base, kLog2E, kPower)));
      }
      rescale(o, shrink);
    }
  }

  // ---- Results

  /// Stores the lane's rows: results, or with splits the partial results of split `split` for
  /// flash_combine. each(i, put): calls put(x, sums) for all elements x of the lane's row i, kN at
  /// a time.
  template <u32 kN, class Each>
  WICK_DEVICE void store(const AttentionPartials& partials, u32 splits, u32 split,
                         Each&& each) const {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      if (row_of(i) < rows) {
        const u32 head = key_head * c.group + row_of(i) % c.group, query = row_of(i) / c.group;
        if (splits != 1) {
          const u64 row = row_number(c, batch, head, query) * partials.chunks + split;
          store_partial<kN>(partials.out + row * c.e, i, each);
        } else {
          store_result<kN>(batch * c.out_batch + head * c.out_head + query * c.out_query, i, each);
        }
      }
    }
  }
  /// Stores the largest score and the sum of the lane's rows for flash_combine. One lane of each
  /// row calls it.
  WICK_DEVICE void store_largest_sums(const AttentionPartials& partials, u32 split) const {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      if (row_of(i) >= rows) continue;
      const u32 head = key_head * c.group + row_of(i) % c.group, query = row_of(i) / c.group;
      const u64 at = row_number(c, batch, head, query) * partials.chunks + split;
      partials.largest_sum[2 * at] = m[i], partials.largest_sum[2 * at + 1] = l[i];
    }
  }

 private:
  /// Turns dot products into scores: scale, soft cap, mask and slopes.
  template <u32 kKeys, u32 kCount>
  WICK_DEVICE void add_terms(i32 from, float (&s)[kCount]) const {
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) s[e] = s[e] * by[Lanes::row_of(e)];
    if (kCapped && c.soft_cap > 0.0f) {
#if WICK_AMD
      cap_scores(s);
#else
#pragma unroll
      for (float& x : s) x = c.soft_cap * tanh(x / c.soft_cap);
#endif
    }
    bias.template add<kKeys>(*this, from, s);
  }
#if WICK_AMD
  /// Applies the soft cap by a short loop that rotates s: an unrolled one spills registers.
  template <u32 kCount>
  WICK_DEVICE void cap_scores(float (&s)[kCount]) const {
#pragma unroll 1
    for (u32 e = 0; e < kCount; e += 2) {
      float two[2] = {s[0], s[1]};
#pragma unroll
      for (float& x : two) x = c.soft_cap * tanh(x / c.soft_cap);
#pragma unroll
      for (u32 i = 2; i < kCount; ++i) s[i - 2] = s[i];
      s[kCount - 2] = two[0], s[kCount - 1] = two[1];
    }
  }
#endif
  /// Excludes the keys of a tile that the lane's rows don't see.
  template <u32 kKeys, u32 kCount>
  WICK_DEVICE void hide(i32 from, float (&s)[kCount]) const {
    bool sees_all = true;
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
      sees_all = sees_all && seen[i].begin <= from && seen[i].end >= from + static_cast<i32>(kKeys);
    }
    if (sees_all) return;
#pragma unroll
    for (u32 e = 0; e < kCount; ++e) {
      const KeyRange keys_of_row = seen[Lanes::row_of(e)];
      const i32 key = from + static_cast<i32>(Lanes::key(e));
      const bool visible = key >= keys_of_row.begin && key < keys_of_row.end;
      s[e] = visible ? s[e] : -detail::kInfF32;
    }
  }

  template <u32 kN, class Each>
  WICK_DEVICE void store_partial(float* to, u32 i, Each&& each) const {
    each(i, [&](u32 x, const float(&o)[kN]) WICK_INLINE {
      if (x < c.e) {
#pragma unroll
        for (u32 j = 0; j < kN; j += 2) {
          *reinterpret_cast<Vec<float, 2>*>(to + x + j) = Vec<float, 2>::of({o[j], o[j + 1]});
        }
      }
    });
  }
  /// `to`: the offset of the lane's row i in the results.
  template <u32 kN, class Each>
  WICK_DEVICE void store_result(i64 to, u32 i, Each&& each) const {
    if (c.dtype == kAttentionF32) {
      store_row<float, kN>(static_cast<float*>(c.out) + to, i, each);
    } else if (c.dtype == kAttentionF16) {
      store_row<f16, kN>(static_cast<f16*>(c.out) + to, i, each);
    } else {
      store_row<bf16, kN>(static_cast<bf16*>(c.out) + to, i, each);
    }
  }
  template <class S, u32 kN, class Each>
  WICK_DEVICE void store_row(S* to, u32 i, Each&& each) const {
    const bool blind = seen[i].empty() || bias.hides_all(l[i]);
    const float scale = 1.0f / l[i];
    const bool vectors = c.out_step == 1 && reinterpret_cast<u64>(to) % (kN * sizeof(S)) == 0;
    each(i, [&](u32 x, const float(&o)[kN]) WICK_INLINE {
      float y[kN];
#pragma unroll
      for (u32 j = 0; j < kN; ++j) y[j] = blind ? 0.0f : o[j] * scale;
      if (x < c.e) {
        if (vectors) {
          *reinterpret_cast<Vec<S, kN>*>(to + x) = Vec<S, kN>::of(y);
        } else {
#pragma unroll
          for (u32 j = 0; j < kN; ++j) to[(x + j) * c.out_step] = narrow<S>(y[j]);
        }
      }
    });
  }
};

/// Index of the 16 bytes with element (row, 8 · piece) of a tile with `width` elements a row. Eight
/// rows of one piece lie in different banks. Two rows of 32 elements are one of 64.
WICK_DEVICE u32 place(u32 width, u32 row, u32 piece) {
  if (width == 32) return place(64, row / 2, piece + row % 2 * 4);
  return row * width + (piece ^ (row & 7)) * 8;
}

#if WICK_FRAGMENTS

/// The lanes of mma.sync and wgmma (see fragment.h): element e of a tile's scores, or of the sums,
/// is element e % 4 of the fragment of columns e / 4 · 8 and on.
struct FragmentLanes {
  static constexpr u32 kRows = 2, kNeighbours = 2;
  WICK_DEVICE static u32 row(u32 i) { return lane() / 4 + 8 * i; }
  WICK_DEVICE static constexpr u32 row_of(u32 e) { return e / 2 % 2; }
  WICK_DEVICE static u32 key(u32 e) { return e / 4 * 8 + 2 * (lane() % 4) + e % 2; }
  template <class F>
  WICK_DEVICE static float over_row(float x, F&& f) {
    x = f(x, shuffle_xor<1>(x));
    return f(x, shuffle_xor<2>(x));
  }
};

/// Stores the sums of a warp in the layout of FragmentLanes.
template <class Rows, u32 kSums>
WICK_DEVICE void store_fragments(const Rows& work, const AttentionPartials& partials, u32 splits,
                                 u32 split, const float (&o)[kSums]) {
  work.template store<2>(partials, splits, split, [&](u32 i, auto&& put) WICK_INLINE {
#pragma unroll
    for (u32 n = 0; n < kSums / 4; ++n) {
      put(8 * n + 2 * (lane() % 4), {o[4 * n + 2 * i], o[4 * n + 2 * i + 1]});
    }
  });
  if (splits != 1 && lane() % 4 == 0) work.store_largest_sums(partials, split);
}

#endif

/// Addresses of the first key and value of a tile of kKeys keys. A page holds whole tiles.
template <class T, u32 kKeys>
struct TilePlace {
  const T *k, *v;
  u32 left;  // keys from this tile on in the page
  template <class Rows>
  WICK_DEVICE TilePlace(const Rows& rows, i32 from) {
    find(rows, from);
  }
  /// Advances to the next tile, whose first key is `from`.
  template <class Rows>
  WICK_DEVICE void next(const Rows& rows, i32 from) {
    if (left == kKeys) return find(rows, from);
    left -= kKeys;
    k += kKeys * rows.c.k_key;
    v += kKeys * rows.c.v_key;
  }

 private:
  template <class Rows>
  WICK_DEVICE void find(const Rows& rows, i32 from) {
    const AttentionCall& c = rows.c;
    KeyPlace at = place_of(c.pages, rows.batch, static_cast<u32>(from));
#if WICK_AMD  // the compiler doesn't know that the page is the same in all lanes
    at.page = of_first_lane(at.page);
#endif
    // Without tables, `left` wraps below 0 and never becomes kKeys.
    left = c.pages.tables == nullptr ? 0 : c.pages.keys - at.in_page;
    k = rows.keys_from + at.page * c.pages.k_page + at.in_page * c.k_key;
    v = rows.values_from + at.page * c.pages.v_page + at.in_page * c.v_key;
  }
};

/// The keys of split `split` of a thread block's tiles of kKeys keys.
template <u32 kKeys>
WICK_DEVICE KeyRange tiles_of_split(KeyRange any, u32 splits, u32 split) {
  constexpr i32 kStep = static_cast<i32>(kKeys);
  const i32 begin = any.begin / kStep * kStep;
  const i32 tiles = any.end <= begin ? 0 : (any.end - begin + kStep - 1) / kStep;
  const i32 of = static_cast<i32>(splits), i = static_cast<i32>(split);
  return {begin + tiles * i / of * kStep, begin + tiles * (i + 1) / of * kStep};
}

/// Combines the splits of rows. A thread block takes a row. Bias: as in FlashRows.
template <class Bias>
WICK_DEVICE void combine_splits(const AttentionCall& c, const AttentionPartials& partials,
                                const Bias& bias) {
  constexpr bool kBiased = !kSame<Bias, NoBias>;
  pdl_wait();
  const u32 row = block_index(), query = row % c.queries;
  const u32 head = row / c.queries % c.heads, batch = row / c.queries / c.heads;
  const u32 keys = keys_of(c, batch);
  if (c.positions != nullptr && keys == 0) return;
  const bool blind = keys_seen(c, keys, query).empty();
  const i64 to = batch * c.out_batch + head * c.out_head + query * c.out_query;
  const float* ml = partials.largest_sum + u64{2} * row * partials.chunks;
  const float* from = partials.out + u64{row} * partials.chunks * c.e;
  for (u32 x = thread_index(); x < c.e; x += block_threads()) {
    float largest = -detail::kInfF32, l = 0.0f, o = 0.0f;
    for (u32 i = 0; i < partials.chunks; ++i) {
      largest = ml[2 * i] > largest ? ml[2 * i] : largest;
    }
    const float base = largest == -detail::kInfF32 ? 0.0f : largest;
#pragma unroll 4
    for (u32 i = 0; i < partials.chunks; ++i) {
      const float under = ml[2 * i] - base, by = near_exp2(kBiased ? under * kLog2E : under);
      l = fma(ml[2 * i + 1], by, l);
      o = fma(from[u64{i} * c.e + x], by, o);
    }
    store_as(c.out, c.dtype, to + x * c.out_step, blind || sees_nothing(bias, l) ? 0.0f : o / l);
  }
}

}  // namespace wick::gpu
