#include <cstdio>

#include "emu/exec/launch.h"

namespace emu {
namespace {

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

/// A read or write that isn't of allocated memory: whether it may go on.
bool bad_global(Wave* w, const Op* op, const char* what, uint32_t bytes, uint64_t address,
                int lane) {
  const Launch& launch = *w->launch;
  if (launch.mapped && launch.mapped(address, bytes)) return true;
  const std::string whose = launch.describe ? ": " + launch.describe(address) : "";
  fail(w, op, describe(what, bytes, address, lane) + whose);
  return false;
}

}  // namespace

void report(Wave* w, const Op* op, Check check, int lane, const std::string& what) {
  static constexpr const char* kNames[] = {"memory", "lds",      "registers", "waits",
                                           "races",  "barriers", "leaks",     "alignment"};
  Launch& launch = *w->launch;
  std::lock_guard lock(launch.mutex);
  constexpr size_t kMost = 100;
  const auto key = std::make_pair(origin_of(w, op).address, static_cast<int>(check));
  if (launch.findings.size() >= kMost || !launch.reported.insert(key).second) return;
  launch.findings.push_back(std::string(kNames[static_cast<int>(check)]) + ": " +
                            place(w, op, lane) + ": " + what);
}

bool was_reported(Wave* w, const Op* op, Check check) {
  std::lock_guard lock(w->launch->mutex);
  return w->launch->reported.contains({origin_of(w, op).address, static_cast<int>(check)});
}

bool bad_read(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  const Shadow& shadow = *w->launch->shadow;
  if (shadow.writable(address, bytes)) {
    const auto& describe_memory = w->launch->describe;
    report(w, op, Check::memory, lane,
           describe("reads", bytes, address, lane) + ", which nothing has written" +
               (describe_memory ? ": " + describe_memory(address) : ""));
    return true;
  }
  return bad_global(w, op, "reads", bytes, address, lane);
}

bool bad_write(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  return bad_global(w, op, "writes", bytes, address, lane);
}

void bad_lds(Wave* w, const Op* op, int64_t offset, uint32_t bytes, int lane) {
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
    return report(w, op, Check::alignment, lane, text);
  }
}

bool bad_scratch(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane) {
  fail(w, op, describe("uses scratch beyond its end:", bytes, offset, lane));
  return false;
}

}  // namespace emu
