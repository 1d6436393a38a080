#pragma once

__device__ inline void store_one(int* at) {
  *at = 1;  // line 4
}
