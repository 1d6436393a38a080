// Images of one and two dimensions: loads, stores, samples and gathers, through descriptors that
// are written here from the tables of AMD's ISA documents.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "emu/tests/names.h"
#include "emu/tests/pixel_reference.h"
#include "emu/tests/suites.h"

namespace emu::test {
namespace {

constexpr int kData = 40, kImage = 20, kSampler = 28;
constexpr u32 kLine = 8, kPlane = 9, kLines = 12, kPlanes = 13;
constexpr u32 kIdentitySelectors = 4 | 5 << 3 | 6 << 6 | 7 << 9;

using Words = std::array<u32, 8>;

void set_field(u32* words, int at, int width, u64 value) {
  for (int i = 0; i < width; ++i) {
    words[(at + i) / 32] |= static_cast<u32>(value >> i & 1) << (at + i) % 32;
  }
}

struct Image {
  const uint8_t* base = nullptr;
  u32 width = 1, height = 1, slices = 1;
  u32 pitch = 0;  // texels; 0: the descriptor doesn't tell it
  NamedFormat format;
  u32 selectors = kIdentitySelectors, type = kPlane;

  /// The bytes between rows, and between slices.
  u32 row(int generation) const {
    const u32 bytes = width * static_cast<u32>(format.bytes()), unit = generation >= 12 ? 128 : 256;
    if (pitch != 0) return pitch * static_cast<u32>(format.bytes());
    return (bytes + unit - 1) / unit * unit;
  }
  u32 slice() const {
    return (width * static_cast<u32>(format.bytes()) + 255) / 256 * 256 * height;
  }
  /// The place of a texel; null beyond the image.
  const uint8_t* texel(int generation, i64 x, i64 y, i64 z = 0) const {
    if (x < 0 || y < 0 || z < 0 || x >= width || y >= height || z >= slices) return nullptr;
    return base + z * slice() + y * row(generation) + x * format.bytes();
  }
  Words words(int generation) const {
    Words w{};
    set_field(w.data(), 0, 40, reinterpret_cast<u64>(base) >> 8);
    set_field(w.data(), generation >= 12 ? 49 : 52, generation >= 11 ? 8 : 9, format.number);
    set_field(w.data(), 62, generation >= 12 ? 16 : 14, width - 1);
    set_field(w.data(), 78, generation >= 12 ? 16 : 14, height - 1);
    set_field(w.data(), 96, 12, selectors);
    set_field(w.data(), 124, 4, type);
    const bool layered = type == kLines || type == kPlanes;
    if (layered) set_field(w.data(), 128, generation >= 12 ? 14 : 13, slices - 1);
    if (pitch != 0) set_field(w.data(), 128, generation >= 12 ? 16 : 14, pitch - 1);
    return w;
  }
};

struct Sampler {
  u32 clamp = 2;  // 0 wrap, 1 mirror, 2 edge, 6 border
  bool unnormalized = true, linear = false;
  u32 border = 0;  // 1: opaque black, 2: white

  void put(State& state) const {
    u32 w[4] = {};
    for (int axis = 0; axis < 3; ++axis) set_field(w, 3 * axis, 3, clamp);
    set_field(w, 15, 1, unnormalized);
    set_field(w, 84, 2, linear);
    set_field(w, 86, 2, linear);
    set_field(w, 126, 2, border);
    for (size_t i = 0; i < 4; ++i) state.s[kSampler + i] = w[i];
  }
};

/// Memory that images lie in, with random bytes.
struct Memory {
  alignas(256) uint8_t bytes[96 << 10];
  Memory() {
    Random random(31);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  }
};

/// An image of 13 by 9 texels with two components of 8 bits.
Image image_of_pairs(const Memory& memory, int generation) {
  return {.base = memory.bytes,
          .width = 13,
          .height = 9,
          .pitch = 64,
          .format = format_named(generation, "8_8", "UNORM")};
}

/// A random state with the descriptors of an image and a sampler.
State state_with(const Hand::Run& run, const Image& image, const Sampler& sampler = {}) {
  const Target& target = run.batch.target();
  State state = random_state(target, 8);
  const Words words = image.words(generation(target));
  for (size_t i = 0; i < 8; ++i) state.s[kImage + i] = words[i];
  sampler.put(state);
  return state;
}

/// The registers of an address, from v2 on, as each family's assembler writes them. gfx12 has a
/// field for each of four, and the last one may stand for several.
std::string address(const Target& target, int count) {
  if (count == 1) return "v2";
  if (test::generation(target) < 12) return range(2, count);
  std::string text = "[";
  for (int i = 0; i < std::min(count, 4); ++i) {
    text += (i == 0 ? "" : ", ") + range(2 + i, i == 3 ? count - 3 : 1);
  }
  return text + "]";
}

std::string load_text(const Target& target, const std::string& op, int registers, int addresses,
                      int mask, const std::string& dim, const std::string& more = "") {
  const bool samples = op.starts_with("image_sample") || op.starts_with("image_gather");
  return op + " " + range(kData, registers) + ", " + address(target, addresses) + ", s[20:27]" +
         (samples ? ", s[28:31]" : "") + " dmask:" + std::to_string(mask) + " dim:SQ_RSRC_IMG_" +
         dim + more;
}

u32 bits(float value) { return std::bit_cast<u32>(value); }
float real(u32 word) { return std::bit_cast<float>(word); }

/// Returns what a load gives: selected components of the texel, which is 0 beyond the image.
std::array<u32, 4> loaded(const Image& image, const uint8_t* texel) {
  std::array<u32, 4> result{};
  for (int i = 0; i < 4; ++i) {
    const u32 selector = image.selectors >> 3 * i & 7;
    if (selector == 1) result[i] = image.format.integer() ? 1 : bits(1);
    if (selector < 4 || texel == nullptr) continue;
    result[i] = component(image.format, texel, static_cast<int>(selector) - 4);
  }
  return result;
}

// ---- Loads.

struct Place {
  i64 x, y, z;
};

/// Coordinates of lanes, some of which are beyond the image.
Place place_of(const Image& image, u32 lane) {
  return {static_cast<i64>(lane * 7 % (image.width + 2)) - 1,
          static_cast<i64>(lane * 5 % (image.height + 1)),
          static_cast<i64>(lane * 3 % (image.slices + 1))};
}

void add_load(Hand& hand, const std::string& name, Image image, int mask) {
  const int generation = test::generation(hand.target());
  const bool height = image.type == kPlane || image.type == kPlanes;
  const bool layered = image.type == kLines || image.type == kPlanes;
  const int registers = std::popcount(static_cast<unsigned>(mask));
  const std::string dim = std::string(height ? "2D" : "1D") + (layered ? "_ARRAY" : "");
  hand.add(name, load_text(hand.target(), "image_load", registers, 1 + height + layered, mask, dim),
           {"image_load"}, [=](const Hand::Run& run) {
             const Memory memory;
             Image at = image;
             at.base = memory.bytes;
             State state = state_with(run, at);
             state.exec &= ~u64{0x10};
             for (u32 lane = 0; lane < static_cast<u32>(run.batch.target().lanes()); ++lane) {
               const Place p = place_of(at, lane);
               int reg = 2;
               state.v[reg++][lane] = static_cast<u32>(p.x);
               if (height) state.v[reg++][lane] = static_cast<u32>(p.y);
               if (layered) state.v[reg][lane] = static_cast<u32>(p.z);
             }
             const State before = state;
             if (!run(state)) return;
             for (u32 lane = 0; lane < static_cast<u32>(run.batch.target().lanes()); ++lane) {
               const Place p = place_of(at, lane);
               const auto want =
                   loaded(at, at.texel(generation, p.x, height ? p.y : 0, layered ? p.z : 0));
               int reg = kData;
               for (int i = 0; i < 4; ++i) {
                 if ((mask >> i & 1) == 0) continue;
                 const bool enabled = (before.exec >> lane & 1) != 0;
                 const u32 got = state.v[reg][lane], old = before.v[reg][lane];
                 ++reg;
                 if (enabled && both_nan(at.format, got, want[i])) continue;
                 EXPECT_EQ(got, enabled ? want[i] : old) << lane << " " << i;
               }
             }
           });
}

void add_loads(Hand& hand) {
  const int generation = test::generation(hand.target());
  const auto format = [&](const char* layout, const char* kind) {
    return format_named(generation, layout, kind);
  };
  const Image bytes{.width = 13, .height = 9, .pitch = 64, .format = format("8_8_8_8", "UINT")};
  for (const int mask : {15, 1, 5, 8, 14})
    add_load(hand, "load_mask_" + std::to_string(mask), bytes, mask);
  Image image = bytes;
  image.selectors = 6 | 1 << 3 | 0 << 6 | 4 << 9;
  add_load(hand, "load_selected", image, 15);
  image = bytes;
  image.pitch = 0;
  add_load(hand, "load_aligned_rows", image, 15);
  image.width = 41;  // 164 bytes: the alignment is 256 on gfx10, gfx11 and gfx12
  add_load(hand, "load_longer_rows", image, 15);
  add_load(hand, "load_line",
           {.width = 30, .pitch = 64, .format = format("32", "FLOAT"), .type = kLine}, 1);
  add_load(hand, "load_lines",
           {.width = 20, .slices = 5, .format = format("16_16", "SNORM"), .type = kLines}, 3);
  add_load(hand, "load_planes",
           {.width = 9, .height = 3, .slices = 4, .format = format("8_8", "SINT"), .type = kPlanes},
           3);
  add_load(hand, "load_packed",
           {.width = 9, .height = 3, .pitch = 64, .format = format("2_10_10_10", "UNORM")}, 15);
  if (generation >= 12) {
    add_load(hand, "load_of_a_wide_image",
             {.width = 40000, .height = 2, .pitch = 40192, .format = format("8", "UINT")}, 1);
  }
  for (const NamedFormat& each : buffer_formats(generation)) {
    add_load(hand, "load_" + each.layout + "_" + each.kind,
             {.width = 17, .height = 3, .pitch = 64, .format = each}, 15);
  }
}

/// Coordinates and components of 16 bits.
void add_halves(Hand& hand) {
  const int generation = test::generation(hand.target());
  for (const char* kind : {"UNORM", "SINT"}) {
    const NamedFormat format = format_named(generation, "8_8_8_8", kind);
    hand.add(std::string("load_halves_") + kind,
             load_text(hand.target(), "image_load", 2, 1, 7, "2D", " a16 d16"), {"image_load"},
             [format, generation](const Hand::Run& run) {
               const Memory memory;
               const Image image{
                   .base = memory.bytes, .width = 13, .height = 9, .pitch = 64, .format = format};
               State state = state_with(run, image);
               for (u32 lane = 0; lane < 32; ++lane) {
                 state.v[2][lane] = lane % 13 | (lane % 9) << 16;
               }
               const State before = state;
               if (!run(state)) return;
               for (u32 lane = 0; lane < 32; ++lane) {
                 const auto want = loaded(image, image.texel(generation, lane % 13, lane % 9));
                 const auto half = [&](u32 word) {
                   return format.integer() ? word & 0xffff : half_code(real(word));
                 };
                 EXPECT_EQ(state.v[40][lane], half(want[0]) | half(want[1]) << 16) << lane;
                 EXPECT_EQ(state.v[41][lane] & 0xffff, half(want[2])) << lane;
                 EXPECT_EQ(state.v[41][lane] >> 16, before.v[41][lane] >> 16) << lane;
               }
             });
  }
}

// ---- Stores.

void add_store(Hand& hand, const std::string& name, const NamedFormat& format, int mask,
               bool half) {
  const int generation = test::generation(hand.target());
  const int count = std::popcount(static_cast<unsigned>(mask)),
            registers = half ? (count + 1) / 2 : count;
  hand.add(name,
           load_text(hand.target(), "image_store", registers, 2, mask, "2D", half ? " d16" : ""),
           {"image_store"}, [=](const Hand::Run& run) {
             Memory memory, want;
             const Image image{
                 .base = memory.bytes, .width = 7, .height = 5, .pitch = 64, .format = format};
             Image wanted = image;
             wanted.base = want.bytes;
             State state = state_with(run, image);
             state.exec &= ~u64{0x20};
             for (u32 lane = 0; lane < 32; ++lane) {
               const i64 x = lane % 8 - (lane == 9), y = lane / 8;
               state.v[2][lane] = static_cast<u32>(x);
               state.v[3][lane] = static_cast<u32>(y);
               std::array<u32, 4> words{};
               u32 from = 0, first = 0;
               for (int i = 0; i < 4; ++i) {
                 if ((mask >> i & 1) == 0) continue;
                 // Integers of 16 bits are extended by their sign.
                 u32 word = state.v[kData + (half ? from / 2 : from)][lane];
                 if (half) word = static_cast<u32>(i32{static_cast<i16>(word >> 16 * (from % 2))});
                 if (from++ == 0) first = word;
                 words[static_cast<size_t>(i)] = word;
               }
               for (int i = 0; i < 4; ++i) {  // gfx12 fills in the first component
                 if ((mask >> i & 1) == 0 && generation >= 12)
                   words[static_cast<size_t>(i)] = first;
               }
               auto* texel = const_cast<uint8_t*>(wanted.texel(generation, x, y));
               if (texel == nullptr || (state.exec >> lane & 1) == 0) continue;
               for (int i = 0; i < format.components(); ++i) {
                 put_component(format, texel, i,
                               stored_component(format, words[static_cast<size_t>(i)], i));
               }
             }
             if (!run(state)) return;
             EXPECT_EQ(std::memcmp(memory.bytes, want.bytes, sizeof memory.bytes), 0);
           });
}

void add_stores(Hand& hand) {
  const int generation = test::generation(hand.target());
  const auto format = [&](const char* layout, const char* kind) {
    return format_named(generation, layout, kind);
  };
  add_store(hand, "store", format("16_16_16_16", "SINT"), 15, false);
  add_store(hand, "store_words", format("32_32_32_32", "FLOAT"), 15, false);
  add_store(hand, "store_two_of_four", format("8_8_8_8", "SINT"), 9, false);
  add_store(hand, "store_four_of_two", format("32_32", "UINT"), 15, false);
  add_store(hand, "store_halves", format("8_8_8_8", "SINT"), 15, true);
}

// ---- Samples.

/// The texel that a coordinate outside the image means; -1 for the border.
i64 clamped(i64 at, i64 size, u32 clamp) {
  if (clamp == 2) return std::clamp<i64>(at, 0, size - 1);
  if (clamp == 6) return at < 0 || at >= size ? -1 : at;
  while (at < 0 || at >= size) {
    if (clamp == 0) {
      at += at < 0 ? size : -size;
    } else {
      at = at < 0 ? -1 - at : 2 * size - 1 - at;
    }
  }
  return at;
}

struct Sampled {
  const Image& image;
  const Sampler& sampler;
  int generation;

  double at(i64 x, i64 y, int i) const {
    const i64 px = clamped(x, image.width, sampler.clamp),
              py = clamped(y, image.height, sampler.clamp);
    if (px >= 0 && py >= 0) {
      return real(loaded(image, image.texel(generation, px, py))[static_cast<size_t>(i)]);
    }
    return sampler.border == 2 || (sampler.border == 1 && i == 3) ? 1 : 0;
  }
  double operator()(double x, double y, int i) const {
    if (!sampler.linear)
      return at(static_cast<i64>(std::floor(x)), static_cast<i64>(std::floor(y)), i);
    const double fx = std::floor(x - 0.5), fy = std::floor(y - 0.5), wx = x - 0.5 - fx,
                 wy = y - 0.5 - fy;
    const auto ix = static_cast<i64>(fx), iy = static_cast<i64>(fy);
    return (1 - wy) * ((1 - wx) * at(ix, iy, i) + wx * at(ix + 1, iy, i)) +
           wy * ((1 - wx) * at(ix, iy + 1, i) + wx * at(ix + 1, iy + 1, i));
  }
};

/// Coordinates are multiples of 1/4, which no rounding changes.
double coordinate(u32 lane, u32 size, u32 step) {
  return static_cast<double>(lane * step % (8 * size)) / 4 - size / 2. + 0.125;
}

void add_sample(Hand& hand, const std::string& name, const Sampler& sampler, const std::string& op,
                int leading, bool level) {
  const int generation = test::generation(hand.target());
  const bool moved = op.ends_with("_o");
  hand.add(name, load_text(hand.target(), op, 4, leading + 2 + level, 15, "2D"), {op},
           [=](const Hand::Run& run) {
             const Memory memory;
             const Image image{.base = memory.bytes,
                               .width = 16,
                               .height = 8,
                               .pitch = 64,
                               .format = format_named(generation, "8_8_8_8", "UNORM")};
             State state = state_with(run, image, sampler);
             for (u32 lane = 0; lane < 32; ++lane) {
               const double x = coordinate(lane, 16, 13), y = coordinate(lane, 8, 11);
               for (int i = 0; i < leading; ++i) {
                 state.v[2 + i][lane] = moved ? 3 | 62 << 8 : bits(0.25f);
               }
               const bool whole = sampler.unnormalized;
               state.v[2 + leading][lane] = bits(static_cast<float>(whole ? x : x / 16));
               state.v[3 + leading][lane] = bits(static_cast<float>(whole ? y : y / 8));
               state.v[4 + leading][lane] = 0;
             }
             if (!run(state)) return;
             const Sampled want{image, sampler, generation};
             for (u32 lane = 0; lane < 32; ++lane) {
               const double x = coordinate(lane, 16, 13), y = coordinate(lane, 8, 11);
               for (int i = 0; i < 4; ++i) {
                 const double wanted = moved ? want(x + 3, y - 2, i) : want(x, y, i);
                 EXPECT_NEAR(real(state.v[kData + i][lane]), wanted, 1e-6)
                     << x << ", " << y << " component " << i;
               }
             }
           });
}

void add_samples(Hand& hand) {
  for (const u32 clamp : {0u, 1u, 2u, 6u}) {
    for (const bool linear : {false, true}) {
      for (const bool unnormalized : {false, true}) {
        const Sampler sampler{clamp, unnormalized, linear, clamp == 6 ? 1u : 0u};
        add_sample(hand,
                   "sample_" + std::to_string(clamp) + (linear ? "_linear" : "_nearest") +
                       (unnormalized ? "" : "_normalized"),
                   sampler, "image_sample", 0, false);
      }
    }
  }
  const Sampler linear{.linear = true, .border = 0};
  add_sample(hand, "sample_lz", linear, "image_sample_lz", 0, false);
  add_sample(hand, "sample_l", linear, "image_sample_l", 0, true);
  add_sample(hand, "sample_b", linear, "image_sample_b", 1, false);
  add_sample(hand, "sample_d", linear, "image_sample_d", 4, false);
  add_sample(hand, "sample_d_g16", linear, "image_sample_d_g16", 2, false);
  add_sample(hand, "sample_o", linear, "image_sample_lz_o", 1, false);
  add_sample(hand, "sample_white_border", {.clamp = 6, .border = 2}, "image_sample", 0, false);
}

void add_gather(Hand& hand) {
  const int generation = test::generation(hand.target());
  for (const int mask : {1, 4}) {
    hand.add("gather_" + std::to_string(mask),
             load_text(hand.target(), "image_gather4_lz", 4, 2, mask, "2D"), {"image_gather4_lz"},
             [=](const Hand::Run& run) {
               const Memory memory;
               const Image image{.base = memory.bytes,
                                 .width = 16,
                                 .height = 8,
                                 .pitch = 64,
                                 .format = format_named(generation, "8_8_8_8", "UNORM")};
               const Sampler sampler{.clamp = 1};
               State state = state_with(run, image, sampler);
               for (u32 lane = 0; lane < 32; ++lane) {
                 state.v[2][lane] = bits(static_cast<float>(coordinate(lane, 16, 13)));
                 state.v[3][lane] = bits(static_cast<float>(coordinate(lane, 8, 11)));
               }
               if (!run(state)) return;
               const Sampled want{image, sampler, generation};
               constexpr int kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
               for (u32 lane = 0; lane < 32; ++lane) {
                 const auto x = static_cast<i64>(std::floor(coordinate(lane, 16, 13) - 0.5)),
                            y = static_cast<i64>(std::floor(coordinate(lane, 8, 11) - 0.5));
                 for (int i = 0; i < 4; ++i) {
                   EXPECT_EQ(real(state.v[kData + i][lane]),
                             want.at(x + kOrder[i][0], y + kOrder[i][1], mask == 1 ? 0 : 2))
                       << lane << " " << i;
                 }
               }
             });
  }
}

void add_info(Hand& hand) {
  const int generation = test::generation(hand.target());
  hand.add("resinfo", load_text(hand.target(), "image_get_resinfo", 4, 1, 15, "2D"),
           {"image_get_resinfo"}, [generation](const Hand::Run& run) {
             const Memory memory;
             const u32 width = generation >= 12 ? 60000 : 16000;
             const Image image{.base = memory.bytes,
                               .width = width,
                               .height = 300,
                               .format = format_named(generation, "8", "UINT")};
             State state = state_with(run, image);
             for (u32 lane = 0; lane < 32; ++lane) state.v[2][lane] = lane == 3;
             if (!run(state)) return;
             for (u32 lane = 0; lane < 32; ++lane) {
               const u32 want[] = {lane == 3 ? 0 : width, lane == 3 ? 0u : 300, lane != 3, 1};
               for (int i = 0; i < 4; ++i) EXPECT_EQ(state.v[kData + i][lane], want[i]) << lane;
             }
           });
}

/// The register of a status keeps its value, because all pages are resident.
void add_status(Hand& hand) {
  const int generation = test::generation(hand.target());
  for (const bool sample : {false, true}) {
    const std::string op = sample ? "image_sample_lz" : "image_load";
    hand.add(op + "_with_a_status", load_text(hand.target(), op, 3, 2, 3, "2D", " tfe"), {},
             [=](const Hand::Run& run) {
               const Memory memory;
               const Image image = image_of_pairs(memory, generation);
               State state = state_with(run, image, Sampler());
               for (u32 lane = 0; lane < 32; ++lane) {
                 state.v[2][lane] = sample ? bits(static_cast<float>(lane % 13) + 0.5f) : lane % 13;
                 state.v[3][lane] = sample ? bits(static_cast<float>(lane % 9) + 0.5f) : lane % 9;
               }
               const State before = state;
               if (!run(state)) return;
               for (u32 lane = 0; lane < 32; ++lane) {
                 const auto want = loaded(image, image.texel(generation, lane % 13, lane % 9));
                 EXPECT_EQ(state.v[40][lane], want[0]) << lane;
                 EXPECT_EQ(state.v[41][lane], want[1]) << lane;
                 EXPECT_EQ(state.v[42][lane], before.v[42][lane]) << lane;
               }
             });
  }
}

// ---- Descriptors that can't be used are errors.

struct Bad {
  const char* name;
  bool sampler;  // the sampler's words, not the image's
  int at, width;
  u32 value;
  const char* message;
};

std::vector<Bad> bad_fields(int generation) {
  const bool is_12 = generation >= 12;
  return {{"three_dimensions", false, 124, 4, 10, "type"},
          {"type_0", false, 124, 4, 0, "type"},
          {"cube", false, 124, 4, 11, "type"},
          {"samples", false, 124, 4, 14, "type"},
          {"line", false, 124, 4, 8, "another type"},
          {"format_0", false, is_12 ? 49 : 52, 8, 0, "format"},
          {"format_of_blocks", false, is_12 ? 49 : 52, 8, 0xff, "format"},
          {"swizzled", false, 116, 5, 3, "swizzled"},
          {"last_level", false, is_12 ? 111 : 112, 4, 1, "mip"},
          {"highest_last_level", false, is_12 ? 115 : 115, 1, 1, "mip"},
          {"base_level", false, is_12 ? 57 : 108, 4, 2, "mip"},
          {"most_levels", false,
           is_12              ? 44
           : generation == 11 ? 48
                              : 164,
           4, 3, "mip"},
          {"first_slice", false, 144, 13, 1, "slice"},
          {"minimum_filter", true, 29, 2, 1, "minimum"},
          {"border_in_memory", true, 126, 2, 3, "border"}};
}

void add_hostile(Hand& hand) {
  const int generation = test::generation(hand.target());
  for (const Bad& bad : bad_fields(generation)) {
    hand.add(std::string("hostile_") + bad.name,
             load_text(hand.target(), "image_sample_lz", 4, 2, 15, "2D"), {},
             [=](const Hand::Run& run) {
               const Memory memory;
               const Image image = image_of_pairs(memory, generation);
               State state = state_with(run, image, Sampler());
               u32* words = &state.s[bad.sampler ? kSampler : kImage];
               for (int i = bad.at; i < bad.at + bad.width; ++i) {
                 words[i / 32] &= ~(1u << i % 32);
               }
               set_field(words, bad.at, bad.width, bad.value);
               const Outcome outcome = run.batch.run(run.id, state);
               EXPECT_EQ(outcome.ran, Ran::failed);
               EXPECT_NE(outcome.message.find(bad.message), std::string::npos) << outcome.message;
             });
  }
}

}  // namespace

void register_images() {
  for (const Target& target : all_chips()) {
    if (is_gfx9(target)) continue;  // no images are implemented
    Hand hand("Images", target);
    add_loads(hand);
    add_halves(hand);
    add_stores(hand);
    add_samples(hand);
    add_gather(hand);
    add_info(hand);
    add_status(hand);
    add_hostile(hand);
  }
}

}  // namespace emu::test
