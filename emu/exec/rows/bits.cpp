// Moves, logic, shifts, bit fields and bytes of vector registers.

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

EMU_INLINE U32 ones(U32 n) { return (splat<U32>(1) << (n & 31)) - 1; }

EMU_INLINE I32 bfe_signed(I32 a, U32 at, U32 n) {
  const I32 width = bits_as<I32>(n & 31);
  const I32 field = (a >> bits_as<I32>(at & 31)) & bits_as<I32>(ones(n));
  const I32 sign = splat<I32>(1) << ((width - 1) & 31);
  return width == 0 ? splat<I32>(0) : (field ^ sign) - sign;
}

EMU_INLINE U32 reversed(U32 a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  a = (a >> 8 & 0x00ff00ff) | (a & 0x00ff00ff) << 8;
  return a >> 16 | a << 16;
}

/// Sets all bits below the highest set bit.
EMU_INLINE U32 smeared(U32 a) {
  a |= a >> 1;
  a |= a >> 2;
  a |= a >> 4;
  a |= a >> 8;
  return a | a >> 16;
}
/// Returns -1 if no bit is set.
EMU_INLINE I32 leading_zeros(U32 a) {
  const I32 n = bits_as<I32>(32 - bit_count(smeared(a)));
  return a == 0 ? splat<I32>(-1) : n;
}
EMU_INLINE I32 trailing_zeros(U32 a) {
  const I32 n = bits_as<I32>(bit_count(~a & (a - 1)));
  return a == 0 ? splat<I32>(-1) : n;
}
/// Returns the distance from the top of the first bit that differs from the sign, or -1 if none
/// does.
EMU_INLINE I32 leading_signs(U32 a) {
  return leading_zeros(a ^ bits_as<U32>(bits_as<I32>(a) >> 31));
}

EMU_INLINE U32 byte_of(U32 a, int i) { return a >> static_cast<uint32_t>(8 * i) & 0xff; }

/// Returns one byte of `high`:`low` for each selector. Selectors 8 to 11 give sign bits, 12 gives
/// zero, and larger ones give all ones.
EMU_INLINE U32 permuted(U32 high, U32 low, U32 selectors) {
  U32 result = splat<U32>(0);
  for (int i = 0; i < 4; ++i) {
    const U32 sel = byte_of(selectors, i);
    const U32 from = (sel & 4) != 0 ? high : low;
    const U32 sign_from = (sel & 2) != 0 ? high : low;
    const U32 sign = (sel & 1) != 0 ? sign_from >> 31 : sign_from >> 15 & 1;
    U32 byte = from >> ((sel & 3) * 8) & 0xff;
    byte = sel >= 8 ? sign * 0xff : byte;
    byte = sel == 12 ? splat<U32>(0) : byte;
    byte = sel > 12 ? splat<U32>(0xff) : byte;
    result |= byte << static_cast<uint32_t>(8 * i);
  }
  return result;
}

EMU_INLINE U32 distance(U32 a, U32 b) { return a > b ? a - b : b - a; }

/// Returns the sum of the bytes' absolute differences. kMasked: bytes where b is zero don't count.
template <bool kMasked>
EMU_INLINE U32 sad8(U32 a, U32 b) {
  U32 sum = splat<U32>(0);
  for (int i = 0; i < 4; ++i) {
    const U32 bi = byte_of(b, i);
    const U32 d = distance(byte_of(a, i), bi);
    sum += kMasked ? (bi == 0 ? splat<U32>(0) : d) : d;
  }
  return sum;
}
EMU_INLINE U32 sad16(U32 a, U32 b) {
  return distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16);
}
EMU_INLINE U32 saturated(U32 sum, U32 c) { return __builtin_elementwise_add_sat(sum, c); }

/// Returns four sums of absolute differences between b and the four bytes at each of a's first four
/// positions.
template <bool kMasked>
EMU_INLINE U64 quad_sad(U64 a, U32 b, U64 c) {
  U64 result = splat<U64>(0);
  for (int i = 0; i < 4; ++i) {
    const U32 part = convert<U32>(a >> static_cast<uint64_t>(8 * i));
    const U32 addend = convert<U32>(c >> static_cast<uint64_t>(16 * i)) & 0xffff;
    const U32 sum = (sad8<kMasked>(part, b) + addend) & 0xffff;
    result |= convert<U64>(sum) << static_cast<uint64_t>(16 * i);
  }
  return result;
}

/// The form of quad_sad with 32-bit sums: the addends and results take four registers.
Stop quad_sad_wide(Wave* w, const Op* op) {
  const Extra& x = *op->extra;
  note_read(w, op, op->a, x.src[0].vector, 2);
  note_read(w, op, op->b, x.src[1].vector, 1);
  note_read(w, op, op->c, x.src[2].vector, 4);
  note_write(w, op, op->dst, 4);
  for (int h = 0; h * kLanes < static_cast<int>(w->lanes); ++h) {
    const uint32_t shift = static_cast<uint32_t>(h) * w->half_bytes;
    const U64 a = load_qword(w, op->a, x.src[0].vector, h);
    const U32 b = load_dword(w, op->b, x.src[1].vector, h);
    U32 sums[4];
    for (uint32_t i = 0; i < 4; ++i) {
      const U32 part = convert<U32>(a >> uint64_t{8 * i});
      sums[i] = sad8<true>(part, b) +
                load_dword(w, op->c + (x.src[2].vector ? 128 : 4) * i, x.src[2].vector, h);
    }
    for (uint32_t i = 0; i < 4; ++i) {
      store_dword(w, op->dst + shift + 128 * i, w->s[kExec + h], sums[i]);
    }
  }
  EMU_NEXT;
}

void lower_quad_sad_wide(Lowering& l, const Inst& inst) {
  constexpr Value kValues[] = {Value::u64, Value::b32, Value::b32};
  l.place_vector(inst, {}, kValues);
  l.ops.back().fn = &quad_sad_wide;
}

EMU_INLINE U32 average(U32 a, U32 b, U32 round) {
  U32 result = splat<U32>(0);
  for (int i = 0; i < 4; ++i) {
    const U32 sum = byte_of(a, i) + byte_of(b, i) + (byte_of(round, i) & 1);
    result |= (sum >> 1) << static_cast<uint32_t>(8 * i);
  }
  return result;
}

EMU_INLINE U32 saturated_byte(U32 word) {
  const I32 value = bits_as<I32>(word << 16) >> 16;
  return bits_as<U32>(clip(value, 0, 255));
}

constexpr Row kRows[] = {
    hot<[](U32 a) { return a; }>("v_mov_b32"),
    warm<[](U64 a) { return a; }>("v_mov_b64"),
    // The types are floats for the sake of the sign modifiers.
    hot<[](F32 a, F32 b, Lanes c) { return select(c.bits, b, a); }>("v_cndmask_b32"),
    hot<[](U32 a) { return ~a; }>("v_not_b32"),
    hot<[](U32 a, U32 b) { return a & b; }>("v_and_b32"),
    hot<[](U32 a, U32 b) { return a | b; }>("v_or_b32"),
    hot<[](U32 a, U32 b) { return a ^ b; }>("v_xor_b32"),
    warm<[](U32 a, U32 b) { return ~(a ^ b); }>("v_xnor_b32"),
    hot<[](U32 a, U32 b, U32 c) { return (a & b) | c; }>("v_and_or_b32"),
    hot<[](U32 a, U32 b, U32 c) { return a | b | c; }>("v_or3_b32"),
    warm<[](U32 a, U32 b, U32 c) { return a ^ b ^ c; }>("v_xor3_b32"),
    hot<[](U32 a, U32 n, U32 b) { return (a << (n & 31)) | b; }>("v_lshl_or_b32"),
    hot<[](U32 n, U32 a) { return a << (n & 31); }>("v_lshlrev_b32"),
    hot<[](U32 n, U32 a) { return a >> (n & 31); }>("v_lshrrev_b32"),
    hot<[](U32 n, I32 a) { return a >> bits_as<I32>(n & 31); }>("v_ashrrev_i32"),
    hot<[](U32 n, U64 a) { return a << convert<U64>(n & 63); }>("v_lshlrev_b64"),
    warm<[](U32 n, U64 a) { return a >> convert<U64>(n & 63); }>("v_lshrrev_b64"),
    warm<[](U32 n, I64 a) { return a >> convert<I64>(n & 63); }>("v_ashrrev_i64"),
    hot<[](U32 a, U32 at, U32 n) { return (a >> (at & 31)) & ones(n); }>("v_bfe_u32"),
    warm<[](I32 a, U32 at, U32 n) { return bfe_signed(a, at, n); }>("v_bfe_i32"),
    hot<[](U32 mask, U32 a, U32 b) { return (mask & a) | (~mask & b); }>("v_bfi_b32"),
    vop<[](U32 n, U32 at) { return ones(n) << (at & 31); }>("v_bfm_b32"),
    vop<[](U32 a) { return reversed(a); }>("v_bfrev_b32"),
    warm<[](U32 a) { return leading_zeros(a); }>("v_clz_i32_u32"),
    vop<[](U32 a) { return leading_zeros(a); }>("v_ffbh_u32"),
    warm<[](U32 a) { return trailing_zeros(a); }>("v_ctz_i32_b32"),
    vop<[](U32 a) { return trailing_zeros(a); }>("v_ffbl_b32"),
    vop<[](U32 a) { return leading_signs(a); }>("v_cls_i32"),
    vop<[](U32 a) { return leading_signs(a); }>("v_ffbh_i32"),
    warm<[](U32 a, U32 b) { return bit_count(a) + b; }>("v_bcnt_u32_b32"),
    warm<[](U32 hi, U32 lo, U16 n) { return convert<U32>(pair(lo, hi) >> convert<U64>(n & 31)); }>(
        "v_alignbit_b32"),
    warm<[](U32 hi, U32 lo, U16 n) {
      return convert<U32>(pair(lo, hi) >> convert<U64>((n & 3) * 8));
    }>("v_alignbyte_b32"),
    warm<[](U32 a, U32 b, U32 sel) { return permuted(a, b, sel); }>("v_perm_b32"),
    vop<[](U32 a, U32 b, U32 c) { return average(a, b, c); }>("v_lerp_u8"),
    saturating<[](U32 a, U32 b, U32 c) { return sad8<false>(a, b) + c; },
               [](U32 a, U32 b, U32 c) { return saturated(sad8<false>(a, b), c); }>("v_sad_u8"),
    saturating<[](U32 a, U32 b, U32 c) { return (sad8<false>(a, b) << 16) + c; },
               [](U32 a, U32 b, U32 c) { return saturated(sad8<false>(a, b) << 16, c); }>(
        "v_sad_hi_u8"),
    saturating<[](U32 a, U32 b, U32 c) { return sad16(a, b) + c; },
               [](U32 a, U32 b, U32 c) { return saturated(sad16(a, b), c); }>("v_sad_u16"),
    saturating<[](U32 a, U32 b, U32 c) { return distance(a, b) + c; },
               [](U32 a, U32 b, U32 c) { return saturated(distance(a, b), c); }>("v_sad_u32"),
    saturating<[](U32 a, U32 b, U32 c) { return sad8<true>(a, b) + c; },
               [](U32 a, U32 b, U32 c) { return saturated(sad8<true>(a, b), c); }>("v_msad_u8"),
    vop<[](U64 a, U32 b, U64 c) { return quad_sad<false>(a, b, c); }>("v_qsad_pk_u16_u8"),
    vop<[](U64 a, U32 b, U64 c) { return quad_sad<true>(a, b, c); }>("v_mqsad_pk_u16_u8"),
    {"v_mqsad_u32_u8", &lower_quad_sad_wide},
    vop<[](U32 a) { return convert<U16>(saturated_byte(a) | saturated_byte(a >> 16) << 8); }>(
        "v_sat_pk_u8_i16"),
};

}  // namespace

std::span<const Row> bit_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
