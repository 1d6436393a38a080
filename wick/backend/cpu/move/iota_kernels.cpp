#include "wick/backend/cpu/move/iota_kernels.h"

// The numbers of iota before they are cast. Writes each once, to a tile that stays in L1.

namespace wick::cpu::WICK_ISA {
namespace {

void integers(int64_t n, int64_t first, uint64_t start, uint64_t step, int64_t* to) {
  const uint64_t at = start + static_cast<uint64_t>(first) * step;
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<int64_t>(at + static_cast<uint64_t>(i) * step);
}

void reals(int64_t n, int64_t first, double start, double step, double* to) {
  // Exact: no tensor has 2^53 elements. Every instruction set converts vectors of 32-bit integers
  // to f64, only v4 those of 64 bits.
  const auto base = static_cast<double>(first);
  const auto count = static_cast<int32_t>(n);
  for (int32_t i = 0; i < count; ++i) to[i] = start + (base + static_cast<double>(i)) * step;
}

}  // namespace

constexpr IotaKernels iota_kernels = {integers, reals};
static_assert(complete(iota_kernels));

}  // namespace wick::cpu::WICK_ISA
