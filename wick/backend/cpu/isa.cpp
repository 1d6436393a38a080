#include "wick/backend/cpu/isa.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "wick/backend/cpu/amx.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace wick::cpu {
namespace {

/// Whether the processor and the system support an instruction set.
bool supports(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::v2) return __builtin_cpu_supports("x86-64-v2");
  if (isa == Isa::v3) return __builtin_cpu_supports("x86-64-v3");
  if (isa == Isa::v4) return __builtin_cpu_supports("x86-64-v4");
  if (!__builtin_cpu_supports("x86-64-v4") || !__builtin_cpu_supports("avx512vnni")) return false;
  return isa == Isa::v4_vnni || has_amx();
#elif defined(__aarch64__)
  // HWCAP_ASIMDDP and HWCAP2_I8MM: older headers don't have the latter.
  const bool dot = (getauxval(AT_HWCAP) >> 20 & 1) != 0;
  const bool i8mm = (getauxval(AT_HWCAP2) >> 13 & 1) != 0;
  return isa == Isa::neon || (dot && (isa == Isa::neon_dot || i8mm));
#else
  return isa == Isa::generic;
#endif
}

std::vector<Isa> detect() {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  std::vector<Isa> isas;
  for (const Isa isa : kIsas) {
    if (supports(isa)) isas.push_back(isa);
  }
#if defined(WICK_ONLY_ISA)
  std::erase_if(isas, [](Isa isa) { return isa != Isa::WICK_ONLY_ISA; });
#endif
  return isas;
}

}  // namespace

std::string_view name(Isa isa) {
  constexpr std::array<std::string_view, kIsaCount> kNames = {
      "generic", "v2", "v3", "v4", "v4-vnni", "amx", "neon", "neon-dotprod", "neon-i8mm"};
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

Isa permitted(Isa isa) {
  if (isa != Isa::amx || request_amx()) return isa;
  throw Error(ErrorKind::runtime, "cpu", "the system doesn't permit AMX", "",
              "use another WICK_CPU_ISA");
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
