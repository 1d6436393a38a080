// Uses of registers behind waits of gfx12, each of which has two loads. The names say what the wait
// leaves outstanding and which load's register is used.

#include "device.h"

extern __shared__ int dynamic_lds[];

#define LOADS(name, first, second, wait, used, kind, from)                   \
  extern "C" __global__ void name(int* data) {                               \
    int a, b, c;                                                             \
    asm volatile(first "\n" second "\n" wait "\nv_mov_b32 %2, " used "\n"    \
                       "s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0" \
                 : "=&" kind(a), "=&" kind(b), "=&v"(c)                      \
                 : kind(from)                                                \
                 : "memory");                                                \
    data[item()] = c;                                                        \
  }

#define GLOBAL(name, wait, used)                                                              \
  LOADS(name, "global_load_b32 %0, %3, off", "global_load_b32 %1, %3, off offset:4", wait, used, \
        "v", data)
#define LDS(name, wait, used)                                                      \
  LOADS(name, "ds_load_b32 %0, %3", "ds_load_b32 %1, %3 offset:4", wait, used, "v", \
        (unsigned)(unsigned long)(__attribute__((address_space(3))) int*)dynamic_lds)
#define SCALAR(name, wait, used) \
  LOADS(name, "s_load_b32 %0, %3, 0x0", "s_load_b32 %1, %3, 0x4", wait, used, "s", data)

GLOBAL(load_leaves_1_uses_first, "s_wait_loadcnt 0x1", "%0")
GLOBAL(load_leaves_1_uses_second, "s_wait_loadcnt 0x1", "%1")
GLOBAL(load_leaves_0_uses_second, "s_wait_loadcnt 0x0", "%1")
GLOBAL(load_of_both_leaves_1_uses_first, "s_wait_loadcnt_dscnt 0x13f", "%0")
GLOBAL(load_of_both_leaves_1_uses_second, "s_wait_loadcnt_dscnt 0x13f", "%1")
GLOBAL(load_waits_for_lds, "s_wait_dscnt 0x0", "%0")
GLOBAL(load_waits_for_scalars, "s_wait_kmcnt 0x0", "%0")
GLOBAL(load_waits_for_stores, "s_wait_storecnt 0x0", "%0")
GLOBAL(load_waits_for_stores_and_lds, "s_wait_storecnt_dscnt 0x0", "%0")
GLOBAL(load_waits_for_samples, "s_wait_samplecnt 0x0", "%0")
GLOBAL(load_waits_for_bvh, "s_wait_bvhcnt 0x0", "%0")
GLOBAL(load_waits_for_exports, "s_wait_expcnt 0x0", "%0")

LDS(lds_leaves_1_uses_first, "s_wait_dscnt 0x1", "%0")
LDS(lds_leaves_1_uses_second, "s_wait_dscnt 0x1", "%1")
LDS(lds_leaves_0_uses_second, "s_wait_dscnt 0x0", "%1")
LDS(lds_of_both_leaves_1_uses_first, "s_wait_loadcnt_dscnt 0x3f01", "%0")
LDS(lds_of_both_leaves_1_uses_second, "s_wait_loadcnt_dscnt 0x3f01", "%1")
LDS(lds_of_stores_leaves_1_uses_first, "s_wait_storecnt_dscnt 0x3f01", "%0")
LDS(lds_of_stores_leaves_1_uses_second, "s_wait_storecnt_dscnt 0x3f01", "%1")
LDS(lds_waits_for_loads, "s_wait_loadcnt 0x0", "%0")
LDS(lds_waits_for_scalars, "s_wait_kmcnt 0x0", "%0")

SCALAR(scalar_leaves_0_uses_second, "s_wait_kmcnt 0x0", "%1")
SCALAR(scalar_leaves_1_uses_first, "s_wait_kmcnt 0x1", "%0")
SCALAR(scalar_waits_for_lds, "s_wait_dscnt 0x0", "%0")
SCALAR(scalar_waits_for_loads, "s_wait_loadcnt 0x0", "%0")

// dscnt doesn't count the scalar load, so the wait leaves the load from LDS outstanding.
extern "C" __global__ void lds_and_scalar_leaves_1(int* data) {
  int a, b, c;
  asm volatile(
      "ds_load_b32 %0, %3\ns_load_b32 %1, %4, 0x0\ns_wait_dscnt 0x1\nv_mov_b32 %2, %0\n"
      "s_wait_dscnt 0x0\ns_wait_kmcnt 0x0"
      : "=&v"(a), "=&s"(b), "=&v"(c)
      : "v"((unsigned)(unsigned long)(__attribute__((address_space(3))) int*)dynamic_lds), "s"(data)
      : "memory");
  data[item()] = c;
}

// Samples of images have a counter of their own; loads of images are counted like other loads.

typedef int Int4 __attribute__((ext_vector_type(4)));
typedef int Int8 __attribute__((ext_vector_type(8)));
#define CONSTANT const __attribute__((address_space(4)))

#define IMAGE(name, instruction, sampler, wait, used)                                            \
  extern "C" __global__ void name(CONSTANT int* object, int* data) {                             \
    const Int8 image = *(CONSTANT Int8*)object;                                                  \
    const Int4 how = *(CONSTANT Int4*)(object + 12);                                             \
    int a, b, c;                                                                                 \
    asm volatile(instruction " %0, [%3, %3], %4" sampler " dmask:0x1 dim:SQ_RSRC_IMG_2D\n"       \
                 instruction " %1, [%3, %3], %4" sampler " dmask:0x1 dim:SQ_RSRC_IMG_2D\n" wait  \
                 "\nv_mov_b32 %2, " used "\ns_wait_samplecnt 0x0\ns_wait_loadcnt 0x0"            \
                 : "=&v"(a), "=&v"(b), "=&v"(c)                                                  \
                 : "v"(0), "s"(image), "s"(how)                                                  \
                 : "memory");                                                                    \
    data[item()] = c;                                                                            \
  }
#define SAMPLE(name, wait, used) IMAGE(name, "image_sample_lz", ", %5", wait, used)
#define LOAD(name, wait, used) IMAGE(name, "image_load", "", wait, used)

SAMPLE(sample_leaves_1_uses_first, "s_wait_samplecnt 0x1", "%0")
SAMPLE(sample_leaves_1_uses_second, "s_wait_samplecnt 0x1", "%1")
SAMPLE(sample_leaves_0_uses_second, "s_wait_samplecnt 0x0", "%1")
SAMPLE(sample_waits_for_loads, "s_wait_loadcnt 0x0", "%0")
LOAD(image_load_waits_for_loads, "s_wait_loadcnt 0x0", "%1")
LOAD(image_load_waits_for_samples, "s_wait_samplecnt 0x0", "%0")
