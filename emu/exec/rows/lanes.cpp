// Instructions that move values between lanes, or between lanes and scalar registers.

#include <bit>

#include "emu/exec/half_rounding.h"
#include "emu/exec/launch.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

uint32_t& lane_of(Wave* w, uint32_t offset, uint32_t lane) {
  return at<uint32_t>(w, offset + (lane >= kLanes ? w->half_bytes : 0) + 4 * (lane & 31));
}

uint64_t live_exec(const Wave* w) { return w->lanes == 64 ? w->exec() : w->s[kExec]; }

/// Returns a scalar's value, or the value of lane `lane` of a vector register.
uint32_t read_lane(Wave* w, uint32_t offset, bool vector, uint32_t lane) {
  return vector ? lane_of(w, offset, lane & (w->lanes - 1)) : at<uint32_t>(w, offset);
}

bool lane_known(Wave* w, uint32_t offset, uint32_t lane) {
  if constexpr (!kChecked) return true;
  return (known_lanes(w, offset, static_cast<int>(lane / kLanes)) >> (lane & 31) & 1) != 0;
}

Stop readfirstlane(Wave* w, const Op* op) {
  note_read(w, op, op->a, op->imm != 0, 1);
  const uint64_t exec = live_exec(w);
  const auto lane = exec == 0 ? 0u : static_cast<uint32_t>(std::countr_zero(exec));
  write_scalar(w, op, op->dst, 1, op->imm == 0 || lane_known(w, op->a, lane));
  at<uint32_t>(w, op->dst) = read_lane(w, op->a, op->imm != 0, lane);
  EMU_NEXT;
}

Stop readlane(Wave* w, const Op* op) {
  read_scalar(w, op, op->b, 1);
  write_scalar(w, op, op->dst, 1);
  const uint32_t lane = at<uint32_t>(w, op->b) & (w->lanes - 1);
  if constexpr (kChecked) {  // a function may save a register that its caller never wrote
    const bool known = op->imm == 0 || lane_known(w, op->a, lane);
    if (is_sgpr(op->dst)) w->track->scalar_known.set(op->dst / 4, known);
  }
  at<uint32_t>(w, op->dst) = read_lane(w, op->a, op->imm != 0, lane);
  EMU_NEXT;
}

Stop writelane(Wave* w, const Op* op) {  // also writes lanes that are disabled
  read_scalar(w, op, op->b, 1);
  const uint32_t lane = at<uint32_t>(w, op->b) & (w->lanes - 1);
  if constexpr (kChecked) {  // functions save registers of their callers, whatever they hold
    // A mask of which some lanes are unknown isn't reported either; the saved value counts as
    // known.
    const bool kept = is_sgpr(op->a) && !w->track->scalar_known.has(op->a / 4) &&
                      !w->track->scalar_partial.has(op->a / 4) &&
                      !w->track->scalar_pending.has(op->a / 4);
    const bool partial = is_sgpr(op->a) && w->track->scalar_partial.has(op->a / 4);
    if (!kept && !partial) read_scalar(w, op, op->a, 1);
    write_vector(w, op, op->dst, 1, static_cast<int>(lane / kLanes), LaneMask{1} << (lane & 31),
                 kept ? 0 : kAllLanes);
  }
  lane_of(w, op->dst, lane) = at<uint32_t>(w, op->a);
  EMU_NEXT;
}

template <Handler kHandler, int kSources>
void lower_plain(Lowering& l, const Inst& inst) {
  if (inst.operands.size() < 1 + kSources) refuse_operands(inst);
  if (inst.form != Form::plain) throw NotImplemented("DPP or SDWA");
  Op& op = l.emit(kHandler);
  op.dst = l.destination(inst.operands[0]);
  op.a = l.source(inst.operands[1], Value::b32);
  op.imm = inst.operands[1].kind == Kind::vgpr || inst.operands[1].kind == Kind::agpr;
  if (kSources > 1) op.b = l.source(inst.operands[2], Value::b32);
  if (kSources > 2) op.c = l.source(inst.operands[3], Value::b32);
}

/// Lane i reads lane select[i] of its row of 16, or of the neighbouring row. kVariable: the number
/// is in a vector register, not in two scalars that all rows share.
template <bool kOtherRow, bool kVariable>
Stop permlane(Wave* w, const Op* op) {
  note_read(w, op, op->a, (op->imm & 1) != 0, 1);
  if (kVariable) note_read(w, op, op->b, true, 1);
  if (!kVariable) read_scalar(w, op, op->b, 1);
  if (!kVariable) read_scalar(w, op, op->c, 1);
  note_write(w, op, op->dst, 1);
  const uint64_t select =
      kVariable ? 0 : uint64_t{at<uint32_t>(w, op->c)} << 32 | at<uint32_t>(w, op->b);
  const bool fetch_inactive = (op->imm & 2) != 0, bound_zero = (op->imm & 4) != 0;
  const uint64_t exec = live_exec(w);
  uint32_t values[64];
  uint64_t write = exec;
  for (uint32_t lane = 0; lane < w->lanes; ++lane) {
    const uint32_t row = (lane & ~15u) ^ (kOtherRow ? 16 : 0);
    const uint64_t choice = kVariable ? lane_of(w, op->b, lane) : select >> (4 * (lane & 15));
    const uint32_t from = row | (choice & 15);
    values[lane] = read_lane(w, op->a, (op->imm & 1) != 0, from);
    if (fetch_inactive || (exec >> from & 1) != 0) continue;
    if (bound_zero) {
      values[lane] = 0;
    } else {
      write &= ~(uint64_t{1} << lane);
    }
  }
  for (uint32_t lane = 0; lane < w->lanes; ++lane) {
    if (write >> lane & 1) lane_of(w, op->dst, lane) = values[lane];
  }
  EMU_NEXT;
}

template <bool kOtherRow, bool kVariable = false>
void lower_permlane(Lowering& l, const Inst& inst) {
  lower_plain<&permlane<kOtherRow, kVariable>, kVariable ? 2 : 3>(l, inst);
  const auto& options = inst.list("op_sel");  // op_sel:[fi, bound_ctrl]
  Op& op = l.ops.back();
  if (!options.empty() && options[0] != 0) op.imm |= 2;
  if (options.size() > 1 && options[1] != 0) op.imm |= 4;
}

/// Swaps the halves of a wave of 64.
Stop permlane64(Wave* w, const Op* op) {
  note_read(w, op, op->a, true, 1);
  note_write(w, op, op->dst, 1);
  const U32 first = at<U32>(w, op->a);
  store_dword(w, op->dst, w->s[kExec], at<U32>(w, op->a + w->half_bytes));
  store_dword(w, op->dst + w->half_bytes, w->s[kExec + 1], first);
  EMU_NEXT;
}

/// In a wave of 32, the instruction has no effect.
void lower_permlane64(Lowering& l, const Inst& inst) {
  if (l.traits.wave64) return lower_plain<&permlane64, 1>(l, inst);
  l.only_computes();
}

Stop swap(Wave* w, const Op* op) {
  note_read(w, op, op->dst, true, 1);
  note_read(w, op, op->a, true, 1);
  note_write(w, op, op->dst, 1);
  note_write(w, op, op->a, 1);
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    const uint32_t shift = static_cast<uint32_t>(h) * w->half_bytes;
    const U32 a = at<U32>(w, op->dst + shift), b = at<U32>(w, op->a + shift);
    store_dword(w, op->dst + shift, w->s[kExec + h], b);
    store_dword(w, op->a + shift, w->s[kExec + h], a);
  }
  EMU_NEXT;
}

/// Returns `to` with one of its halves replaced by a half of `from`.
EMU_INLINE U32 with_word(U32 to, bool high, U32 from, bool from_high) {
  const U32 word = from_high ? from >> 16 : from & 0xffff;
  return high ? (to & 0xffff) | word << 16 : (to & 0xffff0000) | word;
}

/// Swaps a half of one register with a half of another one, or of the same one.
Stop swap_words(Wave* w, const Op* op) {
  note_read(w, op, op->dst, true, 1);
  note_read(w, op, op->a, true, 1);
  note_write(w, op, op->dst, 1);
  note_write(w, op, op->a, 1);
  const bool high = (op->imm2 & 1) != 0, other_high = (op->imm2 & 2) != 0;
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    const uint32_t shift = static_cast<uint32_t>(h) * w->half_bytes;
    const U32 a = at<U32>(w, op->dst + shift), b = at<U32>(w, op->a + shift);
    store_dword(w, op->dst + shift, w->s[kExec + h], with_word(a, high, b, other_high));
    const U32 now = at<U32>(w, op->a + shift);
    store_dword(w, op->a + shift, w->s[kExec + h], with_word(now, other_high, a, high));
  }
  EMU_NEXT;
}

void lower_swap_words(Lowering& l, const Inst& inst) {
  lower_plain<&swap_words, 1>(l, inst);
  l.ops.back().imm2 = (inst.operands[0].hi ? 1 : 0) | (inst.operands[1].hi ? 2 : 0);
}

// Instructions whose register numbers depend on M0.

/// Returns the offset of the register that is `by` registers further on, or 0 if the wave has no
/// such register.
uint32_t moved(Wave* w, uint32_t offset, uint32_t by) {
  const uint32_t reg = (offset - kVgprBase) / 128 + by;
  return reg < w->vgprs ? vgpr_offset(static_cast<int>(reg)) : 0;
}

enum Relative : uint8_t { source = 1, destination = 2, halves = 4, swapped = 8 };

template <int kRelative>
Stop movrel(Wave* w, const Op* op) {
  const uint32_t m0 = w->s[kM0];
  const uint32_t by_source = kRelative & halves ? m0 & 0x3ff : m0;
  const uint32_t by_destination = kRelative & halves ? m0 >> 16 & 0x3ff : m0;
  const bool vector = op->imm != 0;
  uint32_t from = op->a, to = op->dst;
  if ((kRelative & source) && vector) from = moved(w, from, by_source);
  if (kRelative & destination) to = moved(w, to, by_destination);
  if (from == 0 || to == 0) return fail(w, op, "M0 names a register that the wave doesn't have");
  note_read(w, op, from, vector, 1);
  note_write(w, op, to, 1);
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    const uint32_t shift = static_cast<uint32_t>(h) * w->half_bytes;
    const U32 value = load_dword(w, from, vector, h), old = at<U32>(w, to + shift);
    store_dword(w, to + shift, w->s[kExec + h], value);
    if (kRelative & swapped) store_dword(w, from + shift, w->s[kExec + h], old);
  }
  EMU_NEXT;
}

/// Counts the lanes below each lane whose bit is set in the mask, within the mask's half of the
/// wave.
template <int kMaskHalf>
Stop mbcnt(Wave* w, const Op* op) {
  const Extra& x = *op->extra;
  note_read(w, op, op->a, x.src[0].vector, 1);
  note_read(w, op, op->b, x.src[1].vector, 1);
  note_write(w, op, op->dst, 1);
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    U32 mask, base;
    fetch(w, op, 0, h, mask);
    fetch(w, op, 1, h, base);
    if (h == kMaskHalf) mask &= (splat<U32>(1) << lane_ids()) - 1;
    if (h < kMaskHalf) mask = splat<U32>(0);
    LaneMask enabled = w->s[kExec + h];
    if (x.cross_lane) enabled &= dpp_enabled(w, op, h);
    put(w, op, h, enabled, bit_count(mask) + base, Shape::dword);
  }
  EMU_NEXT;
}

template <int kMaskHalf>
void lower_mbcnt(Lowering& l, const Inst& inst) {
  constexpr Value kValues[] = {Value::b32, Value::b32};
  l.place_vector(inst, {}, kValues);
  l.ops.back().fn = &mbcnt<kMaskHalf>;
}

// Interpolation: a quad of lanes holds the plane's parameters in its first three lanes.

template <int kLane, class V, int... I>
EMU_INLINE V of_quad(V x, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(x, x, (I / 4 * 4 + kLane)...);
}
template <int kLane, class V>
EMU_INLINE V of_quad(V x) {
  return of_quad<kLane>(x, std::make_integer_sequence<int, kLanes>());
}

constexpr auto kInterpolateFirst = [](F32 a, F32 b, F32 c) {
  return fma(of_quad<1>(a), b, of_quad<0>(c));
};
constexpr auto kInterpolateFirstHalf = [](F16 a, F32 b, F16 c) {
  return fma(convert<F32>(of_quad<1>(a)), b, convert<F32>(of_quad<0>(c)));
};
constexpr auto kInterpolateSecond = [](F32 a, F32 b, F32 c) { return fma(of_quad<2>(a), b, c); };
constexpr auto kInterpolateSecondHalf = [](F16 a, F32 b, F32 c) {
  return convert<F16>(fma(convert<F32>(of_quad<2>(a)), b, c));
};
constexpr auto kInterpolateSecondTruncated = [](F16 a, F32 b, F32 c) {
  return bits_as<F16>(truncated_f16(fma(convert<F32>(of_quad<2>(a)), b, c)));
};

constexpr Row kRows[] = {
    vop<kInterpolateFirst>("v_interp_p10_f32"),
    vop<kInterpolateSecond>("v_interp_p2_f32"),
    vop<kInterpolateFirstHalf>("v_interp_p10_f16_f32"),
    vop<kInterpolateSecondHalf>("v_interp_p2_f16_f32"),
    vop<kInterpolateFirstHalf>("v_interp_p10_rtz_f16_f32"),
    vop<kInterpolateSecondTruncated>("v_interp_p2_rtz_f16_f32"),
    {"v_readfirstlane_b32", &lower_plain<&readfirstlane, 1>},
    {"v_readlane_b32", &lower_plain<&readlane, 2>},
    {"v_writelane_b32", &lower_plain<&writelane, 2>},
    {"v_permlane16_b32", &lower_permlane<false>},
    {"v_permlanex16_b32", &lower_permlane<true>},
    {"v_permlane16_var_b32", &lower_permlane<false, true>},
    {"v_permlanex16_var_b32", &lower_permlane<true, true>},
    {"v_permlane64_b32", &lower_permlane64},
    {"v_swap_b32", &lower_plain<&swap, 1>},
    {"v_swap_b16", &lower_swap_words},
    {"v_movrels_b32", &lower_plain<&movrel<source>, 1>},
    {"v_movreld_b32", &lower_plain<&movrel<destination>, 1>},
    {"v_movrelsd_b32", &lower_plain<&movrel<source | destination>, 1>},
    {"v_movrelsd_2_b32", &lower_plain<&movrel<source | destination | halves>, 1>},
    {"v_swaprel_b32", &lower_plain<&movrel<source | destination | halves | swapped>, 1>},
    {"v_mbcnt_lo_u32_b32", &lower_mbcnt<0>},
    {"v_mbcnt_hi_u32_b32", &lower_mbcnt<1>},
};

}  // namespace

std::span<const Row> lane_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
