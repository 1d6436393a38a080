#pragma once

// Computes the addresses of the lanes of a global or flat instruction.

#include "emu/exec/half.h"
#include "emu/exec/memory.h"

namespace emu {
namespace {

EMU_INLINE uint64_t scalar_pair(Wave* w, uint32_t offset) {
  return uint64_t{at<uint32_t>(w, offset + 4)} << 32 | at<uint32_t>(w, offset);
}

/// Returns a half of a register. The accesses that follow are this half's.
EMU_INLINE char* half_of(Wave* w, uint32_t offset, int half) {
  if constexpr (kChecked) begin_half(half);
  return reinterpret_cast<char*>(w) + offset + static_cast<uint32_t>(half) * w->half_bytes;
}

/// Calls visit(upper, lanes) once for every distinct value of the upper dword at `high` among the
/// enabled lanes. Stops and returns false when a call returns false.
template <class Visit>
EMU_INLINE bool by_upper(const uint32_t* high, LaneMask enabled, const Visit& visit) {
  while (enabled != 0) {
    const uint32_t upper = high[__builtin_ctz(enabled)];
    U32 all;
    std::memcpy(&all, high, sizeof all);
    const LaneMask same = lane_mask(all == upper) & enabled;
    if (!visit(upper, same)) return false;
    enabled &= ~same;
  }
  return true;
}

/// Calls access(base, offsets, lanes) for each set of lanes in one half whose addresses are base +
/// offsets[lane]. kScalarBase: the address is a scalar base plus a 32-bit offset per lane;
/// otherwise each lane has a 64-bit address.
template <bool kScalarBase, class Access>
EMU_INLINE bool for_addresses(Wave* w, const Op* op, int half, LaneMask enabled,
                              const Access& access) {
  const auto immediate = static_cast<uint64_t>(int64_t{op->imm});
  const auto* low = reinterpret_cast<const uint32_t*>(half_of(w, op->a, half));
  if constexpr (kScalarBase) {
    return access(scalar_pair(w, op->c) + immediate, low, enabled);
  } else {
    return by_upper(low + kLanes, enabled, [&](uint32_t upper, LaneMask lanes) {
      return access((uint64_t{upper} << 32) + immediate, low, lanes);
    });
  }
}

/// In the checked tables, reports an address that isn't known in every enabled lane.
template <bool kScalarBase>
EMU_INLINE void address_known(Wave* w, const Op* op, int half) {
  read_vector(w, op, op->a, kScalarBase ? 1 : 2, half, w->s[kExec + half], true);
  if constexpr (kScalarBase) read_scalar(w, op, op->c, 2);
}

/// Places the operands that global, flat and scratch instructions share: address, scalar base,
/// offset.
inline void place_address(Lowering& l, const Inst& inst, Op& op, const Operand& address,
                          const Operand* base) {
  op.a = l.source(address, Value::b32);
  if (base != nullptr && base->kind == Kind::sgpr) op.c = l.source(*base, Value::b64);
  op.imm = static_cast<int32_t>(inst.modifier("offset"));
}

/// Loads and stores that bypass the caches of a compute unit, as atomic ones do, may order a
/// workgroup with others, or only (kWaves) its waves with each other.
constexpr uint32_t kWorkgroups = 1, kWaves = 2;
inline uint32_t coherence(const Inst& inst) {
  const bool waves = (inst.has("sc0") && !inst.has("sc1")) || inst.word("scope") == "SCOPE_SE";
  const bool any = inst.has("glc") || inst.has("sc0") || inst.has("sc1") || inst.has("scope");
  return waves ? kWaves : any ? kWorkgroups : 0;
}
EMU_INLINE void note_coherent(Wave* w, uint32_t coherence) {
  if constexpr (kChecked) {
    if (coherence == kWorkgroups) w->group->synchronised = true;
    if (coherence == kWaves) w->group->lds_track->atomics_in = w->group->lds_track->epoch;
  }
}

inline bool has_scalar_base(const Inst& inst, size_t at) {
  return inst.operands.size() > at && inst.operands[at].kind == Kind::sgpr;
}

}  // namespace
}  // namespace emu
