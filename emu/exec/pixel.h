#pragma once

// The formats of elements of images and typed buffers: what the bits of an element stand for, and
// the conversions between elements and registers. Sources: the ISA documents of Vega, RDNA 2, RDNA
// 3 and RDNA 4.

#include <cstdint>

namespace emu {

/// What the bits of an element's components stand for.
enum class Numbers : uint8_t { unorm, snorm, uscaled, sscaled, uint, sint, real };

/// How the components of different sizes share a dword. As in AMD's names of formats, the last
/// component of a name is the first one and is in the lowest bits.
enum class Packing : uint8_t { none, b10_11_11, b11_11_10, b10_10_10_2, b2_10_10_10 };

/// A format of one to four components.
struct PixelFormat {
  uint8_t components = 0;
  uint8_t bytes = 0;  // of one component; 0 if the components have different sizes
  Numbers numbers = Numbers::uint;
  Packing packing = Packing::none;

  bool known() const { return components != 0; }
  bool integer() const { return numbers == Numbers::uint || numbers == Numbers::sint; }
  uint32_t size() const { return packing == Packing::none ? uint32_t{components} * bytes : 4; }
  bool operator==(const PixelFormat&) const = default;
};

/// Returns the format that a number stands for in descriptors of images and, from gfx10 on, in
/// descriptors of buffers and typed instructions.
PixelFormat pixel_format(int generation, uint32_t number);
/// Returns the format that the two fields of gfx9's buffer descriptors and typed instructions stand
/// for.
PixelFormat gfx9_buffer_format(uint32_t data, uint32_t numbers);
/// Returns the number that stands for a format, or 0.
uint32_t format_number(int generation, PixelFormat format);

/// Four components as registers hold them: floats, or integers of 32 bits.
struct Texel {
  uint32_t word[4];
};

/// Reads an element. Components that the format lacks are 0.
Texel read_texel(PixelFormat format, const char* from);
void write_texel(PixelFormat format, const Texel& texel, char* to);

/// The selectors of a descriptor that give each component as it is.
inline constexpr uint32_t kIdentity = 4 | 5 << 3 | 6 << 6 | 7 << 9;
/// Selects each of four components by three bits: 0, 1, or (4 to 7) a component of the element.
Texel select_components(PixelFormat format, const Texel& texel, uint32_t selectors);

/// How loads round floats of 32 bits that become 16 bits.
enum class HalfRounding : uint8_t { nearest, truncate };

/// Returns a component of 32 bits as the 16 bits of a D16 instruction, and the reverse.
uint16_t half_of_word(PixelFormat format, uint32_t word, HalfRounding rounding);
uint32_t word_of_half(PixelFormat format, uint16_t half);

}  // namespace emu
