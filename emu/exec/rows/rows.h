#pragma once

// The tables of instructions, built once for each host instruction set, checked and unchecked:
// EMU_VARIANT is the namespace.

#include <span>

#include "emu/exec/lowering.h"

namespace emu::EMU_VARIANT {

std::span<const Row> float_rows();
std::span<const Row> integer_rows();
std::span<const Row> compare_rows();
std::span<const Row> scalar_rows();
std::span<const Row> control_rows();
std::span<const Row> global_rows();
std::span<const Row> flat_rows();
std::span<const Row> buffer_rows();
std::span<const Row> smem_rows();
std::span<const Row> atomic_rows();
std::span<const Row> lds_rows();

/// Null for a name that no table has.
const Row* find_row(std::string_view name);

}  // namespace emu::EMU_VARIANT
