// Features that only gfx9 has: vector registers indexed by M0, and DPP across a whole wave of 64.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "emu/tests/names.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

using Check = std::function<void(const State& before, const State& after)>;

/// Runs a text on random registers with some lanes disabled.
void add(Hand& hand, const std::string& name, const std::string& text,
         std::vector<std::string> covers, Check check) {
  hand.add(name, text, std::move(covers), [check = std::move(check)](const Hand::Run& run) {
    for (const uint64_t exec : {~uint64_t{0}, uint64_t{0xf0f0'1234'8001'ffff}}) {
      State state = random_state(run.batch.target(), exec);
      state.exec = exec;
      state.s[4] = 0xabcdef05;  // only the lower byte of an index counts
      state.s[5] = 7;
      const State before = state;
      if (!run(state)) return;
      check(before, state);
    }
  });
}

/// Checks that v[to] has the previous value of v[from] in enabled lanes and is unchanged in others.
void expect_moved(const State& before, const State& after, size_t to, size_t from) {
  for (size_t lane = 0; lane < 64; ++lane) {
    const bool on = (before.exec >> lane & 1) != 0;
    EXPECT_EQ(after.v[to][lane], before.v[on ? from : to][lane]) << "v" << to << ", lane " << lane;
  }
}

void expect_same(const State& before, const State& after, std::vector<size_t> but) {
  for (size_t reg = 0; reg < before.v.size(); ++reg) {
    if (std::find(but.begin(), but.end(), reg) == but.end()) {
      EXPECT_EQ(before.v[reg], after.v[reg]) << "v" << reg;
    }
  }
}

void add_index(Hand& hand) {
  add(hand, "index_of_a_source",
      "s_set_gpr_idx_on s4, gpr_idx(SRC0)\nv_mov_b32 v40, v10\ns_set_gpr_idx_off\nv_mov_b32 v41, "
      "v10",
      {"s_set_gpr_idx_on", "s_set_gpr_idx_off"}, [](const State& before, const State& after) {
        expect_moved(before, after, 40, 15);
        expect_moved(before, after, 41, 10);
        expect_same(before, after, {40, 41});
        EXPECT_EQ(after.s[125], (before.s[125] & ~0xf0ffu) | 0x1005u);
      });
  add(hand, "index_of_the_result",
      "s_set_gpr_idx_on s4, gpr_idx(DST)\nv_mov_b32 v40, v10\ns_set_gpr_idx_off", {},
      [](const State& before, const State& after) {
        expect_moved(before, after, 45, 10);
        expect_same(before, after, {45});
      });
  add(hand, "index_of_some_operands",
      "s_set_gpr_idx_on 3, gpr_idx(SRC0,SRC2,DST)\nv_add3_u32 v40, v10, v20, v30\n"
      "v_add3_u32 v50, v10, s5, v30\ns_set_gpr_idx_off",
      {}, [](const State& before, const State& after) {
        for (size_t lane = 0; lane < 64; ++lane) {
          if ((before.exec >> lane & 1) == 0) continue;
          const uint32_t ends = before.v[13][lane] + before.v[33][lane];
          EXPECT_EQ(after.v[43][lane], ends + before.v[20][lane]);
          EXPECT_EQ(after.v[53][lane], ends + before.s[5]);
        }
        expect_same(before, after, {43, 53});
      });
  add(hand, "index_of_wide_operands",
      "s_set_gpr_idx_on 4, gpr_idx(SRC1,DST)\nv_lshlrev_b64 v[40:41], 0, "
      "v[10:11]\ns_set_gpr_idx_off",
      {}, [](const State& before, const State& after) {
        expect_moved(before, after, 44, 14);
        expect_moved(before, after, 45, 15);
        expect_same(before, after, {44, 45});
      });
  add(hand, "index_and_operands_changed",
      "s_set_gpr_idx_on s4, gpr_idx(SRC0)\ns_set_gpr_idx_idx s5\nv_mov_b32 v40, v10\n"
      "s_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32 v50, v10\ns_set_gpr_idx_off",
      {"s_set_gpr_idx_idx", "s_set_gpr_idx_mode"}, [](const State& before, const State& after) {
        expect_moved(before, after, 40, 17);
        expect_moved(before, after, 57, 10);
        expect_same(before, after, {40, 57});
        EXPECT_EQ(after.s[125], (before.s[125] & ~0xf0ffu) | 0x8007u);
      });
  add(hand, "index_in_a_loop",
      "s_mov_b32 s6, 0\nagain:\ns_set_gpr_idx_on s6, gpr_idx(SRC0,DST)\nv_mov_b32 v40, v10\n"
      "s_set_gpr_idx_off\ns_add_i32 s6, s6, 1\ns_cmp_lt_u32 s6, 9\ns_cbranch_scc1 again",
      {}, [](const State& before, const State& after) {
        std::vector<size_t> moved;
        for (size_t i = 0; i < 9; ++i) {
          expect_moved(before, after, 40 + i, 10 + i);
          moved.push_back(40 + i);
        }
        expect_same(before, after, moved);
      });
  const auto refused = [&](const std::string& name, const std::string& text,
                           const std::string& word) {
    hand.add(name, text, {}, [word](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 1);
      const Outcome outcome = run.batch.run(run.id, state);
      EXPECT_NE(outcome.ran, Ran::well);
      EXPECT_NE(outcome.message.find(word), std::string::npos) << outcome.message;
    });
  };
  refused("index_beyond_the_registers",
          "s_set_gpr_idx_on 64, gpr_idx(SRC0)\nv_mov_b32 v40, v100\ns_set_gpr_idx_off",
          "beyond the wave's registers");
  refused("index_of_an_accumulation",
          "s_set_gpr_idx_on 1, gpr_idx(DST)\nv_fmac_f32 v40, v10, v11\ns_set_gpr_idx_off",
          "register index for this instruction");
  refused("branch_while_indexing",
          "s_set_gpr_idx_on 1, gpr_idx(DST)\ns_branch over\nover:\ns_set_gpr_idx_off", "a branch");
}

void add_wave_dpp(Hand& hand) {
  struct Control {
    const char* text;
    int (*from)(int lane);
  };
  static constexpr Control kControls[] = {
      {"wave_shl:1", [](int lane) { return lane < 63 ? lane + 1 : -1; }},
      {"wave_shr:1", [](int lane) { return lane - 1; }},
      {"wave_rol:1", [](int lane) { return (lane + 1) % 64; }},
      {"wave_ror:1", [](int lane) { return (lane + 63) % 64; }},
      {"row_bcast:15", [](int lane) { return lane / 16 * 16 - 1; }},
      {"row_bcast:31", [](int lane) { return lane / 32 * 32 - 1; }},
      {"row_newbcast:6", [](int lane) { return lane / 16 * 16 + 6; }},
  };
  for (const Control& control : kControls) {
    std::string name = control.text;
    std::replace(name.begin(), name.end(), ':', '_');
    hand.add(name,
             std::string("v_mov_b32_dpp v40, v10 ") + control.text + " row_mask:0xf bank_mask:0xf",
             {}, [&control](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 3);
               const State before = state;
               if (!run(state)) return;
               for (int lane = 0; lane < 64; ++lane) {
                 const int from = control.from(lane);
                 const auto at = static_cast<size_t>(lane);
                 EXPECT_EQ(state.v[40][at],
                           from < 0 ? before.v[40][at] : before.v[10][static_cast<size_t>(from)]);
               }
             });
  }
}

/// What gfx942 has and gfx90a lacks.
void add_gfx942(Hand& hand) {
  add(hand, "v_mov_b64", "v_mov_b64 v[40:41], v[10:11]\nv_mov_b64 v[42:43], s[4:5]", {"v_mov_b64"},
      [](const State& before, const State& after) {
        expect_moved(before, after, 40, 10);
        expect_moved(before, after, 41, 11);
        for (size_t lane = 0; lane < 64; ++lane) {
          const bool on = (before.exec >> lane & 1) != 0;
          EXPECT_EQ(after.v[42][lane], on ? before.s[4] : before.v[42][lane]);
          EXPECT_EQ(after.v[43][lane], on ? before.s[5] : before.v[43][lane]);
        }
      });
  add(hand, "v_lshl_add_u64", "v_lshl_add_u64 v[40:41], v[10:11], 3, v[12:13]", {"v_lshl_add_u64"},
      [](const State& before, const State& after) {
        for (int lane = 0; lane < 64; ++lane) {
          if ((before.exec >> lane & 1) == 0) continue;
          EXPECT_EQ(after.v64(40, lane), (before.v64(10, lane) << 3) + before.v64(12, lane));
        }
        expect_same(before, after, {40, 41});
      });
  for (const bool literal_last : {false, true}) {
    const std::string name = literal_last ? "v_fmaak_f32" : "v_fmamk_f32";
    const std::string sources = literal_last ? "v10, v11, 0x40400000" : "v10, 0x40400000, v11";
    add(hand, name, name + " v40, " + sources, {name},
        [literal_last](const State& before, const State& after) {
          for (size_t lane = 0; lane < 64; ++lane) {
            if ((before.exec >> lane & 1) == 0) continue;
            const float a = std::bit_cast<float>(before.v[10][lane]);
            const float b = std::bit_cast<float>(before.v[11][lane]);
            const float want = literal_last ? std::fma(a, b, 3.0f) : std::fma(a, 3.0f, b);
            if (std::isnan(want)) continue;
            EXPECT_EQ(after.v[40][lane], std::bit_cast<uint32_t>(want)) << lane;
          }
          expect_same(before, after, {40});
        });
  }
  add(hand, "buffer_inv", "buffer_inv sc0 sc1\nv_mov_b32 v40, v10", {"buffer_inv"},
      [](const State& before, const State& after) {
        expect_moved(before, after, 40, 10);
        expect_same(before, after, {40});
      });
}

}  // namespace

void register_gfx9() {
  for (const Target& chip : all_chips()) {
    if (!is_gfx9(chip)) continue;
    Hand hand("Gfx9", chip);
    add_index(hand);
    add_wave_dpp(hand);
    add_gfx942(hand);
  }
}

}  // namespace emu::test
