// A HIP program as its users write them, but for the headers' device part: kernels called by <<<>>>,
// a variable of the device's, events. Run with the emulator in place of the runtime.

#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))

__constant__ float factor = 1;
__device__ int calls = 0;

extern "C" hipError_t __hipPushCallConfiguration(dim3, dim3, size_t, hipStream_t);

__global__ void saxpy(float* y, const float* x, int n) {
  const int i = static_cast<int>(__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
                                 __builtin_amdgcn_workitem_id_x());
  if (i < n) y[i] += factor * x[i];
  if (i == 0) calls += 1;
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
  saxpy<<<dim3((kCount + 255) / 256), dim3(256), 0, 0>>>(dy, dx, kCount);
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
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
  std::puts("all right");
}
