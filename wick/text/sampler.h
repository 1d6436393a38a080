#pragma once

// The sampler is defined in wick/base, because backends also sample (Backend::sample).

#include "wick/base/sampling/sampler.h"

namespace wick::text {

using wick::Sampler;
using wick::SamplerOptions;

}  // namespace wick::text
