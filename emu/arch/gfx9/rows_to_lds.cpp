// Loads from global memory and scratch into LDS. The lanes' elements lie one after the other in
// LDS, from M0 and the instruction's offset on, which also is a part of the memory's address.
// Elements smaller than a dword are extended to one.

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/address.h"
#include "emu/exec/scratch.h"

namespace emu::EMU_VARIANT {
namespace {

/// Writes the elements of one half's lanes, which lie as in registers, to LDS.
template <class Format>
EMU_INLINE bool put_lanes(Wave* w, const Op* op, int half, LaneMask lanes, const char* elements) {
  using Stored = Dwords<Format::kRegisters>;
  const uint32_t first = (at<uint32_t>(w, op->d) & 0xffff) + static_cast<uint32_t>(op->imm);
  if constexpr (kChecked) begin_half(half);
  uint32_t offsets[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    offsets[lane] = first + Stored::kBytes * (lane + kLanes * static_cast<uint32_t>(half));
  }
  return store_half<Stored, Lds>(w, op, reinterpret_cast<char*>(w->lds), offsets, lanes, elements);
}

template <class Format, bool kScalarBase>
Stop global_to_lds(Wave* w, const Op* op) {
  read_scalar(w, op, op->d, 1);
  for (int half = 0; half < 2; ++half) {
    alignas(64) char elements[Format::kRegisters * 128];
    address_known<kScalarBase>(w, op, half);
    const LaneMask enabled = w->s[kExec + half];
    const bool ok = for_addresses<kScalarBase>(
        w, op, half, enabled, [&](uint64_t base, const uint32_t* offsets, LaneMask lanes) {
          return load_half<Format, Global>(w, op, reinterpret_cast<const char*>(base), offsets,
                                           lanes, elements);
        });
    if (!ok) return Stop::fault;
    put_lanes<Format>(w, op, half, enabled, elements);
  }
  store_issued(w, kStore);
  EMU_NEXT;
}

template <class Format, bool kVector>
Stop scratch_to_lds(Wave* w, const Op* op) {
  read_scalar(w, op, op->c, 1);
  read_scalar(w, op, op->d, 1);
  const uint32_t base = at<uint32_t>(w, op->c) + static_cast<uint32_t>(op->imm);
  for (int half = 0; half < 2; ++half) {
    alignas(64) char elements[Format::kRegisters * 128];
    const LaneMask enabled = w->s[kExec + half];
    if (kVector) read_vector(w, op, op->a, 1, half, enabled, true);
    const auto* offsets =
        kVector ? reinterpret_cast<const uint32_t*>(half_of(w, op->a, half)) : nullptr;
    if (!scratch_half<Format, false>(w, op, base, offsets, enabled, half, elements)) {
      return Stop::fault;
    }
    put_lanes<Format>(w, op, half, enabled, elements);
  }
  store_issued(w, kStore);
  EMU_NEXT;
}

template <class Format>
void lower_global(Lowering& l, const Inst& inst) {  // vaddr, saddr or off
  const bool scalar = has_scalar_base(inst, 1);
  Op& op = l.emit(scalar ? &global_to_lds<Format, true> : &global_to_lds<Format, false>);
  place_address(l, inst, op, inst.operands.at(0), &inst.operands.at(1));
  op.d = sgpr_offset(kM0);
}

template <class Format>
void lower_scratch(Lowering& l, const Inst& inst) {  // vaddr or off, saddr or off
  const Operand& vector = inst.operands.at(0);
  Op& op = l.emit(vector.kind == Kind::vgpr ? &scratch_to_lds<Format, true>
                                            : &scratch_to_lds<Format, false>);
  place_address(l, inst, op, vector, nullptr);
  op.c = l.source(inst.operands.at(1), Value::b32);
  op.d = sgpr_offset(kM0);
}

#define EMU_TO_LDS(name, ...)                              \
  {"global_load_lds_" name, &lower_global<__VA_ARGS__>}, { \
    "scratch_load_lds_" name, &lower_scratch<__VA_ARGS__>  \
  }

constexpr Row kRows[] = {
    EMU_TO_LDS("ubyte", Small<uint8_t, 0>),   EMU_TO_LDS("sbyte", Small<int8_t, 0>),
    EMU_TO_LDS("ushort", Small<uint16_t, 0>), EMU_TO_LDS("sshort", Small<int16_t, 0>),
    EMU_TO_LDS("dword", Dwords<1>),           EMU_TO_LDS("dwordx3", Dwords<3>),
    EMU_TO_LDS("dwordx4", Dwords<4>),
};

}  // namespace

std::span<const Row> gfx9_to_lds_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
