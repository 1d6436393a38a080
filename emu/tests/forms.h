#pragma once

// The forms in which an opcode is tried, the registers for it, and what must come of them.

#include <string>
#include <vector>

#include "emu/tests/ops.h"

namespace emu::test {

/// SDWA's parts of a register by their encoding: four bytes, two words, all of it.
inline constexpr int kFirstWord = 4, kWhole = 6;

struct Source {
  enum Kind : uint8_t { vgpr, sgpr, constant, destination } kind = vgpr;
  bool neg = false, abs = false;
  bool hi = false, hi_hi = true, neg_hi = false;  // op_sel, op_sel_hi, neg_hi
  uint64_t value = 0;                             // of a constant, as the instruction sees it
  std::string text;                               // of a constant
  int part = kWhole;                              // SDWA
  bool sext = false;
};

struct Dpp {
  std::string text;       // empty: none
  std::vector<int> from;  // lane to read for each lane, -1 out of the row
  int row_mask = 15, bank_mask = 15;
  bool bound_zero = false, fetch_inactive = false;
};

struct Form {
  std::vector<Source> sources;
  bool clamp = false, dst_hi = false, in_place = false, vcc = false;
  int omod = 0;  // 1: times 2, 2: times 4, 3: halved
  bool sdwa = false;
  int dst_part = kWhole, dst_unused = 0;  // the rest becomes 0: zero, 1: the sign, or 2: stays
  Dpp dpp;
  int rounds = 4;
  int exec = 0;  // 0: all lanes, 1: alternating, 2: random, 3: none
  uint32_t mode = kDefaultMode;
  std::string text;
};

/// Registers of the forms: sources, destination, carry masks.
inline constexpr int kSourceReg[3] = {10, 20, 30}, kDst = 40, kMaskOut = 42;

std::vector<Form> forms_of(const Spec& spec, const Target& target);

void fill(const Spec& spec, const Form& form, const Target& target, Random& random, State& state);

/// Empty when every register is what it must be.
std::string compare(const Spec& spec, const Form& form, const Target& target, const State& before,
                    const State& after);

/// A lane's source for DPP controls, -1 out of the row: from their definition.
int dpp_lane(const std::string& control, int amount, int lane);

}  // namespace emu::test
