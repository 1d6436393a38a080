// Cross-lane instructions, and vector instructions with forms that the tables don't cover.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u64 kSome = 0xf0c3a5960ff0a5c3;

/// Runs with several EXEC masks. `want` returns a lane's expected v40, or nothing if it must not
/// change.
void each_lane(const Hand::Run& run, const std::function<u32(const State&, int)>& want,
               const std::function<void(State&)>& prepare = nullptr) {
  const Target& target = run.batch.target();
  const u64 all = target.wave64 ? ~u64{0} : 0xffffffff;
  for (const u64 exec : {all, kSome & all, u64{1}, u64{0}}) {
    State state = random_state(target, 11);
    state.exec = exec;
    if (prepare) prepare(state);
    const State before = state;
    if (!run(state)) return;
    for (int lane = 0; lane < target.lanes(); ++lane) {
      const bool on = exec >> lane & 1;
      ASSERT_EQ(state.v[40][lane], on ? want(before, lane) : before.v[40][lane])
          << "lane " << lane << ", EXEC " << std::hex << exec;
    }
  }
}

bool on(const State& s, int lane) { return s.exec >> lane & 1; }

void add_permlanes(Hand& hand) {
  const auto sel = [](const State& s, int lane) {
    return static_cast<int>(s.s64(10) >> (4 * (lane % 16)) & 15);
  };
  for (const bool cross : {false, true}) {
    const std::string name = cross ? "v_permlanex16_b32" : "v_permlane16_b32";
    const auto from = [cross, sel](const State& s, int lane) {
      return ((lane / 16) ^ (cross ? 1 : 0)) * 16 + sel(s, lane);
    };
    // Without the op_sel bits, disabled lanes aren't read and the destination lane keeps its value.
    hand.add(name + "_fetch_inactive", name + " v40, v12, s10, s11 op_sel:[1,0]", {name},
             [from](const Hand::Run& run) {
               each_lane(run, [from](const State& s, int lane) { return s.v[12][from(s, lane)]; });
             });
    hand.add(name + "_bound", name + " v40, v12, s10, s11 op_sel:[0,1]", {name},
             [from](const Hand::Run& run) {
               each_lane(run, [from](const State& s, int lane) {
                 return on(s, from(s, lane)) ? s.v[12][from(s, lane)] : 0;
               });
             });
    hand.add(name + "_all", name + " v40, v12, s10, s11", {name}, [from](const Hand::Run& run) {
      each_lane(run, [from](const State& s, int lane) {
        return on(s, from(s, lane)) ? s.v[12][from(s, lane)] : s.v[40][lane];
      });
    });
    hand.add(name + "_in_place", name + " v40, v40, s10, s11 op_sel:[1,0]", {},
             [from](const Hand::Run& run) {
               each_lane(run, [from](const State& s, int lane) { return s.v[40][from(s, lane)]; });
             });
  }
}

void add_reads(Hand& hand) {
  const int lanes = hand.target().lanes();
  hand.add("v_readlane_b32", "v_readlane_b32 s40, v12, s10\nv_readlane_b32 s41, v12, 5",
           {"v_readlane_b32"}, [lanes](const Hand::Run& run) {
             for (u32 i = 0; i < 200; ++i) {
               State state = random_state(run.batch.target(), i);
               state.exec = i % 3 == 0 ? 0 : state.exec;
               const State before = state;
               if (!run(state)) return;
               EXPECT_EQ(state.s[40], before.v[12][before.s[10] % static_cast<u32>(lanes)]);
               EXPECT_EQ(state.s[41], before.v[12][5]);
             }
           });
  hand.add("v_readfirstlane_b32", "v_readfirstlane_b32 s40, v12", {"v_readfirstlane_b32"},
           [lanes](const Hand::Run& run) {
             for (int lane = 0; lane <= lanes; ++lane) {
               State state = random_state(run.batch.target(), 4);
               state.exec = lane == lanes ? 0 : state.exec << lane;
               if (!run.batch.target().wave64) state.exec &= 0xffffffff;
               const u32 want = state.v[12][lane == lanes ? 0 : lane];
               if (!run(state)) return;
               EXPECT_EQ(state.s[40], want);
             }
           });
  // On gfx9 an instruction can read only one scalar register besides M0.
  const std::string named = is_gfx9(hand.target())
                                ? "s_mov_b32 m0, s11\nv_writelane_b32 v40, s10, m0\n"
                                : "v_writelane_b32 v40, s10, s11\n";
  hand.add("v_writelane_b32", named + "v_writelane_b32 v41, s10, 7", {"v_writelane_b32"},
           [lanes](const Hand::Run& run) {
             for (u32 i = 0; i < 100; ++i) {
               State state = random_state(run.batch.target(), i);
               if (i % 4 == 0) state.exec = 0;
               const State before = state;
               if (!run(state)) return;
               for (int lane = 0; lane < lanes; ++lane) {
                 const bool hit = before.s[11] % static_cast<u32>(lanes) == static_cast<u32>(lane);
                 ASSERT_EQ(state.v[40][lane], hit ? before.s[10] : before.v[40][lane]);
                 ASSERT_EQ(state.v[41][lane], lane == 7 ? before.s[10] : before.v[41][lane]);
               }
             }
           });
  const auto below = [](u32 mask, int lane, bool high) {
    u32 n = 0;
    for (int i = 0; i < 32; ++i) n += (i + (high ? 32 : 0) < lane) ? mask >> i & 1 : 0;
    return n;
  };
  hand.add("v_mbcnt_lo", "v_mbcnt_lo_u32_b32 v40, s10, v12", {"v_mbcnt_lo_u32_b32"},
           [below](const Hand::Run& run) {
             each_lane(run, [below](const State& s, int lane) {
               return below(s.s[10], lane, false) + s.v[12][lane];
             });
           });
  hand.add("v_mbcnt_hi", "v_mbcnt_hi_u32_b32 v40, v13, v12", {"v_mbcnt_hi_u32_b32"},
           [below](const Hand::Run& run) {
             each_lane(run, [below](const State& s, int lane) {
               return below(s.v[13][lane], lane, true) + s.v[12][lane];
             });
           });
  if (lanes == 32) {  // no effect
    hand.add("v_permlane64_b32", "v_permlane64_b32 v40, v12", {"v_permlane64_b32"},
             [](const Hand::Run& run) {
               each_lane(run, [](const State& s, int lane) { return s.v[40][lane]; });
             });
    return;
  }
  hand.add("v_permlane64_b32", "v_permlane64_b32 v40, v12", {"v_permlane64_b32"},
           [](const Hand::Run& run) {
             each_lane(run, [](const State& s, int lane) { return s.v[12][lane ^ 32]; });
           });
}

/// Returns the lane that ds_swizzle reads, computed from the definition of its offset.
int swizzled(int offset, int lane) {
  if (offset & 0x8000) return lane / 4 * 4 + (offset >> (2 * (lane % 4)) & 3);
  const int and_mask = offset & 31, or_mask = offset >> 5 & 31, xor_mask = offset >> 10 & 31;
  return lane / 32 * 32 + (((lane % 32 & and_mask) | or_mask) ^ xor_mask);
}

void add_lds_lanes(Hand& hand) {
  for (const int offset :
       {0x801f, 0x041f, 0x7c1f, 0x8000 | 0x1b, 0x8000 | 0xe4, 0x0007, 0x03e0, 0x2a15}) {
    hand.add("ds_swizzle_" + std::to_string(offset),
             "ds_swizzle_b32 v40, v12 offset:" + std::to_string(offset) + "\ns_waitcnt lgkmcnt(0)",
             {"ds_swizzle_b32"}, [offset](const Hand::Run& run) {
               each_lane(run, [offset](const State& s, int lane) {
                 const int from = swizzled(offset, lane);
                 return on(s, from) ? s.v[12][from] : 0;
               });
             });
  }
  // From gfx10 on, waves of 64 permute within their halves.
  const bool gfx9 = is_gfx9(hand.target());
  if (hand.target().wave64 && !gfx9) return;
  const int lanes = gfx9 ? 64 : 32;
  const auto named = [lanes](u32 address) {
    return static_cast<int>(address / 4 % static_cast<u32>(lanes));
  };
  hand.add("ds_bpermute_b32", "ds_bpermute_b32 v40, v11, v12\ns_waitcnt lgkmcnt(0)",
           {"ds_bpermute_b32"}, [named](const Hand::Run& run) {
             each_lane(run, [named](const State& s, int lane) {
               const int from = named(s.v[11][lane]);
               return on(s, from) ? s.v[12][from] : 0;
             });
           });
  hand.add("ds_bpermute_b32_offset",
           "ds_bpermute_b32 v40, v11, v40 offset:20\ns_waitcnt lgkmcnt(0)", {},
           [named](const Hand::Run& run) {
             each_lane(run, [named](const State& s, int lane) {
               const int from = named(s.v[11][lane] + 20);
               return on(s, from) ? s.v[40][from] : 0;
             });
           });
  hand.add("ds_permute_b32", "ds_permute_b32 v40, v11, v12\ns_waitcnt lgkmcnt(0)",
           {"ds_permute_b32"}, [named, lanes](const Hand::Run& run) {
             each_lane(run, [named, lanes](const State& s, int lane) {
               u32 value = 0;  // the last lane that sends to this lane wins
               for (int i = 0; i < lanes; ++i) {
                 if (on(s, i) && named(s.v[11][i]) == lane) value = s.v[12][i];
               }
               return value;
             });
           });
}

struct MixForm {
  const char* text;
  int hi[3], is_half[3], neg[3], abs[3];
};

void add_mix(Hand& hand) {
  static constexpr MixForm kForms[] = {
      {"", {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
      {" op_sel_hi:[1,1,1]", {0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {" op_sel:[1,0,1] op_sel_hi:[1,1,1]", {1, 0, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {" op_sel:[0,1,0] op_sel_hi:[1,1,0]", {0, 1, 0}, {1, 1, 0}, {0, 0, 0}, {0, 0, 0}},
      {" -v10, v20, -v30 op_sel:[1,1,0] op_sel_hi:[1,1,0]",
       {1, 1, 0},
       {1, 1, 0},
       {1, 0, 1},
       {0, 0, 0}},
      {" -|v10|, -v20, |v30| op_sel_hi:[1,0,0]", {0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {1, 0, 1}},
  };
  for (const char* name : {"v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"}) {
    for (const MixForm& form : kForms) {
      const std::string text = std::string(name) + " v40," +
                               (form.text[0] == 0 || form.text[1] == 'o' ? " v10, v20, v30" : "") +
                               form.text;
      const int kind = name[9] == '_' ? 0 : name[9] == 'l' ? 1 : 2;
      hand.add(text, text, {name}, [&form, kind](const Hand::Run& run) {
        const auto value = [&form](const State& s, int i, int lane) {
          const u32 bits = s.v[10 * (i + 1)][lane];
          float x = from_bits<float>(bits);
          if (form.is_half[i]) {
            x = static_cast<float>(
                static_cast<double>(from_bits<half>(form.hi[i] ? bits >> 16 : bits & 0xffff)));
          }
          if (form.abs[i]) x = std::abs(x);
          return form.neg[i] ? -x : x;
        };
        const auto want = [&](const State& s, int lane) -> u32 {
          const float x = std::fma(value(s, 0, lane), value(s, 1, lane), value(s, 2, lane));
          if (kind == 0) return static_cast<u32>(to_bits(x));
          const auto h = static_cast<u32>(to_bits(half_nearest(x)));
          const u32 old = s.v[40][lane];
          return kind == 1 ? (old & 0xffff0000) | h : (old & 0xffff) | h << 16;
        };
        Random random(5);
        for (int round = 0; round < 20; ++round) {
          each_lane(run, want, [&](State& s) {
            for (int reg : {10, 20, 30}) {
              for (u32& x : s.v[reg]) {
                do {  // the bits of NaN are unspecified
                  x = static_cast<u32>(interesting(Type::pk_f16, random)) & 0xf7fff7ff;
                } while ((x & 0x7f800000) == 0x7f800000);
              }
            }
          });
        }
      });
    }
  }
}

/// Returns c plus the products of the `bits`-bit elements of two registers.
i64 dot(u32 a, u32 b, i64 c, int bits, bool signed_a, bool signed_b) {
  for (int i = 0; i < 32; i += bits) {
    const auto part = [&](u32 x, bool is_signed) {
      const i64 n = x >> i & ((1 << bits) - 1);
      return is_signed && n >> (bits - 1) ? n - (1 << bits) : n;
    };
    c += part(a, signed_a) * part(b, signed_b);
  }
  return c;
}

/// Sets addends whose sums overflow.
void put_limits(State& s, size_t reg) {
  s.v[reg][3] = 0x7fffffff;
  s.v[reg][4] = 0x80000001;
  s.v[reg][5] = 0xfffffffe;
  s.v[reg][6] = 0xffffffff;
  s.v[10][6] = s.v[20][6] = 0x80008000;
}

/// Dot products of gfx9, whose names say which sources are signed. If the name contains `c`, the
/// destination is the addend.
void add_named_dots(Hand& hand) {
  struct Named {
    const char* name;
    int bits;
    bool is_signed, accumulates;
  };
  static constexpr Named kNamed[] = {
      {"v_dot4_i32_i8", 8, true, false},   {"v_dot8_i32_i4", 4, true, false},
      {"v_dot2_i32_i16", 16, true, false}, {"v_dot2_u32_u16", 16, false, false},
      {"v_dot4c_i32_i8", 8, true, true},   {"v_dot8c_i32_i4", 4, true, true},
      {"v_dot2c_i32_i16", 16, true, true}};
  for (const Named& n : kNamed) {
    for (const bool clamp : {false, true}) {
      if (clamp && n.accumulates) continue;
      const std::string text = std::string(n.name) + " v40, v10, v20" +
                               (n.accumulates ? "" : ", v30") + (clamp ? " clamp" : "");
      const size_t addend = n.accumulates ? 40 : 30;
      hand.add(text, text, {n.name}, [&n, clamp, addend](const Hand::Run& run) {
        each_lane(
            run,
            [&n, clamp, addend](const State& s, int lane) {
              const u32 c = s.v[addend][lane];
              const i64 total =
                  dot(s.v[10][lane], s.v[20][lane], n.is_signed ? i64{static_cast<i32>(c)} : i64{c},
                      n.bits, n.is_signed, n.is_signed);
              if (!clamp) return static_cast<u32>(total);
              return n.is_signed ? static_cast<u32>(saturate<i32>(total)) : saturate<u32>(total);
            },
            [addend](State& s) { put_limits(s, addend); });
      });
    }
  }
}

/// Integer dot products of gfx11, whose signs neg_lo selects.
void add_mixed_dots(Hand& hand) {
  for (int bits : {8, 4}) {
    const std::string name = bits == 8 ? "v_dot4_i32_iu8" : "v_dot8_i32_iu4";
    for (int neg = 0; neg < 4; ++neg) {
      for (const bool clamp : {false, true}) {
        const std::string text = name + " v40, v10, v20, v30 neg_lo:[" + std::to_string(neg & 1) +
                                 "," + std::to_string(neg >> 1) + ",0]" + (clamp ? " clamp" : "");
        hand.add(text, text, {name}, [=](const Hand::Run& run) {
          each_lane(
              run,
              [=](const State& s, int lane) {
                const i64 total = dot(s.v[10][lane], s.v[20][lane], static_cast<i32>(s.v[30][lane]),
                                      bits, neg & 1, neg & 2);
                return static_cast<u32>(clamp ? saturate<i32>(total) : static_cast<i32>(total));
              },
              [](State& s) { put_limits(s, 30); });
        });
      }
    }
  }
}

/// Sets halves whose products have exact sums, because the order of additions is unspecified.
void put_small_halves(State& s, bool bf16) {
  Random random(3);
  for (int reg : {10, 20}) {
    for (u32& x : s.v[reg]) {
      const auto one = [&] {
        const float f = static_cast<float>(static_cast<int>(random.below(17)) - 8) / 4;
        return bf16 ? static_cast<u32>(to_bits(f)) >> 16
                    : static_cast<u32>(to_bits(static_cast<half>(f)));
      };
      x = one() | one() << 16;
    }
  }
  for (int reg : {30, 40}) {
    for (u32& x : s.v[reg]) x = static_cast<u32>(to_bits(static_cast<float>(random.below(64)) / 8));
  }
}

void add_float_dots(Hand& hand) {
  const auto h = [](u32 bits) {
    return static_cast<float>(static_cast<double>(from_bits<half>(bits & 0xffff)));
  };
  const auto b = [](u32 bits) { return bf16_value(static_cast<u16>(bits)); };
  const auto add_float = [&](const char* name, const char* operands, auto part, bool bf16, int c) {
    hand.add(name, std::string(name) + operands, {name}, [=](const Hand::Run& run) {
      each_lane(
          run,
          [=](const State& s, int lane) {
            const u32 x = s.v[10][lane], y = s.v[20][lane];
            const float sum = part(x) * part(y) + part(x >> 16) * part(y >> 16);
            return static_cast<u32>(to_bits(sum + from_bits<float>(s.v[c][lane])));
          },
          [=](State& s) { put_small_halves(s, bf16); });
    });
  };
  add_float("v_dot2_f32_f16", " v40, v10, v20, v30", h, false, 30);
  add_float("v_dot2_f32_bf16", " v40, v10, v20, v30", b, true, 30);
  add_float("v_dot2acc_f32_f16", " v40, v10, v20", h, false, 40);
  hand.add("v_dot2_f16_f16", "v_dot2_f16_f16 v40, v10, v20, v30", {"v_dot2_f16_f16"},
           [=](const Hand::Run& run) {
             each_lane(
                 run,
                 [=](const State& s, int lane) {
                   const u32 x = s.v[10][lane], y = s.v[20][lane];
                   const float sum = h(x) * h(y) + h(x >> 16) * h(y >> 16) + h(s.v[30][lane]);
                   return (s.v[40][lane] & 0xffff0000) |
                          static_cast<u32>(to_bits(static_cast<half>(sum)));
                 },
                 [=](State& s) {
                   put_small_halves(s, false);
                   for (u32& x : s.v[30]) x = 0x3c00;
                 });
           });
}

}  // namespace

void register_lanes() {
  for (const Target& target : all_targets()) {
    Hand hand("Lanes", target);
    add_permlanes(hand);
    add_reads(hand);
    add_lds_lanes(hand);
    add_mix(hand);
    add_mixed_dots(hand);
    add_named_dots(hand);
    add_float_dots(hand);
  }
}

}  // namespace emu::test
