#pragma once

// Tracks which lanes of which registers hold a known value, and which registers wait for memory.
// Handlers report what they read and write; in the unchecked tables these calls do nothing.
//
// A register that a load will fill is unknown until a wait guarantees its arrival: reading or
// writing it earlier is a missing wait. A value computed from unknown lanes is unknown. An unknown
// value is reported where it decides something: an address, a comparison or a branch.

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "emu/exec/stores.h"
#include "emu/exec/wave.h"

namespace emu {

#ifdef EMU_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

/// Counters that instructions increment and s_waitcnt waits for.
/// kSample: samples of images on gfx12, which other chips count as kVmem.
enum Counter : uint8_t { kVmem = 1, kLds = 2, kSmem = 4, kStore = 8, kExport = 16, kSample = 32 };

/// A range of vector registers that memory will fill.
struct Pending {
  uint8_t counters;  // counters that still have to be waited for
  uint16_t first, count;
  LaneMask known[2];  // lanes of each half that will be known
  // Position among the instructions that its counters count.
  uint32_t vmem_number = 0, lgkm_number = 0, sample_number = 0;
};

/// Loads of one kind in issue order.
struct PendingRing {
  static constexpr uint32_t kRoom = 64;
  uint32_t first, count;
  Pending entries[kRoom];
  Pending& at(uint32_t i) { return entries[(first + i) % kRoom]; }
};

/// A set of scalar registers.
struct ScalarSet {
  static_assert(kSgprs == 128);
  uint64_t words[2];

  /// The registers with numbers below `end`, which is 1 to 127.
  static constexpr ScalarSet below(uint32_t end) {
    return end < 64 ? ScalarSet{{(uint64_t{1} << end) - 1, 0}}
                    : ScalarSet{{~uint64_t{0}, (uint64_t{1} << (end - 64)) - 1}};
  }
  /// `count` registers from `first` on, at most 64.
  static constexpr ScalarSet range(uint32_t first, uint32_t count) {
    const uint64_t bits = ~uint64_t{0} >> (64 - count);
    if (first >= 64) return {{0, bits << (first - 64)}};
    return {{bits << first, first + count > 64 ? bits >> (64 - first) : 0}};
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
  void remove(const ScalarSet& other) {
    words[0] &= ~other.words[0];
    words[1] &= ~other.words[1];
  }
  bool empty() const { return (words[0] | words[1]) == 0; }
};

/// The state of a wave's scratch.
struct ScratchTrack {
  // For each byte of a lane's scratch, the lanes of both halves in which it is known.
  std::vector<std::array<LaneMask, 2>> known;
  uint32_t used = 0;  // all bytes from here on are unknown

  /// Makes all of it unknown.
  void start(uint32_t bytes) {
    std::fill_n(known.begin(), used, std::array<LaneMask, 2>{});
    used = 0;
    if (known.size() < bytes) known.resize(bytes);
  }
};

/// What is tracked for a wave besides its registers. The arrays indexed by vector register begin
/// two entries before register 0, with the wave's spare registers.
struct Track {
  ScalarSet scalar_known;
  // Unknown registers of which some bits may be known, as in lane masks.
  ScalarSet scalar_partial;
  uint32_t scalar_bits[kSgprs];
  // Registers that scalar loads will fill. These loads return in any order, so that only a wait for
  // all of them guarantees anything.
  ScalarSet scalar_pending;
  bool scc_known;  // whether the value that SCC was set from was known
  PendingRing vmem, lds, samples;
  // Number of instructions that the counters have counted. From gfx10 on, stores to memory have a
  // counter of their own; before, they are counted by vmem_issued.
  uint32_t vmem_issued, lgkm_issued, stores_issued, samples_issued;
  bool stores_counted;
  bool scalars_counted;  // LDS and scalar loads share a counter, as they do until gfx11
  // Stores that other waves may not see yet, recorded if the wave's workgroup needs to wait for
  // them before a barrier.
  bool watches_lds, watches_global;
  StoreRing lds_stores, global_stores;
  ScratchTrack* scratch;
  LaneMask load_unknown[2];  // lanes in which the load that is being issued gives unknown values
  uint64_t started;          // EXEC at the start: the lanes that a barrier waits for
  LaneMask* known[2];        // indexed by vector register, for each half
  uint8_t* pending;          // outstanding loads, indexed by vector register
};

/// Reports a barrier that some of the wave's lanes don't reach.
void check_barrier(Wave* w, const Op* op);
/// The wave arrives at a barrier, or ends.
void arrive(Wave* w);
/// Records a store of these lanes, which count_store() will count. `base` is an offset in LDS or an
/// address.
void add_store(Wave* w, bool lds, uint64_t base, const uint32_t* offsets, LaneMask lanes,
               uint32_t bytes, bool atomic);

// These functions report, out of line. They return true if the kernel continues.
bool unknown_vector(Wave* w, const Op* op, int half, int32_t reg, uint32_t count, LaneMask enabled,
                    bool decides);
bool unknown_scalar(Wave* w, const Op* op, uint32_t reg);
void unknown_scc(Wave* w, const Op* op);
/// Applies s_waitcnt: at most `left` instructions of the counter stay outstanding. LDS and scalar
/// loads have one counter until gfx11, and a counter each on gfx12.
void wait_for_vmem(Wave* w, uint32_t left);
void wait_for_lds_and_smem(Wave* w, uint32_t left);
void wait_for_lds(Wave* w, uint32_t left);
void wait_for_smem(Wave* w, uint32_t left);
/// For the counter of stores that gfx10 and later have.
void wait_for_stores(Wave* w, uint32_t left);
/// For the counter of samples that gfx12 has.
void wait_for_samples(Wave* w, uint32_t left);
/// Records a load into `count` vector registers from `first` on, for the lanes of EXEC.
void add_pending(Wave* w, uint8_t counters, uint32_t first, uint32_t count);
/// Records a store: kLds if it may access LDS, kStore if it may access memory.
void count_store(Wave* w, uint8_t counters);
/// Reports a write to a vector register that waits for memory.
void written_while_pending(Wave* w, const Op* op, int32_t reg);

namespace {

EMU_INLINE bool is_sgpr(uint32_t offset) { return offset < kSgprs * 4; }
EMU_INLINE int32_t vgpr_of(uint32_t offset) {
  return static_cast<int32_t>(offset - kVgprBase) / 128;
}
EMU_INLINE bool is_vgpr(uint32_t offset) { return offset >= kVgprBase - 256; }

/// Returns the lanes of a vector register that are known.
EMU_INLINE LaneMask known_lanes(Wave* w, uint32_t offset, int half) {
  return is_vgpr(offset) ? w->track->known[half][vgpr_of(offset)] : kAllLanes;
}

/// Handles a read of a scalar operand of `dwords` dwords.
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

/// Returns the bits of a scalar dword that are known. Reports only a missing wait.
EMU_INLINE uint32_t known_bits(Wave* w, const Op* op, uint32_t offset) {
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return ~0u;
    const uint32_t reg = offset / 4;
    if (w->track->scalar_known.has(reg)) [[likely]]
      return ~0u;
    if (w->track->scalar_pending.has(reg)) unknown_scalar(w, op, reg);
    return w->track->scalar_partial.has(reg) ? w->track->scalar_bits[reg] : 0;
  }
  return ~0u;
}

/// Handles a write to a scalar dword, whose bits in `known` are known afterwards.
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

/// Returns whether a scalar operand is known, for an operation whose result is known only then.
/// Reports only a missing wait.
EMU_INLINE bool pass_scalar(Wave* w, const Op* op, uint32_t offset, uint32_t dwords) {
  bool known = true;
  if constexpr (kChecked) {
    if (!is_sgpr(offset)) return true;
    for (uint32_t i = 0; i < dwords; ++i) {
      if (w->track->scalar_known.has(offset / 4 + i)) [[likely]]
        continue;
      known = false;
      if (w->track->scalar_pending.has(offset / 4 + i)) unknown_scalar(w, op, offset / 4 + i);
    }
  }
  return known;
}

/// Handles a read of SCC that decides something.
EMU_INLINE void read_scc(Wave* w, const Op* op) {
  if constexpr (kChecked) {
    if (!w->track->scc_known) [[unlikely]]
      unknown_scc(w, op);
  }
}

/// Handles a read of `registers` vector registers. Returns the lanes that are known in all of them.
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
      if (now == 0 && w->track->pending[vgpr_of(offset) + static_cast<int32_t>(i)] != 0)
          [[unlikely]] {
        written_while_pending(w, op, vgpr_of(offset) + static_cast<int32_t>(i));
      }
      first[i] = (now & ~enabled) | (known & enabled);
    }
  }
}

/// Records a load into registers, which are unknown until its counter has been waited for.
EMU_INLINE void load_issued(Wave* w, const Op*, uint32_t offset, uint32_t registers,
                            uint8_t counters) {
  if constexpr (kChecked) {
    if (counters != kSmem) {
      return add_pending(w, counters, static_cast<uint32_t>(vgpr_of(offset)), registers);
    }
    if (!is_sgpr(offset)) return;  // the destination is NULL
    Track& track = *w->track;
    const ScalarSet loaded = ScalarSet::range(offset / 4, registers);
    track.scalar_pending.add(loaded);
    track.scalar_known.remove(loaded);
    track.scalar_partial.remove(loaded);
    if (track.scalars_counted) ++track.lgkm_issued;
  }
}

EMU_INLINE void store_issued(Wave* w, uint8_t counters) {
  if constexpr (kChecked) count_store(w, counters);
}

}  // namespace
}  // namespace emu
