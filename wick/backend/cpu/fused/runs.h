#pragma once

// Rows of any stride as contiguous runs. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/math/fn.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// Elements [i, i + count) of a row as a contiguous run, in place or gathered into `scratch`.
template <class T>
WICK_FN const T* run_of(const T* x, int64_t step, int64_t i, int64_t count, T* scratch) {
  if (step == 1) return x + i;
  for (int64_t j = 0; j < count; ++j) scratch[j] = x[(i + j) * step];
  return scratch;
}

template <class T>
WICK_FN void scatter_run(T* y, int64_t step, int64_t i, int64_t count, const T* run) {
  for (int64_t j = 0; j < count; ++j) y[(i + j) * step] = run[j];
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
