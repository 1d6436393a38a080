#pragma once

// Defines a kernel launch (the state that all its waves share) and the worker that runs one
// workgroup.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emu/exec/profile.h"
#include "emu/exec/program.h"
#include "emu/exec/races.h"
#include "emu/exec/track.h"
#include "emu/exec/wave.h"
#include "emu/runtime/shadow.h"

namespace emu {

/// The fields of a code object's 64-byte kernel descriptor `NAME.kd` that determine the initial
/// state of a wave.
struct Descriptor {
  uint32_t lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 0;
  int64_t entry_offset = 0;  // from the descriptor to the first instruction
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // kernel_code_properties
  uint16_t preload = 0;

  int user_sgprs() const { return static_cast<int>(rsrc2 >> 1 & 31); }
  bool wave32() const { return (properties >> 10 & 1) != 0; }
  /// The number of vector registers that the kernel may name.
  int vgprs(int generation) const;
  /// The initial MODE register: rounding and denormal handling, the IEEE and clamp bits above them,
  /// and FP16_OVFL.
  uint32_t mode() const {
    return (rsrc1 >> 12 & 0xff) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9 |
           (rsrc1 >> 26 & 1) << 23;
  }
};

/// State that all waves of a launch share. Sizes are in bytes; workgroup and work-item counts are
/// in x, y, z.
struct Launch {
  Code* code = nullptr;
  Descriptor descriptor;
  std::string kernel;  // its name, for reports
  uint64_t entry = 0;  // address of the first instruction in the code object
  uint64_t base = 0;   // device address at which address 0 of the object is loaded
  std::array<uint32_t, 3> groups{1, 1, 1}, block{1, 1, 1};
  /// Work-items of the whole grid if the last workgroups are smaller than the others, zeros
  /// otherwise.
  std::array<uint32_t, 3> grid{0, 0, 0};
  uint32_t lds_bytes = 0;                     // static and dynamic
  uint64_t kernarg = 0, dispatch_packet = 0;  // addresses
  int vgprs = 0;                              // registers allocated for a wave
  bool checked = false;                       // the code's tables are the checked ones
  const Shadow* shadow = nullptr;  // the shadow of device memory, which the checked tables need
  bool check_races = true;         // races in LDS, and in global memory if `races` is set
  bool check_alignment = false;
  RaceShadow* races = nullptr;
  MemoryCounts* memory_counts = nullptr;  // null: memory accesses aren't counted
  uint32_t race_tag = 0;                  // (launch number modulo 255, plus one) << 24
  ForeignLaunches foreign;
  uint64_t seed = 0;  // seed of the random order of waves; 0: waves run in order
  /// Used in reports: `line` gives the source line of an address in the object, and `describe` says
  /// what a memory address belongs to.
  std::function<std::string(uint64_t)> line, describe;
  /// Returns whether memory outside the arena may be accessed, as registered host memory may.
  std::function<bool(uint64_t, size_t)> mapped;
  /// Serves a wave that interrupts the host or sleeps. Returns why the launch must fail, or an
  /// empty string. Null if the kernel has no such services.
  std::function<std::string()> interrupt;
  std::atomic<bool> stop{false};  // no further instruction may run
  std::mutex mutex;
  std::string error;  // message of the first wave that failed
  // Findings of the checks, at most one per kind and instruction.
  std::vector<std::string> findings;
  std::set<std::pair<uint64_t, int>> reported;
  // By the address of a load: whether it only replaces bits (see exec/bitfield.h).
  std::map<uint64_t, bool> bitfield_loads;

  uint64_t group_count() const { return uint64_t{groups[0]} * groups[1] * groups[2]; }
  uint32_t items() const { return block[0] * block[1] * block[2]; }
  /// The size of a workgroup, which is smaller than `block` at the edge of a grid that `block`
  /// doesn't divide.
  std::array<uint32_t, 3> block_of(const std::array<uint32_t, 3>& id) const;
};

/// A workgroup that is running.
struct Workgroup {
  Launch* launch = nullptr;
  uint32_t number = 0;  // index in the grid
  Tag tag = 0;          // the upper half of the tags of its accesses to global memory
  uint32_t waves_begun = 0;
  bool synchronised = false;      // it ran something that may order it with other workgroups
  bool watches_stores = false;    // whether waves record their stores until they wait for them
  LdsTrack* lds_track = nullptr;  // null in the unchecked tables
  std::array<uint32_t, 3> id{}, block{};
  std::vector<Wave*> waves;

  uint32_t items() const { return block[0] * block[1] * block[2]; }
  /// Returns whether its waves must wait for their stores to global memory before a barrier. They
  /// must if they may run on several compute units, each with its own cache: in WGP mode on gfx10
  /// and later, and in threadgroup-split mode on gfx90a and gfx942. On one compute unit, memory
  /// operations of different waves are performed in the order in which they were issued.
  bool spreads() const;
};

/// Memory for the waves of one workgroup (registers, LDS and scratch), which is reused for later
/// workgroups.
class Worker {
 public:
  /// Runs a workgroup to its end. Returns false if a wave failed; `launch.error` has the message.
  bool run(Launch& launch, uint64_t group);

  enum class Progress { done, failed, paused };
  /// Sets up the waves of a workgroup. Throws std::runtime_error if its code can't be run.
  void begin(Launch& launch, uint64_t group);
  /// Gives every wave one turn of at most `budget` backward branches. Returns `paused` when every
  /// wave that could run has had its turn; other workgroups may have to run before this one can go
  /// on.
  Progress step(int64_t budget);

 private:
  void prepare(Launch& launch);
  void start(Launch& launch, Wave& wave, uint32_t index);
  uint32_t turn_start();
  void check_meeting();
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> waves_;
  std::unique_ptr<uint8_t, Free> lds_, scratch_;
  size_t waves_bytes_ = 0, lds_bytes_ = 0, scratch_bytes_ = 0, wave_bytes_ = 0, track_bytes_ = 0;
  uint64_t constants_of_ = 0;  // the serial number of the code
  uint64_t entry_ = 0;         // entry address in that code, with its program and operation:
  const Program* entry_program_ = nullptr;
  const Op* entry_op_ = nullptr;
  Workgroup group_;
  LdsTrack lds_track_;
  std::vector<std::unique_ptr<char, Free>> tracks_;  // the Track of each wave, in checked code
  std::vector<ScratchTrack> scratch_tracks_;  // the ScratchTrack of each wave, in checked code
  enum class State : uint8_t { ready, waiting, done };
  std::array<State, 64> state_{};
  uint32_t count_ = 0, done_ = 0;
  int scalars_ = 0;  // how many scalar registers a wave is given
  uint64_t random_ = 0;
};

/// Makes the wave continue at an address of its code object and returns the operation there. Throws
/// std::runtime_error if there is no code at the address.
const Op* enter(Wave* w, uint64_t address);
/// Makes the wave continue at an operation that has been found already.
void enter(Wave* w, const Program& program, const Op* op);

/// The checks that WICK_EMU_CHECK can enable.
enum class Check : uint8_t { memory, lds, registers, waits, races, barriers, leaks, alignment };

/// Records a finding of a check; the kernel continues. A negative `lane` stands for the whole wave.
void report(Wave* w, const Op* op, Check check, int lane, const std::string& what);

/// Returns whether this check has already reported this instruction, so that callers can skip
/// preparing a message.
bool was_reported(Wave* w, const Op* op, Check check);

/// Returns where an operation comes from. For the wave's own indexed operation (see Wave::indexed),
/// this is the origin of the operation that it was copied from.
inline const Origin& origin_of(const Wave* w, const Op* op) {
  return w->program->origin(op == &w->indexed[0] ? w->indexed[1].target - 1 : op);
}

/// Ends the launch with an error; the message is `what` after the kernel, instruction and wave.
Stop fail(Wave* w, const Op* op, const std::string& what);
/// The overload for handlers, which are compiled for one instruction set of the host and mustn't
/// instantiate library code such as std::string.
Stop fail(Wave* w, const Op* op, const char* what);

/// The checked tables call these functions when an access is wrong. They report it and return
/// whether the access may proceed. `lane` is the lane's index within its half.
bool bad_read(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane);
bool bad_write(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane);
/// Reports an address of a scalar load that isn't a multiple of `align`.
void bad_scalar_address(Wave* w, const Op* op, uint64_t address, uint32_t align);
void bad_lds(Wave* w, const Op* op, int64_t offset, uint32_t bytes, int lane);
/// Reports that base + offsets[lane] of some enabled lane isn't a multiple of `align`.
void bad_alignment(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets, LaneMask enabled,
                   uint32_t align);
bool bad_scratch(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane);

/// Selects the tables for the host's widest instruction set, or for the one that WICK_EMU_ISA
/// names.
RowChoice select_rows(bool checked, int generation);

}  // namespace emu
