#pragma once

#include <functional>
#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// Calls `work` once and records its ops on a device as a graph, whose replay is far cheaper to
/// launch on a GPU than op by op. The tensors that `work` reads and makes keep their addresses; new
/// inputs are written over old ones with `overwrite`. On a GPU the ops don't run until the first
/// replay; each replay overwrites the results that `work` keeps. The kernels must have run once
/// before. Errors: `work` copies to or from the host, or calls record().
WICK_API std::unique_ptr<DeviceGraph> record(Device device, const std::function<void()>& work);

/// Writes host values over a dense u32 tensor, in order with the device's work. Errors: another
/// dtype or size, a tensor that isn't dense or maps a file.
WICK_API void overwrite(const Tensor& target, std::span<const uint32_t> values);

}  // namespace wick
