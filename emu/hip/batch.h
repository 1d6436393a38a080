#pragma once

// Builds the operations of batches of waits and writes, for streams and graph nodes.

#include "emu/hip/api.h"

namespace emu::hip {

/// Throws if an operation is unknown, or if an address isn't one of accessible memory.
std::vector<ValueOp> batch_of(const hipStreamBatchMemOpParams* list, unsigned count,
                              unsigned flags);

}  // namespace emu::hip
