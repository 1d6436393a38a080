// Flat and scratch memory. The upper half of a flat address selects global memory, LDS or scratch.

#include "emu/exec/address.h"
#include "emu/exec/rows/memory_names.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/scratch.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr uint32_t kSharedUpper = kSharedBase >> 32, kPrivateUpper = kPrivateBase >> 32;

template <class Format, bool kStore>
EMU_INLINE bool flat_half(Wave* w, const Op* op, int half, char* reg) {
  const auto* low = reinterpret_cast<const uint32_t*>(half_of(w, op->a, half));
  return by_upper(low + kLanes, w->s[kExec + half], [&](uint32_t upper, LaneMask lanes) {
    if (upper == kPrivateUpper) {
      return scratch_half<Format, kStore>(w, op, static_cast<uint32_t>(op->imm), low, lanes, half,
                                          reg);
    }
    const bool shared = upper == kSharedUpper;
    char* base = (shared ? reinterpret_cast<char*>(w->lds)
                         : reinterpret_cast<char*>(uint64_t{upper} << 32)) +
                 op->imm;
    if constexpr (kStore) {
      return shared ? store_half<Format, Lds>(w, op, base, low, lanes, reg)
                    : store_half<Format, Global>(w, op, base, low, lanes, reg);
    } else {
      return shared ? load_half<Format, Lds>(w, op, base, low, lanes, reg)
                    : load_half<Format, Global>(w, op, base, low, lanes, reg);
    }
  });
}

template <class Format, bool kStore>
Stop flat(Wave* w, const Op* op) {
  note_coherent(w, op->imm2);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    address_known<false>(w, op, half);
    if (kStore) read_vector(w, op, op->b, Format::kRegisters, half, w->s[kExec + half]);
    if (!flat_half<Format, kStore>(w, op, half, half_of(w, kStore ? op->b : op->dst, half))) {
      return Stop::fault;
    }
  }
  if (kStore)
    store_issued(w, emu::kStore | kLds);
  else
    load_issued(w, op, op->dst, Format::kRegisters, kVmem | kLds);
  EMU_NEXT;
}

template <class Format, bool kStore, bool kVector>
Stop scratch(Wave* w, const Op* op) {
  read_scalar(w, op, op->c, 1);
  const uint32_t base = at<uint32_t>(w, op->c) + static_cast<uint32_t>(op->imm);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if (kVector) read_vector(w, op, op->a, 1, half, enabled, true);
    if (kStore) read_vector(w, op, op->b, Format::kRegisters, half, enabled);
    const auto* offsets =
        kVector ? reinterpret_cast<const uint32_t*>(half_of(w, op->a, half)) : nullptr;
    if (!scratch_half<Format, kStore>(w, op, base, offsets, enabled, half,
                                      half_of(w, kStore ? op->b : op->dst, half))) {
      return Stop::fault;
    }
  }
  if (kStore)
    store_issued(w, emu::kStore);
  else
    load_issued(w, op, op->dst, Format::kRegisters, kVmem);
  EMU_NEXT;
}

template <class Format, bool kStore>
void lower_flat(Lowering& l, const Inst& inst) {  // vdst, vaddr or vaddr, vdata
  if constexpr (!kStore && !std::is_same_v<Format, typename Format::Clearing>) {
    if (l.traits.loads_clear) return lower_flat<typename Format::Clearing, false>(l, inst);
  }
  Op& op = l.emit(&flat<Format, kStore>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(kStore ? 1 : 0));
  place_address(l, inst, op, inst.operands.at(kStore ? 0 : 1), nullptr);
  op.imm2 = coherence(inst);
}

template <class Format, bool kStore>
void lower_scratch(Lowering& l, const Inst& inst) {  // vdst, vaddr or off, saddr or off
  if constexpr (!kStore && !std::is_same_v<Format, typename Format::Clearing>) {
    if (l.traits.loads_clear) return lower_scratch<typename Format::Clearing, false>(l, inst);
  }
  const Operand& vector = inst.operands.at(kStore ? 0 : 1);
  const bool has_vector = vector.kind == Kind::vgpr;
  Op& op = l.emit(has_vector ? &scratch<Format, kStore, true> : &scratch<Format, kStore, false>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(kStore ? 1 : 0));
  place_address(l, inst, op, vector, nullptr);
  op.c = l.source(inst.operands.at(2), Value::b32);
}

#define EMU_FLAT_LOAD(name, ...) \
  { name, &lower_flat<__VA_ARGS__, false> }
#define EMU_FLAT_STORE(name, ...) \
  { name, &lower_flat<__VA_ARGS__, true> }
#define EMU_SCRATCH_LOAD(name, ...) \
  { name, &lower_scratch<__VA_ARGS__, false> }
#define EMU_SCRATCH_STORE(name, ...) \
  { name, &lower_scratch<__VA_ARGS__, true> }

constexpr Row kRows[] = {
    EMU_LOADS("flat_", EMU_FLAT_LOAD),
    EMU_STORES("flat_", EMU_FLAT_STORE),
    EMU_LOADS("scratch_", EMU_SCRATCH_LOAD),
    EMU_STORES("scratch_", EMU_SCRATCH_STORE),
};

}  // namespace

std::span<const Row> flat_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
