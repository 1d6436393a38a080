#pragma once

// Which lanes of which registers hold a known value, and which registers wait for memory. Handlers
// say what they read and write; in unchecked tables all of it is nothing.
//
// A register that a load will fill is unknown until a wait says that it is there: reading it is a
// missing wait, and so is writing it. A value computed from unknown lanes is unknown; that is
// reported where it decides something: an address, a comparison, a branch.

#include <cstring>

#include "emu/exec/wave.h"

namespace emu {

#ifdef EMU_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

/// Counters that instructions add to and s_waitcnt waits for. kNoCounter: nothing waits for it.
enum Counter : uint8_t { kVmem = 1, kLds = 2, kSmem = 4, kStore = 8, kExport = 16 };

/// A register range that memory will fill.
struct Pending {
  uint8_t counters;  // those that must be waited for yet
  bool scalar;
  uint16_t first, count;
  LaneMask known[2];                          // lanes that will be known, of each half
  uint32_t vmem_number = 0, lgkm_number = 0;  // among all that its counters count
};

/// Loads of one kind in the order of issue.
struct PendingRing {
  static constexpr uint32_t kRoom = 64;
  uint32_t first, count;
  Pending entries[kRoom];
  Pending& at(uint32_t i) { return entries[(first + i) % kRoom]; }
};

/// Some of the scalar registers.
struct ScalarSet {
  static_assert(kSgprs == 128);
  uint64_t words[2];

  /// Those with numbers below `end`, of 1 … 127.
  static constexpr ScalarSet below(uint32_t end) {
    return end < 64 ? ScalarSet{{(uint64_t{1} << end) - 1, 0}}
                    : ScalarSet{{~uint64_t{0}, (uint64_t{1} << (end - 64)) - 1}};
  }
  bool has(uint32_t reg) const { return (words[reg / 64] >> reg % 64 & 1) != 0; }
  void add(uint32_t reg) { words[reg / 64] |= uint64_t{1} << reg % 64; }
  void remove(uint32_t reg) { words[reg / 64] &= ~(uint64_t{1} << reg % 64); }
  void set(uint32_t reg, bool member) { member ? add(reg) : remove(reg); }
  bool holds(const ScalarSet& other) const {
    return ((other.words[0] & ~words[0]) | (other.words[1] & ~words[1])) == 0;
  }
  void add(const ScalarSet& other) {
    words[0] |= other.words[0];
    words[1] |= other.words[1];
  }
};

/// What is tracked of a wave, beside its registers. The arrays by vector register start two before
/// register 0: the wave's spare registers.
struct Track {
  ScalarSet scalar_known;
  // Of those that aren't: some of the bits may be, as in masks of lanes.
  ScalarSet scalar_partial;
  uint32_t scalar_bits[kSgprs];
  uint8_t scalar_pending[kSgprs];  // loads under way
  bool scc_known;                  // what SCC was last set from
  PendingRing vmem, lds, smem;
  uint32_t vmem_issued, lgkm_issued;  // instructions that the counters have counted
  uint64_t started;                   // EXEC at the start: the lanes that a barrier waits for
  LaneMask* known[2];                 // by vector register, of each half
  uint8_t* pending;                   // by vector register: loads under way
};

/// A barrier that some of the wave's lanes don't reach is reported.
void check_barrier(Wave* w, const Op* op);

// Reports, out of line; true: go on.
bool unknown_vector(Wave* w, const Op* op, int half, int32_t reg, uint32_t count, LaneMask enabled,
                    bool decides);
bool unknown_scalar(Wave* w, const Op* op, uint32_t reg);
void unknown_scc(Wave* w, const Op* op);
/// Ends the wait for entries as s_waitcnt asks: at most `left` of the counter's stay outstanding.
void wait_for_vmem(Wave* w, uint32_t left);
void wait_for_lds_and_smem(Wave* w, uint32_t left);
/// A load was issued into `count` registers from `first` on, for the lanes of EXEC.
void add_pending(Wave* w, uint8_t counters, bool scalar, uint32_t first, uint32_t count);
/// A store was issued: kLds as far as it may go to LDS, kStore to memory.
void count_store(Wave* w, uint8_t counters);
/// A vector register that may wait for memory is written.
void written_while_pending(Wave* w, const Op* op, int32_t reg);

namespace {

EMU_INLINE bool is_sgpr(uint32_t offset) { return offset < kSgprs * 4; }
EMU_INLINE int32_t vgpr_of(uint32_t offset) {
  return static_cast<int32_t>(offset - kVgprBase) / 128;
}
EMU_INLINE bool is_vgpr(uint32_t offset) { return offset >= kVgprBase - 256; }

/// The lanes of a vector register that are known.
EMU_INLINE LaneMask known_lanes(Wave* w, uint32_t offset, int half) {
  return is_vgpr(offset) ? w->track->known[half][vgpr_of(offset)] : kAllLanes;
}

/// A scalar operand of `dwords` is read.
EMU_INLINE void read_scalar(Wave* w, const Op* op, uint32_t offset, uint32_t dwords) {
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return;
    for (uint32_t i = 0; i < dwords; ++i) {
      if (!w->track->scalar_known.has(offset / 4 + i)) [[unlikely]] {
        unknown_scalar(w, op, offset / 4 + i);
      }
    }
  }
}

EMU_INLINE void write_scalar(Wave* w, const Op*, uint32_t offset, uint32_t dwords,
                             bool known = true) {
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return;
    for (uint32_t i = 0; i < dwords; ++i) {
      w->track->scalar_known.set(offset / 4 + i, known);
      if (!known) w->track->scalar_partial.remove(offset / 4 + i);
    }
  }
}

/// The bits of a scalar dword that are known; reports nothing but a missing wait.
EMU_INLINE uint32_t known_bits(Wave* w, const Op* op, uint32_t offset) {
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return ~0u;
    const uint32_t reg = offset / 4;
    if (w->track->scalar_known.has(reg)) [[likely]]
      return ~0u;
    if (w->track->scalar_pending[reg] != 0) unknown_scalar(w, op, reg);
    return w->track->scalar_partial.has(reg) ? w->track->scalar_bits[reg] : 0;
  }
  return ~0u;
}

/// A scalar dword is written, of which these bits are known then.
EMU_INLINE void write_bits(Wave* w, uint32_t offset, uint32_t known) {
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return;
    const uint32_t reg = offset / 4;
    w->track->scalar_known.set(reg, known == ~0u);
    if (known == ~0u) [[likely]]
      return;
    w->track->scalar_partial.add(reg);
    w->track->scalar_bits[reg] = known;
  }
}

/// Whether a scalar operand is known, for an operation whose result is known only then; reports
/// nothing but a missing wait.
EMU_INLINE bool pass_scalar(Wave* w, const Op* op, uint32_t offset, uint32_t dwords) {
  bool known = true;
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return true;
    for (uint32_t i = 0; i < dwords; ++i) {
      if (w->track->scalar_known.has(offset / 4 + i)) [[likely]]
        continue;
      known = false;
      if (w->track->scalar_pending[offset / 4 + i] != 0) unknown_scalar(w, op, offset / 4 + i);
    }
  }
  return known;
}

/// SCC decides.
EMU_INLINE void read_scc(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    if (!w->track->scc_known) [[unlikely]]
      unknown_scc(w, op);
  }
}

/// A vector operand of `registers` is read: the lanes that are known in all of them.
EMU_INLINE LaneMask read_vector(Wave* w, const Op* op, uint32_t offset, uint32_t registers,
                                int half, LaneMask enabled, bool decides = false) {
  if constexpr (kChecked) {
    const LaneMask* known = w->track->known[half] + vgpr_of(offset);
    LaneMask all = known[0];
    for (uint32_t i = 1; i < registers; ++i) all &= known[i];
    if ((enabled & ~all) != 0) [[unlikely]] {
      unknown_vector(w, op, half, vgpr_of(offset), registers, enabled, decides);
    }
    return all;
  }
  return kAllLanes;
}

EMU_INLINE void write_vector(Wave* w, const Op* op, uint32_t offset, uint32_t registers, int half,
                             LaneMask enabled, LaneMask known) {
  if constexpr (kChecked) {
    LaneMask* first = w->track->known[half] + vgpr_of(offset);
    for (uint32_t i = 0; i < registers; ++i) {
      const LaneMask now = first[i];
      if (now == 0) [[unlikely]] {
        written_while_pending(w, op, vgpr_of(offset) + static_cast<int32_t>(i));
      }
      first[i] = (now & ~enabled) | (known & enabled);
    }
  }
}

/// A load into registers was issued: they are unknown until its counter has been waited for.
EMU_INLINE void load_issued(Wave* w, const Op*, uint32_t offset, uint32_t registers,
                            uint8_t counters) {
  if constexpr (kChecked) {
    const bool scalar = counters == kSmem;
    if (scalar && !is_sgpr(offset)) return;  // to NULL
    const auto first = scalar ? offset / 4 : static_cast<uint32_t>(vgpr_of(offset));
    add_pending(w, counters, scalar, first, registers);
  }
}

EMU_INLINE void store_issued(Wave* w, uint8_t counters) {
  if constexpr (kChecked) count_store(w, counters);
}

}  // namespace
}  // namespace emu
