#include "emu/exec/image.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace emu {
namespace {

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

float limited(float value, float least, float most) {
  return value >= most ? most : value > least ? value : least;  // NaN gives the least
}

/// A field of a descriptor.
struct Bits {
  uint8_t at, width;

  uint32_t of(const uint32_t* words) const { return field(words, at, width); }
};

/// The fields of an image's descriptor whose places differ. The pitch is where `depth` is, in
/// images without slices.
struct ImageFields {
  Bits format, width, height, base_level, last_level, most_levels, depth, pitch;
};
constexpr ImageFields kGfx10 = {{52, 9},  {62, 14}, {78, 14},  {108, 4},
                                {112, 4}, {164, 4}, {128, 13}, {128, 14}};
constexpr ImageFields kGfx11 = {{52, 8},  {62, 14}, {78, 14},  {108, 4},
                                {112, 4}, {48, 4},  {128, 13}, {128, 14}};
constexpr ImageFields kGfx12 = {{49, 8},  {62, 16}, {78, 16},  {57, 5},
                                {111, 5}, {44, 5},  {128, 14}, {128, 16}};
constexpr Bits kBase = {0, 40}, kSelectors = {96, 12}, kSwizzle = {116, 5}, kType = {124, 4},
               kFirstSlice = {144, 13};

const ImageFields& fields_of(int generation) {
  return generation >= 12 ? kGfx12 : generation == 11 ? kGfx11 : kGfx10;
}

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Sets the pitches of an image whose descriptor has none. On gfx12, rows are closer together than
/// the size of a slice says.
void align_rows(Image& image, int generation) {
  const uint64_t row = uint64_t{image.width} * image.format.size();
  image.pitch = aligned(row, generation >= 12 ? 128 : 256);
  image.slice_pitch = aligned(row, 256) * image.height;
}

}  // namespace

const char* read_image(const uint32_t* d, int generation, Image& image) {
  const ImageFields& fields = fields_of(generation);
  const auto type = static_cast<ImageType>(kType.of(d));
  if (type != ImageType::line && type != ImageType::plane && type != ImageType::lines &&
      type != ImageType::planes) {
    return "an image of a type that isn't implemented";
  }
  image.type = type;
  image.base = (uint64_t{d[1] & 0xff} << 32 | d[0]) << 8;
  image.format = pixel_format(generation, fields.format.of(d));
  if (!image.format.known()) return "an image of a format that isn't implemented";
  if (kSwizzle.of(d) != 0) return "an image whose texels are swizzled";
  if ((fields.base_level.of(d) | fields.last_level.of(d) | fields.most_levels.of(d)) != 0) {
    return "an image with mip levels";
  }
  if (kFirstSlice.of(d) != 0) return "an image that doesn't begin with its first slice";
  image.width = fields.width.of(d) + 1;
  image.height = image.has_height() ? fields.height.of(d) + 1 : 1;
  image.slices = image.layered() ? fields.depth.of(d) + 1 : 1;
  image.selectors = kSelectors.of(d);
  align_rows(image, generation);
  const uint32_t pitch = image.layered() ? 0 : fields.pitch.of(d);
  if (pitch != 0) image.pitch = (uint64_t{pitch} + 1) * image.format.size();
  return nullptr;
}

void write_image(const Image& image, int generation, uint32_t* d) {
  const ImageFields& fields = fields_of(generation);
  std::fill(d, d + 8, 0u);
  const auto put_in = [d](Bits bits, uint64_t value) { put(d, bits.at, bits.width, value); };
  put_in(kBase, image.base >> 8);
  put_in(fields.format, format_number(generation, image.format));
  put_in(fields.width, image.width - 1);
  put_in(fields.height, image.height - 1);
  put_in(kSelectors, image.selectors);
  put_in(kType, static_cast<uint64_t>(image.type));
  if (image.layered()) {
    put_in(fields.depth, image.slices - 1);
  } else {
    put_in(fields.pitch, image.pitch / image.format.size() - 1);
  }
}

const char* read_sampler(const uint32_t* d, Sampler& sampler) {
  constexpr uint32_t kBorderInMemory = 3;
  constexpr Bits kFilterMode = {29, 2}, kBorder = {126, 2}, kLarge = {84, 2}, kSmall = {86, 2};
  for (unsigned axis = 0; axis < 2; ++axis) {
    sampler.clamp[axis] = static_cast<Clamp>(d[0] >> 3 * axis & 7);
  }
  sampler.unnormalized = (d[0] >> 15 & 1) != 0;
  sampler.linear = kLarge.of(d) % 2 != 0;  // 2 and 3 are anisotropic
  sampler.linear_small = kSmall.of(d) % 2 != 0;
  sampler.border = static_cast<uint8_t>(kBorder.of(d));
  if (kFilterMode.of(d) != 0) return "a sampler that filters by minimum or maximum";
  if (sampler.border == kBorderInMemory) return "a sampler whose border's color is in memory";
  return nullptr;
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
