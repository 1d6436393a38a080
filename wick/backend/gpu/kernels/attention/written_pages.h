#pragma once

// Checks of the pages and positions to which cached attention writes.

#include "wick/backend/gpu/kernels/device/device.h"

namespace wick::gpu {

/// The rows that a step writes: `each` rows of every sequence, at neighbouring positions. Members
/// may be called after pdl_wait().
struct WrittenRows {
  const u32* positions;  ///< [sequences, each]
  const u32* tables;     ///< [sequences, entries]: pages; null: every sequence is contiguous
  i64 table_row, table_step;
  u32 page_keys, sequences, each;
  u32 limit;  ///< number of positions that the tables hold
  FaultLine* faults;
  u32 note, length_note;

  WICK_DEVICE u32 first_of(u32 sequence) const {
    return load_now(positions + u64{sequence} * each);
  }
  /// The page of a position below `limit`.
  WICK_DEVICE u32 page(u32 sequence, u32 position) const {
    return load_now(tables + sequence * table_row + position / page_keys * table_step);
  }
  /// Reports a fault if one of the sequences first, first + step, and so on writes to page `of`.
  WICK_DEVICE void check_page(u32 of, u32 first, u32 step) const {
#pragma unroll 1
    for (u32 other = first; other < sequences; other += step) {
      const u32 begin = first_of(other);
      if (u64{begin} + each > limit) continue;
#pragma unroll 1
      for (u32 at = begin - begin % page_keys; at < begin + each; at += page_keys) {
        if (page(other, at) == of) report(faults, kPageTwice, note, of);
      }
    }
  }
  /// Reports the faults of a sequence whose positions lie below `limit`: positions that don't
  /// follow each other, and pages to which a later sequence writes too. All threads of one thread
  /// block call it.
  WICK_DEVICE void check(u32 sequence) const {
    if (each == 1 && (sequences == 1 || tables == nullptr)) return;
    const u32 begin = first_of(sequence);
#pragma unroll 1
    for (u32 i = thread_index(); i < each; i += block_threads()) {
      const u32 own = load_now(positions + u64{sequence} * each + i);
      if (own != begin + i) report(faults, kNotNext, length_note, own);
    }
    if (tables == nullptr) return;
#pragma unroll 1
    for (u32 at = begin - begin % page_keys; at < begin + each; at += page_keys) {
      check_page(page(sequence, at), sequence + 1 + thread_index(), block_threads());
    }
  }
};

}  // namespace wick::gpu
