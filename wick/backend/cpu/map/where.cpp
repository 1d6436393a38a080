// y = c ? a : b: a kernel for each size of elements and each type of conditions over a dense run.
// out[i] = a[i] where condition[i] isn't 0, else b[i], for i in [0, n), a cache line of output at a
// time. Elements are moved as they are. Moves n·(3·size + size of a condition) bytes.

#include "wick/backend/cpu/dense_run.h"
#include "wick/backend/cpu/map/map_kernels.h"

namespace wick::cpu::WICK_ISA {
namespace {

template <class E, class C>
struct Lines {
  __attribute__((noinline)) void operator()(E* __restrict y, const C* __restrict c,
                                            const E* __restrict a, const E* __restrict b,
                                            int64_t n) const {
    constexpr int64_t kN = line_of_all<E, C>();
    const int64_t whole = n / kN * kN;
    for (int64_t i = 0; i < whole; ++i) {
      const E u = a[i], v = b[i];
      y[i] = c[i] != C{0} ? u : v;
    }
  }
};

template <class E, class C>
void where(int64_t n, void* out, const void* condition, const void* a, const void* b, bool stream) {
  cover(n, stream, Lines<E, C>{}, static_cast<E*>(out), static_cast<const C*>(condition),
        static_cast<const E*>(a), static_cast<const E*>(b));
}

template <class C>
constexpr void set(WhereKernel (&row)[4]) {
  row[0] = &where<math::u8, C>;
  row[1] = &where<math::u16, C>;
  row[2] = &where<math::u32, C>;
  row[3] = &where<math::u64, C>;
}

constexpr WhereKernels make_table() {
  WhereKernels table{};
  set<math::u8>(table.run[0]);
  set<math::u32>(table.run[2]);
  set<math::i64>(table.run[3]);
  return table;
}

}  // namespace

constexpr WhereKernels where_kernels = make_table();
static_assert(complete(where_kernels));

}  // namespace wick::cpu::WICK_ISA
