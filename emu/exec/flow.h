#pragma once

// Finds a function's instructions by following its branches, since functions may contain data.

#include <functional>

#include "emu/exec/program.h"

namespace emu {

/// The instructions of a function in the order of their addresses. They don't overlap, and together
/// they are the whole function; words that aren't instructions have an error.
struct Listing {
  std::vector<std::vector<Inst>> insts;  // both halves of a dual instruction
  /// Whether an entry of the function leads to the instruction. Words behind a call aren't known to
  /// be reached if they aren't instructions, since the call needn't return.
  std::vector<bool> reached;
};

/// Decodes the instruction at an address. It mustn't extend beyond `end`.
using DecodeAt = std::function<std::vector<Inst>(uint64_t address, uint64_t end)>;

/// Decodes the instructions that the function's entries and its branches lead to first. What lies
/// between them is decoded from its start, so that data never hides an instruction behind it.
Listing list_instructions(const Symbol& function, const DecodeAt& decode);

/// Returns whether the instruction may jump by a number of words that it contains.
bool is_branch(const Inst& inst);
uint64_t branch_target(const Inst& inst);

}  // namespace emu
