// The kernels of AMX with portable code for its instructions, and a processor that has it. The
// linker takes these definitions instead of the library's.

#include "tests/backend/amx_tiles_stand_in.h"
#include "wick/backend/cpu/amx.h"
#include "wick/backend/cpu/linear/amx_kernels.cpp"

namespace wick::cpu {

// Only processors with AVX512-VNNI, which the kernels need, are asked.
bool has_amx() { return true; }
bool has_amx_bf16() { return true; }
bool request_amx() { return true; }

}  // namespace wick::cpu
