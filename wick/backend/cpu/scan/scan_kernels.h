#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/math/orders.h"
#include "wick/op/op.h"

namespace wick::cpu {

using math::kScanChunk;
/// The most columns for one call of a column kernel.
inline constexpr int64_t kScanColumns = 128;

/// A sum in the compute type (float, double, or the integer type itself), or a product (f64 with an
/// exponent, or the integer type itself).
struct alignas(8) ScanTotal {
  char bytes[16];
};

/// Kernels of one scan: sums or products. Tables are indexed by dtype; steps in elements.
struct ScanKernels {
  /// Writes the inclusive totals of n <= kScanChunk elements, each combined with `carry`, to y
  /// unless y is null. Writes the total of all n elements to *total, without `carry`; the caller
  /// computes the next chunk's carry from it. `stream` requests non-temporal stores and requires
  /// y_step 1.
  using Row = void (*)(const void* x, int64_t x_step, int64_t n, const ScanTotal& carry, void* y,
                       int64_t y_step, bool stream, ScanTotal* total);
  /// into = into combined with x.
  using Combine = void (*)(ScanTotal* into, const ScanTotal& x);
  /// Scans `width` <= kScanColumns neighbouring columns of n elements.
  using Columns = void (*)(const void* x, int64_t x_row, int64_t n, int64_t width, void* y,
                           int64_t y_row, int64_t y_step);
  Row row[kRealDTypeCount];
  Combine combine[kRealDTypeCount];
  Columns columns[kRealDTypeCount];
  /// The total of no elements.
  ScanTotal identity[kRealDTypeCount];
};

constexpr bool complete(const ScanKernels& table) {
  static_assert(info(Op::cumsum).dtypes == dtypes::kAny);
  static_assert(info(Op::cumprod).dtypes == dtypes::kAny);
  for (int d = 0; d < kRealDTypeCount; ++d) {
    if (table.row[d] == nullptr || table.combine[d] == nullptr || table.columns[d] == nullptr) {
      return false;
    }
  }
  return true;
}

WICK_DECLARE_KERNELS(ScanKernels, scan_kernels)
WICK_DECLARE_KERNELS(ScanKernels, product_scan_kernels)

}  // namespace wick::cpu
