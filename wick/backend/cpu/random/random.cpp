#include <algorithm>

#include "wick/backend/cpu/cpu_backend.h"
#include "wick/backend/cpu/move/move_kernels.h"
#include "wick/backend/cpu/move/strided.h"
#include "wick/backend/cpu/random/random_kernels.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/base/collapsed_dims.h"

namespace wick::cpu {
namespace {

constexpr int64_t kTile = 1024;  // elements; a multiple of the numbers of a counter
constexpr int64_t kTilesPerThread = 8;

/// Fills `out` with numbers of type A, kEach per counter, a tile at a time, and stores them with
/// the cast kernel (null: as they are).
template <int kEach, class A, class Kernel>
void fill_numbers(const View& out, uint64_t first, const Kernel& kernel, CastKernel cast) {
  const Layout& layout = out.layout;
  const int64_t bytes = info(out.dtype).block_bytes, n = layout.elems();
  const CollapsedDims<1> dims({&layout});
  const bool dense = dims.rank() == 1 && dims.inner(0).stride[0] == 1;
  const auto make = [&](int64_t start, int64_t count, A* to) {
    kernel(first + static_cast<uint64_t>(start / kEach), count / kEach, to);
  };
  parallel_for((n + kTile - 1) / kTile, kTilesPerThread, [&](int64_t begin, int64_t end) {
    alignas(64) A tile[kTile];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t start = t * kTile, count = std::min(kTile, n - start);
      if (dense && cast == nullptr && count == kTile) {
        make(start, kTile, static_cast<A*>(out.data) + dims.at(start)[0]);
        continue;
      }
      make(start, (count + kEach - 1) / kEach * kEach, tile);
      const A* from = tile;
      dims.runs(start, start + count, [&](const auto& at, const auto& stride, int64_t m) {
        char* const operands[] = {static_cast<char*>(out.data) + at[0] * bytes,
                                  reinterpret_cast<char*>(const_cast<A*>(from))};
        const int64_t strides[] = {stride[0] * bytes, sizeof(A)};
        const int64_t sizes[] = {bytes, sizeof(A)};
        run_dense<2>(m, operands, strides, sizes, false, [&](int64_t k, char* const* p, bool) {
          if (cast != nullptr) return cast(k, p[0], p[1], false);
          std::memcpy(p[0], p[1], static_cast<size_t>(k) * sizeof(A));
        });
        from += m;
      });
    }
  });
}

}  // namespace

void CpuBackend::random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) {
  if (out.layout.elems() == 0) return;
  const RandomKernels& table = WICK_SELECT_KERNELS(isa_, random_kernels, no_dots);
  const CastKernels& casts = WICK_SELECT_KERNELS(isa_, cast_kernels, no_dots);
  const bool normal = op == Op::normal;
  if (out.dtype == DType::f64) {
    const auto kernel = normal ? table.normal_f64 : table.uniform_f64;
    fill_numbers<2, double>(
        out, first,
        [&](uint64_t at, int64_t counters, double* to) {
          kernel(seed, at, counters, a.f, b.f, to);
        },
        nullptr);
    return;
  }
  const auto kernel = normal ? table.normal_f32 : table.uniform_f32;
  const auto low = static_cast<float>(a.f), high = static_cast<float>(b.f);
  fill_numbers<4, float>(
      out, first,
      [&](uint64_t at, int64_t counters, float* to) { kernel(seed, at, counters, low, high, to); },
      casts.run[static_cast<int>(DType::f32)][static_cast<int>(out.dtype)]);
}

}  // namespace wick::cpu
