// WMMA of gfx12: 16 x 16 results. The wave's rows of 16 lanes divide the k values and the rows of
// the result: in a wave of 32, lanes 0 to 15 hold the lower half of both, lanes 16 to 31 the upper
// one. The upper half of a wave of 64 holds the upper four of the eight rows that these lanes have.
// Lane l holds row l & 15 of A, and column l & 15 of B and of the result.

#include "emu/arch/gfx12/rows.h"
#include "emu/exec/wmma.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr int kSize = 16;

/// Returns the lower or the upper 16 lanes, twice.
EMU_INLINE U32 doubled(U32 x, bool upper) {
  const U32 low = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                          15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const U32 high =
      __builtin_shufflevector(x, x, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                              16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  return upper ? high : low;
}

/// Returns element k of every row or column, in both halves of the result.
template <Part kPart, int kDepth, class V>
EMU_INLINE V part_of(Wave* w, uint32_t offset, int k) {
  const int groups = static_cast<int>(w->lanes) / 16, each = kDepth / groups;
  const int group = k / each, bit = k % each * kPartBits<kPart>;
  const uint32_t from = offset + 128 * static_cast<uint32_t>(bit / 32) +
                        static_cast<uint32_t>(group / 2) * w->half_bytes;
  const U32 bits = doubled(at<U32>(w, from), group % 2 != 0);
  return element_at<kPart, V>(bits, bit % 32);
}

/// Whether two consecutive rows of the result share a register.
template <Sum kSum>
inline constexpr bool kPacked = kSum == Sum::f16 || kSum == Sum::bf16;

/// Returns the register of row `row` of C or D, counted within the rows that a lane holds.
template <Sum kSum>
uint32_t register_of(int row) {
  return static_cast<uint32_t>(kPacked<kSum> ? row / 2 : row);
}

/// All lanes take part, regardless of EXEC. The products are summed in order.
template <Part kA, Part kB, Sum kSum, int kDepth, bool kSaturate>
Stop wmma(Wave* w, const Op* op) {
  using V = std::conditional_t<kSum == Sum::i32, I32, F32>;
  const uint32_t lanes = w->lanes;
  note_read(w, op, op->a, true, kDepth * kPartBits<kA> * 16 / 32 / lanes);
  note_read(w, op, op->b, true, kDepth * kPartBits<kB> * 16 / 32 / lanes);
  const uint32_t sums_each = 256 / lanes / (kPacked<kSum> ? 2 : 1);
  note_read(w, op, op->c, op->extra->src[2].vector, op->extra->src[2].vector ? sums_each : 1);
  note_write(w, op, op->dst, sums_each);
  V a[kDepth], b[kDepth];
  for (int k = 0; k < kDepth; ++k) {
    a[k] = part_of<kA, kDepth, V>(w, op->a, k);
    b[k] = part_of<kB, kDepth, V>(w, op->b, k);
  }
  const int halves = lanes == 64 ? 2 : 1, rows = kSize / 2 / halves;  // rows in each lane
  V sums[kSize / 2];
  for (int i = 0; i < kSize / 2; ++i) {
    const int half = i / rows, row = half * rows + i % rows;
    const bool upper = op->extra->src[2].vector && i % rows % 2 != 0;
    const V start = addend<kSum, V>(w, op, register_of<kSum>(i % rows), half, upper);
    sums[i] = add_products<kDepth, kSaturate>(a, b, row, row + kSize / 2, start);
  }
  for (int i = 0; i < kSize / 2; ++i) {
    const int row = i % rows;
    store_sum<kSum>(w, op, register_of<kSum>(row), i / rows, row % 2 != 0, sums[i]);
  }
  EMU_NEXT;
}

template <Part kPart, Sum kSum>
void lower_wmma(Lowering& l, const Inst& inst) {
  place_wmma<kSum>(l, inst, &wmma<kPart, kPart, kSum, 16, false>);
}

template <Part kA, Part kB>
void lower_float8(Lowering& l, const Inst& inst) {
  place_wmma<Sum::f32>(l, inst, &wmma<kA, kB, Sum::f32, 16, false>);
}

/// The modifier neg_lo says which sources are signed.
template <Part kSigned, Part kUnsigned, int kDepth, bool kSaturate>
Handler integer_wmma(bool a, bool b) {
  if (a && b) return &wmma<kSigned, kSigned, Sum::i32, kDepth, kSaturate>;
  if (a) return &wmma<kSigned, kUnsigned, Sum::i32, kDepth, kSaturate>;
  if (b) return &wmma<kUnsigned, kSigned, Sum::i32, kDepth, kSaturate>;
  return &wmma<kUnsigned, kUnsigned, Sum::i32, kDepth, kSaturate>;
}

template <Part kSigned, Part kUnsigned, int kDepth>
void lower_integer_wmma(Lowering& l, const Inst& inst) {
  const auto& list = inst.list("neg_lo");
  const bool a = !list.empty() && list[0] != 0, b = list.size() > 1 && list[1] != 0;
  const Handler handler = inst.has("clamp") ? integer_wmma<kSigned, kUnsigned, kDepth, true>(a, b)
                                            : integer_wmma<kSigned, kUnsigned, kDepth, false>(a, b);
  place_wmma<Sum::i32>(l, inst, handler);
}

constexpr Row kRows[] = {
    {"v_wmma_f32_16x16x16_f16", &lower_wmma<Part::f16, Sum::f32>},
    {"v_wmma_f32_16x16x16_bf16", &lower_wmma<Part::bf16, Sum::f32>},
    {"v_wmma_f16_16x16x16_f16", &lower_wmma<Part::f16, Sum::f16>},
    {"v_wmma_bf16_16x16x16_bf16", &lower_wmma<Part::bf16, Sum::bf16>},
    {"v_wmma_i32_16x16x16_iu8", &lower_integer_wmma<Part::i8, Part::u8, 16>},
    {"v_wmma_i32_16x16x16_iu4", &lower_integer_wmma<Part::i4, Part::u4, 16>},
    {"v_wmma_i32_16x16x32_iu4", &lower_integer_wmma<Part::i4, Part::u4, 32>},
    {"v_wmma_f32_16x16x16_fp8_fp8", &lower_float8<Part::fp8, Part::fp8>},
    {"v_wmma_f32_16x16x16_fp8_bf8", &lower_float8<Part::fp8, Part::bf8>},
    {"v_wmma_f32_16x16x16_bf8_fp8", &lower_float8<Part::bf8, Part::fp8>},
    {"v_wmma_f32_16x16x16_bf8_bf8", &lower_float8<Part::bf8, Part::bf8>},
};

}  // namespace

std::span<const Row> gfx12_wmma_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
