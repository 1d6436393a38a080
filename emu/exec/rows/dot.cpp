// Dot products of small integers or halves in two registers, added to a third register.

#include <limits>

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

/// Returns element i of width kBits as a number.
template <int kBits, bool kSigned>
EMU_INLINE I32 element(U32 x, int i) {
  const auto up = static_cast<uint32_t>(32 - kBits * (i + 1));
  constexpr int kDown = 32 - kBits;
  if (kSigned) return bits_as<I32>(x << up) >> kDown;
  return bits_as<I32>((x << up) >> static_cast<uint32_t>(kDown));
}

template <int kBits, bool kSignedA, bool kSignedB>
EMU_INLINE I32 products(U32 a, U32 b) {
  I32 sum = splat<I32>(0);
  for (int i = 0; i < 32 / kBits; ++i) {
    sum += element<kBits, kSignedA>(a, i) * element<kBits, kSignedB>(b, i);
  }
  return sum;
}

template <int kBits, bool kA, bool kB>
inline constexpr auto kDot = [](U32 a, U32 b, I32 c) { return products<kBits, kA, kB>(a, b) + c; };
/// The sum of two 16-bit products needs one bit more than a dword has.
template <int kBits, bool kA, bool kB>
inline constexpr auto kDotSaturated = [](U32 a, U32 b, I32 c) {
  if constexpr (kBits < 16) {
    return __builtin_elementwise_add_sat(products<kBits, kA, kB>(a, b), c);
  } else {
    I64 total = convert<I64>(c);
    for (int i = 0; i < 2; ++i) {
      total += convert<I64>(element<kBits, kA>(a, i) * element<kBits, kB>(b, i));
    }
    constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    total = total < kLeast ? splat<I64>(kLeast) : total > kMost ? splat<I64>(kMost) : total;
    return convert<I32>(total);
  }
};
template <int kBits>
inline constexpr auto kDotUnsigned =
    [](U32 a, U32 b, U32 c) { return bits_as<U32>(products<kBits, false, false>(a, b)) + c; };
template <int kBits>
inline constexpr auto kDotUnsignedSaturated = [](U32 a, U32 b, U32 c) {
  U32 total = c;  // no later addend lowers the sum, so it may saturate at each step
  for (int i = 0; i < 32 / kBits; ++i) {
    const I32 product = element<kBits, false>(a, i) * element<kBits, false>(b, i);
    total = __builtin_elementwise_add_sat(total, bits_as<U32>(product));
  }
  return total;
};

template <int kBits, bool kA, bool kB>
void lower_signs(Lowering& l, const Inst& inst) {
  if (inst.has("clamp")) {
    lower_vector<kDotSaturated<kBits, kA, kB>, false, Heat::rare>(l, inst);
  } else {
    lower_vector<kDot<kBits, kA, kB>, false, Heat::warm>(l, inst);
  }
}

/// The modifier neg_lo says which sources are signed.
template <int kBits>
void lower_mixed_signs(Lowering& l, const Inst& given) {
  const auto& list = given.list("neg_lo");
  const bool a = !list.empty() && list[0] != 0, b = list.size() > 1 && list[1] != 0;
  Inst inst = given;
  std::erase_if(inst.lists, [](const auto& named) { return named.first == "neg_lo"; });
  if (a && b) lower_signs<kBits, true, true>(l, inst);
  if (a && !b) lower_signs<kBits, true, false>(l, inst);
  if (!a && b) lower_signs<kBits, false, true>(l, inst);
  if (!a && !b) lower_signs<kBits, false, false>(l, inst);
}

/// A row whose destination is the addend.
template <int kBits>
constexpr Row accumulated(const char* name) {
  return {name, &lower_vector<kDot<kBits, true, true>, true, Heat::rare>};
}

EMU_INLINE F32 dot2(Packed<F16> a, Packed<F16> b, F32 c) {
  // The products are exact; each addition rounds.
  const F32 low = fma(convert<F32>(a.low), convert<F32>(b.low), c);
  return fma(convert<F32>(a.high), convert<F32>(b.high), low);
}
EMU_INLINE F16 dot2_narrow(Packed<F16> a, Packed<F16> b, F16 c) {
  return convert<F16>(dot2(a, b, convert<F32>(c)));
}
EMU_INLINE F32 widened(U16 bits) { return from_bf16(convert<U32>(bits)); }
EMU_INLINE F32 dot2_bf16(Packed<U16> a, Packed<U16> b, F32 c) {
  return fma(widened(a.high), widened(b.high), fma(widened(a.low), widened(b.low), c));
}
EMU_INLINE U16 dot2_bf16_narrow(Packed<U16> a, Packed<U16> b, U16 c) {
  return convert<U16>(to_bf16(dot2_bf16(a, b, widened(c))));
}

constexpr auto kDot2 = [](Packed<F16> a, Packed<F16> b, F32 c) { return dot2(a, b, c); };

constexpr Row kRows[] = {
    warm<kDot2>("v_dot2_f32_f16"),
    warm_accumulate<kDot2>("v_dot2acc_f32_f16"),
    vop_accumulate<kDot2>("v_dot2c_f32_f16"),
    vop<[](Packed<F16> a, Packed<F16> b, F16 c) { return dot2_narrow(a, b, c); }>("v_dot2_f16_f16"),
    warm<[](Packed<U16> a, Packed<U16> b, F32 c) { return dot2_bf16(a, b, c); }>("v_dot2_f32_bf16"),
    vop<[](Packed<U16> a, Packed<U16> b, U16 c) { return dot2_bf16_narrow(a, b, c); }>(
        "v_dot2_bf16_bf16"),
    {"v_dot4_i32_iu8", &lower_mixed_signs<8>},
    {"v_dot8_i32_iu4", &lower_mixed_signs<4>},
    {"v_dot4_i32_i8", &lower_signs<8, true, true>},
    {"v_dot8_i32_i4", &lower_signs<4, true, true>},
    {"v_dot2_i32_i16", &lower_signs<16, true, true>},
    saturating<kDotUnsigned<8>, kDotUnsignedSaturated<8>>("v_dot4_u32_u8"),
    saturating<kDotUnsigned<4>, kDotUnsignedSaturated<4>>("v_dot8_u32_u4"),
    saturating<kDotUnsigned<16>, kDotUnsignedSaturated<16>>("v_dot2_u32_u16"),
    accumulated<8>("v_dot4c_i32_i8"),
    accumulated<4>("v_dot8c_i32_i4"),
    accumulated<16>("v_dot2c_i32_i16"),
};

}  // namespace

std::span<const Row> dot_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
