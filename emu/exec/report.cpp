#include <algorithm>
#include <cstdio>
#include <optional>

#include "emu/exec/bitfield.h"
#include "emu/exec/fault.h"
#include "emu/exec/half.h"
#include "emu/exec/launch.h"

namespace emu {
namespace {

thread_local int current_half = 0;

std::string describe(const char* what, uint32_t bytes, uint64_t address, int lane) {
  char text[160];
  std::snprintf(text, sizeof text, "lane %d %s %u bytes at 0x%llx", lane, what, bytes,
                static_cast<unsigned long long>(address));
  return text;
}

std::string place(Wave* w, const Op* op, int lane) {
  const Origin& origin = origin_of(w, op);
  char text[160];
  std::snprintf(text, sizeof text, "' at 0x%llx, workgroup (%u, %u, %u), wave %u",
                static_cast<unsigned long long>(origin.address), w->group->id[0], w->group->id[1],
                w->group->id[2], w->index);
  const std::string line = w->launch->line ? w->launch->line(origin.address) : "";
  std::string where = "kernel " + w->launch->kernel + (line.empty() ? "" : " (" + line + ")") +
                      ": '" + origin.text + text;
  if (lane >= 0) where += ", lane " + std::to_string(lane);
  return where;
}

/// Reports a read or write outside allocated memory. Returns whether it may proceed.
bool bad_global(Wave* w, const Op* op, const char* what, uint32_t bytes, uint64_t address,
                int lane) {
  lane = lane_of_wave(w, lane);
  const Launch& launch = *w->launch;
  if (launch.mapped && launch.mapped(address, bytes)) return true;
  const std::string whose = launch.describe ? ": " + launch.describe(address) : "";
  fail(w, op, describe(what, bytes, address, lane) + whose);
  refuse_access();
  return false;
}

}  // namespace

void begin_half(int half) { current_half = half; }

int lane_of_wave(const Wave* w, int lane) {
  return lane + (w->lanes == 64 ? 32 * current_half : 0);
}

void report(Wave* w, const Op* op, Check check, int lane, const std::string& what) {
  static constexpr const char* kNames[] = {"memory", "lds",      "registers", "waits",
                                           "races",  "barriers", "leaks",     "alignment"};
  Launch& launch = *w->launch;
  const FaultPause pause;
  {
    constexpr size_t kMost = 100;
    std::lock_guard lock(launch.mutex);
    const auto key = std::make_pair(origin_of(w, op).address, static_cast<int>(check));
    if (launch.reported.size() >= kMost || !launch.reported.insert(key).second) return;
  }
  // Reading line tables takes time, so this happens before the lock is taken.
  std::string finding =
      std::string(kNames[static_cast<int>(check)]) + ": " + place(w, op, lane) + ": " + what;
  std::lock_guard lock(launch.mutex);
  launch.findings.push_back(std::move(finding));
}

Stop fail(Wave* w, const Op* op, const std::string& what) {
  Launch& launch = *w->launch;
  const FaultPause pause;
  const auto failed = [&] {
    std::lock_guard lock(launch.mutex);
    return !launch.error.empty();
  };
  if (!failed()) {
    std::string error = place(w, op, -1) + ": " + what;
    std::lock_guard lock(launch.mutex);
    if (launch.error.empty()) launch.error = std::move(error);
  }
  launch.stop = true;
  return Stop::fault;
}

bool was_reported(Wave* w, const Op* op, Check check) {
  const FaultPause pause;
  std::lock_guard lock(w->launch->mutex);
  return w->launch->reported.contains({origin_of(w, op).address, static_cast<int>(check)});
}

namespace {

/// Returns the address of the first piece of the access in which no byte has been written. A piece
/// is an aligned pair of dwords if the access contains both, and otherwise what the access contains
/// of one dword. If some bytes of a piece have been written, the others count as padding, or as
/// bits next to a bitfield.
std::optional<uint64_t> first_unwritten(const Shadow& shadow, uint64_t address, uint32_t bytes) {
  for (uint64_t from = address, end = address + bytes; from < end;) {
    const bool pair = from % 8 == 0 && end - from >= 8;
    const uint64_t to = pair ? from + 8 : std::min(end, (from / 4 + 1) * 4);
    bool any = false;
    for (uint64_t byte = from; byte < to; ++byte) any |= shadow.readable(byte, 1);
    if (!any) return from;
    from = to;
  }
  return std::nullopt;
}

/// Returns whether a load only replaces bits. Each load is examined once in a launch.
bool loads_bitfield(Wave* w, const Op* op) {
  Launch& launch = *w->launch;
  const uint64_t address = origin_of(w, op).address;
  const FaultPause pause;
  std::lock_guard lock(launch.mutex);
  const auto [known, added] = launch.bitfield_loads.try_emplace(address, false);
  if (added) known->second = replaces_bits(*w->program, address);
  return known->second;
}

}  // namespace

bool bad_read(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  const Shadow& shadow = *w->launch->shadow;
  if (shadow.writable(address, bytes)) {
    const std::optional<uint64_t> first = first_unwritten(shadow, address, bytes);
    if (!first || was_reported(w, op, Check::memory)) return true;
    if (loads_bitfield(w, op)) return true;
    lane = lane_of_wave(w, lane);
    const auto& describe_memory = w->launch->describe;
    report(w, op, Check::memory, lane,
           describe("reads", bytes, address, lane) + ", which nothing has written" +
               (describe_memory ? ": " + describe_memory(*first) : ""));
    return true;
  }
  return bad_global(w, op, "reads", bytes, address, lane);
}

bool bad_write(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  return bad_global(w, op, "writes", bytes, address, lane);
}

void bad_scalar_address(Wave* w, const Op* op, uint64_t address, uint32_t align) {
  char text[128];
  std::snprintf(text, sizeof text,
                "0x%llx isn't a multiple of %u, and a scalar load ignores the lowest bits",
                static_cast<unsigned long long>(address), align);
  report(w, op, Check::memory, -1, text);
}

void bad_lds(Wave* w, const Op* op, int64_t offset, uint32_t bytes, int lane) {
  lane = lane_of_wave(w, lane);
  report(w, op, Check::lds, lane,
         describe("uses LDS beyond its end:", bytes, static_cast<uint64_t>(offset), lane));
}

void bad_alignment(Wave* w, const Op* op, uint64_t base, const uint32_t* offsets, LaneMask enabled,
                   uint32_t align) {
  if (was_reported(w, op, Check::alignment)) return;
  for (LaneMask left = enabled; left != 0; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t address = base + offsets[lane];
    if (address % align == 0) continue;
    char text[96];
    std::snprintf(text, sizeof text, "0x%llx isn't a multiple of %u",
                  static_cast<unsigned long long>(address), align);
    return report(w, op, Check::alignment, lane_of_wave(w, lane), text);
  }
}

bool bad_scratch(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane) {
  fail(w, op, describe("uses scratch beyond its end:", bytes, offset, lane));
  return false;
}

}  // namespace emu
