#pragma once

// The processor's own instructions, for kernel sources.

#if defined(__x86_64__)
// GCC 12 calls the deliberately undefined operands inside its own intrinsics uninitialised.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
