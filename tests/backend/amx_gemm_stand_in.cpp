// Gemms of bf16 with portable code for the tiles of AMX. The linker takes these kernels instead of
// the library's.

#include "tests/backend/amx_tiles_stand_in.h"
#include "wick/backend/cpu/linear/amx_gemm_kernels.cpp"
