// Matrix instructions of gfx9: D = A * B + C for one to sixteen blocks at once. Products are summed
// in order and rounded once each; the hardware doesn't guarantee this order.

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/matrix.h"

namespace emu::EMU_VARIANT {
namespace {

/// The dimensions of a matrix instruction: rows (and columns) of a block, depth of the sums, number
/// of blocks, and the k that one lane holds.
template <In kTypeA, In kTypeB, int kRows, int kDepth, int kCount, int kLaneDepth>
struct Shape {
  static constexpr In kA = kTypeA, kB = kTypeB;
  static constexpr int kSize = kRows, kK = kDepth, kBlocks = kCount, kEach = kLaneDepth;
  static constexpr bool kWide = kTypeA == In::f64;
  using Value = SumOf<kTypeA>;
  static constexpr int kRegistersOfA = kEach * kBitsOf<kTypeA> / 32;
  static constexpr int kRegistersOfB = kEach * kBitsOf<kTypeB> / 32;
  static constexpr int kResults = kSize * kSize * kBlocks / 64;  // per lane
  static constexpr int kResultRegisters = kResults * (kWide ? 2 : 1);
  static_assert(kSize * kBlocks * (kK / kEach) == 64);
};

// The modifiers, in Op::imm2. CBSZ and ABID: each group of 2^CBSZ blocks reads block ABID of its
// A. BLGP: which lanes of B are read; for f64, instead, which operands are negated.
constexpr uint32_t kAbidAt = 3, kBlgpAt = 7;

/// Returns the lane from which `lane` takes its elements of A.
template <class S>
EMU_INLINE int lane_of_a(uint32_t modifiers, int lane) {
  const uint32_t cbsz = modifiers & 7, abid = modifiers >> kAbidAt & 15;
  if (S::kWide || cbsz == 0) return lane;
  const int group = 1 << cbsz, block = lane / S::kSize % S::kBlocks;
  const int from = (block / group * group + static_cast<int>(abid) % group) % S::kBlocks;
  return lane + (from - block) * S::kSize;
}

EMU_INLINE int lane_of_b(uint32_t modifiers, int lane) {
  const uint32_t blgp = modifiers >> kBlgpAt;
  if (blgp == 0) return lane;
  if (blgp <= 2) return lane % 32 + (blgp == 2 ? 32 : 0);
  if (blgp == 3) return (lane + 16) % 64;
  return lane % 16 + 16 * static_cast<int>(blgp - 4);
}

template <class S>
typename S::Value addend(Wave* w, const Op* op, int lane, int index) {
  using V = typename S::Value;
  const bool vector = op->extra->src[2].vector;
  if constexpr (S::kWide) {
    if (!vector) return at<double>(w, op->c);
    const uint64_t upper = dword_of(w, op->c, 2 * index + 1, lane);
    return std::bit_cast<double>(upper << 32 | dword_of(w, op->c, 2 * index, lane));
  } else {
    return std::bit_cast<V>(vector ? dword_of(w, op->c, index, lane) : at<uint32_t>(w, op->c));
  }
}

/// All lanes take part, regardless of EXEC.
template <class S>
Stop mfma(Wave* w, const Op* op) {
  using V = typename S::Value;
  constexpr int kSize = S::kSize;
  const bool vector = op->extra->src[2].vector;
  note_read(w, op, op->a, true, S::kRegistersOfA);
  note_read(w, op, op->b, true, S::kRegistersOfB);
  note_read(w, op, op->c, vector, vector ? S::kResultRegisters : S::kWide ? 2 : 1);
  note_write(w, op, op->dst, S::kResultRegisters);
  V a[S::kBlocks][S::kK][kSize], b[S::kBlocks][S::kK][kSize], sum[S::kBlocks][kSize][kSize];
  const uint32_t modifiers = op->imm2, negated = S::kWide ? modifiers >> kBlgpAt : 0;
  for (int lane = 0; lane < 64; ++lane) {
    const int from_a = lane_of_a<S>(modifiers, lane);
    const int from_b = S::kWide ? lane : lane_of_b(modifiers, lane);
    for (int i = 0; i < S::kEach; ++i) {
      const int block = lane / kSize % S::kBlocks;
      const int k = lane / (kSize * S::kBlocks) * S::kEach + i;
      const V x = element<S::kA>(w, op->a, from_a, i), y = element<S::kB>(w, op->b, from_b, i);
      a[block][k][lane % kSize] = (negated & 1) != 0 ? -x : x;
      b[block][k][lane % kSize] = (negated & 2) != 0 ? -y : y;
    }
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<kSize, S::kWide>(lane, i);
      const V c = addend<S>(w, op, lane, i);
      sum[place.block][place.row][place.column] = (negated & 4) != 0 ? -c : c;
    }
  }
  for (int block = 0; block < S::kBlocks; ++block) {
    for (int k = 0; k < S::kK; ++k) {
      for (int row = 0; row < kSize; ++row) {
        for (int column = 0; column < kSize; ++column) {
          multiply_into(sum[block][row][column], a[block][k][row], b[block][k][column]);
        }
      }
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<kSize, S::kWide>(lane, i);
      store_result(w, op->dst, lane, i, sum[place.block][place.row][place.column]);
    }
  }
  EMU_NEXT;
}

/// The modifiers as Op::imm2 holds them.
template <class S>
uint32_t modifiers_of(const Inst& inst) {
  uint32_t blgp = S::kWide ? 0 : static_cast<uint32_t>(inst.modifier("blgp"));
  const auto& negated = inst.list("neg");
  for (size_t i = 0; i < negated.size() && i < 3; ++i) {
    blgp |= static_cast<uint32_t>(negated[i] != 0) << i;
  }
  return static_cast<uint32_t>(inst.modifier("cbsz")) |
         static_cast<uint32_t>(inst.modifier("abid")) << kAbidAt | blgp << kBlgpAt;
}

template <class S>
void lower_mfma(Lowering& l, const Inst& inst) {
  const Value wide = S::kWide ? Value::f64 : Value::b32;
  const Value values[] = {wide, wide, S::kWide ? Value::f64 : Value::f32};
  const Placed placed = l.place_vector(inst, {}, values);
  if ((placed.vectors & 3) != 3) refuse_operands(inst);
  l.ops.back().fn = &mfma<S>;
  l.ops.back().imm2 = modifiers_of<S>(inst);
}

template <In kIn, int kRows, int kDepth, int kCount, int kEach>
constexpr Row mfma_row(const char* name) {
  return {name, &lower_mfma<Shape<kIn, kIn, kRows, kDepth, kCount, kEach>>};
}

/// Lowers an instruction on 8-bit floats, of which every lane holds 8 consecutive ones. kA and kB
/// are the OCP formats. gfx942 has the FNUZ formats instead.
template <In kA, In kB, int kRows, int kDepth>
void lower_float8(Lowering& l, const Inst& inst) {
  if (l.traits.ocp_float8) {
    lower_mfma<Shape<kA, kB, kRows, kDepth, 1, 8>>(l, inst);
  } else {
    lower_mfma<Shape<fnuz_of(kA), fnuz_of(kB), kRows, kDepth, 1, 8>>(l, inst);
  }
}

// ---- Formats that modifiers name, with or without scales (gfx950).

/// The positions of the scales' bytes in their registers, in Op::imm2, and the operands Op::d and
/// Op::dst2, which hold the scales of A and B.
constexpr uint32_t kScaled = 16;

/// Returns the factor that a byte means: a power of two, or NaN.
float scale_of(uint32_t byte) {
  if (byte == 255) return __builtin_nanf("");
  return byte == 0 ? 0x1p-127f : std::bit_cast<float>(byte << 23);
}

/// All lanes take part, regardless of EXEC. The 32 elements of a lane have one scale.
template <In kA, In kB, int kSize>
Stop mfma_formats(Wave* w, const Op* op) {
  constexpr int kGroups = 64 / kSize, kEach = 32, kResults = kSize * kSize / 64;
  const bool vector = op->extra->src[2].vector, scaled = (op->imm2 & kScaled) != 0;
  note_read(w, op, op->a, true, kEach * kBitsOf<kA> / 32);
  note_read(w, op, op->b, true, kEach * kBitsOf<kB> / 32);
  note_read(w, op, op->c, vector, vector ? kResults : 1);
  note_write(w, op, op->dst, kResults);
  const auto scale = [&](uint32_t offset, uint32_t byte, int lane) {
    const uint32_t dword = is_vgpr(offset) ? dword_of(w, offset, 0, lane) : at<uint32_t>(w, offset);
    return scaled ? scale_of(dword >> (8 * byte) & 255) : 1.0f;
  };
  float b[kEach][kSize], sum[kSize][kSize];
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < kResults; ++i) {
      const Place place = place_of<kSize, false>(lane, i);
      const uint32_t bits = vector ? dword_of(w, op->c, i, lane) : at<uint32_t>(w, op->c);
      sum[place.row][place.column] = std::bit_cast<float>(bits);
    }
  }
  for (int group = 0; group < kGroups; ++group) {
    for (int column = 0; column < kSize; ++column) {
      const int lane = group * kSize + column;
      const float factor = scale(op->dst2, op->imm2 >> 2 & 3, lane);
      for (int k = 0; k < kEach; ++k) b[k][column] = element<kB>(w, op->b, lane, k) * factor;
    }
    for (int row = 0; row < kSize; ++row) {
      const int lane = group * kSize + row;
      const float factor = scale(op->d, op->imm2 & 3, lane);
      for (int k = 0; k < kEach; ++k) {
        const float x = element<kA>(w, op->a, lane, k) * factor;
        for (int column = 0; column < kSize; ++column)
          multiply_into(sum[row][column], x, b[k][column]);
      }
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < kResults; ++i) {
      const Place place = place_of<kSize, false>(lane, i);
      store_result(w, op->dst, lane, i, sum[place.row][place.column]);
    }
  }
  EMU_NEXT;
}

/// The handlers by the formats of A and B: fp8, bf8, two of 6 bits, and one of 4.
template <int kSize>
Handler of_formats(size_t a, size_t b) {
  constexpr In kFormats[] = {In::ofp8, In::obf8, In::e2m3, In::e3m2, In::e2m1};
  static constexpr auto kTable = []<size_t... I>(std::index_sequence<I...>) {
    return std::array<Handler, 25>{&mfma_formats<kFormats[I / 5], kFormats[I % 5], kSize>...};
  }
  (std::make_index_sequence<25>());
  return a < 5 && b < 5 ? kTable[5 * a + b] : nullptr;
}

template <int kSize>
void lower_formats(Lowering& l, const Inst& inst) {
  const Value values[] = {Value::b32, Value::b32, Value::f32};
  const Placed placed = l.place_vector(inst, {}, values);
  const Handler handler = of_formats<kSize>(static_cast<size_t>(inst.modifier("cbsz")),
                                            static_cast<size_t>(inst.modifier("blgp")));
  if ((placed.vectors & 3) != 3 || handler == nullptr) refuse_operands(inst);
  Op& op = l.ops.back();
  op.fn = handler;
  if (inst.operands.size() < 6) return;
  op.d = l.source(inst.operands[4], Value::b32);
  op.dst2 = l.source(inst.operands[5], Value::b32);
  const auto &low = inst.list("op_sel"), &high = inst.list("op_sel_hi");
  op.imm2 = kScaled | static_cast<uint32_t>(low[0] + 2 * high[0] + 4 * low[1] + 8 * high[1]);
}

#define EMU_FLOAT8_ROWS(name, rows, depth)                                               \
  {"v_mfma_f32_" name "_fp8_fp8", &lower_float8<In::ofp8, In::ofp8, rows, depth>},       \
      {"v_mfma_f32_" name "_fp8_bf8", &lower_float8<In::ofp8, In::obf8, rows, depth>},   \
      {"v_mfma_f32_" name "_bf8_fp8", &lower_float8<In::obf8, In::ofp8, rows, depth>}, { \
    "v_mfma_f32_" name "_bf8_bf8", &lower_float8<In::obf8, In::obf8, rows, depth>        \
  }

// gfx942 separates the shape from the type of the sources, names the number of blocks, and calls
// the bf16 instructions of gfx90a that end in _1k just bf16. The last rows are gfx950's.
constexpr Row kRows[] = {
    mfma_row<In::f32, 32, 1, 2, 1>("v_mfma_f32_32x32x1_2b_f32"),
    mfma_row<In::f32, 16, 1, 4, 1>("v_mfma_f32_16x16x1_4b_f32"),
    mfma_row<In::f32, 4, 1, 16, 1>("v_mfma_f32_4x4x1_16b_f32"),
    mfma_row<In::f32, 32, 2, 1, 1>("v_mfma_f32_32x32x2_f32"),
    mfma_row<In::f32, 16, 4, 1, 1>("v_mfma_f32_16x16x4_f32"),
    mfma_row<In::f16, 32, 4, 2, 4>("v_mfma_f32_32x32x4_2b_f16"),
    mfma_row<In::f16, 16, 4, 4, 4>("v_mfma_f32_16x16x4_4b_f16"),
    mfma_row<In::f16, 4, 4, 16, 4>("v_mfma_f32_4x4x4_16b_f16"),
    mfma_row<In::f16, 32, 8, 1, 4>("v_mfma_f32_32x32x8_f16"),
    mfma_row<In::f16, 16, 16, 1, 4>("v_mfma_f32_16x16x16_f16"),
    mfma_row<In::bf16, 32, 4, 2, 4>("v_mfma_f32_32x32x4_2b_bf16"),
    mfma_row<In::bf16, 16, 4, 4, 4>("v_mfma_f32_16x16x4_4b_bf16"),
    mfma_row<In::bf16, 4, 4, 16, 4>("v_mfma_f32_4x4x4_16b_bf16"),
    mfma_row<In::bf16, 32, 8, 1, 4>("v_mfma_f32_32x32x8_bf16"),
    mfma_row<In::bf16, 16, 16, 1, 4>("v_mfma_f32_16x16x16_bf16"),
    mfma_row<In::i8, 32, 4, 2, 4>("v_mfma_i32_32x32x4_2b_i8"),
    mfma_row<In::i8, 16, 4, 4, 4>("v_mfma_i32_16x16x4_4b_i8"),
    mfma_row<In::i8, 4, 4, 16, 4>("v_mfma_i32_4x4x4_16b_i8"),
    mfma_row<In::i8, 32, 16, 1, 8>("v_mfma_i32_32x32x16_i8"),
    mfma_row<In::i8, 16, 32, 1, 8>("v_mfma_i32_16x16x32_i8"),
    mfma_row<In::f64, 16, 4, 1, 1>("v_mfma_f64_16x16x4_f64"),
    mfma_row<In::f64, 4, 4, 4, 1>("v_mfma_f64_4x4x4_4b_f64"),
    mfma_row<In::f32, 32, 1, 2, 1>("v_mfma_f32_32x32x1f32"),
    mfma_row<In::f32, 16, 1, 4, 1>("v_mfma_f32_16x16x1f32"),
    mfma_row<In::f32, 4, 1, 16, 1>("v_mfma_f32_4x4x1f32"),
    mfma_row<In::f32, 32, 2, 1, 1>("v_mfma_f32_32x32x2f32"),
    mfma_row<In::f32, 16, 4, 1, 1>("v_mfma_f32_16x16x4f32"),
    mfma_row<In::f16, 32, 4, 2, 4>("v_mfma_f32_32x32x4f16"),
    mfma_row<In::f16, 16, 4, 4, 4>("v_mfma_f32_16x16x4f16"),
    mfma_row<In::f16, 4, 4, 16, 4>("v_mfma_f32_4x4x4f16"),
    mfma_row<In::f16, 32, 8, 1, 4>("v_mfma_f32_32x32x8f16"),
    mfma_row<In::f16, 16, 16, 1, 4>("v_mfma_f32_16x16x16f16"),
    mfma_row<In::bf16, 32, 2, 2, 2>("v_mfma_f32_32x32x2bf16"),
    mfma_row<In::bf16, 16, 2, 4, 2>("v_mfma_f32_16x16x2bf16"),
    mfma_row<In::bf16, 4, 2, 16, 2>("v_mfma_f32_4x4x2bf16"),
    mfma_row<In::bf16, 32, 4, 1, 2>("v_mfma_f32_32x32x4bf16"),
    mfma_row<In::bf16, 16, 8, 1, 2>("v_mfma_f32_16x16x8bf16"),
    mfma_row<In::bf16, 32, 4, 2, 4>("v_mfma_f32_32x32x4bf16_1k"),
    mfma_row<In::bf16, 16, 4, 4, 4>("v_mfma_f32_16x16x4bf16_1k"),
    mfma_row<In::bf16, 4, 4, 16, 4>("v_mfma_f32_4x4x4bf16_1k"),
    mfma_row<In::bf16, 32, 8, 1, 4>("v_mfma_f32_32x32x8bf16_1k"),
    mfma_row<In::bf16, 16, 16, 1, 4>("v_mfma_f32_16x16x16bf16_1k"),
    mfma_row<In::i8, 32, 4, 2, 4>("v_mfma_i32_32x32x4i8"),
    mfma_row<In::i8, 16, 4, 4, 4>("v_mfma_i32_16x16x4i8"),
    mfma_row<In::i8, 4, 4, 16, 4>("v_mfma_i32_4x4x4i8"),
    mfma_row<In::i8, 32, 8, 1, 4>("v_mfma_i32_32x32x8i8"),
    mfma_row<In::i8, 16, 16, 1, 4>("v_mfma_i32_16x16x16i8"),
    mfma_row<In::f64, 16, 4, 1, 1>("v_mfma_f64_16x16x4f64"),
    mfma_row<In::f64, 4, 4, 4, 1>("v_mfma_f64_4x4x4f64"),
    mfma_row<In::xf32, 16, 8, 1, 2>("v_mfma_f32_16x16x8_xf32"),
    mfma_row<In::xf32, 32, 4, 1, 2>("v_mfma_f32_32x32x4_xf32"),
    EMU_FLOAT8_ROWS("16x16x32", 16, 32),
    EMU_FLOAT8_ROWS("32x32x16", 32, 16),
    mfma_row<In::f16, 16, 32, 1, 8>("v_mfma_f32_16x16x32_f16"),
    mfma_row<In::f16, 32, 16, 1, 8>("v_mfma_f32_32x32x16_f16"),
    mfma_row<In::bf16, 16, 32, 1, 8>("v_mfma_f32_16x16x32_bf16"),
    mfma_row<In::bf16, 32, 16, 1, 8>("v_mfma_f32_32x32x16_bf16"),
    mfma_row<In::i8, 16, 64, 1, 16>("v_mfma_i32_16x16x64_i8"),
    mfma_row<In::i8, 32, 32, 1, 16>("v_mfma_i32_32x32x32_i8"),
    {"v_mfma_f32_16x16x128_f8f6f4", &lower_formats<16>},
    {"v_mfma_f32_32x32x64_f8f6f4", &lower_formats<32>},
    {"v_mfma_scale_f32_16x16x128_f8f6f4", &lower_formats<16>},
    {"v_mfma_scale_f32_32x32x64_f8f6f4", &lower_formats<32>},
};

}  // namespace

std::span<const Row> gfx9_mfma_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
