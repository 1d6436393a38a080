// Buffer instructions: base, bounds and stride of the resource, and the addressing forms.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u32 kRawWord3 = 0x31004000;         // bounds in bytes, as on gfx9 without a stride
constexpr u32 kStructuredWord3 = 0x01004000;  // bounds in records

void set_resource(State& s, const void* base, u32 bytes, u32 stride = 0) {
  s.set_s64(20, reinterpret_cast<u64>(base) | u64{stride} << 48);
  s.s[22] = bytes;
  s.s[23] = stride == 0 ? kRawWord3 : kStructuredWord3;
}

struct Load {
  const char* name;
  int dwords;
  std::function<u32(const uint8_t*, int, u32)> value;
};

u32 word(const uint8_t* from, int i) {
  u32 x;
  std::memcpy(&x, from + 4 * i, 4);
  return x;
}

std::vector<Load> loads() {
  const auto whole = [](const uint8_t* p, int i, u32) { return word(p, i); };
  return {
      {"buffer_load_b32", 1, whole},
      {"buffer_load_b64", 2, whole},
      {"buffer_load_b96", 3, whole},
      {"buffer_load_b128", 4, whole},
      {"buffer_load_u8", 1, [](const uint8_t* p, int, u32) { return u32{p[0]}; }},
      {"buffer_load_i8", 1,
       [](const uint8_t* p, int, u32) { return static_cast<u32>(i32{static_cast<int8_t>(p[0])}); }},
      {"buffer_load_u16", 1, [](const uint8_t* p, int, u32) { return word(p, 0) & 0xffff; }},
      {"buffer_load_i16", 1,
       [](const uint8_t* p, int, u32) {
         return static_cast<u32>(i32{static_cast<i16>(word(p, 0))});
       }},
      {"buffer_load_d16_b16", 1,
       [](const uint8_t* p, int, u32 old) { return (old & 0xffff0000) | (word(p, 0) & 0xffff); }},
      {"buffer_load_d16_hi_b16", 1,
       [](const uint8_t* p, int, u32 old) { return (old & 0xffff) | word(p, 0) << 16; }},
      {"buffer_load_d16_u8", 1,
       [](const uint8_t* p, int, u32 old) { return (old & 0xffff0000) | p[0]; }},
      {"buffer_load_d16_i8", 1,
       [](const uint8_t* p, int, u32 old) {
         return (old & 0xffff0000) | static_cast<u16>(static_cast<int8_t>(p[0]));
       }},
      {"buffer_load_d16_hi_i8", 1,
       [](const uint8_t* p, int, u32 old) {
         return (old & 0xffff) | static_cast<u32>(static_cast<u16>(static_cast<int8_t>(p[0])))
                                     << 16;
       }},
      {"buffer_load_d16_hi_u8", 1,
       [](const uint8_t* p, int, u32 old) { return (old & 0xffff) | u32{p[0]} << 16; }},
  };
}

void add_loads(Hand& hand) {
  for (const Load& load : loads()) {
    const std::string name = load.name;
    hand.add(name, name + " " + range(40, load.dwords) + ", v2, s[20:23], s10 offen offset:12",
             {name}, [load](const Hand::Run& run) {
               alignas(64) uint8_t memory[2048];
               for (int i = 0; i < 2048; ++i) memory[i] = static_cast<uint8_t>(i * 73 + 5);
               const int lanes = run.batch.target().lanes();
               const u32 end = lanes == 64 ? 900 : 400;
               State state = random_state(run.batch.target(), 1);
               set_resource(state, memory, end);
               state.s[10] = 16;
               state.exec &= 0xfff0fffdffff0fff;
               // The last lanes are beyond the end and read zero.
               for (int lane = 0; lane < lanes; ++lane) {
                 state.v[2][lane] = static_cast<u32>(lane) * 16;
               }
               const State before = state;
               if (!run(state)) return;
               static const uint8_t zero[16] = {};
               for (int lane = 0; lane < lanes; ++lane) {
                 for (int d = 0; d < load.dwords; ++d) {
                   const u32 at = before.v[2][lane] + 12, old = before.v[40 + d][lane];
                   // With ECC in the registers, a load into one half clears the other.
                   const u32 kept = is_gfx9(run.batch.target()) ? 0 : old;
                   const bool inside = at + 16 + static_cast<u32>(4 * load.dwords) <= end;
                   // Elements that cross the end: the rules differ.
                   if (!inside && at + 16 < end + 16) continue;
                   u32 want = load.value(inside ? memory + at + 16 : zero, d, kept);
                   if (!(state.exec >> lane & 1)) want = old;
                   ASSERT_EQ(state.v[40 + d][lane], want) << load.name << " lane " << lane;
                 }
               }
             });
  }
}

void add_stores(Hand& hand) {
  for (const auto& [name, bytes, hi] :
       std::vector<std::tuple<std::string, int, bool>>{{"b8", 1, false},
                                                       {"b16", 2, false},
                                                       {"b32", 4, false},
                                                       {"b64", 8, false},
                                                       {"b96", 12, false},
                                                       {"b128", 16, false},
                                                       {"d16_hi_b16", 2, true},
                                                       {"d16_hi_b8", 1, true}}) {
    const std::string op = "buffer_store_" + name;
    hand.add(op, op + " " + range(30, (bytes + 3) / 4) + ", v2, s[20:23], 0 offen offset:4", {op},
             [bytes = bytes, hi = hi](const Hand::Run& run) {
               alignas(64) uint8_t memory[2048] = {}, want[2048] = {};
               const int lanes = run.batch.target().lanes();
               State state = random_state(run.batch.target(), 1);
               set_resource(state, memory, static_cast<u32>(lanes) * 16 + 4);
               state.exec &= ~u64{8};
               for (int lane = 0; lane < lanes; ++lane) {
                 state.v[2][lane] = static_cast<u32>(lane) * 32;
                 // Out of bounds: the store is dropped.
                 if (lane >= lanes / 2 || lane == 3) continue;
                 for (int i = 0; i < bytes; ++i) {
                   const int at = i + (hi ? 2 : 0);
                   want[lane * 32 + 4 + i] =
                       static_cast<uint8_t>(state.v[30 + at / 4][lane] >> (8 * (at % 4)));
                 }
               }
               if (!run(state)) return;
               EXPECT_EQ(std::memcmp(memory, want, sizeof memory), 0);
             });
  }
}

void add_structured(Hand& hand) {
  const std::string load = "buffer_load_b32";
  // A record has 24 bytes. The index is in one register and the offset in the next.
  hand.add("structured", load + " v40, v[2:3], s[20:23], 0 idxen offen offset:4", {},
           [](const Hand::Run& run) {
             alignas(64) u32 memory[512];
             for (u32 i = 0; i < 512; ++i) memory[i] = i * 3 + 1;
             const auto lanes = static_cast<u32>(run.batch.target().lanes());
             State state = random_state(run.batch.target(), 1);
             set_resource(state, memory, lanes - 2, 24);
             for (u32 lane = 0; lane < lanes; ++lane) {
               state.v[2][lane] = lane;
               state.v[3][lane] = lane % 4 * 4;
             }
             if (!run(state)) return;
             for (u32 lane = 0; lane < lanes; ++lane) {
               const u32 at = lane * 6 + lane % 4 + 1;
               EXPECT_EQ(state.v[40][lane], lane < lanes - 2 ? at * 3 + 1 : 0u) << lane;
             }
           });
  hand.add("index_alone", load + " v40, v2, s[20:23], 0 idxen offset:8", {},
           [](const Hand::Run& run) {
             alignas(64) u32 memory[256];
             for (u32 i = 0; i < 256; ++i) memory[i] = i * 3 + 1;
             const auto lanes = static_cast<u32>(run.batch.target().lanes());
             State state = random_state(run.batch.target(), 1);
             set_resource(state, memory, 64, 16);
             for (u32 lane = 0; lane < lanes; ++lane) state.v[2][lane] = lanes - 1 - lane;
             if (!run(state)) return;
             for (u32 lane = 0; lane < lanes; ++lane) {
               EXPECT_EQ(state.v[40][lane], ((lanes - 1 - lane) * 4 + 2) * 3 + 1);
             }
           });
  hand.add("scalar_offset", load + " v40, v2, s[20:23], s10 offen", {}, [](const Hand::Run& run) {
    alignas(64) u32 memory[128];
    for (u32 i = 0; i < 128; ++i) memory[i] = i + 100;
    const auto lanes = static_cast<u32>(run.batch.target().lanes());
    State state = random_state(run.batch.target(), 1);
    set_resource(state, memory, 4 * lanes);
    state.s[10] = 32;
    for (u32 lane = 0; lane < lanes; ++lane) state.v[2][lane] = lane * 4;
    if (!run(state)) return;
    // Only gfx9 includes the scalar offset in the bounds check.
    const u32 within = is_gfx9(run.batch.target()) ? lanes - 8 : lanes;
    for (u32 lane = 0; lane < lanes; ++lane) {
      EXPECT_EQ(state.v[40][lane], lane < within ? lane + 108 : 0u) << lane;
    }
  });
  hand.add("no_register", load + " v40, off, s[20:23], 0 offset:20", {}, [](const Hand::Run& run) {
    alignas(64) u32 memory[16] = {0, 1, 2, 3, 4, 55};
    State state = random_state(run.batch.target(), 1);
    set_resource(state, memory, 64);
    if (!run(state)) return;
    for (int lane = 0; lane < run.batch.target().lanes(); ++lane) {
      EXPECT_EQ(state.v[40][lane], 55u);
    }
  });
}

/// The register of a status keeps its value, because all pages are resident.
void add_status(Hand& hand) {
  if (is_gfx9(hand.target())) return;  // its field is of the accumulation registers
  hand.add("with_a_status", "buffer_load_b64 v[40:42], v2, s[20:23], 0 offen tfe", {},
           [](const Hand::Run& run) {
             alignas(64) u32 memory[128];
             for (u32 i = 0; i < 128; ++i) memory[i] = i * 7 + 3;
             State state = random_state(run.batch.target(), 1);
             set_resource(state, memory, 504);
             for (u32 lane = 0; lane < 32; ++lane) state.v[2][lane] = lane * 16;
             const State before = state;
             if (!run(state)) return;
             for (u32 lane = 0; lane < 32; ++lane) {
               EXPECT_EQ(state.v[40][lane], lane * 28 + 3) << lane;
               EXPECT_EQ(state.v[41][lane], lane * 28 + 10) << lane;
             }
             EXPECT_EQ(state.v[42], before.v[42]);
           });
}

void add_scalar_loads(Hand& hand) {
  for (int dwords : {1, 2, 4, 8, 16}) {
    const std::string op = "s_buffer_load_b" + std::to_string(32 * dwords);
    const std::string to = dwords == 1 ? "s40" : "s[40:" + std::to_string(39 + dwords) + "]";
    hand.add(op, op + " " + to + ", s[20:23], 0x10", {op}, [dwords](const Hand::Run& run) {
      alignas(64) u32 memory[64];
      for (u32 i = 0; i < 64; ++i) memory[i] = i + 100;
      State state = random_state(run.batch.target(), 1);
      set_resource(state, memory, 256);
      if (!run(state)) return;
      for (u32 i = 0; i < static_cast<u32>(dwords); ++i) EXPECT_EQ(state.s[40 + i], 104 + i);
    });
  }
}

}  // namespace

void register_buffers() {
  for (const Target& target : all_chips()) {
    Hand hand("Buffers", target);
    add_loads(hand);
    add_stores(hand);
    add_structured(hand);
    add_status(hand);
    add_scalar_loads(hand);
  }
}

}  // namespace emu::test
