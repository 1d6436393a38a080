#pragma once

// Includes the structs of all block formats of quants.def.

#include "wick/math/blocks.h"
#include "wick/math/code_blocks.h"
#include "wick/math/k_blocks.h"
#include "wick/math/lattice_blocks.h"

namespace wick::math {

#define WICK_QUANT(name, Type, number, values, bytes, ...) \
  static_assert(kBlockValues<Block##Type> == values && sizeof(Block##Type) == bytes);
#include "wick/math/quants.def"

}  // namespace wick::math
