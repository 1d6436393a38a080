#pragma once

// Faults that a kernel finds in its inputs. The host reads them at the next synchronisation.

#include "wick/math/fn.h"

namespace wick::gpu {

enum FaultKind : math::u32 {
  kNoFault = 0,
  kIdOutOfRange = 1,
  kDividedByZero = 2,
  kBadLogit = 3,  ///< `value` is the token of a bad logit; -1: all logits are -inf
  kHistoryFull = 4,
  kNotNext = 5,    ///< position `value` doesn't follow the position before it
  kPageTwice = 6,  ///< two sequences write to page `value`
  kSlotTwice = 7,  ///< two sequences have slot `value`
};

/// The first fault since the host last looked, in host memory that the device writes to.
struct Fault {
  math::u32 kind;  ///< a FaultKind
  math::u32 note;  ///< identifies the launch: Gpu::note
  math::i64 value;
};

/// Where kernels report faults, in device memory.
struct FaultLine {
  math::u32 taken;  ///< not 0 once a fault has been reported
  Fault* to;
};

}  // namespace wick::gpu
