// Vector instructions that gfx950 adds: conversions with a scale, logic of three operands by a
// truth table, exchanges between rows of lanes, and transposing loads from LDS.

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/address.h"
#include "emu/exec/extremes.h"
#include "emu/exec/float8_rows.h"
#include "emu/exec/half_rounding.h"
#include "emu/exec/matrix.h"

namespace emu::EMU_VARIANT {
namespace {

// ---- Logic by a truth table, whose bits the decoder takes from the fields of modifiers.

EMU_INLINE U32 by_table(uint32_t table, U32 a, U32 b, U32 c) {
  U32 result = splat<U32>(0);
  for (uint32_t i = 0; i < 8; ++i) {
    if ((table >> i & 1) == 0) continue;
    result |= ((i & 4) != 0 ? a : ~a) & ((i & 2) != 0 ? b : ~b) & ((i & 1) != 0 ? c : ~c);
  }
  return result;
}

template <bool kHalf>
Stop bitop3(Wave* w, const Op* op) {
  const Extra& x = *op->extra;
  U32 results[2];
  for (int h = 0; h < 2; ++h) {
    const LaneMask enabled = w->s[kExec + h];
    U32 sources[3];
    const uint32_t from[] = {op->a, op->b, op->c};
    for (int i = 0; i < 3; ++i) {
      if (x.src[i].vector) read_vector(w, op, from[i], 1, h, enabled);
      if (!x.src[i].vector) read_scalar(w, op, from[i], 1);
      const U32 bits = load_dword(w, from[i], x.src[i].vector, h);
      sources[i] = kHalf && x.src[i].hi ? bits >> 16 : bits;
    }
    results[h] = by_table(op->imm2, sources[0], sources[1], sources[2]);
  }
  for (int h = 0; h < 2; ++h) {
    const uint32_t to = op->dst + static_cast<uint32_t>(h) * w->half_bytes;
    const U32 old = at<U32>(w, to);
    U32 value = results[h];
    if (kHalf) {
      value = x.dst_hi ? (old & 0xffff) | value << 16 : (old & 0xffff0000u) | (value & 0xffff);
    }
    store_dword(w, to, w->s[kExec + h], value);
    write_vector(w, op, op->dst, 1, h, w->s[kExec + h], kAllLanes);
  }
  EMU_NEXT;
}

template <bool kHalf>
void lower_bitop3(Lowering& l, const Inst& inst) {
  const Value values[] = {Value::b32, Value::b32, Value::b32};
  l.place_vector(inst, {}, values);
  l.ops.back().fn = &bitop3<kHalf>;
  l.ops.back().imm2 = static_cast<uint32_t>(inst.modifier("bitop3"));
}

// ---- Exchanges: the upper rows of one register with the lower rows of the other one.

template <uint32_t kRow>
Stop swap_rows(Wave* w, const Op* op) {
  note_read(w, op, op->dst, true, 1);
  note_read(w, op, op->a, true, 1);
  note_write(w, op, op->dst, 1);
  note_write(w, op, op->a, 1);
  const auto lane_at = [w](uint32_t offset, uint32_t lane) -> uint32_t& {
    return at<uint32_t>(w, offset + (lane >= kLanes ? w->half_bytes : 0) + 4 * (lane & 31));
  };
  for (uint32_t lane = 0; lane < 64; ++lane) {
    if ((lane & kRow) != 0) continue;
    std::swap(lane_at(op->a, lane), lane_at(op->dst, lane + kRow));
  }
  EMU_NEXT;
}

template <uint32_t kRow>
void lower_swap_rows(Lowering& l, const Inst& inst) {
  if (inst.form != Form::plain) throw NotImplemented("DPP or SDWA");
  Op& op = l.emit(&swap_rows<kRow>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.destination(inst.operands.at(1));
}

// ---- Conversions with a scale, which is the exponent of a float: 2^(exponent - 127).

EMU_INLINE F64 factor_of(F32 scale, bool inverse) {
  const I64 exponent = convert<I64>(bits_as<I32>(float_bits(scale) >> 23 & 0xff)) - 127;
  return power_of_two(inverse ? 0 - exponent : exponent);
}
EMU_INLINE F32 times(F32 x, F32 scale) {
  return convert<F32>(convert<F64>(x) * factor_of(scale, false));
}
/// The division by a power of two is exact in f64. The quotient is rounded to odd in f32, because
/// the result is rounded again to a narrower type.
EMU_INLINE F32 divided(F32 x, F32 scale) {
  const F64 exact = convert<F64>(x) * factor_of(scale, true);
  const F32 narrow = convert<F32>(exact);
  const F32 error = convert<F32>(exact - convert<F64>(narrow));
  return is_infinite(narrow) | is_nan(narrow) ? narrow : round_to_odd(narrow, error);
}

template <class Format, int kByte>
constexpr auto kScaledFromByte =
    [](U32 x, F32 scale) { return times(from_float8<Format>(x >> (8 * kByte)), scale); };
template <class Format, int kWord>
constexpr auto kScaledFromWord = [](U32 x, F32 scale) {
  return pair(bits_as<U32>(times(from_float8<Format>(x >> (16 * kWord)), scale)),
              bits_as<U32>(times(from_float8<Format>(x >> (16 * kWord + 8)), scale)));
};
template <class Format, bool kClamp>
constexpr auto kScaledToWord = [](F32 a, F32 b, F32 scale) {
  return kToWord<Format, kClamp>(divided(a, scale), divided(b, scale));
};

template <class Format>
void lower_scaled_from_byte(Lowering& l, const Inst& given) {
  constexpr void (*kLower[])(Lowering&, const Inst&) = {
      &lower_vector<kScaledFromByte<Format, 0>, false, Heat::rare>,
      &lower_vector<kScaledFromByte<Format, 1>, false, Heat::rare>,
      &lower_vector<kScaledFromByte<Format, 2>, false, Heat::rare>,
      &lower_vector<kScaledFromByte<Format, 3>, false, Heat::rare>};
  const auto& bits = given.list("op_sel");
  Inst inst = given;
  inst.lists.clear();
  kLower[bits.size() < 2 ? 0 : bits[0] + 2 * bits[1]](l, inst);
}

template <class Format>
void lower_scaled_from_word(Lowering& l, const Inst& given) {
  const auto& bits = given.list("op_sel");
  const bool high = !bits.empty() && bits[0] != 0;
  Inst inst = given;
  inst.lists.clear();
  if (high) return lower_vector<kScaledFromWord<Format, 1>, false, Heat::rare>(l, inst);
  lower_vector<kScaledFromWord<Format, 0>, false, Heat::rare>(l, inst);
}

template <class Format>
void lower_scaled_to_word(Lowering& l, const Inst& given) {
  const auto& bits = given.list("op_sel");
  const bool high = bits.size() > 3 && bits[3] != 0;
  Inst inst = given;
  inst.lists.clear();
  lower_keeping<kScaledToWord<Format, false>, false, false>(l, inst);
  l.extras.back().dst_hi = high;
  l.ops.back().fn = &by_overflow<kScaledToWord<Format, false>, kScaledToWord<Format, true>>;
}

// ---- Loads from LDS that transpose. Each row of 16 lanes reads a matrix with 16 columns, row
// after row in the order of its lanes, and each lane gets a column.

template <int kBits, int kDwords>
Stop load_transposed(Wave* w, const Op* op) {
  constexpr int kElements = 32 * kDwords / kBits;  // of a lane, and rows of the matrix
  alignas(64) char loaded[2][kDwords * 128] = {};
  for (int half = 0; half < 2; ++half) {
    const LaneMask enabled = w->s[kExec + half];
    read_vector(w, op, op->a, 1, half, enabled, true);
    if constexpr (kChecked) begin_half(half);
    uint32_t offsets[kLanes];
    const U32 sum = load_dword(w, op->a, true, half) + op->imm2;
    std::memcpy(offsets, &sum, sizeof offsets);
    load_half<Dwords<kDwords>, Lds>(w, op, reinterpret_cast<char*>(w->lds), offsets, enabled,
                                    loaded[half]);
  }
  const auto element_of = [&loaded](int lane, int index) {
    uint32_t dwords[kDwords + 1] = {};
    for (int i = 0; i < kDwords; ++i) {
      std::memcpy(&dwords[i], loaded[lane / 32] + 128 * i + 4 * (lane % 32), 4);
    }
    const int bit = index * kBits;
    const uint64_t two = uint64_t{dwords[bit / 32 + 1]} << 32 | dwords[bit / 32];
    return static_cast<uint32_t>(two >> (bit % 32) & ((1u << kBits) - 1));
  };
  for (int lane = 0; lane < 64; ++lane) {
    if ((w->exec() >> lane & 1) == 0) continue;
    uint32_t result[kDwords + 1] = {};
    for (int row = 0; row < kElements; ++row) {
      const int at = 16 * row + lane % 16;  // in the matrix
      const uint64_t value = element_of(lane / 16 * 16 + at / kElements, at % kElements);
      const int bit = row * kBits;
      const uint64_t moved = value << (bit % 32);
      result[bit / 32] |= static_cast<uint32_t>(moved);
      result[bit / 32 + 1] |= static_cast<uint32_t>(moved >> 32);
    }
    for (int i = 0; i < kDwords; ++i) {
      const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
      at<uint32_t>(w, op->dst + half + 128 * static_cast<uint32_t>(i) +
                          4 * static_cast<uint32_t>(lane % 32)) = result[i];
    }
  }
  load_issued(w, op, op->dst, kDwords, kLds);
  EMU_NEXT;
}

template <int kBits, int kDwords>
void lower_transposed(Lowering& l, const Inst& inst) {  // vdst, vaddr
  Op& op = l.emit(&load_transposed<kBits, kDwords>);
  op.dst = l.destination(inst.operands.at(0));
  op.a = l.source(inst.operands.at(1), Value::b32);
  op.imm2 = static_cast<uint32_t>(inst.modifier("offset"));
}

// ---- Others.

EMU_INLINE U32 byte_of(I32 x, int32_t low, int32_t high) {
  return bits_as<U32>(clip(x, low, high)) & 255;
}

template <int kLow, int kHigh>
constexpr auto kShiftPack = [](I32 a, I32 b, U32 by) {
  const I32 count = bits_as<I32>(by & 31);
  return convert<U16>(byte_of(a >> count, kLow, kHigh) | byte_of(b >> count, kLow, kHigh) << 8);
};

/// Rounds to the nearest regardless of MODE.
constexpr auto kPackHalves = [](F32 a, F32 b) {
  return Packed<F16>{bits_as<F16>(nearest_f16(a)), bits_as<F16>(nearest_f16(b))};
};
constexpr auto kPackBf16 = [](F32 a, F32 b) { return to_bf16(a) | to_bf16(b) << 16; };

constexpr auto kDotBf16 = [](U32 a, U32 b, F32 c) {
  c = fma(from_bf16(a & 0xffff), from_bf16(b & 0xffff), c);
  return fma(from_bf16(a >> 16), from_bf16(b >> 16), c);
};

EMU_INLINE Packed<F16> each_minimum3(Packed<F16> a, Packed<F16> b, Packed<F16> c) {
  return {kMinimum3<F16>(a.low, b.low, c.low), kMinimum3<F16>(a.high, b.high, c.high)};
}
EMU_INLINE Packed<F16> each_maximum3(Packed<F16> a, Packed<F16> b, Packed<F16> c) {
  return {kMaximum3<F16>(a.low, b.low, c.low), kMaximum3<F16>(a.high, b.high, c.high)};
}

constexpr Row kRows[] = {
    {"v_bitop3_b32", &lower_bitop3<false>},
    {"v_bitop3_b16", &lower_bitop3<true>},
    {"v_permlane16_swap_b32", &lower_swap_rows<16>},
    {"v_permlane32_swap_b32", &lower_swap_rows<32>},
    vop<[](U32 x) { return x << 1 ^ (x >> 31) * 197; }>("v_prng_b32"),
    vop<[](U32 x) { return from_bf16(x & 0xffff); }>("v_cvt_f32_bf16"),
    vop<kPackHalves>("v_cvt_pk_f16_f32"),
    vop<kPackBf16>("v_cvt_pk_bf16_f32"),
    vop_accumulate<kDotBf16>("v_dot2c_f32_bf16"),
    keeping<kShiftPack<-128, 127>>("v_ashr_pk_i8_i32"),
    keeping<kShiftPack<0, 255>>("v_ashr_pk_u8_i32"),
    vop<kMinimum3<F32>>("v_minimum3_f32"),
    vop<kMaximum3<F32>>("v_maximum3_f32"),
    vop<[](Packed<F16> a, Packed<F16> b, Packed<F16> c) { return each_minimum3(a, b, c); }>(
        "v_pk_minimum3_f16"),
    vop<[](Packed<F16> a, Packed<F16> b, Packed<F16> c) { return each_maximum3(a, b, c); }>(
        "v_pk_maximum3_f16"),
    {"v_cvt_scalef32_f32_fp8", &lower_scaled_from_byte<Fp8Ocp>},
    {"v_cvt_scalef32_f32_bf8", &lower_scaled_from_byte<Bf8Ocp>},
    {"v_cvt_scalef32_pk_f32_fp8", &lower_scaled_from_word<Fp8Ocp>},
    {"v_cvt_scalef32_pk_f32_bf8", &lower_scaled_from_word<Bf8Ocp>},
    {"v_cvt_scalef32_pk_fp8_f32", &lower_scaled_to_word<Fp8Ocp>},
    {"v_cvt_scalef32_pk_bf8_f32", &lower_scaled_to_word<Bf8Ocp>},
    {"ds_read_b64_tr_b4", &lower_transposed<4, 2>},
    {"ds_read_b96_tr_b6", &lower_transposed<6, 3>},
    {"ds_read_b64_tr_b8", &lower_transposed<8, 2>},
    {"ds_read_b64_tr_b16", &lower_transposed<16, 2>},
};

}  // namespace

std::span<const Row> gfx950_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
