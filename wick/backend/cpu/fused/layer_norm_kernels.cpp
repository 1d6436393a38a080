#include "wick/backend/cpu/fused/fused_kernels.h"
#include "wick/backend/cpu/fused/runs.h"
#include "wick/backend/cpu/reduce/row_sum.h"
#include "wick/backend/cpu/storage_type.h"

namespace wick::cpu::WICK_ISA {
namespace {

// Deviations of rows up to this length are kept; longer rows compute them twice.
constexpr int64_t kKeptRow = 16384;

inline constexpr auto kSame = [](auto v) { return v; };
inline constexpr auto kSquare = [](auto v) { return v * v; };

/// c = x - m in the compute type.
template <class T>
WICK_FN void deviations(const T* x, Compute<T> m, Compute<T>* c, int64_t n) {
  constexpr int kWidth = kStep<T>;
  const Vec<Compute<T>> mv = splat(m);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(c + i, load(x + i) - mv);
  for (; i < n; ++i) c[i] = widen(x[i]) - m;
}

/// y = (c * r) * w + b, every step rounded; without w and b: c * r.
template <class T>
WICK_FN void scale_and_shift(const Compute<T>* c, Compute<T> r, const Compute<T>* w,
                             const Compute<T>* b, T* y, int64_t n) {
  constexpr int kWidth = kStep<T>;
  const Vec<Compute<T>> rv = splat(r);
  int64_t i = 0;
  if (w != nullptr && b != nullptr) {
    for (; i + kWidth <= n; i += kWidth) {
      store(y + i, (load(c + i) * rv) * load(w + i) + load(b + i));
    }
  } else if (w != nullptr) {
    for (; i + kWidth <= n; i += kWidth) store(y + i, (load(c + i) * rv) * load(w + i));
  } else if (b == nullptr) {
    for (; i + kWidth <= n; i += kWidth) store(y + i, load(c + i) * rv);
  }
  for (; i < n; ++i) {
    Compute<T> v = c[i] * r;
    if (w != nullptr) v = v * w[i];
    if (b != nullptr) v = v + b[i];
    y[i] = narrow<T>(v);
  }
}

// y = (x - m) / sqrt(v + eps) * w + b with m and v the mean and variance of each row.
// Index map: one row after another, in runs of 4096. Order: m = row sum / n; c = x - m; v = row sum
// of the rounded c * c, / n; r = 1 / sqrt(v + eps); y = (c * r) * w + b, every step rounded. Bytes
// moved: a row is read twice, the second time out of a cache, and written once.
template <class T>
void layer_norm(const RowsIn& xs, const void* weight, const void* bias, const RowsOut& ys,
                int64_t count, int64_t n, float eps) {
  using A = Compute<T>;
  T gathered[kSumChunk];
  alignas(64) A kept[kKeptRow];
  const auto* x = static_cast<const T*>(xs.data);
  const auto *w = static_cast<const A*>(weight), *b = static_cast<const A*>(bias);
  auto* y = static_cast<T*>(ys.data);
  const auto part = [](const A* all, int64_t i) { return all == nullptr ? nullptr : all + i; };
  for (int64_t row = 0; row < count; ++row, x += xs.row, y += ys.row) {
    ChunkSums<A> sums, squares;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = min(n - i, kSumChunk);
      sums.add(chunk_sum(run_of(x, xs.step, i, length, gathered), length, kSame));
    }
    const A m = sums.total() / static_cast<A>(n);
    const bool keeps = n <= kKeptRow;
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = min(n - i, kSumChunk);
      A* c = keeps ? kept + i : kept;
      deviations(run_of(x, xs.step, i, length, gathered), m, c, length);
      squares.add(chunk_sum(c, length, kSquare));
    }
    const A r = A{1} / math::sqrt(squares.total() / static_cast<A>(n) + static_cast<A>(eps));
    for (int64_t i = 0; i < n; i += kSumChunk) {
      const int64_t length = min(n - i, kSumChunk);
      A* c = keeps ? kept + i : kept;
      if (!keeps) deviations(run_of(x, xs.step, i, length, gathered), m, c, length);
      T* out = ys.step == 1 ? y + i : gathered;
      scale_and_shift(c, r, part(w, i), part(b, i), out, length);
      if (ys.step != 1) scatter_run(y, ys.step, i, length, gathered);
    }
  }
}

template <DType kDType>
constexpr void add_dtype(LayerNormKernels& table) {
  if constexpr (!is_block(kDType)) {
    if constexpr (info(Op::layer_norm).dtypes.contains(kDType)) {
      table.layer_norm[static_cast<int>(kDType)] = layer_norm<Storage<kDType>>;
    }
  }
}

constexpr LayerNormKernels make_table() {
  LayerNormKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

}  // namespace

constexpr LayerNormKernels layer_norm_kernels = make_table();
static_assert(complete(layer_norm_kernels.layer_norm, Op::layer_norm));

}  // namespace wick::cpu::WICK_ISA
