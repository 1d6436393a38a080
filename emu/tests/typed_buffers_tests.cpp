// Buffer instructions whose elements have a format, in the instruction (tbuffer) or in the
// descriptor: each format of each family, bounds, selectors, components of 16 bits.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/pixel_reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr u32 kStride = 28, kOffset = 4, kScalarOffset = 8;
constexpr int kData = 40, kRecords = 64;
const char* const kCounts[] = {"x", "xy", "xyz", "xyzw"};

std::string quoted(const Target& target, const NamedFormat& format) {
  return is_gfx9(target)
             ? " format:[BUF_DATA_FORMAT_" + format.layout + ",BUF_NUM_FORMAT_" + format.kind + "]"
             : " format:[BUF_FMT_" + format.layout + "_" + format.kind + "]";
}

/// A case: an instruction and the format of its elements.
struct Access {
  bool store = false, typed = true, half = false, high = false;
  int count = 4;
  NamedFormat format;

  std::string name(const Target& target) const {
    const std::string middle = !half ? "_format_" : high ? "_d16_hi_format_" : "_d16_format_";
    return name_on(target, std::string(typed ? "tbuffer" : "buffer") +
                               (store ? "_store" : "_load") + middle + kCounts[count - 1]);
  }
  int registers() const { return half ? (count + 1) / 2 : count; }
  std::string text(const Target& target) const {
    return name(target) + " " + range(kData, registers()) + ", v2, s[20:23], s10" +
           (typed ? quoted(target, format) : "") + " idxen offset:" + std::to_string(kOffset);
  }
  std::string label() const {
    return format.layout + "_" + format.kind + "_" + kCounts[count - 1] +
           (store ? "_store" : "_load") + (half ? "_half" : "") + (high ? "_high" : "") +
           (typed ? "" : "_of_descriptor");
  }
};

/// Records of `kStride` bytes, whose elements begin 12 bytes from the start of a record.
struct Memory {
  alignas(16) uint8_t bytes[kRecords * kStride + 64];

  Memory() {
    Random random(77);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  }
  uint8_t* element(u32 record) { return bytes + record * kStride + kOffset + kScalarOffset; }
};

/// Word 3 of a descriptor that checks the index and the offset: selectors and a format.
u32 word3(const Target& target, u32 selectors, const NamedFormat& format) {
  return selectors |
         (is_gfx9(target) ? format.data << 15 | format.numbers << 12 : format.number << 12);
}

constexpr u32 kSelectIdentity = 4 | 5 << 3 | 6 << 6 | 7 << 9;
constexpr u32 kSelectOthers = 7 | 1 << 3 | 4 << 6 | 0 << 9;  // W, 1, X, 0

void describe(State& state, const Memory& memory, u32 records, u32 last_word) {
  state.set_s64(20, reinterpret_cast<u64>(memory.bytes) | u64{kStride} << 48);
  state.s[22] = records;
  state.s[23] = last_word;
  state.s[10] = kScalarOffset;
}

/// The lanes' records. The last two lanes' are beyond the buffer, and two other lanes are disabled.
State indexed(const Target& target, u32& records) {
  State state = random_state(target, 5);
  const auto lanes = static_cast<u32>(target.lanes());
  records = lanes - 2;
  for (u32 lane = 0; lane < lanes; ++lane) state.v[2][lane] = lane ^ (lane < lanes - 2 ? 1 : 0);
  state.exec &= ~u64{0x24};
  return state;
}

/// The float or integer of a component as a D16 instruction holds it.
u32 as_half(const NamedFormat& format, u32 word) {
  if (format.integer()) return word & 0xffff;
  return half_code(std::bit_cast<float>(word), format.bits[0] == 32);
}

/// Returns whether both are NaN, whose bits aren't specified.
bool are_nan(const Access& access, u32 a, u32 b) {
  if (!access.half) return both_nan(access.format, a, b);
  return !access.format.integer() && (a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00;
}

/// Checks the part of a register that a component fills.
void check_component(const Access& access, const State& before, const State& after, u32 lane, int i,
                     u32 want, bool enabled) {
  const int reg = kData + (access.half ? i / 2 : i);
  const int shift = !access.half ? 0 : access.high ? 16 : 16 * (i % 2);
  const u32 mask = access.half ? 0xffff : ~0u;
  const u32 old = before.v[reg][lane] >> shift & mask, got = after.v[reg][lane] >> shift & mask;
  if (enabled && are_nan(access, got, want)) return;
  EXPECT_EQ(got, enabled ? want : old) << "lane " << lane << " component " << i;
}

/// Checks the half of the last register that no component fills.
void check_other_half(const Target& target, const Access& access, const State& before,
                      const State& after, u32 lane, bool enabled) {
  if (!access.half || (access.count % 2 == 0 && !access.high)) return;
  const int reg = kData + access.registers() - 1, shift = access.high ? 0 : 16;
  // With ECC in the registers, a load into one half clears the other.
  const bool cleared = enabled && is_gfx9(target);
  EXPECT_EQ(after.v[reg][lane] >> shift & 0xffff,
            cleared ? 0 : before.v[reg][lane] >> shift & 0xffff)
      << "lane " << lane;
}

void check_load(const Hand::Run& run, const Access& access, u32 selectors) {
  const Target& target = run.batch.target();
  Memory memory;
  u32 records = 0;
  State state = indexed(target, records);
  // The instruction's format holds, whatever the descriptor's is.
  const NamedFormat other = format_named(test::generation(target), "16", "UINT");
  describe(
      state, memory, records,
      access.typed ? word3(target, kSelectOthers, other) : word3(target, selectors, access.format));
  const State before = state;
  if (!run(state)) return;
  for (u32 lane = 0; lane < static_cast<u32>(target.lanes()); ++lane) {
    const u32 record = before.v[2][lane];
    const bool enabled = (before.exec >> lane & 1) != 0;
    const u32 one = access.format.integer() ? 1 : std::bit_cast<u32>(1.f);
    for (int i = 0; i < access.count; ++i) {
      const u32 selector = access.typed ? 4 + static_cast<u32>(i) : selectors >> 3 * i & 7;
      u32 want = selector == 1 ? one : 0;  // also beyond the buffer
      if (record < records && selector >= 4) {
        want = component(access.format, memory.element(record), static_cast<int>(selector) - 4);
      }
      if (access.half) want = as_half(access.format, want);
      check_component(access, before, state, lane, i, want, enabled);
    }
    check_other_half(target, access, before, state, lane, enabled);
  }
}

/// Returns a value to store: within the format's range, beyond it, or, of floats, any.
u32 value_to_store(const NamedFormat& format, Random& random, int component) {
  const int bits = format.bits[static_cast<size_t>(std::min(component, format.components() - 1))];
  const auto word = static_cast<u32>(random.next());
  if (format.integer()) return random.chance(3) ? word : word >> (32 - bits) ^ (word & 1 ? ~0u : 0);
  if (format.kind == "FLOAT" && bits == 32) return word;
  const double unit = static_cast<double>(random.next() >> 11) * 0x1p-53 * 2 - 1;
  if (format.kind == "FLOAT") {
    const double scaled = std::ldexp(unit, static_cast<int>(random.below(40)) - 22);
    return std::bit_cast<u32>(static_cast<float>(random.chance(9) ? INFINITY : scaled));
  }
  // A third of the way between two numbers, so that the order of roundings doesn't matter.
  const double top = std::ldexp(1, bits) - 1, most = std::ldexp(1, bits - 1) - 1;
  double value = std::trunc(unit * 1.25 * top);
  value += value < 0 ? -0.3 : 0.3;
  if (format.kind == "UNORM") value /= top;
  if (format.kind == "SNORM") value /= most;
  return std::bit_cast<u32>(static_cast<float>(value));
}

/// Returns the value of a component that a store of 16-bit ones takes.
u32 word_of_half(const NamedFormat& format, u32 half) {
  if (format.kind == "UINT") return half;
  if (format.kind == "SINT") return static_cast<u32>(i32{static_cast<i16>(half)});
  const double value = small_float(half & 0x7fff, 15);
  return std::bit_cast<u32>(static_cast<float>((half >> 15) != 0 ? -value : value));
}

void check_store(const Hand::Run& run, const Access& access) {
  const Target& target = run.batch.target();
  const NamedFormat& format = access.format;
  Memory memory, want;
  u32 records = 0;
  State state = indexed(target, records);
  const NamedFormat other = format_named(test::generation(target), "16", "UINT");
  describe(state, memory, records,
           word3(target, kSelectIdentity, access.typed ? other : access.format));
  Random random(9);
  for (u32 lane = 0; lane < static_cast<u32>(target.lanes()); ++lane) {
    const u32 record = state.v[2][lane];
    u32 first = 0;
    for (int i = 0; i < format.components(); ++i) {
      // Components that the instruction lacks are 0; on gfx12, they are the first one.
      u32 word = test::generation(target) >= 12 ? first : 0;
      if (i < access.count) {
        word = value_to_store(format, random, i);
        if (access.half) {
          const u32 half = as_half(format, word);
          u32& reg = state.v[kData + i / 2][lane];
          const int shift = access.high ? 16 : 16 * (i % 2);
          reg = (reg & ~(0xffffu << shift)) | half << shift;
          word = word_of_half(format, half);
        } else {
          state.v[kData + i][lane] = word;
        }
      }
      if (i == 0) first = word;
      if (record >= records || (state.exec >> lane & 1) == 0) continue;
      put_component(format, want.element(record), i, stored_component(format, word, i));
    }
  }
  if (!run(state)) return;
  for (u32 record = 0; record < kRecords; ++record) {
    for (u32 i = 0; i < kStride; ++i) {
      const u32 at = record * kStride + i;
      ASSERT_EQ(memory.bytes[at], want.bytes[at]) << "record " << record << " byte " << i;
    }
  }
}

void add_access(Hand& hand, const Access& access, u32 selectors = kSelectIdentity) {
  hand.add(access.label(), access.text(hand.target()), {access.name(hand.target())},
           [access, selectors](const Hand::Run& run) {
             access.store ? check_store(run, access) : check_load(run, access, selectors);
           });
}

void add_formats(Hand& hand) {
  for (const NamedFormat& format : buffer_formats(test::generation(hand.target()))) {
    for (const bool store : {false, true}) {
      add_access(hand, {.store = store, .format = format});
      add_access(hand, {.store = store, .typed = false, .format = format}, kSelectOthers);
    }
  }
}

void add_counts(Hand& hand) {
  const int generation = test::generation(hand.target());
  const NamedFormat formats[] = {
      format_named(generation, "32_32_32_32", "FLOAT"), format_named(generation, "8_8_8_8", "SINT"),
      format_named(generation, "16_16_16_16", "FLOAT"),
      format_named(generation, "2_10_10_10", "UNORM"), format_named(generation, "8_8", "UINT")};
  for (const NamedFormat& format : formats) {
    for (int count = 1; count <= 4; ++count) {
      for (const bool store : {false, true}) {
        for (const bool typed : {false, true}) {
          if (count < 4) {
            add_access(hand, {.store = store, .typed = typed, .count = count, .format = format});
          }
          add_access(
              hand,
              {.store = store, .typed = typed, .half = true, .count = count, .format = format});
          if (count > 1 || typed) continue;
          add_access(hand, {.store = store,
                            .typed = false,
                            .half = true,
                            .high = true,
                            .count = 1,
                            .format = format});
        }
      }
    }
  }
}

/// Buffers without a stride check bytes: an element is accessed as a whole or not at all.
void add_raw(Hand& hand) {
  const Target& target = hand.target();
  const NamedFormat format = format_named(test::generation(target), "16_16", "UINT");
  const std::string text = "tbuffer_load_format_xy v[40:41], v2, s[20:23], s10" +
                           quoted(target, format) + " offen offset:4";
  hand.add("raw", text, {}, [format](const Hand::Run& run) {
    const Target& target = run.batch.target();
    Memory memory;
    State state = random_state(target, 6);
    const auto lanes = static_cast<u32>(target.lanes());
    const u32 end = lanes * 3 + 2;
    state.set_s64(20, reinterpret_cast<u64>(memory.bytes));
    state.s[22] = end;
    state.s[23] = word3(target, kSelectIdentity, format) | (is_gfx9(target) ? 0 : 3u << 28);
    state.s[10] = is_gfx9(target) ? 0 : 8;  // gfx9 counts it in the check
    for (u32 lane = 0; lane < lanes; ++lane) state.v[2][lane] = 4 * lane;
    if (!run(state)) return;
    for (u32 lane = 0; lane < lanes; ++lane) {
      const u32 at = 4 * lane + 4;
      const uint8_t* element = memory.bytes + at + (is_gfx9(target) ? 0 : 8);
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(state.v[40 + i][lane], at + 4 <= end ? component(format, element, i) : 0) << lane;
      }
    }
  });
}

/// A swizzled buffer: its blocks have the first element of each record, then the second one, and
/// so on.
struct Swizzle {
  u32 element, indices;  // bytes; records of a block
  bool adds_lane;

  u32 place(u32 record, u32 offset) const {
    const u32 block = record / indices * indices * kBytes;
    return block + (offset / element * indices + record % indices) * element + offset % element;
  }
  static constexpr u32 kBytes = 16;
};

void check_swizzled(const Hand::Run& run, const Swizzle& swizzle, const NamedFormat& format,
                    bool store) {
  const Target& target = run.batch.target();
  const int generation = test::generation(target);
  Memory memory, want;
  State state = random_state(target, 12);
  const auto lanes = static_cast<u32>(target.lanes());
  const u32 mode = generation <= 10 ? 2 : swizzle.element == 4 ? 1 : 3;
  state.set_s64(20,
                reinterpret_cast<u64>(memory.bytes) | u64{Swizzle::kBytes} << 48 | u64{mode} << 62);
  state.s[22] = lanes - 3;  // records
  state.s[23] = word3(target, kSelectIdentity, format) |
                static_cast<u32>(std::countr_zero(swizzle.indices) - 3) << 21 |
                u32{swizzle.adds_lane} << 23;
  state.s[10] = 4;
  for (u32 lane = 0; lane < lanes; ++lane) {
    state.v[2][lane] = swizzle.adds_lane ? 0 : lane ^ (lane < lanes - 4 ? 3 : 0);
    state.v[3][lane] = lane % 2 * 4;
  }
  const State before = state;
  if (!run(state)) return;
  for (u32 lane = 0; lane < lanes; ++lane) {
    const u32 record = before.v[2][lane] + (swizzle.adds_lane ? lane : 0);
    const u32 at = swizzle.place(record, before.v[3][lane] + 4 + 4);
    const bool within = record < lanes - 3;
    if (!store) {
      EXPECT_EQ(state.v[kData][lane], within ? component(format, memory.bytes + at, 0) : 0) << lane;
    } else if (within) {
      put_component(format, want.bytes + at, 0, before.v[kData][lane]);
    }
  }
  if (store) EXPECT_EQ(std::memcmp(memory.bytes, want.bytes, sizeof memory.bytes), 0);
}

void add_swizzled(Hand& hand) {
  const int generation = test::generation(hand.target());
  const NamedFormat format = format_named(generation, "32", "UINT");
  for (const Swizzle& swizzle :
       {Swizzle{4, 8, false}, {4, 32, false}, {4, 16, true}, {16, 8, false}, {16, 64, true}}) {
    if (swizzle.element != 4 && generation <= 10) continue;
    for (const bool store : {false, true}) {
      const std::string name = "swizzled_" + std::to_string(swizzle.element) + "_" +
                               std::to_string(swizzle.indices) +
                               (swizzle.adds_lane ? "_lane" : "") + (store ? "_store" : "_load");
      hand.add(name,
               std::string(store ? "tbuffer_store" : "tbuffer_load") +
                   "_format_x v40, v[2:3], s[20:23], s10" + quoted(hand.target(), format) +
                   " idxen offen offset:4",
               {}, [=](const Hand::Run& run) { check_swizzled(run, swizzle, format, store); });
    }
  }
}

/// The register of a status keeps its value, because all pages are resident.
void add_status(Hand& hand) {
  const int generation = test::generation(hand.target());
  if (generation == 9) return;  // gfx90a's field is of the accumulation registers
  const auto with_status = [generation](std::vector<uint32_t>& words) {
    if (generation >= 12) {
      words[0] |= 1u << 22;
    } else {
      words[1] |= 1u << (generation == 11 ? 53 - 32 : 55 - 32);
    }
  };
  for (const bool typed : {false, true}) {
    const Access access{.typed = typed, .format = format_named(generation, "8_8_8_8", "UNORM")};
    hand.add(
        std::string(typed ? "typed" : "untyped") + "_with_a_status", access.text(hand.target()), {},
        [access](const Hand::Run& run) {
          check_load(run, access, kSelectIdentity);
          Memory memory;
          u32 records = 0;
          State state = indexed(run.batch.target(), records);
          describe(state, memory, records,
                   word3(run.batch.target(), kSelectIdentity, access.format));
          const State before = state;
          if (run(state)) EXPECT_EQ(state.v[kData + 4], before.v[kData + 4]);
        },
        with_status);
  }
}

/// Formats that don't exist are errors.
void add_unknown(Hand& hand) {
  const int generation = test::generation(hand.target());
  const Access access{.format = format_named(generation, "8", "UINT")};
  const std::vector<u32> numbers = generation == 9 ? std::vector<u32>{0x00, 0x0f, 0x61, 0x71, 0x04}
                                   : generation == 10 ? std::vector<u32>{0, 78, 127}
                                                      : std::vector<u32>{0, 64, 127};
  for (const u32 number : numbers) {
    const auto patch = [number, generation](std::vector<uint32_t>& words) {
      const int at = generation >= 12 ? 55 : 19;
      uint32_t& word = words[static_cast<size_t>(at / 32)];
      word = (word & ~(127u << at % 32)) | number << at % 32;
    };
    hand.add(
        "format_" + std::to_string(number), access.text(hand.target()), {},
        [](const Hand::Run& run) {
          Memory memory;
          u32 records = 0;
          State state = indexed(run.batch.target(), records);
          describe(state, memory, records, 0);
          const Outcome outcome = run.batch.run(run.id, state);
          EXPECT_EQ(outcome.ran, Ran::failed);
          EXPECT_NE(outcome.message.find("format"), std::string::npos) << outcome.message;
        },
        patch);
  }
}

}  // namespace

void register_typed_buffers() {
  for (const Target& target : all_targets()) {
    Hand hand("TypedBuffers", target);
    add_formats(hand);
    add_counts(hand);
    add_raw(hand);
    add_swizzled(hand);
    add_status(hand);
    add_unknown(hand);
  }
}

}  // namespace emu::test
