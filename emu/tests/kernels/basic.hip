// Simple kernels for testing the runtime.

#include "device.h"

__device__ int counter = 7;
__device__ int table[64];

extern "C" __global__ void add(float* c, const float* a, const float* b, int n) {
  const int i = static_cast<int>(global_item());
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void add_one(int* data, int n) {
  const int i = static_cast<int>(global_item());
  if (i < n) data[i] += 1;
}

extern "C" __global__ void set_to(int* data, int value) { data[global_item()] = value; }

extern "C" __global__ void read_counter(int* out) { *out = counter; }

/// Runs for a while: does `rounds` dependent steps and then writes.
extern "C" __global__ void slow_set(int* data, int value, int rounds) {
  unsigned state = static_cast<unsigned>(value);
  for (int i = 0; i < rounds; ++i) state = state * 1664525u + 1013904223u;
  data[global_item()] = state == 1 ? value + 1 : value;
}

extern "C" __global__ void never_ends(volatile int* flag) {
  while (*flag == 0) {
  }
}

/// Each workgroup waits for the next one, and the last one doesn't wait. All of them must be active
/// at once.
extern "C" __global__ void chain(int* flags, int groups) {
  const int me = static_cast<int>(group());
  if (item() != 0) return;
  if (me + 1 < groups) {
    while (__hip_atomic_load(flags + me + 1, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 0) {
    }
  }
  __hip_atomic_store(flags + me, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}

extern "C" __global__ void sizes(int* out) {
  if (item() != 0) return;
  out[group() * 2] = static_cast<int>(own_group_size());
  out[group() * 2 + 1] = static_cast<int>(__builtin_amdgcn_grid_size_x());
}

extern "C" __global__ void out_of_bounds(int* data, long offset) { data[offset] = 1; }

extern __attribute__((shared)) int dynamic_lds[];

extern "C" __global__ void reverse(int* data) {
  const unsigned i = item(), n = group_size();
  dynamic_lds[i] = data[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  data[i] = dynamic_lds[n - 1 - i];
}

// Bugs that the checks must find.

extern "C" __global__ void reads_unwritten_lds(int* data) { data[item()] = dynamic_lds[item() + 1]; }

extern "C" __global__ void reverse_without_barrier(int* data) {
  const unsigned i = item(), n = group_size();
  dynamic_lds[i] = data[i];
  data[i] = dynamic_lds[n - 1 - i];
}

extern "C" __global__ void all_write(int* data) { data[item()] = static_cast<int>(group()); }

__attribute__((amdgpu_flat_work_group_size(1, 64))) extern "C" __global__ void small_only(int* data) {
  data[item()] = 1;
}

// Ways to end a kernel early.

extern "C" __global__ void traps(int* data) {
  if (data[item()] == 0) __builtin_trap();
  data[item()] = 1;
}

/// Calls the function that the caller passed.
extern "C" __global__ void calls(int* data, void (*function)(int*)) { function(data); }

__attribute__((noinline)) __device__ int deeper(volatile int* data, int depth) {
  volatile int room[64];
  room[depth & 63] = data[0];
  return deeper(data, depth + 1) + room[depth & 63];
}

extern "C" __global__ void recurses(volatile int* data) { data[0] = deeper(data, 0); }

typedef int many __attribute__((ext_vector_type(32)));

/// Reads a register whose index is known only at run time.
extern "C" __global__ void picks_register(int* data, int which) {
  many v;
  for (int i = 0; i < 32; ++i) v[i] = data[i] + static_cast<int>(item());
  v[which & 31] += 1000;
  data[item() + 32] = v[(which + static_cast<int>(group())) & 31];
}
