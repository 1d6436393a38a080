// y = f(x): for each row of WICK_UNARY and each of its dtypes one kernel over a dense run.
// out[i] = f(in[i]) for i in [0, n), a cache line of output at a time. Moves 2·n·size bytes.

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class F, class S>
struct Lines {
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict x,
                                            int64_t n) const {
    const int64_t whole = n / kLine<S> * kLine<S>;
    if constexpr (kNarrow<S> && (F::kOp == Op::neg || F::kOp == Op::abs)) {
      // The sign bit alone.
      using Bits = decltype(S::bits);
      constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(S) - 1));
      for (int64_t i = 0; i < whole; ++i) {
        const int bits = F::kOp == Op::neg ? x[i].bits ^ kSign : x[i].bits & ~kSign;
        y[i].bits = static_cast<Bits>(bits);
      }
    } else if constexpr (kStepwise<S>) {
      constexpr int64_t kN = kLine<S>;
      for (int64_t i = 0; i < whole; i += kN) {
        alignas(64) float wide[kN];
        widen(wide, x + i, kN);
        for (int64_t j = 0; j < kN; ++j) wide[j] = F::template call<S>(wide[j]);
        narrow(y + i, wide, kN);
      }
    } else {
      for (int64_t i = 0; i < whole; ++i) y[i] = store<S>(F::template call<S>(load(x[i])));
    }
  }
};

template <class F, class S>
void unary(int64_t n, void* out, const void* in, bool stream) {
  cover(n, stream, Lines<F, S>{}, static_cast<S*>(out), static_cast<const S*>(in));
}

#define WICK_UNARY(name, ...)                     \
  struct name##_row {                             \
    static constexpr Op kOp = Op::name;           \
    template <class S>                            \
    static inline Compute<S> call(Compute<S> x) { \
      WICK_ROW_CALL(name, x)                      \
    }                                             \
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
static_assert(complete(unary_kernels.run, OpKind::unary));

}  // namespace wick::cpu::WICK_ISA
