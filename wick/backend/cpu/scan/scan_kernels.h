#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/math/orders.h"
#include "wick/op/op.h"

namespace wick::cpu {

using math::kScanChunk;
/// The most columns for one call of a column kernel.
inline constexpr int64_t kScanColumns = 128;

/// A sum in the compute type: float, double, or the integer type itself.
struct alignas(8) ScanSum {
  char bytes[8];
};

/// Tables are indexed by dtype; steps in elements.
struct ScanKernels {
  /// Writes the inclusive sums of n <= kScanChunk elements, each added to `carry`, unless y is
  /// null; and to *sum the sum of all, from which the next chunk's carry is computed. `stream` asks
  /// for non-temporal stores; y_step is then 1.
  using Row = void (*)(const void* x, int64_t x_step, int64_t n, const ScanSum& carry, void* y,
                       int64_t y_step, bool stream, ScanSum* sum);
  /// into = into + x.
  using Combine = void (*)(ScanSum* into, const ScanSum& x);
  /// Scans `width` <= kScanColumns neighbouring columns of n elements.
  using Columns = void (*)(const void* x, int64_t x_row, int64_t n, int64_t width, void* y,
                           int64_t y_row, int64_t y_step);
  Row row[kRealDTypeCount];
  Combine combine[kRealDTypeCount];
  Columns columns[kRealDTypeCount];
};

constexpr bool complete(const ScanKernels& table) {
  static_assert(info(Op::cumsum).dtypes == dtypes::kAny);
  for (int d = 0; d < kRealDTypeCount; ++d) {
    if (table.row[d] == nullptr || table.combine[d] == nullptr || table.columns[d] == nullptr) {
      return false;
    }
  }
  return true;
}

WICK_DECLARE_KERNELS(ScanKernels, scan_kernels)

}  // namespace wick::cpu
