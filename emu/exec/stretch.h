#pragma once

// Checked code at nearly the speed of unchecked: instructions that only compute, one after the
// other and with one EXEC, are a stretch. Where all that it reads is known when it begins, all that
// it writes is known when it ends, and nothing in between can be worth a report: its instructions
// are lowered by the unchecked tables, too, and one pseudo-operation at their head settles the
// checks of them all. Where something is unknown, the checked ones run and say what.
//
// Loads and stores may stand in between, as checked operations, as long as nothing after them in
// the stretch uses a register that they name: what they bring isn't known, and what they read
// mustn't be called known too early. A wait ends a stretch, since what it waits for is unknown at
// the head.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "emu/exec/lowering.h"
#include "emu/exec/track.h"

namespace emu {

/// What the head of a stretch looks at and marks.
struct Stretch {
  /// A register that ends up known where some others were when the stretch began.
  struct Flow {
    int16_t to;
    std::vector<int16_t> from;
  };
  static constexpr size_t kFlows = 8;

  std::vector<int16_t> reads, writes;  // vector registers; reads: those from outside
  ScalarSet scalar_reads, scalar_writes;
  std::vector<Flow> flows;  // of registers that are among the writes
};

/// Puts a stretch together, instruction by instruction.
class StretchBuilder {
 public:
  /// Adds what an instruction does, in order. False, and nothing is added, where it uses a register
  /// that a guest named.
  bool add(std::span<const std::vector<Access>> parts);
  /// A load or store that runs among the others with checks of its own.
  void add_guest(const Inst& inst);
  Stretch finish() const;

 private:
  bool meets_guest(const Access& access) const;
  void add(std::span<const Access> accesses);
  void read(int16_t reg);
  void write(int16_t reg);

  std::set<int16_t> read_, written_;
  std::set<uint8_t> scalar_read_, scalar_written_;
  std::set<int16_t> guests_;  // vector registers that guests name
  std::set<uint8_t> scalar_guests_;
  std::map<int16_t, std::set<int16_t>> flowing_;  // by the register that is written
};

/// Whether an instruction may be a guest.
bool may_be_guest(const Inst& inst);

/// The head of a stretch. Op::data is the stretch, Op::target the checked operations.
Stop enter_stretch(Wave* w, const Op* op);
/// Goes on at Op::target.
Stop leave_stretch(Wave* w, const Op* op);

}  // namespace emu
