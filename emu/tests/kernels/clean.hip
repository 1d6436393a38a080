// Correct programs that imprecise checks might report. The checks must not report them.

#include "device.h"

/// Uses negative address registers with offsets that compensate them.
extern "C" __global__ void reversed(int* data) {
  __shared__ int room[64];
  room[63 - item()] = data[item()];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  data[item()] = room[63 - item()] + room[63 - item() / 2] * 1000;
}

/// All lanes compare, but only the results of lanes with a value are used.
extern "C" __global__ void largest(const float* from, int* to, int n) {
  const int i = static_cast<int>(global_item());
  const bool valid = i < n;
  float value;
  if (valid) value = from[i];
  int count = 0;
  for (int k = 0; k < 4; ++k) {
    if (valid && value > static_cast<float>(k)) ++count;
  }
  to[i] = count;
}

struct Padded {
  char a;
  int b;
  short c;
};
/// Writes the fields one by one and copies the whole struct.
extern "C" __global__ void padding(Padded* data) {
  Padded* own = data + item();
  own->a = static_cast<char>(item());
  own->b = static_cast<int>(item()) * 3;
  own->c = 7;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  data[64 + item()] = *own;
}

/// Memory that an exchange writes counts as written.
extern "C" __global__ void exchanged(int* data) {
  __hip_atomic_exchange(data + item(), static_cast<int>(item()), __ATOMIC_RELAXED,
                        __HIP_MEMORY_SCOPE_AGENT);
  data[64 + item()] = data[item()];
}

/// One wave hands a value to the other, which waits for an atomic operation.
extern "C" __global__ void handed_over(int* data) {
  __shared__ int value, ready;
  if (item() == 0) ready = 0;
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (item() == 0) {
    __hip_atomic_fetch_add(&ready, 0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    value = 42;
    __hip_atomic_fetch_add(&ready, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
  } else if (item() == 64) {  // of another wave
    while (__hip_atomic_fetch_add(&ready, 0, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_WORKGROUP) == 0) {
    }
    data[0] = value;
  }
}
