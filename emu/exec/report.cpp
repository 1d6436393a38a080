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

bool bad_global(Wave* w, const Op* op, const char* what, uint32_t bytes, uint64_t address, int lane) {
  const Launch& launch = *w->launch;
  if (launch.mapped && launch.mapped(address, bytes)) return true;
  const std::string whose = launch.describe ? ": " + launch.describe(address) : "";
  fail(w, op, describe(what, bytes, address, lane) + whose);
  return false;
}

}  // namespace

bool bad_read(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  return bad_global(w, op, "reads", bytes, address, lane);
}

bool bad_write(Wave* w, const Op* op, uint64_t address, uint32_t bytes, int lane) {
  return bad_global(w, op, "writes", bytes, address, lane);
}

void bad_lds(Wave* w, const Op* op, int64_t offset, uint32_t bytes, int lane) {
  fail(w, op, describe("uses LDS:", bytes, static_cast<uint64_t>(offset), lane));
}

bool bad_scratch(Wave* w, const Op* op, uint64_t offset, uint32_t bytes, int lane) {
  fail(w, op, describe("uses scratch:", bytes, offset, lane));
  return false;
}

}  // namespace emu
