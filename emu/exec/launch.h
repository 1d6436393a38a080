#pragma once

// A kernel on its way: what every wave of it shares, and how one workgroup is run.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "emu/exec/profile.h"
#include "emu/exec/program.h"
#include "emu/exec/races.h"
#include "emu/exec/wave.h"
#include "emu/runtime/shadow.h"

namespace emu {

/// The 64 bytes `NAME.kd` of a code object, as far as a wave's start depends on them.
struct Descriptor {
  uint32_t lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 0;
  int64_t entry_offset = 0;  // from the descriptor to the first instruction
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // kernel_code_properties
  uint16_t preload = 0;

  int user_sgprs() const { return static_cast<int>(rsrc2 >> 1 & 31); }
  bool wave32() const { return (properties >> 10 & 1) != 0; }
  /// Vector registers that the kernel may name.
  int vgprs(int generation) const;
  /// The MODE register at the start: rounding and denormal handling, and above them IEEE and clamp.
  uint32_t mode() const {
    return (rsrc1 >> 12 & 0xff) | (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9;
  }
};

/// What one launch of a kernel shares among its waves. Sizes in bytes, group and item counts in
/// x, y, z.
struct Launch {
  Code* code = nullptr;
  Descriptor descriptor;
  std::string kernel;  // its name, for reports
  uint64_t entry = 0;  // of the first instruction, in the code object
  uint64_t base = 0;   // where address 0 of the object lies in the device's memory
  std::array<uint32_t, 3> groups{1, 1, 1}, block{1, 1, 1};
  /// Work-items of the whole grid where the last groups are smaller than the others; else zeros.
  std::array<uint32_t, 3> grid{0, 0, 0};
  uint32_t lds_bytes = 0;                     // static and dynamic
  uint64_t kernarg = 0, dispatch_packet = 0;  // addresses
  int vgprs = 0;                              // of a wave, as allocated
  bool checked = false;                       // the code's tables are the checked ones
  const Shadow* shadow = nullptr;             // of device memory; the checked tables need it
  bool check_races = true;  // in LDS; in global memory where there is a shadow for it
  RaceShadow* races = nullptr;
  MemoryCounts* memory_counts = nullptr;  // null: nothing is counted
  uint32_t race_tag = 0;  // of this launch: its number, modulo 255 and plus one, << 24
  uint64_t seed = 0;      // of the order of waves; 0: as they are numbered
  /// For reports: the source line of an address of the object, and what an address of memory is.
  std::function<std::string(uint64_t)> line, describe;
  /// Whether memory outside of the arena may be used: host memory that was registered.
  std::function<bool(uint64_t, size_t)> mapped;
  std::atomic<bool> stop{false};  // no further instruction is to be run
  std::mutex mutex;
  std::string error;                  // of the first wave that failed
  std::vector<std::string> findings;  // of the checks, one of a kind an instruction
  std::set<std::pair<uint64_t, int>> reported;

  uint64_t group_count() const { return uint64_t{groups[0]} * groups[1] * groups[2]; }
  uint32_t items() const { return block[0] * block[1] * block[2]; }
  /// A group's size: smaller than `block` at the end of a grid that it doesn't divide.
  std::array<uint32_t, 3> block_of(const std::array<uint32_t, 3>& id) const;
};

/// A workgroup while it runs.
struct Workgroup {
  Launch* launch = nullptr;
  uint32_t number = 0;  // in the grid
  uint32_t waves_begun = 0;
  bool synchronised = false;      // it used what may put it in order with other workgroups
  LdsTrack* lds_track = nullptr;  // of the checked tables alone
  std::array<uint32_t, 3> id{}, block{};
  std::vector<Wave*> waves;

  uint32_t items() const { return block[0] * block[1] * block[2]; }
};

/// Room for the waves of one workgroup: registers, LDS and scratch, kept from one to the next.
class Worker {
 public:
  /// Runs a workgroup to its end. False when a wave failed: `launch.error` says why.
  bool run(Launch& launch, uint64_t group);

  enum class Progress { done, failed, paused };
  /// Lays a workgroup out. Throws std::runtime_error where its code can't be run.
  void begin(Launch& launch, uint64_t group);
  /// Gives every wave one turn of at most `budget` backward branches. Paused: all that could go on
  /// did, and others may have to before this group can.
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
  uint64_t entry_ = 0;         // of that code; its program and operation:
  const Program* entry_program_ = nullptr;
  const Op* entry_op_ = nullptr;
  Workgroup group_;
  LdsTrack lds_track_;
  std::vector<std::unique_ptr<char, Free>> tracks_;  // of each wave, where it is tracked
  enum class State : uint8_t { ready, waiting, done };
  std::array<State, 64> state_{};
  uint32_t count_ = 0, done_ = 0;
  uint64_t random_ = 0;
};

/// Makes the wave go on at an address of its code object, and gives back the operation there.
/// Throws std::runtime_error where there is no code.
const Op* enter(Wave* w, uint64_t address);
/// The same where the program and its operation have been found already.
void enter(Wave* w, const Program& program, const Op* op);

/// What WICK_EMU_CHECK can switch on.
enum class Check : uint8_t { memory, lds, registers, waits, races, barriers, leaks, alignment };

/// Notes a finding of a check; the kernel goes on. `lane` negative: the whole wave.
void report(Wave* w, const Op* op, Check check, int lane, const std::string& what);

/// Whether the instruction has been reported for this already: then nothing need be made ready.
bool was_reported(Wave* w, const Op* op, Check check);

/// Where an operation comes from. That of an indexed one, which is the wave's own: see wave.h.
inline const Origin& origin_of(const Wave* w, const Op* op) {
  return w->program->origin(op == &w->indexed[0] ? w->indexed[1].target - 1 : op);
}

/// Ends the launch with an error: kernel, instruction and wave go before `what`.
Stop fail(Wave* w, const Op* op, const std::string& what);
/// The same for handlers, which are built for one host and mustn't carry the library's own code.
Stop fail(Wave* w, const Op* op, const char* what);

/// What the checked tables call when an access isn't right: a report, and whether the access may go
/// on. `lane` within its half.
bool bad_read(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane);
bool bad_write(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane);
void bad_lds(Wave* w, const Op* op, int64_t offset, uint32_t bytes, int lane);
/// Some enabled lane's base + offsets[lane] isn't a multiple of `align`.
void bad_alignment(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets, LaneMask enabled,
                   uint32_t align);
bool bad_scratch(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane);

/// The rows of the quickest host instruction set, or of the one that WICK_EMU_ISA names.
RowChoice select_rows(bool checked, int generation);

}  // namespace emu
