#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// to[i] = start + (first + i) · step for i in [0, n): modulo 2^64, or two roundings.
struct IotaKernels {
  void (*integers)(int64_t n, int64_t first, uint64_t start, uint64_t step, int64_t* to);
  void (*reals)(int64_t n, int64_t first, double start, double step, double* to);
};

constexpr bool complete(const IotaKernels& table) {
  return table.integers != nullptr && table.reals != nullptr;
}

WICK_DECLARE_KERNELS(IotaKernels, iota_kernels)

}  // namespace wick::cpu
