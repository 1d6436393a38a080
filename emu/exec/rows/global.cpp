// Global memory and scalar loads.

#include "emu/exec/memory.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

/// Addresses of a half: a 64-bit register pair, or a scalar base and a 32-bit offset.
template <bool kScalarBase>
EMU_INLINE U64 addresses(Wave* w, const Op* op, int half) {
  U64 address;
  if constexpr (kScalarBase) {
    const uint64_t base = uint64_t{at<uint32_t>(w, op->c + 4)} << 32 | at<uint32_t>(w, op->c);
    address = splat<U64>(base) + convert<U64>(load_dword(w, op->a, true, half));
  } else {
    address = load_qword(w, op->a, true, half);
  }
  return address + static_cast<uint64_t>(int64_t{op->imm});
}

template <int kDwords, bool kScalarBase>
Stop load(Wave* w, const Op* op) {
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if (enabled == 0) continue;
    const U64 address = addresses<kScalarBase>(w, op, half);
    const uint32_t to = op->dst + static_cast<uint32_t>(half) * w->half_bytes;
    for (uint32_t i = 0; i < kDwords; ++i) {
      at<U32>(w, to + 128 * i) = load_lanes(address + uint64_t{4} * i, enabled, at<U32>(w, to + 128 * i));
    }
  }
  EMU_NEXT;
}

template <int kDwords, bool kScalarBase>
Stop store(Wave* w, const Op* op) {
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if (enabled == 0) continue;
    const U64 address = addresses<kScalarBase>(w, op, half);
    const uint32_t from = op->b + static_cast<uint32_t>(half) * w->half_bytes;
    for (uint32_t i = 0; i < kDwords; ++i) {
      store_lanes(address + uint64_t{4} * i, enabled, at<U32>(w, from + 128 * i));
    }
  }
  EMU_NEXT;
}

void place(Lowering& l, const Inst& inst, Op& op, const Operand& address, const Operand& base) {
  op.a = l.source(address, Value::b32);
  if (base.kind == Kind::sgpr) op.c = l.source(base, Value::b64);
  op.imm = static_cast<int32_t>(inst.modifier("offset"));
}

template <int kDwords>
void lower_load(Lowering& l, const Inst& inst) {  // vdst, vaddr, saddr or off
  const bool scalar = inst.operands.at(2).kind == Kind::sgpr;
  Op& op = l.emit(scalar ? &load<kDwords, true> : &load<kDwords, false>);
  op.dst = l.destination(inst.operands[0]);
  place(l, inst, op, inst.operands[1], inst.operands[2]);
}

template <int kDwords>
void lower_store(Lowering& l, const Inst& inst) {  // vaddr, vdata, saddr or off
  const bool scalar = inst.operands.at(2).kind == Kind::sgpr;
  Op& op = l.emit(scalar ? &store<kDwords, true> : &store<kDwords, false>);
  op.b = l.source(inst.operands[1], Value::b32);
  place(l, inst, op, inst.operands[0], inst.operands[2]);
}

template <int kDwords>
Stop scalar_load(Wave* w, const Op* op) {
  const uint64_t base = uint64_t{at<uint32_t>(w, op->a + 4)} << 32 | at<uint32_t>(w, op->a);
  const uint64_t address = base + at<uint32_t>(w, op->b) + static_cast<uint64_t>(int64_t{op->imm});
  uint32_t values[kDwords];
  std::memcpy(values, reinterpret_cast<const char*>(address & ~uint64_t{3}), sizeof values);
  std::memcpy(&at<uint32_t>(w, op->dst), values, sizeof values);
  EMU_NEXT;
}

template <int kDwords>
void lower_scalar_load(Lowering& l, const Inst& inst) {  // sdst, sbase, soffset or an immediate
  Op& op = l.emit(&scalar_load<kDwords>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b64);
  const Operand& offset = inst.operands.at(2);
  op.b = l.constant(0);
  op.imm = static_cast<int32_t>(inst.modifier("offset"));
  if (offset.kind == Kind::sgpr) {
    op.b = l.source(offset, Value::b32);
  } else {
    op.imm += static_cast<int32_t>(offset.bits);
  }
}

constexpr Row kRows[] = {
    {"global_load_b32", &lower_load<1>},     {"global_load_b64", &lower_load<2>},
    {"global_load_b96", &lower_load<3>},     {"global_load_b128", &lower_load<4>},
    {"global_store_b32", &lower_store<1>},   {"global_store_b64", &lower_store<2>},
    {"global_store_b96", &lower_store<3>},   {"global_store_b128", &lower_store<4>},
    {"s_load_b32", &lower_scalar_load<1>},   {"s_load_b64", &lower_scalar_load<2>},
    {"s_load_b128", &lower_scalar_load<4>},  {"s_load_b256", &lower_scalar_load<8>},
    {"s_load_b512", &lower_scalar_load<16>},
};

}  // namespace

std::span<const Row> global_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
