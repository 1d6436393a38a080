// y = f(x): for each row of WICK_UNARY and each of its dtypes one kernel over a dense run.
// out[i] = f(in[i]) for i in [0, n), a cache line of output at a time. Moves 2·n·size bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// One line of output.
template <class F, class S>
inline void line(S* __restrict y, const S* __restrict x) {
  if constexpr (kNarrow<S>) {
    alignas(64) float wide[kLine<S>];
    widen<kLine<S>>(wide, x);
    for (int64_t i = 0; i < kLine<S>; ++i) wide[i] = F::call(wide[i]);
    narrow<kLine<S>>(y, wide);
  } else {
    for (int64_t i = 0; i < kLine<S>; ++i) y[i] = F::call(x[i]);
  }
}

/// Less than a line, without touching memory beyond it.
template <class F, class S>
inline void part(S* y, const S* x, int64_t n) {
  alignas(64) S from[kLine<S>], to[kLine<S>];
  load_part(from, x, n);
  line<F>(to, from);
  __builtin_memcpy(y, to, static_cast<size_t>(n) * sizeof(S));
}

template <class F, class S>
void unary(int64_t n, void* out, const void* in, bool stream) {
  S* y = static_cast<S*>(out);
  const S* x = static_cast<const S*>(in);
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part<F>(y, x, head);
      i = head;
    }
    for (; i + kLine<S> <= n; i += kLine<S>) {
      alignas(64) S result[kLine<S>];
      line<F>(result, x + i);
      stream_line(y + i, result);
    }
  }
  for (; i + kLine<S> <= n; i += kLine<S>) line<F>(y + i, x + i);
  if (i < n) part<F>(y + i, x + i, n - i);
}

#define WICK_UNARY(name, ...)   \
  struct name##_row {           \
    template <class T>          \
    static inline T call(T x) { \
      return fn::name(x);       \
    }                           \
  };
#include "wick/op/ops.def"

template <Op kOp, class F, DType kDType>
constexpr void add_dtype(UnaryKernel (&row)[kRealDTypeCount]) {
  if constexpr (info(kOp).dtypes.contains(kDType)) {
    row[static_cast<int>(kDType)] = &unary<F, Storage<kDType>>;
  }
}

constexpr UnaryKernels make_table() {
  UnaryKernels table{};
#define WICK_DTYPE(dtype, ...) add_dtype<op, F, DType::dtype>(row);
  auto fill_row = []<Op op, class F>(UnaryKernel(&row)[kRealDTypeCount]) {
#include "wick/base/dtypes.def"
  };
#define WICK_UNARY(name, ...) \
  fill_row.template operator()<Op::name, name##_row>(table.run[static_cast<int>(Op::name)]);
#include "wick/op/ops.def"
  return table;
}

}  // namespace

constexpr UnaryKernels unary_kernels = make_table();
static_assert(complete(unary_kernels.run, OpKind::Unary));

}  // namespace wick::cpu::WICK_ISA
