#pragma once

// The descriptors of buffers, and the addresses of the lanes of an instruction that uses one.

#include "emu/exec/address.h"

namespace emu {
namespace {

/// Bits of Op::imm2.
constexpr uint32_t kOffsetInRegister = 1, kIndexInRegister = 2, kOutOfBoundsByField = 4;
constexpr uint32_t kCoherence = 8;  // times what coherence() gives

struct Descriptor128 {
  uint64_t base;
  uint32_t stride, records, out_of_bounds;
  bool scratch;
};

EMU_INLINE Descriptor128 descriptor(Wave* w, const Op* op) {
  const auto* d = &at<uint32_t>(w, op->c);
  const uint32_t upper = d[1] & 0xffff;
  // On gfx9 and gfx10, scratch is addressed through a buffer with these dwords: see set_sgprs.
  const bool scratch = d[1] == kPrivateBase >> 32 && d[2] == ~0u && d[3] == 0;
  return {uint64_t{upper} << 32 | d[0], d[1] >> 16 & 0x3fff, d[2], d[3] >> 28 & 3, scratch};
}

/// The addresses of one half's lanes: offsets from the base, and which lanes are within the buffer.
struct BufferLanes {
  uint32_t offsets[kLanes];
  LaneMask within;
};

/// Returns the addresses of elements of `bytes` bytes that lie `skip` bytes after those that the
/// instruction names, without the scalar offset.
EMU_INLINE BufferLanes buffer_lanes(Wave* w, const Op* op, int half, const Descriptor128& d,
                                    uint32_t bytes, uint32_t skip = 0) {
  BufferLanes lanes{};
  const auto* first = reinterpret_cast<const uint32_t*>(half_of(w, op->a, half));
  const bool has_index = (op->imm2 & kIndexInRegister) != 0;
  const bool has_offset = (op->imm2 & kOffsetInRegister) != 0;
  const uint32_t* offset_register = has_index ? first + kLanes : first;
  const bool by_field = (op->imm2 & kOutOfBoundsByField) != 0;
  const bool raw = d.stride == 0 || (by_field && d.out_of_bounds == 3);
  // On gfx9, the scalar offset counts in the bounds check of a raw buffer.
  const uint64_t checked = bytes + (by_field ? 0 : uint64_t{at<uint32_t>(w, op->d)});
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t index = has_index ? first[lane] : 0;
    const uint64_t offset =
        uint64_t{has_offset ? offset_register[lane] : 0} + static_cast<uint32_t>(op->imm) + skip;
    const uint64_t all = index * d.stride + offset;
    bool within = d.records != 0;
    if (raw) {
      within = all + checked <= d.records;
    } else if (!by_field || d.out_of_bounds < 2) {
      within = index < d.records && (d.out_of_bounds == 1 || offset + bytes <= d.stride);
    }
    lanes.offsets[lane] = static_cast<uint32_t>(all);
    lanes.within |= LaneMask{within} << lane;
  }
  return lanes;
}

/// Places the operands from `first` on: address or off, descriptor, offset.
inline void place_buffer(Lowering& l, const Inst& inst, Op& op, size_t first = 1) {
  op.a = l.source(inst.operands.at(first), Value::b32);
  op.c = l.source(inst.operands.at(first + 1), Value::b32);
  op.d = l.source(inst.operands.at(first + 2), Value::b32);
  op.imm = static_cast<int32_t>(inst.modifier("offset"));
  if (inst.has("offen")) op.imm2 |= kOffsetInRegister;
  if (inst.has("idxen")) op.imm2 |= kIndexInRegister;
  if (l.traits.generation >= 10) op.imm2 |= kOutOfBoundsByField;
  op.imm2 |= kCoherence * coherence(inst);
}

}  // namespace
}  // namespace emu
