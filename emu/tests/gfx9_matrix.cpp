// gfx9's matrix instructions, checked against AMD's description of the element layout. The order
// of summation is unspecified, so the sums in these tests are exact.

#include <gtest/gtest.h>

#include <span>

#include "emu/tests/float8.h"
#include "emu/tests/gfx9_encoding.h"
#include "emu/tests/names.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr int kA = 10, kB = 20, kC = 32, kD = 64;

enum class In { f32, xf32, f16, bf16, i8, f64, fp8, bf8 };

/// D = A * B + C for `blocks` pairs of matrices at once. A has `size` rows and B has `size`
/// columns. A lane holds `each` consecutive values of the `depth` that are summed.
struct Shape {
  const char* name;
  In in;
  int size, depth, blocks, each;
  In in_b = in;
  u32 opcode = 0;  // if the assembler doesn't know the name
};

constexpr Shape kShapes[] = {
    {"v_mfma_f32_32x32x1f32", In::f32, 32, 1, 2, 1},
    {"v_mfma_f32_16x16x1f32", In::f32, 16, 1, 4, 1},
    {"v_mfma_f32_4x4x1f32", In::f32, 4, 1, 16, 1},
    {"v_mfma_f32_32x32x2f32", In::f32, 32, 2, 1, 1},
    {"v_mfma_f32_16x16x4f32", In::f32, 16, 4, 1, 1},
    {"v_mfma_f32_32x32x4f16", In::f16, 32, 4, 2, 4},
    {"v_mfma_f32_16x16x4f16", In::f16, 16, 4, 4, 4},
    {"v_mfma_f32_4x4x4f16", In::f16, 4, 4, 16, 4},
    {"v_mfma_f32_32x32x8f16", In::f16, 32, 8, 1, 4},
    {"v_mfma_f32_16x16x16f16", In::f16, 16, 16, 1, 4},
    {"v_mfma_f32_32x32x2bf16", In::bf16, 32, 2, 2, 2},
    {"v_mfma_f32_16x16x2bf16", In::bf16, 16, 2, 4, 2},
    {"v_mfma_f32_4x4x2bf16", In::bf16, 4, 2, 16, 2},
    {"v_mfma_f32_32x32x4bf16", In::bf16, 32, 4, 1, 2},
    {"v_mfma_f32_16x16x8bf16", In::bf16, 16, 8, 1, 2},
    {"v_mfma_f32_32x32x4bf16_1k", In::bf16, 32, 4, 2, 4},
    {"v_mfma_f32_16x16x4bf16_1k", In::bf16, 16, 4, 4, 4},
    {"v_mfma_f32_4x4x4bf16_1k", In::bf16, 4, 4, 16, 4},
    {"v_mfma_f32_32x32x8bf16_1k", In::bf16, 32, 8, 1, 4},
    {"v_mfma_f32_16x16x16bf16_1k", In::bf16, 16, 16, 1, 4},
    {"v_mfma_i32_32x32x4i8", In::i8, 32, 4, 2, 4},
    {"v_mfma_i32_16x16x4i8", In::i8, 16, 4, 4, 4},
    {"v_mfma_i32_4x4x4i8", In::i8, 4, 4, 16, 4},
    {"v_mfma_i32_32x32x8i8", In::i8, 32, 8, 1, 4},
    {"v_mfma_i32_16x16x16i8", In::i8, 16, 16, 1, 4},
    {"v_mfma_f64_16x16x4f64", In::f64, 16, 4, 1, 1},
    {"v_mfma_f64_4x4x4f64", In::f64, 4, 4, 4, 1},
};

/// gfx942 adds these.
constexpr Shape kShapes942[] = {
    {"v_mfma_i32_32x32x16_i8", In::i8, 32, 16, 1, 8},
    {"v_mfma_i32_16x16x32_i8", In::i8, 16, 32, 1, 8},
    {"v_mfma_f32_16x16x8_xf32", In::xf32, 16, 8, 1, 2},
    {"v_mfma_f32_32x32x4_xf32", In::xf32, 32, 4, 1, 2},
    {"v_mfma_f32_16x16x32_fp8_fp8", In::fp8, 16, 32, 1, 8},
    {"v_mfma_f32_16x16x32_fp8_bf8", In::fp8, 16, 32, 1, 8, In::bf8},
    {"v_mfma_f32_16x16x32_bf8_fp8", In::bf8, 16, 32, 1, 8, In::fp8},
    {"v_mfma_f32_16x16x32_bf8_bf8", In::bf8, 16, 32, 1, 8},
    {"v_mfma_f32_32x32x16_fp8_fp8", In::fp8, 32, 16, 1, 8},
    {"v_mfma_f32_32x32x16_fp8_bf8", In::fp8, 32, 16, 1, 8, In::bf8},
    {"v_mfma_f32_32x32x16_bf8_fp8", In::bf8, 32, 16, 1, 8, In::fp8},
    {"v_mfma_f32_32x32x16_bf8_bf8", In::bf8, 32, 16, 1, 8},
};

/// gfx950 adds these, and its 8-bit floats are OCP's. An opcode is that of VOP3P-MAI.
constexpr Shape kShapes950[] = {
    {"v_mfma_f32_16x16x32_f16", In::f16, 16, 32, 1, 8, In::f16, 0x54},
    {"v_mfma_f32_32x32x16_f16", In::f16, 32, 16, 1, 8, In::f16, 0x55},
    {"v_mfma_f32_16x16x32_bf16", In::bf16, 16, 32, 1, 8, In::bf16, 0x35},
    {"v_mfma_f32_32x32x16_bf16", In::bf16, 32, 16, 1, 8, In::bf16, 0x37},
    {"v_mfma_i32_16x16x64_i8", In::i8, 16, 64, 1, 16, In::i8, 0x36},
    {"v_mfma_i32_32x32x32_i8", In::i8, 32, 32, 1, 16, In::i8, 0x38},
};

int bits_of(In in) {
  if (in == In::i8 || in == In::fp8 || in == In::bf8) return 8;
  return in == In::f64 ? 64 : in == In::f32 || in == In::xf32 ? 32 : 16;
}
int source_dwords(const Shape& s) { return s.each * bits_of(s.in) / 32; }
int result_dwords(const Shape& s) {
  return s.size * s.size * s.blocks / 64 * (s.in == In::f64 ? 2 : 1);
}

/// A position: a register, counted from the first one, and a lane.
struct Place {
  int reg, lane;
};

/// Returns the lane of row `i` of A, or column `i` of B, of a block. Lanes enumerate rows, then
/// blocks, then ranges of k.
int source_lane(const Shape& s, int block, int i, int k) {
  return i + s.size * (block + s.blocks * (k / s.each));
}

/// Returns the position of element (row, column) of C and D.
Place result_place(const Shape& s, int block, int row, int column) {
  if (s.in == In::f64 && s.size == 16) return {2 * (row / 4), 16 * (row % 4) + column};
  if (s.in == In::f64) return {0, 16 * row + 4 * block + column};
  if (s.size == 32) return {16 * block + 4 * (row / 8) + row % 4, 32 * (row / 4 % 2) + column};
  if (s.size == 16) return {4 * block + row % 4, 16 * (row / 4) + column};
  return {row, 4 * block + column};
}

/// Returns the bits of a source value, which is a small multiple of 1/4 or any byte.
u64 encoded(In in, double x, bool ocp, Random& random) {
  const auto f = static_cast<float>(x);
  switch (in) {
    case In::f64:
      return to_bits(x);
    case In::f32:
      return to_bits(f);
    case In::xf32: {  // a number that rounds to x, up or down
      const u64 less = random.below(0x1000);
      return x == 0 ? to_bits(f) : random.chance(2) ? to_bits(f) + less : to_bits(f) - less;
    }
    case In::f16:
      return to_bits(static_cast<half>(f));
    case In::bf16:
      return to_bits(f) >> 16;
    case In::i8:
      return static_cast<u64>(static_cast<i64>(x)) & 255;
    case In::fp8:
      return (ocp ? kFp8Ocp : kFp8Fnuz).byte_of(x);
    case In::bf8:
      return (ocp ? kBf8Ocp : kBf8Fnuz).byte_of(x);
  }
  return 0;
}

double some(In in, Random& random) {
  if (in == In::i8) return static_cast<double>(random.below(256)) - 128;
  return (static_cast<double>(random.below(17)) - 8) / 4;
}

/// Matrices indexed by block, row or column, and depth; C is indexed by block, row and column.
struct Matrices {
  explicit Matrices(const Shape& shape, Random& random) : s(shape) {
    const auto count = static_cast<size_t>(s.blocks * s.size);
    for (auto* m : {&a, &b}) {
      m->resize(count * static_cast<size_t>(s.depth));
      for (double& x : *m) x = some(s.in, random);
    }
    c.resize(count * static_cast<size_t>(s.size));
    for (double& x : c) x = some(s.in, random) * 3;
  }
  double source(const std::vector<double>& m, int block, int i, int k) const {
    return m[static_cast<size_t>((block * s.size + i) * s.depth + k)];
  }
  double addend(int block, int row, int column) const {
    return c[static_cast<size_t>((block * s.size + row) * s.size + column)];
  }
  double product(int block, int row, int column) const {
    double sum = 0;
    for (int k = 0; k < s.depth; ++k) sum += source(a, block, row, k) * source(b, block, column, k);
    return sum;
  }

  const Shape& s;
  std::vector<double> a, b, c;
};

void put_source(const Matrices& m, const std::vector<double>& values, In in, bool ocp, State& state,
                int reg) {
  const Shape& s = m.s;
  const int bits = bits_of(in);
  Random random(static_cast<u64>(reg));
  for (int i = 0; i < source_dwords(s); ++i) state.v[static_cast<size_t>(reg + i)].fill(0);
  for (int block = 0; block < s.blocks; ++block) {
    for (int i = 0; i < s.size; ++i) {
      for (int k = 0; k < s.depth; ++k) {
        const int lane = source_lane(s, block, i, k), at = k % s.each * bits;
        const u64 value = encoded(in, m.source(values, block, i, k), ocp, random);
        if (bits == 64) {
          state.set_v64(reg, lane, value);
        } else {
          state.v[static_cast<size_t>(reg + at / 32)][static_cast<size_t>(lane)] |=
              static_cast<u32>(value << (at % 32));
        }
      }
    }
  }
}

u64 result_bits(In in, double x) {
  if (in == In::f64) return to_bits(x);
  return in == In::i8 ? static_cast<u32>(static_cast<i64>(x)) : to_bits(static_cast<float>(x));
}

template <class Each>
void for_results(const Shape& s, const Each& each) {
  for (int block = 0; block < s.blocks; ++block) {
    for (int row = 0; row < s.size; ++row) {
      for (int column = 0; column < s.size; ++column) each(block, row, column);
    }
  }
}

/// A choice of operands: vector or accumulation registers, and C as a constant or the destination.
struct Variant {
  const char* name;
  bool a_is_acc, b_is_acc, d_is_acc, in_place;
  int constant;  // the constant that C is, unless 0
};
constexpr Variant kVariants[] = {{"", false, false, false, false, 0},
                                 {"_in_place", false, true, false, true, 0},
                                 {"_accumulation", true, false, true, false, 0},
                                 {"_accumulation_in_place", true, true, true, true, 0},
                                 {"_constant", false, false, true, false, 4}};

/// C as a constant. For an opcode that is written as a number, it is the bits of 1.0.
double constant_of(const Shape& s, const Variant& v) {
  if (s.opcode == 0) return v.constant;
  return s.in == In::i8 ? 0x3f800000 : 1;
}

std::string text_of(const Shape& s, const Variant& v) {
  if (s.opcode != 0) {
    constexpr int kOne = 242;  // the constant 1.0
    return mai_words({.opcode = s.opcode,
                      .d = kD,
                      .a = kA,
                      .b = kB,
                      .c = v.constant != 0 ? kOne - 256
                           : v.in_place    ? kD
                                           : kC,
                      .acc_d = v.d_is_acc,
                      .acc_a = v.a_is_acc,
                      .acc_b = v.b_is_acc});
  }
  const auto file = [](bool accumulation) { return accumulation ? "a" : "v"; };
  const std::string d = range(kD, result_dwords(s), file(v.d_is_acc));
  const std::string c = v.constant != 0 ? std::to_string(v.constant) + (s.in == In::i8 ? "" : ".0")
                        : v.in_place    ? d
                                        : range(kC, result_dwords(s), file(v.d_is_acc));
  return std::string(s.name) + " " + d + ", " + range(kA, source_dwords(s), file(v.a_is_acc)) +
         ", " + range(kB, source_dwords(s), file(v.b_is_acc)) + ", " + c;
}

/// Checks that all lanes take part regardless of EXEC and that no other register changes.
void check(const Hand::Run& run, const Shape& s, const Variant& v, u64 seed, u64 exec) {
  Random random(seed);
  const Matrices m(s, random);
  State state = random_state_of(run.batch.target(), seed, kMostVgprs);
  state.exec = exec;
  const int d_from = kD + (v.d_is_acc ? kTestAgprs : 0);
  const int c_from = v.in_place ? d_from : kC + (v.d_is_acc ? kTestAgprs : 0);
  const bool ocp = run.batch.target().arch == "gfx950";
  put_source(m, m.a, s.in, ocp, state, kA + (v.a_is_acc ? kTestAgprs : 0));
  put_source(m, m.b, s.in_b, ocp, state, kB + (v.b_is_acc ? kTestAgprs : 0));
  const auto put = [&s](State& to, int first, const Place& place, u64 bits) {
    if (s.in == In::f64) return to.set_v64(first + place.reg, place.lane, bits);
    to.v[static_cast<size_t>(first + place.reg)][static_cast<size_t>(place.lane)] =
        static_cast<u32>(bits);
  };
  for_results(s, [&](int block, int row, int column) {
    put(state, c_from, result_place(s, block, row, column),
        result_bits(s.in, m.addend(block, row, column)));
  });
  State want = state;
  for_results(s, [&](int block, int row, int column) {
    const double c = v.constant != 0 ? constant_of(s, v) : m.addend(block, row, column);
    put(want, d_from, result_place(s, block, row, column),
        result_bits(s.in, m.product(block, row, column) + c));
  });
  if (!run(state)) return;
  for (size_t reg = 0; reg < want.v.size(); ++reg) {
    ASSERT_EQ(state.v[reg], want.v[reg]) << run.batch.text(run.id) << ": register " << reg;
  }
}

/// gfx942 and gfx950 negate the operands of f64 that a modifier names.
void add_negation(Hand& hand) {
  hand.add("negated_f64",
           "v_mfma_f64_4x4x4_4b_f64 v[64:65], v[10:11], v[20:21], v[32:33] neg:[1,0,1]", {},
           [](const Hand::Run& run) {
             constexpr Shape kShape = {"", In::f64, 4, 4, 4, 1};
             Random random(3);
             const Matrices m(kShape, random);
             State state = random_state_of(run.batch.target(), 3, kMostVgprs);
             put_source(m, m.a, In::f64, false, state, kA);
             put_source(m, m.b, In::f64, false, state, kB);
             for_results(kShape, [&](int block, int row, int column) {
               const Place place = result_place(kShape, block, row, column);
               state.set_v64(kC, place.lane, to_bits(m.addend(block, row, column)));
             });
             if (!run(state)) return;
             for_results(kShape, [&](int block, int row, int column) {
               const Place place = result_place(kShape, block, row, column);
               const double want = -m.product(block, row, column) - m.addend(block, row, column);
               ASSERT_EQ(std::bit_cast<double>(state.v64(kD, place.lane)), want);
             });
           });
}

/// CBSZ and ABID: of each 2^CBSZ blocks, all read A of block ABID. BLGP permutes the lanes of B.
void add_broadcasts(Hand& hand) {
  struct Case {
    const char* modifiers;
    int group, member;  // of A
    int (*lane_of_b)(int lane);
  };
  static constexpr Case kCases[] = {{"cbsz:1 abid:1", 2, 1, [](int lane) { return lane; }},
                                    {"cbsz:2 abid:3", 4, 3, [](int lane) { return lane; }},
                                    {"blgp:1", 1, 0, [](int lane) { return lane % 32; }},
                                    {"blgp:2", 1, 0, [](int lane) { return lane % 32 + 32; }},
                                    {"blgp:3", 1, 0, [](int lane) { return (lane + 16) % 64; }},
                                    {"blgp:6", 1, 0, [](int lane) { return lane % 16 + 32; }}};
  for (const Case& c : kCases) {
    const std::string text = std::string("v_mfma_f32_16x16x1f32 v[64:79], v10, v20, 0 ");
    hand.add(c.modifiers, text + c.modifiers, {}, [&c](const Hand::Run& run) {
      State state = random_state_of(run.batch.target(), 5, kMostVgprs);
      const auto value = [](int lane) { return static_cast<float>(lane * lane - 700); };
      for (int lane = 0; lane < 64; ++lane) {
        state.v[kA][static_cast<size_t>(lane)] = static_cast<u32>(to_bits(value(lane)));
        state.v[kB][static_cast<size_t>(lane)] = static_cast<u32>(to_bits(value(lane + 64)));
      }
      if (!run(state)) return;
      constexpr Shape kShape = {"", In::f32, 16, 1, 4, 1};
      for_results(kShape, [&](int block, int row, int column) {
        const int of_a = block / c.group * c.group + c.member;
        const float a = value(16 * of_a + row), b = value(64 + c.lane_of_b(16 * block + column));
        const Place place = result_place(kShape, block, row, column);
        const u32 got =
            state.v[static_cast<size_t>(kD + place.reg)][static_cast<size_t>(place.lane)];
        ASSERT_EQ(got, to_bits(a * b)) << block << " " << row << " " << column;
      });
    });
  }
}

void add_shapes(Hand& hand, std::span<const Shape> shapes) {
  for (const Shape& shape : shapes) {
    for (const Variant& variant : kVariants) {
      hand.add(std::string(shape.name) + variant.name, text_of(shape, variant), {shape.name},
               [&shape, &variant](const Hand::Run& run) {
                 for (u64 seed = 1; seed <= 3; ++seed) {
                   check(run, shape, variant, seed, seed == 1 ? ~u64{0} : seed - 2);
                   if (testing::Test::HasFailure()) return;
                 }
               });
    }
  }
}

}  // namespace

void register_gfx9_matrix() {
  for (const Target& chip : all_chips()) {
    if (!is_gfx9(chip)) continue;
    Hand hand("Gfx9Matrix", chip), modifiers("Gfx9MatrixModifiers", chip);
    add_shapes(hand, kShapes);
    add_shapes(hand, kShapes942);
    if (chip.arch == "gfx950") add_shapes(hand, kShapes950);
    add_broadcasts(modifiers);
    add_negation(modifiers);
  }
}

}  // namespace emu::test
