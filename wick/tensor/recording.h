#pragma once

#include <functional>
#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/tensor/tensor.h"

namespace wick {

/// Calls `work` once and captures its ops on a device as a graph. Replaying the graph on a GPU
/// costs far fewer launches than running op by op. The tensors that `work` reads and makes keep
/// their addresses; `overwrite` writes new inputs over old ones. On a GPU the ops don't run before
/// the first replay, and each replay overwrites the results. The kernels must have run once before.
/// Errors: `work` copies to or from the host, or calls record().
WICK_API std::unique_ptr<DeviceGraph> record(Device device, const std::function<void()>& work);

/// Writes host values to a dense u32 tensor, ordered with the device's work. Errors: the dtype or
/// size differs; the tensor isn't dense or maps a file.
WICK_API void overwrite(const Tensor& target, std::span<const uint32_t> values);

/// Copies the elements of `values` over those of a tensor of the same shape and dtype, which may be
/// on another device, after all work queued on both devices. Errors: the shape or dtype differs;
/// the target isn't dense or maps a file.
WICK_API void overwrite(const Tensor& target, const Tensor& values);

}  // namespace wick
