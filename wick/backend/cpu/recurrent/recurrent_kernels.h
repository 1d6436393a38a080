#pragma once

// Recurrences over the rows of one sequence, for some columns of one head. Columns are independent.
// All numbers are f32; columns lie side by side, and steps count elements.

#include <cstdint>

#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

/// Columns of causal_conv: `channels` channels of the rows [first, first + rows) of a sequence.
struct ConvColumns {
  const float* x;          // of row x_first, which is at most max(0, first - k + 1)
  float* y;                // of row `first`
  int64_t x_step, y_step;  // from a row to the next
  int64_t x_first, first, rows, channels;
  const float* weight;  // [k, ..]: taps of the channels, the oldest input's first
  int64_t weight_step;  // from a tap to the next
  const float* bias;    // [channels], or null
  const float* state;   // [k - 1, ..]: the inputs before the sequence's first row
  int64_t state_step;
  int64_t taps;  // k
};

/// Columns of a scan: `columns` columns of `rows` rows, and a state of m rows.
struct ScanColumns {
  const float* x;  // x of ssm_scan, v of gated_delta_scan
  float* y;
  int64_t x_step, y_step;
  int64_t rows, columns;
  const float *b, *c;  // b and c of ssm_scan, k and q of gated_delta_scan: [m] at each row
  int64_t b_step, c_step;
  int64_t m;
  const float *decay, *factor;  // a number at each row: dt and dt, or g and beta
  int64_t decay_step, factor_step;
  float a;         // of ssm_scan
  const float* d;  // of ssm_scan: one number, or null
  float* state;    // [m, ..]
  int64_t state_step;
};

struct RecurrentKernels {
  void (*conv)(const ConvColumns& columns);
  void (*ssm)(const ScanColumns& columns);
  void (*delta)(const ScanColumns& columns);
};

WICK_DECLARE_KERNELS(RecurrentKernels, recurrent_kernels)

}  // namespace wick::cpu
