// gfx12's scalar floats, its minimum and maximum of several kinds, and dot products of 8-bit
// floats.

#include <gtest/gtest.h>

#include <cmath>

#include "emu/tests/float8.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

/// Bits of a float of either width: special values, denormals, and numbers of moderate size.
u32 some_f32(Random& random) {
  constexpr u32 kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00001,
                              0xffa00001, 1,          0x807fffff, 0x3f000000, 0xbfc00000};
  if (random.chance(3)) return kSpecial[random.below(std::size(kSpecial))];
  const auto bits = static_cast<u32>(random.next());
  return random.chance(3) ? bits : (bits & 0x807fffff) | (120 + random.below(16)) << 23;
}
u32 some_f16(Random& random) {
  constexpr u32 kSpecial[] = {0, 0x8000, 0x7c00, 0xfc00, 0x7e01, 0xfd01, 1, 0x83ff, 0x3800, 0xbe00};
  if (random.chance(3)) return kSpecial[random.below(std::size(kSpecial))];
  const auto bits = static_cast<u32>(random.next()) & 0xffff;
  return random.chance(3) ? bits : (bits & 0x83ff) | (11 + random.below(9)) << 10;
}

float real(u32 bits) { return std::bit_cast<float>(bits); }
half half_of(u32 bits) { return std::bit_cast<half>(static_cast<u16>(bits)); }
u32 bits_of(float x) { return std::bit_cast<u32>(x); }
u32 bits_of(half x) { return std::bit_cast<u16>(x); }

/// Equal bits, or NaN on both sides.
bool agrees(u32 got, u32 want, bool is_half) {
  const bool nan = is_half ? half_of(want) != half_of(want) : real(want) != real(want);
  if (!nan) return got == want;
  return is_half ? half_of(got) != half_of(got) && got <= 0xffff : real(got) != real(got);
}

using Function = std::function<u32(u32 a, u32 b, u32 old)>;

/// A function of s10 and s11, which are f16 or f32. `old` is the result's previous value.
void add_function(Hand& hand, const std::string& name, const std::string& operands, bool halves,
                  bool half_result, Function want) {
  hand.add(name + operands, name + operands, {name}, [=](const Hand::Run& run) {
    for (u64 seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      State state = random_state(run.batch.target(), seed);
      state.mode = 0x1f0;
      state.exec = seed % 2 == 0 ? 0 : 0xffffffff;  // scalars don't depend on it
      // The upper halves of 16-bit sources don't matter.
      const u32 above = halves ? static_cast<u32>(random.next()) << 16 : 0;
      state.s[10] = halves ? some_f16(random) | above : some_f32(random);
      state.s[11] = halves ? some_f16(random) | above : some_f32(random);
      state.s[40] = half_result ? some_f16(random) : some_f32(random);
      const State before = state;
      if (!run(state)) return;
      const u32 mask = halves ? 0xffff : ~0u;
      const u32 expected = want(before.s[10] & mask, before.s[11] & mask, before.s[40]);
      ASSERT_TRUE(agrees(state.s[40], expected, half_result))
          << run.batch.text(run.id) << std::hex << " of " << before.s[10] << ", " << before.s[11]
          << ": " << state.s[40] << ", not " << expected;
    }
  });
}

template <class T>
T smallest(T a, T b, bool numbers) {
  if (a != a || b != b) return numbers ? (a != a ? b : a) : quiet_nan<T>();
  if (a == b) return sign_of(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T largest(T a, T b, bool numbers) {
  if (a != a || b != b) return numbers ? (a != a ? b : a) : quiet_nan<T>();
  if (a == b) return sign_of(a) ? b : a;
  return a > b ? a : b;
}

void add_arithmetic(Hand& hand) {
  const auto two = [&hand](const char* name, double (*f)(double, double)) {
    add_function(hand, name, " s40, s10, s11", true, true, [f](u32 a, u32 b, u32) {
      return bits_of(half_nearest(f(half_of(a), half_of(b))));
    });
  };
  two("s_add_f16", [](double a, double b) { return a + b; });
  two("s_sub_f16", [](double a, double b) { return a - b; });
  two("s_mul_f16", [](double a, double b) { return a * b; });
  add_function(hand, "s_fmac_f16", " s40, s10, s11", true, true, [](u32 a, u32 b, u32 old) {
    return bits_of(half_fma(half_of(a), half_of(b), half_of(old)));
  });
  for (const bool numbers : {true, false}) {
    for (const bool most : {true, false}) {
      const std::string name = std::string(most ? "s_max" : "s_min") + (numbers ? "" : "imum");
      add_function(hand, name + "_f32", " s40, s10, s11", false, false, [=](u32 a, u32 b, u32) {
        return bits_of(most ? largest(real(a), real(b), numbers)
                            : smallest(real(a), real(b), numbers));
      });
      add_function(hand, name + "_f16", " s40, s10, s11", true, true, [=](u32 a, u32 b, u32) {
        return bits_of(most ? largest(half_of(a), half_of(b), numbers)
                            : smallest(half_of(a), half_of(b), numbers));
      });
    }
  }
}

void add_rounding(Hand& hand) {
  const auto one = [&hand](const std::string& name, double (*f)(double)) {
    add_function(hand, name + "_f16", " s40, s10", true, true,
                 [f](u32 a, u32, u32) { return bits_of(static_cast<half>(f(half_of(a)))); });
  };
  one("s_ceil", [](double x) { return std::ceil(x); });
  one("s_floor", [](double x) { return std::floor(x); });
  one("s_trunc", [](double x) { return std::trunc(x); });
  one("s_rndne", [](double x) { return std::nearbyint(x); });
  add_function(hand, "s_rndne_f32", " s40, s10", false, false,
               [](u32 a, u32, u32) { return bits_of(std::nearbyintf(real(a))); });
  add_function(hand, "s_cvt_f16_f32", " s40, s10", false, true,
               [](u32 a, u32, u32) { return bits_of(half_nearest(real(a))); });
  add_function(hand, "s_cvt_f32_f16", " s40, s10", true, false,
               [](u32 a, u32, u32) { return bits_of(static_cast<float>(half_of(a))); });
  add_function(hand, "s_cvt_hi_f32_f16", " s40, s10", false, false,
               [](u32 a, u32, u32) { return bits_of(static_cast<float>(half_of(a >> 16))); });
}

void add_pack(Hand& hand) {
  const std::string name = "s_cvt_pk_rtz_f16_f32";
  hand.add(name, name + " s40, s10, s11", {name}, [](const Hand::Run& run) {
    for (u64 seed = 1; seed <= 100; ++seed) {
      Random random(seed);
      State state = random_state(run.batch.target(), seed);
      state.s[10] = some_f32(random);
      state.s[11] = some_f32(random);
      const State before = state;
      if (!run(state)) return;
      for (const int i : {0, 1}) {
        const u32 got = state.s[40] >> (16 * i) & 0xffff, x = before.s[static_cast<size_t>(10 + i)];
        ASSERT_TRUE(agrees(got, bits_of(half_towards_zero(real(x))), true)) << std::hex << x;
      }
    }
  });
}

void add_comparisons(Hand& hand) {
  struct Relation {
    const char* name;
    bool less, equal, greater, unordered;
  };
  for (const Relation& r : {Relation{"lt", true, false, false, false},
                            {"eq", false, true, false, false},
                            {"le", true, true, false, false},
                            {"gt", false, false, true, false},
                            {"lg", true, false, true, false},
                            {"ge", false, true, true, false},
                            {"o", true, true, true, false},
                            {"u", false, false, false, true},
                            {"nge", true, false, false, true},
                            {"nlg", false, true, false, true},
                            {"ngt", true, true, false, true},
                            {"nle", false, false, true, true},
                            {"neq", true, false, true, true},
                            {"nlt", false, true, true, true}}) {
    for (const bool halves : {true, false}) {
      const std::string name = std::string("s_cmp_") + r.name + (halves ? "_f16" : "_f32");
      hand.add(name, name + " s10, s11", {name}, [=](const Hand::Run& run) {
        for (u64 seed = 1; seed <= 200; ++seed) {
          Random random(seed);
          State state = random_state(run.batch.target(), seed);
          state.s[10] = halves ? some_f16(random) : some_f32(random);
          state.s[11] = random.chance(4) ? state.s[10]
                        : halves         ? some_f16(random)
                                         : some_f32(random);
          state.scc = seed & 1;
          const double a = halves ? static_cast<double>(half_of(state.s[10])) : real(state.s[10]);
          const double b = halves ? static_cast<double>(half_of(state.s[11])) : real(state.s[11]);
          if (!run(state)) return;
          const bool want = a < b ? r.less : a > b ? r.greater : a == b ? r.equal : r.unordered;
          ASSERT_EQ(state.scc, u32{want}) << a << " " << b;
        }
      });
    }
  }
}

/// With flushing of f16 denormals in MODE, and with rounding toward zero.
void add_modes(Hand& hand) {
  hand.add("s_mul_f16_modes", "s_mul_f16 s40, s10, s11", {"s_mul_f16"}, [](const Hand::Run& run) {
    struct Case {
      u32 mode, a, b, want;
    };
    for (const Case& c :
         {Case{0x1f0, 0x0400, 0x3800, 0x0200}, Case{0x130, 0x0400, 0x3800, 0},
          Case{0x130, 0x8200, 0x4000, 0x8000}, Case{0x1f0, 0x3c01, 0x3c01, 0x3c02},
          Case{0x1fc, 0x3c03, 0x3c01, 0x3c04}, Case{0x1f4, 0x3c01, 0x3c01, 0x3c03}}) {
      State state = random_state(run.batch.target(), 1);
      state.mode = c.mode;
      state.s[10] = c.a;
      state.s[11] = c.b;
      if (run(state)) EXPECT_EQ(state.s[40], c.want) << std::hex << c.mode << " " << c.a;
    }
  });
}

/// Functions of a scalar in VOP3, with the modifiers of their source and result.
void add_of_scalar(Hand& hand) {
  struct Case {
    const char *name, *operands;
    float source, want;
  };
  for (const Case& c : {Case{"v_s_rcp_f32", "s40, -s10", 4, -0.25f},
                        {"v_s_rcp_f32", "s40, |s10| mul:4", -4, 1},
                        {"v_s_sqrt_f32", "s40, s10 mul:2", 16, 8},
                        {"v_s_rsq_f32", "s40, s10 div:2", 16, 0.125f},
                        {"v_s_exp_f32", "s40, s10 clamp", 3, 1},
                        {"v_s_log_f32", "s40, -|s10| clamp", 8, 0}}) {
    const std::string text = std::string(c.name) + " " + c.operands;
    hand.add(text, text, {c.name}, [c](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 1);
      state.mode = 0x1c0;  // with f32 denormals, the output modifiers would be ignored
      state.exec = 0;
      state.s[10] = bits_of(c.source);
      if (run(state)) EXPECT_EQ(real(state.s[40]), c.want);
    });
  }
  struct OfHalf {
    const char* name;
    double (*f)(double);
  };
  for (const OfHalf& c : {OfHalf{"v_s_rcp_f16", [](double x) { return 1 / x; }},
                          {"v_s_rsq_f16", [](double x) { return 1 / std::sqrt(x); }},
                          {"v_s_sqrt_f16", [](double x) { return std::sqrt(x); }},
                          {"v_s_exp_f16", [](double x) { return std::exp2(x); }},
                          {"v_s_log_f16", [](double x) { return std::log2(x); }}}) {
    hand.add(c.name, c.name + std::string(" s40, s10"), {c.name}, [c](const Hand::Run& run) {
      for (u64 seed = 1; seed <= 100; ++seed) {
        Random random(seed);
        State state = random_state(run.batch.target(), seed);
        state.mode = 0x1f0;
        state.s[10] = some_f16(random) | 0xabcd0000;
        const double x = half_of(state.s[10] & 0xffff), want = c.f(x);
        if (!run(state)) return;
        const u32 got = state.s[40];
        ASSERT_LE(got, 0xffffu);
        const double value = half_of(got);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(value)) << x;
        } else if (std::isinf(want) || std::fabs(want) > 65504) {
          EXPECT_TRUE(std::isinf(value)) << x;
        } else {  // within one unit of the last place
          EXPECT_LE(std::fabs(value - want), std::fabs(want) / 1024 + 6e-8) << x;
        }
      }
    });
  }
}

/// Three f32 or f16 sources per lane.
template <class T>
void add_three(Hand& hand, const std::string& name, T (*f)(T, T, T)) {
  hand.add(name, name + " v40, v10, v11, v12", {name}, [f](const Hand::Run& run) {
    for (u64 seed = 1; seed <= 20; ++seed) {
      Random random(seed);
      State state = random_state(run.batch.target(), seed);
      constexpr bool kHalf = sizeof(T) == 2;
      for (size_t reg = 10; reg < 13; ++reg) {
        for (u32& lane : state.v[reg]) lane = kHalf ? some_f16(random) : some_f32(random);
      }
      const State before = state;
      if (!run(state)) return;
      for (size_t lane = 0; lane < 32; ++lane) {
        const auto in = [&](size_t i) { return from_bits<T>(before.v[10 + i][lane]); };
        const auto want = static_cast<u32>(to_bits(f(in(0), in(1), in(2))));
        const u32 got = kHalf ? state.v[40][lane] & 0xffff : state.v[40][lane];
        ASSERT_TRUE(agrees(got, want, kHalf)) << std::hex << got << ", not " << want;
      }
    }
  });
}

template <class T>
void add_extremes_of_three(Hand& hand, const std::string& type) {
  add_three<T>(hand, "v_minimum3_" + type,
               [](T a, T b, T c) { return smallest(smallest(a, b, false), c, false); });
  add_three<T>(hand, "v_maximum3_" + type,
               [](T a, T b, T c) { return largest(largest(a, b, false), c, false); });
  add_three<T>(hand, "v_minimummaximum_" + type,
               [](T a, T b, T c) { return largest(smallest(a, b, false), c, false); });
  add_three<T>(hand, "v_maximumminimum_" + type,
               [](T a, T b, T c) { return smallest(largest(a, b, false), c, false); });
}

void add_packed(Hand& hand) {
  for (const bool most : {false, true}) {
    const std::string name = most ? "v_pk_maximum_f16" : "v_pk_minimum_f16";
    hand.add(name, name + " v40, v10, v11", {name}, [most](const Hand::Run& run) {
      for (u64 seed = 1; seed <= 20; ++seed) {
        Random random(seed);
        State state = random_state(run.batch.target(), seed);
        for (const size_t reg : {10u, 11u}) {
          for (u32& lane : state.v[reg]) lane = some_f16(random) | some_f16(random) << 16;
        }
        const State before = state;
        if (!run(state)) return;
        for (size_t lane = 0; lane < 32; ++lane) {
          for (const int shift : {0, 16}) {
            const half a = half_of(before.v[10][lane] >> shift);
            const half b = half_of(before.v[11][lane] >> shift);
            const u32 want = bits_of(most ? largest(a, b, false) : smallest(a, b, false));
            ASSERT_TRUE(agrees(state.v[40][lane] >> shift & 0xffff, want, true));
          }
        }
      }
    });
  }
}

/// Sums of products of small numbers are exact.
void add_dots(Hand& hand) {
  struct Kind {
    const char* name;
    const Float8Format& format;
  };
  const Kind kinds[] = {{"fp8", kFp8Ocp}, {"bf8", kBf8Ocp}};
  for (const Kind& a : kinds) {
    for (const Kind& b : kinds) {
      const std::string name = std::string("v_dot4_f32_") + a.name + "_" + b.name;
      hand.add(name, name + " v40, v10, v11, v12", {name},
               [&fa = a.format, &fb = b.format](const Hand::Run& run) {
                 State state = random_state(run.batch.target(), 3);
                 Random random(3);
                 const auto bytes = [&random](const Float8Format& format) {
                   u32 word = 0;
                   for (int i = 0; i < 4; ++i) {
                     const double x = (static_cast<double>(random.below(17)) - 8) / 4;
                     word |= format.byte_of(x) << (8 * i);
                   }
                   return word;
                 };
                 for (size_t lane = 0; lane < 32; ++lane) {
                   state.v[10][lane] = bytes(fa);
                   state.v[11][lane] = bytes(fb);
                   state.v[12][lane] = bits_of(static_cast<float>(random.below(100)));
                 }
                 const State before = state;
                 if (!run(state)) return;
                 for (size_t lane = 0; lane < 32; ++lane) {
                   double sum = real(before.v[12][lane]);
                   for (int i = 0; i < 4; ++i) {
                     sum += fa.value(before.v[10][lane] >> (8 * i) & 255) *
                            fb.value(before.v[11][lane] >> (8 * i) & 255);
                   }
                   ASSERT_EQ(real(state.v[40][lane]), sum) << lane;
                 }
               });
    }
  }
}

void add_permutations(Hand& hand) {
  for (const bool other : {false, true}) {
    const std::string name = other ? "v_permlanex16_var_b32" : "v_permlane16_var_b32";
    for (const bool inactive : {false, true}) {
      const std::string text = name + " v40, v10, v11" + (inactive ? " op_sel:[1,0]" : "");
      hand.add(name + (inactive ? "_inactive" : ""), text, {name}, [=](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 9);
        state.exec = 0xf0f5ff0f;
        const State before = state;
        if (!run(state)) return;
        for (size_t lane = 0; lane < 32; ++lane) {
          const size_t row = (lane & 16) ^ (other ? 16 : 0);
          const size_t from = row | (before.v[11][lane] & 15);
          const bool on = (before.exec >> lane & 1) != 0;
          const bool read = inactive || (before.exec >> from & 1) != 0;
          EXPECT_EQ(state.v[40][lane], on && read ? before.v[10][from] : before.v[40][lane])
              << lane;
        }
      });
    }
  }
}

}  // namespace

void add_gfx12_floats(const Target& target) {
  Hand hand("Gfx12Floats", target);
  add_arithmetic(hand);
  add_rounding(hand);
  add_pack(hand);
  add_comparisons(hand);
  add_modes(hand);
  add_of_scalar(hand);
  add_extremes_of_three<float>(hand, "f32");
  add_extremes_of_three<half>(hand, "f16");
  add_packed(hand);
  add_dots(hand);
  add_permutations(hand);
}

}  // namespace emu::test
