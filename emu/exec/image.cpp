#include "emu/exec/image.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace emu {
namespace {

struct FormatRow {
  uint8_t components, bytes;
  uint8_t first_10, first_11;  // the number of its first kind, on gfx10 and gfx11; 0: none
};

/// Formats of 8 and 16 bits come as unorm, snorm, uscaled, sscaled, uint, sint; those of 16 bits
/// then as floats; those of 32 bits as uint, sint, floats.
constexpr FormatRow kFormats[] = {{1, 1, 1, 1},   {1, 2, 7, 7},   {2, 1, 14, 14}, {1, 4, 20, 20},
                                  {2, 2, 23, 23}, {4, 1, 56, 42}, {2, 4, 62, 48}, {4, 2, 65, 51},
                                  {3, 4, 72, 58}, {4, 4, 75, 61}};

constexpr Numbers kWide[] = {Numbers::uint, Numbers::sint, Numbers::real};

uint32_t first_number(const FormatRow& row, int generation) {
  return generation >= 11 ? row.first_11 : row.first_10;
}
uint32_t kinds(const FormatRow& row) { return row.bytes == 4 ? 3 : row.bytes == 2 ? 7 : 6; }
Numbers kind(const FormatRow& row, uint32_t index) {
  return row.bytes == 4 ? kWide[index] : static_cast<Numbers>(index);
}

uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }

uint32_t field(const uint32_t* words, unsigned at, unsigned bits) {
  const uint64_t pair =
      words[at / 32] | (at % 32 + bits > 32 ? uint64_t{words[at / 32 + 1]} << 32 : 0);
  return static_cast<uint32_t>(pair >> at % 32 & ((uint64_t{1} << bits) - 1));
}
void put(uint32_t* words, unsigned at, unsigned bits, uint64_t value) {
  for (unsigned i = 0; i < bits; ++i) {
    words[(at + i) / 32] |= static_cast<uint32_t>(value >> i & 1) << (at + i) % 32;
  }
}

float read_real(uint32_t raw, unsigned bytes) {
  if (bytes == 4) return std::bit_cast<float>(raw);
  return static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(raw)));
}

uint32_t read_component(PixelFormat format, uint32_t raw) {
  const unsigned bits = 8u * format.bytes;
  const auto positive = static_cast<float>(raw);
  const int32_t value = static_cast<int32_t>(raw << (32 - bits)) >> (32 - bits);
  const float most = static_cast<float>((uint64_t{1} << (bits - 1)) - 1);
  switch (format.numbers) {
    case Numbers::unorm:
      return bits_of(positive / static_cast<float>((uint64_t{1} << bits) - 1));
    case Numbers::snorm:
      return bits_of(std::max(static_cast<float>(value) / most, -1.f));
    case Numbers::uscaled:
      return bits_of(positive);
    case Numbers::sscaled:
      return bits_of(static_cast<float>(value));
    case Numbers::uint:
      return raw;
    case Numbers::sint:
      return static_cast<uint32_t>(value);
    case Numbers::real:
      return bits_of(read_real(raw, format.bytes));
  }
  return 0;
}

float limited(float value, float least, float most) {
  return value >= most ? most : value > least ? value : least;  // NaN gives the least
}

uint32_t write_component(PixelFormat format, uint32_t word) {
  const unsigned bits = 8u * format.bytes;
  const auto value = std::bit_cast<float>(word);
  const auto whole = static_cast<float>((uint64_t{1} << bits) - 1);
  const auto most = static_cast<float>((uint64_t{1} << (bits - 1)) - 1);
  switch (format.numbers) {
    case Numbers::unorm:
      return static_cast<uint32_t>(std::nearbyint(limited(value, 0, 1) * whole));
    case Numbers::snorm:
      return static_cast<uint32_t>(
          static_cast<int32_t>(std::nearbyint(value == value ? limited(value, -1, 1) * most : 0)));
    case Numbers::uscaled:
      return static_cast<uint32_t>(limited(std::trunc(value), 0, whole));
    case Numbers::sscaled:
      return static_cast<uint32_t>(
          static_cast<int32_t>(value == value ? limited(std::trunc(value), -most - 1, most) : 0));
    case Numbers::uint:
      return bits == 32 ? word : std::min(word, (1u << bits) - 1);
    case Numbers::sint: {
      if (bits == 32) return word;
      const int32_t top = (1 << (bits - 1)) - 1;
      return static_cast<uint32_t>(std::clamp(static_cast<int32_t>(word), -top - 1, top));
    }
    case Numbers::real:
      return bits == 32 ? word : std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  }
  return 0;
}

constexpr uint64_t kPitchAlignment = 256;  // bytes, of rows whose pitch a descriptor doesn't hold

}  // namespace

PixelFormat pixel_format(int generation, uint32_t number) {
  for (const FormatRow& row : kFormats) {
    const uint32_t first = first_number(row, generation);
    if (number < first || number >= first + kinds(row)) continue;
    return {row.components, row.bytes, kind(row, number - first)};
  }
  return {};
}

uint32_t format_number(int generation, PixelFormat format) {
  for (const FormatRow& row : kFormats) {
    if (row.components != format.components || row.bytes != format.bytes) continue;
    for (uint32_t i = 0; i < kinds(row); ++i) {
      if (kind(row, i) == format.numbers) return first_number(row, generation) + i;
    }
  }
  return 0;
}

PixelFormat gfx9_buffer_format(uint32_t data, uint32_t numbers) {
  struct Layout {
    uint8_t number, components, bytes;
  };
  constexpr Layout kLayouts[] = {{1, 1, 1},  {2, 1, 2},  {3, 2, 1},  {4, 1, 4},  {5, 2, 2},
                                 {10, 4, 1}, {11, 2, 4}, {12, 4, 2}, {13, 3, 4}, {14, 4, 4}};
  constexpr uint32_t kReal = 7;
  for (const Layout& layout : kLayouts) {
    if (layout.number != data || numbers == 6 || numbers > kReal) continue;
    return {layout.components, layout.bytes,
            numbers == kReal ? Numbers::real : static_cast<Numbers>(numbers)};
  }
  return {};
}

Texel read_texel(PixelFormat format, const char* from) {
  Texel texel{};
  for (unsigned i = 0; i < format.components; ++i) {
    uint32_t raw = 0;
    std::memcpy(&raw, from + i * format.bytes, format.bytes);
    texel.word[i] = read_component(format, raw);
  }
  return texel;
}

void write_texel(PixelFormat format, const Texel& texel, char* to) {
  for (unsigned i = 0; i < format.components; ++i) {
    const uint32_t raw = write_component(format, texel.word[i]);
    std::memcpy(to + i * format.bytes, &raw, format.bytes);
  }
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

const char* read_image(const uint32_t* d, int generation, Image& image) {
  const auto type = static_cast<ImageType>(d[3] >> 28);
  if (type != ImageType::line && type != ImageType::plane && type != ImageType::lines &&
      type != ImageType::planes) {
    return "an image of a type that isn't implemented";
  }
  image.type = type;
  image.base = (uint64_t{d[1] & 0xff} << 32 | d[0]) << 8;
  image.format = pixel_format(generation, field(d, 32 + 20, generation >= 11 ? 8 : 9));
  if (!image.format.known()) return "an image of a format that isn't implemented";
  if ((d[3] >> 20 & 31) != 0) return "an image whose texels are swizzled";
  if ((d[3] >> 16 & 15) != 0) return "an image with mip levels";
  image.width = field(d, 62, 14) + 1;
  image.height = image.has_height() ? field(d, 78, 14) + 1 : 1;
  image.slices = image.layered() ? field(d, 128, 13) + 1 : 1;
  image.selectors = d[3] & 0xfff;
  const uint64_t row = uint64_t{image.width} * image.format.size();
  image.pitch = (row + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  const uint32_t pitch = image.layered() ? 0 : field(d, 128, 14);
  if (pitch != 0) image.pitch = uint64_t{pitch + 1} * image.format.size();
  image.slice_pitch = image.pitch * image.height;
  return nullptr;
}

void write_image(const Image& image, int generation, uint32_t* d) {
  std::fill(d, d + 8, 0u);
  put(d, 0, 40, image.base >> 8);
  put(d, 32 + 20, generation >= 11 ? 8 : 9, format_number(generation, image.format));
  put(d, 62, 14, image.width - 1);
  put(d, 78, 14, image.height - 1);
  put(d, 96, 12, image.selectors);
  put(d, 124, 4, static_cast<uint64_t>(image.type));
  if (image.layered()) {
    put(d, 128, 13, image.slices - 1);
  } else {
    put(d, 128, 14, image.pitch / image.format.size() - 1);
  }
}

Sampler read_sampler(const uint32_t* d) {
  Sampler sampler;
  for (unsigned axis = 0; axis < 2; ++axis) {
    sampler.clamp[axis] = static_cast<Clamp>(d[0] >> 3 * axis & 7);
  }
  sampler.unnormalized = (d[0] >> 15 & 1) != 0;
  sampler.linear = (d[2] >> 20 & 3) == 1 || (d[2] >> 20 & 3) == 3;
  sampler.linear_small = (d[2] >> 22 & 3) == 1 || (d[2] >> 22 & 3) == 3;
  sampler.border = static_cast<uint8_t>(d[3] >> 30);
  return sampler;
}

void write_sampler(const Sampler& sampler, uint32_t* d) {
  std::fill(d, d + 4, 0u);
  put(d, 0, 3, static_cast<uint64_t>(sampler.clamp[0]));
  put(d, 3, 3, static_cast<uint64_t>(sampler.clamp[1]));
  put(d, 6, 3, static_cast<uint64_t>(sampler.clamp[1]));
  put(d, 15, 1, sampler.unnormalized);
  put(d, 84, 2, sampler.linear);
  put(d, 86, 2, sampler.linear_small);
  put(d, 126, 2, sampler.border);
}

namespace {

/// Returns the position of a texel within the image, or -1 for the border.
int64_t placed(int64_t at, int64_t size, Clamp clamp) {
  switch (static_cast<int>(clamp)) {
    case 0:  // wrap
      return (at % size + size) % size;
    case 1: {  // mirror
      const int64_t within = (at % (2 * size) + 2 * size) % (2 * size);
      return within < size ? within : 2 * size - 1 - within;
    }
    case 3:  // mirror once, then the edge
    case 5:
      return std::min(at < 0 ? -1 - at : at, size - 1);
    case 4:  // clamp to the border
    case 6:
      return at < 0 || at >= size ? -1 : at;
    case 7:  // mirror once, then the border
      at = at < 0 ? -1 - at : at;
      return at >= size ? -1 : at;
    default:
      return std::clamp<int64_t>(at, 0, size - 1);
  }
}

/// A coordinate as the texel below it and the fraction, in 256ths, towards the next one. The
/// hardware rounds coordinates to 256ths, also where it picks the nearest texel.
struct Position {
  int64_t below;
  int fraction;
};

Position position(float coordinate, uint32_t size, bool unnormalized, bool linear) {
  double at =
      unnormalized ? static_cast<double>(coordinate) : static_cast<double>(coordinate) * size;
  if (!std::isfinite(at)) at = std::isnan(at) ? 0 : std::copysign(0x1p40, at);
  at = std::clamp(at, -0x1p40, 0x1p40);
  const double units = std::nearbyint((linear ? at - 0.5 : at) * 256);
  const double below = std::floor(units / 256);
  return {static_cast<int64_t>(below), linear ? static_cast<int>(units - below * 256) : 0};
}

uint64_t tap_address(const Image& image, const Sampler& sampler, int64_t x, int64_t y,
                     uint32_t slice) {
  const int64_t px = placed(x, image.width, sampler.clamp[0]);
  const int64_t py = image.has_height() ? placed(y, image.height, sampler.clamp[1]) : 0;
  if (px < 0 || py < 0) return 0;
  return texel_address(image, static_cast<uint32_t>(px), static_cast<uint32_t>(py), slice);
}

}  // namespace

Taps sample_taps(const Image& image, const Sampler& sampler, const float* at, uint32_t slice,
                 bool linear, const int* offsets) {
  linear = linear && !image.format.integer();
  const Position x = position(at[0], image.width, sampler.unnormalized, linear);
  const Position y = image.has_height()
                         ? position(at[1], image.height, sampler.unnormalized, linear)
                         : Position{0, 0};
  Taps taps;
  const auto add = [&](int dx, int dy, int weight) {
    taps.address[taps.count] =
        tap_address(image, sampler, x.below + offsets[0] + dx, y.below + offsets[1] + dy, slice);
    taps.weight[taps.count++] = static_cast<float>(weight) / 65536;
  };
  add(0, 0, (256 - x.fraction) * (256 - y.fraction));
  if (x.fraction != 0) add(1, 0, x.fraction * (256 - y.fraction));
  if (y.fraction != 0) add(0, 1, (256 - x.fraction) * y.fraction);
  if (x.fraction != 0 && y.fraction != 0) add(1, 1, x.fraction * y.fraction);
  return taps;
}

Taps gather_taps(const Image& image, const Sampler& sampler, const float* at, uint32_t slice,
                 const int* offsets) {
  const Position x = position(at[0], image.width, sampler.unnormalized, true);
  const Position y = position(at[1], image.height, sampler.unnormalized, true);
  constexpr int kOrder[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Taps taps;
  for (const auto& [dx, dy] : kOrder) {
    taps.address[taps.count++] =
        tap_address(image, sampler, x.below + offsets[0] + dx, y.below + offsets[1] + dy, slice);
  }
  return taps;
}

uint64_t texel_address(const Image& image, uint32_t x, uint32_t y, uint32_t slice) {
  if (x >= image.width || y >= image.height || slice >= image.slices) return 0;
  return image.base + slice * image.slice_pitch + y * image.pitch +
         uint64_t{x} * image.format.size();
}

uint32_t slice_of(const Image& image, float coordinate) {
  const float nearest = std::nearbyint(coordinate);
  return static_cast<uint32_t>(limited(nearest, 0, static_cast<float>(image.slices - 1)));
}

Texel border_texel(const Image& image, const Sampler& sampler) {
  const uint32_t one = image.format.integer() ? 1 : bits_of(1);
  const uint32_t color = sampler.border == 2 ? one : 0;
  return {{color, color, color, sampler.border == 0 ? 0 : one}};
}

Texel blend(PixelFormat format, const Taps& taps, const Texel* texels) {
  if (format.integer() || taps.count == 1) return texels[0];
  Texel result{};
  for (unsigned i = 0; i < 4; ++i) {
    float sum = 0;
    for (int tap = 0; tap < taps.count; ++tap) {
      sum += taps.weight[tap] * std::bit_cast<float>(texels[tap].word[i]);
    }
    result.word[i] = bits_of(sum);
  }
  return result;
}

}  // namespace emu
