// Loads and stores of global memory.

#include "emu/exec/address.h"
#include "emu/exec/rows/memory_names.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

template <class Format, bool kScalarBase>
Stop load(Wave* w, const Op* op) {
  note_coherent(w, op->imm2);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    char* to = half_of(w, op->dst, half);
    address_known<kScalarBase>(w, op, half);
    const bool ok = for_addresses<kScalarBase>(
        w, op, half, w->s[kExec + half],
        [&](uint64_t base, const uint32_t* offsets, LaneMask lanes) {
          return load_half<Format, Global>(w, op, reinterpret_cast<const char*>(base), offsets,
                                           lanes, to);
        });
    if (!ok) return Stop::fault;
  }
  load_issued(w, op, op->dst, Format::kRegisters, kVmem);
  EMU_NEXT;
}

template <class Format, bool kScalarBase>
Stop store(Wave* w, const Op* op) {
  note_coherent(w, op->imm2);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const char* from = half_of(w, op->b, half);
    address_known<kScalarBase>(w, op, half);
    read_vector(w, op, op->b, Format::kRegisters, half, w->s[kExec + half]);
    const bool ok = for_addresses<kScalarBase>(
        w, op, half, w->s[kExec + half],
        [&](uint64_t base, const uint32_t* offsets, LaneMask lanes) {
          return store_half<Format, Global>(w, op, reinterpret_cast<char*>(base), offsets, lanes,
                                            from);
        });
    if (!ok) return Stop::fault;
  }
  store_issued(w, kStore);
  EMU_NEXT;
}

template <class Format>
void lower_load(Lowering& l, const Inst& inst) {  // vdst, vaddr, saddr or off
  if constexpr (!std::is_same_v<Format, typename Format::Clearing>) {
    if (l.traits.loads_clear) return lower_load<typename Format::Clearing>(l, inst);
  }
  const bool scalar = has_scalar_base(inst, 2);
  Op& op = l.emit(scalar ? &load<Format, true> : &load<Format, false>);
  op.dst = l.destination(inst.operands.at(0));
  place_address(l, inst, op, inst.operands.at(1), &inst.operands.at(2));
  op.imm2 = coherence(inst);
}

template <class Format>
void lower_store(Lowering& l, const Inst& inst) {  // vaddr, vdata, saddr or off
  const bool scalar = has_scalar_base(inst, 2);
  Op& op = l.emit(scalar ? &store<Format, true> : &store<Format, false>);
  op.b = l.source(inst.operands.at(1), Value::b32);
  place_address(l, inst, op, inst.operands.at(0), &inst.operands.at(2));
  op.imm2 = coherence(inst);
}

#define EMU_LOAD_ROW(name, ...) \
  { name, &lower_load<__VA_ARGS__> }
#define EMU_STORE_ROW(name, ...) \
  { name, &lower_store<__VA_ARGS__> }

constexpr Row kRows[] = {
    EMU_LOADS("global_", EMU_LOAD_ROW),
    EMU_STORES("global_", EMU_STORE_ROW),
};

}  // namespace

std::span<const Row> global_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
