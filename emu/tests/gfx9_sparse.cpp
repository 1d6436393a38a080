// Sparse matrix instructions of gfx942 and gfx950. The sums are exact, since their order is
// unspecified.

#include <gtest/gtest.h>

#include <span>

#include "emu/tests/float8.h"
#include "emu/tests/gfx9_encoding.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr int kA = 10, kB = 20, kIndex = 32, kD = 64;

enum class In { f16, bf16, i8, fp8, bf8 };

/// D += A * B. A has `size` rows and `depth` columns, of which a lane holds `each` elements that
/// aren't zero, and B has `size` columns.
struct Shape {
  const char* name;
  In a, b;
  int size, depth, each;
  u32 opcode = 0;  // if the assembler doesn't know the name
};

constexpr Shape kShapes942[] = {
    {"v_smfmac_f32_16x16x32_f16", In::f16, In::f16, 16, 32, 4},
    {"v_smfmac_f32_32x32x16_f16", In::f16, In::f16, 32, 16, 4},
    {"v_smfmac_f32_16x16x32_bf16", In::bf16, In::bf16, 16, 32, 4},
    {"v_smfmac_f32_32x32x16_bf16", In::bf16, In::bf16, 32, 16, 4},
    {"v_smfmac_i32_16x16x64_i8", In::i8, In::i8, 16, 64, 8},
    {"v_smfmac_i32_32x32x32_i8", In::i8, In::i8, 32, 32, 8},
    {"v_smfmac_f32_16x16x64_bf8_bf8", In::bf8, In::bf8, 16, 64, 8},
    {"v_smfmac_f32_16x16x64_bf8_fp8", In::bf8, In::fp8, 16, 64, 8},
    {"v_smfmac_f32_16x16x64_fp8_bf8", In::fp8, In::bf8, 16, 64, 8},
    {"v_smfmac_f32_16x16x64_fp8_fp8", In::fp8, In::fp8, 16, 64, 8},
    {"v_smfmac_f32_32x32x32_bf8_bf8", In::bf8, In::bf8, 32, 32, 8},
    {"v_smfmac_f32_32x32x32_bf8_fp8", In::bf8, In::fp8, 32, 32, 8},
    {"v_smfmac_f32_32x32x32_fp8_bf8", In::fp8, In::bf8, 32, 32, 8},
    {"v_smfmac_f32_32x32x32_fp8_fp8", In::fp8, In::fp8, 32, 32, 8},
};

constexpr Shape kShapes950[] = {
    {"v_smfmac_f32_16x16x32_f16", In::f16, In::f16, 16, 32, 4},
    {"v_smfmac_f32_16x16x64_fp8_bf8", In::fp8, In::bf8, 16, 64, 8},
    {"v_smfmac_f32_16x16x64_f16", In::f16, In::f16, 16, 64, 8, 0x5a},
    {"v_smfmac_f32_32x32x32_f16", In::f16, In::f16, 32, 32, 8, 0x5b},
    {"v_smfmac_f32_16x16x64_bf16", In::bf16, In::bf16, 16, 64, 8, 0x39},
    {"v_smfmac_f32_32x32x32_bf16", In::bf16, In::bf16, 32, 32, 8, 0x46},
    {"v_smfmac_i32_16x16x128_i8", In::i8, In::i8, 16, 128, 16, 0x3a},
    {"v_smfmac_i32_32x32x64_i8", In::i8, In::i8, 32, 64, 16, 0x47},
    {"v_smfmac_f32_16x16x128_bf8_bf8", In::bf8, In::bf8, 16, 128, 16, 0x3b},
    {"v_smfmac_f32_16x16x128_bf8_fp8", In::bf8, In::fp8, 16, 128, 16, 0x3c},
    {"v_smfmac_f32_16x16x128_fp8_bf8", In::fp8, In::bf8, 16, 128, 16, 0x3d},
    {"v_smfmac_f32_16x16x128_fp8_fp8", In::fp8, In::fp8, 16, 128, 16, 0x43},
    {"v_smfmac_f32_32x32x64_bf8_bf8", In::bf8, In::bf8, 32, 64, 16, 0x4b},
    {"v_smfmac_f32_32x32x64_bf8_fp8", In::bf8, In::fp8, 32, 64, 16, 0x4e},
    {"v_smfmac_f32_32x32x64_fp8_bf8", In::fp8, In::bf8, 32, 64, 16, 0x4f},
    {"v_smfmac_f32_32x32x64_fp8_fp8", In::fp8, In::fp8, 32, 64, 16, 0x53},
};

int bits_of(In in) { return in == In::f16 || in == In::bf16 ? 16 : 8; }

u32 encoded(In in, double x, bool ocp) {
  const auto f = static_cast<float>(x);
  if (in == In::f16) return static_cast<u32>(to_bits(static_cast<half>(f)));
  if (in == In::bf16) return static_cast<u32>(to_bits(f) >> 16);
  if (in == In::i8) return static_cast<u32>(static_cast<i32>(x)) & 255;
  if (in == In::fp8) return (ocp ? kFp8Ocp : kFp8Fnuz).byte_of(x);
  return (ocp ? kBf8Ocp : kBf8Fnuz).byte_of(x);
}

double some(In in, Random& random) {
  if (in == In::i8) return static_cast<double>(random.below(256)) - 128;
  return (static_cast<double>(random.below(17)) - 8) / 4;
}

void put(State& state, int reg, int lane, int index, int bits, u32 value) {
  const int bit = index * bits;
  u32& dword = state.v[static_cast<size_t>(reg + bit / 32)][static_cast<size_t>(lane)];
  const u32 mask = (bits == 16 ? 0xffffu : 0xffu) << (bit % 32);
  dword = (dword & ~mask) | value << (bit % 32);
}

struct Position {
  int reg, lane;
};
Position result_at(const Shape& s, int row, int column) {
  if (s.size == 16) return {row % 4, 16 * (row / 4) + column};
  return {4 * (row / 8) + row % 4, 32 * (row / 4 % 2) + column};
}

/// Fills the registers and returns the result. `set` is the set of indices that the instruction
/// uses; the others are random.
std::vector<u32> prepare(const Shape& s, State& state, u64 seed, int set, bool ocp) {
  Random random(seed);
  const auto at = [&s](int i, int k) { return static_cast<size_t>(i * s.depth + k); };
  std::vector<double> a(static_cast<size_t>(s.size * s.depth)), b(a.size());
  const int groups = 64 / s.size, dense = 2 * s.each;  // a lane's columns of A
  for (int row = 0; row < s.size; ++row) {
    for (int group = 0; group < groups; ++group) {
      const int lane = group * s.size + row;
      for (int pair = 0; pair < s.each / 2; ++pair) {
        const u32 low = random.below(3), high = low + 1 + random.below(3 - low);
        const u32 indices = low | high << 2;
        u32& word = state.v[kIndex][static_cast<size_t>(lane)];
        const int shift = set * 2 * s.each + 4 * pair;
        word = (word & ~(15u << shift)) | indices << shift;
        for (int i = 0; i < 2; ++i) {
          const double x = some(s.a, random);
          put(state, kA, lane, 2 * pair + i, bits_of(s.a), encoded(s.a, x, ocp));
          const int k = group * dense + 4 * pair + static_cast<int>(i == 0 ? low : high);
          a[at(row, k)] = x;
        }
      }
    }
  }
  for (int column = 0; column < s.size; ++column) {
    for (int k = 0; k < s.depth; ++k) {
      const double x = b[at(column, k)] = some(s.b, random);
      put(state, kB, k / dense * s.size + column, k % dense, bits_of(s.b), encoded(s.b, x, ocp));
    }
  }
  std::vector<u32> want;
  for (int row = 0; row < s.size; ++row) {
    for (int column = 0; column < s.size; ++column) {
      const Position place = result_at(s, row, column);
      u32& c = state.v[static_cast<size_t>(kD + place.reg)][static_cast<size_t>(place.lane)];
      double sum = some(s.a, random);
      const auto bits = [&s](double x) {
        return s.a == In::i8 ? static_cast<u32>(static_cast<i64>(x))
                             : static_cast<u32>(to_bits(static_cast<float>(x)));
      };
      c = bits(sum);
      for (int k = 0; k < s.depth; ++k) sum += a[at(row, k)] * b[at(column, k)];
      want.push_back(bits(sum));
    }
  }
  return want;
}

/// `abid` names a set of indices where a register holds several.
std::string text_of(const Shape& s, int abid) {
  if (s.opcode != 0) {
    return mai_words({.opcode = s.opcode,
                      .d = kD,
                      .a = kA,
                      .b = kB,
                      .c = kIndex,
                      .abid = static_cast<u32>(abid)});
  }
  const int dwords = s.each * bits_of(s.a) / 32;
  return std::string(s.name) + " " + range(kD, s.size * s.size / 64) + ", " + range(kA, dwords) +
         ", " + range(kB, 2 * dwords) + ", v" + std::to_string(kIndex) +
         (abid != 0 ? " abid:" + std::to_string(abid) : "");
}

void add_shapes(Hand& hand, std::span<const Shape> shapes) {
  for (const Shape& s : shapes) {
    for (int set = 0; set < 32 / (2 * s.each); ++set) {
      hand.add(
          std::string(s.name) + "_" + std::to_string(set), text_of(s, set), {s.name},
          [&s, set](const Hand::Run& run) {
            for (u64 seed = 1; seed <= 3; ++seed) {
              State state = random_state_of(run.batch.target(), seed, kMostVgprs);
              state.exec = seed == 1 ? ~u64{0} : seed;  // all lanes take part
              const bool ocp = run.batch.target().arch == "gfx950";
              const std::vector<u32> want = prepare(s, state, seed, set, ocp);
              if (!run(state)) return;
              size_t i = 0;
              for (int row = 0; row < s.size; ++row) {
                for (int column = 0; column < s.size; ++column) {
                  const Position place = result_at(s, row, column);
                  ASSERT_EQ(
                      state.v[static_cast<size_t>(kD + place.reg)][static_cast<size_t>(place.lane)],
                      want[i++])
                      << run.batch.text(run.id) << ": " << row << ", " << column;
                }
              }
            }
          });
    }
  }
}

}  // namespace

void register_gfx9_sparse() {
  for (const char* arch : {"gfx942", "gfx950"}) {
    Hand hand("Gfx9Sparse", {arch, true});
    add_shapes(hand, kShapes942);
    if (hand.target().arch == "gfx950") add_shapes(hand, kShapes950);
  }
}

}  // namespace emu::test
