// Instructions that only gfx1030 of the tested chips has under these names.

#include <gtest/gtest.h>

#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {

void register_gfx10() {
  Hand hand("Gfx10", {"gfx1030", false});
  for (const u32 mask : {0u, 0xff00ff00u, 0xf0f01234u}) {
    hand.add("s_andn2_saveexec_b32_" + std::to_string(mask), "s_andn2_saveexec_b32 s40, s10",
             {"s_andn2_saveexec_b32"}, [mask](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 3);
               state.exec = 0xf0f01234;
               state.s[10] = mask;
               if (!run(state)) return;
               const u32 want = mask & ~0xf0f01234u;
               EXPECT_EQ(state.s[40], 0xf0f01234u);
               EXPECT_EQ(state.exec & 0xffffffff, want);
               EXPECT_EQ(state.scc, u32{want != 0});
             });
  }
  hand.add("s_inst_prefetch", "s_inst_prefetch 0x1\nv_mov_b32 v40, v12", {"s_inst_prefetch"},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 3);
             const State before = state;
             if (!run(state)) return;
             EXPECT_EQ(state.v[40], before.v[12]);
             for (size_t i = 0; i < 106; ++i) EXPECT_EQ(state.s[i], before.s[i]) << i;
           });
}

}  // namespace emu::test
