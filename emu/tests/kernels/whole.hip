// Loads elements of 128 bits again and again while the host writes them. The dwords of each element
// are equal; the kernel counts the elements that differ.

#include "device.h"

typedef unsigned Element __attribute__((ext_vector_type(4)));

extern "C" __global__ void count_torn(const Element* elements, int* torn, int rounds) {
  int count = 0;
  for (int i = 0; i < rounds; ++i) {
    Element x;
    asm volatile("global_load_b128 %0, %1, off\ns_waitcnt vmcnt(0)"
                 : "=v"(x)
                 : "v"(elements + item())
                 : "memory");
    count += x.x != x.y || x.x != x.z || x.x != x.w;
  }
  torn[item()] = count;
}
