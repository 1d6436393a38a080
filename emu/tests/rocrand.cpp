// Runs Debian's librocrand on the emulator: code objects from another, older compiler, registered
// and launched through the functions behind <<<>>>. The test runs with the devices gfx90a and
// gfx1030. The numbers of both must agree, and those of Philox must match the definition of Philox
// below.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "emu/hip/functions.h"

namespace {

constexpr int kSkipped = 77;
constexpr uint64_t kSeed = 0x123456789abcdef;
enum Kind : int { kXorwow = 401, kMrg32k3a = 402, kMtgp32 = 403, kPhilox = 404 };

void require(bool well, const char* what) {
  if (well) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

template <class F>
F* find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  require(symbol != nullptr, name);
  return reinterpret_cast<F*>(symbol);
}

struct Library {
  explicit Library(void* handle)
      : create(find<int(void**, int)>(handle, "rocrand_create_generator")),
        seed(find<int(void*, unsigned long long)>(handle, "rocrand_set_seed")),
        bits(find<int(void*, unsigned*, size_t)>(handle, "rocrand_generate")),
        uniform(find<int(void*, float*, size_t)>(handle, "rocrand_generate_uniform")),
        normal(find<int(void*, float*, size_t, float, float)>(handle, "rocrand_generate_normal")),
        destroy(find<int(void*)>(handle, "rocrand_destroy_generator")) {}
  int (*create)(void**, int);
  int (*seed)(void*, unsigned long long);
  int (*bits)(void*, unsigned*, size_t);
  int (*uniform)(void*, float*, size_t);
  int (*normal)(void*, float*, size_t, float, float);
  int (*destroy)(void*);
};

constexpr size_t kCount = 1 << 14;

struct Numbers {
  std::vector<uint32_t> bits = std::vector<uint32_t>(kCount);
  std::vector<float> uniform = std::vector<float>(kCount), normal = std::vector<float>(kCount);
};

Numbers generate(const Library& rocrand, int device, Kind kind) {
  require(hipSetDevice(device) == hipSuccess, "hipSetDevice");
  void* generator = nullptr;
  require(rocrand.create(&generator, kind) == 0, "rocrand_create_generator");
  require(rocrand.seed(generator, kSeed) == 0, "rocrand_set_seed");
  void* data = nullptr;
  require(hipMalloc(&data, kCount * 4) == hipSuccess, "hipMalloc");
  Numbers numbers;
  const auto take = [&](int error, void* to) {
    require(error == 0, "rocrand_generate");
    require(hipMemcpy(to, data, kCount * 4, hipMemcpyDeviceToHost) == hipSuccess, "hipMemcpy");
  };
  take(rocrand.bits(generator, static_cast<unsigned*>(data), kCount), numbers.bits.data());
  take(rocrand.uniform(generator, static_cast<float*>(data), kCount), numbers.uniform.data());
  take(rocrand.normal(generator, static_cast<float*>(data), kCount, 1, 2), numbers.normal.data());
  require(rocrand.destroy(generator) == 0, "rocrand_destroy_generator");
  require(hipFree(data) == hipSuccess, "hipFree");
  return numbers;
}

struct Moments {
  explicit Moments(const std::vector<float>& values) {
    for (const float x : values) mean += x / static_cast<double>(values.size());
    for (const float x : values) {
      variance += (x - mean) * (x - mean) / static_cast<double>(values.size());
    }
  }
  double mean = 0, variance = 0;
};

void check_moments(const Numbers& numbers) {
  for (const float x : numbers.uniform)
    require(x > 0 && x <= 1, "a uniform number outside of (0, 1]");
  const Moments uniform(numbers.uniform), normal(numbers.normal);
  const auto near = [](double x, double y) { return x > y - 0.02 && x < y + 0.02; };
  require(near(uniform.mean, 0.5) && near(uniform.variance, 1.0 / 12), "uniform numbers aren't");
  require(near(normal.mean / 4, 0.25) && near(normal.variance / 4, 1), "normal numbers aren't");
}

/// Computes block `index` of Philox 4x32 with ten rounds (Salmon et al., 2011).
void philox(uint64_t index, uint32_t out[4]) {
  uint32_t c[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t key[2] = {static_cast<uint32_t>(kSeed), static_cast<uint32_t>(kSeed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * c[0], b = uint64_t{0xcd9e8d57} * c[2];
    const uint32_t c1 = c[1], c3 = c[3];
    c[0] = static_cast<uint32_t>(b >> 32) ^ c1 ^ key[0];
    c[1] = static_cast<uint32_t>(b);
    c[2] = static_cast<uint32_t>(a >> 32) ^ c3 ^ key[1];
    c[3] = static_cast<uint32_t>(a);
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  for (int i = 0; i < 4; ++i) out[i] = c[i];
}

void check_philox(const Numbers& numbers) {
  for (size_t i = 0; i < kCount; i += 4) {
    uint32_t block[4];
    philox(i / 4, block);
    for (size_t k = 0; k < 4; ++k) require(numbers.bits[i + k] == block[k], "Philox's bits differ");
    philox(kCount / 4 + i / 4, block);
    for (size_t k = 0; k < 4; ++k) {
      // The device uses one fused multiply-add; a double holds the product exactly.
      const auto x = static_cast<float>(static_cast<float>(block[k]) * 0x1p-32 + 0x1p-32);
      require(numbers.uniform[i + k] == x, "Philox's uniform numbers differ");
    }
  }
}

}  // namespace

int main() {
  void* handle = dlopen("librocrand.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::printf("skipped: %s\n", dlerror());
    return kSkipped;
  }
  const Library rocrand(handle);
  int devices = 0;
  require(hipGetDeviceCount(&devices) == hipSuccess && devices == 2, "not two devices");
  for (const Kind kind : {kPhilox, kMrg32k3a, kMtgp32, kXorwow}) {
    const Numbers one = generate(rocrand, 0, kind), other = generate(rocrand, 1, kind);
    check_moments(one);
    if (kind == kPhilox) check_philox(one);
    require(one.bits == other.bits, "the architectures' bits differ");
    require(one.uniform == other.uniform, "the architectures' uniform numbers differ");
    check_moments(other);
    std::printf("generator %d: all right\n", kind);
  }
}
