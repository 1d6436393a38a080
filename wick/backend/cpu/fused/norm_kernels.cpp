#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/fused/runs.h"
#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

// The exponentials of rows up to this length are kept if the output can't hold them. Longer rows
// compute them twice, with the same bits.
constexpr int64_t kKeptRow = 16384;

// Neighbouring pairs that rope rotates at a time.
constexpr int64_t kRopePairs = 32;

/// y = (x * r) * w of a contiguous run, each product rounded, then the store. kStream: prefetches
/// `ahead` meanwhile, so that memory isn't idle during non-temporal stores.
template <bool kStream, class T, class W>
WICK_FN void scale_run(const T* x, const W* w, T* y, int64_t n, Compute<T> r,
                       const T* ahead = nullptr) {
  constexpr int kWidth = kStep<T>;
  const Vec<Compute<T>> rv = splat(r);
  int64_t i = 0;
  if constexpr (kStep<T> == kStep<W>) {
    const auto scaled = [&](int64_t at) { return (load(x + at) * rv) * load(w + at); };
    for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
      store_pair<kStream>(y + i, scaled(i), scaled(i + kWidth));
      if constexpr (kStream) {
        __builtin_prefetch(ahead + i);
        __builtin_prefetch(ahead + i + kWidth);
      }
    }
    for (; i + kWidth <= n; i += kWidth) store(y + i, scaled(i));
  }
  for (; i < n; ++i) y[i] = narrow<T>((widen(x[i]) * r) * static_cast<Compute<T>>(widen(w[i])));
}

// y = x / sqrt(mean(x * x) + eps) * weight for each row.
// Index map: one row after another; a row is read twice, the second time from a near cache while it
// is below some 4096 elements. The next row's sum comes before a row is scaled, so that the latency
// of its tree, root and division hides behind the scaling. Order: row sum of the rounded squares;
// then r = 1 / sqrt(sum / n + eps), y = (x * r) * weight, every step rounded. Bytes moved: n *
// (sizeof x + sizeof y) a row, and the weight once.
template <class T>
WICK_FN Compute<T> rms_scale(Compute<T> sum, int64_t n, float eps) {
  using A = Compute<T>;
  return A{1} / math::sqrt(sum / static_cast<A>(n) + static_cast<A>(eps));
}

inline constexpr auto kSquare = [](auto v) { return v * v; };

template <bool kStream, class T, class W>
WICK_FN void rms_norm_dense(const RowsIn& xs, const W* w, const RowsOut& ys, int64_t count,
                            int64_t n, float eps) {
  using A = Compute<T>;
  const auto* x = static_cast<const T*>(xs.data);
  auto* y = static_cast<T*>(ys.data);
  A r = rms_scale<T>(row_sum(x, n, kSquare), n, eps);
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    const A next = row + 1 < count ? rms_scale<T>(row_sum(x + xs.row, n, kSquare), n, eps) : A{0};
    scale_run<kStream>(x, w, y, n, r, row + 2 < count ? x + 2 * xs.row : x);
    r = next;
  }
}

template <class T, class W>
WICK_FN void rms_norm_strided(const RowsIn& xs, const RowsIn& ws, const RowsOut& ys, int64_t count,
                              int64_t n, float eps) {
  using A = Compute<T>;
  const auto* x = static_cast<const T*>(xs.data);
  const auto* w = static_cast<const W*>(ws.data);
  auto* y = static_cast<T*>(ys.data);
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    T x_run[kSumChunk], y_run[kSumChunk];
    W w_run[kSumChunk];
    ChunkSums<A> sums;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = min(n - i, kSumChunk);
      sums.add(chunk_sum(run_of(x, xs.step, i, length, x_run), length, kSquare));
    }
    const A r = rms_scale<T>(sums.total(), n, eps);
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = min(n - i, kSumChunk);
      scale_run<false>(run_of(x, xs.step, i, length, x_run), run_of(w, ws.step, i, length, w_run),
                       y_run, length, r);
      scatter_run(y, ys.step, i, length, y_run);
    }
  }
}

template <class T, class W>
void rms_norm(const RowsIn& xs, const RowsIn& ws, const RowsOut& ys, int64_t count, int64_t n,
              float eps) {
  const bool dense = xs.step == 1 && ws.step == 1 && ys.step == 1;
  if (dense && ys.stream) {
    rms_norm_dense<true, T>(xs, static_cast<const W*>(ws.data), ys, count, n, eps);
  } else if (dense) {
    rms_norm_dense<false, T>(xs, static_cast<const W*>(ws.data), ys, count, n, eps);
  } else {
    rms_norm_strided<T, W>(xs, ws, ys, count, n, eps);
  }
}

/// The largest of a contiguous run and `m`. Ignores NaN, whose exponential makes the whole row NaN,
/// and the sign of zero, which doesn't change x - m.
template <class T>
WICK_FN Compute<T> run_max(const T* x, int64_t n, Compute<T> m) {
  constexpr int kWidth = kStep<T>;
  Vec<Compute<T>> a[4];
  for (int v = 0; v < 4; ++v) a[v] = splat(m);
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    for (int v = 0; v < 4; ++v) {
      a[v] = max(load(x + i + v * kWidth), a[v]);
    }
  }
  for (; i + kWidth <= n; i += kWidth) a[0] = max(load(x + i), a[0]);
  m = reduce_max(max(max(a[0], a[1]), max(a[2], a[3])));
  for (; i < n; ++i) m = widen(x[i]) > m ? widen(x[i]) : m;
  return m;
}

/// out = x - m in the compute type.
template <class T>
WICK_FN void subtract_run(const T* x, Compute<T> m, Compute<T>* out, int64_t n) {
  constexpr int kWidth = kStep<T>;
  const Vec<Compute<T>> mv = splat(m);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(out + i, load(x + i) - mv);
  for (; i < n; ++i) out[i] = widen(x[i]) - m;
}

template <class A>
WICK_FN void exp_run(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = math::exp(x[i]);
}

/// e = exp(x - m) of a chunk of a row, and their sum in the order of chunk_sum: each exponential is
/// added to its accumulator while it is in a register.
template <class T>
WICK_FN Compute<T> exp_chunk(const T* x, Compute<T> m, Compute<T>* e, int64_t n) {
  using A = Compute<T>;
  constexpr int kWidth = kLanes<A>;
  constexpr int kGroup = 8 * kWidth;  // accumulators held in registers at a time
  constexpr int kGroups = kGroup < kSumAccumulators ? kSumAccumulators / kGroup : 1;
  alignas(64) A acc[kSumAccumulators];
  const Vec<Compute<T>> mv = splat(m);
  const int64_t full = n / kSumAccumulators * kSumAccumulators;
  for (int g = 0; g < kGroups; ++g) {
    Vec<Compute<T>> a[8] = {};
    for (int64_t i = g * kGroup; i < full; i += kSumAccumulators) {
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) {
        const Vec<Compute<T>> y = exp_lanes<A>(load(x + i + v * kWidth) - mv);
        store(e + i + v * kWidth, y);
        a[v] = a[v] + y;
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) store(acc + g * kGroup + v * kWidth, a[v]);
  }
  subtract_run(x + full, m, e + full, n - full);
  exp_run(e + full, n - full);
  for (int64_t i = full; i < n; ++i) acc[i - full] = acc[i - full] + e[i];
  return sum_tree(acc);
}

/// y = f(e), rounded; f maps a vector or one element.
template <class T, class F>
WICK_FN void finish_run(const Compute<T>* e, T* y, int64_t n, const F& f) {
  constexpr int kWidth = kStep<T>;
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    store_pair<false>(y + i, f(load(e + i)), f(load(e + i + kWidth)));
  }
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(e + i)));
  for (; i < n; ++i) y[i] = narrow<T>(f(e[i]));
}

/// One row of softmax. `gathered` holds a chunk if x or y isn't dense. `kept` holds exponentials if
/// y can't: those of the whole row up to kKeptRow elements, else those of a chunk.
template <class T>
WICK_FN void softmax_row(const T* x, int64_t x_step, T* y, int64_t y_step, int64_t n, bool log,
                         T* gathered, Compute<T>* kept) {
  using A = Compute<T>;
  A m = -static_cast<A>(__builtin_huge_val());
  for (int64_t i = 0; i < n; i += kSumChunk) {
    const int64_t length = min(n - i, kSumChunk);
    m = run_max(run_of(x, x_step, i, length, gathered), length, m);
  }
  A* all = n <= kKeptRow ? kept : nullptr;
  if constexpr (math::kSame<T, A>) {
    if (y_step == 1) all = y;
  }
  if (log) all = nullptr;
  ChunkSums<A> sums;
  for (int64_t i = 0; i < n; i += kSumChunk) {
    const int64_t length = min(n - i, kSumChunk);
    A* e = all != nullptr ? all + i : kept;
    sums.add(exp_chunk(run_of(x, x_step, i, length, gathered), m, e, length));
  }
  const A sum = sums.total();
  const A r = A{1} / sum;
  const A log_sum = log ? math::log(sum) : A{0};
  for (int64_t i = 0; i < n; i += kSumChunk) {
    const int64_t length = min(n - i, kSumChunk);
    A* e = all != nullptr ? all + i : kept;
    if (all == nullptr) {
      subtract_run(run_of(x, x_step, i, length, gathered), m, e, length);
      if (!log) exp_run(e, length);
    }
    T* out = y_step == 1 ? y + i : gathered;
    if (log) {
      finish_run(e, out, length, [log_sum](auto v) { return v - log_sum; });
    } else {
      finish_run(e, out, length, [r](auto v) { return v * r; });
    }
    if (y_step != 1) scatter_run(y, y_step, i, length, gathered);
  }
}

// y = exp(x - max) / sum, or its logarithm, for each row.
// Index map: one row after another, in runs of 4096. Order: m = largest; e = exp(x - m); s = row
// sum of e; y = e * (1 / s), or (x - m) - log(s); every step rounded. Bytes moved: a row is read
// three times and written once, from memory once while it fits a cache.
template <class T>
void softmax(const RowsIn& xs, const RowsOut& ys, int64_t count, int64_t n, bool log) {
  T gathered[kSumChunk];
  alignas(64) Compute<T> kept[kKeptRow];
  const auto* x = static_cast<const T*>(xs.data);
  auto* y = static_cast<T*>(ys.data);
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    softmax_row(x, xs.step, y, ys.step, n, log, gathered, kept);
  }
}

// y0 = x0 * c - x1 * s, y1 = x0 * s + x1 * c, each product and the difference rounded; elements
// from 2 * half on are copied. Index map: one row (a head of one position) after another; pairs (i,
// i + half), or (2i, 2i + 1). Bytes moved: a row read and written, cos and sin read.
template <class T>
WICK_FN void rope_halves(const T* x, int64_t xs, const float* c, int64_t cs, const float* s,
                         int64_t ss, T* y, int64_t ys, int64_t count, int64_t half) {
  using A = Compute<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A x0 = widen(x[i * xs]), x1 = widen(x[(i + half) * xs]);
    const A cv = static_cast<A>(c[i * cs]), sv = static_cast<A>(s[i * ss]);
    y[i * ys] = narrow<T>(x0 * cv - x1 * sv);
    y[(i + half) * ys] = narrow<T>(x0 * sv + x1 * cv);
  }
}

/// Dense rows. kStream: both halves of a row start at a cache line.
template <bool kStream, class T>
WICK_FN void rope_halves_dense(const T* x, const float* c, const float* s, T* y, int64_t half) {
  constexpr int kWidth = kStep<T>;
  int64_t i = 0;
  if constexpr (kStep<T> == kStep<float>) {
    const auto rotated = [&](int64_t at, Vec<float>* y0, Vec<float>* y1) {
      const Vec<float> x0 = load(x + at), x1 = load(x + at + half), cv = load(c + at),
                       sv = load(s + at);
      *y0 = x0 * cv - x1 * sv;
      *y1 = x0 * sv + x1 * cv;
    };
    Vec<float> a0, a1, b0, b1;
    for (; i + 2 * kWidth <= half; i += 2 * kWidth) {
      rotated(i, &a0, &a1);
      rotated(i + kWidth, &b0, &b1);
      store_pair<kStream>(y + i, a0, b0);
      store_pair<kStream>(y + i + half, a1, b1);
    }
    for (; i + kWidth <= half; i += kWidth) {
      rotated(i, &a0, &a1);
      store(y + i, a0);
      store(y + i + half, a1);
    }
  }
  rope_halves(x + i, 1, c + i, 1, s + i, 1, y + i, 1, half - i, half);
}

// Differences and sums are computed in separate arrays before they are interleaved. Otherwise GCC
// uses one instruction that subtracts and adds alternately, and GCC 12.2 fuses the products into it
// in spite of -ffp-contract=off.
template <class T>
WICK_FN void rope_pairs(const T* x, int64_t xs, const float* c, int64_t cs, const float* s,
                        int64_t ss, T* y, int64_t ys, int64_t count) {
  using A = Compute<T>;
  A x0[kRopePairs], x1[kRopePairs], cv[kRopePairs], sv[kRopePairs], y0[kRopePairs], y1[kRopePairs];
  for (int64_t i = 0; i < count; ++i) {
    x0[i] = widen(x[2 * i * xs]), x1[i] = widen(x[(2 * i + 1) * xs]);
  }
  for (int64_t i = 0; i < count; ++i) cv[i] = static_cast<A>(c[i * cs]);
  for (int64_t i = 0; i < count; ++i) sv[i] = static_cast<A>(s[i * ss]);
  for (int64_t i = 0; i < count; ++i) y0[i] = x0[i] * cv[i] - x1[i] * sv[i];
  for (int64_t i = 0; i < count; ++i) y1[i] = x0[i] * sv[i] + x1[i] * cv[i];
  for (int64_t i = 0; i < count; ++i) {
    y[2 * i * ys] = narrow<T>(y0[i]), y[(2 * i + 1) * ys] = narrow<T>(y1[i]);
  }
}

template <class T>
WICK_FN void rope_neighbours(const T* x, int64_t xs, const float* c, int64_t cs, const float* s,
                             int64_t ss, T* y, int64_t ys, int64_t half) {
  const bool dense = xs == 1 && cs == 1 && ss == 1 && ys == 1;
  for (int64_t start = 0; start < half; start += kRopePairs) {
    const int64_t count = min(half - start, kRopePairs);
    const T* from = x + 2 * start * xs;
    T* to = y + 2 * start * ys;
    if (dense && count == kRopePairs) {  // constant strides and sizes: whole vectors
      rope_pairs(from, 1, c + start, 1, s + start, 1, to, 1, kRopePairs);
    } else {
      rope_pairs(from, xs, c + start * cs, cs, s + start * ss, ss, to, ys, count);
    }
  }
}

template <class T>
void rope(const RopeRows& rows, bool interleaved) {
  const auto* x = static_cast<const T*>(rows.x.data);
  const auto* c = static_cast<const float*>(rows.cos.data);
  const auto* s = static_cast<const float*>(rows.sin.data);
  auto* y = static_cast<T*>(rows.y.data);
  const int64_t xs = rows.x.step, cs = rows.cos.step, ss = rows.sin.step, ys = rows.y.step;
  const bool dense = xs == 1 && cs == 1 && ss == 1 && ys == 1;
  for (int64_t row = 0; row < rows.count; ++row) {
    if (interleaved) {
      rope_neighbours(x, xs, c, cs, s, ss, y, ys, rows.half);
    } else if (dense && rows.y.stream) {
      rope_halves_dense<true>(x, c, s, y, rows.half);
    } else if (dense) {
      rope_halves_dense<false>(x, c, s, y, rows.half);
    } else {
      rope_halves(x, xs, c, cs, s, ss, y, ys, rows.half, rows.half);
    }
    for (int64_t i = 2 * rows.half; i < rows.d; ++i) y[i * ys] = x[i * xs];
    x += rows.x.row;
    c += rows.cos.row;
    s += rows.sin.row;
    y += rows.y.row;
  }
}

template <DType kDType>
constexpr void add_dtype(FusedKernels& table) {
  constexpr auto d = static_cast<int>(kDType);
  if constexpr (!is_block(kDType)) {
    using T = Storage<kDType>;
    if constexpr (info(Op::rms_norm).dtypes.contains(kDType)) {
      table.rms_norm[d] = rms_norm<T, T>;
      table.rms_norm_f32_weight[d] = rms_norm<T, float>;
    }
    if constexpr (info(Op::softmax).dtypes.contains(kDType)) table.softmax[d] = softmax<T>;
    if constexpr (info(Op::rope).dtypes.contains(kDType)) table.rope[d] = rope<T>;
  }
}

constexpr FusedKernels make_table() {
  FusedKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr FusedKernels fused_kernels = make_table();
static_assert(complete(fused_kernels.rms_norm, Op::rms_norm));
static_assert(complete(fused_kernels.rms_norm_f32_weight, Op::rms_norm));
static_assert(complete(fused_kernels.softmax, Op::softmax));
static_assert(complete(fused_kernels.softmax, Op::log_softmax));
static_assert(complete(fused_kernels.rope, Op::rope));
static_assert(complete(fused_kernels.rope, Op::rope_interleaved));

}  // namespace wick::cpu::WICK_ISA
