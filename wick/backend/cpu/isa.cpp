#include "wick/backend/cpu/isa.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

std::vector<Isa> detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  std::vector<Isa> isas;
  if (__builtin_cpu_supports("x86-64-v2")) isas.push_back(Isa::v2);
  if (__builtin_cpu_supports("x86-64-v3")) isas.push_back(Isa::v3);
  if (__builtin_cpu_supports("x86-64-v4")) {
    isas.push_back(Isa::v4);
    if (__builtin_cpu_supports("avx512vnni")) isas.push_back(Isa::v4_vnni);
  }
#if defined(WICK_ONLY_ISA)
  std::erase_if(isas, [](Isa isa) { return isa != Isa::WICK_ONLY_ISA; });
#endif
  return isas;
#else
  return {Isa::generic};
#endif
}

}  // namespace

std::string_view name(Isa isa) {
  constexpr std::array<std::string_view, 5> kNames = {"generic", "v2", "v3", "v4", "v4-vnni"};
  return kNames[static_cast<size_t>(isa)];
}

std::span<const Isa> available_isas() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

Isa selected_isa() {
  const std::span<const Isa> isas = available_isas();
  if (isas.empty()) {
    throw Error(ErrorKind::runtime, "cpu", "processor too old", "",
                "need at least x86-64-v2 (SSE4.2)");
  }
  const std::string_view wanted = environment("WICK_CPU_ISA");
  if (wanted.empty()) return isas.back();
  std::string names;
  for (Isa isa : isas) {
    if (name(isa) == wanted) return isa;
    names += fmt::format(" {}", name(isa));
  }
  throw Error(ErrorKind::runtime, "WICK_CPU_ISA", "not available on this machine",
              fmt::format("'{}'", wanted), "use one of" + names);
}

bool has_avx512_bf16() {
#if defined(__x86_64__)
  static const bool present = __builtin_cpu_supports("avx512bf16");
  return present;
#else
  return false;
#endif
}

}  // namespace wick::cpu
