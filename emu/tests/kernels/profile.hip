// Each kernel has known counts for one thing that a profile counts.

#include "device.h"

extern __shared__ int dynamic_lds[];

/// Every lane uses its own 128-byte segment.
extern "C" __global__ void strided(const int* from, int* to) { to[item() * 32] = from[item() * 32]; }

/// All lanes read the same dword.
extern "C" __global__ void uniform(const int* from, int* to, int zero) {
  to[item()] = from[static_cast<int>(item()) * zero];
}

/// All lanes use dwords of bank 0.
extern "C" __global__ void one_bank(int* data) {
  volatile int* lds = dynamic_lds;
  lds[item() * 32] = data[item()];
  data[item()] = lds[item() * 32];
}

/// Uses rows of 33 dwords, so that no two lanes share a bank.
extern "C" __global__ void padded(int* data) {
  volatile int* lds = dynamic_lds;
  lds[item() * 33] = data[item()];
  data[item()] = lds[item() * 33];
}

/// Four lanes work and the others are disabled.
extern "C" __global__ void four_lanes(int* data, int times) {
  if (item() >= 4) return;
  int x = data[item()];
  for (int i = 0; i < times; ++i) x = x * 1664525 + (x >> 7);
  data[item()] = x;
}

/// Three matrix instructions, one of them of int4.
extern "C" __global__ void matrix(const int* from, float* to) {
  typedef _Float16 Halves __attribute__((ext_vector_type(16)));
  typedef float Floats __attribute__((ext_vector_type(8)));
  typedef int Two __attribute__((ext_vector_type(2)));
  typedef int Eight __attribute__((ext_vector_type(8)));
  const Halves x = static_cast<_Float16>(from[item()]);
  Floats sums = {};
  for (int i = 0; i < 2; ++i) sums = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, x, sums);
  const Two y = from[item()];
  Eight counts = {};
  counts = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, y, true, y, counts, false);
  to[item()] = sums[0] + static_cast<float>(counts[0]);
}

/// Indexes more values than a lane's registers can hold.
extern "C" __global__ void spills(int* data, int which) {
  int room[300];
  for (int i = 0; i < 300; ++i) room[(i * which) % 300] = data[i];
  data[item()] = room[which + item()];
}
