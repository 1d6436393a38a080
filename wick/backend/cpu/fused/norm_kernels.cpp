#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/lanes.h"

namespace wick::cpu::WICK_ISA {
namespace {

// The exponentials of a row are kept up to this length where the output can't hold them; longer
// rows compute them twice, which gives the same bits.
constexpr int64_t kKeptRow = 16384;

// Neighbouring pairs that rope turns at a time.
constexpr int64_t kRopePairs = 32;

/// Elements [i, i + count) of a row as a contiguous run: in place, or gathered into `scratch`.
template <class T>
WICK_FN const T* run_of(const T* x, int64_t step, int64_t i, int64_t count, T* scratch) {
  if (step == 1) return x + i;
  for (int64_t j = 0; j < count; ++j) scratch[j] = x[(i + j) * step];
  return scratch;
}

template <class T>
WICK_FN void scatter_run(T* y, int64_t step, int64_t i, int64_t count, const T* run) {
  for (int64_t j = 0; j < count; ++j) y[(i + j) * step] = run[j];
}

WICK_FN int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// y = (x * r) * w over a contiguous run, each product rounded, then the store.
template <class T, class W>
WICK_FN void scale_run(const T* x, const W* w, T* y, int64_t n, AccOf<T> r) {
  constexpr int kWidth = kStep<T>;
  const VecOf<T> rv = splat(r);
  int64_t i = 0;
  if constexpr (kStep<T> == kStep<W>) {
    for (; i + kWidth <= n; i += kWidth) store(y + i, (load(x + i) * rv) * load(w + i));
  }
  for (; i < n; ++i) y[i] = narrow<T>((widen(x[i]) * r) * static_cast<AccOf<T>>(widen(w[i])));
}

// y = x / sqrt(mean(x * x) + eps) * weight for each row.
// Index map: one row after another; a row is read twice, the second time from a near cache while it
// is below some 4096 elements. The next row's sum comes before a row is scaled, so that the latency
// of its tree, root and division hides behind the scaling. Order: row sum of the rounded squares;
// then r = 1 / sqrt(sum / n + eps), y = (x * r) * weight, every step rounded. Bytes moved: n *
// (sizeof x + sizeof y) a row, and the weight once.
template <class T, class W>
void rms_norm(const RowsIn& xs, const RowsIn& ws, const RowsOut& ys, int64_t count, int64_t n,
              float eps) {
  using A = AccOf<T>;
  const auto square = [](auto v) { return v * v; };
  const auto* x = static_cast<const T*>(xs.data);
  const auto* w = static_cast<const W*>(ws.data);
  auto* y = static_cast<T*>(ys.data);
  const auto scale_of = [n, eps](A sum) {
    return A{1} / math::sqrt(sum / static_cast<A>(n) + static_cast<A>(eps));
  };
  if (xs.step == 1 && ws.step == 1 && ys.step == 1) {
    A r = scale_of(row_sum(x, n, square));
    for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
      const A next = row + 1 < count ? scale_of(row_sum(x + xs.row, n, square)) : A{0};
      scale_run(x, w, y, n, r);
      r = next;
    }
    return;
  }
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    T x_run[kSumChunk], y_run[kSumChunk];
    W w_run[kSumChunk];
    A sum = 0;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = smaller(n - i, kSumChunk);
      const A chunk = chunk_sum(run_of(x, xs.step, i, length, x_run), length, square);
      sum = i == 0 ? chunk : sum + chunk;
    }
    const A r = scale_of(sum);
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = smaller(n - i, kSumChunk);
      scale_run(run_of(x, xs.step, i, length, x_run), run_of(w, ws.step, i, length, w_run), y_run,
                length, r);
      scatter_run(y, ys.step, i, length, y_run);
    }
  }
}

/// The largest of a contiguous run and `m`. Ignores NaN and the sign of zero: a NaN makes the whole
/// row NaN through its exponential, and x - 0 has one value.
template <class T>
WICK_FN AccOf<T> run_max(const T* x, int64_t n, AccOf<T> m) {
  constexpr int kWidth = kStep<T>;
  VecOf<T> a[4];
  for (int v = 0; v < 4; ++v) a[v] = splat(m);
  int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
    for (int v = 0; v < 4; ++v) {
      const VecOf<T> next = load(x + i + v * kWidth);
      a[v] = next > a[v] ? next : a[v];
    }
  }
  for (; i + kWidth <= n; i += kWidth) {
    const VecOf<T> next = load(x + i);
    a[0] = next > a[0] ? next : a[0];
  }
  a[0] = a[1] > a[0] ? a[1] : a[0];
  a[2] = a[3] > a[2] ? a[3] : a[2];
  a[0] = a[2] > a[0] ? a[2] : a[0];
  for (int lane = 0; lane < kWidth; ++lane) m = a[0][lane] > m ? a[0][lane] : m;
  for (; i < n; ++i) m = widen(x[i]) > m ? widen(x[i]) : m;
  return m;
}

/// out = x - m, widened.
template <class T>
WICK_FN void subtract_run(const T* x, AccOf<T> m, AccOf<T>* out, int64_t n) {
  constexpr int kWidth = kStep<T>;
  const VecOf<T> mv = splat(m);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(out + i, load(x + i) - mv);
  for (; i < n; ++i) out[i] = widen(x[i]) - m;
}

template <class A>
WICK_FN void exp_run(A* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = math::exp(x[i]);
}

// y = exp(x - max) / sum, or its logarithm, for each row.
// Index map: one row after another, in runs of 4096. Order: m = largest; e = exp(x - m); s = row
// sum of e; y = e * (1 / s), or (x - m) - log(s); every step rounded. Bytes moved: a row is read
// three times and written once, from memory once while it fits a cache.
template <class T>
void softmax(const RowsIn& xs, const RowsOut& ys, int64_t count, int64_t n, bool log) {
  using A = AccOf<T>;
  constexpr int kWidth = kStep<T>;
  T gathered[kSumChunk];
  A kept[kKeptRow];
  const auto same = [](auto v) { return v; };
  const auto* x = static_cast<const T*>(xs.data);
  auto* y = static_cast<T*>(ys.data);
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    A m = -static_cast<A>(__builtin_huge_val());
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = smaller(n - i, kSumChunk);
      m = run_max(run_of(x, xs.step, i, length, gathered), length, m);
    }
    // Where the exponentials wait for their sum: the output, the scratch, or nowhere.
    A* all = n <= kKeptRow ? kept : nullptr;
    if constexpr (math::kSame<T, A>) {
      if (ys.step == 1) all = y;
    }
    if (log) all = nullptr;
    A sum = 0;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = smaller(n - i, kSumChunk);
      A* e = all != nullptr ? all + i : kept;
      subtract_run(run_of(x, xs.step, i, length, gathered), m, e, length);
      exp_run(e, length);
      const A chunk = chunk_sum(e, length, same);
      sum = i == 0 ? chunk : sum + chunk;
    }
    const A r = A{1} / sum;
    const A log_sum = math::log(sum);
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = smaller(n - i, kSumChunk);
      A* e = all != nullptr ? all + i : kept;
      if (all == nullptr) {
        subtract_run(run_of(x, xs.step, i, length, gathered), m, e, length);
        if (!log) exp_run(e, length);
      }
      T* out = ys.step == 1 ? y + i : gathered;
      const VecOf<T> rv = splat(r), lv = splat(log_sum);
      int64_t j = 0;
      for (; j + kWidth <= length; j += kWidth) {
        store(out + j, log ? load(e + j) - lv : load(e + j) * rv);
      }
      for (; j < length; ++j) out[j] = narrow<T>(log ? e[j] - log_sum : e[j] * r);
      if (ys.step != 1) scatter_run(y, ys.step, i, length, gathered);
    }
  }
}

// y0 = x0 * c - x1 * s, y1 = x0 * s + x1 * c, each product and the difference rounded; elements
// from 2 * half on are copied. Index map: one row (a head of one position) after another; pairs (i,
// i + half), or (2i, 2i + 1). Bytes moved: a row read and written, cos and sin read.
template <class T>
WICK_FN void rope_halves(const T* x, int64_t xs, const float* c, int64_t cs, const float* s,
                         int64_t ss, T* y, int64_t ys, int64_t half) {
  using A = AccOf<T>;
  constexpr int kWidth = kStep<T>;
  int64_t i = 0;
  if constexpr (kStep<T> == kStep<float>) {
    if (xs == 1 && cs == 1 && ss == 1 && ys == 1) {
      for (; i + kWidth <= half; i += kWidth) {
        const F32 x0 = load(x + i), x1 = load(x + i + half), cv = load(c + i), sv = load(s + i);
        store(y + i, x0 * cv - x1 * sv);
        store(y + i + half, x0 * sv + x1 * cv);
      }
    }
  }
  for (; i < half; ++i) {
    const A x0 = widen(x[i * xs]), x1 = widen(x[(i + half) * xs]);
    const A cv = static_cast<A>(c[i * cs]), sv = static_cast<A>(s[i * ss]);
    y[i * ys] = narrow<T>(x0 * cv - x1 * sv);
    y[(i + half) * ys] = narrow<T>(x0 * sv + x1 * cv);
  }
}

// Differences and sums go to arrays of their own before they are interleaved: side by side, GCC
// makes them one instruction that subtracts and adds in turn, and (12.2) fuses the products into it
// in spite of -ffp-contract=off.
template <class T>
WICK_FN void rope_pairs(const T* x, int64_t xs, const float* c, int64_t cs, const float* s,
                        int64_t ss, T* y, int64_t ys, int64_t count) {
  using A = AccOf<T>;
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
    const int64_t count = smaller(half - start, kRopePairs);
    const T* from = x + 2 * start * xs;
    T* to = y + 2 * start * ys;
    if (dense && count == kRopePairs) {  // known strides and sizes: whole vectors, no loops
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
  for (int64_t row = 0; row < rows.count; ++row) {
    const int64_t xs = rows.x.step, cs = rows.cos.step, ss = rows.sin.step, ys = rows.y.step;
    if (interleaved) {
      rope_neighbours(x, xs, c, cs, s, ss, y, ys, rows.half);
    } else {
      rope_halves(x, xs, c, cs, s, ss, y, ys, rows.half);
    }
    for (int64_t i = 2 * rows.half; i < rows.d; ++i) y[i * ys] = x[i * xs];
    x += rows.x.row;
    c += rows.cos.row;
    s += rows.sin.row;
    y += rows.y.row;
  }
}

}  // namespace

// In the order of dtypes.def: u8 u32 i16 i32 i64 bf16 f16 f32 f64 f8e4m3.
extern const FusedKernels fused_kernels;
const FusedKernels fused_kernels = {
    .rms_norm = {nullptr, nullptr, nullptr, nullptr, nullptr, rms_norm<math::bf16, math::bf16>,
                 rms_norm<math::f16, math::f16>, rms_norm<float, float>, rms_norm<double, double>,
                 rms_norm<math::f8e4m3, math::f8e4m3>},
    .rms_norm_f32_weight = {nullptr, nullptr, nullptr, nullptr, nullptr,
                            rms_norm<math::bf16, float>, rms_norm<math::f16, float>,
                            rms_norm<float, float>, rms_norm<double, float>,
                            rms_norm<math::f8e4m3, float>},
    .softmax = {nullptr, nullptr, nullptr, nullptr, nullptr, softmax<math::bf16>,
                softmax<math::f16>, softmax<float>, softmax<double>, softmax<math::f8e4m3>},
    .rope = {nullptr, nullptr, nullptr, nullptr, nullptr, rope<math::bf16>, rope<math::f16>,
             rope<float>, rope<double>, rope<math::f8e4m3>},
};

}  // namespace wick::cpu::WICK_ISA
