// WMMA of gfx12: 16 x 16 results. The wave's rows of 16 lanes divide the k values and the rows of
// the result: in a wave of 32, lanes 0 to 15 hold the lower half of both, lanes 16 to 31 the upper
// one. The upper half of a wave of 64 holds the upper four of the eight rows that these lanes have.
// Lane l holds row l & 15 of A, and column l & 15 of B and of the result.

#include "emu/arch/gfx12/rows.h"
#include "emu/exec/float8.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr int kSize = 16;

enum class Part : uint8_t { f16, bf16, i8, u8, i4, u4, fp8, bf8 };
enum class Sum : uint8_t { f32, f16, bf16, i32 };

template <Part kPart>
inline constexpr int kPartBits = kPart == Part::f16 || kPart == Part::bf16 ? 16
                                 : kPart == Part::i4 || kPart == Part::u4  ? 4
                                                                           : 8;

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
  const auto down = static_cast<uint32_t>(bit % 32);
  const U32 top = bits << (32 - kPartBits<kPart> - down);
  constexpr int kUnused = 32 - kPartBits<kPart>;
  if constexpr (kPart == Part::f16) return convert<F32>(bits_as<F16>(convert<U16>(bits >> down)));
  if constexpr (kPart == Part::bf16) return bits_as<F32>(top & 0xffff0000u);
  if constexpr (kPart == Part::fp8) return from_float8<Fp8Ocp>(bits >> down);
  if constexpr (kPart == Part::bf8) return from_float8<Bf8Ocp>(bits >> down);
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

/// Whether two consecutive rows of the result share a register.
template <Sum kSum>
inline constexpr bool kPacked = kSum == Sum::f16 || kSum == Sum::bf16;

/// Reads row `row` of C, counted within the rows that a lane holds.
template <Sum kSum, class V>
EMU_INLINE V addend(Wave* w, const Op* op, int row, int half) {
  const SourceForm& form = op->extra->src[2];
  const auto reg = static_cast<uint32_t>(kPacked<kSum> ? row / 2 : row);
  const U32 bits = load_dword(w, op->c + (form.vector ? 128 * reg : 0), form.vector, half);
  if constexpr (kSum == Sum::i32) {
    return bits_as<I32>(bits);
  } else {
    F32 value = bits_as<F32>(bits);
    const U32 word = form.vector && row % 2 != 0 ? bits >> 16 : bits & 0xffff;
    if (kSum == Sum::f16) value = convert<F32>(bits_as<F16>(convert<U16>(word)));
    if (kSum == Sum::bf16) value = from_bf16(word);
    return apply_signs(value, form.neg, form.neg_hi);  // for WMMA, neg_hi means the absolute value
  }
}

template <Sum kSum, class V>
EMU_INLINE void store_sum(Wave* w, const Op* op, int row, int half, V sum) {
  const auto reg = static_cast<uint32_t>(kPacked<kSum> ? row / 2 : row);
  U32& to = at<U32>(w, op->dst + 128 * reg + static_cast<uint32_t>(half) * w->half_bytes);
  if constexpr (!kPacked<kSum>) {
    to = bits_as<U32>(sum);
  } else {
    const U32 word =
        kSum == Sum::f16 ? convert<U32>(bits_as<U16>(convert<F16>(sum))) : to_bf16(sum);
    to = row % 2 != 0 ? (to & 0xffff) | word << 16 : (to & 0xffff0000) | word;
  }
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
    const V start = addend<kSum, V>(w, op, i % rows, half);
    V sum = kSaturate ? splat<V>(0) : start;
    for (int k = 0; k < kDepth; ++k) {
      const V low = splat<V>(a[k][row]), high = splat<V>(a[k][row + kSize / 2]);
      const V both =
          __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
                                  32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47);
      sum = multiply_add(both, b[k], sum);
    }
    if constexpr (kSaturate && kSum == Sum::i32) sum = __builtin_elementwise_add_sat(sum, start);
    sums[i] = sum;
  }
  for (int i = 0; i < kSize / 2; ++i) store_sum<kSum>(w, op, i % rows, i / rows, sums[i]);
  EMU_NEXT;
}

void place_wmma(Lowering& l, const Inst& inst, Handler handler, Value value) {
  const Value values[] = {Value::b32, Value::b32, value};
  l.place_vector(inst, {}, values);
  l.ops.back().fn = handler;
}

template <Part kPart, Sum kSum>
void lower_wmma(Lowering& l, const Inst& inst) {
  place_wmma(l, inst, &wmma<kPart, kPart, kSum, 16, false>,
             kSum == Sum::f16    ? Value::f16
             : kSum == Sum::bf16 ? Value::bf16
                                 : Value::f32);
}

template <Part kA, Part kB>
void lower_float8(Lowering& l, const Inst& inst) {
  place_wmma(l, inst, &wmma<kA, kB, Sum::f32, 16, false>, Value::f32);
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
  place_wmma(l, inst, handler, Value::b32);
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
