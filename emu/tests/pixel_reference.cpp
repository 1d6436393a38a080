#include "emu/tests/pixel_reference.h"

#include <bit>
#include <cmath>
#include <map>
#include <sstream>

namespace emu::test {
namespace {

const char* const kKinds[] = {"UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT"};

/// The layouts in the order of their numbers, and those of gfx9's field for data.
struct Layout {
  const char* name;
  u32 data;
};
constexpr Layout kLayouts[] = {
    {"8", 1},        {"16", 2},           {"8_8", 3},        {"32", 4},          {"16_16", 5},
    {"10_11_11", 6}, {"11_11_10", 7},     {"10_10_10_2", 8}, {"2_10_10_10", 9},  {"8_8_8_8", 10},
    {"32_32", 11},   {"16_16_16_16", 12}, {"32_32_32", 13},  {"32_32_32_32", 14}};

std::vector<int> bits_of_layout(const std::string& name) {
  std::vector<int> bits;
  std::istringstream in(name);
  for (std::string one; std::getline(in, one, '_');) bits.insert(bits.begin(), std::stoi(one));
  return bits;
}

bool has_kind(int generation, const std::string& layout, const std::string& kind) {
  const bool scaled = kind == "USCALED" || kind == "SSCALED", real = kind == "FLOAT";
  if (layout.starts_with("32")) return real || kind == "UINT" || kind == "SINT";
  if (layout.starts_with("8") || layout == "2_10_10_10") return !real;
  if (layout == "10_10_10_2") return !real && (generation < 11 || !scaled);
  if (layout == "10_11_11" || layout == "11_11_10") return real || generation < 11;
  return true;  // 16 bits
}

}  // namespace

int NamedFormat::bytes() const {
  int sum = 0;
  for (const int each : bits) sum += each;
  return sum / 8;
}

std::vector<NamedFormat> buffer_formats(int generation) {
  std::vector<NamedFormat> all;
  for (const Layout& layout : kLayouts) {
    for (u32 kind = 0; kind < 7; ++kind) {
      if (!has_kind(generation, layout.name, kKinds[kind])) continue;
      all.push_back({layout.name, kKinds[kind], bits_of_layout(layout.name),
                     static_cast<u32>(all.size()) + 1, layout.data, kind == 6 ? 7 : kind});
    }
  }
  return all;
}

NamedFormat format_named(int generation, const std::string& layout, const std::string& kind) {
  for (const NamedFormat& format : buffer_formats(generation)) {
    if (format.layout == layout && format.kind == kind) return format;
  }
  throw std::logic_error("no format " + layout + "_" + kind);
}

u32 raw_component(const NamedFormat& format, const uint8_t* element, int component) {
  int at = 0;
  for (int i = 0; i < component; ++i) at += format.bits[static_cast<size_t>(i)];
  u32 raw = 0;
  for (int i = 0; i < format.bits[static_cast<size_t>(component)]; ++i) {
    raw |= u32{element[(at + i) / 8] >> (at + i) % 8 & 1u} << i;
  }
  return raw;
}

void put_component(const NamedFormat& format, uint8_t* element, int component, u32 raw) {
  int at = 0;
  for (int i = 0; i < component; ++i) at += format.bits[static_cast<size_t>(i)];
  for (int i = 0; i < format.bits[static_cast<size_t>(component)]; ++i) {
    uint8_t& byte = element[(at + i) / 8];
    const int bit = 1 << (at + i) % 8;
    byte = static_cast<uint8_t>((raw >> i & 1) != 0 ? byte | bit : byte & ~bit);
  }
}

double small_float(u32 code, int bits) {
  const int fraction_bits = bits - 5;
  const u32 exponent = code >> fraction_bits, fraction = code & ((1u << fraction_bits) - 1);
  if (exponent == 31) return fraction == 0 ? INFINITY : NAN;
  const double significand = std::ldexp(fraction, -fraction_bits) + (exponent != 0 ? 1 : 0);
  return std::ldexp(significand, (exponent != 0 ? static_cast<int>(exponent) : 1) - 15);
}

u32 small_float_code(double value, int bits, bool truncate) {
  const u32 infinity = 31u << (bits - 5);
  if (std::isnan(value)) return infinity | 1;
  if (std::isinf(value)) return value > 0 ? infinity : 0;
  if (value <= 0) return 0;
  u32 below = 0, above = infinity;  // codes are in the order of their values
  while (above - below > 1) {
    const u32 middle = (below + above) / 2;
    (small_float(middle, bits) <= value ? below : above) = middle;
  }
  if (truncate || small_float(below, bits) == value) return below;
  const double next = above == infinity ? 65536 : small_float(above, bits);
  const double down = value - small_float(below, bits), up = next - value;
  return down < up || (down == up && below % 2 == 0) ? below : above;
}

u32 half_code(double value, bool truncate) {
  const u32 code = small_float_code(std::fabs(value), 15, truncate);
  return std::isnan(value) ? code : code | (std::signbit(value) ? 0x8000u : 0u);
}

u32 component(const NamedFormat& format, const uint8_t* element, int component) {
  if (component >= format.components()) return 0;
  const int bits = format.bits[static_cast<size_t>(component)];
  const u32 raw = raw_component(format, element, component);
  const i64 value = (raw >> (bits - 1) & 1) != 0 ? i64{raw} - (i64{1} << bits) : i64{raw};
  const auto real = [](double number) { return std::bit_cast<u32>(static_cast<float>(number)); };
  const double all = std::ldexp(1, bits) - 1, most = std::ldexp(1, bits - 1) - 1;
  if (format.kind == "UNORM") return real(raw / all);
  if (format.kind == "SNORM") return real(std::max(static_cast<double>(value) / most, -1.));
  if (format.kind == "USCALED") return real(raw);
  if (format.kind == "SSCALED") return real(static_cast<double>(value));
  if (format.kind == "UINT") return raw;
  if (format.kind == "SINT") return static_cast<u32>(value);
  if (bits == 32) return raw;
  if (bits < 16) return real(small_float(raw, bits));
  return real((raw >> 15 != 0 ? -1 : 1) * small_float(raw & 0x7fff, 15));
}

bool both_nan(const NamedFormat& format, u32 a, u32 b) {
  const auto is_nan = [](u32 bits) { return (bits & 0x7fffffff) > 0x7f800000; };
  return format.kind == "FLOAT" && is_nan(a) && is_nan(b);
}

u32 stored_component(const NamedFormat& format, u32 word, int component) {
  const int bits = format.bits[static_cast<size_t>(component)];
  const double value = std::bit_cast<float>(word);
  const double all = std::ldexp(1, bits) - 1, most = std::ldexp(1, bits - 1) - 1;
  const auto limited = [](double x, double least, double top) {
    return static_cast<u32>(static_cast<i64>(std::min(std::max(x, least), top)));
  };
  u32 raw = 0;
  if (format.kind == "UNORM") raw = limited(std::nearbyint(value * all), 0, all);
  if (format.kind == "SNORM") raw = limited(std::nearbyint(value * most), -most, most);
  if (format.kind == "USCALED") raw = limited(std::trunc(value), 0, all);
  if (format.kind == "SSCALED") raw = limited(std::trunc(value), -most - 1, most);
  if (format.kind == "UINT") raw = limited(word, 0, all);
  if (format.kind == "SINT") raw = limited(static_cast<i32>(word), -most - 1, most);
  if (format.kind == "FLOAT") {
    raw = bits == 32 ? word : bits == 16 ? half_code(value) : small_float_code(value, bits);
  }
  return bits == 32 ? raw : raw & ((1u << bits) - 1);
}

}  // namespace emu::test
