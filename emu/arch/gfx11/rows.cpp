// WMMA of gfx11: 16 x 16 results, each a sum of 16 products. Lane l holds row l & 15 of A and
// column l & 15 of B. Both halves (in a wave of 64, all four rows of 16 lanes) hold the same data,
// and this code reads the lower 16 lanes. Of the result, lane l holds column l & 15; consecutive
// rows are distributed cyclically over the rows of lanes.

#include "emu/exec/rows/rows.h"

#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr int kSize = 16;

enum class Part : uint8_t { f16, bf16, i8, u8, i4, u4 };
enum class Sum : uint8_t { f32, f16, bf16, i32 };

template <Part kPart>
inline constexpr int kPartBits = kPart == Part::f16 || kPart == Part::bf16 ? 16
                                 : kPart == Part::i8 || kPart == Part::u8  ? 8
                                                                           : 4;

/// Returns element k of the row or column in each of the lower 16 lanes, in both halves of the
/// result.
template <Part kPart, class V>
EMU_INLINE V part_of(Wave* w, uint32_t offset, int k) {
  constexpr int kEach = 32 / kPartBits<kPart>;
  U32 bits = at<U32>(w, offset + 128 * static_cast<uint32_t>(k / kEach));
  bits = __builtin_shufflevector(bits, bits, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto down = static_cast<uint32_t>(k % kEach * kPartBits<kPart>);
  const U32 top = bits << (32 - kPartBits<kPart> - down);
  constexpr int kUnused = 32 - kPartBits<kPart>;
  if constexpr (kPart == Part::f16) return convert<F32>(bits_as<F16>(convert<U16>(bits >> down)));
  if constexpr (kPart == Part::bf16) return bits_as<F32>(top & 0xffff0000u);
  if constexpr (kPart == Part::i8 || kPart == Part::i4) return bits_as<I32>(top) >> kUnused;
  if constexpr (kPart == Part::u8 || kPart == Part::u4) {
    return bits_as<I32>(top >> static_cast<uint32_t>(kUnused));
  }
}

template <class V>
EMU_INLINE V multiply_add(V a, V b, V c) {
  if constexpr (std::is_same_v<V, F32>)
    return fma(a, b, c);
  else
    return a * b + c;
}

template <Sum kSum, class V>
EMU_INLINE V addend(Wave* w, const Op* op, uint32_t reg, int half) {
  const SourceForm& form = op->extra->src[2];
  const U32 bits = load_dword(w, op->c + (form.vector ? 128 * reg : 0), form.vector, half);
  if constexpr (kSum == Sum::i32) {
    return bits_as<I32>(bits);
  } else {
    F32 value = bits_as<F32>(bits);
    const U32 word = form.hi ? bits >> 16 : bits & 0xffff;
    if (kSum == Sum::f16) value = convert<F32>(bits_as<F16>(convert<U16>(word)));
    if (kSum == Sum::bf16) value = from_bf16(word);
    return apply_signs(value, form.neg, form.neg_hi);  // for WMMA, neg_hi means the absolute value
  }
}

template <Sum kSum, class V>
EMU_INLINE void store_sum(Wave* w, const Op* op, uint32_t reg, int half, V sum) {
  const Extra& x = *op->extra;
  U32& to = at<U32>(w, op->dst + 128 * reg + static_cast<uint32_t>(half) * w->half_bytes);
  if constexpr (kSum == Sum::f32 || kSum == Sum::i32) {
    to = bits_as<U32>(sum);
  } else {
    const U32 word =
        kSum == Sum::f16 ? convert<U32>(bits_as<U16>(convert<F16>(sum))) : to_bf16(sum);
    to = x.src[2].hi ? (to & 0xffff) | word << 16 : (to & 0xffff0000) | word;
  }
}

/// All lanes take part, regardless of EXEC. The products are summed in order.
template <Part kA, Part kB, Sum kSum, bool kSaturate>
Stop wmma(Wave* w, const Op* op) {
  using V = std::conditional_t<kSum == Sum::i32, I32, F32>;
  note_read(w, op, op->a, true, kPartBits<kA> / 2);
  note_read(w, op, op->b, true, kPartBits<kB> / 2);
  note_read(w, op, op->c, op->extra->src[2].vector, op->extra->src[2].vector ? 256 / w->lanes : 1);
  note_write(w, op, op->dst, 256 / w->lanes);
  V a[kSize], b[kSize];
  for (int k = 0; k < kSize; ++k) {
    a[k] = part_of<kA, V>(w, op->a, k);
    b[k] = part_of<kB, V>(w, op->b, k);
  }
  const int halves = w->lanes == 64 ? 2 : 1;
  const int rows_each = 2 * halves;  // rows of the result in one register
  V sums[kSize / 2];
  for (int i = 0; i < kSize / 2; ++i) {
    const int reg = i / halves, half = i % halves;
    // The row in the lower 16 lanes; the other lanes hold the next row.
    const int row = reg * rows_each + half * 2;
    const V start = addend<kSum, V>(w, op, static_cast<uint32_t>(reg), half);
    V sum = kSaturate ? splat<V>(0) : start;
    for (int k = 0; k < kSize; ++k) {
      const V low = splat<V>(a[k][row]), high = splat<V>(a[k][row + 1]);
      const V both =
          __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                  32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47);
      sum = multiply_add(both, b[k], sum);
    }
    if constexpr (kSaturate && kSum == Sum::i32) sum = __builtin_elementwise_add_sat(sum, start);
    sums[i] = sum;
  }
  for (int i = 0; i < kSize / 2; ++i) {
    store_sum<kSum>(w, op, static_cast<uint32_t>(i / halves), i % halves, sums[i]);
  }
  EMU_NEXT;
}

void place_wmma(Lowering& l, const Inst& inst, Handler handler, Value value) {
  const Value values[] = {Value::b32, Value::b32, value};
  l.place_vector(inst, {}, values);
  l.ops.back().fn = handler;
}

template <Part kPart, Sum kSum>
void lower_wmma(Lowering& l, const Inst& inst) {
  place_wmma(l, inst, &wmma<kPart, kPart, kSum, false>,
             kSum == Sum::f16    ? Value::f16
             : kSum == Sum::bf16 ? Value::bf16
                                 : Value::f32);
}

/// The modifier neg_lo says which sources are signed.
template <Part kSigned, Part kUnsigned, bool kSaturate>
Handler integer_wmma(bool a, bool b) {
  if (a && b) return &wmma<kSigned, kSigned, Sum::i32, kSaturate>;
  if (a) return &wmma<kSigned, kUnsigned, Sum::i32, kSaturate>;
  if (b) return &wmma<kUnsigned, kSigned, Sum::i32, kSaturate>;
  return &wmma<kUnsigned, kUnsigned, Sum::i32, kSaturate>;
}

template <Part kSigned, Part kUnsigned>
void lower_integer_wmma(Lowering& l, const Inst& inst) {
  const auto& list = inst.list("neg_lo");
  const bool a = !list.empty() && list[0] != 0, b = list.size() > 1 && list[1] != 0;
  const Handler handler = inst.has("clamp") ? integer_wmma<kSigned, kUnsigned, true>(a, b)
                                            : integer_wmma<kSigned, kUnsigned, false>(a, b);
  place_wmma(l, inst, handler, Value::b32);
}

constexpr Row kRows[] = {
    {"v_wmma_f32_16x16x16_f16", &lower_wmma<Part::f16, Sum::f32>},
    {"v_wmma_f32_16x16x16_bf16", &lower_wmma<Part::bf16, Sum::f32>},
    {"v_wmma_f16_16x16x16_f16", &lower_wmma<Part::f16, Sum::f16>},
    {"v_wmma_bf16_16x16x16_bf16", &lower_wmma<Part::bf16, Sum::bf16>},
    {"v_wmma_i32_16x16x16_iu8", &lower_integer_wmma<Part::i8, Part::u8>},
    {"v_wmma_i32_16x16x16_iu4", &lower_integer_wmma<Part::i4, Part::u4>},
};

}  // namespace

std::span<const Row> gfx11_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
