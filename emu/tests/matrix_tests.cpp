// Matrix instructions. Their order of summation is unspecified, so the sums in these tests are
// exact.

#include <gtest/gtest.h>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr int kA = 10, kB = 20, kC = 30, kD = 50;

/// Returns small multiples of 1/4.
float small(Random& random) {
  return static_cast<float>(static_cast<int>(random.below(17)) - 8) / 4;
}

u32 encode(float x, bool bf16) {
  return bf16 ? static_cast<u32>(to_bits(x)) >> 16
              : static_cast<u32>(to_bits(static_cast<half>(x)));
}

/// Sets rows of A or columns of B: lanes l and l + 16 both hold row l % 16, two values per
/// register.
void put_matrix(State& s, int reg, const float (&m)[16][16], bool bf16, int lanes) {
  for (int lane = 0; lane < lanes; ++lane) {
    for (int k = 0; k < 16; k += 2) {
      s.v[reg + k / 2][lane] = encode(m[lane % 16][k], bf16) | encode(m[lane % 16][k + 1], bf16)
                                                                   << 16;
    }
  }
}

/// The position of element (row, column) of C and D. In wave32: register row / 2, lane column + 16
/// * (row % 2). In wave64: register row / 4, lane column + 16 * (row % 4).
struct Place {
  int reg, lane;
};
Place place(int row, int column, int lanes) {
  const int groups = lanes / 16;
  return {row / groups, column + 16 * (row % groups)};
}

struct Floats {
  float a[16][16], b[16][16], c[16][16];
};

void fill(Floats& f, Random& random) {
  for (auto* m : {&f.a, &f.b, &f.c}) {
    for (auto& row : *m) {
      for (float& x : row) x = small(random);
    }
  }
}

float dot(const Floats& f, int row, int column) {
  float sum = f.c[row][column];
  for (int k = 0; k < 16; ++k) sum += f.a[row][k] * f.b[column][k];
  return sum;
}

void add_f32_result(Hand& hand, const std::string& name, bool bf16) {
  const int lanes = hand.target().lanes(), count = lanes == 32 ? 8 : 4;
  hand.add(name, name + " " + range(kD, count) + ", v[10:17], v[20:27], " + range(kC, count),
           {name}, [bf16, lanes](const Hand::Run& run) {
             for (u64 seed = 0; seed < 10; ++seed) {
               Random random(seed);
               Floats f;
               fill(f, random);
               State state = random_state(run.batch.target(), seed);
               put_matrix(state, kA, f.a, bf16, lanes);
               put_matrix(state, kB, f.b, bf16, lanes);
               for (int r = 0; r < 16; ++r) {
                 for (int c = 0; c < 16; ++c) {
                   const Place p = place(r, c, lanes);
                   state.v[kC + p.reg][p.lane] = static_cast<u32>(to_bits(f.c[r][c]));
                 }
               }
               if (!run(state)) return;
               for (int r = 0; r < 16; ++r) {
                 for (int c = 0; c < 16; ++c) {
                   const Place p = place(r, c, lanes);
                   ASSERT_EQ(from_bits<float>(state.v[kD + p.reg][p.lane]), dot(f, r, c))
                       << r << " " << c;
                 }
               }
             }
           });
}

/// 16-bit results: one value per register, in the half that op_sel's last bit selects.
void add_half_result(Hand& hand, const std::string& name, bool bf16) {
  for (const bool high : {false, true}) {
    hand.add(name + (high ? "_high" : "_low"),
             name + " v[50:57], v[10:17], v[20:27], v[50:57]" + (high ? " op_sel:[0,0,1]" : ""),
             {name}, [bf16, high](const Hand::Run& run) {
               Random random(3);
               Floats f;
               fill(f, random);
               State state = random_state(run.batch.target(), 4);
               put_matrix(state, kA, f.a, bf16, 32);
               put_matrix(state, kB, f.b, bf16, 32);
               for (int r = 0; r < 16; ++r) {
                 for (int c = 0; c < 16; ++c) {
                   const Place p = place(r, c, 32);
                   u32& to = state.v[kD + p.reg][p.lane];
                   const u32 bits = encode(f.c[r][c], bf16);
                   to = high ? (to & 0xffff) | bits << 16 : (to & 0xffff0000) | bits;
                 }
               }
               const State before = state;
               if (!run(state)) return;
               for (int r = 0; r < 16; ++r) {
                 for (int c = 0; c < 16; ++c) {
                   const Place p = place(r, c, 32);
                   const u32 old = before.v[kD + p.reg][p.lane], got = state.v[kD + p.reg][p.lane];
                   const u32 bits = encode(dot(f, r, c), bf16);
                   // bf16 has fewer digits than the sum. Rounding to nearest and truncation are
                   // both accepted.
                   const u32 value = high ? got >> 16 : got & 0xffff;
                   if (bf16)
                     ASSERT_LE(value - bits, 1u) << r << " " << c;
                   else
                     ASSERT_EQ(value, bits) << r << " " << c;
                   ASSERT_EQ(high ? got & 0xffff : got >> 16, high ? old & 0xffff : old >> 16);
                 }
               }
             });
  }
}

void add_integer(Hand& hand, int bits) {
  const std::string name = "v_wmma_i32_16x16x16_iu" + std::to_string(bits);
  const int regs = bits == 8 ? 4 : 2, per = 32 / bits;
  for (int signs = 0; signs < 4; ++signs) {
    for (const bool clamp : {false, true}) {
      const std::string text = name + " v[50:57], " + range(kA, regs) + ", " + range(kB, regs) +
                               ", v[30:37] neg_lo:[" + std::to_string(signs & 1) + "," +
                               std::to_string(signs >> 1) + ",0]" + (clamp ? " clamp" : "");
      hand.add(text, text, {name}, [=](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 8);
        for (int reg = kA; reg < kB + regs; ++reg) {  // both half-waves hold the same rows
          for (int lane = 0; lane < 16; ++lane) state.v[reg][lane + 16] = state.v[reg][lane];
        }
        state.v[kC][0] = 0x7fffffff;
        state.v[kC][1] = 0x80000000;
        const State before = state;
        if (!run(state)) return;
        const auto part = [&](int reg, int row, int k, bool is_signed) {
          const i64 n = before.v[reg + k / per][row] >> (k % per * bits) & ((1 << bits) - 1);
          return is_signed && n >> (bits - 1) ? n - (1 << bits) : n;
        };
        for (int r = 0; r < 16; ++r) {
          for (int c = 0; c < 16; ++c) {
            const Place p = place(r, c, 32);
            i64 sum = static_cast<i32>(before.v[kC + p.reg][p.lane]);
            for (int k = 0; k < 16; ++k)
              sum += part(kA, r, k, signs & 1) * part(kB, c, k, signs & 2);
            const u32 want = static_cast<u32>(clamp ? saturate<i32>(sum) : static_cast<i32>(sum));
            ASSERT_EQ(state.v[kD + p.reg][p.lane], want) << text << " " << r << " " << c;
          }
        }
      });
    }
  }
}

}  // namespace

void register_matrix() {
  for (const Target& target : all_targets()) {
    if (generation(target) != 11) continue;  // others have the same names for other layouts
    Hand hand("Matrix", target);
    add_f32_result(hand, "v_wmma_f32_16x16x16_f16", false);
    add_f32_result(hand, "v_wmma_f32_16x16x16_bf16", true);
    if (target.wave64) continue;
    add_half_result(hand, "v_wmma_f16_16x16x16_f16", false);
    add_half_result(hand, "v_wmma_bf16_16x16x16_bf16", true);
    add_integer(hand, 8);
    add_integer(hand, 4);
  }
}

}  // namespace emu::test
