// A HIP program as its users write them, against the public headers: kernels called by <<<>>>,
// variables of the device's, dynamic LDS, shuffles, events. Run with the emulator in place of the
// runtime.

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

// What the headers take from the vendor's device library.
extern "C" __device__ size_t __ockl_get_local_id(unsigned axis) {
  return axis == 0 ? __builtin_amdgcn_workitem_id_x()
                   : axis == 1 ? __builtin_amdgcn_workitem_id_y() : __builtin_amdgcn_workitem_id_z();
}
extern "C" __device__ size_t __ockl_get_group_id(unsigned axis) {
  return axis == 0 ? __builtin_amdgcn_workgroup_id_x()
                   : axis == 1 ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_z();
}
extern "C" __device__ size_t __ockl_get_local_size(unsigned axis) {
  return axis == 0 ? __builtin_amdgcn_workgroup_size_x()
                   : axis == 1 ? __builtin_amdgcn_workgroup_size_y()
                               : __builtin_amdgcn_workgroup_size_z();
}

__constant__ float factor = 1;
__device__ int calls = 0;

__global__ void saxpy(float* y, const float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] += factor * x[i];
  if (i == 0) calls += 1;
}

/// Each block's sum.
template <class T>
__global__ void sum(const T* x, T* sums) {
  extern __shared__ char room[];
  T* part = reinterpret_cast<T*>(room);
  part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

static void check(hipError_t error, int line) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, hipGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

int main() {
  constexpr int kCount = 10000;
  std::vector<float> x(kCount, 2.f), y(kCount, 1.f);
  float *dx, *dy;
  CHECK(hipMalloc(reinterpret_cast<void**>(&dx), kCount * sizeof(float)));
  CHECK(hipMalloc(reinterpret_cast<void**>(&dy), kCount * sizeof(float)));
  CHECK(hipMemcpy(dx, x.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(dy, y.data(), kCount * sizeof(float), hipMemcpyHostToDevice));
  const float value = 3;
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(factor), &value, sizeof value, 0, hipMemcpyHostToDevice));
  saxpy<<<dim3((kCount + 255) / 256), dim3(256), 0, 0>>>(dy, dx, kCount);
  CHECK(hipGetLastError());
  hipEvent_t before, after;
  CHECK(hipEventCreate(&before));
  CHECK(hipEventCreate(&after));
  CHECK(hipEventRecord(before, 0));
  saxpy<<<dim3((kCount + 255) / 256), dim3(256), 0, 0>>>(dy, dx, kCount);
  CHECK(hipEventRecord(after, 0));
  CHECK(hipEventSynchronize(after));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, before, after));
  if (!(milliseconds >= 0)) return 1;
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(y.data(), dy, kCount * sizeof(float), hipMemcpyDeviceToHost));
  int count = 0;
  CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(calls), sizeof count, 0, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    if (y[i] != 13.f) {
      std::fprintf(stderr, "y[%d] = %g\n", i, y[i]);
      return 1;
    }
  }
  if (count != 2) return 1;
  constexpr int kBlock = 256, kBlocks = 16;
  std::vector<float> sums(kBlocks);
  sum<float><<<kBlocks, kBlock, kBlock * sizeof(float), 0>>>(dy, dx);
  CHECK(hipGetLastError());
  CHECK(hipMemcpy(sums.data(), dx, kBlocks * sizeof(float), hipMemcpyDeviceToHost));
  for (const float value : sums) {
    if (value != 13.f * kBlock) {
      std::fprintf(stderr, "a sum of %g\n", value);
      return 1;
    }
  }
  CHECK(hipEventDestroy(before));
  CHECK(hipEventDestroy(after));
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
  std::puts("all right");
}
