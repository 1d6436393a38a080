#pragma once

// The steps of attention for up to six rows and the keys of one chunk: scores, softmax, and
// outputs. Keys and values are f32, f16 or bf16, or bytes of blocks (attention_blocks.h). The order
// of operations is that of docs/design/numerics/attention.md. For kernel sources only (see isa.h).

#include "wick/backend/cpu/fused/attention_blocks.h"
#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/linear/column_dots.h"
#include "wick/backend/cpu/reduce/row_sum.h"

namespace wick::cpu::WICK_ISA {
namespace {

constexpr int kWidth = kLanes<float>;

// Functions larger than the inner loops of a tile aren't inlined: there is one for each element
// type and row count.
#define WICK_NOINLINE __attribute__((noinline))

/// Keys [begin, end) of a chunk, relative to its first key.
struct Range {
  int64_t begin, end;
  WICK_FN bool empty() const { return begin >= end; }
};

/// Scores of R rows for V vectors of keys: s[r][j] = sum over i of q[r][i] * k[i][j], one fma chain
/// in index order from +0. With kPartial, only `partial` keys of the last vector exist.
template <int R, int V, bool kPartial, class T>
WICK_FN void score_tile(const float* q, int64_t q_row, int64_t d, const T* k, int64_t k_step,
                        int partial, float* s) {
  Vec<float> acc[R][V] = {};
  for (int64_t i = 0; i < d; ++i, k += k_step) {
    Vec<float> kv[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) {
      kv[v] = kPartial && v == V - 1 ? load_partial(k + v * kWidth, partial) : load(k + v * kWidth);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<float> qv = splat(q[r * q_row + i]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = fma(qv, kv[v], acc[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(s + r * kAttentionChunk + v * kWidth, acc[r][v]);
  }
}

/// Scores of R rows for some keys of a chunk; keys.begin is a multiple of the vector width. All
/// lanes of the last vector are written.
template <int R, class T>
WICK_NOINLINE void scores(const float* q, int64_t d, const T* k, int64_t k_step, Range keys,
                          float* s) {
  constexpr int kWide = R == 1 ? 8 : R <= 3 ? 4 : 2;
  int64_t j = keys.begin;
  for (; j + kWide * kWidth <= keys.end; j += kWide * kWidth) {
    score_tile<R, kWide, false>(q, d, d, k + j, k_step, 0, s + j);
  }
  if constexpr (kWide > 2) {
    for (; j + 2 * kWidth <= keys.end; j += 2 * kWidth) {
      score_tile<R, 2, false>(q, d, d, k + j, k_step, 0, s + j);
    }
  }
  for (; j + kWidth <= keys.end; j += kWidth) {
    score_tile<R, 1, false>(q, d, d, k + j, k_step, 0, s + j);
  }
  if (j < keys.end) {
    score_tile<R, 1, true>(q, d, d, k + j, k_step, static_cast<int>(keys.end - j), s + j);
  }
}

#if defined(__AVX512F__)
constexpr bool kTransposesKeys = true;  // keys may be dense along d

/// Scores of R rows for keys that are dense along d, k_key apart.
template <int R, class T>
WICK_NOINLINE void scores_of_rows(const float* q, int64_t d, const T* k, int64_t k_key, Range keys,
                                  float* s) {
  StripArgs args{};
  args.rows = R;
  args.cols = keys.end - keys.begin;
  args.k = d;
  args.x = q;
  args.b = k + keys.begin * k_key;
  args.b_stride = k_key;
  args.out = s + keys.begin;
  args.out_row_stride = kAttentionChunk;
  column_rows<T, R, (R <= 2 ? 2 : 1)>(args);
}
#else
constexpr bool kTransposesKeys = false;
#endif

/// score_tile for keys of blocks, from key j of the page on. All lanes of the page are read.
template <int R, int V, class T>
WICK_FN void score_tile_of_blocks(const float* q, int64_t d, const T* k, int64_t j, float* s) {
  Vec<float> acc[R][V] = {};
  for (int64_t i = 0; i < d; i += math::kBlock, k += kGroupBytes<T>) {
    Vec<float> scale[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) scale[v] = scales_of(k, j + v * kWidth);
    for_each_element_of(
        k, [&](int x, auto&& quants) __attribute__((always_inline)) {
          Vec<float> kv[V];
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) kv[v] = round_to_f16(quants(j + v * kWidth) * scale[v]);
#pragma GCC unroll 6
          for (int r = 0; r < R; ++r) {
            const Vec<float> qv = splat(q[r * d + i + x]);
#pragma GCC unroll 8
            for (int v = 0; v < V; ++v) acc[r][v] = fma(qv, kv[v], acc[r][v]);
          }
        });
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(s + r * kAttentionChunk + j + v * kWidth, acc[r][v]);
  }
}

/// scores() for keys of blocks.
template <int R, class T>
WICK_NOINLINE void scores_of_blocks(const float* q, int64_t d, const T* k, Range keys, float* s) {
  constexpr int kWide = R == 1 ? 4 : R <= 3 && kVectorBytes == 64 ? 4 : 2;
  int64_t j = keys.begin;
  for (; j + (kWide - 1) * kWidth < keys.end && j + kWide * kWidth <= kAttentionChunk;
       j += kWide * kWidth) {
    score_tile_of_blocks<R, kWide>(q, d, k, j, s);
  }
  for (; j < keys.end; j += kWidth) score_tile_of_blocks<R, 1>(q, d, k, j, s);
}

/// Scores of R rows for some keys of a chunk: of blocks, dense along d, or k_key = 1 apart.
template <int R, class T>
WICK_FN void scores_of_keys(const float* q, int64_t d, const T* k, [[maybe_unused]] int64_t k_key,
                            [[maybe_unused]] int64_t k_step, Range keys, float* s) {
  if constexpr (kIsBlocks<T>) {
    return scores_of_blocks<R>(q, d, k, keys, s);
  } else {
    if constexpr (kTransposesKeys) {
      if (k_key != 1) return scores_of_rows<R>(q, d, k, k_key, keys, s);
    }
    return scores<R>(q, d, k, k_step, keys, s);
  }
}

/// s = exp(s - m) for V vectors; no score is above m.
template <int V>
WICK_FN void exponentials(float* s, float m) {
  float e[V * kWidth];
  for (int v = 0; v < V; ++v) store(e + v * kWidth, load(s + v * kWidth) - splat(m));
  for (float& x : e) x = math::exp_of_negative(x);
  for (int v = 0; v < V; ++v) store(s + v * kWidth, load(e + v * kWidth));
}

/// Sets a vector's lanes outside [begin, end) to -inf, without branches, which the edges of a
/// causal mask would mispredict.
WICK_FN void keep_lanes(float* s, int64_t begin, int64_t end) {
  alignas(64) static constexpr float kLane[] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                8, 9, 10, 11, 12, 13, 14, 15};
  static_assert(kWidth <= 16);
  const Vec<float> lane = load(kLane), none = splat(-__builtin_huge_valf());
  Vec<float> v = load(s);
  v = lane >= splat(static_cast<float>(begin)) ? v : none;
  v = lane < splat(static_cast<float>(end)) ? v : none;
  store(s, v);
}

/// What is added to the scores of a row.
struct RowBias {
  const void* mask;  // the element of the chunk's first key
  int64_t step;
  MaskKind kind;
  bool slopes;
  float slope;
  int64_t first;  // the chunk's first key minus the position of the query
};

/// Adds a mask of f16 or bf16, whose elements convert exactly.
template <class T>
WICK_FN void add_narrow_mask(float* s, Range keys, const T* mask, int64_t step) {
  int64_t j = keys.begin;
  if (step == 1) {
    for (; j + kWidth <= keys.end; j += kWidth) store(s + j, load(s + j) + load(mask + j));
  }
  for (; j < keys.end; ++j) s[j] = s[j] + math::to_f32(mask[j * step]);
}

WICK_NOINLINE void add_bias(float* s, Range keys, const RowBias& bias) {
  if (bias.slopes) {
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      s[j] = s[j] + bias.slope * static_cast<float>(bias.first + j);
    }
  }
  if (bias.mask == nullptr) return;
  switch (bias.kind) {
    case MaskKind::hides: {
      const auto* mask = static_cast<const uint8_t*>(bias.mask);
      for (int64_t j = keys.begin; j < keys.end; ++j) {
        s[j] = mask[j * bias.step] != 0 ? s[j] : -__builtin_huge_valf();
      }
      return;
    }
    case MaskKind::f32: {
      const auto* mask = static_cast<const float*>(bias.mask);
      for (int64_t j = keys.begin; j < keys.end; ++j) s[j] = s[j] + mask[j * bias.step];
      return;
    }
    case MaskKind::f16:
      return add_narrow_mask(s, keys, static_cast<const math::f16*>(bias.mask), bias.step);
    case MaskKind::bf16:
      return add_narrow_mask(s, keys, static_cast<const math::bf16*>(bias.mask), bias.step);
  }
}

/// Scales and biases a row's scores of `keys`. The other lanes of their vectors become -inf.
/// Returns the largest score.
WICK_FN float scale_row(float* s, Range keys, float scale, float soft_cap, const RowBias* bias) {
  const int64_t first = keys.begin / kWidth * kWidth;
  const int64_t last = (keys.end + kWidth - 1) / kWidth * kWidth;
  const Vec<float> scale_v = splat(scale);
  for (int64_t j = first; j < last; j += kWidth) store(s + j, load(s + j) * scale_v);
  if (soft_cap > 0.0f) {
    for (int64_t j = first; j < last; ++j) s[j] = soft_cap * math::tanh(s[j] / soft_cap);
  }
  if (bias != nullptr) add_bias(s, keys, *bias);
  keep_lanes(s + first, keys.begin - first, kWidth);
  keep_lanes(s + last - kWidth, 0, keys.end - (last - kWidth));

  Vec<float> m0 = splat(-__builtin_huge_valf()), m1 = m0;
  int64_t j = first;
  for (; j + 2 * kWidth <= last; j += 2 * kWidth) {
    const Vec<float> a = load(s + j), b = load(s + j + kWidth);
    m0 = a > m0 ? a : m0;
    m1 = b > m1 ? b : m1;
  }
  if (j < last) {
    const Vec<float> a = load(s + j);
    m0 = a > m0 ? a : m0;
  }
  m0 = m1 > m0 ? m1 : m0;
  return reduce_max(m0);
}

/// exp(score - m) of a row's keys, +0 for all other keys of the chunk.
WICK_FN void exponentials_of_row(float* s, Range keys, float m) {
  const int64_t first = keys.begin / kWidth * kWidth;
  const int64_t last = (keys.end + kWidth - 1) / kWidth * kWidth;
  int64_t j = first;
  for (; j + 2 * kWidth <= last; j += 2 * kWidth) exponentials<2>(s + j, m);
  if (j < last) exponentials<1>(s + j, m);
  for (j = 0; j < first; j += kWidth) store(s + j, Vec<float>{});
  for (j = last; j < kAttentionChunk; j += kWidth) store(s + j, Vec<float>{});
}

/// The row sum of 256 elements: two for each accumulator.
WICK_FN float sum_of_row(const float* s) {
  alignas(64) float acc[kSumAccumulators];
  for (int64_t j = 0; j < kSumAccumulators; j += kWidth) {
    store(acc + j, load(s + j) + load(s + j + kSumAccumulators));
  }
  return sum_tree(acc);
}

struct RowSoftmax {
  float max, sum;
  bool hidden;  // the mask hides all keys of the chunk
};

/// Replaces the scores of rows, kAttentionChunk entries each, by exponentials, and computes their
/// maxima and sums. Each step is done for all rows: a row's maximum and sum are long chains of
/// dependent operations, which overlap with those of other rows. bias: null, or one for each row; a
/// chunk whose keys are all hidden has no weight.
WICK_NOINLINE void softmax_rows(float* s, const Range* keys, int rows, float scale, float soft_cap,
                                const RowBias* bias, RowSoftmax* out) {
  for (int r = 0; r < rows; ++r) {
    if (keys[r].empty()) continue;
    out[r].max = scale_row(s + r * kAttentionChunk, keys[r], scale, soft_cap,
                           bias != nullptr ? bias + r : nullptr);
  }
  for (int r = 0; r < rows; ++r) {
    if (keys[r].empty()) continue;
    // If every score is -inf or NaN: weights of +0 or NaN.
    const bool none = bias != nullptr && out[r].max == -__builtin_huge_valf();
    const float m = none ? 0.0f : out[r].max;
    exponentials_of_row(s + r * kAttentionChunk, keys[r], m);
  }
  for (int r = 0; r < rows; ++r) {
    if (keys[r].empty()) continue;
    out[r].sum = sum_of_row(s + r * kAttentionChunk);
    out[r].hidden = bias != nullptr && out[r].max == -__builtin_huge_valf() && out[r].sum == 0.0f;
  }
}

/// o[r][x] += sum over keys of e[r][j] * v[j][x] for V vectors of x: fma chains in index order.
/// load_value(to, j) loads the vectors of v[j].
template <int R, int V, class LoadValue>
WICK_FN void value_tile(const float* e, Range keys, float* o, int64_t o_row,
                        const LoadValue& load_value) {
  Vec<float> acc[R][V];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int x = 0; x < V; ++x) acc[r][x] = load(o + r * o_row + x * kWidth);
  }
  for (int64_t j = keys.begin; j < keys.end; ++j) {
    Vec<float> vv[V];
    load_value(vv, j);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<float> ev = splat(e[r * kAttentionChunk + j]);
#pragma GCC unroll 8
      for (int x = 0; x < V; ++x) acc[r][x] = fma(ev, vv[x], acc[r][x]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int x = 0; x < V; ++x) store(o + r * o_row + x * kWidth, acc[r][x]);
  }
}
template <int R, int V, class T>
WICK_FN void value_tile_of(const float* e, const T* v, int64_t v_key, Range keys, float* o,
                           int64_t o_row) {
  value_tile<R, V>(e, keys, o, o_row, [&](Vec<float>(&to)[V], int64_t j) {
#pragma GCC unroll 8
    for (int x = 0; x < V; ++x) to[x] = load(v + j * v_key + x * kWidth);
  });
}

/// value_tile for `width` elements, a multiple of the vector width.
template <int R, class T>
WICK_NOINLINE void values(const float* e, const T* v, int64_t v_key, Range keys, float* o,
                          int64_t o_row, int64_t width) {
  constexpr int kWide = kVectorBytes == 64 ? 4 : 2;
  if (keys.empty()) return;
  int64_t x = 0;
  for (; x + kWide * kWidth <= width; x += kWide * kWidth) {
    value_tile_of<R, kWide>(e, v + x, v_key, keys, o + x, o_row);
  }
  for (; x < width; x += kWidth) value_tile_of<R, 1>(e, v + x, v_key, keys, o + x, o_row);
}

/// values() for `width` elements of blocks.
template <int R, class T>
WICK_NOINLINE void values_of_blocks(const float* e, const T* v, int64_t v_key, Range keys, float* o,
                                    int64_t o_row, int64_t width) {
  if (keys.empty()) return;
  for (int64_t x = 0; x < width; x += math::kBlock, v += kBlockBytes<T>, o += math::kBlock) {
    value_tile<R, kVecsOfBlock>(e, keys, o, o_row, [&](Vec<float>(&to)[kVecsOfBlock], int64_t j) {
      load_block(to, v + j * v_key);
    });
  }
}

/// values() or values_of_blocks().
template <int R, class T>
WICK_FN void add_values(const float* e, const T* v, int64_t v_key, Range keys, float* o,
                        int64_t o_row, int64_t width) {
  if constexpr (kIsBlocks<T>) {
    values_of_blocks<R>(e, v, v_key, keys, o, o_row, width);
  } else {
    values<R>(e, v, v_key, keys, o, o_row, width);
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
