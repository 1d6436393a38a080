// Mistakes that were found in other emulators; each test is named after one. Those that need a
// whole kernel are in corpus/mistakes.hip.

#include <gtest/gtest.h>

#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

/// A lane is written and then read by a later lane of the same instruction.
void add_in_place(Hand& hand) {
  hand.add("in_place_dpp_reads_lanes_already_written",
           "v_add_nc_u32_dpp v40, v40, v40 row_shr:1 row_mask:0xf bank_mask:0xf", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 1);
             const auto before = state.v[40];
             if (!run(state)) return;
             for (int lane = 0; lane < 32; ++lane) {
               // Its source is outside the row: it isn't written.
               const bool first = lane % 16 == 0;
               EXPECT_EQ(state.v[40][lane], first ? before[lane] : before[lane - 1] + before[lane]);
             }
           });
  hand.add("in_place_dpp_rotates", "v_mov_b32_dpp v40, v40 row_ror:1 row_mask:0xf bank_mask:0xf",
           {}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             const auto before = state.v[40];
             if (!run(state)) return;
             for (int lane = 0; lane < 32; ++lane) {
               EXPECT_EQ(state.v[40][lane], before[lane / 16 * 16 + (lane + 15) % 16]);
             }
           });
}

void add_selections(Hand& hand) {
  hand.add("dpp8", "v_mov_b32_dpp v40, v40 dpp8:[1,2,3,4,5,6,7,0]", {}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 3);
    const auto before = state.v[40];
    if (!run(state)) return;
    for (int lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(state.v[40][lane], before[lane / 8 * 8 + (lane + 1) % 8]);
    }
  });
  hand.add("permlanex16_with_a_literal",
           "s_mov_b32 s10, 0xfedcba98\nv_permlanex16_b32 v40, v12, 0x76543210, s10 op_sel:[1,0]",
           {}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 4);
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < 32; ++lane) {
               EXPECT_EQ(state.v[40][lane], before.v[12][lane ^ 16]);
             }
           });
  hand.add("permlanex16_with_minus_one", "v_permlanex16_b32 v40, v12, -1, -1 op_sel:[1,0]", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 5);
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < 32; ++lane) {
               EXPECT_EQ(state.v[40][lane], before.v[12][lane < 16 ? 31 : 15]);
             }
           });
}

void add_memory(Hand& hand) {
  hand.add("caches_made_invalid", "buffer_gl0_inv\nbuffer_gl1_inv\ns_icache_inv\ns_dcache_inv", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 6);
             run(state);
           });
  // A flat address in the private aperture refers to the scratch of the lane that uses it.
  hand.add("private_aperture_through_flat",
           "s_mov_b64 s[20:21], src_private_base\nv_mov_b32 v3, s21\nv_mov_b32 v2, 16\n"
           "flat_store_b32 v[2:3], v20\ns_waitcnt_vscnt null, 0x0\n"
           "scratch_load_b32 v40, off, off offset:16\nflat_load_b32 v41, v[2:3]\n"
           "s_waitcnt vmcnt(0) lgkmcnt(0)",
           {}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 7);
             const State before = state;
             if (!run(state)) return;
             EXPECT_EQ(state.v[40], before.v[20]);
             EXPECT_EQ(state.v[41], before.v[20]);
           });
}

}  // namespace

void register_mistakes() {
  for (const Target& chip : all_chips()) {
    if (chip.wave64) continue;
    Hand hand("Mistakes", chip);
    add_in_place(hand);
    add_selections(hand);
    add_memory(hand);
  }
}

}  // namespace emu::test
