// Bugs in inlined functions of a header and of the file itself.

#include "device.h"
#include "inlined.h"

__device__ inline void store_two(int* at) {
  *at = 2;  // line 7
}

__device__ inline void store_next(int* at) {
  store_one(at + 1);  // line 11
}

extern "C" __global__ void by_header(int* data) {
  store_one(data + item());  // line 15
}

extern "C" __global__ void by_itself(int* data) {
  store_two(data + item());
}

extern "C" __global__ void by_both(int* data) {
  store_next(data + item());
}
