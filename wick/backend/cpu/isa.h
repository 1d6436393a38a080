#pragma once

#include <span>
#include <string_view>

#include "wick/base/export.h"

namespace wick::cpu {

/// The instruction sets that kernels are compiled for, slowest first. `generic` is the compiler's
/// baseline and the only one on processors other than x86-64.
enum class Isa : unsigned char { generic, v2, v3, v4, v4_vnni };

WICK_API std::string_view name(Isa isa);

/// The instruction sets that this binary holds and this machine can run, slowest first.
WICK_API std::span<const Isa> available_isas();

/// The fastest available one, or the one WICK_CPU_ISA names.
/// Errors: WICK_CPU_ISA names one that isn't available (the message lists those that are).
WICK_API Isa selected_isa();

/// True when the processor has AVX512-BF16 (only meaningful with v4 and above).
bool has_avx512_bf16();

}  // namespace wick::cpu

// Kernel sources are compiled once for each instruction set, each time in another namespace, and
// export one table of function pointers per family. Everything else in such a source must have
// internal linkage: the linker could otherwise choose the AVX-512 version of an inline function for
// code that runs on every processor. tools/check_symbols.py checks this.
#if !defined(__x86_64__)
#define WICK_ONLY_ISA generic
#endif
#if defined(WICK_ONLY_ISA)
#define WICK_DECLARE_KERNELS(Table, variable) \
  namespace WICK_ONLY_ISA {                   \
  extern const Table variable;                \
  }
#define WICK_SELECT_KERNELS(isa, variable, LEVEL4V) \
  ((void)(isa), ::wick::cpu::WICK_ONLY_ISA::variable)
#else
#define WICK_DECLARE_KERNELS(Table, variable) \
  namespace v2 {                              \
  extern const Table variable;                \
  }                                           \
  namespace v3 {                              \
  extern const Table variable;                \
  }                                           \
  namespace v4 {                              \
  extern const Table variable;                \
  }                                           \
  namespace v4_vnni {                         \
  extern const Table variable;                \
  }
/// The table of an instruction set. LEVEL4V: `v4_vnni`, or `v4` for families without a VNNI build.
#define WICK_SELECT_KERNELS(isa, variable, LEVEL4V)            \
  ((isa) == ::wick::cpu::Isa::v2   ? ::wick::cpu::v2::variable \
   : (isa) == ::wick::cpu::Isa::v3 ? ::wick::cpu::v3::variable \
   : (isa) == ::wick::cpu::Isa::v4 ? ::wick::cpu::v4::variable \
                                   : ::wick::cpu::LEVEL4V::variable)
#endif
