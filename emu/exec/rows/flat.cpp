// Flat and scratch memory: a flat address is global, LDS or scratch by its upper half.

#include "emu/exec/address.h"
#include "emu/exec/rows/memory_names.h"
#include "emu/exec/rows/rows.h"

namespace emu::EMU_VARIANT {
namespace {

// Scratch is laid out as the hardware does: dword d of all lanes, then dword d + 1, so that lanes
// which use the same offset use neighbouring memory.

EMU_INLINE char* scratch_at(Wave* w, uint32_t offset, uint32_t lane) {
  return reinterpret_cast<char*>(w->scratch) + (uint64_t{offset / 4} * w->lanes + lane) * 4 +
         offset % 4;
}

/// Copies an element between scratch and a plain buffer, dword by dword where it is aligned.
template <uint32_t kBytes, bool kToScratch>
EMU_INLINE void scratch_element(Wave* w, uint32_t offset, uint32_t lane, char* buffer) {
  const uint32_t step = offset % 4 == 0 && kBytes % 4 == 0 ? 4 : 1;
  for (uint32_t i = 0; i < kBytes; i += step) {
    char* memory = scratch_at(w, offset + i, lane);
    std::memcpy(kToScratch ? memory : buffer + i, kToScratch ? buffer + i : memory, step);
  }
}

/// One half's lanes at base + offsets[lane]; `offsets` null: all at base.
template <class Format, bool kStore>
EMU_INLINE bool scratch_half(Wave* w, const Op* op, uint32_t base, const uint32_t* offsets,
                             LaneMask enabled, int half, char* reg) {
  if (enabled == 0) return true;
  const uint64_t end = uint64_t{base} + Format::kBytes;
  if (offsets == nullptr && enabled == kAllLanes && base % 4 == 0 && Format::kBytes % 4 == 0 &&
      end <= w->scratch_bytes) [[likely]] {
    for (int i = 0; i < Format::kRegisters; ++i) {
      char* memory = scratch_at(w, base + 4 * static_cast<uint32_t>(i), 32 * static_cast<uint32_t>(half));
      std::memcpy(kStore ? memory : reg + 128 * i, kStore ? reg + 128 * i : memory, 128);
    }
    return true;
  }
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t offset = base + (offsets == nullptr ? 0 : offsets[lane]);
    if (uint64_t{offset} + Format::kBytes > w->scratch_bytes) {
      return bad_scratch(w, op, offset, Format::kBytes, lane);
    }
    char element[16];
    const auto wave_lane = static_cast<uint32_t>(32 * half + lane);
    if constexpr (kStore) {
      Format::store_lane(element, reg + 4 * lane);
      scratch_element<Format::kBytes, true>(w, offset, wave_lane, element);
    } else {
      scratch_element<Format::kBytes, false>(w, offset, wave_lane, element);
      Format::load_lane(element, reg + 4 * lane);
    }
  }
  return true;
}

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
                         : reinterpret_cast<char*>(uint64_t{upper} << 32)) + op->imm;
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
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    if (!flat_half<Format, kStore>(w, op, half, half_of(w, kStore ? op->b : op->dst, half))) {
      return Stop::fault;
    }
  }
  EMU_NEXT;
}

template <class Format, bool kStore, bool kVector>
Stop scratch(Wave* w, const Op* op) {
  const uint32_t base = at<uint32_t>(w, op->c) + static_cast<uint32_t>(op->imm);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const auto* offsets =
        kVector ? reinterpret_cast<const uint32_t*>(half_of(w, op->a, half)) : nullptr;
    if (!scratch_half<Format, kStore>(w, op, base, offsets, w->s[kExec + half], half,
                                      half_of(w, kStore ? op->b : op->dst, half))) {
      return Stop::fault;
    }
  }
  EMU_NEXT;
}

template <class Format, bool kStore>
void lower_flat(Lowering& l, const Inst& inst) {  // vdst, vaddr or vaddr, vdata
  Op& op = l.emit(&flat<Format, kStore>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(kStore ? 1 : 0));
  place_address(l, inst, op, inst.operands.at(kStore ? 0 : 1), nullptr);
}

template <class Format, bool kStore>
void lower_scratch(Lowering& l, const Inst& inst) {  // vdst, vaddr or off, saddr or off
  const Operand& vector = inst.operands.at(kStore ? 0 : 1);
  const bool has_vector = vector.kind == Kind::vgpr;
  Op& op = l.emit(has_vector ? &scratch<Format, kStore, true> : &scratch<Format, kStore, false>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(kStore ? 1 : 0));
  place_address(l, inst, op, vector, nullptr);
  op.c = l.source(inst.operands.at(2), Value::b32);
}

#define EMU_FLAT_LOAD(name, ...) {name, &lower_flat<__VA_ARGS__, false>}
#define EMU_FLAT_STORE(name, ...) {name, &lower_flat<__VA_ARGS__, true>}
#define EMU_SCRATCH_LOAD(name, ...) {name, &lower_scratch<__VA_ARGS__, false>}
#define EMU_SCRATCH_STORE(name, ...) {name, &lower_scratch<__VA_ARGS__, true>}

constexpr Row kRows[] = {
    EMU_LOADS("flat_", EMU_FLAT_LOAD),
    EMU_STORES("flat_", EMU_FLAT_STORE),
    EMU_LOADS("scratch_", EMU_SCRATCH_LOAD),
    EMU_STORES("scratch_", EMU_SCRATCH_STORE),
};

}  // namespace

std::span<const Row> flat_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
