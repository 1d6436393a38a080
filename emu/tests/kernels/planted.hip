// Bugs that the checks must find. Inline assembly expresses those that compilers wouldn't emit.

#include "chips.h"
#include "device.h"

extern __shared__ int dynamic_lds[];

extern "C" __global__ void no_wait(int* data) {
  int x;
  asm volatile(
      GLOBAL_LOAD " %0, %1, off\n"
      ADD_U32 " %0, 1, %0\n"
      LOAD_WAIT(0)
      : "=&v"(x)
      : "v"(data + item()));
  data[item()] = x;
}

extern "C" __global__ void unwritten_register(int* data) {
  asm volatile(
      "v_cmp_eq_u32_e32 " VCC ", 0, v60\n"
      "s_cbranch_vccz 0\n" ::
          : "vcc", "v60");
  data[item()] = 1;
}

extern "C" __global__ void unwritten_address(int* data) {
  int x;
  asm volatile(
      "v_and_b32_e32 v61, 0, v61\n"
      "v_or_b32_e32 v61, v61, v60\n"
      "v_and_b32_e32 v61, 12, v61\n"
      GLOBAL_LOAD " %0, v61, %1\n"
      LOAD_WAIT(0)
      : "=v"(x)
      : "s"(data)
      : "v60", "v61");
  data[item()] = x;
}

extern "C" __global__ void unwritten_scalar(int* data) {
  asm volatile("s_cmp_eq_u32 s90, 0" ::: "scc", "s90");
  data[item()] = 1;
}

extern "C" __global__ void unwritten_condition(int* data) {
  int x;
  asm volatile(
      "s_and_b32 s90, s91, 3\n"
      "s_cselect_b32 s92, 1, 0\n"
      "v_mov_b32_e32 %0, s92"
      : "=v"(x)::"scc", "s90", "s91", "s92");
  data[item()] = x;
}

/// The word isn't a valid instruction.
extern "C" __global__ void unknown_instruction(int* data) {
  data[item()] = 77;
  asm volatile(".long 0xfc0000ff");
}

extern "C" __global__ void divergent_barrier(int* data) {
  if (data[item()] < 16) asm volatile(BARRIER ::: "memory");
  data[item()] = 1;
}

/// Valid: clang leaves EXEC at 0 at a barrier behind a loop.
extern "C" __global__ void barrier_without_lanes(int* data) {
  asm volatile(
      MOVE_MASK " " SAVED_MASK ", " EXEC "\n"
      MOVE_MASK " " EXEC ", 0\n"
      BARRIER
      MOVE_MASK " " EXEC ", " SAVED_MASK ::
          : "s90", "s91", "memory");
  data[item()] = 1;
}

extern "C" __global__ void misaligned(int* data) {
  int x;
  asm volatile(GLOBAL_LOAD " %0, %1, off offset:1\n" LOAD_WAIT(0) : "=v"(x) : "v"(data));
  if (item() == 0) data[1] = x;
}

extern "C" __global__ void too_far(int* data) { data[item()] = 1; }

extern "C" __global__ void lds_too_far(int* data) {
  dynamic_lds[item()] = 1;
  data[item()] = dynamic_lds[item() + 100000];
}

/// Each element is written before another wave reads it, but there is no barrier in between.
extern "C" __global__ void lds_race(int* data) {
  const unsigned i = item(), n = group_size();
  dynamic_lds[i] = data[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  const int other = dynamic_lds[n - 1 - i];
  dynamic_lds[i] = other + 1;
  data[i] = other;
}

/// Half of the lanes write a different value than the other half to the same address.
extern "C" __global__ void lanes_collide(int* data) { data[item() / 2] = static_cast<int>(item()); }

extern "C" __global__ void lds_lanes_collide(int* data) {
  dynamic_lds[item() / 2] = static_cast<int>(item());
  data[item()] = dynamic_lds[item() / 2];
}

/// All lanes write the same value.
extern "C" __global__ void lanes_agree(int* data) {
  dynamic_lds[item() / 2] = static_cast<int>(item() / 2);
  data[item() / 4] = dynamic_lds[item() / 2] / 2;
}

/// Workgroup g increments short g of every dword. No two workgroups share a byte.
extern "C" __global__ void halves(short* data) {
  short& own = data[item() * 2 + group()];
  own = static_cast<short>(own + 1);
}

/// Four workgroups, which start one after another, write adjacent elements. Each work-item uses a
/// cache line of its own.
template <class T>
__device__ void write_neighbours(T* data) {
  constexpr unsigned kLine = 64 / sizeof(T);
  data[(group() / 4 * group_size() + item()) * kLine + group() % 4] = static_cast<T>(item() + 1);
}
extern "C" __global__ void neighbouring_shorts(short* data) { write_neighbours(data); }
extern "C" __global__ void neighbouring_bytes(char* data) { write_neighbours(data); }

/// All workgroups write the first byte.
extern "C" __global__ void one_byte(char* data) { data[0] = static_cast<char>(group() + 1); }

/// Work-item i of either wave writes one of two adjacent shorts.
extern "C" __global__ void lds_halves(short* data) {
  auto* lds = reinterpret_cast<short*>(dynamic_lds);
  lds[item() % 32 * 2 + item() / 32] = static_cast<short>(item());
  data[item()] = lds[item() % 32 * 2 + item() / 32];
}

/// Reaches one barrier after another until data[0] is written.
extern "C" __global__ void barriers_forever(volatile int* data) {
  while (data[0] == 0) __builtin_amdgcn_s_barrier();
}

extern "C" __global__ void adds_one(int* data, int to) {
  // The workgroups swap their halves between launches.
  data[(group() ^ static_cast<unsigned>(to)) * 32 + item()] += 1;
}
