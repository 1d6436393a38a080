#include "emu/exec/pixel.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace emu {
namespace {

using enum Numbers;

constexpr Numbers kAll[] = {unorm, snorm, uscaled, sscaled, uint, sint, real};
constexpr Numbers kPure[] = {uint, sint, real};  // of components of 32 bits
constexpr Numbers kReal[] = {real};
constexpr Numbers kFour[] = {unorm, snorm, uint, sint};
constexpr std::span<const Numbers> kSmall = std::span(kAll).first<6>();

/// The kinds of a format, which have consecutive numbers.
struct FormatRow {
  uint8_t components, bytes;
  Packing packing;
  uint8_t first_10, first_11;  // the number of the first kind, on gfx10 and from gfx11 on
  std::span<const Numbers> kinds_10, kinds_11;
};

constexpr FormatRow even(uint8_t components, uint8_t bytes, uint8_t first_10, uint8_t first_11) {
  const std::span<const Numbers> kinds = bytes == 4   ? std::span<const Numbers>(kPure)
                                         : bytes == 2 ? std::span<const Numbers>(kAll)
                                                      : kSmall;
  return {components, bytes, Packing::none, first_10, first_11, kinds, kinds};
}

constexpr FormatRow kFormats[] = {
    even(1, 1, 1, 1),
    even(1, 2, 7, 7),
    even(2, 1, 14, 14),
    even(1, 4, 20, 20),
    even(2, 2, 23, 23),
    {3, 0, Packing::b10_11_11, 30, 30, kAll, kReal},
    {3, 0, Packing::b11_11_10, 37, 31, kAll, kReal},
    {4, 0, Packing::b10_10_10_2, 44, 32, kSmall, kFour},
    {4, 0, Packing::b2_10_10_10, 50, 36, kSmall, kSmall},
    even(4, 1, 56, 42),
    even(2, 4, 62, 48),
    even(4, 2, 65, 51),
    even(3, 4, 72, 58),
    even(4, 4, 75, 61),
};

uint32_t first_number(const FormatRow& row, int generation) {
  return generation >= 11 ? row.first_11 : row.first_10;
}
std::span<const Numbers> kinds(const FormatRow& row, int generation) {
  return generation >= 11 ? row.kinds_11 : row.kinds_10;
}

/// The place of a component in an element.
struct Place {
  unsigned at, bits;
};
Place place_of(PixelFormat format, unsigned component) {
  constexpr uint8_t kBits[][4] = {{}, {11, 11, 10}, {10, 11, 11}, {2, 10, 10, 10}, {10, 10, 10, 2}};
  if (format.packing == Packing::none) return {component * format.bytes * 8u, format.bytes * 8u};
  const auto& bits = kBits[static_cast<size_t>(format.packing)];
  unsigned at = 0;
  for (unsigned i = 0; i < component; ++i) at += bits[i];
  return {at, bits[component]};
}

uint32_t mask_of(unsigned bits) { return static_cast<uint32_t>((uint64_t{1} << bits) - 1); }
uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

/// Floats of 10 and 11 bits have the exponent of 16-bit floats and no sign.
float read_real(uint32_t raw, unsigned bits) {
  if (bits == 32) return std::bit_cast<float>(raw);
  const uint32_t half = bits == 16 ? raw : raw << (15 - bits);
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(half)));
}

uint32_t read_component(Numbers numbers, uint32_t raw, unsigned bits) {
  const auto positive = static_cast<float>(raw);
  const int32_t value = static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits);
  switch (numbers) {
    case unorm:
      return bits_of(positive / static_cast<float>(mask_of(bits)));
    case snorm:
      return bits_of(
          std::max(static_cast<float>(value) / static_cast<float>(mask_of(bits - 1)), -1.f));
    case uscaled:
      return bits_of(positive);
    case sscaled:
      return bits_of(static_cast<float>(value));
    case uint:
      return raw;
    case sint:
      return static_cast<uint32_t>(value);
    case real:
      return bits_of(read_real(raw, bits));
  }
  return 0;
}

float limited(float value, float least, float most) {
  return value >= most ? most : value > least ? value : least;  // NaN gives the least
}

/// Rounds to nearest even. Negative numbers become 0 where there is no sign.
uint32_t write_real(float value, unsigned bits) {
  if (bits == 32) return bits_of(value);
  if (bits == 16) return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  const unsigned fraction = bits - 5;
  const uint32_t infinity = 31u << fraction;
  if (value != value) return infinity | 1;
  if (value <= 0) return 0;
  if (std::isinf(value)) return infinity;
  // The distance of the numbers around the value; below 2^-14 it is that of denormals.
  const int exponent = std::max(std::ilogb(value), -14);
  const auto units = static_cast<uint32_t>(
      std::nearbyint(std::ldexp(value, static_cast<int>(fraction) - exponent)));
  // The implicit 1 carries into the exponent's field, as does a fraction that is rounded up.
  return std::min(units + (static_cast<uint32_t>(exponent + 14) << fraction), infinity);
}

uint32_t write_component(Numbers numbers, uint32_t word, unsigned bits) {
  const auto value = std::bit_cast<float>(word);
  const auto whole = static_cast<float>(mask_of(bits));
  const auto most = static_cast<float>(mask_of(bits - 1));
  const auto as_signed = [](float v) { return static_cast<uint32_t>(static_cast<int32_t>(v)); };
  switch (numbers) {
    case unorm:
      return static_cast<uint32_t>(std::nearbyint(limited(value, 0, 1) * whole));
    case snorm:
      return as_signed(std::nearbyint(value == value ? limited(value, -1, 1) * most : 0));
    case uscaled:
      return static_cast<uint32_t>(limited(std::trunc(value), 0, whole));
    case sscaled:
      return as_signed(value == value ? limited(std::trunc(value), -most - 1, most) : 0);
    case uint:
      return std::min(word, mask_of(bits));
    case sint: {
      const auto top = static_cast<int32_t>(mask_of(bits - 1));
      return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(word), -top - 1, top));
    }
    case real:
      return write_real(value, bits);
  }
  return 0;
}

}  // namespace

PixelFormat pixel_format(int generation, uint32_t number) {
  for (const FormatRow& row : kFormats) {
    const uint32_t first = first_number(row, generation);
    if (number < first || number >= first + kinds(row, generation).size()) continue;
    return {row.components, row.bytes, kinds(row, generation)[number - first], row.packing};
  }
  return {};
}

uint32_t format_number(int generation, PixelFormat format) {
  for (uint32_t number = 1; number < 128; ++number) {
    if (pixel_format(generation, number) == format) return number;
  }
  return 0;
}

PixelFormat gfx9_buffer_format(uint32_t data, uint32_t numbers) {
  // The formats in the order of the field for data, which begins at 1.
  constexpr PixelFormat kLayouts[] = {{1, 1},
                                      {1, 2},
                                      {2, 1},
                                      {1, 4},
                                      {2, 2},
                                      {3, 0, real, Packing::b10_11_11},
                                      {3, 0, real, Packing::b11_11_10},
                                      {4, 0, unorm, Packing::b10_10_10_2},
                                      {4, 0, unorm, Packing::b2_10_10_10},
                                      {4, 1},
                                      {2, 4},
                                      {4, 2},
                                      {3, 4},
                                      {4, 4}};
  constexpr uint32_t kRealNumbers = 7, kReserved = 6;
  if (data - 1 >= std::size(kLayouts) || numbers == kReserved || numbers > kRealNumbers) return {};
  PixelFormat format = kLayouts[data - 1];
  format.numbers = numbers == kRealNumbers ? real : static_cast<Numbers>(numbers);
  constexpr int kSameKinds = 10;  // gfx10 has formats of the same kinds
  return format_number(kSameKinds, format) != 0 ? format : PixelFormat{};
}

Texel read_texel(PixelFormat format, const char* from) {
  Texel texel{};
  for (unsigned i = 0; i < format.components; ++i) {
    const auto [at, bits] = place_of(format, i);
    uint32_t raw = 0;
    std::memcpy(&raw, from + at / 32 * 4, std::min(format.size() - at / 32 * 4, 4u));
    texel.word[i] = read_component(format.numbers, raw >> at % 32 & mask_of(bits), bits);
  }
  return texel;
}

void write_texel(PixelFormat format, const Texel& texel, char* to) {
  uint32_t dwords[4] = {};
  for (unsigned i = 0; i < format.components; ++i) {
    const auto [at, bits] = place_of(format, i);
    const uint32_t raw = write_component(format.numbers, texel.word[i], bits) & mask_of(bits);
    dwords[at / 32] |= raw << at % 32;
  }
  std::memcpy(to, dwords, format.size());
}

Texel select_components(PixelFormat format, const Texel& texel, uint32_t selectors) {
  const uint32_t one = format.integer() ? 1 : bits_of(1);
  Texel result{};
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t selector = selectors >> 3 * i & 7;
    result.word[i] = selector >= 4 ? texel.word[selector - 4] : selector == 1 ? one : 0;
  }
  return result;
}

uint16_t half_of_word(PixelFormat format, uint32_t word, HalfRounding rounding) {
  if (format.integer()) return static_cast<uint16_t>(word);
  const auto value = std::bit_cast<float>(word);
  auto half = static_cast<_Float16>(value);
  auto bits = std::bit_cast<uint16_t>(half);
  const bool away = std::fabs(static_cast<float>(half)) > std::fabs(value);
  if (rounding == HalfRounding::truncate && away) --bits;  // also from infinity to the largest
  return bits;
}

uint32_t word_of_half(PixelFormat format, uint16_t half) {
  if (format.numbers == sint) return static_cast<uint32_t>(int32_t{static_cast<int16_t>(half)});
  if (format.numbers == uint) return half;
  return bits_of(static_cast<float>(std::bit_cast<_Float16>(half)));
}

}  // namespace emu
