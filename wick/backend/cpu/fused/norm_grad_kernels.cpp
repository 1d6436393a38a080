#include "wick/backend/cpu/fused/norm_grad_kernels.h"

#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

inline constexpr auto kSame = [](auto v) { return v; };

/// y[i] = f(i), where `lanes` computes a vector and `lane` one element. kWidth: elements of a
/// vector.
template <int kWidth, class T, class Lanes, class Lane>
WICK_FN void store_run(T* y, int64_t n, const Lanes& lanes, const Lane& lane) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, lanes(i));
  for (; i < n; ++i) y[i] = narrow<T>(lane(i));
}

/// p = grad · weight of a run.
template <class T>
WICK_FN void weighted(const T* g, const Compute<T>* w, Compute<T>* p, int64_t n) {
  if (w == nullptr) {
    store_run<kStep<T>>(
        p, n, [&](int64_t i) { return load(g + i); }, [&](int64_t i) { return widen(g[i]); });
  } else {
    store_run<kStep<T>>(
        p, n, [&](int64_t i) { return load(g + i) * load(w + i); },
        [&](int64_t i) { return widen(g[i]) * w[i]; });
  }
}

// The sums over a chunk of a row of norm_grad, each in the order of the row sum. Bytes moved: x,
// grad and weights once.
template <class T>
void dots(const NormGradRun& run, void* sums) {
  using A = Compute<T>;
  const auto *x = static_cast<const T*>(run.x), *g = static_cast<const T*>(run.grad);
  const auto* numbers = static_cast<const A*>(run.numbers);
  const A m = numbers[0], r = numbers[1];
  auto* to = static_cast<A*>(sums);
  alignas(64) A p[kSumChunk];
  weighted(g, static_cast<const A*>(run.weight), p, run.n);
  to[0] = A{0};
  if (run.centred) {
    to[0] = chunk_sum(p, run.n, kSame);
    const Vec<A> mv = splat(m), rv = splat(r);
    store_run<kStep<T>>(
        p, run.n, [&](int64_t i) { return load(p + i) * ((load(x + i) - mv) * rv); },
        [&](int64_t i) { return p[i] * ((widen(x[i]) - m) * r); });
  } else {
    store_run<kStep<T>>(
        p, run.n, [&](int64_t i) { return load(p + i) * load(x + i); },
        [&](int64_t i) { return p[i] * widen(x[i]); });
  }
  to[1] = chunk_sum(p, run.n, kSame);
}

// dx of a run, each step rounded. Bytes moved: x, grad, weights and dx once.
template <class T>
void store_grad(const NormGradRun& run) {
  using A = Compute<T>;
  const auto* numbers = static_cast<const A*>(run.numbers);
  const A m = numbers[0], r = numbers[1], m1 = numbers[2], m2 = numbers[3], rr = r * r;
  const Vec<A> mv = splat(m), rv = splat(r), m1v = splat(m1), m2v = splat(m2), rrv = splat(rr);
  alignas(64) A p[kSumChunk];
  for (int64_t start = 0; start < run.n; start += kSumChunk) {
    const int64_t n = min(run.n - start, kSumChunk);
    const auto* x = static_cast<const T*>(run.x) + start;
    const auto* w = static_cast<const A*>(run.weight);
    auto* y = static_cast<T*>(run.y) + start;
    weighted(static_cast<const T*>(run.grad) + start, w == nullptr ? w : w + start, p, n);
    if (run.centred) {
      store_run<kStep<T>>(
          y, n,
          [&](int64_t i) { return rv * ((load(p + i) - m1v) - ((load(x + i) - mv) * rv) * m2v); },
          [&](int64_t i) { return r * ((p[i] - m1) - ((widen(x[i]) - m) * r) * m2); });
    } else {
      store_run<kStep<T>>(
          y, n, [&](int64_t i) { return rv * (load(p + i) - (load(x + i) * rrv) * m2v); },
          [&](int64_t i) { return r * (p[i] - (widen(x[i]) * rr) * m2); });
    }
  }
}

// The sums over a chunk of a row of norm_sums. Bytes moved: the operands once.
template <class T>
void products(const void* xs, const void* gs, const void* means, const void* scales, int64_t n,
              void* sums) {
  using A = Compute<T>;
  const auto *x = static_cast<const T*>(xs), *g = static_cast<const T*>(gs);
  const auto *m = static_cast<const A*>(means), *r = static_cast<const A*>(scales);
  auto* to = static_cast<A*>(sums);
  alignas(64) A p[kSumChunk];
  if (m != nullptr) {
    store_run<kStep<T>>(
        p, n, [&](int64_t i) { return load(g + i) * ((load(x + i) - load(m + i)) * load(r + i)); },
        [&](int64_t i) { return widen(g[i]) * ((widen(x[i]) - m[i]) * r[i]); });
  } else if (r != nullptr) {
    store_run<kStep<T>>(
        p, n, [&](int64_t i) { return (load(g + i) * load(x + i)) * load(r + i); },
        [&](int64_t i) { return (widen(g[i]) * widen(x[i])) * r[i]; });
  } else {
    store_run<kStep<T>>(
        p, n, [&](int64_t i) { return load(g + i) * load(x + i); },
        [&](int64_t i) { return widen(g[i]) * widen(x[i]); });
  }
  to[0] = chunk_sum(p, n, kSame);
  to[1] = chunk_sum(g, n, kSame);
}

/// Accumulators of neighbouring columns.
template <class A>
struct ColumnSums {
  alignas(64) A acc[kSumAccumulators][kNormColumns];

  WICK_FN void clear(int64_t lanes) {
    __builtin_memset(acc, 0, sizeof(A) * static_cast<size_t>(4 * lanes * kNormColumns));
  }
  /// Combines the accumulators of the first `lanes` lanes; the others hold +0, which changes no
  /// sum.
  WICK_FN void combine(int64_t lanes, A* to) {
    for (int64_t l = 0; l < lanes; ++l) {
      for (int64_t j = 0; j < kNormColumns; ++j) {
        acc[l][j] = (acc[4 * l][j] + acc[4 * l + 1][j]) + (acc[4 * l + 2][j] + acc[4 * l + 3][j]);
      }
    }
    for (int64_t distance = 16; distance > 0; distance /= 2) {
      for (int64_t l = 0; l < distance && l + distance < lanes; ++l) {
        for (int64_t j = 0; j < kNormColumns; ++j) acc[l][j] = acc[l][j] + acc[l + distance][j];
      }
    }
    for (int64_t j = 0; j < kNormColumns; ++j) to[j] = acc[0][j];
  }
};

/// Adds a row's terms and gradients to accumulators. term(g, x, i) is that of column i.
template <class T, class Lanes, class Lane>
WICK_FN void add_row(const T* x, const T* g, Compute<T>* terms, Compute<T>* grads, int64_t width,
                     const Lanes& lanes, const Lane& lane) {
  using A = Compute<T>;
  constexpr int kWidth = kStep<T>;
  int64_t i = 0;
  for (; i + kWidth <= width; i += kWidth) {
    const Vec<A> gv = load(g + i);
    store(terms + i, load(terms + i) + lanes(gv, load(x + i), i));
    store(grads + i, load(grads + i) + gv);
  }
  for (; i < width; ++i) {
    const A gv = widen(g[i]);
    terms[i] = terms[i] + lane(gv, widen(x[i]), i);
    grads[i] = grads[i] + gv;
  }
}

// Index map: rows one after another; a row adds to accumulator row mod 128 of each column. Bytes
// moved: the operands once.
template <class T>
void columns(const NormColumns& c) {
  using A = Compute<T>;
  ColumnSums<A> terms, grads;
  const int64_t lanes = (min(c.rows, kSumAccumulators) + 3) / 4;
  terms.clear(lanes);
  grads.clear(lanes);
  const auto *means = static_cast<const A*>(c.mean), *scales = static_cast<const A*>(c.scale);
  for (int64_t row = 0; row < c.rows; ++row) {
    const auto* x = static_cast<const T*>(c.x) + c.x_rows[row];
    const auto* g = static_cast<const T*>(c.grad) + c.grad_rows[row];
    A* const t = terms.acc[row % kSumAccumulators];
    A* const s = grads.acc[row % kSumAccumulators];
    const A* m = means == nullptr ? nullptr : means + c.mean_rows[row];
    const A* r = scales == nullptr ? nullptr : scales + c.scale_rows[row];
    if (r == nullptr) {
      add_row(
          x, g, t, s, c.width, [](Vec<A> gv, Vec<A> xv, int64_t) { return gv * xv; },
          [](A gv, A xv, int64_t) { return gv * xv; });
    } else if (m == nullptr && c.scale_step == 0) {
      const A one = *r;
      const Vec<A> all = splat(one);
      add_row(
          x, g, t, s, c.width, [&](Vec<A> gv, Vec<A> xv, int64_t) { return (gv * xv) * all; },
          [&](A gv, A xv, int64_t) { return (gv * xv) * one; });
    } else if (m != nullptr && c.mean_step == 0 && c.scale_step == 0) {
      const A mean = *m, scale = *r;
      const Vec<A> mv = splat(mean), rv = splat(scale);
      add_row(
          x, g, t, s, c.width, [&](Vec<A> gv, Vec<A> xv, int64_t) { return gv * ((xv - mv) * rv); },
          [&](A gv, A xv, int64_t) { return gv * ((xv - mean) * scale); });
    } else {
      for (int64_t i = 0; i < c.width; ++i) {
        const A gv = widen(g[i]), xv = widen(x[i]), scale = r[i * c.scale_step];
        t[i] = t[i] + (m == nullptr ? (gv * xv) * scale : gv * ((xv - m[i * c.mean_step]) * scale));
        s[i] = s[i] + gv;
      }
    }
  }
  auto* to = static_cast<A*>(c.sums);
  terms.combine(lanes, to);
  grads.combine(lanes, to + kNormColumns);
}

// The gradient of softmax or log_softmax of a run. Bytes moved: x, grad and the result once.
template <class T>
void softmax_grad(const void* xs, const void* gs, void* ys, int64_t n, const void* ss, bool each,
                  bool log) {
  using A = Compute<T>;
  const auto *x = static_cast<const T*>(xs), *g = static_cast<const T*>(gs);
  const auto* s = static_cast<const A*>(ss);
  auto* y = static_cast<T*>(ys);
  const A one = *s;
  const Vec<A> all = splat(one);
  const auto run = [&](const auto& sums, const auto& sum) {
    if (log) {
      store_run<kStep<T>>(
          y, n, [&](int64_t i) { return load(g + i) - exp_lanes<A>(load(x + i)) * sums(i); },
          [&](int64_t i) { return widen(g[i]) - math::exp(widen(x[i])) * sum(i); });
    } else {
      store_run<kStep<T>>(
          y, n, [&](int64_t i) { return load(x + i) * (load(g + i) - sums(i)); },
          [&](int64_t i) { return widen(x[i]) * (widen(g[i]) - sum(i)); });
    }
  };
  if (each) {
    run([&](int64_t i) { return load(s + i); }, [&](int64_t i) { return s[i]; });
  } else {
    run([&](int64_t) { return all; }, [&](int64_t) { return one; });
  }
}

template <DType kDType>
constexpr void add_dtype(NormGradKernels& table) {
  constexpr auto d = static_cast<int>(kDType);
  if constexpr (!is_block(kDType)) {
    if constexpr (info(Op::norm_grad).dtypes.contains(kDType)) {
      using T = Storage<kDType>;
      table.dots[d] = dots<T>;
      table.store[d] = store_grad<T>;
      table.products[d] = products<T>;
      table.columns[d] = columns<T>;
      table.softmax[d] = softmax_grad<T>;
    }
  }
}

constexpr NormGradKernels make_table() {
  NormGradKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr NormGradKernels norm_grad_kernels = make_table();
static_assert(complete(norm_grad_kernels.dots, Op::norm_grad));
static_assert(complete(norm_grad_kernels.store, Op::norm_grad));
static_assert(complete(norm_grad_kernels.products, Op::norm_sums));
static_assert(complete(norm_grad_kernels.columns, Op::norm_sums));
static_assert(complete(norm_grad_kernels.softmax, Op::softmax_grad));

}  // namespace wick::cpu::WICK_ISA
