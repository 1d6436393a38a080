// Loads and stores: global, flat, scratch, LDS and scalar, with each width, offset and addressing
// form.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u64 kSome = 0x00ff3cc3a55a0ff1;

struct Access {
  const char* suffix;
  int bytes;
  bool is_signed, d16, hi;
};

constexpr Access kLoads[] = {
    {"u8", 1, false, false, false},     {"i8", 1, true, false, false},
    {"u16", 2, false, false, false},    {"i16", 2, true, false, false},
    {"b32", 4, false, false, false},    {"b64", 8, false, false, false},
    {"b96", 12, false, false, false},   {"b128", 16, false, false, false},
    {"d16_u8", 1, false, true, false},  {"d16_i8", 1, true, true, false},
    {"d16_b16", 2, false, true, false}, {"d16_hi_u8", 1, false, true, true},
    {"d16_hi_i8", 1, true, true, true}, {"d16_hi_b16", 2, false, true, true},
};
constexpr Access kStores[] = {
    {"b8", 1, false, false, false},      {"b16", 2, false, false, false},
    {"b32", 4, false, false, false},     {"b64", 8, false, false, false},
    {"b96", 12, false, false, false},    {"b128", 16, false, false, false},
    {"d16_hi_b8", 1, false, true, true}, {"d16_hi_b16", 2, false, true, true},
};

/// Returns the value that a load leaves in a register of the destination. On gfx90a, whose
/// registers have ECC, a load into one half clears the other.
u32 loaded(const Target& target, const Access& access, const uint8_t* from, int dword, u32 old) {
  if (is_gfx9(target)) old = 0;
  if (access.bytes >= 4) {
    u32 value;
    std::memcpy(&value, from + 4 * dword, 4);
    return value;
  }
  i32 value = access.bytes == 1 ? from[0] : from[0] | from[1] << 8;
  if (access.is_signed)
    value = access.bytes == 1 ? static_cast<int8_t>(value) : static_cast<i16>(value);
  const u32 bits = static_cast<u32>(value);
  if (!access.d16) return bits;
  return access.hi ? (old & 0xffff) | bits << 16 : (old & 0xffff0000) | (bits & 0xffff);
}

std::string registers(int first, int bytes) {
  const int count = (bytes + 3) / 4;
  if (count == 1) return "v" + std::to_string(first);
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

/// The relation between the lanes' addresses.
enum class Pattern { contiguous, same, scattered, backwards };
constexpr Pattern kPatterns[] = {Pattern::contiguous, Pattern::same, Pattern::scattered,
                                 Pattern::backwards};

u32 place(Pattern pattern, int lane, int bytes, int lanes) {
  const u32 slot = static_cast<u32>((bytes + 3) / 4 * 4);
  switch (pattern) {
    case Pattern::contiguous:
      return static_cast<u32>(lane) * static_cast<u32>(bytes);
    case Pattern::same:
      return 64;
    case Pattern::scattered:
      return static_cast<u32>(lane * 37 % lanes) * slot;
    case Pattern::backwards:
      return static_cast<u32>(lanes - 1 - lane) * slot;
  }
  return 0;
}

struct Block {
  alignas(64) uint8_t bytes[8192];
};

/// An addressing form, with a function that sets a lane's address registers for byte `at` of the
/// memory.
struct Form {
  std::string name, space;  // "global", "flat", "ds", "scratch"
  std::string address, base;
  int offset;
  std::function<void(State&, int lane, u32 at, uint8_t* memory)> set;
};

void set_pair(State& s, int lane, u64 address) { s.set_v64(2, lane, address); }

std::vector<Form> forms() {
  std::vector<Form> all;
  for (int offset : {0, 40, -32}) {
    all.push_back({"global_pair", "global", "v[2:3]", "off", offset,
                   [offset](State& s, int lane, u32 at, uint8_t* memory) {
                     set_pair(s, lane,
                              reinterpret_cast<u64>(memory) + at - static_cast<u64>(i64{offset}));
                   }});
    all.push_back({"global_base", "global", "v2", "s[10:11]", offset,
                   [offset](State& s, int lane, u32 at, uint8_t* memory) {
                     s.set_s64(10, reinterpret_cast<u64>(memory) - static_cast<u64>(i64{offset}) -
                                       0x10000);
                     s.v[2][lane] = at + 0x10000;
                   }});
    if (offset < 0) continue;
    all.push_back({"flat", "flat", "v[2:3]", "", offset,
                   [offset](State& s, int lane, u32 at, uint8_t* memory) {
                     set_pair(s, lane,
                              reinterpret_cast<u64>(memory) + at - static_cast<u64>(i64{offset}));
                   }});
    all.push_back({"ds", "ds", "v2", "", offset, [offset](State& s, int lane, u32 at, uint8_t*) {
                     s.v[2][lane] = at + 256 - static_cast<u32>(offset);
                   }});
  }
  return all;
}

std::string with_offset(int offset) {
  return offset == 0 ? "" : " offset:" + std::to_string(offset);
}

constexpr char kLoadsDone[] = "\ns_waitcnt vmcnt(0) lgkmcnt(0)";

std::string load_text(const Form& form, const Access& access, std::string& name) {
  std::string suffix = access.suffix;
  if (form.space == "ds" && access.d16) {
    static const std::vector<std::pair<std::string, std::string>> kNames = {
        {"d16_u8", "u8_d16"},       {"d16_i8", "i8_d16"},       {"d16_b16", "u16_d16"},
        {"d16_hi_u8", "u8_d16_hi"}, {"d16_hi_i8", "i8_d16_hi"}, {"d16_hi_b16", "u16_d16_hi"}};
    for (const auto& [from, to] : kNames) {
      if (suffix == from) suffix = to;
    }
  }
  name = form.space + "_load_" + suffix;
  return name + " " + registers(40, access.bytes) + ", " + form.address +
         (form.base.empty() ? "" : ", " + form.base) + with_offset(form.offset) + kLoadsDone;
}

std::string store_text(const Form& form, const Access& access, std::string& name) {
  std::string suffix = access.suffix;
  if (form.space == "ds" && access.hi) suffix = suffix == "d16_hi_b8" ? "b8_d16_hi" : "b16_d16_hi";
  name = form.space + "_store_" + suffix;
  return name + " " + form.address + ", " + registers(20, access.bytes) +
         (form.base.empty() ? "" : ", " + form.base) + with_offset(form.offset) +
         "\ns_waitcnt_vscnt null, 0x0";
}

/// Returns the memory that a form's addresses refer to after a run. LDS starts at offset 256.
const uint8_t* memory_of(const Form& form, const State& state, const Block& block) {
  return form.space == "ds" ? state.lds.data() + 256 : block.bytes;
}

void check_load(const Hand::Run& run, const Form& form, const Access& access, Pattern pattern,
                u64 exec) {
  const int lanes = run.batch.target().lanes();
  State state = random_state(run.batch.target(), 21);
  auto block = std::make_unique<Block>();
  Random random(9);
  for (uint8_t& byte : block->bytes) byte = static_cast<uint8_t>(random.next());
  state.exec = run.batch.target().wave64 ? exec : exec & 0xffffffff;
  for (int lane = 0; lane < lanes; ++lane) {
    form.set(state, lane, place(pattern, lane, access.bytes, lanes), block->bytes);
    if (!(state.exec >> lane & 1)) state.set_v64(2, lane, 0x1234567812345678);
  }
  const State before = state;
  if (!run(state)) return;
  const uint8_t* memory = memory_of(form, before, *block);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int dword = 0; dword < (access.bytes + 3) / 4; ++dword) {
      const u32 old = before.v[40 + dword][lane];
      const uint8_t* from = memory + place(pattern, lane, access.bytes, lanes);
      const u32 want =
          state.exec >> lane & 1 ? loaded(run.batch.target(), access, from, dword, old) : old;
      ASSERT_EQ(state.v[40 + dword][lane], want)
          << run.batch.text(run.id) << " lane " << lane << " dword " << dword << " pattern "
          << static_cast<int>(pattern);
    }
  }
}

void check_store(const Hand::Run& run, const Form& form, const Access& access, Pattern pattern,
                 u64 exec) {
  const int lanes = run.batch.target().lanes();
  State state = random_state(run.batch.target(), 22);
  auto block = std::make_unique<Block>();
  std::memset(block->bytes, 0x5a, sizeof block->bytes);
  state.exec = run.batch.target().wave64 ? exec : exec & 0xffffffff;
  for (int lane = 0; lane < lanes; ++lane) {
    form.set(state, lane, place(pattern, lane, access.bytes, lanes), block->bytes);
    if (!(state.exec >> lane & 1)) state.set_v64(2, lane, 0x1234567812345678);
  }
  const bool in_lds = form.space == "ds";
  std::vector<uint8_t> want = in_lds
                                  ? std::vector<uint8_t>(state.lds.begin() + 256, state.lds.end())
                                  : std::vector<uint8_t>(block->bytes, block->bytes + 8192);
  for (int lane = 0; lane < lanes; ++lane) {
    if (!(state.exec >> lane & 1)) continue;
    for (int i = 0; i < access.bytes; ++i) {
      const int at = i + (access.hi ? 2 : 0);
      want[place(pattern, lane, access.bytes, lanes) + static_cast<u32>(i)] =
          static_cast<uint8_t>(state.v[20 + at / 4][lane] >> (8 * (at % 4)));
    }
  }
  if (pattern == Pattern::same) {  // which lane's store is last is unspecified
    for (int reg = 20; reg < 24; ++reg) state.v[reg].fill(0x13579bdf);
    for (int i = 0; i < access.bytes && state.exec != 0; ++i) {
      want[64 + static_cast<u32>(i)] =
          static_cast<uint8_t>(0x13579bdf >> (8 * ((i + (access.hi ? 2 : 0)) % 4)));
    }
  }
  if (!run(state)) return;
  const uint8_t* memory = memory_of(form, state, *block);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(memory[i], want[i]) << run.batch.text(run.id) << " byte " << i << " pattern "
                                  << static_cast<int>(pattern);
  }
}

void add_vector_memory(Hand& hand) {
  for (const Form& form : forms()) {
    const std::string tail = "_" + form.name + "_" + std::to_string(form.offset + 100);
    for (const Access& access : kLoads) {
      std::string name;
      const std::string text = load_text(form, access, name);
      hand.add(name + tail, text, {name}, [form, access](const Hand::Run& run) {
        for (const Pattern pattern : kPatterns) {
          for (const u64 exec : {~u64{0}, kSome, u64{0}})
            check_load(run, form, access, pattern, exec);
        }
      });
    }
    for (const Access& access : kStores) {
      std::string name;
      const std::string text = store_text(form, access, name);
      hand.add(name + tail, text, {name}, [form, access](const Hand::Run& run) {
        for (const Pattern pattern : kPatterns) {
          for (const u64 exec : {~u64{0}, kSome, u64{0}})
            check_store(run, form, access, pattern, exec);
        }
      });
    }
  }
}

/// Reads scratch back through scratch loads: only the lane that stored a value finds it.
void add_scratch(Hand& hand) {
  const std::string store = "scratch_store_b32", load = "scratch_load_b128";
  for (const Access& access : kLoads) {
    const std::string name = std::string("scratch_load_") + access.suffix;
    std::string fill;
    for (int i = 0; i < 4; ++i) {
      fill += store + " v2, v" + std::to_string(20 + i) +
              ", off offset:" + std::to_string(16 + 4 * i) + "\n";
    }
    hand.add(name, fill + name + " " + registers(40, access.bytes) + ", v2, off offset:16",
             {name, store}, [access](const Hand::Run& run) {
               const int lanes = run.batch.target().lanes();
               State state = random_state(run.batch.target(), 31);
               for (int lane = 0; lane < lanes; ++lane)
                 state.v[2][lane] = static_cast<u32>(lane % 8) * 16;
               const State before = state;
               if (!run(state)) return;
               for (int lane = 0; lane < lanes; ++lane) {
                 uint8_t bytes[16];
                 for (int i = 0; i < 4; ++i) std::memcpy(bytes + 4 * i, &before.v[20 + i][lane], 4);
                 for (int d = 0; d < (access.bytes + 3) / 4; ++d) {
                   ASSERT_EQ(state.v[40 + d][lane],
                             loaded(run.batch.target(), access, bytes, d, before.v[40 + d][lane]));
                 }
               }
             });
  }
  for (const Access& access : kStores) {
    const std::string name = std::string("scratch_store_") + access.suffix;
    hand.add(name,
             store + " off, v50, s10\n" + name + " off, " + registers(20, access.bytes) +
                 ", s10\n" + load + " v[40:43], off, s10",
             {name, load}, [access](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 32);
               state.s[10] = 48;
               state.scratch.assign(256 * 64, 0);
               const State before = state;
               if (!run(state)) return;
               for (int lane = 0; lane < run.batch.target().lanes(); ++lane) {
                 uint8_t want[16] = {};
                 std::memcpy(want, &before.v[50][lane], 4);
                 for (int i = 0; i < access.bytes; ++i) {
                   const int at = i + (access.hi ? 2 : 0);
                   want[i] = static_cast<uint8_t>(before.v[20 + at / 4][lane] >> (8 * (at % 4)));
                 }
                 uint8_t got[16];
                 for (int i = 0; i < 4; ++i) std::memcpy(got + 4 * i, &state.v[40 + i][lane], 4);
                 ASSERT_EQ(std::memcmp(want, got, 16), 0) << "lane " << lane;
               }
             });
  }
}

void add_two_addresses(Hand& hand) {
  for (const bool wide : {false, true}) {
    for (const bool far : {false, true}) {
      const int unit = (wide ? 8 : 4) * (far ? 64 : 1);
      const std::string tail =
          std::string("_2addr_") + (far ? "stride64_" : "") + (wide ? "b64" : "b32");
      const std::string to = wide ? "v[40:43]" : "v[40:41]";
      const std::string load = "ds_load" + tail, store = "ds_store" + tail;
      hand.add(
          load, load + " " + to + ", v2 offset0:3 offset1:1", {load}, [=](const Hand::Run& run) {
            State state = random_state(run.batch.target(), 41);
            for (int lane = 0; lane < 64; ++lane)
              state.v[2][lane] = static_cast<u32>(lane * 24 % 512);
            state.exec &= kSome | 15;
            const State before = state;
            if (!run(state)) return;
            for (int lane = 0; lane < run.batch.target().lanes(); ++lane) {
              if (!(before.exec >> lane & 1)) continue;
              for (int i = 0; i < (wide ? 4 : 2); ++i) {
                const int part = wide ? i / 2 : i;
                u32 want;
                std::memcpy(
                    &want,
                    &before.lds[before.v[2][lane] + static_cast<u32>((part == 0 ? 3 : 1) * unit +
                                                                     (wide ? i % 2 * 4 : 0))],
                    4);
                ASSERT_EQ(state.v[40 + i][lane], want) << "lane " << lane;
              }
            }
          });
      hand.add(
          store,
          store + (wide ? " v2, v[20:21], v[30:31]" : " v2, v20, v30") + " offset0:2 offset1:5",
          {store}, [=](const Hand::Run& run) {
            State state = random_state(run.batch.target(), 42);
            state.lds.assign(8192, 0);
            const int lanes = far ? 1 : run.batch.target().lanes();
            state.exec = far ? 1 : state.exec;
            std::vector<uint8_t> want = state.lds;
            for (int lane = 0; lane < lanes; ++lane) {
              state.v[2][lane] = static_cast<u32>(lane * 64);
              for (int part = 0; part < 2; ++part) {
                const u32 at = state.v[2][lane] + static_cast<u32>((part == 0 ? 2 : 5) * unit);
                const u64 value = state.v64(part == 0 ? 20 : 30, lane);
                std::memcpy(&want[at], &value, wide ? 8 : 4);
              }
            }
            if (!run(state)) return;
            EXPECT_EQ(state.lds, want);
          });
    }
  }
}

/// Uses negative address registers and offsets that compensate them: the sum wraps at 32 bits.
void add_wrapping_lds(Hand& hand) {
  const std::string store = "ds_store_b32", load = "ds_load_b32", store2 = "ds_store_2addr_b32",
                    load2 = "ds_load_2addr_b32", add = "ds_add_u32", swap = "ds_cmpstore_b32";
  const bool compare_first = generation(hand.target()) < 11;
  hand.add("lds_addresses_wrap",
           store + " v2, v20 offset:256\n" + store2 + " v3, v21, v22 offset0:128 offset1:192\n" +
               add + " v2, v23 offset:256\n" + swap + " v4, " +
               (compare_first ? "v24, v25" : "v25, v24") + " offset:1024\n" + load +
               " v40, v2 offset:256\n" + load2 + " v[44:45], v3 offset0:128 offset1:192\n" + load +
               " v43, v4 offset:1024\ns_waitcnt lgkmcnt(0)",
           {store, store2, add, swap, load, load2}, [=](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 43);
             const int lanes = run.batch.target().lanes();
             state.lds.assign(2048, 0);
             for (int lane = 0; lane < lanes; ++lane) {
               const auto back = static_cast<u32>(-4 * lane - 4);
               state.v[2][lane] = back;        // 256 - 4 (lane + 1)
               state.v[3][lane] = back;        // 512 and 768 less that
               state.v[4][lane] = back - 768;  // 256 - 4 (lane + 1), too
               // The value in memory by then.
               state.v[24][lane] = state.v[20][lane] + state.v[23][lane];
             }
             state.exec = lanes == 64 ? ~u64{0} : 0xffffffff;
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < lanes; ++lane) {
               ASSERT_EQ(state.v[40][lane], before.v[25][lane]) << "lane " << lane;
               ASSERT_EQ(state.v[44][lane], before.v[21][lane]) << "lane " << lane;
               ASSERT_EQ(state.v[45][lane], before.v[22][lane]) << "lane " << lane;
               ASSERT_EQ(state.v[43][lane], before.v[25][lane]) << "lane " << lane;
             }
           });
}

void add_scalar_loads(Hand& hand) {
  for (int dwords : {1, 2, 4, 8, 16}) {
    const std::string name = "s_load_b" + std::to_string(32 * dwords);
    const std::string to = dwords == 1 ? "s40" : "s[40:" + std::to_string(39 + dwords) + "]";
    for (const std::string offset : {"0x0", "0x24", "-0x10", "s20", "s20 offset:0x8"}) {
      hand.add(name + "_" + std::to_string(offset.size()) + std::to_string(offset[0]),
               name + " " + to + ", s[10:11], " + offset + "\ns_waitcnt lgkmcnt(0)", {name},
               [=](const Hand::Run& run) {
                 alignas(64) u32 memory[64];
                 for (u32 i = 0; i < 64; ++i) memory[i] = i * 0x01010101u + 7;
                 State state = random_state(run.batch.target(), 1);
                 state.set_s64(10, reinterpret_cast<u64>(&memory[8]));
                 state.s[20] = 48;
                 const int at = offset == "0x0"     ? 8
                                : offset == "0x24"  ? 17
                                : offset == "-0x10" ? 4
                                : offset == "s20"   ? 20
                                                    : 22;
                 const State before = state;
                 if (!run(state)) return;
                 for (int i = 0; i < 20; ++i) {
                   ASSERT_EQ(state.s[40 + i], i < dwords ? memory[at + i] : before.s[40 + i]);
                 }
               });
    }
  }
}

/// Flat addresses whose upper half is that of an aperture refer to LDS and scratch.
void add_apertures(Hand& hand) {
  const std::string load = "flat_load_b32 v40, v[2:3]\n", store = "flat_store_b32 v[2:3], ";
  hand.add("flat_shared",
           std::string("s_mov_b64 s[20:21], src_shared_base\nv_mov_b32 v3, s21\n") + load + store +
               "v20 offset:4",
           {}, [](const Hand::Run& run) {
             const int lanes = run.batch.target().lanes();
             State state = random_state(run.batch.target(), 3);
             for (int lane = 0; lane < lanes; ++lane) state.v[2][lane] = static_cast<u32>(lane) * 8;
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < lanes; ++lane) {
               u32 want, got;
               std::memcpy(&want, &before.lds[static_cast<size_t>(lane) * 8], 4);
               std::memcpy(&got, &state.lds[static_cast<size_t>(lane) * 8 + 4], 4);
               ASSERT_EQ(state.v[40][lane], want);
               ASSERT_EQ(got, before.v[20][lane]);
             }
           });
  hand.add("flat_private",
           "s_mov_b64 s[20:21], src_private_base\nv_mov_b32 v3, s21\n"
           "scratch_store_b32 v2, v20, off\n" +
               load + store + "v22 offset:4\n" + "scratch_load_b32 v41, v2, off offset:4",
           {}, [](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 3);
             for (int lane = 0; lane < run.batch.target().lanes(); ++lane)
               state.v[2][lane] = static_cast<u32>(lane % 4) * 8;
             const State before = state;
             if (!run(state)) return;
             EXPECT_EQ(state.v[40], before.v[20]);
             EXPECT_EQ(state.v[41], before.v[22]);
           });
}

}  // namespace

void register_memory() {
  for (const Target& target : all_targets()) {
    Hand hand("Memory", target);
    add_vector_memory(hand);
    add_scratch(hand);
    add_two_addresses(hand);
    add_wrapping_lds(hand);
    if (target.wave64 && !is_gfx9(target)) continue;
    add_scalar_loads(hand);
    add_apertures(hand);
  }
}

}  // namespace emu::test
