#pragma once

#include <functional>
#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// Does `work` once as a recording of its ops on a device, which can be replayed as one: far
/// cheaper to launch on a GPU than op by op. The tensors that `work` reads and makes keep their
/// places in memory; new inputs are written over old ones with `overwrite`. On a GPU the work isn't
/// done yet when this returns; what `work` keeps of its results is overwritten by each replay.
/// Kernels have to have run once before. Errors: `work` copies to or from the host, or records
/// itself.
WICK_API std::unique_ptr<Recording> record(Device device, const std::function<void()>& work);

/// Writes host values over a dense u32 tensor, in order with the device's work. Errors: another
/// dtype or size, a tensor that isn't dense or maps a file.
WICK_API void overwrite(const Tensor& target, std::span<const uint32_t> values);

}  // namespace wick
