#pragma once

// The state of a wave and the operations that a kernel is lowered to. An operation's handler does
// its work and calls the next one's, so nothing is decided while a kernel runs that could be
// decided when it is loaded.

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

/// What a vector operand is taken from and how.
struct SourceForm {
  bool vector = false;  // a VGPR, not a scalar to be spread over the lanes
  bool neg = false, abs = false, sext = false;
  bool hi = false;                     // 16-bit: the upper half; packed: the low lane's source
  bool neg_hi = false, hi_hi = false;  // packed: of the high lane
  uint8_t byte = 0, bytes = 4;         // SDWA: the part of the register
};

/// The rarer properties of an operation.
struct Extra {
  SourceForm src[3];
  uint8_t omod = 0;  // 1: times 2, 2: times 4, 3: halved
  bool clamp = false;
  bool dst_hi = false;      // 16-bit result into the upper half
  bool keep_high = true;    // 16-bit result: the rest of the register stays; else it becomes zero
  bool cross_lane = false;  // DPP: source 0 comes from other lanes
  bool bound_zero = false, fetch_inactive = false;
  uint8_t from[64] = {};                                // DPP: the lane to read
  uint64_t valid = 0;                                   // DPP: lanes whose source is within the row
  uint64_t enabled = 0;                                 // DPP: lanes of the row and bank masks
  uint8_t dst_byte = 0, dst_bytes = 4, dst_unused = 0;  // SDWA; unused: 0 zero, 1 sign, 2 keep
};

/// One step of a lowered kernel. Operands are byte offsets from the wave.
struct Op {
  Handler fn = nullptr;
  uint32_t dst = 0, dst2 = 0;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  int32_t imm = 0;
  uint32_t imm2 = 0;
  const Extra* extra = nullptr;
  const Op* target = nullptr;  // branches
  void* data = nullptr;        // of pseudo-operations
};

inline constexpr int kSgprs = 128;
inline constexpr int kVcc = 106, kTtmp = 108, kNull = 124, kM0 = 125, kExec = 126;

/// Addresses of flat instructions whose upper half says LDS or scratch.
inline constexpr uint64_t kSharedBase = uint64_t{0x00010000} << 32;
inline constexpr uint64_t kPrivateBase = uint64_t{0x00020000} << 32;

inline constexpr uint32_t kConstants = 8192;

struct alignas(128) Wave {
  uint32_t s[kSgprs];  // by encoding
  uint32_t scc;
  uint32_t sink[2];       // what goes to NULL
  uint32_t temporary[4];  // of pseudo-operations
  uint32_t mode;          // the MODE register: rounding and denormals
  uint32_t priority;
  int64_t budget;  // backward branches until the wave lets others run
  const Op* next;  // where to go on
  uint8_t* lds;
  uint32_t lds_bytes;
  uint32_t scratch_bytes;  // of a lane
  uint8_t* scratch;        // dword d of lane l at (d * lanes + l) * 4
  Workgroup* group;
  Launch* launch;
  const Program* program;
  Track* track;         // of the checked tables alone
  uint32_t index;       // in the workgroup
  uint32_t lanes;       // 32 or 64
  uint32_t vgprs;       // of a half
  uint32_t half_bytes;  // from a register's first half to its second
  uint32_t constants_loaded;
  Op indexed[2];  // an operation whose registers M0 shifts, and the way back from it
  uint64_t constants[kConstants];  // of the module's instructions
  alignas(128) U32 spare[2];       // pseudo-operations' own vector registers
  alignas(128) U32 v[1];           // registers of the first half, then of the second

  U32& vgpr(int half, int reg) { return v[half * vgprs + reg]; }
  uint64_t exec() const { return uint64_t{s[kExec + 1]} << 32 | s[kExec]; }
};

template <class T>
EMU_INLINE T& at(Wave* w, uint32_t offset) {
  return *reinterpret_cast<T*>(reinterpret_cast<char*>(w) + offset);
}

/// Accumulation registers follow the vector registers.
inline constexpr int kFirstAgpr = 256;

/// In place of a register's number: the wave's spare one.
inline constexpr uint16_t kSpareVgpr = 0xffff;

inline constexpr uint32_t kVgprBase = offsetof(Wave, v);
constexpr uint32_t vgpr_offset(int reg) { return kVgprBase + static_cast<uint32_t>(reg) * 128; }
inline constexpr uint32_t kConstantsBase = offsetof(Wave, constants);
constexpr uint32_t sgpr_offset(int reg) { return static_cast<uint32_t>(reg) * 4; }

#define EMU_NEXT                              \
  do {                                        \
    ++op;                                     \
    [[clang::musttail]] return op->fn(w, op); \
  } while (0)

}  // namespace emu
