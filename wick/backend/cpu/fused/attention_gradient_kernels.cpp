#include "wick/backend/cpu/fused/attention_gradient_kernels.h"

#include "wick/backend/cpu/simd/convert.h"
#include "wick/backend/cpu/simd/transpose.h"

// The gradients of attention (attention.md, "The gradients"): small gemms of f32 tiles in
// second-level cache, and the arithmetic of the softmax between them. `whole` takes some rows and
// all their keys, and adds to sums of dk and dv. Where these sums are too large, `rows` computes
// the dq of some rows from all keys that they see, and `keys` the dk and dv of some keys from all
// rows that see them. The order of sums depends only on shapes, not on threads.

namespace wick::cpu::WICK_ISA {
namespace {

constexpr int kWidth = kLanes<float>;
constexpr int64_t kPanel = 16;  // columns of a transposed panel
#define WICK_NOINLINE __attribute__((noinline))

/// A matrix [rows, depth], and one [depth, columns] in panels of 16 columns: column c of line i is
/// at c / 16 · panel + i · line + c % 16.
struct Left {
  const float* data;
  int64_t row, step;
};
struct Right {
  const float* data;
  int64_t line, panel;
};

/// out += a · b for R rows and V vectors of columns; out = a · b unless kAdd.
template <int R, int V, bool kAdd>
WICK_FN void multiply_tile(const Left& a, const Right& b, int64_t depth, float* out,
                           int64_t out_row) {
  Vec<float> acc[R][V] = {};
  const float* column[V];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v)
    column[v] = b.data + v * kWidth / kPanel * b.panel + v * kWidth % kPanel;
  if constexpr (kAdd) {
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = load(out + r * out_row + v * kWidth);
    }
  }
  for (int64_t i = 0; i < depth; ++i) {
    Vec<float> x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = load(column[v] + i * b.line);
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const Vec<float> y = splat(a.data[r * a.row + i * a.step]);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) acc[r][v] = fma(y, x[v], acc[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) store(out + r * out_row + v * kWidth, acc[r][v]);
  }
}

template <int V, bool kAdd>
WICK_FN void multiply_columns(int64_t rows, Left a, const Right& b, int64_t depth, float* out,
                              int64_t out_row) {
  for (; rows >= 6; rows -= 6, a.data += 6 * a.row, out += 6 * out_row) {
    multiply_tile<6, V, kAdd>(a, b, depth, out, out_row);
  }
  if (rows >= 3) {
    multiply_tile<3, V, kAdd>(a, b, depth, out, out_row);
    rows -= 3, a.data += 3 * a.row, out += 3 * out_row;
  }
  for (; rows > 0; --rows, a.data += a.row, out += out_row) {
    multiply_tile<1, V, kAdd>(a, b, depth, out, out_row);
  }
}

/// out [rows, columns] = or += a · b. columns is a multiple of 16.
template <bool kAdd>
WICK_NOINLINE void multiply(int64_t rows, int64_t columns, int64_t depth, const Left& a, Right b,
                            float* out, int64_t out_row) {
  constexpr int kWide = kVectorBytes == 64 ? 4 : 2;
  constexpr int64_t kColumns = kWide * kWidth;
  const auto advance = [&](int64_t by) __attribute__((always_inline)) {
    columns -= by, out += by;
    b.data += by % kPanel == 0 ? by / kPanel * b.panel : 0;
  };
  if constexpr (kColumns % kPanel == 0) {
    for (; columns >= kColumns; advance(kColumns)) {
      multiply_columns<kWide, kAdd>(rows, a, b, depth, out, out_row);
    }
  }
  for (; columns > 0; advance(kPanel)) {
    constexpr int kVectors = kPanel / kWidth;
    constexpr int kAtOnce = kVectors < kWide ? kVectors : kWide;
    for (int v = 0; v < kVectors; v += kAtOnce) {
      Right part = b;
      part.data += v * kWidth;
      multiply_columns<kAtOnce, kAdd>(rows, a, part, depth, out + v * kWidth, out_row);
    }
  }
}

// ---- Packing

/// Rows of f32 of one dtype's rows: element x of row r at r · padded + x; zeros up to `padded`.
template <class T>
WICK_FN void pack_row(const T* from, int64_t step, int64_t size, int64_t padded, float* to) {
  int64_t x = 0;
  if (step == 1) {
    for (; x + kWidth <= size; x += kWidth) store(to + x, load(from + x));
  }
  for (; x < size; ++x) to[x] = widen(from[x * step]);
  for (; x < padded; ++x) to[x] = 0.0f;
}
/// Rows [first, first + count) of q or g.
template <class T>
WICK_NOINLINE void pack_rows(const AttentionGradientTask& task, const HeadRows<const void*>& of,
                             int64_t first, int64_t count, int64_t size, int64_t padded,
                             float* to) {
  for (int64_t r = first; r < first + count; ++r, to += padded) {
    const T* from =
        static_cast<const T*>(of.data) + r % task.heads * of.head + r / task.heads * of.row;
    pack_row(from, of.step, size, padded, to);
  }
}
/// Keys or values [first, first + count) as rows.
template <class T>
WICK_NOINLINE void pack_keys(const HeadRows<const void*>& of, int64_t first, int64_t count,
                             int64_t size, int64_t padded, float* to) {
  for (int64_t j = first; j < first + count; ++j, to += padded) {
    pack_row(static_cast<const T*>(of.data) + j * of.row, of.step, size, padded, to);
  }
}
/// Keys or values [first, first + count) as panels [count / 16][size][16], zeros behind them. rows:
/// working memory for 16 rows.
template <class T>
WICK_NOINLINE void pack_panels(const HeadRows<const void*>& of, int64_t first, int64_t count,
                               int64_t size, float* rows, int64_t padded, float* to) {
  for (int64_t j = 0; j < count; j += kPanel, to += kPanel * size) {
    const int64_t there = min(kPanel, count - j);
    pack_keys<T>(of, first + j, there, size, padded, rows);
    for (int64_t x = there * padded; x < kPanel * padded; ++x) rows[x] = 0.0f;
    const Word* lines[kPanel];
    for (int64_t i = 0; i < kPanel; ++i) {
      lines[i] = reinterpret_cast<const Word*>(rows + i * padded);
    }
    transpose_words<kPanel>(lines, size, reinterpret_cast<Word*>(to));
  }
}

// ---- Scores

/// The part of the row r's keys in [first, first + count), counted from `first`.
struct Seen {
  int64_t begin, end;
  WICK_FN Seen(const AttentionGradientTask& task, int64_t r, int64_t first, int64_t count) {
    const int64_t query = r / task.heads;
    begin = max(max(query + task.low, 0) - first, 0);
    end = min(min(query + task.high, task.keys) - first, count);
    if (end < begin) end = begin;
  }
};

template <class M>
WICK_FN void add_mask(float* s, const Seen& seen, const void* mask, int64_t at, int64_t step) {
  const M* from = static_cast<const M*>(mask) + at;
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    if constexpr (math::kSame<M, uint8_t>) {
      s[j] = from[j * step] != 0 ? s[j] : -__builtin_huge_valf();
    } else {
      s[j] = s[j] + widen(from[j * step]);
    }
  }
}

/// Replaces dot products of row r with the keys from `first` on by scores. bend: null, or the
/// destination of the derivatives of the soft cap.
WICK_FN void shape_scores(const AttentionGradientTask& task, int64_t r, int64_t first,
                          const Seen& seen, float* s, float* bend) {
  if (task.soft_cap > 0.0f) {
    const float cap = task.soft_cap, scale = task.scale;
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      const float t = math::tanh(s[j] * scale / cap);
      bend[j] = 1.0f - t * t;
      s[j] = cap * t;
    }
  } else {
    for (int64_t j = seen.begin; j < seen.end; ++j) s[j] = s[j] * task.scale;
  }
  const int64_t query = r / task.heads, head = r % task.heads;
  if (task.slopes != nullptr) {
    const float slope = task.slopes[head * task.slopes_step];
    const int64_t own = query + task.shift - first;
    for (int64_t j = seen.begin; j < seen.end; ++j)
      s[j] = s[j] + slope * static_cast<float>(j - own);
  }
  if (task.mask == nullptr) return;
  const int64_t at = head * task.mask_head + query * task.mask_query + first * task.mask_key;
  switch (task.mask_kind) {
    case MaskKind::hides:
      return add_mask<uint8_t>(s, seen, task.mask, at, task.mask_key);
    case MaskKind::f32:
      return add_mask<float>(s, seen, task.mask, at, task.mask_key);
    case MaskKind::f16:
      return add_mask<f16>(s, seen, task.mask, at, task.mask_key);
    case MaskKind::bf16:
      return add_mask<bf16>(s, seen, task.mask, at, task.mask_key);
  }
}

/// Replaces scores by weights.
WICK_FN void weigh(float* s, const Seen& seen, const GradientSums& sums) {
  const float largest = sums.largest, inverse = sums.inverse;
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    s[j] = math::exp_of_negative(s[j] - largest) * inverse;
  }
}
/// Replaces weights by the gradients of scores, with zeros for keys in [0, count) that the row
/// doesn't see. p: the dot products of g and v.
WICK_FN void bend_back(float* s, const float* p, const float* bend, const Seen& seen, int64_t count,
                       float delta) {
  for (int64_t j = 0; j < seen.begin; ++j) s[j] = 0.0f;
  for (int64_t j = seen.end; j < count; ++j) s[j] = 0.0f;
  if (bend != nullptr) {
    for (int64_t j = seen.begin; j < seen.end; ++j) s[j] = s[j] * (p[j] - delta) * bend[j];
  } else {
    for (int64_t j = seen.begin; j < seen.end; ++j) s[j] = s[j] * (p[j] - delta);
  }
}

/// A sum of f(0), f(1), … in vectors, and then of their lanes.
template <class F>
WICK_FN float sum_of(int64_t begin, int64_t end, const F& f) {
  constexpr int kSums = 64;
  float sums[kSums] = {};
  int64_t j = begin;
  for (; j + kSums <= end; j += kSums) {
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] + f(j + i);
  }
  for (; j < end; ++j) sums[j % kSums] = sums[j % kSums] + f(j);
  for (int half = kSums / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  }
  return sums[0];
}

/// The sums of row r: s are its scores, which become exponentials, p the dot products of g and v.
/// Stores the row's part of the gradient of its sink.
WICK_NOINLINE GradientSums sums_of_row(const AttentionGradientTask& task, int64_t r, float* s,
                                       const float* p, const Seen& seen) {
  GradientSums sums = {0.0f, 0.0f, 0.0f};
  const float sink =
      task.sinks == nullptr ? -__builtin_huge_valf() : task.sinks[r % task.heads * task.sinks_step];
  float largest = sink;
  for (int64_t j = seen.begin; j < seen.end; ++j) largest = s[j] > largest ? s[j] : largest;
  const float base = largest == -__builtin_huge_valf() ? 0.0f : largest;
  for (int64_t j = seen.begin; j < seen.end; ++j) s[j] = math::exp_of_negative(s[j] - base);
  float l = sum_of(seen.begin, seen.end, [&](int64_t j) { return s[j]; });
  if (task.sinks != nullptr) l = l + math::exp_of_negative(sink - base);
  if (l != 0.0f) {
    sums.largest = base, sums.inverse = 1.0f / l;
    sums.delta =
        sum_of(seen.begin, seen.end, [&](int64_t j) { return s[j] * p[j]; }) * sums.inverse;
  }
  if (task.d_sinks != nullptr) {
    const float weight = math::exp_of_negative(sink - base) * sums.inverse;
    task.d_sinks[r % task.heads * task.d_sinks_head + r / task.heads * task.d_sinks_query] =
        0.0f - weight * sums.delta;
  }
  return sums;
}

/// Stores a row of f32, multiplied by a number.
template <class T>
WICK_FN void store_row(T* to, int64_t step, const float* from, int64_t size, float by) {
  int64_t x = 0;
  if (step == 1) {
    const Vec<float> factor = splat(by);
    for (; x + kWidth <= size; x += kWidth) store(to + x, load(from + x) * factor);
  }
  for (; x < size; ++x) to[x * step] = narrow<T>(from[x] * by);
}

// ---- The kernels

template <class T>
void rows(const AttentionGradientTask& task) {
  const int64_t dp = gradient_padded(task.d), ep = gradient_padded(task.e), count = task.count;
  const int64_t last = task.first + count - 1;
  const int64_t begin = max(task.first / task.heads + task.low, 0),
                end = min(last / task.heads + task.high, task.keys);
  const int64_t keys = max(end - begin, 0);
  const int64_t line = gradient_padded(keys + kGradientChunk);
  float* const q = task.scratch;
  float* const g = q + count * dp;
  float* const dq = g + count * ep;
  float* const s = dq + count * dp;
  float* const p = s + count * line;
  float* const bend = p + count * line;
  float* const k = bend + count * line;  // a chunk as panels, or as rows
  float* const v = k + kGradientChunk * dp;
  pack_rows<T>(task, task.q, task.first, count, task.d, dp, q);
  pack_rows<T>(task, task.g, task.first, count, task.e, ep, g);
  float* const lines = v + kGradientChunk * ep;  // 16 rows
  for (int64_t at = 0; at < keys; at += kGradientChunk) {
    const int64_t there = min(kGradientChunk, keys - at);
    const int64_t columns = (there + kPanel - 1) / kPanel * kPanel;
    pack_panels<T>(task.k, begin + at, there, task.d, lines, dp, k);
    multiply<false>(count, columns, task.d, {q, dp, 1}, {k, kPanel, kPanel * task.d}, s + at, line);
    pack_panels<T>(task.v, begin + at, there, task.e, lines, ep, v);
    multiply<false>(count, columns, task.e, {g, ep, 1}, {v, kPanel, kPanel * task.e}, p + at, line);
  }
  const bool capped = task.soft_cap > 0.0f;
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = task.first + r;
    const Seen seen(task, row, begin, keys);
    float* const of_row = s + r * line;
    float* const bend_of_row = capped ? bend + r * line : nullptr;
    shape_scores(task, row, begin, seen, of_row, bend_of_row);
    const GradientSums sums = sums_of_row(task, row, of_row, p + r * line, seen);
    task.sums[row] = sums;
    for (int64_t j = seen.begin; j < seen.end; ++j) of_row[j] = of_row[j] * sums.inverse;
    bend_back(of_row, p + r * line, bend_of_row, seen, keys, sums.delta);
  }
  if (task.dq.data == nullptr) return;
  for (int64_t i = 0; i < count * dp; ++i) dq[i] = 0.0f;
  for (int64_t at = 0; at < keys; at += kGradientChunk) {
    const int64_t there = min(kGradientChunk, keys - at);
    pack_keys<T>(task.k, begin + at, there, task.d, dp, k);
    multiply<true>(count, dp, there, {s + at, line, 1}, {k, dp, kPanel}, dq, dp);
  }
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = task.first + r;
    T* const to = static_cast<T*>(task.dq.data) + row % task.heads * task.dq.head +
                  row / task.heads * task.dq.row;
    store_row(to, task.dq.step, dq + r * dp, task.d, task.scale);
  }
}

template <class T>
void keys(const AttentionGradientTask& task) {
  const int64_t dp = gradient_padded(task.d), ep = gradient_padded(task.e);
  const int64_t first = task.first, count = task.count;
  float* const k = task.scratch;
  float* const v = k + kGradientKeys * dp;
  float* const dk = v + kGradientKeys * ep;
  float* const dv = dk + kGradientKeys * dp;
  float* const q = dv + kGradientKeys * ep;
  float* const g = q + kGradientRows * dp;
  float* const s = g + kGradientRows * ep;
  float* const p = s + kGradientRows * kGradientKeys;
  float* const bend = p + kGradientRows * kGradientKeys;
  // q and g aren't in use yet, and have 64 rows.
  pack_panels<T>(task.k, first, count, task.d, q, dp, k);
  pack_panels<T>(task.v, first, count, task.e, g, ep, v);
  for (int64_t i = 0; i < kGradientKeys * (dp + ep); ++i) dk[i] = 0.0f;
  const int64_t columns = (count + kPanel - 1) / kPanel * kPanel;
  // The queries that see any of the keys.
  const int64_t begin = max(first - task.high + 1, 0),
                end = min(first + count - task.low, task.queries);
  const bool capped = task.soft_cap > 0.0f;
  for (int64_t from = begin * task.heads; from < end * task.heads; from += kGradientRows) {
    const int64_t there = min(kGradientRows, end * task.heads - from);
    pack_rows<T>(task, task.q, from, there, task.d, dp, q);
    pack_rows<T>(task, task.g, from, there, task.e, ep, g);
    multiply<false>(there, columns, task.d, {q, dp, 1}, {k, kPanel, kPanel * task.d}, s,
                    kGradientKeys);
    multiply<false>(there, columns, task.e, {g, ep, 1}, {v, kPanel, kPanel * task.e}, p,
                    kGradientKeys);
    for (int64_t r = 0; r < there; ++r) {
      const Seen seen(task, from + r, first, count);
      float* const of_row = s + r * kGradientKeys;
      shape_scores(task, from + r, first, seen, of_row,
                   capped ? bend + r * kGradientKeys : nullptr);
      weigh(of_row, seen, task.sums[from + r]);
      for (int64_t j = 0; j < seen.begin; ++j) of_row[j] = 0.0f;
      for (int64_t j = seen.end; j < count; ++j) of_row[j] = 0.0f;
    }
    multiply<true>(count, ep, there, {s, 1, kGradientKeys}, {g, ep, kPanel}, dv, ep);
    for (int64_t r = 0; r < there; ++r) {
      const Seen seen(task, from + r, first, count);
      bend_back(s + r * kGradientKeys, p + r * kGradientKeys,
                capped ? bend + r * kGradientKeys : nullptr, seen, count,
                task.sums[from + r].delta);
    }
    multiply<true>(count, dp, there, {s, 1, kGradientKeys}, {q, dp, kPanel}, dk, dp);
  }
  for (int64_t j = 0; j < count; ++j) {
    store_row(static_cast<T*>(task.dk.data) + (first + j) * task.dk.row, task.dk.step, dk + j * dp,
              task.d, task.scale);
    store_row(static_cast<T*>(task.dv.data) + (first + j) * task.dv.row, task.dv.step, dv + j * ep,
              task.e, 1.0f);
  }
}

template <class T>
void whole(const AttentionGradientTask& task) {
  const int64_t dp = gradient_padded(task.d), ep = gradient_padded(task.e);
  const int64_t line = gradient_padded(task.keys);
  float* const k_panels = task.scratch;
  float* const v_panels = k_panels + line * dp;
  float* const k = v_panels + line * ep;
  float* const q = k + line * dp;
  float* const g = q + kGradientBlock * dp;
  float* const dq = g + kGradientBlock * ep;
  float* const s = dq + kGradientBlock * dp;
  float* const p = s + kGradientBlock * line;
  float* const bend = p + kGradientBlock * line;
  float* const lines = bend + kGradientBlock * line;
  pack_panels<T>(task.k, 0, task.keys, task.d, lines, dp, k_panels);
  pack_panels<T>(task.v, 0, task.keys, task.e, lines, ep, v_panels);
  if (task.dq.data != nullptr) pack_keys<T>(task.k, 0, task.keys, task.d, dp, k);
  const bool of_keys = task.dk_sums != nullptr, capped = task.soft_cap > 0.0f;
  if (of_keys) {
    for (int64_t i = 0; i < task.keys * dp; ++i) task.dk_sums[i] = 0.0f;
    for (int64_t i = 0; i < task.keys * ep; ++i) task.dv_sums[i] = 0.0f;
  }
  for (int64_t first = task.first; first < task.first + task.count; first += kGradientBlock) {
    const int64_t count = min(kGradientBlock, task.first + task.count - first);
    const int64_t begin = max(first / task.heads + task.low, 0) / kPanel * kPanel,
                  end = min((first + count - 1) / task.heads + task.high, task.keys);
    const int64_t keys = max(end - begin, 0), columns = (keys + kPanel - 1) / kPanel * kPanel;
    pack_rows<T>(task, task.q, first, count, task.d, dp, q);
    pack_rows<T>(task, task.g, first, count, task.e, ep, g);
    multiply<false>(count, columns, task.d, {q, dp, 1},
                    {k_panels + begin * task.d, kPanel, kPanel * task.d}, s, line);
    multiply<false>(count, columns, task.e, {g, ep, 1},
                    {v_panels + begin * task.e, kPanel, kPanel * task.e}, p, line);
    for (int64_t r = 0; r < count; ++r) {
      const Seen seen(task, first + r, begin, keys);
      float* const of_row = s + r * line;
      shape_scores(task, first + r, begin, seen, of_row, capped ? bend + r * line : nullptr);
      const GradientSums sums = sums_of_row(task, first + r, of_row, p + r * line, seen);
      task.sums[first + r] = sums;
      for (int64_t j = 0; j < seen.begin; ++j) of_row[j] = 0.0f;
      for (int64_t j = seen.begin; j < seen.end; ++j) of_row[j] = of_row[j] * sums.inverse;
      for (int64_t j = seen.end; j < keys; ++j) of_row[j] = 0.0f;
    }
    if (of_keys) {
      multiply<true>(keys, ep, count, {s, 1, line}, {g, ep, kPanel}, task.dv_sums + begin * ep, ep);
    }
    for (int64_t r = 0; r < count; ++r) {
      bend_back(s + r * line, p + r * line, capped ? bend + r * line : nullptr,
                Seen(task, first + r, begin, keys), keys, task.sums[first + r].delta);
    }
    if (of_keys) {
      multiply<true>(keys, dp, count, {s, 1, line}, {q, dp, kPanel}, task.dk_sums + begin * dp, dp);
    }
    if (task.dq.data == nullptr) continue;
    multiply<false>(count, dp, keys, {s, line, 1}, {k + begin * dp, dp, kPanel}, dq, dp);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r;
      T* const to = static_cast<T*>(task.dq.data) + row % task.heads * task.dq.head +
                    row / task.heads * task.dq.row;
      store_row(to, task.dq.step, dq + r * dp, task.d, task.scale);
    }
  }
}

template <class T>
void store_sums(const AttentionGradientTask& task) {
  const int64_t dp = gradient_padded(task.d), ep = gradient_padded(task.e);
  const auto add = [&](float* sums, int64_t width, int64_t key) {
    float* const to = sums + key * width;
    for (int64_t part = 1; part < task.parts; ++part) {
      const float* const from = to + part * task.keys * width;
      for (int64_t x = 0; x < width; x += kWidth) store(to + x, load(to + x) + load(from + x));
    }
    return to;
  };
  for (int64_t j = task.first; j < task.first + task.count; ++j) {
    store_row(static_cast<T*>(task.dk.data) + j * task.dk.row, task.dk.step,
              add(task.dk_sums, dp, j), task.d, task.scale);
    store_row(static_cast<T*>(task.dv.data) + j * task.dv.row, task.dv.step,
              add(task.dv_sums, ep, j), task.e, 1.0f);
  }
}

}  // namespace

constexpr AttentionGradientKernels attention_gradient_kernels = {
    .whole = {whole<bf16>, whole<f16>, whole<float>},
    .store = {store_sums<bf16>, store_sums<f16>, store_sums<float>},
    .rows = {rows<bf16>, rows<f16>, rows<float>},
    .keys = {keys<bf16>, keys<f16>, keys<float>},
};
static_assert(complete(attention_gradient_kernels));

}  // namespace wick::cpu::WICK_ISA
