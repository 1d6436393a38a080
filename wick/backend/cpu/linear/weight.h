#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/cpu/isa.h"

namespace wick::cpu {

// Weights that are multiplied with int8 activations: dtypes::kOwnProducts (quantized_weight.cpp).
std::unique_ptr<PreparedWeight> prepare_quantized(Isa isa, std::span<const ConstView> parts,
                                                  bool release);
void linear_quantized(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight);

// Weights of the other block dtypes, which the gemm decodes tile by tile (decoded_weight.cpp).
std::unique_ptr<PreparedWeight> prepare_decoded(std::span<const ConstView> parts, bool release);
void linear_decoded(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight);

// Weights of f32, f16 and bf16 (float_weight.cpp).
std::unique_ptr<PreparedWeight> prepare_float(Isa isa, std::span<const ConstView> parts,
                                              bool release);
/// each: see LinearFusion.
void linear_float(Isa isa, const View& out, const ConstView& x, const PreparedWeight& weight,
                  int64_t each);

}  // namespace wick::cpu
