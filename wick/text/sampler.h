#pragma once

// Sampling belongs to text; it lives below because backends do it, too (Backend::sample).

#include "wick/base/sampler.h"

namespace wick::text {

using wick::Sampler;
using wick::SamplerOptions;

}  // namespace wick::text
