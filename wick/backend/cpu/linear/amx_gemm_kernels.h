#pragma once

#include "wick/backend/cpu/linear/gemm.h"

namespace wick::cpu {

/// gemm of bf16 on the tiles of AMX: what a GemmKernels with Compute::bf16_tiles holds.
struct AmxGemm {
  GemmType type;
  GemmKernels::Pack pack_words, pack_elements;
};

namespace amx {
extern const AmxGemm amx_gemm;
}

}  // namespace wick::cpu
