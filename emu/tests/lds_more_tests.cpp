// LDS: all patterns of ds_swizzle, exchanges of two elements, accesses by the lane's number, rarer
// atomics, permutations that read inactive lanes, and loads from memory into LDS.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

u32 lds_dword(const State& state, u32 address) {
  u32 value;
  std::memcpy(&value, state.lds.data() + address, sizeof value);
  return value;
}

const std::string kWait = "\ns_waitcnt vmcnt(0) lgkmcnt(0)";

// ---- ds_swizzle

/// The lane that a lane reads, by the ISA documents' description of each mode.
u32 swizzled(u32 pattern, u32 lane) {
  const u32 group = lane & 32, i = lane & 31;
  if (pattern >= 0xe000) {  // the fast Fourier transform
    const u32 mask = pattern & 31;
    if (mask == 31) return lane;
    u32 bits = 0, ones = 0;
    for (int k = 0; k < 5; ++k) {
      if ((i >> k & 1) != 0) bits |= 16u >> k;
      ones += mask >> k & 1;
    }
    return group | (bits >> ones) | (i & mask);
  }
  if (pattern >= 0xc000) {  // a rotation
    const int count = static_cast<int>(pattern >> 5 & 31),
              by = (pattern & 0x400) != 0 ? -count : count;
    const u32 mask = pattern & 31, moved = static_cast<u32>(static_cast<int>(i) + by) & 31;
    return group | (i & mask) | (moved & ~mask);
  }
  if (pattern >= 0x8000) return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
  return group | (((i & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
}

void add_swizzles(Hand& hand) {
  const auto lanes = static_cast<u32>(hand.target().lanes());
  for (const u32 pattern : {0xe000u, 0xe010u, 0xe01cu, 0xe01fu, 0xc000u, 0xc020u, 0xc0a0u, 0xc4e8u,
                            0xc077u, 0x801bu, 0x0c1fu, 0x2c33u}) {
    const std::string text = "ds_swizzle_b32 v40, v10 offset:" + std::to_string(pattern);
    hand.add(text, text + kWait, {"ds_swizzle_b32"}, [=](const Hand::Run& run) {
      for (const u64 exec : {~u64{0}, u64{0xf0f0'1234'8001'fff7}}) {
        State state = random_state(run.batch.target(), 7);
        state.exec = lanes == 64 ? exec : exec & 0xffffffff;
        const State before = state;
        if (!run(state)) return;
        for (u32 lane = 0; lane < lanes; ++lane) {
          const u32 from = swizzled(pattern, lane);
          const bool on = (before.exec >> lane & 1) != 0, read = (before.exec >> from & 1) != 0;
          ASSERT_EQ(state.v[40][lane], !on    ? before.v[40][lane]
                                       : read ? before.v[10][from]
                                              : 0)
              << "lane " << lane;
        }
      }
    });
  }
}

// ---- Exchanges and atomics

/// Each lane has addresses of its own.
void set_addresses(State& state, size_t reg, u32 step) {
  for (u32 lane = 0; lane < 64; ++lane) state.v[reg][lane] = lane * step;
}

void add_exchanges(Hand& hand) {
  struct Case {
    const char* name;
    u32 dwords, stride;
  };
  for (const Case& c :
       {Case{"ds_storexchg_2addr_rtn_b32", 1, 1}, Case{"ds_storexchg_2addr_rtn_b64", 2, 1},
        Case{"ds_storexchg_2addr_stride64_rtn_b32", 1, 64},
        Case{"ds_storexchg_2addr_stride64_rtn_b64", 2, 64}}) {
    const std::string name = c.name;
    // The results overlap the second data.
    const int dwords = static_cast<int>(c.dwords);
    const std::string text = name + " " + range(40, 2 * dwords) + ", v10, " + range(20, dwords) +
                             ", " + range(40, dwords) + " offset0:1 offset1:3" + kWait;
    hand.add(name, text, {name}, [c](const Hand::Run& run) {
      const auto lanes = static_cast<u32>(run.batch.target().lanes());
      State state = random_state(run.batch.target(), 4);
      set_addresses(state, 10, 4 * c.dwords * (c.stride == 1 ? 4 : 1));
      const State before = state;
      if (!run(state)) return;
      const u32 unit = 4 * c.dwords * c.stride;
      for (u32 lane = 0; lane < lanes; ++lane) {
        for (u32 i = 0; i < c.dwords; ++i) {
          const u32 first = before.v[10][lane] + unit + 4 * i, second = first + 2 * unit;
          ASSERT_EQ(state.v[40 + i][lane], lds_dword(before, first)) << lane;
          ASSERT_EQ(state.v[40 + c.dwords + i][lane], lds_dword(before, second)) << lane;
          ASSERT_EQ(lds_dword(state, first), before.v[20 + i][lane]) << lane;
          ASSERT_EQ(lds_dword(state, second), before.v[40 + i][lane]) << lane;
        }
      }
    });
  }
}

void add_by_lane(Hand& hand) {
  const std::string load = "ds_load_addtid_b32", store = "ds_store_addtid_b32";
  const std::string text =
      "s_mov_b32 m0, s10\n" + load + " v40 offset:8\n" + store + " v20 offset:1024" + kWait;
  hand.add(load, text, {load, store}, [](const Hand::Run& run) {
    const auto lanes = static_cast<u32>(run.batch.target().lanes());
    State state = random_state(run.batch.target(), 4);
    state.s[10] = 64;
    const State before = state;
    if (!run(state)) return;
    for (u32 lane = 0; lane < lanes; ++lane) {
      EXPECT_EQ(state.v[40][lane], lds_dword(before, 72 + 4 * lane));
      EXPECT_EQ(lds_dword(state, 1088 + 4 * lane), before.v[20][lane]);
    }
  });
}

void add_atomic(Hand& hand, const std::string& name, u32 (*f)(u32 old, u32 data)) {
  hand.add(name, name + " v40, v10, v20" + kWait, {name}, [f](const Hand::Run& run) {
    const auto lanes = static_cast<u32>(run.batch.target().lanes());
    State state = random_state(run.batch.target(), 4);
    set_addresses(state, 10, 4);
    for (u32 lane = 0; lane < lanes; lane += 3) state.v[20][lane] = lds_dword(state, 4 * lane) - 1;
    const State before = state;
    if (!run(state)) return;
    for (u32 lane = 0; lane < lanes; ++lane) {
      const u32 old = lds_dword(before, 4 * lane);
      ASSERT_EQ(state.v[40][lane], old);
      ASSERT_EQ(lds_dword(state, 4 * lane), f(old, before.v[20][lane]));
    }
  });
}

void add_conditional_exchange(Hand& hand) {
  const std::string name = "ds_condxchg32_rtn_b64";
  const std::string text = name + " v[40:41], v10, v[20:21]" + kWait;
  hand.add(name, text, {name}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 4);
    set_addresses(state, 10, 8);
    const State before = state;
    if (!run(state)) return;
    for (u32 lane = 0; lane < 32; ++lane) {
      for (u32 i = 0; i < 2; ++i) {
        const u32 old = lds_dword(before, 8 * lane + 4 * i), data = before.v[20 + i][lane];
        ASSERT_EQ(state.v[40 + i][lane], old);
        ASSERT_EQ(lds_dword(state, 8 * lane + 4 * i), data >> 31 != 0 ? data & 0x7fffffff : old);
      }
    }
  });
}

u32 packed_bf16_sum(u32 old, u32 data) {
  u32 result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const float sum =
        bf16_value(static_cast<u16>(old >> shift)) + bf16_value(static_cast<u16>(data >> shift));
    u32 bits = std::bit_cast<u32>(sum);
    const u32 below = bits & 0xffff;
    bits >>= 16;
    if (sum != sum) {
      bits |= 0x40;
    } else if (below > 0x8000 || (below == 0x8000 && (bits & 1) != 0)) {
      ++bits;
    }
    result |= bits << shift;
  }
  return result;
}

/// gfx12's ds_bpermute_fi_b32, which the assembler doesn't know.
void add_permutation(Hand& hand) {
  constexpr u32 kOpcode = 0xcd;
  char words[64];
  std::snprintf(words, sizeof words, ".long 0x%08x\n.long 0x%08x", 0xd8000000 | kOpcode << 18 | 4,
                10u | 20u << 8 | 40u << 24);
  hand.add("ds_bpermute_fi_b32", words + kWait, {"ds_bpermute_fi_b32"}, [](const Hand::Run& run) {
    State state = random_state(run.batch.target(), 6);
    state.exec = 0x8001fff7;
    const State before = state;
    if (!run(state)) return;
    for (u32 lane = 0; lane < 32; ++lane) {
      const u32 from = (before.v[10][lane] + 4) / 4 % 32;
      const bool on = (before.exec >> lane & 1) != 0;
      EXPECT_EQ(state.v[40][lane], on ? before.v[20][from] : before.v[40][lane]) << lane;
    }
  });
}

/// Fields that an opcode doesn't use don't matter.
void add_unused_fields(Hand& hand) {
  const auto patch = [](std::vector<u32>& words) { words[1] |= 0x0b0c0000; };
  hand.add(
      "unused_fields", "ds_add_u32 v10, v20" + kWait, {},
      [](const Hand::Run& run) {
        State state = random_state(run.batch.target(), 6);
        set_addresses(state, 10, 4);
        const State before = state;
        if (!run(state)) return;
        for (u32 lane = 0; lane < 32; ++lane) {
          ASSERT_EQ(lds_dword(state, 4 * lane), lds_dword(before, 4 * lane) + before.v[20][lane]);
        }
        EXPECT_EQ(state.v[11], before.v[11]);
        EXPECT_EQ(state.v[12], before.v[12]);
      },
      patch);
}

// ---- Loads from memory into LDS

struct ToLds {
  const char* suffix;
  u32 bytes;  // of an element, or of each of its dwords
  bool with_sign;
  u32 dwords = 1;
  u32 opcode = 0;  // gfx950's of global memory
};
constexpr ToLds kToLds[] = {{"ubyte", 1, false},
                            {"sbyte", 1, true},
                            {"ushort", 2, false},
                            {"sshort", 2, true},
                            {"dword", 4, false}};
constexpr ToLds kWideToLds[] = {{"dwordx3", 4, false, 3, 0x7e}, {"dwordx4", 4, false, 4, 0x7d}};

/// The dword that an element becomes.
u32 extended(const u8* from, const ToLds& c) {
  u32 value = 0;
  std::memcpy(&value, from, c.bytes);
  const u32 bits = 8 * c.bytes;
  if (c.with_sign && bits < 32 && (value >> (bits - 1) & 1) != 0) value |= ~0u << bits;
  return value;
}

/// v10 has offsets from s[10:11], and M0 is 64.
void check_to_lds(const Hand::Run& run, const ToLds& c) {
  alignas(64) static u8 memory[1024];
  Random random(5);
  for (u8& byte : memory) byte = static_cast<u8>(random.next());
  State state = random_state(run.batch.target(), 5);
  state.exec = 0xf0f0'1234'8001'fff7;
  state.s[4] = 64;
  state.set_s64(10, reinterpret_cast<u64>(memory));
  state.s[8] = static_cast<u32>(reinterpret_cast<u64>(memory));  // a buffer of 1024 bytes
  state.s[9] = static_cast<u32>(reinterpret_cast<u64>(memory) >> 32);
  state.s[12] = static_cast<u32>(reinterpret_cast<u64>(memory));
  state.s[13] = static_cast<u32>(reinterpret_cast<u64>(memory) >> 32);
  state.s[14] = sizeof memory;
  state.s[15] = 0;
  for (u32 lane = 0; lane < 64; ++lane) state.v[10][lane] = random.below(240) * 4;
  const State before = state;
  if (!run(state)) return;
  for (u32 i = 0; i < 64 * c.dwords; ++i) {
    const u32 lane = i / c.dwords, at = 64 + 8 + 4 * i;
    const bool on = (before.exec >> lane & 1) != 0;
    const u8* from = memory + before.v[10][lane] + 8 + 4 * (i % c.dwords);
    ASSERT_EQ(lds_dword(state, at), on ? extended(from, c) : lds_dword(before, at))
        << "lane " << lane;
  }
}

void add_to_lds(Hand& hand) {
  for (const ToLds& c : kToLds) {
    const std::string global = std::string("global_load_lds_") + c.suffix;
    const std::string buffer = std::string("buffer_load_") + c.suffix;
    const auto check = [&c](const Hand::Run& run) { check_to_lds(run, c); };
    hand.add(global, "s_mov_b32 m0, s4\n" + global + " v10, s[10:11] offset:8\ns_waitcnt vmcnt(0)",
             {global}, check);
    hand.add(
        buffer + "_lds",
        "s_mov_b32 m0, s4\n" + buffer + " v10, s[12:15], 0 offen offset:8 lds\ns_waitcnt vmcnt(0)",
        {}, check);
  }
}

/// Until gfx940, a bit of global loads says that they write to LDS.
void add_old_to_lds(Hand& hand) {
  for (const ToLds& c : kToLds) {
    const std::string name = std::string("global_load_") + c.suffix;
    hand.add(name + "_lds",
             "s_mov_b32 m0, s4\n" + name + " v10, s[10:11] offset:8 lds\ns_waitcnt vmcnt(0)", {},
             [&c](const Hand::Run& run) { check_to_lds(run, c); });
  }
}

/// gfx950's instructions, which the assembler doesn't know, take the places of others.
void add_wide_to_lds(Hand& hand) {
  for (const ToLds& c : kWideToLds) {
    const std::string global = std::string("global_load_lds_") + c.suffix;
    constexpr size_t kAfterM0 = 1;  // the words of s_mov_b32
    hand.add(
        global,
        "s_mov_b32 m0, s4\nglobal_load_lds_dword v10, s[10:11] offset:8\ns_waitcnt vmcnt(0)",
        {global}, [&c](const Hand::Run& run) { check_to_lds(run, c); },
        [&c](std::vector<u32>& words) {
          words[kAfterM0] = (words[kAfterM0] & ~(0x7fu << 18)) | c.opcode << 18;
        });
    // The assembler refuses the bit that says that the load writes to LDS.
    const std::string buffer = std::string("buffer_load_") + c.suffix;
    const std::string data = c.dwords == 3 ? " v[20:22]" : " v[20:23]";
    hand.add(
        buffer + "_lds",
        "s_mov_b32 m0, s4\n" + buffer + data +
            ", v10, s[12:15], 0 offen offset:8\ns_waitcnt vmcnt(0)",
        {}, [&c](const Hand::Run& run) { check_to_lds(run, c); },
        [](std::vector<u32>& words) { words[kAfterM0] |= 1u << 16; });
  }
}

}  // namespace

void register_lds_more() {
  for (const Target& target : all_chips()) {
    Hand hand("LdsMore", target);
    add_swizzles(hand);
    add_exchanges(hand);
    add_by_lane(hand);
    add_conditional_exchange(hand);
    add_unused_fields(hand);
    add_atomic(hand, "ds_cond_sub_rtn_u32",
               [](u32 old, u32 data) { return old >= data ? old - data : old; });
    add_atomic(hand, "ds_sub_clamp_rtn_u32",
               [](u32 old, u32 data) { return old >= data ? old - data : 0; });
    add_atomic(hand, "ds_pk_add_rtn_bf16", &packed_bf16_sum);
    if (generation(target) == 12) add_permutation(hand);
    if (!is_gfx9(target)) continue;
    add_to_lds(hand);
    if (target.arch == "gfx90a") add_old_to_lds(hand);
    if (target.arch == "gfx950") add_wide_to_lds(hand);
  }
}

}  // namespace emu::test
