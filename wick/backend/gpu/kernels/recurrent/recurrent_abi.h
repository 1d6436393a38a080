#pragma once

// Arguments of the kernels of recurrences. Rows and steps count elements.

#include "wick/backend/gpu/kernels/device/fault.h"

namespace wick::gpu {

/// The rows of a state that the sequences of a call have.
struct Slots {
  const math::u32* data;
  math::i64 step;
  math::u32 count;  ///< sequences
  math::u32 held;   ///< rows of the state; slots are below it
  math::u32 note;   ///< identifies the launch in a fault
  FaultLine* line;
};

/// Threads of a block of causal_conv, and rows that it convolves.
inline constexpr math::u32 kConvThreads = 128, kConvRows = 32;

/// causal_conv_TAPS and causal_conv_state.
struct CausalConvArgs {
  float* y;
  const float *x, *weight, *bias;  ///< bias: or null
  float* state;
  Slots slots;
  math::i64 y_row;
  math::i64 x_row, x_step;
  math::i64 weight_row, weight_step;  ///< weight_row: from a channel to the next
  math::i64 bias_step;
  math::i64 state_sequence, state_row;
  math::u32 each;  ///< rows of a sequence
  math::u32 channels;
  math::u32 taps;
  math::u32 tiles;  ///< of kConvThreads channels
  math::u32 parts;  ///< of kConvRows rows; if there is one, causal_conv also advances the state
};

/// Columns of a block of the scans, one for each thread, and rows that it stages at once.
inline constexpr math::u32 kScanColumns = 64, kScanRows = 8;

/// ssm_scan_M and gated_delta_scan_M. x: x or v. b and c: b and c, or k and q. step: dt or beta.
struct ScanArgs {
  float* y;
  const float *x, *b, *c, *step;
  const float* decay;  ///< dt, or g
  const float *a, *d;  ///< of ssm_scan; d: or null
  float* state;        ///< [m, columns] of each head
  Slots slots;
  math::i64 y_row, y_head;
  math::i64 x_row, x_head, x_step;
  math::i64 b_row, b_group, b_step;
  math::i64 c_row, c_group, c_step;
  math::i64 step_row, step_head;
  math::i64 decay_row, decay_head;
  math::i64 a_step, d_step;
  math::i64 state_sequence, state_head;
  math::u32 each;  ///< rows of a sequence
  math::u32 heads, columns, m;
  math::u32 of_group;  ///< heads that share b and c
  math::u32 tiles;     ///< of kScanColumns columns
};

}  // namespace wick::gpu
