// EXEC, branches, calls, state registers, and divisions as clang expands them.

#include <gtest/gtest.h>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

struct ExecOp {
  const char* name;
  u64 (*f)(u64 s, u64 e);
};

constexpr ExecOp kExecOps[] = {
    {"and", [](u64 s, u64 e) { return s & e; }},
    {"or", [](u64 s, u64 e) { return s | e; }},
    {"xor", [](u64 s, u64 e) { return s ^ e; }},
    {"nand", [](u64 s, u64 e) { return ~(s & e); }},
    {"nor", [](u64 s, u64 e) { return ~(s | e); }},
    {"xnor", [](u64 s, u64 e) { return ~(s ^ e); }},
    {"and_not0", [](u64 s, u64 e) { return ~s & e; }},
    {"or_not0", [](u64 s, u64 e) { return ~s | e; }},
    {"and_not1", [](u64 s, u64 e) { return s & ~e; }},
    {"or_not1", [](u64 s, u64 e) { return s | ~e; }},
};

void add_saveexec(Hand& hand) {
  const bool wide = hand.target().wave64;
  const u64 live = wide ? ~u64{0} : 0xffffffff;
  for (const ExecOp& op : kExecOps) {
    const std::string name = std::string("s_") + op.name + "_saveexec_b" + (wide ? "64" : "32");
    hand.add(name, name + (wide ? " s[40:41], s[10:11]" : " s40, s10"), {name},
             [op, live, wide](const Hand::Run& run) {
               for (u64 seed = 0; seed < 40; ++seed) {
                 State state = random_state(run.batch.target(), seed);
                 if (seed < 4) state.set_s64(10, seed < 2 ? 0 : ~u64{0});
                 state.exec = seed % 2 == 0 ? live : Random(seed).next() & live;
                 const u64 source = state.s64(10) & live, exec = state.exec;
                 if (!run(state)) return;
                 EXPECT_EQ(wide ? state.s64(40) : state.s[40], exec);
                 EXPECT_EQ(state.exec, op.f(source, exec) & live);
                 EXPECT_EQ(state.scc, state.exec != 0 ? 1u : 0u);
               }
             });
  }
  for (const char* which : {"0", "1"}) {
    const std::string name = std::string("s_and_not") + which + "_wrexec_b" + (wide ? "64" : "32");
    hand.add(name, name + (wide ? " s[40:41], s[10:11]" : " s40, s10"), {name},
             [which, live, wide](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 5);
               state.exec = 0xf0f0f0f0f0f0f0f0 & live;
               const u64 s = state.s64(10) & live, e = state.exec;
               if (!run(state)) return;
               const u64 want = which[0] == '0' ? ~s & e : s & ~e;
               EXPECT_EQ(state.exec, want);
               EXPECT_EQ(wide ? state.s64(40) : state.s[40], want);
             });
  }
}

void add_branch(Hand& hand, const std::string& name,
                const std::function<void(State&, bool)>& make) {
  hand.add(name,
           "s_mov_b32 s40, 1\n" + name + " .Lyes_" + name + "\ns_mov_b32 s40, 2\n.Lyes_" + name +
               ":\ns_nop 0",
           {name, "s_mov_b32", "s_nop"}, [make](const Hand::Run& run) {
             for (const bool taken : {false, true}) {
               State state = random_state(run.batch.target(), 3);
               make(state, taken);
               if (!run(state)) return;
               EXPECT_EQ(state.s[40], taken ? 1u : 2u);
             }
           });
}

void add_branches(Hand& hand) {
  const u64 high = hand.target().wave64 ? u64{1} << 63 : u64{1} << 31;
  add_branch(hand, "s_cbranch_scc0", [](State& s, bool t) { s.scc = t ? 0 : 1; });
  add_branch(hand, "s_cbranch_scc1", [](State& s, bool t) { s.scc = t ? 1 : 0; });
  add_branch(hand, "s_cbranch_vccz", [high](State& s, bool t) { s.set_s64(106, t ? 0 : high); });
  add_branch(hand, "s_cbranch_vccnz", [high](State& s, bool t) { s.set_s64(106, t ? high : 0); });
  add_branch(hand, "s_cbranch_execz", [high](State& s, bool t) { s.exec = t ? 0 : high; });
  add_branch(hand, "s_cbranch_execnz", [high](State& s, bool t) { s.exec = t ? high : 0; });
  hand.add("s_branch", "s_mov_b32 s40, 1\ns_branch .Lover\ns_mov_b32 s40, 2\n.Lover:\ns_nop 0",
           {"s_branch"}, [](const Hand::Run& run) {
             State state;
             if (run(state)) EXPECT_EQ(state.s[40], 1u);
           });
  hand.add("backward_branch",
           "s_mov_b32 s40, 0\n.Lagain:\ns_add_i32 s40, s40, 3\ns_cmp_lt_i32 s40, 1000\n"
           "s_cbranch_scc1 .Lagain",
           {}, [](const Hand::Run& run) {
             State state;
             if (run(state)) EXPECT_EQ(state.s[40], 1002u);
           });
  // A call within the text, a return, and a jump through a register.
  hand.add(
      "calls",
      "s_getpc_b64 s[20:21]\n.Lpc:\ns_add_u32 s20, s20, .Lcallee-.Lpc\ns_addc_u32 s21, s21, 0\n"
      "s_mov_b32 s40, 5\ns_swappc_b64 s[30:31], s[20:21]\ns_add_i32 s40, s40, 1\n"
      "s_branch .Ldone\n.Lcallee:\ns_mul_i32 s40, s40, 7\ns_setpc_b64 s[30:31]\n.Ldone:\ns_nop 0",
      {"s_getpc_b64", "s_swappc_b64", "s_setpc_b64"}, [](const Hand::Run& run) {
        State state;
        if (run(state)) EXPECT_EQ(state.s[40], 36u);
      });
  hand.add("s_call_b64",
           "s_mov_b32 s40, 5\ns_call_b64 s[30:31], .Lhere\ns_add_i32 s40, s40, 1\ns_branch .Lend\n"
           ".Lhere:\ns_mul_i32 s40, s40, 9\ns_setpc_b64 s[30:31]\n.Lend:\ns_nop 0",
           {"s_call_b64"}, [](const Hand::Run& run) {
             State state;
             if (run(state)) EXPECT_EQ(state.s[40], 46u);
           });
}

constexpr u64 kRealTimeHertz = 100'000'000, kCoreHertz = 10'000'000'000;  // no core is faster

/// Checks that a clock advances, by less than a minute between two runs.
void add_clock(Hand& hand, const std::string& name, const std::string& operand, u64 hertz) {
  hand.add(
      name,
      name + " s[10:11]" + operand + "\n" + name + " s[12:13]" + operand + "\ns_waitcnt lgkmcnt(0)",
      {name}, [hertz](const Hand::Run& run) {
        State first, second;
        if (!run(first) || !run(second)) return;
        EXPECT_GT(first.s64(10), u64{0});
        EXPECT_LE(first.s64(10), first.s64(12));
        EXPECT_LE(first.s64(12), second.s64(10));
        EXPECT_LT(second.s64(12) - first.s64(10), 60 * hertz);
      });
}

void add_ends(Hand& hand) {
  const bool gfx9 = is_gfx9(hand.target());
  std::vector<std::string> ends = {"s_endpgm"};
  if (!gfx9) ends.push_back("s_code_end");
  std::string past_end = "s_mov_b32 s40, 1\n";
  for (const std::string& end : ends) past_end += end + "\n";
  hand.add("s_endpgm", past_end + "s_mov_b32 s40, 2", ends, [](const Hand::Run& run) {
    State state;
    if (run(state)) EXPECT_EQ(state.s[40], 1u);
  });
  hand.add("s_barrier", "s_mov_b32 s40, 1\ns_barrier\ns_add_i32 s40, s40, 2", {"s_barrier"},
           [](const Hand::Run& run) {
             State state;
             if (run(state)) EXPECT_EQ(state.s[40], 3u);
           });
  add_clock(hand, "s_sendmsg_rtn_b64", ", sendmsg(MSG_RTN_GET_REALTIME)", kRealTimeHertz);
  add_clock(hand, "s_memrealtime", "", kRealTimeHertz);
  add_clock(hand, "s_memtime", "", kCoreHertz);
}

void add_mode(Hand& hand) {
  hand.add("setreg_rounding",
           "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\nv_add_f32 v40, v10, v20\n"
           "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 2\nv_add_f32 v41, v10, v20\n"
           "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3\nv_add_f32 v42, v10, v20\n"
           "s_getreg_b32 s40, hwreg(HW_REG_MODE, 0, 4)",
           {"s_setreg_imm32_b32", "s_getreg_b32"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 1);
             const float a = 1.0f, b = 0x1p-30f;
             const int lanes = run.batch.target().lanes();
             for (int lane = 0; lane < lanes; ++lane) {
               state.v[10][lane] = static_cast<u32>(to_bits(lane % 2 ? a : -a));
               state.v[20][lane] = static_cast<u32>(to_bits(lane % 2 ? b : -b));
             }
             if (!run(state)) return;
             const float up = std::nextafter(1.0f, 2.0f);
             for (int lane = 0; lane < lanes; ++lane) {
               const bool positive = lane % 2 != 0;
               EXPECT_EQ(from_bits<float>(state.v[40][lane]), positive ? up : -a) << "upwards";
               EXPECT_EQ(from_bits<float>(state.v[41][lane]), positive ? a : -up) << "downwards";
               EXPECT_EQ(from_bits<float>(state.v[42][lane]), positive ? a : -a) << "to zero";
             }
             EXPECT_EQ(state.s[40], 3u);
           });
  hand.add("setreg_from_register",
           "s_mov_b32 s10, 2\ns_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s10\n"
           "s_getreg_b32 s40, hwreg(HW_REG_MODE, 0, 8)\nv_add_f64 v[40:41], v[10:11], v[20:21]",
           {"s_setreg_b32"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 1);
             for (int lane = 0; lane < run.batch.target().lanes(); ++lane) {
               state.set_v64(10, lane, to_bits(-1.0));
               state.set_v64(20, lane, to_bits(-0x1p-80));
             }
             if (!run(state)) return;
             EXPECT_EQ(state.s[40], 0xf8u);
             EXPECT_EQ(from_bits<double>(state.v64(40, 0)), std::nextafter(-1.0, -2.0));
           });
  const auto flush = [](const char* name, const char* text, u32 clear, bool is_double) {
    return std::tuple(name, text, clear, is_double);
  };
  for (const auto& [name, text, clear, is_double] :
       {flush("flushed_f32", "v_add_f32 v40, v10, v20", 0x30, false),
        flush("flushed_f64", "v_add_f64 v[40:41], v[10:11], v[20:21]", 0xc0, true)}) {
    hand.add(name, text, {}, [clear = clear, is_double = is_double](const Hand::Run& run) {
      for (const bool flushed : {false, true}) {
        State state = random_state(run.batch.target(), 1);
        if (flushed) state.mode &= ~clear;
        const u64 tiny = 0x123;
        state.v[10][0] = static_cast<u32>(tiny);
        state.v[20][0] = 0;
        if (is_double) {
          state.set_v64(10, 0, tiny);
          state.set_v64(20, 0, 0);
        }
        if (!run(state)) return;
        EXPECT_EQ(is_double ? state.v64(40, 0) : state.v[40][0], flushed ? 0 : tiny);
      }
    });
  }
}

void add_moves(Hand& hand) {
  hand.add("s_movrels", "s_mov_b32 m0, 3\ns_movrels_b32 s40, s10\ns_movreld_b32 s50, s11",
           {"s_movrels_b32", "s_movreld_b32"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             const u32 from = state.s[13], put = state.s[11];
             if (!run(state)) return;
             EXPECT_EQ(state.s[40], from);
             EXPECT_EQ(state.s[53], put);
           });
  hand.add("v_swap_b32", "v_swap_b32 v10, v20", {"v_swap_b32"}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 2);
    const State before = state;
    state.exec = before.exec & 0xff00f00f0ff0ff0f;
    if (!run(state)) return;
    for (int lane = 0; lane < run.batch.target().lanes(); ++lane) {
      const bool on = state.exec >> lane & 1;
      EXPECT_EQ(state.v[10][lane], before.v[on ? 20 : 10][lane]);
      EXPECT_EQ(state.v[20][lane], before.v[on ? 10 : 20][lane]);
    }
  });
  hand.add("scc_and_vcc_as_sources",
           "v_mov_b32 v40, src_scc\ns_mov_b32 s40, vcc_hi\n"
           "v_add_nc_u32 v41, vcc_lo, v10\ns_mov_b32 s41, exec_lo",
           {}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             state.scc = 1;
             const State before = state;
             if (!run(state)) return;
             EXPECT_EQ(state.v[40][3], 1u);
             EXPECT_EQ(state.s[40], before.s[107]);
             EXPECT_EQ(state.s[41], static_cast<u32>(before.exec));
             EXPECT_EQ(state.v[41][3], before.s[106] + before.v[10][3]);
           });
}

/// Instructions that gfx9 lacks or implements differently: vector registers indexed by M0, and the
/// NULL register.
void add_later_moves(Hand& hand) {
  if (is_gfx9(hand.target())) return;
  hand.add("v_movrels", "s_mov_b32 m0, 5\nv_movrels_b32 v40, v10\nv_movreld_b32 v50, v11",
           {"v_movrels_b32", "v_movreld_b32"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             const auto from = state.v[15], put = state.v[11];
             if (!run(state)) return;
             EXPECT_EQ(state.v[40], from);
             EXPECT_EQ(state.v[55], put);
           });
  hand.add("null_and_literals",
           "s_add_u32 null, s10, s11\nv_mov_b32 v40, null\ns_mov_b32 s40, null", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 2);
             if (!run(state)) return;
             EXPECT_EQ(state.s[40], 0u);
             EXPECT_EQ(state.v[40][7], 0u);
           });
}

constexpr char kDivide32[] =
    "v_div_scale_f32 v1, null, v20, v20, v10\nv_rcp_f32 v2, v1\nv_fma_f32 v3, -v1, v2, 1.0\n"
    "v_fma_f32 v2, v3, v2, v2\nv_div_scale_f32 v3, vcc_lo, v10, v20, v10\nv_mul_f32 v4, v3, v2\n"
    "v_fma_f32 v5, -v1, v4, v3\nv_fma_f32 v4, v5, v2, v4\nv_fma_f32 v1, -v1, v4, v3\n"
    "v_div_fmas_f32 v1, v1, v2, v4\nv_div_fixup_f32 v40, v1, v20, v10";
constexpr char kDivide64[] =
    "v_div_scale_f64 v[0:1], null, v[20:21], v[20:21], v[10:11]\nv_rcp_f64 v[2:3], v[0:1]\n"
    "v_fma_f64 v[4:5], -v[0:1], v[2:3], 1.0\nv_fma_f64 v[2:3], v[2:3], v[4:5], v[2:3]\n"
    "v_fma_f64 v[4:5], -v[0:1], v[2:3], 1.0\nv_fma_f64 v[2:3], v[2:3], v[4:5], v[2:3]\n"
    "v_div_scale_f64 v[4:5], vcc_lo, v[10:11], v[20:21], v[10:11]\n"
    "v_mul_f64 v[6:7], v[4:5], v[2:3]\nv_fma_f64 v[0:1], -v[0:1], v[6:7], v[4:5]\n"
    "v_div_fmas_f64 v[0:1], v[0:1], v[2:3], v[6:7]\n"
    "v_div_fixup_f64 v[40:41], v[0:1], v[20:21], v[10:11]";

/// Adapts the masks in the text to the target: gfx9 has no NULL register and uses register pairs
/// for masks.
std::string with_masks(const Target& target, std::string text) {
  if (!target.wave64) return text;
  for (const auto& [from, to] : {std::pair("vcc_lo", "vcc"), std::pair("null", "s[50:51]")}) {
    for (size_t at; (at = text.find(from)) != text.npos;) {
      text.replace(at, std::string(from).size(), to);
    }
  }
  return text;
}

/// clang's division: the result is the correctly rounded quotient, whatever the last bits of v_rcp.
template <class T>
void add_division(Hand& hand, const std::string& name, const char* text, Type type) {
  hand.add("division_" + name, with_masks(hand.target(), text), {"v_div_scale_" + name},
           [type](const Hand::Run& run) {
             Random random(7);
             const int lanes = run.batch.target().lanes();
             for (int round = 0; round < 400 && !testing::Test::HasFailure(); ++round) {
               State state = random_state(run.batch.target(), 1);
               std::vector<std::pair<T, T>> operands;
               for (int lane = 0; lane < lanes; ++lane) {
                 const u64 a = interesting(type, random), b = interesting(type, random);
                 state.set_v64(10, lane, a);
                 state.set_v64(20, lane, b);
                 operands.emplace_back(from_bits<T>(a), from_bits<T>(b));
               }
               if (!run(state)) return;
               for (int lane = 0; lane < lanes; ++lane) {
                 const auto [a, b] = operands[static_cast<size_t>(lane)];
                 const T got = from_bits<T>(state.v64(40, lane)), want = a / b;
                 if (want != want ? got != got : to_bits(want) == to_bits(got)) continue;
                 ADD_FAILURE() << a << " / " << b << " = " << want << ", got " << got;
               }
             }
           });
}

/// Instructions that change no register on any chip that has them.
constexpr const char* kNothing[] = {"s_nop 3",
                                    "s_waitcnt vmcnt(0)",
                                    "s_sleep 1",
                                    "s_setprio 2",
                                    "s_icache_inv",
                                    "s_dcache_inv",
                                    "s_ttracedata",
                                    "v_nop",
                                    "s_sethalt 0",
                                    "s_clause 0x1",
                                    "s_delay_alu instid0(VALU_DEP_1)",
                                    "s_waitcnt_vscnt null, 0x0",
                                    "s_waitcnt_depctr 0xfffe",
                                    "buffer_gl0_inv",
                                    "buffer_gl1_inv",
                                    "s_set_inst_prefetch_distance 0x1",
                                    "s_waitcnt_lgkmcnt null, 0x0",
                                    "s_waitcnt_vmcnt null, 0x0",
                                    "s_waitcnt_expcnt null, 0x0",
                                    "s_denorm_mode 15",
                                    "s_round_mode 0",
                                    "s_wait_event 0",
                                    "v_pipeflush",
                                    "buffer_wbinvl1",
                                    "buffer_wbinvl1_vol",
                                    "buffer_invl2",
                                    "buffer_wbl2",
                                    "buffer_inv sc0 sc1",
                                    "s_dcache_wb",
                                    "s_gl1_inv",
                                    "s_incperflevel 1",
                                    "s_decperflevel 1",
                                    "s_ttracedata_imm 0x1",
                                    "s_version 0x1234",
                                    "s_wait_idle",
                                    "s_wakeup",
                                    "v_clrexcp"};

void add_nothing(Hand& hand) {
  std::vector<std::string> texts(std::begin(kNothing), std::end(kNothing));
  texts.push_back(generation(hand.target()) < 11 ? "s_sendmsg sendmsg(MSG_EARLY_PRIM_DEALLOC)"
                                                 : "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)");
  for (const std::string& text : texts) {
    const std::string name = text.substr(0, text.find(' '));
    hand.add(name + "_does_nothing", text, {name}, [](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 1);
      const State before = state;
      if (!run(state)) return;
      EXPECT_EQ(state.v, before.v);
      EXPECT_TRUE(std::equal(before.s.begin(), before.s.begin() + 108, state.s.begin()));
      EXPECT_EQ(state.exec, before.exec);
      EXPECT_EQ(state.mode, before.mode);
    });
  }
}

void add_once(Hand& hand) {
  add_mode(hand);
  add_moves(hand);
  add_division<float>(hand, "f32", kDivide32, Type::f32);
  add_division<double>(hand, "f64", kDivide64, Type::f64);
  add_later_moves(hand);
  add_nothing(hand);
}

}  // namespace

void register_execution() {
  for (const Target& target : all_targets()) {
    Hand hand("Execution", target);
    add_saveexec(hand);
    add_branches(hand);
    add_ends(hand);
    if (is_gfx9(target) || !target.wave64) add_once(hand);
  }
}

}  // namespace emu::test
