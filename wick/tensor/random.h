#pragma once

#include <cstdint>

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Random tensors. Every device has a sequence of its own that its seed begins: calls draw from it
// one after another, and the same calls after the same seed give the same bits on any device, with
// any number of threads (docs/design/numerics/random.md). The seed is 0 until one is set.

/// Begins the sequences of all devices anew.
WICK_API void set_seed(uint64_t seed);
/// Begins one device's sequence anew.
WICK_API void set_seed(uint64_t seed, Device device);
/// The seed that a device's sequence began with.
WICK_API uint64_t get_seed(Device device = {});

/// Numbers spread evenly over [low, high), of which rounding to the dtype may make `high`. Any
/// shape. Floats. Class exact. Errors: another dtype, bounds that aren't finite, in order, and in
/// reach of each other.
/// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011 (Philox4x32-10).
WICK_API Tensor uniform(const Shape& shape, double low = 0, double high = 1,
                        DType dtype = DType::f32, Device device = {});
/// Numbers from a normal distribution. Any shape. Floats. Class exact. Errors: another dtype, a
/// mean that isn't finite, a deviation that is negative or not finite. Source: Box and Muller, "A
/// note on the generation of random normal deviates", 1958.
WICK_API Tensor normal(const Shape& shape, double mean = 0, double deviation = 1,
                       DType dtype = DType::f32, Device device = {});

}  // namespace wick
