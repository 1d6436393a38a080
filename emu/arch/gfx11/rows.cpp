// WMMA of gfx11: 16 x 16 results, each a sum of 16 products. Lane l holds row l & 15 of A and
// column l & 15 of B. Both halves (in a wave of 64, all four rows of 16 lanes) hold the same data,
// and this code reads the lower 16 lanes. Of the result, lane l holds column l & 15; consecutive
// rows are distributed cyclically over the rows of lanes.

#include "emu/exec/rows/rows.h"

#include "emu/exec/wmma.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr int kSize = 16;

/// Returns element k of the row or column in each of the lower 16 lanes, in both halves of the
/// result.
template <Part kPart, class V>
EMU_INLINE V part_of(Wave* w, uint32_t offset, int k) {
  constexpr int kEach = 32 / kPartBits<kPart>;
  U32 bits = at<U32>(w, offset + 128 * static_cast<uint32_t>(k / kEach));
  bits = __builtin_shufflevector(bits, bits, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return element_at<kPart, V>(bits, k % kEach * kPartBits<kPart>);
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
  const bool upper = op->extra->src[2].hi;
  const int halves = w->lanes == 64 ? 2 : 1;
  const int rows_each = 2 * halves;  // rows of the result in one register
  V sums[kSize / 2];
  for (int i = 0; i < kSize / 2; ++i) {
    const int reg = i / halves, half = i % halves;
    // The row in the lower 16 lanes; the other lanes hold the next row.
    const int row = reg * rows_each + half * 2;
    const V start = addend<kSum, V>(w, op, static_cast<uint32_t>(reg), half, upper);
    sums[i] = add_products<kSize, kSaturate>(a, b, row, row + 1, start);
  }
  for (int i = 0; i < kSize / 2; ++i) {
    store_sum<kSum>(w, op, static_cast<uint32_t>(i / halves), i % halves, upper, sums[i]);
  }
  EMU_NEXT;
}

template <Part kPart, Sum kSum>
void lower_wmma(Lowering& l, const Inst& inst) {
  place_wmma<kSum>(l, inst, &wmma<kPart, kPart, kSum, false>);
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
  place_wmma<Sum::i32>(l, inst, handler);
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
