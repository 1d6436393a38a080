#pragma once

// What WMMA instructions of gfx11 and gfx12 share: the types of elements and results, and the sum
// of products. The families differ in which lanes and registers hold an element.

#include "emu/exec/float8.h"
#include "emu/exec/valu.h"

namespace emu {
namespace {

enum class Part : uint8_t { f16, bf16, i8, u8, i4, u4, fp8, bf8 };
enum class Sum : uint8_t { f32, f16, bf16, i32 };

template <Part kPart>
inline constexpr int kPartBits = kPart == Part::f16 || kPart == Part::bf16 ? 16
                                 : kPart == Part::i4 || kPart == Part::u4  ? 4
                                                                           : 8;

/// Returns the element that begins at bit `bit` of each dword.
template <Part kPart, class V>
EMU_INLINE V element_at(U32 dwords, int bit) {
  constexpr int kUnused = 32 - kPartBits<kPart>;
  const auto down = static_cast<uint32_t>(bit);
  const U32 top = dwords << (kUnused - down);
  if constexpr (kPart == Part::f16) return convert<F32>(bits_as<F16>(convert<U16>(dwords >> down)));
  if constexpr (kPart == Part::bf16) return bits_as<F32>(top & 0xffff0000u);
  if constexpr (kPart == Part::fp8) return from_float8<Fp8Ocp>(dwords >> down);
  if constexpr (kPart == Part::bf8) return from_float8<Bf8Ocp>(dwords >> down);
  if constexpr (kPart == Part::i8 || kPart == Part::i4) return bits_as<I32>(top) >> kUnused;
  if constexpr (kPart == Part::u8 || kPart == Part::u4) {
    return bits_as<I32>(top >> static_cast<uint32_t>(kUnused));
  }
}

template <class V>
EMU_INLINE V multiply_add(V a, V b, V c) {
  if constexpr (std::is_same_v<V, F32>)
    return __builtin_elementwise_fma(a, b, c);
  else
    return a * b + c;
}

/// Adds the products of two rows of A with the columns of B to `start`, in the order of k. The
/// lower 16 lanes compute row `low`, the upper ones row `high`. kSaturate: the sum of the products
/// wraps, and its addition to `start` saturates.
template <int kDepth, bool kSaturate, class V>
EMU_INLINE V add_products(const V* a, const V* b, int low, int high, V start) {
  V sum = kSaturate ? splat<V>(0) : start;
  for (int k = 0; k < kDepth; ++k) {
    const V both = __builtin_shufflevector(splat<V>(a[k][low]), splat<V>(a[k][high]), 0, 1, 2, 3, 4,
                                           5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 35,
                                           36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47);
    sum = multiply_add(both, b[k], sum);
  }
  if constexpr (kSaturate && std::is_same_v<V, I32>)
    sum = __builtin_elementwise_add_sat(sum, start);
  return sum;
}

/// Reads register `reg` of C. `upper`: a 16-bit element is the upper half of its register.
template <Sum kSum, class V>
EMU_INLINE V addend(Wave* w, const Op* op, uint32_t reg, int half, bool upper) {
  const SourceForm& form = op->extra->src[2];
  const U32 bits = load_dword(w, op->c + (form.vector ? 128 * reg : 0), form.vector, half);
  if constexpr (kSum == Sum::i32) {
    return bits_as<I32>(bits);
  } else {
    F32 value = bits_as<F32>(bits);
    const U32 word = upper ? bits >> 16 : bits & 0xffff;
    if (kSum == Sum::f16) value = convert<F32>(bits_as<F16>(convert<U16>(word)));
    if (kSum == Sum::bf16) value = from_bf16(word);
    return apply_signs(value, form.neg, form.neg_hi);  // for WMMA, neg_hi means the absolute value
  }
}

/// Writes register `reg` of D, of which a 16-bit result preserves the other half.
template <Sum kSum, class V>
EMU_INLINE void store_sum(Wave* w, const Op* op, uint32_t reg, int half, bool upper, V sum) {
  U32& to = at<U32>(w, op->dst + 128 * reg + static_cast<uint32_t>(half) * w->half_bytes);
  if constexpr (kSum == Sum::f32 || kSum == Sum::i32) {
    to = bits_as<U32>(sum);
  } else {
    const U32 word =
        kSum == Sum::f16 ? convert<U32>(bits_as<U16>(convert<F16>(sum))) : to_bf16(sum);
    to = upper ? (to & 0xffff) | word << 16 : (to & 0xffff0000) | word;
  }
}

/// The type of C, which says what constants in its place mean.
template <Sum kSum>
inline constexpr Value kAddendType = kSum == Sum::i32    ? Value::b32
                                     : kSum == Sum::f16  ? Value::f16
                                     : kSum == Sum::bf16 ? Value::bf16
                                                         : Value::f32;

template <Sum kSum>
void place_wmma(Lowering& l, const Inst& inst, Handler handler) {
  const Value values[] = {Value::b32, Value::b32, kAddendType<kSum>};
  l.place_vector(inst, {}, values);
  l.ops.back().fn = handler;
}

}  // namespace
}  // namespace emu
