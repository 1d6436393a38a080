#pragma once

// The forms in which an opcode is tested, the registers of each form, and the check of its results.

#include <string>
#include <vector>

#include "emu/tests/ops.h"

namespace emu::test {

/// The encoding of SDWA's register parts: four bytes, two words, the whole register.
inline constexpr int kFirstWord = 4, kWhole = 6;

struct Source {
  enum Kind : uint8_t { vgpr, sgpr, constant, destination } kind = vgpr;
  bool neg = false, abs = false;
  bool hi = false, hi_hi = true, neg_hi = false;  // op_sel, op_sel_hi, neg_hi
  uint64_t value = 0;                             // constant: the value that the instruction sees
  std::string text;                               // constant: its text
  int part = kWhole;                              // SDWA
  bool sext = false;
};

struct Dpp {
  std::string text;       // empty: none
  std::vector<int> from;  // source lane of each lane, -1 outside the row
  int row_mask = 15, bank_mask = 15;
  bool bound_zero = false, fetch_inactive = false;
};

struct Form {
  std::vector<Source> sources;
  bool clamp = false, dst_hi = false, in_place = false, vcc = false;
  int omod = 0;  // 1: times 2, 2: times 4, 3: halved
  bool sdwa = false;
  // Other bits of the destination become 0: zero, 1: the sign, or 2: are preserved.
  int dst_part = kWhole, dst_unused = 0;
  Dpp dpp;
  int rounds = 4;
  int exec = 0;  // 0: all lanes, 1: alternating, 2: random, 3: none
  uint32_t mode = kDefaultMode;
  std::string text;
  Batch::Patch patch;  // not null: the form runs these changes of the text's machine words
};

/// The registers that the forms use: sources, destination, carry masks.
inline constexpr int kSourceReg[3] = {10, 20, 30}, kDst = 40, kMaskOut = 42;
inline constexpr int kFormVgprs = 48;

std::vector<Form> forms_of(const Spec& spec, const Target& target);

/// Returns forms that the assembler can't write, made of the spec's first form: halves of registers
/// on gfx11, and other values of fields that the instruction doesn't use.
std::vector<Form> word_forms(const Spec& spec, const Target& target, const Form& plain);

/// Sets a form's text. `suffix` names an encoding.
void write_text(const Spec& spec, const Target& target, const std::string& suffix, Form& form);

void fill(const Spec& spec, const Form& form, const Target& target, Random& random, State& state);

/// Returns an empty string if every register has its expected value.
std::string compare(const Spec& spec, const Form& form, const Target& target, const State& before,
                    const State& after);

/// Returns a lane's source under a DPP control, or -1 outside the row, computed from the control's
/// definition.
int dpp_lane(const std::string& control, int amount, int lane);

}  // namespace emu::test
