// A typical HIP program, written against the public headers: kernel launches with <<<>>>, device
// variables, static and dynamic LDS, barriers, atomics, shuffles, votes, mathematics, events. It
// runs with the emulator in place of the runtime. It is built as the README describes, with
// emu/hip/device_library.h replacing the vendor's device library.

#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

__constant__ float factor = 1;
__device__ int calls = 0;

/// A grid-stride loop.
__global__ void saxpy(float* y, const float* x, int n) {
  const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int i = first; i < n; i += static_cast<int>(gridDim.x * blockDim.x)) y[i] += factor * x[i];
  if (first == 0) calls += 1;
}

/// Computes the sum of each block.
template <class T>
__global__ void sum(const T* x, T* sums) {
  extern __shared__ char room[];
  T* part = reinterpret_cast<T*>(room);
  part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

/// Computes the sum of all elements from the sums of the waves.
__global__ void total(const int* x, int n, int* all) {
  __shared__ int waves[32];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  int value = i < n ? x[i] : 0;
  for (int mask = warpSize / 2; mask > 0; mask /= 2) value += __shfl_xor(value, mask);
  if (threadIdx.x % warpSize == 0) waves[threadIdx.x / warpSize] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned wave = 1; wave < blockDim.x / warpSize; ++wave) value += waves[wave];
  atomicAdd(all, value);
}

struct Votes {
  int even, even_of_blocks, seven;
  unsigned ticket, histogram[4];
};

__global__ void vote(const int* x, Votes* votes) {
  __shared__ unsigned histogram[4];
  if (threadIdx.x < 4) histogram[threadIdx.x] = 0;
  __syncthreads();
  const int value = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&histogram[value & 3], 1u);
  const unsigned long long even = __ballot(value % 2 == 0);
  if (threadIdx.x % warpSize == 0) atomicAdd(&votes->even, __popcll(even));
  if (__any(value == 7) && threadIdx.x % warpSize == 0) atomicAdd(&votes->seven, 1);
  const int of_block = __syncthreads_count(value % 2 == 0);
  if (threadIdx.x == 0) atomicAdd(&votes->even_of_blocks, of_block);
  if (threadIdx.x < 4) atomicAdd(&votes->histogram[threadIdx.x], histogram[threadIdx.x]);
  if (threadIdx.x == 0) atomicInc(&votes->ticket, 2);
  __threadfence();
}

constexpr int kFloats = 10, kDoubles = 9;

__host__ __device__ void float_functions(float x, float* out) {
  out[0] = expf(x);
  out[1] = sqrtf(x);
  out[2] = sinf(x);
  out[3] = cosf(1000 * x);
  out[4] = logf(x);
  out[5] = powf(x, 2.5f);
  out[6] = tanhf(x);
  out[7] = erff(x);
  out[8] = fmodf(x, 0.7f);
  out[9] = atan2f(x, 3.f);
}
__host__ __device__ void double_functions(double x, double* out) {
  out[0] = exp(-x);
  out[1] = sqrt(x);
  out[2] = sin(x);
  out[3] = cos(1e15 * x);
  out[4] = log(x);
  out[5] = pow(x, -7.5);
  out[6] = cbrt(x);
  out[7] = hypot(x, 3.);
  out[8] = floor(x);
}

/// Each thread handles one point of a two-dimensional grid.
__global__ void functions(float* floats, double* doubles) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int i = y * static_cast<int>(gridDim.x * blockDim.x) + x;
  float_functions((i + 1) / 8.f, floats + i * kFloats);
  double_functions((i + 1) / 8., doubles + i * kDoubles);
}

static void check(hipError_t error, int line) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, hipGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check((call), __LINE__)

template <class T>
static T* allocate(size_t count) {
  T* pointer;
  CHECK(hipMalloc(reinterpret_cast<void**>(&pointer), count * sizeof(T)));
  return pointer;
}

static void expect(double value, double wanted, double tolerance, const char* what, int index) {
  if (std::fabs(value - wanted) <= tolerance * std::fabs(wanted)) return;
  std::fprintf(stderr, "%s %d: %.17g instead of %.17g\n", what, index, value, wanted);
  std::exit(1);
}

static void check_sums() {
  constexpr int kCount = 10000;
  std::vector<float> x(kCount, 2.f), y(kCount, 1.f);
  float *dx = allocate<float>(kCount), *dy = allocate<float>(kCount);
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
  saxpy<<<7, 128>>>(dy, dx, kCount);
  CHECK(hipEventRecord(after, 0));
  CHECK(hipEventSynchronize(after));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, before, after));
  if (!(milliseconds >= 0)) std::exit(1);
  CHECK(hipDeviceSynchronize());
  CHECK(hipMemcpy(y.data(), dy, kCount * sizeof(float), hipMemcpyDeviceToHost));
  int count = 0;
  CHECK(hipMemcpyFromSymbol(&count, HIP_SYMBOL(calls), sizeof count, 0, hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) expect(y[i], 13, 0, "y", i);
  expect(count, 2, 0, "calls", 0);
  constexpr int kBlock = 256, kBlocks = 16;
  std::vector<float> sums(kBlocks);
  sum<float><<<kBlocks, kBlock, kBlock * sizeof(float), 0>>>(dy, dx);
  CHECK(hipGetLastError());
  CHECK(hipMemcpy(sums.data(), dx, kBlocks * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < kBlocks; ++i) expect(sums[i], 13. * kBlock, 0, "sum", i);
  CHECK(hipEventDestroy(before));
  CHECK(hipEventDestroy(after));
  CHECK(hipFree(dx));
  CHECK(hipFree(dy));
}

static void check_votes() {
  constexpr int kBlock = 128, kBlocks = 4, kCount = kBlock * kBlocks;
  std::vector<int> x(kCount);
  Votes wanted = {};
  int wanted_total = 0;
  for (int i = 0; i < kCount; ++i) {
    x[i] = i * i % 1009;
    wanted_total += x[i];
    wanted.even += x[i] % 2 == 0;
    ++wanted.histogram[x[i] & 3];
  }
  x[5] += 7 - x[5];
  wanted_total += 7 - 25;
  int *dx = allocate<int>(kCount), *all = allocate<int>(1);
  Votes votes, *device_votes = allocate<Votes>(1);
  CHECK(hipMemcpy(dx, x.data(), kCount * sizeof(int), hipMemcpyHostToDevice));
  CHECK(hipMemset(all, 0, sizeof(int)));
  CHECK(hipMemset(device_votes, 0, sizeof(Votes)));
  total<<<kBlocks + 1, kBlock>>>(dx, kCount, all);
  vote<<<kBlocks, kBlock>>>(dx, device_votes);
  int sum_of_all = 0;
  CHECK(hipMemcpy(&sum_of_all, all, sizeof(int), hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(&votes, device_votes, sizeof(Votes), hipMemcpyDeviceToHost));
  expect(sum_of_all, wanted_total, 0, "total", 0);
  wanted.histogram[25 & 3] -= 1;
  wanted.histogram[7 & 3] += 1;
  for (int i = 0; i < 4; ++i) expect(votes.histogram[i], wanted.histogram[i], 0, "histogram", i);
  expect(votes.even, wanted.even, 0, "even", 0);
  expect(votes.even_of_blocks, wanted.even, 0, "even of blocks", 0);
  if (votes.seven < 1) expect(votes.seven, 1, 0, "seven", 0);
  expect(votes.ticket, kBlocks % 3, 0, "ticket", 0);  // the ticket wraps: 0 to 2, and again
  CHECK(hipFree(dx));
  CHECK(hipFree(all));
  CHECK(hipFree(device_votes));
}

static void check_functions() {
  constexpr int kCount = 8 * 16;
  std::vector<float> floats(kCount * kFloats);
  std::vector<double> doubles(kCount * kDoubles);
  float* device_floats = allocate<float>(floats.size());
  double* device_doubles = allocate<double>(doubles.size());
  functions<<<dim3(2, 4), dim3(8, 2)>>>(device_floats, device_doubles);
  CHECK(hipMemcpy(floats.data(), device_floats, floats.size() * sizeof(float),
                  hipMemcpyDeviceToHost));
  CHECK(hipMemcpy(doubles.data(), device_doubles, doubles.size() * sizeof(double),
                  hipMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) {
    float wanted_floats[kFloats];
    double wanted_doubles[kDoubles];
    float_functions((i + 1) / 8.f, wanted_floats);
    double_functions((i + 1) / 8., wanted_doubles);
    for (int k = 0; k < kFloats; ++k) {
      expect(floats[i * kFloats + k], wanted_floats[k], 5e-7, "float function", k);
    }
    for (int k = 0; k < kDoubles; ++k) {
      expect(doubles[i * kDoubles + k], wanted_doubles[k], 1e-15, "double function", k);
    }
  }
  CHECK(hipFree(device_floats));
  CHECK(hipFree(device_doubles));
}

__global__ void say(int limit) {
  assert(static_cast<int>(threadIdx.x) < limit);
  printf("%s %d %.2f\n", "item", static_cast<int>(threadIdx.x), threadIdx.x / 4.);
}

/// Returns what kernels print on a stream.
template <class Work>
static std::string printed(FILE* stream, const Work& work) {
  std::fflush(stream);
  FILE* file = std::tmpfile();
  const int saved = dup(fileno(stream));
  dup2(fileno(file), fileno(stream));
  work();
  std::fflush(stream);
  dup2(saved, fileno(stream));
  close(saved);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

static void check_printing() {
  const std::string text = printed(stdout, [] {
    say<<<1, 3>>>(3);
    CHECK(hipDeviceSynchronize());
  });
  if (text != "item 0 0.00\nitem 1 0.25\nitem 2 0.50\n") {
    std::fprintf(stderr, "printf gave %s", text.c_str());
    std::exit(1);
  }
  hipError_t error = hipSuccess;
  const std::string message = printed(stderr, [&] {
    say<<<1, 3>>>(2);
    error = hipDeviceSynchronize();
  });
  const bool names =
      message.find("Device-side assertion `static_cast<int>(threadIdx.x) < limit'") !=
      std::string::npos;
  if (error != hipErrorLaunchFailure || !names) {
    std::fprintf(stderr, "assert gave %d and %s", error, message.c_str());
    std::exit(1);
  }
  (void)hipGetLastError();
}

int main() {
  check_sums();
  check_votes();
  check_functions();
  check_printing();
  std::puts("all right");
}
