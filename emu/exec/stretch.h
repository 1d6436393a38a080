#pragma once

// Makes checked code run at nearly the speed of unchecked code. A stretch is a sequence of
// instructions that only compute under one EXEC. If everything that it reads is known at its start,
// everything that it writes is known at its end, and no instruction within it can have anything to
// report. The instructions of a stretch are therefore also lowered by the unchecked tables, and one
// pseudo-operation at the head performs the checks of all of them. If an input is unknown, the
// checked instructions run instead and report it.
//
// Loads and stores may be part of a stretch, as checked operations ("guests"), if no later
// instruction of the stretch uses a register that they name. The values that they load aren't known
// at the head, and the registers that they read mustn't be marked as known too early. A wait ends a
// stretch, since the head can't know what it waits for.

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "emu/exec/lowering.h"
#include "emu/exec/track.h"

namespace emu {

/// The registers that the head of a stretch checks and marks.
struct Stretch {
  /// A register that is known at the end if certain other registers were known at the start.
  struct Flow {
    int16_t to;
    std::vector<int16_t> from;
  };
  static constexpr size_t kFlows = 8;

  std::vector<int16_t> reads, writes;  // vector registers; `reads` come from outside
  ScalarSet scalar_reads, scalar_writes;
  std::vector<Flow> flows;  // for registers that are also in `writes`
  bool scc = false;         // whether an instruction uses SCC
};

/// Builds a stretch instruction by instruction.
class StretchBuilder {
 public:
  /// Adds the accesses of the next instruction. Returns false and adds nothing if the instruction
  /// uses a register that a guest named.
  bool add(std::span<const std::vector<Access>> parts);
  /// Adds a load or store that runs within the stretch with its own checks.
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
  std::map<int16_t, std::set<int16_t>> flowing_;  // indexed by the register that is written
  bool scc_ = false;
};

/// Returns whether an instruction may be a guest.
bool may_be_guest(const Inst& inst);

/// Runs the head of a stretch. Op::data is the stretch; Op::target is the first checked operation.
Stop enter_stretch(Wave* w, const Op* op);
/// Continues at Op::target.
Stop leave_stretch(Wave* w, const Op* op);

}  // namespace emu
