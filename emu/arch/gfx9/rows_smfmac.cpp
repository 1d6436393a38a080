// Sparse matrix instructions of gfx942 and gfx950: D += A * B, where each group of four consecutive
// elements of a row of A has at most two that aren't zero. A lane holds these two for each group,
// and two bits for each of them say where in its group it lies. The lane's groups are those of the
// consecutive k that the same lane holds of B.

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/matrix.h"

namespace emu::EMU_VARIANT {
namespace {

/// The types, the rows (and columns) of the result, and how many elements of A a lane holds.
template <In kTypeA, In kTypeB, int kRows, int kLaneElements>
struct Sparse {
  static constexpr In kA = kTypeA, kB = kTypeB;
  static constexpr int kSize = kRows, kEach = kLaneElements, kGroups = 64 / kRows;
  using Value = SumOf<kTypeA>;
  static constexpr int kRegistersOfA = kEach * kBitsOf<kTypeA> / 32;
  static constexpr int kResults = kSize * kSize / 64;  // per lane
  static constexpr int kIndexBits = 2 * kEach;
};

/// Op::imm2 is the position of the lane's indices in their register. All lanes take part,
/// regardless of EXEC.
template <class S>
Stop smfmac(Wave* w, const Op* op) {
  using V = typename S::Value;
  constexpr int kSize = S::kSize, kDense = 2 * S::kEach;
  note_read(w, op, op->a, true, S::kRegistersOfA);
  note_read(w, op, op->b, true, 2 * S::kRegistersOfA);
  note_read(w, op, op->c, true, 1);
  note_read(w, op, op->dst, true, S::kResults);
  note_write(w, op, op->dst, S::kResults);
  V b[kDense][kSize], sum[kSize][kSize];
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<kSize, false>(lane, i);
      sum[place.row][place.column] = std::bit_cast<V>(dword_of(w, op->dst, i, lane));
    }
  }
  for (int group = 0; group < S::kGroups; ++group) {
    for (int column = 0; column < kSize; ++column) {
      for (int k = 0; k < kDense; ++k) {
        b[k][column] = element<S::kB>(w, op->b, group * kSize + column, k);
      }
    }
    for (int row = 0; row < kSize; ++row) {
      const int lane = group * kSize + row;
      const uint32_t indices = dword_of(w, op->c, 0, lane) >> op->imm2;
      for (int i = 0; i < S::kEach; ++i) {
        const V x = element<S::kA>(w, op->a, lane, i);
        const int k = i / 2 * 4 + static_cast<int>(indices >> (2 * i) & 3);
        for (int column = 0; column < kSize; ++column)
          multiply_into(sum[row][column], x, b[k][column]);
      }
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<kSize, false>(lane, i);
      store_result(w, op->dst, lane, i, sum[place.row][place.column]);
    }
  }
  EMU_NEXT;
}

template <class S>
void lower_smfmac(Lowering& l, const Inst& inst) {
  const Value values[] = {Value::b32, Value::b32, Value::b32};
  if (l.place_vector(inst, {}, values).vectors != 7) refuse_operands(inst);
  Op& op = l.ops.back();
  op.fn = &smfmac<S>;
  // ABID selects one of the register's sets of indices, unless CBSZ says that the first is meant.
  constexpr uint32_t kSets = 32 / S::kIndexBits;
  const auto set = static_cast<uint32_t>(inst.modifier("cbsz") != 0 ? 0 : inst.modifier("abid"));
  op.imm2 = set % kSets * S::kIndexBits;
}

template <In kIn, int kRows, int kEach>
constexpr Row row(const char* name) {
  return {name, &lower_smfmac<Sparse<kIn, kIn, kRows, kEach>>};
}

/// kA and kB are the OCP formats. gfx942 has the FNUZ formats instead, and at most 8 elements of A
/// in a lane.
template <In kA, In kB, int kRows, int kEach>
void lower_float8(Lowering& l, const Inst& inst) {
  if constexpr (kEach == 8) {
    if (!l.traits.ocp_float8) {
      return lower_smfmac<Sparse<fnuz_of(kA), fnuz_of(kB), kRows, kEach>>(l, inst);
    }
  }
  lower_smfmac<Sparse<kA, kB, kRows, kEach>>(l, inst);
}

#define EMU_FLOAT8_ROWS(name, rows, each)                                                 \
  {"v_smfmac_f32_" name "_fp8_fp8", &lower_float8<In::ofp8, In::ofp8, rows, each>},       \
      {"v_smfmac_f32_" name "_fp8_bf8", &lower_float8<In::ofp8, In::obf8, rows, each>},   \
      {"v_smfmac_f32_" name "_bf8_fp8", &lower_float8<In::obf8, In::ofp8, rows, each>}, { \
    "v_smfmac_f32_" name "_bf8_bf8", &lower_float8<In::obf8, In::obf8, rows, each>        \
  }

// gfx942's instructions, and gfx950's with twice the depth.
constexpr Row kRows[] = {
    row<In::f16, 16, 4>("v_smfmac_f32_16x16x32_f16"),
    row<In::f16, 32, 4>("v_smfmac_f32_32x32x16_f16"),
    row<In::bf16, 16, 4>("v_smfmac_f32_16x16x32_bf16"),
    row<In::bf16, 32, 4>("v_smfmac_f32_32x32x16_bf16"),
    row<In::i8, 16, 8>("v_smfmac_i32_16x16x64_i8"),
    row<In::i8, 32, 8>("v_smfmac_i32_32x32x32_i8"),
    EMU_FLOAT8_ROWS("16x16x64", 16, 8),
    EMU_FLOAT8_ROWS("32x32x32", 32, 8),
    row<In::f16, 16, 8>("v_smfmac_f32_16x16x64_f16"),
    row<In::f16, 32, 8>("v_smfmac_f32_32x32x32_f16"),
    row<In::bf16, 16, 8>("v_smfmac_f32_16x16x64_bf16"),
    row<In::bf16, 32, 8>("v_smfmac_f32_32x32x32_bf16"),
    row<In::i8, 16, 16>("v_smfmac_i32_16x16x128_i8"),
    row<In::i8, 32, 16>("v_smfmac_i32_32x32x64_i8"),
    EMU_FLOAT8_ROWS("16x16x128", 16, 16),
    EMU_FLOAT8_ROWS("32x32x64", 32, 16),
};

}  // namespace

std::span<const Row> gfx9_smfmac_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
