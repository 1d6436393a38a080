#pragma once

// References for the formats of elements, written from their names in AMD's documents: a name lists
// the bits of the components from the last one to the first one, whose bits are the lowest.

#include <string>
#include <vector>

#include "emu/tests/reference.h"

namespace emu::test {

struct NamedFormat {
  std::string layout, kind;   // "2_10_10_10" and "UNORM"
  std::vector<int> bits;      // of each component; X is the first
  u32 number = 0;             // in descriptors, but for gfx9's
  u32 data = 0, numbers = 0;  // gfx9's two fields

  int components() const { return static_cast<int>(bits.size()); }
  int bytes() const;
  bool integer() const { return kind == "UINT" || kind == "SINT"; }
};

/// Returns all formats of a generation's buffers, in the order of their numbers.
std::vector<NamedFormat> buffer_formats(int generation);
NamedFormat format_named(int generation, const std::string& layout, const std::string& kind);

/// Returns a component's bits in an element.
u32 raw_component(const NamedFormat& format, const uint8_t* element, int component);
/// Returns what a register holds of a component; components that the format lacks are 0.
u32 component(const NamedFormat& format, const uint8_t* element, int component);
/// Returns whether what two registers hold are NaN, whose bits aren't specified.
bool both_nan(const NamedFormat& format, u32 a, u32 b);
/// Returns the bits of a component that a register's value becomes.
u32 stored_component(const NamedFormat& format, u32 word, int component);
/// Puts these bits into an element.
void put_component(const NamedFormat& format, uint8_t* element, int component, u32 raw);

/// Returns the value of a float with five bits of exponent and no sign.
double small_float(u32 code, int bits);
/// Returns the code of the float that is nearest to a value, or of the one below it. Ties go to the
/// even code.
u32 small_float_code(double value, int bits, bool truncate = false);
/// Returns a 16-bit float's code, with its sign.
u32 half_code(double value, bool truncate = false);

}  // namespace emu::test
