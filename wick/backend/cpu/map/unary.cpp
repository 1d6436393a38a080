// y = f(x): for each row of WICK_UNARY and each of its dtypes one kernel over a dense run.
// out[i] = f(in[i]) for i in [0, n), a cache line of output at a time. Moves 2·n·size bytes.

#include <type_traits>

#include "wick/backend/cpu/map/functions.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Whether f(x) of a number of a dtype is a number of that dtype.
constexpr bool is_exact(Op op) {
  return op == Op::relu || op == Op::sign || op == Op::floor || op == Op::ceil || op == Op::round;
}

/// Whether no number of a run is NaN or beyond 2^40 (f64: 2^30).
template <class S>
WICK_FN bool all_near(const S* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(S) == 8, math::u64,
                                  std::conditional_t<sizeof(S) == 4, math::u32, math::u16>>;
  constexpr auto kMost = static_cast<Bits>(sizeof(S) == 8   ? 0x41d0000000000000u
                                           : sizeof(S) == 4 ? 0x53800000u
                                                            : 0x5380u);
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  Bits most = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<Bits>(__builtin_bit_cast(Bits, x[i]) & kMagnitude);
    most = magnitude > most ? magnitude : most;
  }
  return most <= kMost;
}

template <class F, class S>
struct Lines {
  __attribute__((noinline)) void operator()(S* __restrict y, const S* __restrict x,
                                            int64_t n) const {
    if constexpr (kNarrow<S> && (F::kOp == Op::neg || F::kOp == Op::abs)) {
      // Changes the sign bit alone.
      using Bits = decltype(S::bits);
      constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(S) - 1));
      const int64_t whole = n / kLine<S> * kLine<S>;
      for (int64_t i = 0; i < whole; ++i) {
        const int bits = F::kOp == Op::neg ? x[i].bits ^ kSign : x[i].bits & ~kSign;
        y[i].bits = static_cast<Bits>(bits);
      }
    } else if constexpr ((F::kOp == Op::sin || F::kOp == Op::cos) &&
                         (math::kSame<S, float> || math::kSame<S, double> ||
                          math::kSame<S, bf16>)) {
      // The functions have two branches, and vectors compute both; most pieces need one.
      constexpr int64_t kPiece = 512;
      for (int64_t i = 0; i < n; i += kPiece) {
        const int64_t m = n - i < kPiece ? n - i : kPiece;
        if (all_near(x + i, m)) {
          map_lines<S, false>(y + i, x + i, m, [](Compute<S> v) {
            return F::kOp == Op::sin ? math::sin_of_near(v) : math::cos_of_near(v);
          });
        } else {
          map_lines<S, false>(y + i, x + i, m, [](Compute<S> v) { return F::template call<S>(v); });
        }
      }
    } else {
      map_lines<S, is_exact(F::kOp)>(y, x, n, [](Compute<S> v) { return F::template call<S>(v); });
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
