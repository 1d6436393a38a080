// Matrix instructions of gfx90a: D = A * B + C for one to sixteen blocks at once. Lane l holds row
// (of A) or column (of B) l % size of a block, for some consecutive k. Each result register holds
// one row for each set of lanes. Products are summed in order and rounded once each; the hardware
// doesn't guarantee this order.

#include <bit>
#include <cstring>

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/track.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

enum class In : uint8_t { f32, f16, bf16, i8, f64 };

template <In kIn>
struct Element {
  using Value = float;
};
template <>
struct Element<In::i8> {
  using Value = int32_t;
};
template <>
struct Element<In::f64> {
  using Value = double;
};

/// The dimensions of a matrix instruction: rows (and columns) of a block, depth of the sums, number
/// of blocks, and the k that one lane holds.
template <In kType, int kRows, int kDepth, int kCount, int kLaneDepth>
struct Shape {
  static constexpr In kIn = kType;
  static constexpr int kSize = kRows, kK = kDepth, kBlocks = kCount, kEach = kLaneDepth;
  static constexpr bool kWide = kType == In::f64;
  using Value = typename Element<kType>::Value;
  static constexpr int kBits = kWide ? 64 : kType == In::f32 ? 32 : kType == In::i8 ? 8 : 16;
  static constexpr int kSourceRegisters = kEach * kBits / 32;
  static constexpr int kResults = kSize * kSize * kBlocks / 64;  // per lane
  static constexpr int kResultRegisters = kResults * (kWide ? 2 : 1);
  static_assert(kSize * kBlocks * (kK / kEach) == 64);
};

uint32_t dword_of(Wave* w, uint32_t offset, int reg, int lane) {
  const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
  return at<uint32_t>(
      w, offset + half + 128 * static_cast<uint32_t>(reg) + 4 * static_cast<uint32_t>(lane % 32));
}

/// Returns element `index` of those that the lane holds.
template <class S>
typename S::Value element(Wave* w, uint32_t offset, int lane, int index) {
  const int bit = index * S::kBits;
  const uint32_t bits = dword_of(w, offset, bit / 32, lane) >> (bit % 32);
  if constexpr (S::kIn == In::f64) {
    const uint64_t upper = dword_of(w, offset, 1, lane);
    return std::bit_cast<double>(upper << 32 | dword_of(w, offset, 0, lane));
  } else if constexpr (S::kIn == In::f32) {
    return std::bit_cast<float>(bits);
  } else if constexpr (S::kIn == In::f16) {
    return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
  } else if constexpr (S::kIn == In::bf16) {
    return std::bit_cast<float>(bits << 16);
  } else {
    return static_cast<int8_t>(bits);
  }
}

struct Place {
  int block, row, column;
};

/// Returns the position of the lane's result number `index`.
template <class S>
constexpr Place place_of(int lane, int index) {
  if constexpr (S::kWide && S::kSize == 16) return {0, 4 * index + lane / 16, lane % 16};
  if constexpr (S::kWide) return {lane / 4 % 4, lane / 16, lane % 4};
  if constexpr (S::kSize == 4) return {lane / 4, index, lane % 4};
  constexpr int kGroups = 64 / S::kSize;  // each holds four consecutive rows
  constexpr int kOfBlock = S::kSize * S::kSize / 64;
  const int of_block = index % kOfBlock;
  return {index / kOfBlock, of_block / 4 * 4 * kGroups + lane / S::kSize * 4 + of_block % 4,
          lane % S::kSize};
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

template <class S>
void store(Wave* w, uint32_t offset, int lane, int index, typename S::Value value) {
  constexpr int kDwords = S::kWide ? 2 : 1;
  const uint32_t half = lane / 32 != 0 ? w->half_bytes : 0;
  const auto first = offset + half + 4 * static_cast<uint32_t>(lane % 32);
  uint32_t dwords[kDwords];
  std::memcpy(dwords, &value, sizeof value);
  for (int i = 0; i < kDwords; ++i) {
    at<uint32_t>(w, first + 128 * static_cast<uint32_t>(index * kDwords + i)) = dwords[i];
  }
}

/// All lanes take part, regardless of EXEC.
template <class S>
Stop mfma(Wave* w, const Op* op) {
  using V = typename S::Value;
  constexpr int kSize = S::kSize;
  const bool vector = op->extra->src[2].vector;
  note_read(w, op, op->a, true, S::kSourceRegisters);
  note_read(w, op, op->b, true, S::kSourceRegisters);
  note_read(w, op, op->c, vector, vector ? S::kResultRegisters : S::kWide ? 2 : 1);
  note_write(w, op, op->dst, S::kResultRegisters);
  V a[S::kBlocks][S::kK][kSize], b[S::kBlocks][S::kK][kSize], sum[S::kBlocks][kSize][kSize];
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < S::kEach; ++i) {
      const int block = lane / kSize % S::kBlocks;
      const int k = lane / (kSize * S::kBlocks) * S::kEach + i;
      a[block][k][lane % kSize] = element<S>(w, op->a, lane, i);
      b[block][k][lane % kSize] = element<S>(w, op->b, lane, i);
    }
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<S>(lane, i);
      sum[place.block][place.row][place.column] = addend<S>(w, op, lane, i);
    }
  }
  for (int block = 0; block < S::kBlocks; ++block) {
    for (int k = 0; k < S::kK; ++k) {
      for (int row = 0; row < kSize; ++row) {
        for (int column = 0; column < kSize; ++column) {
          V& to = sum[block][row][column];
          const V x = a[block][k][row], y = b[block][k][column];
          if constexpr (std::is_integral_v<V>) {
            to = static_cast<V>(static_cast<uint32_t>(to) + static_cast<uint32_t>(x * y));
          } else {
            to = __builtin_elementwise_fma(x, y, to);
          }
        }
      }
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    for (int i = 0; i < S::kResults; ++i) {
      const Place place = place_of<S>(lane, i);
      store<S>(w, op->dst, lane, i, sum[place.block][place.row][place.column]);
    }
  }
  EMU_NEXT;
}

template <class S>
void lower_mfma(Lowering& l, const Inst& inst) {
  // Modifiers that broadcast blocks or change signs: compilers don't emit them unless asked to.
  for (const char* modifier : {"cbsz", "abid", "blgp", "neg"}) {
    if (inst.has(modifier)) throw NotImplemented("a modifier of '" + inst.text + "'");
  }
  const Value wide = S::kWide ? Value::f64 : Value::b32;
  const Value values[] = {wide, wide, S::kWide ? Value::f64 : Value::f32};
  const Placed placed = l.place_vector(inst, {}, values);
  if ((placed.vectors & 3) != 3) refuse_operands(inst);
  l.ops.back().fn = &mfma<S>;
}

template <In kIn, int kRows, int kDepth, int kCount, int kEach>
constexpr Row mfma_row(const char* name) {
  return {name, &lower_mfma<Shape<kIn, kRows, kDepth, kCount, kEach>>};
}

// gfx942 separates the shape from the type of the sources, names the number of blocks, and calls
// the bf16 instructions of gfx90a that end in _1k just bf16.
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
};

}  // namespace

std::span<const Row> gfx9_mfma_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
