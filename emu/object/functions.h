#pragma once

// The functions of a code object's text, from its symbols.

#include <vector>

#include "emu/object/object.h"

namespace emu {

/// Assigns every byte of the text [begin, end) to one function. Ranges without a symbol become
/// functions of their own. `found`: functions that start in the text, in any order; of several with
/// one address, the last by name stays.
std::vector<FunctionSymbol> cover_text(std::vector<FunctionSymbol> found, uint64_t begin,
                                       uint64_t end);

/// Adds a kernel's entry to the function that contains it: kernels may start within a function, or
/// in code without symbols. `functions` are sorted by address.
void add_entry(std::vector<FunctionSymbol>& functions, uint64_t entry);

}  // namespace emu
