// Conversions between types. Integer results saturate; NaN becomes 0.

#include "emu/exec/half_rounding.h"
#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

template <class To>
EMU_INLINE To to_word(F32 x) {
  constexpr bool kSigned = std::is_same_v<To, I16>;
  const I32 value =
      kSigned ? saturate<I32>(x, -32768.0f, 32767.0f) : saturate<I32>(x, 0.0f, 65535.0f);
  return convert<To>(value);
}

/// Maps [-1, 1] to the integer's range without its lowest value, or [0, 1] to its whole range.
/// Rounds once.
template <class To>
EMU_INLINE To normalised(F32 x) {
  constexpr bool kSigned = std::is_same_v<To, I16>;
  const F32 inside = x == x ? clip(x, kSigned ? -1.0f : 0.0f, 1.0f) : splat<F32>(0);
  const F64 exact = convert<F64>(inside) * (kSigned ? 32767.0 : 65535.0);
  return convert<To>(convert<I32>(round_even(exact)));
}

/// Rounds as MODE says.
EMU_INLINE U32 pack_byte(F32 x, U32 which, U32 into) {
  const U32 at = (which & 3) * 8;
  const F32 whole = __builtin_elementwise_nearbyint(x);
  const U32 byte = bits_as<U32>(saturate<I32>(whole, 0.0f, 255.0f));
  return (into & ~(splat<U32>(0xff) << at)) | byte << at;
}

EMU_INLINE F32 from_byte(U32 x, uint32_t i) {
  return convert<F32>(bits_as<I32>(x >> (8 * i) & 0xff));
}

/// The offset is a signed 4-bit number of sixteenths.
EMU_INLINE F32 offset_of(U32 x) { return convert<F32>(bits_as<I32>(x << 28) >> 28) * 0.0625f; }

EMU_INLINE U16 low_word(U32 x) { return convert<U16>(x > 0xffff ? splat<U32>(0xffff) : x); }
EMU_INLINE I16 low_word(I32 x) { return convert<I16>(clip(x, -0x8000, 0x7fff)); }

constexpr auto kPackRtz = [](F32 a, F32 b) { return pack_rtz(a, b); };
constexpr auto kPackNormI16 = [](F32 a, F32 b) {
  return Packed<I16>{normalised<I16>(a), normalised<I16>(b)};
};
constexpr auto kPackNormU16 = [](F32 a, F32 b) {
  return Packed<U16>{normalised<U16>(a), normalised<U16>(b)};
};
constexpr auto kPackNormI16F16 = [](F16 a, F16 b) {
  return Packed<I16>{normalised<I16>(convert<F32>(a)), normalised<I16>(convert<F32>(b))};
};
constexpr auto kPackNormU16F16 = [](F16 a, F16 b) {
  return Packed<U16>{normalised<U16>(convert<F32>(a)), normalised<U16>(convert<F32>(b))};
};
constexpr auto kFloorToInt = [](F32 x) { return to_i32(round_down(x)); };
constexpr auto kNearestToInt = [](F32 x) { return to_i32(round_down(x + 0.5f)); };

constexpr Row kRows[] = {
    hot<[](I32 x) { return convert<F32>(x); }>("v_cvt_f32_i32"),
    hot<[](U32 x) { return convert<F32>(x); }>("v_cvt_f32_u32"),
    hot<[](F32 x) { return to_i32(x); }>("v_cvt_i32_f32"),
    hot<[](F32 x) { return to_u32(x); }>("v_cvt_u32_f32"),
    hot<[](F32 x) { return convert<F16>(x); }>("v_cvt_f16_f32"),
    hot<[](F16 x) { return convert<F32>(x); }>("v_cvt_f32_f16"),
    warm<[](F64 x) { return convert<F32>(x); }>("v_cvt_f32_f64"),
    warm<[](F32 x) { return convert<F64>(x); }>("v_cvt_f64_f32"),
    warm<[](I32 x) { return convert<F64>(x); }>("v_cvt_f64_i32"),
    warm<[](U32 x) { return convert<F64>(x); }>("v_cvt_f64_u32"),
    warm<[](F64 x) { return to_i32(x); }>("v_cvt_i32_f64"),
    warm<[](F64 x) { return to_u32(x); }>("v_cvt_u32_f64"),
    vop<kNearestToInt>("v_cvt_nearest_i32_f32"),
    vop<kNearestToInt>("v_cvt_rpi_i32_f32"),
    vop<kFloorToInt>("v_cvt_floor_i32_f32"),
    vop<kFloorToInt>("v_cvt_flr_i32_f32"),
    vop<[](U32 x) { return offset_of(x); }>("v_cvt_off_f32_i4"),
    warm<[](U32 x) { return from_byte(x, 0); }>("v_cvt_f32_ubyte0"),
    warm<[](U32 x) { return from_byte(x, 1); }>("v_cvt_f32_ubyte1"),
    warm<[](U32 x) { return from_byte(x, 2); }>("v_cvt_f32_ubyte2"),
    warm<[](U32 x) { return from_byte(x, 3); }>("v_cvt_f32_ubyte3"),
    warm<[](U16 x) { return convert<F16>(convert<F32>(convert<I32>(x))); }>("v_cvt_f16_u16"),
    warm<[](I16 x) { return convert<F16>(convert<F32>(x)); }>("v_cvt_f16_i16"),
    warm<[](F16 x) { return to_word<U16>(convert<F32>(x)); }>("v_cvt_u16_f16"),
    warm<[](F16 x) { return to_word<I16>(convert<F32>(x)); }>("v_cvt_i16_f16"),
    warm<[](I16 x) { return convert<I32>(x); }>("v_cvt_i32_i16"),
    warm<[](U16 x) { return convert<U32>(x); }>("v_cvt_u32_u16"),
    vop<[](F16 x) { return normalised<I16>(convert<F32>(x)); }>("v_cvt_norm_i16_f16"),
    vop<[](F16 x) { return normalised<U16>(convert<F32>(x)); }>("v_cvt_norm_u16_f16"),
    vop<[](F32 x, U32 at, U32 into) { return pack_byte(x, at, into); }>("v_cvt_pk_u8_f32"),
    warm<kPackRtz>("v_cvt_pk_rtz_f16_f32"),
    warm<kPackRtz>("v_cvt_pkrtz_f16_f32"),
    vop<kPackNormI16>("v_cvt_pk_norm_i16_f32"),
    vop<kPackNormI16>("v_cvt_pknorm_i16_f32"),
    vop<kPackNormU16>("v_cvt_pk_norm_u16_f32"),
    vop<kPackNormU16>("v_cvt_pknorm_u16_f32"),
    vop<kPackNormI16F16>("v_cvt_pk_norm_i16_f16"),
    vop<kPackNormI16F16>("v_cvt_pknorm_i16_f16"),
    vop<kPackNormU16F16>("v_cvt_pk_norm_u16_f16"),
    vop<kPackNormU16F16>("v_cvt_pknorm_u16_f16"),
    vop<[](F32 a, F32 b) {
      return Packed<I16>{to_word<I16>(a), to_word<I16>(b)};
    }>("v_cvt_pk_i16_f32"),
    vop<[](F32 a, F32 b) {
      return Packed<U16>{to_word<U16>(a), to_word<U16>(b)};
    }>("v_cvt_pk_u16_f32"),
    vop<[](U32 a, U32 b) {
      return Packed<U16>{low_word(a), low_word(b)};
    }>("v_cvt_pk_u16_u32"),
    vop<[](I32 a, I32 b) {
      return Packed<I16>{low_word(a), low_word(b)};
    }>("v_cvt_pk_i16_i32"),
    warm<[](F16 a, F16 b) {
      return Packed<F16>{a, b};
    }>("v_pack_b32_f16"),
};

}  // namespace

std::span<const Row> convert_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
