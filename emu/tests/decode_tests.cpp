// Decoding: fields against LLVM's text, fields that the text doesn't show, and words that aren't
// instructions.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "emu/tests/assembler.h"
#include "emu/tests/decode_support.h"
#include "emu/tests/reference.h"

namespace emu::test {
namespace {

// ---- Random words of every encoding: LLVM's text of an instruction, where LLVM knows it.

/// The prefixes of the encodings, as AMD's manuals give them.
struct Prefix {
  const char* name;
  uint32_t bits, mask;
  int dwords;
};

std::vector<Prefix> prefixes(int generation) {
  std::vector<Prefix> all = {{"VOP1", 0x7e000000, 0xfe000000, 1},
                             {"VOPC", 0x7c000000, 0xfe000000, 1},
                             {"VOP2", 0x00000000, 0x80000000, 1}};
  if (generation == 9) {
    all.push_back({"VOP3", 0xd0000000, 0xfc000000, 2});
    all.push_back({"VOP3P", 0xd3800000, 0xffc00000, 2});
    return all;
  }
  all.push_back({"VOP3", 0xd4000000, 0xfc000000, 2});
  all.push_back({"VOP3P", 0xcc000000, 0xff800000, 2});
  if (generation > 10) all.push_back({"VOPD", 0xc8000000, 0xfc000000, 2});
  return all;
}

/// Returns whether every modifier that the fields have is in the text.
bool is_said(const Inst& ours, const Inst& text) {
  for (const auto& [name, value] : ours.modifiers) {
    const int64_t otherwise = name == "row_mask" || name == "bank_mask" ? 15 : 0;
    if (text.modifier(name, otherwise) != value) return false;
  }
  for (const auto& [name, word] : ours.words) {
    if (text.word(name) != word) return false;
  }
  for (const auto& [name, list] : ours.lists) {
    // The text has this field of some matrix instructions only. None of them uses it.
    if (name == "op_sel_hi" && ours.name.starts_with("v_wmma") && text.list(name).empty()) continue;
    if (text.list(name) != list) return false;
  }
  return true;
}

/// Returns whether the fields and the text say the same. Halves and signs that the fields have may
/// be missing in the text.
bool agrees(const Inst& ours, const Inst& text) {
  if (ours.name != text.name || ours.operands.size() != text.operands.size()) return false;
  // The mnemonic of comparisons with DPP has no suffix.
  const bool unnamed = text.form == Form::plain && text.has("row_mask");
  if (ours.form != text.form && !unnamed) return false;
  for (size_t i = 0; i < ours.operands.size(); ++i) {
    if (!same_operand(ours.operands[i], text.operands[i])) return false;
  }
  for (const auto& [name, value] : text.modifiers) {
    const int64_t otherwise = name == "row_mask" || name == "bank_mask" ? 15 : 0;
    if (ours.modifier(name, otherwise) != value) return false;
  }
  for (const auto& [name, word] : text.words) {
    if (ours.word(name) != word) return false;
  }
  for (const auto& [name, list] : text.lists) {
    if (ours.list(name) == list) continue;
    // Halves of the operands of VOP3 are properties of the operands.
    if (name != "op_sel") return false;
    for (size_t i = 0; i < list.size() && i < ours.operands.size(); ++i) {
      const bool result = i + 1 == list.size() && list.size() == text.operands.size();
      if (list[i] != 0 && !ours.operands[result ? 0 : i + 1].hi) return false;
    }
  }
  return is_said(ours, text);
}

std::vector<uint32_t> random_words(const Prefix& prefix, int generation, Random& random) {
  std::vector<uint32_t> words;
  for (int i = 0; i < 4; ++i) words.push_back(static_cast<uint32_t>(random.next()));
  words[0] = (words[0] & ~prefix.mask) | prefix.bits;
  // Half of the instructions have no modifiers, since most opcodes accept few of them.
  if (prefix.dwords == 2 && random.chance(2)) {
    words[0] &= ~0xff00u;
    words[1] &= ~0xf8000000u;
  }
  // Registers of short encodings below v128: LLVM 19 refuses others where it expects halves.
  if (prefix.dwords == 1) {
    words[0] &= prefix.name[3] == '2' ? ~0x01010000u : ~0u;
    words[0] &= prefix.name[3] == '1' ? ~0x01000000u : ~0u;
    words[0] &= prefix.name[3] == 'C' ? ~0x00010000u : ~0u;
    if ((words[0] & 0x100) != 0) words[0] &= ~0x80u;
  }
  // Sources that precede a dword of modifiers.
  constexpr uint32_t kFollowed[] = {0xfa, 0xe9, 0xea, 0xf9, 0xff};
  if (random.chance(6)) {
    uint32_t& word = words[static_cast<size_t>(prefix.dwords - 1)];
    word = (word & ~0x1ffu) | kFollowed[random.below(5)];
    words[static_cast<size_t>(prefix.dwords)] &= 0xff0fff7f;
  }
  // LLVM 19's printer crashes on reserved values of SDWA.
  if (generation <= 10 && prefix.dwords == 1 && (words[0] & 0x1ff) == 0xf9) {
    uint32_t& parts = words[1];
    const bool compares = prefix.name[3] == 'C';
    if (compares) parts = (parts & ~0xff00u) | 0x8000 | random.below(50) << 9;
    for (const int at : {8, 16, 24}) {
      if (!(compares && at == 8) && (parts >> at & 7) == 7) parts &= ~(1u << at);
    }
    if (!compares && (parts >> 11 & 3) == 3) parts &= ~(1u << 11);
  }
  if (prefix.dwords == 2 && random.chance(2)) words[1] &= ~(0x1ffu << 18);
  // A literal can't follow a dword of DPP, although LLVM reads it.
  for (const int at : {9, 18}) {
    if (prefix.dwords == 2 && (words[1] >> at & 0x1ff) == 0xff) words[1] &= ~(0x1ffu << at);
  }
  return words;
}

/// Returns whether the decoder accepts an instruction.
bool runs(Decoder& decoder, std::span<const uint8_t> code) {
  try {
    decoder.decode(code, 0);
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

void compare_with_llvm(const Target& target) {
  Decoder decoder(target.arch, target.wave64);
  const Disassembler llvm(assembled_as(target.arch), target.wave64);
  Random random(7);
  const int generation = generation_of(target.arch);
  for (const Prefix& prefix : prefixes(generation)) {
    if (target.wave64 && std::strcmp(prefix.name, "VOPD") == 0) continue;  // of waves of 32 only
    int compared = 0, wrong = 0;
    for (int i = 0; i < 40000; ++i) {
      const std::vector<uint32_t> words = random_words(prefix, generation, random);
      const std::span code(reinterpret_cast<const uint8_t*>(words.data()), 16);
      const auto text = llvm.read_any(code, 0);
      // LLVM misplaces an operand of v_cndmask.
      if (!text || text->text.find(", vcc_lo|") != text->text.npos) continue;
      if (target.arch == "gfx950" && text->text.find("_xf32") != text->text.npos) continue;
      // LLVM 19 doesn't know the upper halves of registers.
      if (text->text.find("VGPR_32_Lo128") != text->text.npos) continue;
      if (text->text.find("/*") != text->text.npos) {
        // Other comments are about forms that don't exist.
        const bool invalid = text->text.find("/*Invalid") != text->text.npos ||
                             text->text.find("/* DP ALU") != text->text.npos;
        if (invalid && runs(decoder, code)) {
          ADD_FAILURE() << text->text << "\n   isn't refused";
          if (++wrong > 8) return;
        }
        continue;
      }
      // The format of interpolation before gfx11 isn't decoded.
      if (text->text.find(" attr") != text->text.npos) {
        EXPECT_FALSE(runs(decoder, code)) << text->text;
        continue;
      }
      const std::vector<Inst> want = parse_instruction(text->text);
      std::vector<Inst> got;
      try {
        got = decoder.decode(code, 0);
      } catch (const std::runtime_error& error) {
        // LLVM disassembles some reserved values.
        if (std::strstr(error.what(), "reserved") != nullptr) continue;
        ADD_FAILURE() << text->text << ": " << error.what();
        return;
      }
      ++compared;
      bool same = got.size() == want.size() && got[0].size == text->size;
      for (size_t k = 0; same && k < got.size(); ++k) same = agrees(got[k], want[k]);
      if (same) continue;
      ADD_FAILURE() << text->text << "\n   fields: " << to_text(got[0]) << ", size "
                    << int{got[0].size} << " of " << int{text->size};
      if (++wrong > 8) return;
    }
    EXPECT_GT(compared, 300) << prefix.name;
  }
}

// ---- What the text doesn't show.

void add_hidden_fields(Hand& hand) {
  // A literal whose value is also an inline constant is still the upper dword of an f64.
  hand.add(
      "small_literal_of_f64", "v_add_f64 v[40:41], v[10:11], 0x3ff00001", {},
      [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 1);
        for (int lane = 0; lane < 32; ++lane) state.set_v64(10, lane, u64{7} << 32 | 9);
        if (!run(state)) return;
        EXPECT_EQ(state.v64(40, 3), (u64{12} << 32) + 9);  // denormals add like integers
      },
      [](std::vector<uint32_t>& words) { words.back() = 5; });
  // A constant that a mix instruction reads as f16 is an f16.
  hand.add("constant_of_a_mix", "v_fma_mix_f32 v40, v10, 2.0, v12 op_sel_hi:[0,1,0]",
           {"v_fma_mix_f32"}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 11);
             state.v[10].fill(std::bit_cast<u32>(3.0f));
             state.v[12].fill(std::bit_cast<u32>(0.5f));
             if (run(state)) EXPECT_EQ(state.v[40][4], std::bit_cast<u32>(6.5f));
           });
  // The shift amount of v_alignbit is a 16-bit operand.
  for (const char* name : {"v_alignbit_b32", "v_alignbyte_b32"}) {
    const u32 unit = name[7] == 'b' && name[8] == 'i' ? 1 : 8;
    hand.add(
        std::string(name) + "_of_an_upper_half", std::string(name) + " v40, v10, v11, v12", {},
        [unit](const Hand::Run& run) {
          State state = random_state(run.batch.target(), 2);
          const State before = state;
          if (!run(state)) return;
          for (int lane = 0; lane < 32; ++lane) {
            const u32 shift = (before.v[12][lane] >> 16 & (unit == 1 ? 31 : 3)) * unit;
            const u64 both = u64{before.v[10][lane]} << 32 | before.v[11][lane];
            ASSERT_EQ(state.v[40][lane], static_cast<u32>(both >> shift)) << lane;
          }
        },
        [](std::vector<uint32_t>& words) { words[0] |= 4u << 11; });
  }
  // The assembler doesn't have these: each takes the place of a v_mov_b32. Bit 7 of a register's
  // field in VOP1 is its half.
  const auto vop1 = [](uint32_t opcode, uint32_t vdst, uint32_t src0) {
    return [=](std::vector<uint32_t>& words) {
      words = {0x7e000000 | vdst << 17 | opcode << 9 | 0x100 | src0};
    };
  };
  constexpr uint32_t kUpper = 0x80, kMove16 = 0x1c, kSwap16 = 0x66;
  hand.add(
      "swap_of_halves", "v_mov_b32 v40, v12 ; v_swap_b16 v40.h, v12.l", {},
      [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 3);
        const State before = state;
        if (!run(state)) return;
        for (int lane = 0; lane < 32; ++lane) {
          const u32 a = before.v[40][lane], b = before.v[12][lane];
          ASSERT_EQ(state.v[40][lane], (a & 0xffff) | b << 16);
          ASSERT_EQ(state.v[12][lane], (b & 0xffff0000) | a >> 16);
        }
      },
      vop1(kSwap16, 40 | kUpper, 12));
  hand.add(
      "swap_within_a_register", "v_mov_b32 v40, v40 ; v_swap_b16 v40.l, v40.h", {},
      [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 4);
        const State before = state;
        if (!run(state)) return;
        for (int lane = 0; lane < 32; ++lane) {
          ASSERT_EQ(state.v[40][lane], std::rotl(before.v[40][lane], 16));
        }
      },
      vop1(kSwap16, 40, 40 | kUpper));
  hand.add(
      "move_of_an_upper_half", "v_mov_b32 v40, v12 ; v_mov_b16_e32 v40.l, v12.h", {},
      [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 5);
        const State before = state;
        if (!run(state)) return;
        for (int lane = 0; lane < 32; ++lane) {
          ASSERT_EQ(state.v[40][lane],
                    (before.v[40][lane] & 0xffff0000) | before.v[12][lane] >> 16);
        }
      },
      vop1(kMove16, 40, 12 | kUpper));
  // VOP3 names all registers, and halves by OPSEL.
  hand.add(
      "move_of_a_high_register", "v_mov_b32 v40, v12 ; v_mov_b16_e64 v140.h, v127.h", {},
      [](const Hand::Run& run) {
        State state = random_state_of(run.batch.target(), 5, kMostVgprs);
        const State before = state;
        if (!run(state)) return;
        for (int lane = 0; lane < 32; ++lane) {
          ASSERT_EQ(state.v[140][lane],
                    (before.v[140][lane] & 0xffff) | (before.v[127][lane] & 0xffff0000));
        }
      },
      [](std::vector<uint32_t>& words) {
        words = {0xd4000000 | (0x180 + kMove16) << 16 | 9u << 11 | 140, 0x100 | 127};
      });
}

// ---- Modes.

void add_modes(Hand& hand) {
  // 3 + 1 doubled by the output modifier.
  const auto sum = [&](const char* name, uint32_t mode, u32 want) {
    hand.add(name, "v_add_f32 v40, v10, v11 mul:2", {}, [mode, want](const Hand::Run& run) {
      State state = random_state(run.batch.target(), 6);
      state.mode = mode;
      state.v[10].fill(std::bit_cast<u32>(3.0f));
      state.v[11].fill(std::bit_cast<u32>(1.0f));
      if (run(state)) EXPECT_EQ(state.v[40][0], want);
    });
  };
  constexpr u32 kFour = 0x40800000, kEight = 0x41000000;
  constexpr uint32_t kNoDenormals32 = 0xc0, kAllDenormals = 0xf0;
  sum("output_modifier", kNoDenormals32 | kModeClamp, kEight);
  sum("output_modifier_with_ieee", kNoDenormals32 | kModeClamp | kModeIeee, kFour);
  sum("output_modifier_with_denormals", kAllDenormals | kModeClamp, kFour);
  hand.add("output_modifier_of_negative_zero", "v_mul_f32 v40, v10, v11 mul:4", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 7);
             state.mode = kNoDenormals32 | kModeClamp;
             state.v[10].fill(0x80000000);
             state.v[11].fill(std::bit_cast<u32>(2.0f));
             if (run(state)) EXPECT_EQ(state.v[40][0], 0u);
           });
  // A flushed denominator or numerator is a zero: the result is NaN, and the lane needs scaling.
  for (const bool denominator : {false, true}) {
    for (const bool flush : {false, true}) {
      const std::string name = std::string("division_of_a_denormal_") +
                               (denominator ? "denominator" : "numerator") +
                               (flush ? "_flushed" : "");
      hand.add(name, "v_div_scale_f32 v40, vcc_lo, v11, v11, v10", {"v_div_scale_f32"},
               [=](const Hand::Run& run) {
                 State state = random_state(run.batch.target(), 8);
                 if (flush) state.mode = kModeClamp | kModeIeee;
                 state.v[10].fill(denominator ? std::bit_cast<u32>(1.0f) : 1);
                 state.v[11].fill(denominator ? 1 : std::bit_cast<u32>(1.0f));
                 if (!run(state)) return;
                 const auto result = std::bit_cast<float>(state.v[40][0]);
                 EXPECT_EQ(std::isnan(result), flush);
                 if (flush) EXPECT_EQ(state.s[106], 0xffffffffu);
               });
    }
  }
}

// ---- Words that aren't instructions.

/// `how`: missing if the code doesn't begin to run, failed if it fails when a wave reaches the
/// word.
void expect_refused(Hand& hand, const std::string& name, const std::string& text,
                    const std::string& says, Batch::Patch patch = nullptr, Ran how = Ran::missing) {
  hand.add(
      name, text, {},
      [says, how](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 9);
        const Outcome outcome = run.batch.run(run.id, state);
        EXPECT_EQ(outcome.ran, how);
        EXPECT_NE(outcome.message.find(says), std::string::npos) << outcome.message;
      },
      std::move(patch));
}

void expect_runs(Hand& hand, const std::string& name, const std::string& text) {
  hand.add(name, text, {}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 10);
    const u32 before = state.v[12][5];
    if (run(state)) EXPECT_EQ(state.v[40][5], before);
  });
}

/// Words whose fields name what the opcode can't have. Each of them once overwrote a constant or
/// the emulator's own state, or ran with a zero.
void register_reserved() {
  struct Case {
    Target target;
    const char *name, *words, *says;
  };
  const Target gfx11{"gfx1100", false}, gfx11_wave64{"gfx1100", true}, gfx12{"gfx1200", false};
  const Target gfx10{"gfx1030", false}, gfx9{"gfx90a", true};
  constexpr const char *kOperand = "reserved operand", *kResult = "reserved result register";
  const Case cases[] = {
      {gfx11, "swap_with_a_scalar", "0x7e04ca00", kOperand},
      {gfx11, "swap_with_exec", "0x7e04ca7f", kOperand},
      {gfx11, "swap_of_halves_with_a_scalar", "0x7e04cc00", kOperand},
      {gfx11, "swap_of_halves_with_a_constant", "0x7e04cc81", kOperand},
      {gfx11, "scalar_matrix_a", "0xcc404014, 0x1c020201", kOperand},
      {gfx11, "trap_registers_as_matrix_a", "0xcc404014, 0x1c020270", kOperand},
      {gfx11, "scalar_matrix_b", "0xcc404014, 0x1c000301", kOperand},
      {gfx12, "scalar_matrix_a", "0xcc404014, 0x1c020201", kOperand},
      {gfx11, "permlane64_of_a_scalar", "0x7e04ce00", kOperand},
      {gfx11_wave64, "permlane64_of_a_scalar", "0x7e04ce00", kOperand},
      {gfx11, "comparison_that_writes_a_constant", "0xd44a0081, 0x00020501", kResult},
      {gfx11, "first_lane_into_a_constant", "0x7f020501", kResult},
      {gfx11, "carry_into_an_odd_pair", "0xd7007529, 0x00020501", ""},
      {gfx11_wave64, "carry_into_an_odd_pair", "0xd7007529, 0x00020501", kResult},
      {gfx9, "literal_in_vop3", "0xd1ff000a, 0x040606ff", kOperand},
      {gfx9, "literal_in_vop3p", "0xd38f400a, 0x180206ff", kOperand},
      {gfx9, "literal_in_sdwa", "0x021402f9, 0x068606ff", kOperand},
      {gfx10, "literal_in_sdwa", "0x061402f9, 0x068606ff", kOperand},
      {gfx9, "shift_of_doubles_by_dpp", "0x7e1420fa, 0xff011101", "reserved DPP control"},
      {gfx11, "doubles_with_dpp", "0x7e1420fa, 0xff011101", kOperand},
      {gfx11, "literal_with_dpp", "0xd503000a, 0x0001fefa, 0xff0d0111", kOperand},
  };
  std::map<std::string, Hand> hands;
  for (const Case& c : cases) {
    const std::string key = c.target.arch + (c.target.wave64 ? "w" : "");
    Hand& hand = hands.try_emplace(key, "Reserved", c.target).first->second;
    const std::string text = std::string(".long ") + c.words;
    if (*c.says != 0) {
      expect_refused(hand, c.name, text, c.says);
    } else {
      hand.add(c.name, text, {}, [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 12);
        run(state);
      });
    }
  }
}

/// What decoding constants and special registers exactly means.
void add_exact(Hand& hand, Hand& gfx10) {
  hand.add("inverse_of_two_pi", "v_add_f64 v[40:41], v[10:11], 0.15915494309189532", {},
           [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 13);
             for (int lane = 0; lane < 32; ++lane) state.set_v64(10, lane, 0);
             if (run(state)) EXPECT_EQ(state.v64(40, 3), 0x3fc45f306dc9c882u);
           });
  hand.add("inverse_of_two_pi_f32", "v_add_f32 v40, 0.15915494, v10", {}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 14);
    state.v[10].fill(0);
    if (run(state)) EXPECT_EQ(state.v[40][3], 0x3e22f983u);
  });
  // v_cmp_eq_u32_sdwa null, v1, v2
  gfx10.add("comparison_into_null", ".long 0x7d8404f9, 0x0604fd01", {}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 15);
    const State before = state;
    if (!run(state)) return;
    for (const size_t kept : {106, 107, 124, 125}) EXPECT_EQ(state.s[kept], before.s[kept]) << kept;
  });
}

void add_unknown(Hand& hand) {
  const std::string move = "v_mov_b32 v40, v12\n";
  expect_runs(hand, "zeros_behind_the_end", move + "s_endpgm\n.long 0\n.long 0\n.long 0");
  expect_runs(hand, "data_behind_the_end", move + "s_endpgm\n.long 0xfedcba98\n.long 0xffffffff");
  // An instruction that isn't implemented, and a branch out of the function.
  expect_runs(hand, "unimplemented_behind_the_end",
              move +
                  "s_endpgm\ns_ttracedata\nimage_atomic_add v0, v[0:1], s[0:7] dmask:0x1 "
                  "dim:SQ_RSRC_IMG_2D\ns_branch 0x7000");
  expect_runs(hand, "data_that_a_branch_skips",
              "s_branch .Lskip_data\n.long 0\n.long 0xfedcba98\n.Lskip_data:\n" + move);
  const std::string image =
      "image_atomic_add v0, v[0:1], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D\n";  // of two words
  // The word is the first one of v_cndmask_b32_e64, of which the move is no part.
  expect_runs(hand, "data_that_would_hide_a_target",
              "s_branch .Lhidden\n.long 0xd5010000\n.Lhidden:\n" + move);
  expect_runs(hand, "data_that_would_hide_a_computed_target",
              "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, 20\ns_addc_u32 s11, s11, 0\n"
              "s_setpc_b64 s[10:11]\n" +
                  image + "s_branch .Lpast\n.long 0xd5010000\n.Lpast:\n" + move);
  expect_refused(hand, "unimplemented_at_a_computed_target",
                 "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, 12\ns_addc_u32 s11, s11, 0\n"
                 "s_setpc_b64 s[10:11]\n" +
                     image + move,
                 "unknown instruction", nullptr, Ran::failed);
  const std::string call =
      "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, 16\ns_addc_u32 s11, s11, 0\n"
      "s_swappc_b64 s[12:13], s[10:11]\n.long 0\n";
  expect_runs(hand, "data_behind_a_call_without_return", call + move);
  expect_refused(hand, "data_behind_a_call_that_returns", call + "s_setpc_b64 s[12:13]",
                 "isn't a known instruction", nullptr, Ran::failed);
  // v_swap_b32 v40, v12 with DPP
  hand.add("swap_with_dpp", ".long 0x7e50cafa, 0xff01110c", {}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 16);
    const Outcome outcome = run.batch.run(run.id, state);
    EXPECT_EQ(outcome.ran, Ran::missing);
    EXPECT_NE(outcome.message.find("DPP or SDWA"), std::string::npos) << outcome.message;
  });
  expect_refused(hand, "zeros", move + ".long 0", "isn't a known instruction");
  expect_refused(hand, "data", move + ".long 0xfedcba98", "0xfedcba98");
  const auto control = [](uint32_t value) {
    return
        [value](std::vector<uint32_t>& words) { words[1] = (words[1] & ~0x1ff00u) | value << 8; };
  };
  const std::string dpp = "v_mov_b32_dpp v40, v12 row_shr:1 row_mask:0xf bank_mask:0xf";
  // Broadcasts of rows and shifts of waves exist on gfx9 only.
  for (const uint32_t value : {0x142u, 0x143u, 0x130u, 0x138u, 0x100u, 0x170u}) {
    expect_refused(hand, "reserved_dpp_" + std::to_string(value), dpp, "reserved DPP control",
                   control(value));
  }
}

}  // namespace

void register_decode() {
  std::vector<Target> targets = all_chips();
  targets.push_back({"gfx1100", true});
  register_comparisons("fields_agree_with_llvm_", targets, &compare_with_llvm);
  Hand hand("Decode", {"gfx1100", false});
  add_hidden_fields(hand);
  add_modes(hand);
  add_unknown(hand);
  register_reserved();
  Hand gfx10("Decode", {"gfx1030", false});
  add_exact(hand, gfx10);
}

}  // namespace emu::test
