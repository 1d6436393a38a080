#pragma once

// What ssm_scan and gated_delta_scan have in common. A thread block takes kScanColumns columns of
// one head of a sequence, and a thread takes one column with its m numbers of the state: in
// registers if kM is m, in memory if kM is 0. The block stages kScanRows rows of b, c and the row's
// numbers in shared memory; with kM = 0 threads read b and c where they lie.

#include "wick/backend/gpu/kernels/recurrent/slots.h"
#include "wick/math/recurrence.h"

namespace wick::gpu {

/// The numbers of rows that a thread block works on.
template <u32 kM>
struct ScanStage {
  static constexpr u32 kHeld = kM == 0 ? 4 : kScanRows * kM;
  alignas(16) float b[kHeld];
  alignas(16) float c[kHeld];
  float x[kScanRows * kScanColumns];
  float step[kScanRows], decay[kScanRows];
};

/// A row's b and c, or k and q.
struct RowNumbers {
  const float *b, *c;
  i64 b_step, c_step;
};

/// A column's state.
template <u32 kM>
struct ScanState {
  float s[kM];
  WICK_DEVICE void load(const float* from, u32 columns, u32) {
#pragma unroll
    for (u32 n = 0; n < kM; ++n, from += columns) s[n] = *from;
  }
  WICK_DEVICE void store(float* to, u32 columns) const {
#pragma unroll
    for (u32 n = 0; n < kM; ++n, to += columns) *to = s[n];
  }
  /// Calls f(element n, b[n], c[n]) for all n in ascending order; f returns the new element. The
  /// row's numbers are dense.
  template <class F>
  WICK_DEVICE void update(const RowNumbers& row, const F& f) {
#pragma unroll
    for (u32 n = 0; n < kM; n += 4) {
      const Bytes16 b = load_whole(reinterpret_cast<const Bytes16*>(row.b + n));
      const Bytes16 c = load_whole(reinterpret_cast<const Bytes16*>(row.c + n));
#pragma unroll
      for (u32 i = 0; i < 4; ++i) s[n + i] = f(s[n + i], bits_f32(b.w[i]), bits_f32(c.w[i]));
    }
  }
};
template <>
struct ScanState<0> {
  float* s;
  u32 columns, m;
  WICK_DEVICE void load(float* from, u32 columns_of_state, u32 count) {
    s = from, columns = columns_of_state, m = count;
  }
  WICK_DEVICE void store(float*, u32) const {}
  template <class F>
  WICK_DEVICE void update(const RowNumbers& row, const F& f) {
#pragma unroll 4
    for (u32 n = 0; n < m; ++n) {
      float& at = s[i64{n} * columns];
      at = f(at, row.b[n * row.b_step], row.c[n * row.c_step]);
    }
  }
};

/// Runs all rows of a block's sequence. row(state, numbers, x, step, decay, head) advances the
/// state by one row and returns y.
template <u32 kM, class Row>
WICK_DEVICE void scan(const ScanArgs& args, const Row& row) {
  WICK_SHARED ScanStage<kM> stage;
  const u32 tile = block_index() % args.tiles, head = block_index() / args.tiles % args.heads;
  const u32 sequence = block_index() / args.tiles / args.heads;
  const u32 column = tile * kScanColumns + thread_index();
  const bool mine = column < args.columns;
  pdl_wait();
  pdl_launch_dependents();
  const i64 slot = slot_of(args.slots, sequence);
  const i64 first = i64{sequence} * args.each;
  float* y = args.y + first * args.y_row + head * args.y_head + column;
  if (slot < 0) {
    for (u32 i = 0; mine && i < args.each; ++i) y[i * args.y_row] = 0.0f;
    return;
  }
  const u32 group = head / args.of_group;
  const float* x = args.x + first * args.x_row + head * args.x_head + column * args.x_step;
  const float* b = args.b + first * args.b_row + group * args.b_group;
  const float* c = args.c + first * args.c_row + group * args.c_group;
  const float* step = args.step + first * args.step_row + head * args.step_head;
  const float* decay = args.decay + first * args.decay_row + head * args.decay_head;
  float* at = args.state + slot * args.state_sequence + head * args.state_head + column;
  ScanState<kM> state;
  if (mine) state.load(at, args.columns, args.m);
  for (u32 begin = 0; begin < args.each; begin += kScanRows) {
    const u32 rows = args.each - begin < kScanRows ? args.each - begin : kScanRows;
    sync();  // all threads have read the rows before
    if constexpr (kM != 0) {
      for (u32 i = thread_index(); i < rows * kM; i += kScanColumns) {
        const i64 of = begin + i / kM;
        stage.b[i] = b[of * args.b_row + i % kM * args.b_step];
        stage.c[i] = c[of * args.c_row + i % kM * args.c_step];
      }
    }
    if (thread_index() < rows) {
      const i64 of = begin + thread_index();
      stage.step[thread_index()] = step[of * args.step_row];
      stage.decay[thread_index()] = decay[of * args.decay_row];
    }
    for (u32 i = 0; mine && i < rows; ++i) {
      stage.x[i * kScanColumns + thread_index()] = x[i64{begin + i} * args.x_row];
    }
    sync();
    for (u32 i = 0; mine && i < rows; ++i) {
      const i64 of = begin + i;
      const RowNumbers numbers =
          kM != 0 ? RowNumbers{stage.b + i * kM, stage.c + i * kM, 1, 1}
                  : RowNumbers{b + of * args.b_row, c + of * args.c_row, args.b_step, args.c_step};
      y[of * args.y_row] = row(state, numbers, stage.x[i * kScanColumns + thread_index()],
                               stage.step[i], stage.decay[i], head);
    }
  }
  if (mine) state.store(at, args.columns);
}

}  // namespace wick::gpu
