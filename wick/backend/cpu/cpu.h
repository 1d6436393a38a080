#pragma once

#include <string>
#include <vector>

#include "wick/base/export.h"

namespace wick::cpu {

/// Threads that parallel work on the CPU may use, the caller's included. By default as many as the
/// process's affinity mask and control group allow.
WICK_API int threads();
/// Errors: fewer than 1 or more than 1024.
WICK_API void set_threads(int count);

/// The instruction set the kernels were chosen for ("v4-vnni"), and all this machine could use.
/// WICK_CPU_ISA names another.
WICK_API std::string isa();
WICK_API std::vector<std::string> isas();

}  // namespace wick::cpu
