#pragma once

// What needs more than one thread or the host: counting barriers, copies, printf, assert, malloc.

WICK_LANES int __syncthreads_count(int predicate) { return __ockl_wgred_add_i32(predicate != 0); }
WICK_LANES int __syncthreads_and(int predicate) { return __ockl_wgred_and_i32(predicate != 0); }
WICK_LANES int __syncthreads_or(int predicate) { return __ockl_wgred_or_i32(predicate != 0); }

extern "C" __device__ int printf(const char* format, ...);

extern "C" __device__ __attribute__((noinline, weak)) void* memcpy(void* to, const void* from,
                                                                   size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}
extern "C" __device__ __attribute__((noinline, weak)) void* memset(void* to, int value,
                                                                   size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) static_cast<char*>(to)[i] = static_cast<char>(value);
  return to;
}

WICK_LANES void* malloc(size_t bytes) { return reinterpret_cast<void*>(__ockl_dm_alloc(bytes)); }
WICK_LANES void free(void* block) { __ockl_dm_dealloc(reinterpret_cast<uint64_t>(block)); }
__device__ __attribute__((weak)) void* operator new(size_t bytes) { return malloc(bytes); }
__device__ __attribute__((weak)) void* operator new[](size_t bytes) { return malloc(bytes); }
__device__ __attribute__((weak)) void operator delete(void* block) noexcept { free(block); }
__device__ __attribute__((weak)) void operator delete[](void* block) noexcept { free(block); }
__device__ __attribute__((weak)) void operator delete(void* block, size_t) noexcept { free(block); }
__device__ __attribute__((weak)) void operator delete[](void* block, size_t) noexcept {
  free(block);
}
__device__ inline void* operator new(size_t, void* place) noexcept { return place; }
__device__ inline void* operator new[](size_t, void* place) noexcept { return place; }

WICK_LANES void abort() { __builtin_trap(); }
WICK_LANES void trap() { __builtin_trap(); }
WICK_LANES void __trap() { __builtin_trap(); }

/// Prints the message of a failed assertion to standard error and ends the kernel.
extern "C" __device__ __attribute__((noinline, weak)) void __assert_fail(const char* assertion,
                                                                         const char* file,
                                                                         unsigned line,
                                                                         const char* function) {
  const char format[] = "%s:%u: %s: Device-side assertion `%s' failed.\n";
  const auto bytes = [](const char* text) {
    uint64_t count = 1;
    while (*text++ != 0) ++count;
    return count;
  };
  uint64_t message = __ockl_fprintf_stderr_begin();
  message = __ockl_fprintf_append_string_n(message, format, sizeof format, 0);
  message = __ockl_fprintf_append_string_n(message, file, bytes(file), 0);
  message = __ockl_fprintf_append_args(message, 1, line, 0, 0, 0, 0, 0, 0, 0);
  message = __ockl_fprintf_append_string_n(message, function, bytes(function), 0);
  __ockl_fprintf_append_string_n(message, assertion, bytes(assertion), 1);
  __builtin_trap();
}

#ifdef NDEBUG
#define assert(condition) static_cast<void>(0)
#else
#define assert(condition)             \
  ((condition) ? static_cast<void>(0) \
               : __assert_fail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__))
#endif
