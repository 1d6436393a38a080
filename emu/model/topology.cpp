#include "emu/model/topology.h"

#include <cstdio>
#include <fstream>
#include <map>

namespace emu::model {
namespace {

constexpr int kMostNodes = 64;

std::map<std::string, uint64_t> read_properties(const std::string& file) {
  std::map<std::string, uint64_t> properties;
  std::ifstream in(file);
  std::string name;
  for (uint64_t value; in >> name >> value;) properties[name] = value;
  return properties;
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

}  // namespace

std::string architecture_name(uint32_t version) {
  char name[32];
  std::snprintf(name, sizeof name, "gfx%u%x%x", version / 10000, version / 100 % 100,
                version % 100);
  return name;
}

std::optional<GpuNode> gpu_node(const std::string& folder, int index) {
  for (int node = 0; node < kMostNodes; ++node) {
    const std::string path = folder + "/nodes/" + std::to_string(node);
    const auto properties = read_properties(path + "/properties");
    const auto of = [&](const char* name) {
      const auto at = properties.find(name);
      return at == properties.end() ? 0u : static_cast<uint32_t>(at->second);
    };
    if (of("gfx_target_version") == 0 || index-- > 0) continue;
    return GpuNode{architecture_name(of("gfx_target_version")), of("device_id"), of("family_id"),
                   first_line(path + "/product")};
  }
  return std::nullopt;
}

}  // namespace emu::model
