#pragma once

// Images: the descriptors of images and samplers, and which texels a coordinate names. Sources: the
// ISA documents of RDNA 2, RDNA 3 and RDNA 4.

#include "emu/exec/pixel.h"

namespace emu {

enum class ImageType : uint8_t { line = 8, plane = 9, lines = 12, planes = 13 };

/// An image without mip levels whose rows are one after another.
struct Image {
  uint64_t base = 0;
  uint32_t width = 1, height = 1, slices = 1;
  uint64_t pitch = 0, slice_pitch = 0;  // bytes
  PixelFormat format;
  uint32_t selectors = 0;
  ImageType type = ImageType::plane;

  bool has_height() const { return type == ImageType::plane || type == ImageType::planes; }
  bool layered() const { return type == ImageType::lines || type == ImageType::planes; }
};

/// Reads an image's descriptor of eight dwords. Returns why it can't be used, or null.
const char* read_image(const uint32_t* descriptor, int generation, Image& image);
/// Writes the descriptor of an image.
void write_image(const Image& image, int generation, uint32_t* descriptor);

/// How a coordinate beyond the image is treated; the numbers of the descriptor's fields.
enum class Clamp : uint8_t { wrap = 0, mirror = 1, edge = 2, mirror_once = 3, border = 6 };

struct Sampler {
  Clamp clamp[2] = {Clamp::edge, Clamp::edge};
  bool unnormalized = false;
  bool linear = false, linear_small = false;  // filters for magnification, minification
  uint8_t border = 0;  // 0: transparent black, 1: opaque black, 2: opaque white
};

/// Reads a sampler's descriptor, whose layout all generations share as far as it is used here.
/// Returns why it can't be used, or null.
const char* read_sampler(const uint32_t* descriptor, Sampler& sampler);
void write_sampler(const Sampler& sampler, uint32_t* descriptor);

/// One to four texels and their weights. A texel without an address is the border.
struct Taps {
  int count = 0;
  uint64_t address[4] = {};
  float weight[4] = {};
};

/// Returns the texels of a sample at `at` (x, y). Fractions have eight bits, as in the hardware.
/// `offsets` are added to the positions of texels.
Taps sample_taps(const Image& image, const Sampler& sampler, const float* at, uint32_t slice,
                 bool linear, const int* offsets);
/// Returns the four texels that a gather names, in its order.
Taps gather_taps(const Image& image, const Sampler& sampler, const float* at, uint32_t slice,
                 const int* offsets);
/// Returns a texel's address, or 0 if it is beyond the image.
uint64_t texel_address(const Image& image, uint32_t x, uint32_t y, uint32_t slice);
/// Returns the slice that a coordinate names.
uint32_t slice_of(const Image& image, float coordinate);

/// The color beyond the image.
Texel border_texel(const Image& image, const Sampler& sampler);
/// Returns the weighted sum of floats. Integers aren't filtered: the first texel is the result.
Texel blend(PixelFormat format, const Taps& taps, const Texel* texels);

}  // namespace emu
