#pragma once

// The sampler is defined in wick/base because backends sample, too (Backend::sample).

#include "wick/base/sampler.h"

namespace wick::text {

using wick::Sampler;
using wick::SamplerOptions;

}  // namespace wick::text
