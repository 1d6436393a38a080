// Conversions from and to 8-bit floats on gfx942 (FNUZ formats), gfx950 and gfx1200 (OCP formats).

#include <gtest/gtest.h>

#include "emu/tests/float8.h"
#include "emu/tests/names.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u32 kFp16Overflow = 1 << 23;  // MODE's bit FP16_OVFL

struct Kind {
  const char* name;
  const Float8Format& format;
};

/// Any float; most have an exponent within or near the range of the formats.
u32 some_float(Random& random) {
  constexpr u32 kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                              0xff800001, 1,          0x807fffff, 0x7f7fffff, 0x43700000,
                              0x43780000, 0x43e00000, 0x43e80000, 0x47600000, 0x47680000};
  const auto bits = static_cast<u32>(random.next());
  if (random.chance(8)) return kSpecial[random.below(std::size(kSpecial))];
  if (random.chance(8)) return bits;
  const u32 exponent = 127 - 20 + random.below(40);
  // Few bits of fraction give ties.
  const u32 fraction = random.chance(2) ? bits & 0x7c0000 : bits & 0x7fffff;
  return (bits & 0x80000000) | exponent << 23 | fraction;
}

void fill(State& state, size_t reg, Random& random) {
  for (u32& lane : state.v[reg]) lane = some_float(random);
}

/// Runs a check for several seeds, with some lanes disabled and with FP16_OVFL clear and set.
/// `check` gets one enabled lane's registers before and after.
using LaneCheck = std::function<void(const State&, const State&, size_t lane, bool clamps)>;

void add(Hand& hand, const std::string& name, const std::string& text, const char* covers,
         LaneCheck check) {
  hand.add(name, text, {covers}, [check = std::move(check)](const Hand::Run& run) {
    const auto lanes = static_cast<size_t>(run.batch.target().lanes());
    for (u64 seed = 1; seed <= 24; ++seed) {
      Random random(seed);
      State state = random_state(run.batch.target(), seed);
      fill(state, 10, random);
      fill(state, 11, random);
      const bool clamps = seed % 2 == 0;
      if (clamps) state.mode |= kFp16Overflow;
      if (seed % 3 == 0) state.exec &= 0xf0f0'1234'8001'ffff;
      const State before = state;
      if (!run(state)) return;
      for (size_t lane = 0; lane < lanes; ++lane) {
        if ((before.exec >> lane & 1) == 0) {
          ASSERT_EQ(state.v[40][lane], before.v[40][lane]) << "disabled lane " << lane;
        } else {
          check(before, state, lane, clamps);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

float number(u32 bits) { return std::bit_cast<float>(bits); }

void expect_value(u32 got, double want, u32 byte) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(number(got))) << "byte " << byte;
  } else {
    EXPECT_EQ(got, std::bit_cast<u32>(static_cast<float>(want))) << "byte " << byte;
  }
}

/// Bytes are any of v13.
void add_widening(Hand& hand, const Kind& kind, const std::string& name, const std::string& text,
                  int byte) {
  const std::string covers = "v_cvt_f32_" + std::string(kind.name);
  add(hand, name, text, covers.c_str(),
      [&format = kind.format, byte](const State& before, const State& after, size_t lane, bool) {
        const u32 bits = before.v[13][lane] >> (8 * byte) & 0xff;
        expect_value(after.v[40][lane], format.value(bits), bits);
      });
}

void add_pair(Hand& hand, const Kind& kind, const std::string& name, const std::string& text,
              int word) {
  const std::string covers = "v_cvt_pk_f32_" + std::string(kind.name);
  add(hand, name, text, covers.c_str(),
      [&format = kind.format, word](const State& before, const State& after, size_t lane, bool) {
        const u32 bits = before.v[13][lane] >> (16 * word);
        expect_value(after.v[40][lane], format.value(bits & 0xff), bits & 0xff);
        expect_value(after.v[41][lane], format.value(bits >> 8 & 0xff), bits >> 8 & 0xff);
      });
}

/// Two floats become bytes of a half of v40, whose other half stays.
void add_narrowing(Hand& hand, const Kind& kind) {
  const std::string name = "v_cvt_pk_" + std::string(kind.name) + "_f32";
  for (const int half : {0, 1}) {
    for (const bool negated : {false, true}) {
      const std::string text = name + " v40, " + (negated ? "-v10, |v11|" : "v10, v11") +
                               (half != 0 ? " op_sel:[0,0,1]" : "");
      add(hand, name + (half != 0 ? "_high" : "") + (negated ? "_signs" : ""), text, name.c_str(),
          [&format = kind.format, half, negated](const State& before, const State& after,
                                                 size_t lane, bool clamps) {
            const u32 was = before.v[40][lane], now = after.v[40][lane];
            EXPECT_EQ(now >> (16 - 16 * half) & 0xffff, was >> (16 - 16 * half) & 0xffff);
            const u32 word = now >> (16 * half);
            u32 a = before.v[10][lane], b = before.v[11][lane];
            if (negated) {
              a ^= 0x80000000;
              b &= 0x7fffffff;
            }
            EXPECT_TRUE(format.is_rounded(number(a), word & 0xff, clamps)) << std::hex << a;
            EXPECT_TRUE(format.is_rounded(number(b), word >> 8 & 0xff, clamps)) << std::hex << b;
          });
    }
  }
}

/// The upper bits of v13 are added below the last bit of the result, which is then truncated.
void add_stochastic(Hand& hand, const Kind& kind) {
  const std::string name = "v_cvt_sr_" + std::string(kind.name) + "_f32";
  constexpr const char* kSelect[] = {"", " op_sel:[0,0,1,0]", " op_sel:[0,0,0,1]",
                                     " op_sel:[0,0,1,1]"};
  for (int byte = 0; byte < 4; ++byte) {
    const std::string select =
        !is_gfx9(hand.target()) && byte != 0 ? " byte_sel:" + std::to_string(byte) : kSelect[byte];
    add(hand, name + "_" + std::to_string(byte), name + " v40, v10, v13" + select, name.c_str(),
        [&format = kind.format, byte](const State& before, const State& after, size_t lane,
                                      bool clamps) {
          const u32 others = ~(0xffu << (8 * byte));
          EXPECT_EQ(after.v[40][lane] & others, before.v[40][lane] & others);
          const u32 x = before.v[10][lane], got = after.v[40][lane] >> (8 * byte) & 0xff;
          const bool finite = (x & 0x7f800000) != 0x7f800000;
          u32 sum = finite ? x + (before.v[13][lane] >> (9 + format.fraction)) : x;
          // Within f32, the sum of a finite number may reach an infinity.
          if (finite && (sum & 0x7f800000) == 0x7f800000) sum = (x & 0x80000000) | 0x7f7fffff;
          EXPECT_TRUE(format.is_rounded(number(sum), got, clamps, true)) << std::hex << x;
        });
  }
}

void add_kind(Hand& hand, const Kind& kind) {
  const std::string one = "v_cvt_f32_" + std::string(kind.name);
  const std::string two = "v_cvt_pk_f32_" + std::string(kind.name);
  add_widening(hand, kind, one, one + " v40, v13", 0);
  add_pair(hand, kind, two, two + " v[40:41], v13", 0);
  if (!is_gfx9(hand.target())) {
    for (int byte = 1; byte < 4; ++byte) {
      const std::string n = std::to_string(byte);
      add_widening(hand, kind, one + "_byte_" + n, one + "_e64 v40, v13 byte_sel:" + n, byte);
    }
    add_pair(hand, kind, two + "_high", two + "_e64 v[40:41], v13 op_sel:[1,0]", 1);
  } else {
    for (int byte = 0; byte < 4; ++byte) {
      const std::string n = std::to_string(byte);
      add_widening(hand, kind, one + "_sdwa_" + n, one + "_sdwa v40, v13 src0_sel:BYTE_" + n, byte);
    }
    add_pair(hand, kind, two + "_high", two + "_sdwa v[40:41], v13 src0_sel:WORD_1", 1);
  }
  add_narrowing(hand, kind);
  add_stochastic(hand, kind);
}

void add_chip(const Target& target, const Float8Format& fp8, const Float8Format& bf8) {
  Hand hand("Float8", target);
  add_kind(hand, {"fp8", fp8});
  add_kind(hand, {"bf8", bf8});
}

}  // namespace

void register_float8() {
  add_chip({"gfx942", true}, kFp8Fnuz, kBf8Fnuz);
  add_chip({"gfx950", true}, kFp8Ocp, kBf8Ocp);
  for (const Target& target : all_targets()) {
    if (generation(target) == 12) add_chip(target, kFp8Ocp, kBf8Ocp);
  }
}

}  // namespace emu::test
