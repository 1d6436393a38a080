#include "emu/object/target.h"

#include <algorithm>
#include <array>
#include <span>

namespace emu {
namespace {

struct Known {
  uint8_t mach;
  const char* name;
  bool xnack, sramecc;
};

constexpr Known kKnown[] = {
    {0x2c, "gfx900", true, false},
    {0x2d, "gfx902", true, false},
    {0x2e, "gfx904", true, false},
    {0x2f, "gfx906", true, true},
    {0x30, "gfx908", true, true},
    {0x31, "gfx909", true, false},
    {0x32, "gfx90c", true, false},
    {0x3f, "gfx90a", true, true},
    {0x40, "gfx940", true, true},
    {0x4b, "gfx941", true, true},
    {0x4c, "gfx942", true, true},
    {0x4f, "gfx950", true, true},
    {0x33, "gfx1010", true, false},
    {0x34, "gfx1011", true, false},
    {0x35, "gfx1012", true, false},
    {0x42, "gfx1013", true, false},
    {0x36, "gfx1030", false, false},
    {0x37, "gfx1031", false, false},
    {0x38, "gfx1032", false, false},
    {0x39, "gfx1033", false, false},
    {0x3e, "gfx1034", false, false},
    {0x3d, "gfx1035", false, false},
    {0x45, "gfx1036", false, false},
    {0x41, "gfx1100", false, false},
    {0x46, "gfx1101", false, false},
    {0x47, "gfx1102", false, false},
    {0x44, "gfx1103", false, false},
    {0x43, "gfx1150", false, false},
    {0x4a, "gfx1151", false, false},
    {0x55, "gfx1152", false, false},
    {0x48, "gfx1200", false, false},
    {0x4e, "gfx1201", false, false},
    {0x51, "gfx9-generic", true, false},
    {0x52, "gfx10-1-generic", true, false},
    {0x53, "gfx10-3-generic", false, false},
    {0x54, "gfx11-generic", false, false},
    {0x59, "gfx12-generic", false, false},
};

struct Family {
  const char* generic;
  std::array<const char*, 10> members;
};

constexpr Family kFamilies[] = {
    {"gfx9-generic", {"gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"}},
    {"gfx10-1-generic", {"gfx1010", "gfx1011", "gfx1012", "gfx1013"}},
    {"gfx10-3-generic",
     {"gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"}},
    {"gfx11-generic",
     {"gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152"}},
    {"gfx12-generic", {"gfx1200", "gfx1201"}},
};

const Known* find(std::string_view name) {
  const auto* at = std::find_if(std::begin(kKnown), std::end(kKnown),
                                [&](const Known& known) { return name == known.name; });
  return at == std::end(kKnown) ? nullptr : at;
}

bool feature_fits(Target::Feature code, Target::Feature device) {
  using enum Target::Feature;
  return code == unsupported || code == any || device == unsupported || device == any ||
         code == device;
}

void append(std::string& name, const char* feature, Target::Feature value) {
  if (value == Target::Feature::on) name += std::string(":") + feature + "+";
  if (value == Target::Feature::off) name += std::string(":") + feature + "-";
}

}  // namespace

std::string Target::name() const {
  std::string text = processor;
  append(text, "sramecc", sramecc);
  append(text, "xnack", xnack);
  return text;
}

std::optional<Target> target_of_flags(uint32_t flags, int abi) {
  const auto mach = static_cast<uint8_t>(flags);
  const auto* at = std::find_if(std::begin(kKnown), std::end(kKnown),
                                [&](const Known& known) { return known.mach == mach; });
  if (at == std::end(kKnown)) return std::nullopt;
  Target target{at->name, static_cast<Target::Feature>(flags >> 8 & 3),
                static_cast<Target::Feature>(flags >> 10 & 3)};
  if (target.generic() && (abi < 6 || flags >> 24 == 0)) return std::nullopt;
  return target;
}

std::optional<Target> parse_target(std::string_view name) {
  if (const size_t dashes = name.find("--"); dashes != name.npos) name.remove_prefix(dashes + 2);
  const size_t colon = name.find(':');
  const Known* known = find(name.substr(0, colon));
  if (known == nullptr) return std::nullopt;
  using enum Target::Feature;
  Target target{known->name, known->xnack ? any : unsupported, known->sramecc ? any : unsupported};
  while (!name.empty() && name.find(':') != name.npos) {
    name.remove_prefix(name.find(':') + 1);
    const std::string_view feature = name.substr(0, name.find(':'));
    if (feature == "xnack+")
      target.xnack = on;
    else if (feature == "xnack-")
      target.xnack = off;
    else if (feature == "sramecc+")
      target.sramecc = on;
    else if (feature == "sramecc-")
      target.sramecc = off;
    else
      return std::nullopt;
  }
  return target;
}

int fit(const Target& code, const Target& device) {
  if (!feature_fits(code.xnack, device.xnack) || !feature_fits(code.sramecc, device.sramecc)) {
    return 0;
  }
  if (code.processor == device.processor) return 2;
  for (const Family& family : kFamilies) {
    if (code.processor != family.generic) continue;
    for (const char* member : family.members) {
      if (member != nullptr && device.processor == member) return 1;
    }
  }
  return 0;
}

}  // namespace emu
