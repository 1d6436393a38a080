// Permutations of lanes that use the crossbar of LDS but not its memory.

#include <bit>

#include "emu/exec/address.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE int halves(const Wave* w) { return w->lanes == 64 ? 2 : 1; }

EMU_INLINE const uint32_t* lane_addresses(Wave* w, const Op* op, int half) {
  return reinterpret_cast<const uint32_t*>(half_of(w, op->a, half));
}

/// Returns the lane that a permutation's address names for a lane of a half. Op::imm is the number
/// of lanes among which it chooses; from gfx10 on these are the lanes of one half even in a wave of
/// 64.
EMU_INLINE uint32_t named_lane(const Op* op, uint32_t address, int half) {
  const auto among = static_cast<uint32_t>(op->imm);
  return ((address + op->imm2) / 4) % among +
         (among == kLanes ? static_cast<uint32_t>(half) * kLanes : 0);
}

/// Lane i reads lane address[i] / 4. Unless kInactive, an inactive source lane gives zero.
template <bool kInactive>
Stop backward_permute(Wave* w, const Op* op) {
  uint32_t results[2][kLanes];
  note_read(w, op, op->a, true, 1);
  for (int half = 0; half < halves(w); ++half) {
    const uint32_t* addresses = lane_addresses(w, op, half);
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint32_t from = named_lane(op, addresses[lane], half);
      const auto* data = reinterpret_cast<const uint32_t*>(half_of(w, op->b, from / kLanes));
      const bool reads = kInactive || (w->exec() >> from & 1) != 0;
      results[half][lane] = reads ? data[from % kLanes] : 0;
    }
  }
  for (int half = 0; half < halves(w); ++half) {
    U32 value;
    std::memcpy(&value, results[half], sizeof value);
    store_dword(w, op->dst + static_cast<uint32_t>(half) * w->half_bytes, w->s[kExec + half],
                value);
  }
  load_issued(w, op, op->dst, 1, kLds);
  EMU_NEXT;
}

/// Lane i writes to lane address[i] / 4. If several lanes write to a lane, the highest one wins; a
/// lane that receives nothing becomes zero.
Stop permute_forward(Wave* w, const Op* op) {
  uint32_t results[2][kLanes] = {};
  note_read(w, op, op->a, true, 1);
  note_read(w, op, op->b, true, 1);
  for (int half = 0; half < halves(w); ++half) {
    const uint32_t* addresses = lane_addresses(w, op, half);
    const auto* data = reinterpret_cast<const uint32_t*>(half_of(w, op->b, half));
    for (LaneMask left = w->s[kExec + half]; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const uint32_t to = named_lane(op, addresses[lane], half);
      results[to / kLanes][to % kLanes] = data[lane];
    }
  }
  for (int half = 0; half < halves(w); ++half) {
    U32 value;
    std::memcpy(&value, results[half], sizeof value);
    store_dword(w, op->dst + static_cast<uint32_t>(half) * w->half_bytes, w->s[kExec + half],
                value);
  }
  load_issued(w, op, op->dst, 1, kLds);
  EMU_NEXT;
}

void lower_permute(Lowering& l, const Inst& inst) {  // vdst, vaddr, vdata
  Op& op = l.emit(inst.name == "ds_permute_b32"       ? &permute_forward
                  : inst.name == "ds_bpermute_fi_b32" ? &backward_permute<true>
                                                      : &backward_permute<false>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  op.b = l.source(inst.operands.at(2), Value::b32);
  op.imm = l.traits.wave64 && l.traits.generation < 10 ? 64 : 32;
  op.imm2 = static_cast<uint32_t>(inst.modifier("offset"));
}

/// Returns the lower `count` bits of x in reverse order.
uint32_t reversed(uint32_t x, uint32_t count) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < count; ++i) result |= (x >> i & 1) << (count - 1 - i);
  return result;
}

/// Returns the lane that ds_swizzle reads for a lane, given its 16-bit pattern. gfx9 also has
/// patterns for the fast Fourier transform, which reverse some of a lane's bits, and rotations.
uint32_t swizzle_source(uint32_t pattern, uint32_t lane) {
  if (pattern >= 0xe000) {
    const uint32_t mask = pattern & 31, in_group = lane & 31;
    const uint32_t from = (in_group & mask) | reversed(in_group, 5) >> std::popcount(mask);
    return (lane & ~31u) | (mask == 31 ? in_group : from);
  }
  if (pattern >= 0xc000) {
    const uint32_t kept = pattern & 31, count = pattern >> 5 & 31;
    const uint32_t by = (pattern & 0x400) != 0 ? 32 - count : count;
    return (lane & ~31u) | (lane & kept) | ((lane + by) & 31 & ~kept);
  }
  if (pattern & 0x8000) return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
  const uint32_t in_group = lane & 31;
  const uint32_t from = ((in_group & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return (lane & ~31u) | from;
}

Stop swizzle(Wave* w, const Op* op) {
  for (int half = 0; half < halves(w); ++half) {
    const auto* data = reinterpret_cast<const uint32_t*>(half_of(w, op->a, half));
    uint32_t result[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t from = swizzle_source(op->imm2, lane);
      result[lane] = w->s[kExec + half] >> from & 1 ? data[from] : 0;
    }
    U32 value;
    std::memcpy(&value, result, sizeof value);
    store_dword(w, op->dst + static_cast<uint32_t>(half) * w->half_bytes, w->s[kExec + half],
                value);
  }
  load_issued(w, op, op->dst, 1, kLds);
  EMU_NEXT;
}

void lower_swizzle(Lowering& l, const Inst& inst) {  // vdst, vsrc offset:swizzle(…)
  Op& op = l.emit(&swizzle);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  op.imm2 = static_cast<uint32_t>(inst.first_immediate & 0xffff);
}

constexpr Row kRows[] = {
    {"ds_permute_b32", &lower_permute},
    {"ds_bpermute_b32", &lower_permute},
    {"ds_bpermute_fi_b32", &lower_permute},
    {"ds_swizzle_b32", &lower_swizzle},
};

}  // namespace

std::span<const Row> permute_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
