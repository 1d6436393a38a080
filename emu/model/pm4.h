#pragma once

// Commands of the packet processor's own language (PM4), as far as the runtime puts them into AQL
// queues: those that write back and invalidate caches. Source: AMD's PM4 headers (pm4_cmds.h of
// ROCr).

#include <cstdint>
#include <span>
#include <string>

namespace emu::model {

/// What an INDIRECT_BUFFER command points to. `words` is 0 if it isn't such a command.
struct CommandBuffer {
  uint64_t address = 0;
  uint32_t words = 0;
};
CommandBuffer command_buffer(std::span<const uint32_t> jump);

/// Returns an empty string if all commands only act on caches, and the name of the first other one
/// otherwise.
std::string other_than_caches(std::span<const uint32_t> words);

}  // namespace emu::model
