// Register features of gfx9: accumulation registers, operations on register pairs, and scratch
// memory addressed as a buffer.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u64 kSome = 0xf0c3a5960ff0a5c3;

/// Runs with several EXEC masks and compares all vector registers with the result of applying
/// `change` to each enabled lane.
void each_lane(const Hand::Run& run, const std::function<void(State&, int lane)>& change,
               const std::function<void(State&, Random&)>& prepare = nullptr) {
  for (const u64 exec : {~u64{0}, kSome, u64{1} << 63, u64{0}}) {
    State state = random_state_of(run.batch.target(), exec, kMostVgprs);
    Random random(exec + 1);
    state.exec = exec;
    if (prepare) prepare(state, random);
    State want = state;
    for (int lane = 0; lane < 64; ++lane) {
      if ((exec >> lane & 1) != 0) change(want, lane);
    }
    if (!run(state)) return;
    for (size_t reg = 0; reg < want.v.size(); ++reg) {
      ASSERT_EQ(state.v[reg], want.v[reg])
          << run.batch.text(run.id) << ": register " << reg << ", EXEC " << std::hex << exec;
    }
  }
}

// ---- Accumulation registers.

constexpr size_t acc(size_t n) { return kTestAgprs + n; }

void add_move(Hand& hand, const std::string& name, const std::string& operands,
              std::function<void(State&, size_t lane)> change) {
  hand.add(
      name + operands, name + operands, {name}, [change = std::move(change)](const Hand::Run& run) {
        each_lane(run, [&change](State& s, int lane) { change(s, static_cast<size_t>(lane)); });
      });
}

void add_moves(Hand& hand) {
  add_move(hand, "v_accvgpr_write_b32", " a5, v10",
           [](State& s, size_t lane) { s.v[acc(5)][lane] = s.v[10][lane]; });
  add_move(hand, "v_accvgpr_write_b32", " a5, s7",
           [](State& s, size_t lane) { s.v[acc(5)][lane] = s.s[7]; });
  add_move(hand, "v_accvgpr_write_b32", " a5, 1.0",
           [](State& s, size_t lane) { s.v[acc(5)][lane] = 0x3f800000; });
  add_move(hand, "v_accvgpr_write_b32", " a5, -7",
           [](State& s, size_t lane) { s.v[acc(5)][lane] = 0xfffffff9; });
  add_move(hand, "v_accvgpr_read_b32", " v40, a10",
           [](State& s, size_t lane) { s.v[40][lane] = s.v[acc(10)][lane]; });
  add_move(hand, "v_accvgpr_mov_b32", " a5, a6",
           [](State& s, size_t lane) { s.v[acc(5)][lane] = s.v[acc(6)][lane]; });
}

/// Memory instructions accept accumulation registers as data.
void add_memory(Hand& hand) {
  const auto point = [](State& s, const void* memory, u32 step) {
    for (int lane = 0; lane < 64; ++lane) {
      s.set_v64(2, lane, reinterpret_cast<u64>(memory) + static_cast<u32>(lane) * step);
    }
  };
  hand.add("global_load_into_accumulation", "global_load_dwordx4 a[4:7], v[2:3], off",
           {"global_load_dwordx4"}, [point](const Hand::Run& run) {
             alignas(64) u32 memory[256];
             for (u32 i = 0; i < 256; ++i) memory[i] = i * 0x01010101u + 7;
             each_lane(
                 run,
                 [&memory](State& s, int lane) {
                   for (size_t i = 0; i < 4; ++i) {
                     const auto at = static_cast<size_t>(lane);
                     s.v[acc(4 + i)][at] = memory[4 * at + i];
                   }
                 },
                 [&](State& s, Random&) { point(s, memory, 16); });
           });
  hand.add("global_store_of_accumulation", "global_store_dwordx2 v[2:3], a[4:5], off",
           {"global_store_dwordx2"}, [point](const Hand::Run& run) {
             alignas(64) u64 memory[64] = {};
             State state = random_state_of(run.batch.target(), 6, kMostVgprs);
             point(state, memory, 8);
             state.exec = kSome;
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < 64; ++lane) {
               const bool on = (kSome >> lane & 1) != 0;
               EXPECT_EQ(memory[lane], on ? before.v64(kTestAgprs + 4, lane) : 0) << lane;
             }
           });
  hand.add("lds_and_accumulation",
           "ds_write2_b32 v4, a4, a6 offset0:1 offset1:2\nds_read_b64 a[8:9], v4 offset:4",
           {"ds_write2_b32", "ds_read_b64"}, [](const Hand::Run& run) {
             each_lane(
                 run,
                 [](State& s, int lane) {
                   const auto at = static_cast<size_t>(lane);
                   s.v[acc(8)][at] = s.v[acc(4)][at];
                   s.v[acc(9)][at] = s.v[acc(6)][at];
                 },
                 [](State& s, Random&) {
                   for (u32 lane = 0; lane < 64; ++lane) s.v[4][lane] = lane * 16;
                 });
           });
}

// ---- Packed 32-bit floats.

/// The dword of each source that each result reads, and its sign.
struct PairForm {
  const char* text;
  int low[3], high[3], neg_low[3], neg_high[3];
  bool clamp;
};
constexpr PairForm kPairForms[] = {
    {"", {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, false},
    {" op_sel:[1,0#,1] op_sel_hi:[0,1#,0]", {1, 0, 1}, {0, 1, 0}, {0, 0, 0}, {0, 0, 0}, false},
    {" op_sel:[0,1#,1] op_sel_hi:[1,0#,1]", {0, 1, 1}, {1, 0, 1}, {0, 0, 0}, {0, 0, 0}, false},
    {" neg_lo:[1,0#,1] neg_hi:[0,1#,1]", {0, 0, 0}, {1, 1, 1}, {1, 0, 1}, {0, 1, 1}, false},
    {" neg_lo:[0,1#,0] neg_hi:[1,0#,0]", {0, 0, 0}, {1, 1, 1}, {0, 1, 0}, {1, 0, 0}, false},
    {" clamp", {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, true},
};

/// Returns the form's text for a number of sources; the text after # is for the third.
std::string text_for(const char* form, int sources) {
  std::string text;
  for (const char* c = form; *c != 0; ++c) {
    if (*c != '#') {
      text += *c;
    } else if (sources == 2) {
      c += 2;
    }
  }
  return text;
}

struct PairOp {
  const char* name;
  int sources;
  float (*f)(const float*);
};
constexpr PairOp kPairOps[] = {
    {"v_pk_add_f32", 2, [](const float* x) { return x[0] + x[1]; }},
    {"v_pk_mul_f32", 2, [](const float* x) { return x[0] * x[1]; }},
    {"v_pk_fma_f32", 3, [](const float* x) { return std::fma(x[0], x[1], x[2]); }},
};

float clamped(float x) { return !(x > 0) ? 0.0f : std::min(x, 1.0f); }

/// Fills the sources of packed operations: v[10:11], v[20:21] or s[20:21], v[30:31].
void put_pairs(State& s, Random& random) {
  for (int reg : {10, 11, 20, 21, 30, 31}) {
    for (u32& x : s.v[static_cast<size_t>(reg)]) {
      x = static_cast<u32>(interesting(Type::f32, random));
    }
    s.s[static_cast<size_t>(reg)] = static_cast<u32>(interesting(Type::f32, random));
  }
}

void check_pair(const Hand::Run& run, const PairOp& op, const PairForm& form, bool scalar) {
  const auto result = [&](const State& s, int lane, bool high) {
    float in[3];
    for (int i = 0; i < op.sources; ++i) {
      const int reg = 10 * (i + 1) + (high ? form.high : form.low)[i];
      const u32 bits = scalar && i == 1 ? s.s[static_cast<size_t>(reg)]
                                        : s.v[static_cast<size_t>(reg)][static_cast<size_t>(lane)];
      in[i] = from_bits<float>(bits);
      if ((high ? form.neg_high : form.neg_low)[i] != 0) in[i] = -in[i];
    }
    const float x = op.f(in);
    return form.clamp ? clamped(x) : x;
  };
  for (u64 seed = 1; seed <= 6; ++seed) {
    State state = random_state(run.batch.target(), seed);
    Random random(seed);
    put_pairs(state, random);
    state.exec = seed % 2 == 0 ? kSome : ~u64{0};
    const State before = state;
    if (!run(state)) return;
    for (int lane = 0; lane < 64; ++lane) {
      for (const bool high : {false, true}) {
        const size_t reg = high ? 41 : 40, at = static_cast<size_t>(lane);
        const u32 got = state.v[reg][at];
        if ((before.exec >> lane & 1) == 0) {
          ASSERT_EQ(got, before.v[reg][at]) << "lane " << lane << " is off";
          continue;
        }
        const float want = result(before, lane, high);
        if (want != want && from_bits<float>(got) != from_bits<float>(got)) continue;
        ASSERT_EQ(got, to_bits(want)) << run.batch.text(run.id) << " lane " << lane << high;
      }
    }
  }
}

void add_pairs(Hand& hand) {
  for (const PairOp& op : kPairOps) {
    for (const PairForm& form : kPairForms) {
      for (const bool scalar : {false, true}) {
        const std::string text =
            std::string(op.name) + " v[40:41], v[10:11], " + (scalar ? "s[20:21]" : "v[20:21]") +
            (op.sources == 3 ? ", v[30:31]" : "") + text_for(form.text, op.sources);
        hand.add(text, text, {op.name},
                 [&op, &form, scalar](const Hand::Run& run) { check_pair(run, op, form, scalar); });
      }
    }
  }
  hand.add("pair_and_constant", "v_pk_add_f32 v[40:41], v[10:11], 1.0 op_sel_hi:[1,0]", {},
           [](const Hand::Run& run) {
             static constexpr PairOp kPlusOne = {"", 1, [](const float* x) { return x[0] + 1; }};
             check_pair(run, kPlusOne, kPairForms[0], false);
           });
}

/// The first result comes from the first source and the second from the second; op_sel selects the
/// dword.
void add_pair_moves(Hand& hand) {
  for (const int low : {0, 1}) {
    for (const int high : {0, 1}) {
      for (const bool scalar : {false, true}) {
        const std::string text = std::string("v_pk_mov_b32 v[40:41], v[10:11], ") +
                                 (scalar ? "s[20:21]" : "v[20:21]") + " op_sel:[" +
                                 std::to_string(low) + "," + std::to_string(high) + "]";
        hand.add(text, text, {"v_pk_mov_b32"}, [low, high, scalar](const Hand::Run& run) {
          each_lane(run, [=](State& s, int lane) {
            const auto at = static_cast<size_t>(lane);
            const auto second = static_cast<size_t>(20 + high);
            s.v[40][at] = s.v[static_cast<size_t>(10 + low)][at];
            s.v[41][at] = scalar ? s.s[second] : s.v[second][at];
          });
        });
      }
    }
  }
  hand.add("pair_in_place", "v_pk_mov_b32 v[40:41], v[40:41], v[40:41] op_sel:[1,0]",
           {"v_pk_mov_b32"}, [](const Hand::Run& run) {
             each_lane(run, [](State& s, int lane) {
               std::swap(s.v[40][static_cast<size_t>(lane)], s.v[41][static_cast<size_t>(lane)]);
             });
           });
}

// ---- Scratch addressed as a buffer.

/// s[0:3] hold the descriptor that a kernel gets for scratch: the aperture's address, no stride and
/// no bounds. Each test accesses scratch one way through this buffer and the other way through
/// gfx90a's scratch instructions, whose offsets apply to their own lane only.
void add_scratch(Hand& hand) {
  const std::string resource =
      "s_mov_b64 s[0:1], src_private_base\ns_mov_b32 s2, -1\ns_mov_b32 s3, 0\n";
  static constexpr u32 kStack = 48;
  const auto prepare = [](State& s, Random&) {
    s.s[10] = kStack * 64;  // the stack pointer counts the bytes of all lanes
    s.scratch.assign(256 * 64, 0x5a);
    s.v[3].fill(kStack);
    for (u32 lane = 0; lane < 64; ++lane) {
      s.v[2][lane] = lane % 4 * 16;
      s.v[4][lane] = lane % 4 * 16 + kStack;
    }
  };
  const auto add = [&](const std::string& name, const std::string& text,
                       std::vector<std::string> covers,
                       std::function<void(State&, size_t)> change) {
    hand.add(name, resource + text, std::move(covers),
             [prepare, change = std::move(change)](const Hand::Run& run) {
               each_lane(
                   run, [&change](State& s, int lane) { change(s, static_cast<size_t>(lane)); },
                   prepare);
             });
  };
  add("buffer_scratch_stores",
      "buffer_store_dword v20, off, s[0:3], s10 offset:8\n"
      "buffer_store_dwordx2 v[22:23], v2, s[0:3], s10 offen offset:80\n"
      "buffer_store_short v24, off, s[0:3], s10 offset:20\n"
      "scratch_load_dword v40, v3, off offset:8\n"
      "scratch_load_dwordx2 v[42:43], v4, off offset:80\n"
      "scratch_load_dword v44, v3, off offset:20",
      {"buffer_store_dword", "buffer_store_dwordx2", "buffer_store_short"},
      [](State& s, size_t lane) {
        s.v[40][lane] = s.v[20][lane];
        s.v[42][lane] = s.v[22][lane];
        s.v[43][lane] = s.v[23][lane];
        s.v[44][lane] = (s.v[24][lane] & 0xffff) | 0x5a5a0000;
      });
  add("buffer_scratch_loads",
      "scratch_store_dwordx4 v4, v[20:23], off\n"
      "buffer_load_dword v40, v2, s[0:3], s10 offen offset:4\n"
      "buffer_load_ubyte v41, v4, s[0:3], 0 offen offset:13\n"
      "buffer_load_ushort v42, v4, s[0:3], 0 offen offset:2\n"
      "scratch_store_dwordx4 v3, v[24:27], off offset:32\n"
      "buffer_load_dwordx4 v[44:47], off, s[0:3], s10 offset:32",
      {"buffer_load_dword", "buffer_load_ubyte", "buffer_load_ushort", "buffer_load_dwordx4"},
      [](State& s, size_t lane) {
        s.v[40][lane] = s.v[21][lane];
        s.v[41][lane] = s.v[23][lane] >> 8 & 255;
        s.v[42][lane] = s.v[20][lane] >> 16;
        for (size_t i = 0; i < 4; ++i) s.v[44 + i][lane] = s.v[24 + i][lane];
      });
}

}  // namespace

void register_gfx9_registers() {
  for (const Target& chip : all_chips()) {
    if (!is_gfx9(chip)) continue;
    Hand hand("Gfx9Registers", chip);
    add_moves(hand);
    add_memory(hand);
    add_pairs(hand);
    add_pair_moves(hand);
    add_scratch(hand);
  }
}

}  // namespace emu::test
