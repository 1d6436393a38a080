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
  /// Swizzled buffers keep an element of each of `indices` records side by side. element: its
  /// bytes; 0: the buffer isn't swizzled.
  uint32_t element, indices;
  bool adds_lane;  // to the index
};

EMU_INLINE Descriptor128 descriptor(Wave* w, const Op* op) {
  const auto* d = &at<uint32_t>(w, op->c);
  const uint32_t upper = d[1] & 0xffff;
  // On gfx9 and gfx10, scratch is addressed through a buffer with these dwords: see set_sgprs.
  const bool scratch = d[1] == kPrivateBase >> 32 && d[2] == ~0u && d[3] == 0;
  const uint32_t swizzle = d[1] >> 30;  // only the upper bit until gfx10
  const uint32_t element = w->launch->code->traits.generation >= 11
                               ? (swizzle == 0 ? 0 : 2u << swizzle)
                               : (swizzle < 2 ? 0 : 4);
  Descriptor128 result{};
  result.base = uint64_t{upper} << 32 | d[0];
  result.stride = d[1] >> 16 & 0x3fff;
  result.records = d[2];
  result.out_of_bounds = d[3] >> 28 & 3;
  result.scratch = scratch;
  result.element = element;
  result.indices = 8u << (d[3] >> 21 & 3);
  result.adds_lane = (d[3] >> 23 & 1) != 0;
  return result;
}

/// Returns the offset of an element of a swizzled buffer. `offset` is that within the record.
EMU_INLINE uint64_t swizzled(const Descriptor128& d, uint64_t index, uint32_t offset) {
  return (index / d.indices * d.stride + offset / d.element * d.element) * d.indices +
         index % d.indices * d.element + offset % d.element;
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
  const bool swizzles = d.element != 0;
  const bool raw = d.stride == 0 || (by_field && d.out_of_bounds == 3 && !swizzles);
  const uint32_t scalar = at<uint32_t>(w, op->d);
  // On gfx9, the scalar offset counts in the bounds check of a raw buffer.
  const uint64_t checked = bytes + (by_field ? 0 : uint64_t{scalar});
  const auto index_of = [&](int lane) {
    const uint64_t named = has_index ? first[lane] : 0;
    return named + static_cast<uint32_t>(d.adds_lane ? lane + kLanes * half : 0);
  };
  const auto offset_of = [&](int lane) {
    const uint64_t named = has_offset ? offset_register[lane] : 0;
    return named + static_cast<uint32_t>(op->imm) + skip;
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t index = index_of(lane), offset = offset_of(lane);
    const uint64_t all = index * d.stride + offset;
    bool within = d.records != 0;
    if (raw) {
      within = all + checked <= d.records;
    } else if (!by_field || d.out_of_bounds != 2) {
      within = index < d.records && (d.out_of_bounds == 1 || offset + bytes <= d.stride);
    }
    lanes.offsets[lane] = static_cast<uint32_t>(all);
    lanes.within |= LaneMask{within} << lane;
  }
  for (int lane = 0; swizzles && lane < kLanes; ++lane) {
    // The scalar offset belongs to the one within the record, and the caller adds it.
    const uint32_t within_record = static_cast<uint32_t>(offset_of(lane)) + scalar;
    lanes.offsets[lane] =
        static_cast<uint32_t>(swizzled(d, index_of(lane), within_record) - scalar);
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
