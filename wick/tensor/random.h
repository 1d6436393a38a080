#pragma once

#include <cstdint>

#include "wick/base/export.h"
#include "wick/tensor/tensor.h"

namespace wick {

// Random tensors. Every device has its own sequence of random numbers, which starts from a seed,
// and calls draw from it one after another. The same calls after the same seed give the same bits
// on every device and with any number of threads (docs/design/numerics/random.md). The initial seed
// is 0.

/// Restarts the sequences of all devices from a seed.
WICK_API void set_seed(uint64_t seed);
/// Restarts one device's sequence from a seed.
WICK_API void set_seed(uint64_t seed, Device device);
/// Returns the seed that a device's sequence started from.
WICK_API uint64_t get_seed(Device device = {});

/// Random numbers from the uniform distribution over [low, high); rounding to the dtype may give
/// `high`. Any shape. Floats. Class exact. Errors: another dtype; low or high isn't finite; low >
/// high; high - low overflows. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2,
/// 3", 2011 (Philox4x32-10).
WICK_API Tensor uniform(const Shape& shape, double low = 0, double high = 1,
                        DType dtype = DType::f32, Device device = {});
/// Random numbers from a normal distribution. Any shape. Floats. Class exact. Errors: another
/// dtype; the mean isn't finite; the deviation is negative or not finite. Source: Box and Muller,
/// "A note on the generation of random normal deviates", 1958.
WICK_API Tensor normal(const Shape& shape, double mean = 0, double deviation = 1,
                       DType dtype = DType::f32, Device device = {});

}  // namespace wick
