#pragma once

// The state of a wave, and the operations that a kernel is lowered to. The handler of an operation
// does its work and tail-calls the next handler. Everything that can be decided when a kernel is
// loaded is decided then.

#include <cstddef>
#include <cstdint>

#include "emu/exec/lanes.h"

namespace emu {

struct Op;
struct Wave;
struct Launch;     // exec/launch.h
struct Workgroup;  // exec/launch.h
struct Program;    // exec/program.h
struct Track;      // exec/track.h

/// Why a wave stopped running.
enum class Stop : int { barrier, end, yield, fault };

using Handler = Stop (*)(Wave*, const Op*);

/// Where a vector operand comes from and how it is modified.
struct SourceForm {
  bool vector = false;  // a VGPR, not a scalar that is broadcast to the lanes
  bool neg = false, abs = false, sext = false;
  bool hi = false;  // 16-bit: the upper half; packed: half that the low result reads
  bool neg_hi = false, hi_hi = false;  // packed: for the high result
  uint8_t byte = 0, bytes = 4;         // SDWA: the selected bytes of the register
};

/// Properties that only some operations have.
struct Extra {
  SourceForm src[3];
  uint8_t omod = 0;  // 1: times 2, 2: times 4, 3: divided by 2
  bool clamp = false;
  bool dst_hi = false;      // a 16-bit result goes to the upper half
  bool keep_high = true;    // a 16-bit result preserves the other half; else it becomes 0
  bool cross_lane = false;  // DPP: source 0 comes from other lanes
  bool bound_zero = false, fetch_inactive = false;
  uint8_t from[64] = {};  // DPP: the lane to read
  uint64_t valid = 0;     // DPP: lanes whose source is valid
  uint64_t enabled = 0;   // DPP: lanes that the row and bank masks enable
  uint8_t dst_byte = 0, dst_bytes = 4, dst_unused = 0;  // SDWA; unused: 0 zero, 1 sign, 2 keep
};

/// One step of a lowered kernel. Operands are byte offsets from the start of the wave.
struct Op {
  Handler fn = nullptr;
  uint32_t dst = 0, dst2 = 0;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  int32_t imm = 0;
  uint32_t imm2 = 0;
  const Extra* extra = nullptr;
  const Op* target = nullptr;  // branches
  void* data = nullptr;        // used by pseudo-operations
};

inline constexpr int kSgprs = 128;
inline constexpr int kVcc = 106, kTtmp = 108, kNull = 124, kM0 = 125, kExec = 126;

/// The upper halves of flat addresses that refer to LDS and to scratch.
inline constexpr uint64_t kSharedBase = uint64_t{0x00010000} << 32;
inline constexpr uint64_t kPrivateBase = uint64_t{0x00020000} << 32;

inline constexpr uint32_t kConstants = 8192;

struct alignas(128) Wave {
  uint32_t s[kSgprs];  // indexed by encoding
  uint32_t scc;
  uint32_t sink[2];       // receives writes to NULL
  uint32_t temporary[4];  // used by pseudo-operations
  uint32_t mode;          // the MODE register: rounding and denormals
  uint32_t priority;
  int64_t budget;  // backward branches until the wave yields
  const Op* next;  // where to continue
  uint8_t* lds;
  uint32_t lds_bytes;
  uint32_t scratch_bytes;  // per lane
  uint8_t* scratch;        // dword d of lane l at (d * lanes + l) * 4
  Workgroup* group;
  Launch* launch;
  const Program* program;
  Track* track;         // null in the unchecked tables
  uint32_t index;       // index in the workgroup
  uint32_t lanes;       // 32 or 64
  uint32_t vgprs;       // per half
  uint32_t half_bytes;  // distance from a register's first half to its second
  uint32_t constants_loaded;
  Op indexed[2];  // a copy of an operation with registers shifted by M0, and the jump back from it
  uint64_t constants[kConstants];  // constants of the module's instructions
  alignas(128) U32 spare[2];       // vector registers of pseudo-operations
  alignas(128) U32 v[1];           // registers of the first half, then of the second

  U32& vgpr(int half, int reg) { return v[half * vgprs + reg]; }
  uint64_t exec() const { return uint64_t{s[kExec + 1]} << 32 | s[kExec]; }
};

template <class T>
EMU_INLINE T& at(Wave* w, uint32_t offset) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(w) + offset);
}

/// Accumulation registers are numbered after the vector registers.
inline constexpr int kFirstAgpr = 256;

/// Used as a register's number to name the wave's spare register.
inline constexpr uint16_t kSpareVgpr = 0xffff;

inline constexpr uint32_t kVgprBase = offsetof(Wave, v);
constexpr uint32_t vgpr_offset(int reg) { return kVgprBase + static_cast<uint32_t>(reg) * 128; }
inline constexpr uint32_t kConstantsBase = offsetof(Wave, constants);
inline constexpr uint32_t kSccOffset = offsetof(Wave, scc);
constexpr uint32_t sgpr_offset(int reg) { return static_cast<uint32_t>(reg) * 4; }

#define EMU_NEXT                              \
  do {                                        \
    ++op;                                     \
    [[clang::musttail]] return op->fn(w, op); \
  } while (0)

}  // namespace emu
