// Kernels that print into a buffer, which the host reads when they are done
// (-mprintf-kind=buffered).

#include "device.h"

extern "C" __device__ int printf(const char* format, ...);
extern "C" __attribute__((constant)) const int __oclc_ABI_version;

struct PrintBuffer {
  unsigned used, room;
  char records[];
};

__device__ inline PrintBuffer* print_buffer() {
  using Hidden = const __attribute__((address_space(4))) unsigned long*;
  const auto hidden = (Hidden)__builtin_amdgcn_implicitarg_ptr();
  return (PrintBuffer*)hidden[__oclc_ABI_version < 500 ? 3 : 9];
}

/// The compiler calls this function for each printf(). Null: the buffer is full.
extern "C" __device__ __attribute__((weak)) __attribute__((address_space(1))) char* __printf_alloc(
    unsigned bytes) {
  PrintBuffer* buffer = print_buffer();
  unsigned used = __hip_atomic_load(&buffer->used, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  do {
    if (used + bytes > buffer->room) return nullptr;
  } while (!__hip_atomic_compare_exchange_strong(&buffer->used, &used, used + bytes,
                                                 __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT));
  return (__attribute__((address_space(1))) char*)(buffer->records + used);
}

extern "C" __global__ void say_lanes(int from, const char* name) {
  printf("%s: %d, %s, %.2f\n", name, from + static_cast<int>(item()), "constant", 0.25 * item());
}

extern "C" __global__ void say_format(const char* format) { printf(format, 17); }

/// Writes records that can't be read.
extern "C" __global__ void spoil(unsigned control) {
  PrintBuffer* buffer = print_buffer();
  buffer->used = 0xffffffff;
  *reinterpret_cast<unsigned*>(buffer->records) = control;
}
