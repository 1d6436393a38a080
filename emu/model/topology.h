#pragma once

// The topology folder that HSA_MODEL_TOPOLOGY names: it has the form of KFD's, below
// /sys/class/kfd.

#include <cstdint>
#include <optional>
#include <string>

namespace emu::model {

/// What a node of the topology says about a GPU.
struct GpuNode {
  std::string architecture;  // gfx1100
  uint32_t device_id = 0, family = 0;
  std::string product;  // empty if the folder doesn't say it
};

/// The name of a gfx_target_version: decimal digits of major, minor and stepping, 90010 for gfx90a.
std::string architecture_name(uint32_t version);

/// Returns a GPU of a topology folder, counted from 0, or nothing if there are fewer.
std::optional<GpuNode> gpu_node(const std::string& folder, int index);

}  // namespace emu::model
