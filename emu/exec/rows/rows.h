#pragma once

// The tables of instructions. They are compiled once for each host instruction set, in a checked
// and an unchecked version; EMU_VARIANT is the namespace.

#include <span>

#include "emu/exec/lowering.h"

namespace emu::EMU_VARIANT {

std::span<const Row> float_rows();
std::span<const Row> half_rows();
std::span<const Row> packed_rows();
std::span<const Row> double_rows();
std::span<const Row> integer_rows();
std::span<const Row> bit_rows();
std::span<const Row> convert_rows();
std::span<const Row> compare_rows();
std::span<const Row> divide_rows();
std::span<const Row> transcendental_rows();
std::span<const Row> lane_rows();
std::span<const Row> dot_rows();
std::span<const Row> scalar_rows();
std::span<const Row> scalar_bit_rows();
std::span<const Row> scalar_float_rows();
std::span<const Row> control_rows();
std::span<const Row> global_rows();
std::span<const Row> flat_rows();
std::span<const Row> buffer_rows();
std::span<const Row> buffer_format_rows();
std::span<const Row> image_rows();
std::span<const Row> smem_rows();
std::span<const Row> atomic_rows();
std::span<const Row> lds_rows();
std::span<const Row> permute_rows();

// Rows of a single family, defined in emu/arch/NAME/rows.cpp.
std::span<const Row> gfx9_rows();
std::span<const Row> gfx11_rows();
std::span<const Row> gfx12_rows();

std::span<const Table> tables();

}  // namespace emu::EMU_VARIANT
