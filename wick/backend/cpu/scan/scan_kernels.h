#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/op/op.h"

namespace wick::cpu {

/// Elements of a chunk, within which a row kernel keeps the order of
/// docs/design/numerics/reduce.md.
inline constexpr int64_t kScanChunk = 4096;
/// Columns that a column kernel takes at most.
inline constexpr int64_t kScanColumns = 128;

/// A sum in the type that computes (float, double, or an integer's own), or a product (f64 and an
/// exponent, or an integer's own type).
struct alignas(8) ScanTotal {
  char bytes[16];
};

/// Kernels of one scan: sums or products. Tables are indexed by dtype; steps in elements.
struct ScanKernels {
  /// Of n <= kScanChunk elements the totals up to each, combined with `carry`, where y has data;
  /// and the total of all, which the next chunk's carry is made of: of a whole chunk. `stream` asks
  /// for stores around the caches: y_step is then 1.
  using Row = void (*)(const void* x, int64_t x_step, int64_t n, const ScanTotal& carry, void* y,
                       int64_t y_step, bool stream, ScanTotal* total);
  /// into = into combined with x.
  using Join = void (*)(ScanTotal* into, const ScanTotal& x);
  /// The totals of `width` <= kScanColumns neighbouring columns of n elements.
  using Columns = void (*)(const void* x, int64_t x_row, int64_t n, int64_t width, void* y,
                           int64_t y_row, int64_t y_step);
  Row row[kRealDTypeCount];
  Join join[kRealDTypeCount];
  Columns columns[kRealDTypeCount];
  /// The total of no elements.
  ScanTotal identity[kRealDTypeCount];
};

constexpr bool complete(const ScanKernels& table) {
  static_assert(info(Op::cumsum).dtypes == dtypes::kAny);
  static_assert(info(Op::cumprod).dtypes == dtypes::kAny);
  for (int d = 0; d < kRealDTypeCount; ++d) {
    if (table.row[d] == nullptr || table.join[d] == nullptr || table.columns[d] == nullptr) {
      return false;
    }
  }
  return true;
}

WICK_DECLARE_KERNELS(ScanKernels, scan_kernels)
WICK_DECLARE_KERNELS(ScanKernels, product_scan_kernels)

}  // namespace wick::cpu
