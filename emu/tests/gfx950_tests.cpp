// Instructions that gfx950 adds, written as numbers because the assembler doesn't know them.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "emu/tests/float8.h"
#include "emu/tests/gfx9_encoding.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

std::string words(u32 low, u32 high) {
  char text[64];
  std::snprintf(text, sizeof text, ".long 0x%08x\n.long 0x%08x", low, high);
  return text;
}
/// VOP3 with v40 as result and v10, v11 and v12 as sources.
std::string vop3(u32 opcode, u32 low = 0, u32 high = 0) {
  return words(0xd0000000 | opcode << 16 | 40 | low, 266u | 267u << 9 | 268u << 18 | high);
}
std::string vop1(u32 opcode) {
  char text[32];
  std::snprintf(text, sizeof text, ".long 0x%08x", 0x7e000000 | 40u << 17 | opcode << 9 | 266u);
  return text;
}

using LaneResult = std::function<u32(const State& before, size_t lane)>;

/// Checks v40 in enabled lanes and that other lanes keep it.
void add(Hand& hand, const std::string& name, const std::string& text, LaneResult want) {
  hand.add(name, text, {name.substr(0, name.find(' '))}, [want](const Hand::Run& run) {
    for (u64 seed = 1; seed <= 12; ++seed) {
      State state = random_state(run.batch.target(), seed);
      if (seed % 2 == 0) state.exec = 0xf0f0'1234'8001'ffff;
      Random random(seed);
      for (size_t reg = 10; reg < 13; ++reg) {  // moderate exponents in half of the lanes
        for (size_t lane = 0; lane < 64; lane += 2) {
          state.v[reg][lane] = (state.v[reg][lane] & 0x807fffff) | (120 + random.below(14)) << 23;
        }
      }
      const State before = state;
      if (!run(state)) return;
      for (size_t lane = 0; lane < 64; ++lane) {
        const bool on = (before.exec >> lane & 1) != 0;
        const u32 expected = on ? want(before, lane) : before.v[40][lane], got = state.v[40][lane];
        const float a = std::bit_cast<float>(expected), b = std::bit_cast<float>(got);
        if (a != a && b != b) continue;
        ASSERT_EQ(got, expected) << run.batch.text(run.id) << ": lane " << lane;
      }
    }
  });
}

void add_logic(Hand& hand) {
  for (const u32 table : {0x96u, 0xe8u, 0x01u, 0x80u, 0x5au, 0xcau}) {
    // The table's bits are in OMOD, ABS and NEG.
    const u32 low = (table >> 3 & 7) << 8, high = table >> 6 << 27 | (table & 7) << 29;
    const auto of_bits = [table](u32 a, u32 b, u32 c) {
      u32 result = 0;
      for (int i = 0; i < 32; ++i) {
        const u32 row = (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1);
        result |= (table >> row & 1) << i;
      }
      return result;
    };
    add(hand, "v_bitop3_b32 " + std::to_string(table), vop3(0x234, low, high),
        [of_bits](const State& s, size_t lane) {
          return of_bits(s.v[10][lane], s.v[11][lane], s.v[12][lane]);
        });
    add(hand, "v_bitop3_b16 " + std::to_string(table), vop3(0x233, low, high),
        [of_bits](const State& s, size_t lane) {
          const u32 word = of_bits(s.v[10][lane], s.v[11][lane], s.v[12][lane]) & 0xffff;
          return (s.v[40][lane] & 0xffff0000) | word;
        });
  }
  add(hand, "v_prng_b32", vop1(0x58), [](const State& s, size_t lane) {
    const u32 x = s.v[10][lane];
    return x << 1 ^ (x >> 31 != 0 ? 197u : 0u);
  });
  const auto clipped = [](i32 x, i32 low, i32 high) {
    return static_cast<u32>(x < low ? low : x > high ? high : x) & 255;
  };
  for (const bool with_sign : {true, false}) {
    add(hand, with_sign ? "v_ashr_pk_i8_i32" : "v_ashr_pk_u8_i32", vop3(with_sign ? 0x265 : 0x266),
        [=](const State& s, size_t lane) {
          const auto by = static_cast<int>(s.v[12][lane] & 31);
          const i32 low = with_sign ? -128 : 0, high = with_sign ? 127 : 255;
          const auto part = [&](size_t reg) {
            return clipped(static_cast<i32>(s.v[reg][lane]) >> by, low, high);
          };
          return (s.v[40][lane] & 0xffff0000) | part(10) | part(11) << 8;
        });
  }
}

u32 nearest_bf16(float x) {
  const u32 bits = std::bit_cast<u32>(x), below = bits & 0xffff;
  if (x != x) return bits >> 16 | 0x40;
  return (bits >> 16) + (below > 0x8000 || (below == 0x8000 && (bits >> 16 & 1) != 0) ? 1 : 0);
}

void add_conversions(Hand& hand) {
  const auto real = [](const State& s, size_t reg, size_t lane) {
    return std::bit_cast<float>(s.v[reg][lane]);
  };
  add(hand, "v_cvt_f32_bf16", vop1(0x5b),
      [](const State& s, size_t lane) { return s.v[10][lane] << 16; });
  add(hand, "v_cvt_pk_bf16_f32", vop3(0x268), [real](const State& s, size_t lane) {
    return nearest_bf16(real(s, 10, lane)) | nearest_bf16(real(s, 11, lane)) << 16;
  });
  add(hand, "v_cvt_pk_f16_f32", vop3(0x267), [real](const State& s, size_t lane) {
    const auto word = [](float x) {
      const u32 bits = std::bit_cast<u16>(half_nearest(x));
      // NaN keeps the upper bits of its payload and is quiet.
      return x != x ? (std::bit_cast<u32>(x) >> 16 & 0x8000) | 0x7e00 |
                          (std::bit_cast<u32>(x) >> 13 & 0x3ff)
                    : bits;
    };
    return word(real(s, 10, lane)) | word(real(s, 11, lane)) << 16;
  });
  for (const bool most : {false, true}) {
    add(hand, most ? "v_maximum3_f32" : "v_minimum3_f32", vop3(most ? 0x2a9 : 0x2a8),
        [=](const State& s, size_t lane) {
          float result = real(s, 10, lane);
          for (const size_t reg : {11u, 12u}) {
            const float x = real(s, reg, lane);
            if (x != x || result != result) return 0x7fc00000u;
            result = most ? float_max(result, x) : float_min(result, x);
          }
          return std::bit_cast<u32>(result);
        });
  }
}

/// The scale is the exponent of v11 or v12; the other bits don't matter.
double scale_of(u32 bits) { return std::ldexp(1.0, static_cast<int>(bits >> 23 & 255) - 127); }

void add_scaled(Hand& hand) {
  struct Kind {
    const char* name;
    const Float8Format& format;
    u32 from_byte, from_pair, to_pair;
  };
  static const Kind kKinds[] = {{"fp8", kFp8Ocp, 0x23b, 0x239, 0x235},
                                {"bf8", kBf8Ocp, 0x23c, 0x23a, 0x236}};
  for (const Kind& kind : kKinds) {
    for (u32 byte = 0; byte < 4; ++byte) {
      const std::string name = std::string("v_cvt_scalef32_f32_") + kind.name;
      add(hand, name + " " + std::to_string(byte), vop3(kind.from_byte, byte << 11),
          [&kind, byte](const State& s, size_t lane) {
            const double x = kind.format.value(s.v[10][lane] >> (8 * byte) & 255);
            return std::bit_cast<u32>(static_cast<float>(x * scale_of(s.v[11][lane])));
          });
    }
    for (u32 half = 0; half < 2; ++half) {
      const std::string from = std::string("v_cvt_scalef32_pk_f32_") + kind.name;
      add(hand, from + " " + std::to_string(half), vop3(kind.from_pair, half << 11),
          [&kind, half](const State& s, size_t lane) {
            const double x = kind.format.value(s.v[10][lane] >> (16 * half) & 255);
            return std::bit_cast<u32>(static_cast<float>(x * scale_of(s.v[11][lane])));
          });
      const std::string to = std::string("v_cvt_scalef32_pk_") + kind.name + "_f32";
      hand.add(to + " " + std::to_string(half), vop3(kind.to_pair, half << 14), {to},
               [&kind, half](const Hand::Run& run) {
                 State state = random_state(run.batch.target(), 3);
                 for (size_t lane = 0; lane < 64; ++lane) {
                   const auto exponent = static_cast<u32>(110 + lane / 2);
                   state.v[12][lane] = exponent << 23 | (state.v[12][lane] & 0x7fffff);
                   for (const size_t reg : {10u, 11u}) {
                     const u32 own = exponent - 8 + state.v[reg][lane] % 17;
                     state.v[reg][lane] = (state.v[reg][lane] & 0x807fffff) | own << 23;
                   }
                 }
                 const State before = state;
                 if (!run(state)) return;
                 for (size_t lane = 0; lane < 64; ++lane) {
                   const u32 got = state.v[40][lane], others = 0xffff0000u >> (16 * half);
                   ASSERT_EQ(got & others, before.v[40][lane] & others);
                   for (const size_t i : {0u, 1u}) {
                     const double x = std::bit_cast<float>(before.v[10 + i][lane]);
                     const auto exact = static_cast<float>(x / scale_of(before.v[12][lane]));
                     const u32 byte = got >> (16 * half + 8 * i) & 255;
                     ASSERT_TRUE(kind.format.is_rounded(exact, byte, false)) << exact;
                   }
                 }
               });
    }
  }
}

/// Rows of `row` lanes: the second of each pair in v40 against the first of each pair in v10.
void add_swaps(Hand& hand) {
  for (const u32 row : {16u, 32u}) {
    const std::string name = "v_permlane" + std::to_string(row) + "_swap_b32";
    hand.add(name, vop1(row == 16 ? 0x59 : 0x5a), {name}, [row](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 3);
      const State before = state;
      if (!run(state)) return;
      for (size_t lane = 0; lane < 64; ++lane) {
        const bool upper = (lane & row) != 0;
        EXPECT_EQ(state.v[40][lane], upper ? before.v[10][lane - row] : before.v[40][lane]);
        EXPECT_EQ(state.v[10][lane], upper ? before.v[10][lane] : before.v[40][lane + row]);
      }
    });
  }
}

/// Each row of 16 lanes reads a matrix of 16 columns; a lane gets a column of it.
void add_transposed(Hand& hand) {
  struct Case {
    const char* name;
    u32 opcode, bits, dwords;
  };
  for (const Case& c :
       {Case{"ds_read_b64_tr_b4", 0xe0, 4, 2}, Case{"ds_read_b96_tr_b6", 0xe1, 6, 3},
        Case{"ds_read_b64_tr_b8", 0xe2, 8, 2}, Case{"ds_read_b64_tr_b16", 0xe3, 16, 2}}) {
    const std::string text =
        words(0xd8000000 | c.opcode << 17 | 16, 10u | 40u << 24) + "\ns_waitcnt lgkmcnt(0)";
    hand.add(c.name, text, {c.name}, [c](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 3);
      for (u32 lane = 0; lane < 64; ++lane) state.v[10][lane] = (lane * 7 % 64) * 16;
      const State before = state;
      if (!run(state)) return;
      const u32 each = 32 * c.dwords / c.bits;
      const auto bits_at = [](const auto& dword_of, u32 bit, u32 count) {
        u32 value = 0;
        for (u32 i = 0; i < count; ++i) {
          value |= (dword_of((bit + i) / 32) >> ((bit + i) % 32) & 1) << i;
        }
        return value;
      };
      for (u32 lane = 0; lane < 64; ++lane) {
        for (u32 row = 0; row < each; ++row) {
          const u32 at = 16 * row + lane % 16, source = lane / 16 * 16 + at / each;
          const auto loaded = [&](u32 i) {
            u32 dword;
            std::memcpy(&dword, before.lds.data() + before.v[10][source] + 16 + 4 * i, 4);
            return dword;
          };
          const auto result = [&](u32 i) { return state.v[40 + i][lane]; };
          ASSERT_EQ(bits_at(result, row * c.bits, c.bits),
                    bits_at(loaded, at % each * c.bits, c.bits))
              << "lane " << lane << ", row " << row;
        }
      }
    });
  }
}

// ---- Matrices whose formats modifiers name, with scales.

constexpr int kA = 10, kB = 20, kC = 32, kScaleA = 4, kScaleB = 5, kD = 64;

/// A format of fewer than 8 bits has no infinity and no NaN.
struct Small {
  int exponent, fraction;
  int bits() const { return 1 + exponent + fraction; }
  double value(u32 code) const {
    const int bias = (1 << (exponent - 1)) - 1;
    const auto e = static_cast<int>(code >> fraction & ((1u << exponent) - 1));
    const double f = static_cast<double>(code & ((1u << fraction) - 1)) / (1 << fraction);
    const double x = e == 0 ? std::ldexp(f, 1 - bias) : std::ldexp(1 + f, e - bias);
    return (code >> (exponent + fraction) & 1) != 0 ? -x : x;
  }
};

int bits_of_format(u32 format) { return format < 2 ? 8 : format < 4 ? 6 : 4; }
double value_of(u32 format, u32 code) {
  if (format < 2) return (format == 0 ? kFp8Ocp : kBf8Ocp).value(code);
  return (format == 2 ? Small{2, 3} : format == 3 ? Small{3, 2} : Small{2, 1}).value(code);
}

/// Any code of the format whose value is small, so that sums are exact.
u32 some_code(u32 format, Random& random) {
  for (;;) {
    const u32 code = random.below(1u << bits_of_format(format));
    const double x = std::fabs(value_of(format, code));
    if (x <= 4 && std::floor(x * 8) == x * 8) return code;
  }
}

void put_code(State& state, int reg, int lane, int index, int bits, u32 code) {
  for (int i = 0; i < bits; ++i) {
    const int bit = index * bits + i;
    u32& dword = state.v[static_cast<size_t>(reg + bit / 32)][static_cast<size_t>(lane)];
    dword = (dword & ~(1u << (bit % 32))) | (code >> i & 1) << (bit % 32);
  }
}

struct Scaled {
  int size;
  u32 a, b;  // formats
  bool scaled;
  u32 byte_a, byte_b;
};

void check_formats(const Hand::Run& run, const Scaled& c) {
  Random random(c.a * 5 + c.b + 1);
  State state = random_state_of(run.batch.target(), 3, kMostVgprs);
  const int groups = 64 / c.size;
  const auto side = static_cast<size_t>(c.size);
  std::vector<double> want(side * side);
  const auto place = [&c](int row, int column) {
    return c.size == 16 ? std::pair{row % 4, 16 * (row / 4) + column}
                        : std::pair{4 * (row / 8) + row % 4, 32 * (row / 4 % 2) + column};
  };
  for (int row = 0; row < c.size; ++row) {
    for (int column = 0; column < c.size; ++column) {
      const auto [reg, lane] = place(row, column);
      const auto x = static_cast<float>(random.below(64));
      state.v[static_cast<size_t>(kC + reg)][static_cast<size_t>(lane)] = std::bit_cast<u32>(x);
      want[static_cast<size_t>(row) * side + static_cast<size_t>(column)] = x;
    }
  }
  std::vector<double> a(64 * 32), b(64 * 32);
  for (size_t lane = 0; lane < 64; ++lane) {
    const u32 exponents[] = {126 + random.below(3), 126 + random.below(3)};
    const auto set = [](u32& dword, u32 byte, u32 value) {
      dword = (dword & ~(255u << (8 * byte))) | value << (8 * byte);
    };
    set(state.v[kScaleA][lane], c.byte_a, exponents[0]);
    set(state.v[kScaleB][lane], c.byte_b, exponents[1]);
    for (int k = 0; k < 32; ++k) {
      const u32 x = some_code(c.a, random), y = some_code(c.b, random);
      put_code(state, kA, static_cast<int>(lane), k, bits_of_format(c.a), x);
      put_code(state, kB, static_cast<int>(lane), k, bits_of_format(c.b), y);
      const size_t at = lane * 32 + static_cast<size_t>(k);
      a[at] = value_of(c.a, x) * (c.scaled ? std::ldexp(1.0, int(exponents[0]) - 127) : 1);
      b[at] = value_of(c.b, y) * (c.scaled ? std::ldexp(1.0, int(exponents[1]) - 127) : 1);
    }
  }
  for (int group = 0; group < groups; ++group) {
    for (size_t row = 0; row < side; ++row) {
      for (size_t column = 0; column < side; ++column) {
        const size_t first = static_cast<size_t>(group) * side;
        for (size_t k = 0; k < 32; ++k) {
          want[row * side + column] += a[(first + row) * 32 + k] * b[(first + column) * 32 + k];
        }
      }
    }
  }
  if (!run(state)) return;
  for (int row = 0; row < c.size; ++row) {
    for (int column = 0; column < c.size; ++column) {
      const auto [reg, lane] = place(row, column);
      const u32 got = state.v[static_cast<size_t>(kD + reg)][static_cast<size_t>(lane)];
      ASSERT_EQ(std::bit_cast<float>(got),
                want[static_cast<size_t>(row) * side + static_cast<size_t>(column)])
          << row << ", " << column;
    }
  }
}

void add_formats(Hand& hand) {
  for (const int size : {16, 32}) {
    for (u32 a = 0; a < 5; ++a) {
      for (u32 b = 0; b < 5; ++b) {
        for (const bool scaled : {false, true}) {
          const Scaled c{size, a, b, scaled, (a + b) % 4, a % 4};
          const std::string name = std::string(scaled ? "v_mfma_scale_f32_" : "v_mfma_f32_") +
                                   (size == 16 ? "16x16x128" : "32x32x64") + "_f8f6f4";
          std::string text = mai_words({.opcode = size == 16 ? 0x2du : 0x2eu,
                                        .d = kD,
                                        .a = kA,
                                        .b = kB,
                                        .c = kC,
                                        .cbsz = a,
                                        .blgp = b});
          if (scaled) {
            const u32 low = (c.byte_a & 1) << 11 | (c.byte_b & 1) << 12;
            const u32 high = (c.byte_a >> 1) << 27 | (c.byte_b >> 1) << 28;
            text = words(0xd3ac0000 | low, (256u + kScaleA) | (256u + kScaleB) << 9 | high) + "\n" +
                   text;
          }
          hand.add(name + " " + std::to_string(a) + std::to_string(b), text, {name},
                   [c](const Hand::Run& run) { check_formats(run, c); });
        }
      }
    }
  }
}

}  // namespace

void register_gfx950() {
  Hand hand("Gfx950", {"gfx950", true});
  add_logic(hand);
  add_conversions(hand);
  add_scaled(hand);
  add_swaps(hand);
  add_transposed(hand);
  add_formats(hand);
}

}  // namespace emu::test
