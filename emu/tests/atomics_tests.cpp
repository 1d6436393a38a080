// Atomics on global, flat, buffer and LDS memory: checks the memory and the returned values.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

struct Atomic {
  const char* name;  // name of the global form; {} matches nothing
  const char* lds;   // name of the LDS form, "" if there is none
  int bits;
  bool compares;  // has two data operands: the new value, then the comparand
  u64 (*f)(u64 old, u64 data, u64 compare);
};

template <class T, auto F>
u64 on(u64 old, u64 data, u64) {
  return to_bits(F(from_bits<T>(old), from_bits<T>(data)));
}

template <class T>
T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
T greatest(T a, T b) {
  return a > b ? a : b;
}
template <class T>
T sum(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T difference(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
T reverse_difference(T a, T b) {
  return static_cast<T>(b - a);
}
template <class T>
T wrap_up(T a, T b) {
  return a >= b ? 0 : a + 1;
}
template <class T>
T wrap_down(T a, T b) {
  return a == 0 || a > b ? b : a - 1;
}
template <class T>
T both_of(T a, T b) {
  return a & b;
}
template <class T>
T either(T a, T b) {
  return a | b;
}
template <class T>
T one_of(T a, T b) {
  return a ^ b;
}
template <class T>
T other(T, T b) {
  return b;
}
u32 floored(u32 a, u32 b) { return a < b ? 0 : a - b; }

u64 swap_if(u64 old, u64 data, u64 compare) { return old == compare ? data : old; }

/// Floats are compared as numbers: the zeros are equal.
template <class T>
u64 swap_if_equal(u64 old, u64 data, u64 compare) {
  return from_bits<T>(old) == from_bits<T>(compare) ? data : old;
}

#define EMU_BOTH_WIDTHS(name, lds, type, f)                               \
  {name "_" type "32", lds "_" type "32", 32, false, &on<u32, f<u32>>}, { \
    name "_" type "64", lds "_" type "64", 64, false, &on<u64, f<u64>>    \
  }

constexpr Atomic kAtomics[] = {
    EMU_BOTH_WIDTHS("add", "add", "u", sum),
    EMU_BOTH_WIDTHS("sub", "sub", "u", difference),
    EMU_BOTH_WIDTHS("", "rsub", "u", reverse_difference),
    EMU_BOTH_WIDTHS("min", "min", "u", least),
    EMU_BOTH_WIDTHS("max", "max", "u", greatest),
    EMU_BOTH_WIDTHS("inc", "inc", "u", wrap_up),
    EMU_BOTH_WIDTHS("dec", "dec", "u", wrap_down),
    EMU_BOTH_WIDTHS("and", "and", "b", both_of),
    EMU_BOTH_WIDTHS("or", "or", "b", either),
    EMU_BOTH_WIDTHS("xor", "xor", "b", one_of),
    EMU_BOTH_WIDTHS("swap", "storexchg", "b", other),
    {"min_i32", "min_i32", 32, false, &on<i32, least<i32>>},
    {"max_i32", "max_i32", 32, false, &on<i32, greatest<i32>>},
    {"min_i64", "min_i64", 64, false, &on<i64, least<i64>>},
    {"max_i64", "max_i64", 64, false, &on<i64, greatest<i64>>},
    {"cmpswap_b32", "cmpstore_b32", 32, true, &swap_if},
    {"cmpswap_b64", "cmpstore_b64", 64, true, &swap_if},
    {"cmpswap_f32", "cmpstore_f32", 32, true, &swap_if_equal<float>},
    {"cmpswap_f64", "cmpstore_f64", 64, true, &swap_if_equal<double>},
    {"csub_u32", "", 32, false, &on<u32, floored>},
    {"add_f32", "add_f32", 32, false, &on<float, sum<float>>},
    {"min_f32", "min_f32", 32, false, &on<float, least<float>>},
    {"max_f32", "max_f32", 32, false, &on<float, greatest<float>>},
    {"add_f64", "add_f64", 64, false, &on<double, sum<double>>},
    {"min_f64", "min_f64", 64, false, &on<double, least<double>>},
    {"max_f64", "max_f64", 64, false, &on<double, greatest<double>>},
};

bool is_float(const Atomic& a) {
  const std::string name = a.lds[0] != 0 ? a.lds : a.name;
  return name.find("_f") != name.npos;
}

/// Returns a value that isn't NaN and gives meaningful comparisons.
u64 operand(const Atomic& a, Random& random) {
  if (!is_float(a)) {
    return interesting(a.bits == 64 ? Type::b64 : Type::b32, random);
  }
  const double value = static_cast<double>(static_cast<int>(random.below(2001)) - 1000) / 8;
  return a.bits == 64 ? to_bits(value) : to_bits(static_cast<float>(value));
}

enum class Space { global, global_base, flat, lds, buffer };

std::string pair_or_one(char file, int first, int dwords) {
  if (dwords == 1) return file + std::to_string(first);
  return std::string(1, file) + "[" + std::to_string(first) + ":" +
         std::to_string(first + dwords - 1) + "]";
}

std::string text_of(const Atomic& a, Space space, bool returns, std::string& name) {
  const int dwords = a.bits / 32;
  const std::string result = pair_or_one('v', 40, dwords) + ", ";
  if (space == Space::lds) {
    std::string op = a.lds;
    const size_t bar = op.find('_');
    // storexchg only exists in the returning form.
    if (returns) op.insert(bar, "_rtn");
    name = "ds_" + op;
    return name + " " + (returns ? result : "") + "v2, " + pair_or_one('v', 20, dwords) +
           (a.compares ? ", " + pair_or_one('v', 20 + dwords, dwords) : "") + " offset:8";
  }
  if (space == Space::buffer) {
    name = "buffer_atomic_" + std::string(a.name);
    return name + " " + range(20, a.compares ? 2 * dwords : dwords) +
           ", v2, s[20:23], 0 offen offset:8" + (returns ? " glc" : "");
  }
  name = (space == Space::flat ? "flat_atomic_" : "global_atomic_") + std::string(a.name);
  const std::string data = pair_or_one('v', 20, a.compares ? 2 * dwords : dwords);
  const std::string address = space == Space::global_base ? "v2" : "v[2:3]";
  const std::string base = space == Space::flat     ? ""
                           : space == Space::global ? ", off"
                                                    : ", s[10:11]";
  return name + " " + (returns ? result : "") + address + ", " + data + base + " offset:8" +
         (returns ? " glc" : "");
}

/// Compare-and-swap takes the new value first and the comparand second, except in LDS before gfx11.
void check(const Hand::Run& run, const Atomic& a, Space space, bool returns, bool same_address,
           u64 exec) {
  const int lanes = run.batch.target().lanes();
  const int dwords = a.bits / 32;
  const bool compared_first =
      generation(run.batch.target()) < 11 && space == Space::lds && a.compares;
  Random random(a.bits + (same_address ? 100u : 0u) + exec);
  State state = random_state(run.batch.target(), 51);
  state.exec &= exec;
  alignas(64) uint8_t memory[1024];
  for (int i = 0; i < 128; ++i) {
    const u64 value = operand(a, random), narrow = operand(a, random);
    for (uint8_t* to : {memory, state.lds.data()}) {
      std::memcpy(to + 8 * i, &value, 8);
      if (a.bits == 32) std::memcpy(to + 8 * i + 4, &narrow, 4);
    }
  }
  uint8_t* const start = space == Space::lds ? state.lds.data() : memory;
  std::vector<uint8_t> want(start, start + 1024);
  std::vector<u64> given(64);
  for (int lane = 0; lane < lanes; ++lane) {
    const u32 at = same_address ? 16 : static_cast<u32>(lane * 5 % 64) * 8;
    const u64 data = operand(a, random);
    u64 old = 0;
    std::memcpy(&old, &want[at + 8], a.bits / 8);
    const u64 compare = random.chance(2) ? old : operand(a, random);
    for (int d = 0; d < dwords; ++d) {
      const auto put = [&](int reg, u64 value) {
        state.v[reg + d][lane] = static_cast<u32>(value >> (32 * d));
      };
      put(compared_first ? 20 + dwords : 20, data);
      put(compared_first ? 20 : 20 + dwords, compare);
    }
    if (space == Space::global || space == Space::flat)
      state.set_v64(2, lane, reinterpret_cast<u64>(memory) + at);
    else
      state.v[2][lane] = at;
    if (!(state.exec >> lane & 1)) continue;
    given[static_cast<size_t>(lane)] = old;
    const u64 narrow_data = a.bits == 64 ? data : data & 0xffffffff;
    const u64 narrow_compare = a.bits == 64 ? compare : compare & 0xffffffff;
    const u64 now = a.f(old, narrow_data, narrow_compare);
    std::memcpy(&want[at + 8], &now, static_cast<size_t>(a.bits / 8));
  }
  state.set_s64(10, reinterpret_cast<u64>(memory));
  state.set_s64(20, reinterpret_cast<u64>(memory));  // a buffer
  state.s[22] = sizeof memory;
  state.s[23] = 0x31004000;  // bounds in bytes
  const State before = state;
  if (!run(state)) return;
  const uint8_t* got = space == Space::lds ? state.lds.data() : memory;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i], want[i]) << run.batch.text(run.id) << " byte " << i
                               << (same_address ? " same" : "");
  }
  for (int lane = 0; lane < lanes; ++lane) {
    const bool is_on = state.exec >> lane & 1;
    for (int d = 0; d < dwords; ++d) {
      const int to = space == Space::buffer ? 20 : 40;
      const u32 old = before.v[to + d][lane];
      const u32 back = static_cast<u32>(given[static_cast<size_t>(lane)] >> (32 * d));
      ASSERT_EQ(state.v[to + d][lane], returns && is_on ? back : old)
          << run.batch.text(run.id) << " lane " << lane;
    }
  }
}

void add_atomic(Hand& hand, const Atomic& a, Space space, bool returns) {
  const std::string plain = space == Space::lds ? a.lds : a.name;
  if (plain.empty() || plain[0] == '_') return;
  if (space == Space::lds && plain.starts_with("storexchg") && !returns) return;
  if (space != Space::lds && plain.starts_with("csub") && (!returns || space == Space::flat))
    return;
  std::string name;
  const std::string text = text_of(a, space, returns, name);
  static constexpr const char* kSpaces[] = {"_pair", "_base", "_flat", "_lds", "_buffer"};
  hand.add(name + kSpaces[static_cast<int>(space)] + (returns ? "_returns" : ""), text, {name},
           [&a, space, returns](const Hand::Run& run) {
             for (const u64 exec : {~u64{0}, u64{0x0f3c5a9669a5c3f0}, u64{0}}) {
               for (const bool same : {false, true}) {
                 // The order of lanes at one address is unspecified, so only sums and ORs, whose
                 // result doesn't depend on it, are tested.
                 const std::string op = space == Space::lds ? a.lds : a.name;
                 if (same &&
                     (returns || is_float(a) || !(op.starts_with("add") || op.starts_with("or")))) {
                   continue;
                 }
                 check(run, a, space, returns, same, exec);
               }
             }
           });
}

void add_all(Hand& hand) {
  for (const Atomic& a : kAtomics) {
    for (const Space space :
         {Space::global, Space::global_base, Space::flat, Space::lds, Space::buffer}) {
      for (const bool returns : {false, true}) add_atomic(hand, a, space, returns);
    }
  }
}

/// Clears the bits of the first data and sets those of the second.
void add_masked_or(Hand& hand, bool wide, bool returns) {
  const int dwords = wide ? 2 : 1, lanes = hand.lanes();
  const std::string name =
      std::string("ds_mskor") + (returns ? "_rtn" : "") + (wide ? "_b64" : "_b32");
  hand.add(name,
           name + " " + (returns ? range(40, dwords) + ", " : "") + "v2, " + range(20, dwords) +
               ", " + range(22, dwords),
           {name}, [=](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 62);
             for (int lane = 0; lane < lanes; ++lane) state.v[2][lane] = static_cast<u32>(lane) * 8;
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < lanes; ++lane) {
               for (int d = 0; d < dwords; ++d) {
                 u32 old, now;
                 std::memcpy(&old, &before.lds[static_cast<size_t>(lane * 8 + 4 * d)], 4);
                 std::memcpy(&now, &state.lds[static_cast<size_t>(lane * 8 + 4 * d)], 4);
                 ASSERT_EQ(now, (old & ~before.v[20 + d][lane]) | before.v[22 + d][lane]);
                 ASSERT_EQ(state.v[40 + d][lane], returns ? old : before.v[40 + d][lane]);
               }
             }
           });
}

void add_lds_rest(Hand& hand) {
  const int lanes = hand.target().lanes();
  hand.add("ds_wrap_rtn_b32", "ds_wrap_rtn_b32 v40, v2, v20, v21", {"ds_wrap_rtn_b32"},
           [lanes](const Hand::Run& run) {
             State state = random_state(run.batch.target(), 61);
             for (int lane = 0; lane < lanes; ++lane) state.v[2][lane] = static_cast<u32>(lane) * 4;
             const State before = state;
             if (!run(state)) return;
             for (int lane = 0; lane < lanes; ++lane) {
               u32 old, now;
               std::memcpy(&old, &before.lds[static_cast<size_t>(lane) * 4], 4);
               std::memcpy(&now, &state.lds[static_cast<size_t>(lane) * 4], 4);
               const u32 a = before.v[20][lane], b = before.v[21][lane];
               ASSERT_EQ(state.v[40][lane], old);
               ASSERT_EQ(now, old >= a ? old - a : old + b);
             }
           });
  for (const bool wide : {false, true}) {
    for (const bool returns : {false, true}) add_masked_or(hand, wide, returns);
  }
  for (const bool append : {true, false}) {
    const std::string name = append ? "ds_append" : "ds_consume";
    hand.add(name, "s_mov_b32 m0, 0\n" + name + " v40 offset:16", {name},
             [append](const Hand::Run& run) {
               State state = random_state(run.batch.target(), 63);
               state.exec &= 0x0c000003'00ff00f1;
               const u32 count = static_cast<u32>(__builtin_popcountll(state.exec));
               u32 old, now;
               std::memcpy(&old, &state.lds[16], 4);
               if (!run(state)) return;
               std::memcpy(&now, &state.lds[16], 4);
               EXPECT_EQ(state.v[40][0], old);
               EXPECT_EQ(now, append ? old + count : old - count);
             });
  }
}

}  // namespace

void register_atomics() {
  for (const Target& target : all_targets()) {
    Hand hand("Atomics", target);
    add_all(hand);
    add_lds_rest(hand);
  }
}

}  // namespace emu::test
