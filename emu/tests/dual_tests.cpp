// Dual instructions: compares every pair of operations with the two single instructions, and tests
// registers that both halves use.

#include <gtest/gtest.h>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

struct Half {
  const char* name;  // the name after v_dual_
  const char* tail;  // operands after src0 for X and for Y; @ stands for the second register
  bool in_x;
};

constexpr Half kHalves[] = {
    {"fmac_f32", ", v@", true},
    {"fmaak_f32", ", v@, 0xc2f60123", true},
    {"fmamk_f32", ", 0xc2f60123, v@", true},
    {"mul_f32", ", v@", true},
    {"add_f32", ", v@", true},
    {"sub_f32", ", v@", true},
    {"subrev_f32", ", v@", true},
    {"mul_dx9_zero_f32", ", v@", true},
    {"mov_b32", "", true},
    {"cndmask_b32", ", v@", true},
    {"max_f32", ", v@", true},
    {"min_f32", ", v@", true},
    {"dot2acc_f32_f16", ", v@", true},
    {"add_nc_u32", ", v@", false},
    {"lshlrev_b32", ", v@", false},
    {"and_b32", ", v@", false},
};

std::string write(const Half& half, int to, int a, int b, bool dual) {
  std::string tail = half.tail;
  const size_t at = tail.find('@');
  if (at != tail.npos) tail.replace(at, 1, std::to_string(b));
  std::string text = std::string(dual ? "v_dual_" : "v_") + half.name + " v" + std::to_string(to) +
                     ", v" + std::to_string(a) + tail;
  if (!dual && std::string(half.name) == "cndmask_b32") text += ", vcc_lo";
  return text;
}

State values(const Target& target) {
  State state = random_state(target, 71);
  Random random(72);
  for (int reg = 0; reg < 40; ++reg) {
    for (u32& x : state.v[reg]) {
      do {  // the bits of NaN are unspecified
        x = static_cast<u32>(interesting(Type::f32, random));
      } while ((x & 0x7f800000) == 0x7f800000);
    }
  }
  state.exec = 0xf7ffff0f;
  return state;
}

/// The operations of the pairs, one after the other.
struct Single {
  explicit Single(const Target& target) : batch(target) {}
  Batch batch;
  bool assembled = false;
};

bool is_fmamk(const Half& half) { return std::string(half.name) == "fmamk_f32"; }

void add_pairs(Hand& hand, std::shared_ptr<Single> single) {
  for (const Half& x : kHalves) {
    if (!x.in_x) continue;
    for (const Half& y : kHalves) {
      // Registers that both halves add, their destination included, must be of different banks.
      const int b = is_fmamk(x) ? 8 : 5, d = is_fmamk(y) ? 11 : 10;
      const std::string pair = write(x, 20, 4, b, true) + " :: " + write(y, 23, 6, d, true);
      const int alone = single->batch.add(
          text_on(hand.target(), write(x, 20, 4, b, false) + "\n" + write(y, 23, 6, d, false)));
      hand.add(std::string(x.name) + "_and_" + y.name, pair,
               {std::string("v_dual_") + x.name, std::string("v_dual_") + y.name},
               [single, alone](const Hand::Run& run) {
                 if (!single->assembled) single->batch.assemble();
                 single->assembled = true;
                 State together = values(run.batch.target()), apart = together;
                 if (!run(together)) return;
                 const Outcome outcome = single->batch.run(alone, apart);
                 ASSERT_EQ(outcome.ran, Ran::well) << outcome.message;
                 EXPECT_EQ(together.v, apart.v) << run.batch.text(run.id);
               });
    }
  }
}

/// Both halves read before either writes.
void add_shared(Hand& hand) {
  hand.add("swap", "v_dual_mov_b32 v10, v21 :: v_dual_mov_b32 v21, v10", {},
           [](const Hand::Run& run) {
             State state = values(run.batch.target());
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < 32; ++lane) {
               const bool is_on = before.exec >> lane & 1;
               ASSERT_EQ(state.v[10][lane], before.v[is_on ? 21 : 10][lane]);
               ASSERT_EQ(state.v[21][lane], before.v[is_on ? 10 : 21][lane]);
             }
           });
  const auto both = [&](const std::string& name, const std::string& text, auto x, auto y, int to_x,
                        int to_y) {
    hand.add(name, text, {}, [=](const Hand::Run& run) {
      State state = values(run.batch.target());
      const State before = state;
      if (!run(state)) return;
      for (int lane = 0; lane < 32; ++lane) {
        const auto f = [&](int reg) { return from_bits<float>(before.v[reg][lane]); };
        const bool is_on = before.exec >> lane & 1;
        const auto want_x = is_on ? static_cast<u32>(to_bits(x(f))) : before.v[to_x][lane];
        const auto want_y = is_on ? static_cast<u32>(to_bits(y(f))) : before.v[to_y][lane];
        ASSERT_EQ(state.v[to_x][lane], want_x) << text;
        ASSERT_EQ(state.v[to_y][lane], want_y) << text;
      }
    });
  };
  both(
      "crossed_sums", "v_dual_add_f32 v10, v21, v4 :: v_dual_mul_f32 v21, v10, v7",
      [](auto f) { return f(21) + f(4); }, [](auto f) { return f(10) * f(7); }, 10, 21);
  both(
      "crossed_fmac", "v_dual_fmac_f32 v10, v21, v4 :: v_dual_fmac_f32 v21, v10, v7",
      [](auto f) { return std::fma(f(21), f(4), f(10)); },
      [](auto f) { return std::fma(f(10), f(7), f(21)); }, 10, 21);
  both(
      "crossed_fmac_mov", "v_dual_fmac_f32 v10, v21, v4 :: v_dual_mov_b32 v21, v10",
      [](auto f) { return std::fma(f(21), f(4), f(10)); }, [](auto f) { return f(10); }, 10, 21);
  both(
      "crossed_mov_fmac", "v_dual_mov_b32 v10, v21 :: v_dual_fmac_f32 v21, v10, v7",
      [](auto f) { return f(21); }, [](auto f) { return std::fma(f(10), f(7), f(21)); }, 10, 21);
  both(
      "y_reads_x", "v_dual_mul_f32 v10, v21, v4 :: v_dual_add_f32 v23, v10, v7",
      [](auto f) { return f(21) * f(4); }, [](auto f) { return f(10) + f(7); }, 10, 23);
  both(
      "x_reads_y", "v_dual_mul_f32 v10, v23, v4 :: v_dual_add_f32 v23, v21, v7",
      [](auto f) { return f(23) * f(4); }, [](auto f) { return f(21) + f(7); }, 10, 23);
}

}  // namespace

void register_dual() {
  for (const Target& chip : all_chips()) {
    Hand hand("Dual", chip);
    add_pairs(hand, std::make_shared<Single>(chip));
    add_shared(hand);
  }
}

}  // namespace emu::test
