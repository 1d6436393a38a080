#pragma once

// How a kernel says that what it was given is wrong: the host reads it at the next synchronisation.

#include "wick/math/fn.h"

namespace wick::gpu {

enum FaultKind : math::u32 {
  kNoFault = 0,
  kIdOutOfRange = 1,
  kDividedByZero = 2,
  kBadLogit = 3,  ///< of the token `value`; -1: all are -inf
  kHistoryFull = 4,
  kNotNext = 5,    ///< position `value` doesn't follow the one in front
  kPageTwice = 6,  ///< two sequences write to page `value`
};

/// The first mistake since the host last looked, in memory of the host's that devices write to.
struct Fault {
  math::u32 kind;  ///< a FaultKind
  math::u32 note;  ///< which launch: Gpu::note
  math::i64 value;
};

/// Where kernels report, in the device's memory.
struct FaultLine {
  math::u32 taken;  ///< not 0: somebody has reported
  Fault* to;
};

}  // namespace wick::gpu
