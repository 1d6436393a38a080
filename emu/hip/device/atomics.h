#pragma once

// Atomic operations. Those without a suffix order threads of one device; `_system` includes the
// host and other devices, `_block` only the threads of the block.

#define WICK_ATOMIC(T, name, operation)                                                         \
  WICK_LANES T atomic##name(T* at, T value) {                                                   \
    return __hip_atomic_##operation(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);     \
  }                                                                                             \
  WICK_LANES T atomic##name##_system(T* at, T value) {                                          \
    return __hip_atomic_##operation(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);    \
  }                                                                                             \
  WICK_LANES T atomic##name##_block(T* at, T value) {                                           \
    return __hip_atomic_##operation(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); \
  }
#define WICK_ATOMIC_SUB(T)                                                                 \
  WICK_LANES T atomicSub(T* at, T value) { return atomicAdd(at, static_cast<T>(-value)); } \
  WICK_LANES T atomicSub_system(T* at, T value) {                                          \
    return atomicAdd_system(at, static_cast<T>(-value));                                   \
  }                                                                                        \
  WICK_LANES T atomicSub_block(T* at, T value) {                                           \
    return atomicAdd_block(at, static_cast<T>(-value));                                    \
  }
#define WICK_ATOMIC_CAS(T)                                                                         \
  WICK_LANES T atomicCAS(T* at, T expected, T value) {                                             \
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                         __HIP_MEMORY_SCOPE_AGENT);                                \
    return expected;                                                                               \
  }                                                                                                \
  WICK_LANES T atomicCAS_system(T* at, T expected, T value) {                                      \
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                         __HIP_MEMORY_SCOPE_SYSTEM);                               \
    return expected;                                                                               \
  }                                                                                                \
  WICK_LANES T atomicCAS_block(T* at, T expected, T value) {                                       \
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, \
                                         __HIP_MEMORY_SCOPE_WORKGROUP);                            \
    return expected;                                                                               \
  }
#define WICK_ATOMICS(T)          \
  WICK_ATOMIC(T, Add, fetch_add) \
  WICK_ATOMIC(T, Exch, exchange) \
  WICK_ATOMIC(T, Min, fetch_min) \
  WICK_ATOMIC(T, Max, fetch_max) \
  WICK_ATOMIC_SUB(T)             \
  WICK_ATOMIC_CAS(T)
#define WICK_ATOMICS_OF_BITS(T)  \
  WICK_ATOMICS(T)                \
  WICK_ATOMIC(T, And, fetch_and) \
  WICK_ATOMIC(T, Or, fetch_or)   \
  WICK_ATOMIC(T, Xor, fetch_xor)
WICK_ATOMICS_OF_BITS(int)
WICK_ATOMICS_OF_BITS(unsigned int)
WICK_ATOMICS_OF_BITS(long)
WICK_ATOMICS_OF_BITS(unsigned long)
WICK_ATOMICS_OF_BITS(long long)
WICK_ATOMICS_OF_BITS(unsigned long long)
WICK_ATOMICS(float)
WICK_ATOMICS(double)
WICK_ATOMIC_CAS(unsigned short)
#undef WICK_ATOMIC
#undef WICK_ATOMIC_SUB
#undef WICK_ATOMIC_CAS
#undef WICK_ATOMICS
#undef WICK_ATOMICS_OF_BITS

// The hardware's own addition of floats, where it has one. The emulated result is that of
// atomicAdd.
WICK_LANES float unsafeAtomicAdd(float* at, float value) { return atomicAdd(at, value); }
WICK_LANES double unsafeAtomicAdd(double* at, double value) { return atomicAdd(at, value); }
WICK_LANES float safeAtomicAdd(float* at, float value) { return atomicAdd(at, value); }
WICK_LANES double safeAtomicAdd(double* at, double value) { return atomicAdd(at, value); }
WICK_LANES void atomicAddNoRet(float* at, float value) { atomicAdd(at, value); }
