// y = f(a, b), and y = x·mul + add: for each row of WICK_BINARY and each of its dtypes one kernel
// over a dense run. out[i] = f(a[i], b[i]) for i in [0, n), a cache line of output at a time. Moves
// 3·n·size bytes (affine: 2).

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// One line of output. Integer division counts its zero divisors on the way.
template <class F, class S>
inline void line(S* __restrict y, const S* __restrict a, const S* __restrict b, S& zeros) {
  if constexpr (kNarrow<S>) {
    alignas(64) float u[kLine<S>], v[kLine<S>];
    widen<kLine<S>>(u, a);
    widen<kLine<S>>(v, b);
    for (int64_t i = 0; i < kLine<S>; ++i) u[i] = F::call(u[i], v[i]);
    narrow<kLine<S>>(y, u);
  } else if constexpr (F::kChecksDivisor && fn::Whole<S>) {
    for (int64_t i = 0; i < kLine<S>; ++i) {
      const bool zero = b[i] == S{0};
      zeros = static_cast<S>(zeros | (zero ? S{1} : S{0}));
      y[i] = F::call(a[i], zero ? S{1} : b[i]);
    }
  } else {
    for (int64_t i = 0; i < kLine<S>; ++i) y[i] = F::call(a[i], b[i]);
  }
}

/// Less than a line, without touching memory beyond it.
template <class F, class S>
inline void part(S* y, const S* a, const S* b, int64_t n, S& zeros) {
  alignas(64) S u[kLine<S>], v[kLine<S>], to[kLine<S>];
  load_part(u, a, n);
  load_part(v, b, n);
  line<F>(to, u, v, zeros);
  __builtin_memcpy(y, to, static_cast<size_t>(n) * sizeof(S));
}

template <class F, class S>
bool binary(int64_t n, void* out, const void* a_memory, const void* b_memory, bool stream) {
  S* y = static_cast<S*>(out);
  const S* a = static_cast<const S*>(a_memory);
  const S* b = static_cast<const S*>(b_memory);
  S zeros{};
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part<F>(y, a, b, head, zeros);
      i = head;
    }
    for (; i + kLine<S> <= n; i += kLine<S>) {
      alignas(64) S result[kLine<S>];
      line<F>(result, a + i, b + i, zeros);
      stream_line(y + i, result);
    }
  }
  for (; i + kLine<S> <= n; i += kLine<S>) line<F>(y + i, a + i, b + i, zeros);
  if (i < n) part<F>(y + i, a + i, b + i, n - i, zeros);
  if constexpr (F::kChecksDivisor && fn::Whole<S>) return zeros == S{0};
  return true;
}

/// Each step rounded in the type that computes; narrow floats once more at the store.
template <class S>
inline void affine_line(S* __restrict y, const S* __restrict x, Compute<S> mul, Compute<S> add) {
  if constexpr (kNarrow<S>) {
    alignas(64) float wide[kLine<S>];
    widen<kLine<S>>(wide, x);
    for (int64_t i = 0; i < kLine<S>; ++i) wide[i] = fn::add(fn::mul(wide[i], mul), add);
    narrow<kLine<S>>(y, wide);
  } else {
    for (int64_t i = 0; i < kLine<S>; ++i) y[i] = fn::add(fn::mul(x[i], mul), add);
  }
}

template <class S>
void affine(int64_t n, void* out, const void* in, const void* mul_value, const void* add_value,
            bool stream) {
  S* y = static_cast<S*>(out);
  const S* x = static_cast<const S*>(in);
  const auto mul = at<Compute<S>>(static_cast<const char*>(mul_value));
  const auto add = at<Compute<S>>(static_cast<const char*>(add_value));
  auto part = [=](S* to, const S* from, int64_t count) {
    alignas(64) S u[kLine<S>], v[kLine<S>];
    load_part(u, from, count);
    affine_line(v, u, mul, add);
    __builtin_memcpy(to, v, static_cast<size_t>(count) * sizeof(S));
  };
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part(y, x, head);
      i = head;
    }
    for (; i + kLine<S> <= n; i += kLine<S>) {
      alignas(64) S result[kLine<S>];
      affine_line(result, x + i, mul, add);
      stream_line(y + i, result);
    }
  }
  for (; i + kLine<S> <= n; i += kLine<S>) affine_line(y + i, x + i, mul, add);
  if (i < n) part(y + i, x + i, n - i);
}

#define WICK_BINARY(name, ...)                                  \
  struct name##_row {                                           \
    static constexpr bool kChecksDivisor = Op::name == Op::div; \
    template <class T>                                          \
    static inline T call(T a, T b) {                            \
      return fn::name(a, b);                                    \
    }                                                           \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(BinaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &binary<F, Storage<kDType>>;
  }
}
template <DType kDType>
constexpr void add_affine(BinaryKernels& table) {
  if constexpr (!is_block(kDType)) {
    table.affine[static_cast<int>(kDType)] = &affine<Storage<kDType>>;
  }
}

constexpr BinaryKernels make_table() {
  BinaryKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F>(BinaryKernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_BINARY(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
#define WICK_DTYPE(dtype, ...) add_affine<DType::dtype>(table);
#include "wick/base/dtypes.def"
  return table;
}

constexpr bool has_all(const AffineKernel (&run)[kRealDTypeCount]) {
  for (AffineKernel kernel : run) {
    if (kernel == nullptr) return false;
  }
  return true;
}

}  // namespace

constexpr BinaryKernels binary_kernels = make_table();
static_assert(complete(binary_kernels.run, OpKind::Binary));
static_assert(has_all(binary_kernels.affine));

}  // namespace wick::cpu::WICK_ISA
