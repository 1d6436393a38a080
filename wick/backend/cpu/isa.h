#pragma once

#include <span>
#include <string_view>

#include "wick/base/export.h"

namespace wick::cpu {

/// The instruction sets that kernels are compiled for: of x86-64 from v2, of aarch64 from neon.
/// `generic` is the compiler's baseline on other processors.
enum class Isa : unsigned char { generic, v2, v3, v4, v4_vnni, amx, neon, neon_dot, neon_i8mm };
inline constexpr int kIsaCount = 9;

/// Those that this architecture has. The last available one is the default. amx comes before
/// v4_vnni, because on a Xeon with 16 threads its prompts run at 0.8 to 1.2 times the speed of
/// v4_vnni, depending on the type, and it needs a permission of the system.
#if defined(__x86_64__)
inline constexpr Isa kIsas[] = {Isa::v2, Isa::v3, Isa::v4, Isa::amx, Isa::v4_vnni};
#elif defined(__aarch64__)
inline constexpr Isa kIsas[] = {Isa::neon, Isa::neon_dot, Isa::neon_i8mm};
#else
inline constexpr Isa kIsas[] = {Isa::generic};
#endif

/// The name by which WICK_CPU_ISA selects it.
WICK_API std::string_view name(Isa isa);

/// The instruction sets that this binary holds and this machine can run, in the order of kIsas.
WICK_API std::span<const Isa> available_isas();

/// The last available one, or the one WICK_CPU_ISA names.
/// Errors: WICK_CPU_ISA names one that isn't available (the message lists those that are).
WICK_API Isa selected_isa();

/// Asks the system for the permission that an instruction set needs: amx alone. Returns the
/// instruction set. Errors: the system refuses.
WICK_API Isa permitted(Isa isa);

/// True when the processor has AVX512-BF16 (only meaningful with v4 and above).
bool has_avx512_bf16();

}  // namespace wick::cpu

// Kernel sources are compiled once for each instruction set, each time in another namespace, and
// export one table of function pointers per family. Everything else in such a source must have
// internal linkage: the linker could otherwise choose the AVX-512 version of an inline function for
// code that runs on every processor. tools/check_symbols.py checks this.
#if !defined(__x86_64__) && !defined(__aarch64__)
#define WICK_ONLY_ISA generic
#endif
#define WICK_DECLARE_TABLE(level, Table, variable) \
  namespace level {                                \
  extern const Table variable;                     \
  }
/// WICK_DECLARE_KERNELS declares a family's tables. WICK_SELECT_KERNELS(isa, variable, DOTS) is the
/// table of an instruction set. DOTS: `dots` for families that are also compiled for instruction
/// sets that differ from the one before in their integer dot products, else `no_dots`.
#if defined(WICK_ONLY_ISA)
#define WICK_DECLARE_KERNELS(Table, variable) WICK_DECLARE_TABLE(WICK_ONLY_ISA, Table, variable)
#define WICK_SELECT_KERNELS(isa, variable, DOTS) ((void)(isa), ::wick::cpu::WICK_ONLY_ISA::variable)
#elif defined(__aarch64__)
#define WICK_DECLARE_KERNELS(Table, variable)   \
  WICK_DECLARE_TABLE(neon, Table, variable)     \
  WICK_DECLARE_TABLE(neon_dot, Table, variable) \
  WICK_DECLARE_TABLE(neon_i8mm, Table, variable)
#define WICK_SELECT_KERNELS(isa, variable, DOTS) WICK_SELECT_##DOTS(isa, variable)
#define WICK_SELECT_no_dots(isa, variable) ((void)(isa), ::wick::cpu::neon::variable)
#define WICK_SELECT_dots(isa, variable)                                    \
  ((isa) == ::wick::cpu::Isa::neon       ? ::wick::cpu::neon::variable     \
   : (isa) == ::wick::cpu::Isa::neon_dot ? ::wick::cpu::neon_dot::variable \
                                         : ::wick::cpu::neon_i8mm::variable)
#else
#define WICK_DECLARE_KERNELS(Table, variable) \
  WICK_DECLARE_TABLE(v2, Table, variable)     \
  WICK_DECLARE_TABLE(v3, Table, variable)     \
  WICK_DECLARE_TABLE(v4, Table, variable)     \
  WICK_DECLARE_TABLE(v4_vnni, Table, variable)
#define WICK_SELECT_KERNELS(isa, variable, DOTS) WICK_SELECT_##DOTS(isa, variable)
#define WICK_SELECT_no_dots(isa, variable)                     \
  ((isa) == ::wick::cpu::Isa::v2   ? ::wick::cpu::v2::variable \
   : (isa) == ::wick::cpu::Isa::v3 ? ::wick::cpu::v3::variable \
                                   : ::wick::cpu::v4::variable)
#define WICK_SELECT_dots(isa, variable)                                \
  ((isa) >= ::wick::cpu::Isa::v4_vnni ? ::wick::cpu::v4_vnni::variable \
                                      : WICK_SELECT_no_dots(isa, variable))
#endif
