// Sparse WMMA of gfx12: D += A * B with 16 x 16 results, where each group of four consecutive
// elements of a row of A has at most two that aren't zero. A lane holds these two for each group,
// and two bits for each of them say where in its group it lies. The lane's groups are those of the
// k that the same lane holds of B.

#include "emu/arch/gfx12/rows.h"
#include "emu/exec/matrix.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr int kSize = 16;

enum class Sum : uint8_t { f32, f16, bf16, i32 };

/// Returns the row of the lane's result number `index`. A wave of 64 has the upper four rows of the
/// eight that a lane of a wave of 32 has in its upper half.
int row_of(int lanes, int lane, int index) {
  const int block = lane / 16;
  return lanes == 64 ? index + 8 * (block & 1) + 4 * (block >> 1) : index + 8 * block;
}

/// The register and the half of it that hold a lane's result number `index`.
template <Sum kSum>
EMU_INLINE uint32_t& result_dword(Wave* w, const Op* op, int lane, int index) {
  const int reg = kSum == Sum::f16 || kSum == Sum::bf16 ? index / 2 : index;
  const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
  return at<uint32_t>(
      w, op->dst + half + 128 * static_cast<uint32_t>(reg) + 4 * static_cast<uint32_t>(lane % 32));
}

template <Sum kSum, class V>
EMU_INLINE V load_sum(Wave* w, const Op* op, int lane, int index) {
  const uint32_t dword = result_dword<kSum>(w, op, lane, index);
  const auto word = static_cast<uint16_t>(index % 2 != 0 ? dword >> 16 : dword);
  if constexpr (kSum == Sum::f16) {
    return static_cast<float>(std::bit_cast<_Float16>(word));
  } else if constexpr (kSum == Sum::bf16) {
    return std::bit_cast<float>(uint32_t{word} << 16);
  } else {
    return std::bit_cast<V>(dword);
  }
}

template <Sum kSum, class V>
EMU_INLINE void store_sum(Wave* w, const Op* op, int lane, int index, V value) {
  uint32_t& to = result_dword<kSum>(w, op, lane, index);
  if constexpr (kSum == Sum::f32 || kSum == Sum::i32) {
    to = std::bit_cast<uint32_t>(value);
  } else {
    const uint32_t word = kSum == Sum::f16 ? std::bit_cast<uint16_t>(static_cast<_Float16>(value))
                                           : to_bf16(splat<F32>(static_cast<float>(value)))[0];
    to = index % 2 != 0 ? (to & 0xffff) | word << 16 : (to & 0xffff0000) | word;
  }
}

/// kStored: the elements of a row of A that are stored. Op::imm2 is the number of the lane's set of
/// indices. All lanes take part, regardless of EXEC.
template <In kA, In kB, Sum kSum, int kStored, bool kSaturate>
Stop swmmac(Wave* w, const Op* op) {
  using V = SumOf<kA>;
  const int lanes = static_cast<int>(w->lanes), groups = lanes / 16;
  const int each = kStored / groups, results = kSize / groups;
  const auto registers = [](int elements, int bits) {
    return static_cast<uint32_t>((elements * bits + 31) / 32);
  };
  note_read(w, op, op->a, true, registers(each, kBitsOf<kA>));
  note_read(w, op, op->b, true, registers(2 * each, kBitsOf<kB>));
  note_read(w, op, op->c, true, 1);
  const bool packed = kSum == Sum::f16 || kSum == Sum::bf16;
  note_read(w, op, op->dst, true, static_cast<uint32_t>(packed ? results / 2 : results));
  note_write(w, op, op->dst, static_cast<uint32_t>(packed ? results / 2 : results));
  V start[kSize][kSize], sum[kSize][kSize];
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < results; ++i) {
      const V old = load_sum<kSum, V>(w, op, lane, i);
      const int row = row_of(lanes, lane, i), column = lane % 16;
      start[row][column] = old;
      sum[row][column] = std::is_integral_v<V> ? 0 : old;
    }
  }
  for (int group = 0; group < groups; ++group) {
    V b[kStored * 2][kSize];
    for (int column = 0; column < kSize; ++column) {
      for (int k = 0; k < 2 * each; ++k) {
        b[k][column] = element<kB>(w, op->b, 16 * group + column, k);
      }
    }
    for (int row = 0; row < kSize; ++row) {
      const int lane = 16 * group + row;
      const uint64_t indices = dword_of(w, op->c, 0, lane) >> (op->imm2 * 2 * each);
      for (int i = 0; i < each; ++i) {
        const V x = element<kA>(w, op->a, lane, i);
        const int k = i / 2 * 4 + static_cast<int>(indices >> (2 * i) & 3);
        for (int column = 0; column < kSize; ++column) {
          multiply_into(sum[row][column], x, b[k][column]);
        }
      }
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < results; ++i) {
      const int row = row_of(lanes, lane, i), column = lane % 16;
      V total = sum[row][column];
      if constexpr (std::is_integral_v<V>) {
        const V old = start[row][column];
        if (!kSaturate)
          total = static_cast<V>(static_cast<uint32_t>(total) + static_cast<uint32_t>(old));
        if (kSaturate) total = __builtin_elementwise_add_sat(total, old);
      }
      store_sum<kSum>(w, op, lane, i, total);
    }
  }
  EMU_NEXT;
}

/// OPSEL is the number of the set of indices where a register holds several.
template <int kStored>
void place_swmmac(Lowering& l, const Inst& inst, Handler handler) {
  const Value values[] = {Value::b32, Value::b32, Value::b32};
  if (l.place_vector(inst, {}, values).vectors != 7) refuse_operands(inst);
  Op& op = l.ops.back();
  op.fn = handler;
  const auto& key = inst.list("op_sel");
  const uint32_t bits = 2 * kStored * 16 / (l.traits.wave64 ? 64 : 32), sets = 32 / bits;
  const auto set = key.size() < 2 ? 0u : static_cast<uint32_t>(key[0] + 2 * key[1]);
  op.imm2 = set % sets;
}

template <In kA, In kB, Sum kSum>
void lower_float(Lowering& l, const Inst& inst) {
  place_swmmac<16>(l, inst, &swmmac<kA, kB, kSum, 16, false>);
}

/// The modifier neg_lo says which sources are signed.
template <In kSigned, In kUnsigned, int kStored, bool kSaturate>
Handler integer_swmmac(bool a, bool b) {
  if (a && b) return &swmmac<kSigned, kSigned, Sum::i32, kStored, kSaturate>;
  if (a) return &swmmac<kSigned, kUnsigned, Sum::i32, kStored, kSaturate>;
  if (b) return &swmmac<kUnsigned, kSigned, Sum::i32, kStored, kSaturate>;
  return &swmmac<kUnsigned, kUnsigned, Sum::i32, kStored, kSaturate>;
}

template <In kSigned, In kUnsigned, int kStored>
void lower_integer(Lowering& l, const Inst& inst) {
  const auto& list = inst.list("neg_lo");
  const bool a = !list.empty() && list[0] != 0, b = list.size() > 1 && list[1] != 0;
  place_swmmac<kStored>(l, inst,
                        inst.has("clamp")
                            ? integer_swmmac<kSigned, kUnsigned, kStored, true>(a, b)
                            : integer_swmmac<kSigned, kUnsigned, kStored, false>(a, b));
}

constexpr Row kRows[] = {
    {"v_swmmac_f32_16x16x32_f16", &lower_float<In::f16, In::f16, Sum::f32>},
    {"v_swmmac_f32_16x16x32_bf16", &lower_float<In::bf16, In::bf16, Sum::f32>},
    {"v_swmmac_f16_16x16x32_f16", &lower_float<In::f16, In::f16, Sum::f16>},
    {"v_swmmac_bf16_16x16x32_bf16", &lower_float<In::bf16, In::bf16, Sum::bf16>},
    {"v_swmmac_i32_16x16x32_iu8", &lower_integer<In::i8, In::u8, 16>},
    {"v_swmmac_i32_16x16x32_iu4", &lower_integer<In::i4, In::u4, 16>},
    {"v_swmmac_i32_16x16x64_iu4", &lower_integer<In::i4, In::u4, 32>},
    {"v_swmmac_f32_16x16x32_fp8_fp8", &lower_float<In::ofp8, In::ofp8, Sum::f32>},
    {"v_swmmac_f32_16x16x32_fp8_bf8", &lower_float<In::ofp8, In::obf8, Sum::f32>},
    {"v_swmmac_f32_16x16x32_bf8_fp8", &lower_float<In::obf8, In::ofp8, Sum::f32>},
    {"v_swmmac_f32_16x16x32_bf8_bf8", &lower_float<In::obf8, In::obf8, Sum::f32>},
};

}  // namespace

std::span<const Row> gfx12_swmmac_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
