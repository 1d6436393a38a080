// Pairs of kernels with and without a mistake, for every family of chips.

#include "chips.h"
#include "device.h"

extern __shared__ int dynamic_lds[];

__device__ unsigned lds_address(unsigned index) {
  return static_cast<unsigned>(
      reinterpret_cast<unsigned long>((__attribute__((address_space(3))) int*)dynamic_lds) +
      4 * index);
}
__device__ void meet() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ unsigned opposite() { return group_size() - 1 - item(); }

// ---- Waits for stores before a barrier.

/// Every lane stores two dwords to LDS, which `code` does and orders, and then uses what a lane of
/// another wave has stored.
#define STORES_TO_LDS(name, code, use)                                                       \
  extern "C" __global__ void name(int* data) {                                               \
    dynamic_lds[item()] = 1;                                                                 \
    dynamic_lds[group_size() + item()] = 1;                                                  \
    meet();                                                                         \
    asm volatile(code ::"v"(lds_address(item())), "v"(lds_address(group_size() + item())),   \
                 "v"(item() + 100)                                                           \
                 : "memory");                                                                \
    use;                                                                                     \
  }
#define STORE_FIRST DS_STORE " %0, %2\n"
#define STORE_BOTH STORE_FIRST DS_STORE " %1, %2\n"
#define READ_FIRST data[item()] = dynamic_lds[opposite()]
#define READ_SECOND data[item()] = dynamic_lds[group_size() + opposite()]

STORES_TO_LDS(lds_waits, STORE_FIRST LDS_WAIT(0) BARRIER, READ_FIRST)
STORES_TO_LDS(lds_doesnt_wait, STORE_FIRST BARRIER, READ_FIRST)
STORES_TO_LDS(lds_waits_for_global, STORE_FIRST STORE_WAIT(0) BARRIER, READ_FIRST)
STORES_TO_LDS(lds_waits_for_first, STORE_BOTH LDS_WAIT(1) BARRIER, READ_FIRST)
STORES_TO_LDS(lds_doesnt_wait_for_second, STORE_BOTH LDS_WAIT(1) BARRIER, READ_SECOND)
STORES_TO_LDS(lds_waits_late, STORE_FIRST BARRIER LDS_WAIT(0), READ_FIRST)
STORES_TO_LDS(lds_waits_before_next, STORE_FIRST BARRIER LDS_WAIT(0) BARRIER, READ_FIRST)
STORES_TO_LDS(lds_reads_own, STORE_FIRST BARRIER, data[item()] = dynamic_lds[item()])
STORES_TO_LDS(lds_writes_other, STORE_FIRST BARRIER, dynamic_lds[opposite()] = 7)
STORES_TO_LDS(lds_atomic_waits, DS_ADD " %0, %2\n" LDS_WAIT(0) BARRIER, READ_FIRST)
STORES_TO_LDS(lds_atomic_doesnt_wait, DS_ADD " %0, %2\n" BARRIER, READ_FIRST)

/// The same in global memory.
#define STORES_TO_MEMORY(name, order)                                                        \
  extern "C" __global__ void name(int* data) {                                               \
    asm volatile(GLOBAL_STORE " %0, %1, off\n" order ::"v"(data + item()), "v"(item() + 100) \
                 : "memory");                                                                \
    data[group_size() + item()] = data[opposite()];                                          \
  }
STORES_TO_MEMORY(global_waits, STORE_WAIT(0) BARRIER)
STORES_TO_MEMORY(global_doesnt_wait, BARRIER)
STORES_TO_MEMORY(global_waits_late, BARRIER STORE_WAIT(0))
STORES_TO_MEMORY(global_waits_before_next, BARRIER STORE_WAIT(0) BARRIER)

// ---- Races of waves in global memory.

extern "C" __global__ void waves_race(int* data) {
  data[item()] = static_cast<int>(item());
  asm volatile("" ::: "memory");
  data[group_size() + item()] = data[opposite()];
}
extern "C" __global__ void waves_race_in_writes(int* data) {
  data[item() % 32] = static_cast<int>(item());
}
extern "C" __global__ void waves_take_turns(int* data) {
  data[item()] = static_cast<int>(item());
  meet();
  const int other = data[opposite()];
  meet();
  data[item()] = other;
}
/// Waves use neighbouring bytes of the same dwords.
extern "C" __global__ void waves_share_dwords(char* data) {
  data[item() % 32 * 4 + item() / 32] = static_cast<char>(item());
}
/// Wave 1 waits for an atomic operation of wave 0.
extern "C" __global__ void waves_hand_over(int* data) {
  if (item() == 0) dynamic_lds[0] = 0;
  meet();
  if (item() == 0) {
    __hip_atomic_fetch_add(dynamic_lds, 0, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    data[0] = 42;
    __hip_atomic_fetch_add(dynamic_lds, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
  } else if (item() == group_size() - 1) {
    while (__hip_atomic_fetch_add(dynamic_lds, 0, __ATOMIC_ACQUIRE,
                                  __HIP_MEMORY_SCOPE_WORKGROUP) == 0) {
    }
    data[1] = data[0];
  }
}
/// Workgroups store different values to one address, by atomic operations.
extern "C" __global__ void groups_store_atomically(int* data) {
  __hip_atomic_store(data, static_cast<int>(group()), __ATOMIC_RELAXED,
                     __HIP_MEMORY_SCOPE_AGENT);
}

// ---- Kernels for several streams.

extern "C" __global__ void writes(int* data, int value) {
  data[group() * group_size() + item()] = value;
}
extern "C" __global__ void copies(int* to, const int* from) {
  const unsigned i = group() * group_size() + item();
  to[i] = from[i] + 1;
}
extern "C" __global__ void copies_bytes(char* to, const char* from) {
  const unsigned i = group() * group_size() + item();
  to[3 * i] = from[3 * i];
}

// ---- Registers. Unknown values are reported where they decide something, such as an address.

extern "C" __global__ void vcc_unwritten(int* data) {
  int x;
#if defined(__GFX9__)
  asm volatile("v_cndmask_b32_e32 %0, 0, %1, vcc" : "=v"(x) : "v"(item()));
#else
  asm volatile("v_cndmask_b32_e32 %0, 0, %1, vcc_lo" : "=v"(x) : "v"(item()));
#endif
  data[1024 + item()] = data[x & 15];
}
extern "C" __global__ void scc_unwritten(int* data) {
  int x;
  asm volatile("s_cselect_b32 %0, 1, 2" : "=s"(x));
  data[item()] = x;
}
extern "C" __global__ void sgpr_unwritten(int* data) {
  int x;
  asm volatile("v_mov_b32_e32 %0, s90" : "=v"(x)::"s90");
  data[1024 + item()] = data[x & 15];
}
extern "C" __global__ void vgpr_unwritten(int* data) {
  int x;
  asm volatile("v_add_f32_e32 %0, v60, v60" : "=v"(x)::"v60");
  data[1024 + item()] = data[x & 15];
}
extern "C" __global__ void lane_unwritten(int* data) {
  int x;
  asm volatile("v_readfirstlane_b32 %0, v60" : "=s"(x)::"v60");
  data[1024 + item()] = data[x & 15];
}
extern "C" __global__ void exec_unwritten(int* data) {
#if defined(__GFX9__)
  asm volatile("s_mov_b64 s[92:93], exec\ns_and_b64 exec, exec, s[90:91]\ns_mov_b64 exec, s[92:93]" ::
                   : "s90", "s91", "s92", "s93", "scc");
#else
  asm volatile("s_mov_b32 s92, exec_lo\ns_and_b32 exec_lo, exec_lo, s90\ns_mov_b32 exec_lo, s92" ::
                   : "s90", "s92", "scc");
#endif
  data[item()] = 1;
}
extern "C" __global__ void m0_unwritten(int* data) {
  int x;
  asm volatile("s_mov_b32 %0, m0" : "=s"(x));
  data[1024 + item()] = data[x & 15];
}
/// Zeros by instructions whose result doesn't depend on the register.
extern "C" __global__ void zeros(int* data) {
  int x;
  asm volatile(
      "v_xor_b32_e32 v60, v60, v60\ns_xor_b32 s90, s90, s90\nv_add_f32_e32 %0, s90, v60"
      : "=v"(x)::"v60", "s90", "scc");
  data[item()] = x;
}

// ---- Scratch.

extern "C" __global__ void scratch_unwritten(int* data) {
  volatile int room[16];
  room[data[item()] & 15] = 5;
  data[1024 + item()] = data[room[(data[item()] + 1) & 15] & 15];
}
extern "C" __global__ void scratch_written(int* data) {
  volatile int room[16];
  for (int i = 0; i < 16; ++i) room[i] = i;
  data[1024 + item()] = data[room[(data[item()] + 1) & 15] & 15];
}
extern "C" __global__ void scratch_beyond(int* data) {
  volatile int room[16];
  room[data[item()] * 4096 + 1] = 5;
  data[item()] = room[1];
}

// ---- Memory of which a part has been written.

struct Padded {
  char a;
  double b;
  int c;
};
/// Writes the fields one by one and copies the whole struct.
extern "C" __global__ void copies_padding(Padded* data) {
  Padded* own = data + item();
  own->a = static_cast<char>(item());
  own->b = item() * 3.0;
  own->c = 7;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  data[64 + item()] = *own;
}

struct Bits {
  unsigned a : 3, b : 5, c : 24;
};
extern "C" __global__ void writes_bits(Bits* data) { data[item()].b = item(); }
extern "C" __global__ void adds(int* data) { data[item()] += 5; }

// ---- Alignment.

extern "C" __global__ void loads_unaligned(char* data) {
  int x;
  __builtin_memcpy(&x, data + 2 + 34 * item(), sizeof x);
  data[34 * item()] = static_cast<char>(x);
}
extern "C" __global__ void loads_scalar_unaligned(char* data) {
  int x;
#if defined(__GFX12__)
  asm volatile("s_load_b32 %0, %1, 0x2\ns_wait_kmcnt 0x0" : "=s"(x) : "s"(data));
#else
  asm volatile("s_load_dword %0, %1, 0x2\ns_waitcnt lgkmcnt(0)" : "=s"(x) : "s"(data));
#endif
  data[1024 + item()] = static_cast<char>(x);
}

// ---- Waves that end before a barrier.

extern "C" __global__ void last_wave_ends(int* data) {
  if (__builtin_amdgcn_readfirstlane(static_cast<int>(item())) >= 64) return;
  meet();
  data[item()] = 1;
}
