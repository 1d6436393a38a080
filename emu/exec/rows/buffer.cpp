// Implements buffer loads, stores and atomics. Addresses go through a four-dword descriptor with
// bounds checks: beyond its end a load returns zero and a store has no effect. The register of a
// status (tfe) keeps its value: all pages are resident, and then nothing is returned.

#include "emu/exec/buffer.h"

#include "emu/exec/address.h"
#include "emu/exec/atomics.h"
#include "emu/exec/rows/memory_names.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/scratch.h"

namespace emu::EMU_VARIANT {
namespace {

template <class Format>
EMU_INLINE void zero_lanes(LaneMask lanes, char* to) {
  for (; lanes != 0; lanes &= lanes - 1) Format::zero_lane(to + 4 * __builtin_ctz(lanes));
}

/// Accesses one half's lanes at `base`. Each element is accessed as a whole or not at all.
template <class Format, bool kStore>
EMU_INLINE bool buffer_elements(Wave* w, const Op* op, const BufferLanes& lanes, LaneMask enabled,
                                char* base, char* reg) {
  if constexpr (kStore) {
    return store_half<Format, Global>(w, op, base, lanes.offsets, enabled & lanes.within, reg);
  } else {
    zero_lanes<Format>(enabled & ~lanes.within, reg);
    return load_half<Format, Global>(w, op, base, lanes.offsets, enabled & lanes.within, reg);
  }
}

/// `reg`: the lanes' place in the first register.
template <class Format, bool kStore>
EMU_INLINE bool buffer_half(Wave* w, const Op* op, int half, char* reg) {
  const LaneMask enabled = w->s[kExec + half];
  if (enabled == 0) return true;
  const Descriptor128 d = descriptor(w, op);
  const uint32_t scalar_offset = at<uint32_t>(w, op->d);
  if (d.scratch) {
    const auto* offsets = (op->imm2 & kOffsetInRegister) != 0
                              ? reinterpret_cast<const uint32_t*>(half_of(w, op->a, half))
                              : nullptr;
    // The scalar offset is a stack pointer and counts the bytes of all lanes.
    const uint32_t start = scalar_offset / w->lanes + static_cast<uint32_t>(op->imm);
    return scratch_half<Format, kStore>(w, op, start, offsets, enabled, half, reg);
  }
  const BufferLanes lanes = buffer_lanes(w, op, half, d, Format::kBytes);
  char* base = reinterpret_cast<char*>(d.base) + scalar_offset;
  if constexpr (Format::kRegisters > 1) {
    if ((enabled & ~lanes.within) != 0) {  // each dword has its own bounds check
      // Computed first, since a load may overwrite the addresses.
      BufferLanes parts[Format::kRegisters];
      for (uint32_t i = 0; i < Format::kRegisters; ++i) {
        parts[i] = buffer_lanes(w, op, half, d, 4, 4 * i);
      }
      for (int i = 0; i < Format::kRegisters; ++i) {
        if (!buffer_elements<Dwords<1>, kStore>(w, op, parts[i], enabled, base, reg + 128 * i)) {
          return false;
        }
      }
      return true;
    }
  }
  return buffer_elements<Format, kStore>(w, op, lanes, enabled, base, reg);
}

template <class Format, bool kStore>
Stop buffer(Wave* w, const Op* op) {
  if constexpr (kChecked) note_coherent(w, (op->imm2 / kCoherence) & 3);
  read_scalar(w, op, op->c, 4);
  read_scalar(w, op, op->d, 1);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if ((op->imm2 & 3) != 0) read_vector(w, op, op->a, 1, half, enabled, true);
    if (kStore) read_vector(w, op, op->b, Format::kRegisters, half, enabled);
    char* reg = half_of(w, kStore ? op->b : op->dst, half);
    if (!buffer_half<Format, kStore>(w, op, half, reg)) return Stop::fault;
  }
  if (kStore)
    store_issued(w, emu::kStore);
  else
    load_issued(w, op, op->dst, Format::kRegisters, kVmem);
  EMU_NEXT;
}

/// Loads into LDS: the lanes' elements lie one after the other there, from M0 and the instruction's
/// offset on. Elements smaller than a dword are extended to one.
template <class Format>
Stop buffer_to_lds(Wave* w, const Op* op) {
  using Stored = Dwords<Format::kRegisters>;
  read_scalar(w, op, op->c, 4);
  read_scalar(w, op, op->d, 1);
  read_scalar(w, op, sgpr_offset(kM0), 1);
  const uint32_t first = (w->s[kM0] & 0xffff) + static_cast<uint32_t>(op->imm);
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const LaneMask enabled = w->s[kExec + half];
    if ((op->imm2 & 3) != 0) read_vector(w, op, op->a, 1, half, enabled, true);
    alignas(64) char elements[Format::kRegisters * 128];
    if constexpr (kChecked) begin_half(half);
    if (!buffer_half<Format, false>(w, op, half, elements)) return Stop::fault;
    uint32_t offsets[kLanes];
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      offsets[lane] = first + Stored::kBytes * (lane + kLanes * static_cast<uint32_t>(half));
    }
    store_half<Stored, Lds>(w, op, reinterpret_cast<char*>(w->lds), offsets, enabled, elements);
  }
  store_issued(w, kStore);
  EMU_NEXT;
}

template <class T, auto F, bool kCompare>
Stop atomic(Wave* w, const Op* op) {
  for (int half = 0; half < static_cast<int>(w->lanes / 32); ++half) {
    const Descriptor128 d = descriptor(w, op);
    const BufferLanes lanes = buffer_lanes(w, op, half, d, sizeof(T));
    char* base = reinterpret_cast<char*>(d.base) + at<uint32_t>(w, op->d);
    char* to = op->dst == 0 ? nullptr : half_of(w, op->dst, half);
    if (!atomic_half<T, F, kCompare, Global>(w, op, base, lanes.offsets,
                                             w->s[kExec + half] & lanes.within,
                                             half_of(w, op->b, half), to)) {
      return Stop::fault;
    }
  }
  if (op->dst != 0)
    load_issued(w, op, op->dst, sizeof(T) / 4, kVmem);
  else
    store_issued(w, kStore);
  EMU_NEXT;
}

template <class Format, bool kStore>
void lower_buffer(Lowering& l, const Inst& inst) {
  if constexpr (!kStore && !std::is_same_v<Format, typename Format::Clearing>) {
    if (l.traits.loads_clear) return lower_buffer<typename Format::Clearing, false>(l, inst);
  }
  if constexpr (!kStore) {
    if (inst.has("lds")) {  // no register is among the operands
      l.emit(&buffer_to_lds<Format>);
      return place_buffer(l, inst, l.ops.back(), 0);
    }
  }
  Op& op = l.emit(&buffer<Format, kStore>);
  (kStore ? op.b : op.dst) = l.destination(inst.operands.at(0));
  place_buffer(l, inst, op);
}

template <class T, auto F, bool kCompare>
void lower_atomic(Lowering& l, const Inst& inst) {
  Op& op = l.emit(&atomic<T, F, kCompare>);
  op.b = l.source(inst.operands.at(0), Value::b32);
  const bool returns = inst.word("th").find("RETURN") != std::string_view::npos;  // gfx12
  if (returns || inst.has("glc") || inst.has("sc0")) op.dst = op.b;
  place_buffer(l, inst, op);
}

#define EMU_BUFFER_LOAD(name, ...) \
  { name, &lower_buffer<__VA_ARGS__, false> }
#define EMU_BUFFER_STORE(name, ...) \
  { name, &lower_buffer<__VA_ARGS__, true> }
#define EMU_BUFFER_ATOMIC(old_name, new_name, T, F)          \
  {"buffer_atomic_" old_name, &lower_atomic<T, F, false>}, { \
    "buffer_atomic_" new_name, &lower_atomic<T, F, false>    \
  }

constexpr Row kRows[] = {
    EMU_LOADS("buffer_", EMU_BUFFER_LOAD),
    EMU_STORES("buffer_", EMU_BUFFER_STORE),
    EMU_BUFFER_ATOMIC("swap", "swap_b32", uint32_t, kSwap),
    EMU_BUFFER_ATOMIC("add", "add_u32", uint32_t, kAdd),
    EMU_BUFFER_ATOMIC("sub", "sub_u32", uint32_t, kSub),
    EMU_BUFFER_ATOMIC("smin", "min_i32", int32_t, kMin),
    EMU_BUFFER_ATOMIC("umin", "min_u32", uint32_t, kMin),
    EMU_BUFFER_ATOMIC("smax", "max_i32", int32_t, kMax),
    EMU_BUFFER_ATOMIC("umax", "max_u32", uint32_t, kMax),
    EMU_BUFFER_ATOMIC("and", "and_b32", uint32_t, kAnd),
    EMU_BUFFER_ATOMIC("or", "or_b32", uint32_t, kOr),
    EMU_BUFFER_ATOMIC("xor", "xor_b32", uint32_t, kXor),
    EMU_BUFFER_ATOMIC("inc", "inc_u32", uint32_t, kIncrement),
    EMU_BUFFER_ATOMIC("dec", "dec_u32", uint32_t, kDecrement),
    EMU_BUFFER_ATOMIC("csub", "sub_clamp_u32", uint32_t, kSubClamp),
    EMU_BUFFER_ATOMIC("swap_x2", "swap_b64", uint64_t, kSwap),
    EMU_BUFFER_ATOMIC("add_x2", "add_u64", uint64_t, kAdd),
    EMU_BUFFER_ATOMIC("sub_x2", "sub_u64", uint64_t, kSub),
    EMU_BUFFER_ATOMIC("smin_x2", "min_i64", int64_t, kMin),
    EMU_BUFFER_ATOMIC("umin_x2", "min_u64", uint64_t, kMin),
    EMU_BUFFER_ATOMIC("smax_x2", "max_i64", int64_t, kMax),
    EMU_BUFFER_ATOMIC("umax_x2", "max_u64", uint64_t, kMax),
    EMU_BUFFER_ATOMIC("and_x2", "and_b64", uint64_t, kAnd),
    EMU_BUFFER_ATOMIC("or_x2", "or_b64", uint64_t, kOr),
    EMU_BUFFER_ATOMIC("xor_x2", "xor_b64", uint64_t, kXor),
    EMU_BUFFER_ATOMIC("inc_x2", "inc_u64", uint64_t, kIncrement),
    EMU_BUFFER_ATOMIC("dec_x2", "dec_u64", uint64_t, kDecrement),
    EMU_BUFFER_ATOMIC("fmin", "min_f32", float, kMinFloat),
    EMU_BUFFER_ATOMIC("fmax", "max_f32", float, kMaxFloat),
    EMU_BUFFER_ATOMIC("fmin_x2", "min_f64", double, kMinFloat),
    EMU_BUFFER_ATOMIC("fmax_x2", "max_f64", double, kMaxFloat),
    {"buffer_atomic_pk_add_f16", &lower_atomic<uint32_t, kPackedAddF16, false>},
    {"buffer_atomic_pk_add_bf16", &lower_atomic<uint32_t, kPackedAddBf16, false>},
    {"buffer_atomic_csub_u32", &lower_atomic<uint32_t, kSubClamp, false>},
    {"buffer_atomic_cond_sub_u32", &lower_atomic<uint32_t, kConditionalSub, false>},
    {"buffer_atomic_min_num_f32", &lower_atomic<float, kMinFloat, false>},
    {"buffer_atomic_max_num_f32", &lower_atomic<float, kMaxFloat, false>},
    {"buffer_atomic_add_f64", &lower_atomic<double, kAdd, false>},
    {"buffer_atomic_add_f32", &lower_atomic<float, kAdd, false>},
    {"buffer_atomic_cmpswap", &lower_atomic<uint32_t, kSwap, true>},
    {"buffer_atomic_cmpswap_b32", &lower_atomic<uint32_t, kSwap, true>},
    {"buffer_atomic_cmpswap_x2", &lower_atomic<uint64_t, kSwap, true>},
    {"buffer_atomic_cmpswap_b64", &lower_atomic<uint64_t, kSwap, true>},
    {"buffer_atomic_fcmpswap", &lower_atomic<float, kSwap, true>},
    {"buffer_atomic_fcmpswap_x2", &lower_atomic<double, kSwap, true>},
    {"buffer_atomic_cmpswap_f32", &lower_atomic<float, kSwap, true>},
};

}  // namespace

std::span<const Row> buffer_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
