// Measures the emulator's speed and prints JSON: the time of each kernel, its wave-instructions per
// second, and the fraction of the host's peak. The environment selects checks, host instruction set
// and threads (WICK_EMU_CHECK, WICK_EMU_ISA, WICK_EMU_THREADS). The peak is one fma of 32 lanes per
// instruction on registers, measured in the same run. A second process with WICK_EMU_PROFILE counts
// the instructions. Times are the minimum of several runs; with one thread they are CPU times.
//
//   emu_bench KERNELS.hsaco [REPEATS [NAME]]

#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "emu/hip/functions.h"

extern char** environ;

namespace {

using Floats = float __attribute__((ext_vector_type(32)));

const char* variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

int cores() {
  static const int all = [] {
    const int asked = std::atoi(variable("WICK_EMU_THREADS", "0"));
    return asked > 0 ? asked : static_cast<int>(std::thread::hardware_concurrency());
  }();
  return all;
}

struct Times {
  double wall, cpu;  // seconds
};

double seconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double now() { return seconds(CLOCK_PROCESS_CPUTIME_ID); }

[[gnu::target("avx512f"), gnu::noinline]] float fma_loop_512(int64_t times) {
  Floats a[8], b = 0.999f;
  for (Floats& x : a) x = 1.0f;
  for (int64_t i = 0; i < times; ++i) {
#pragma unroll
    for (Floats& x : a) x = __builtin_elementwise_fma(x, b, b);
  }
  float sum = 0;
  for (const Floats& x : a) sum += x[0];
  return sum;
}
[[gnu::target("avx2,fma"), gnu::noinline]] float fma_loop_256(int64_t times) {
  using Half = float __attribute__((ext_vector_type(8)));
  Half a[10], b = 0.999f;
  for (Half& x : a) x = 1.0f;
  for (int64_t i = 0; i < times; ++i) {
#pragma unroll
    for (Half& x : a) x = __builtin_elementwise_fma(x, b, b);
  }
  float sum = 0;
  for (const Half& x : a) sum += x[0];
  return sum;
}

/// Returns the number of 32-lane multiply-adds per second and core.
double host_peak(bool wide) {
  volatile float sink = 0;
  volatile int64_t times = 4'000'000;  // prevents constant folding
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const int64_t count = times;
    const double start = now();
    sink = sink + (wide ? fma_loop_512(count) : fma_loop_256(count));
    const double waves = wide ? 8.0 : 10.0 / 4;
    best = std::max(best, waves * static_cast<double>(count) / (now() - start));
  }
  return best;
}

void must(hipError_t error) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "emu_bench: %s\n", hipGetErrorString(error));
  std::exit(1);
}

constexpr char kLongKernel[] = "long_one";

/// Times of a kernel with some 2000 instructions: loading, decoding and running it for the first
/// time, and from a second module with the same content.
struct LoadTime {
  double first_ms, again_ms, run_ms;
};

LoadTime load_time(const std::vector<char>& image, float* buffer) {
  const auto load_and_run = [&] {
    const double start = now();
    hipModule_t module;
    hipFunction_t function;
    must(hipModuleLoadData(&module, image.data()));
    must(hipModuleGetFunction(&function, module, kLongKernel));
    int n = 3;
    void* list[] = {&buffer, &n};
    must(hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, list, nullptr));
    must(hipDeviceSynchronize());
    const double loaded = now();
    must(hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, list, nullptr));
    must(hipDeviceSynchronize());
    const double ran = now();
    must(hipModuleUnload(module));
    return std::make_pair((loaded - start) * 1e3, (ran - loaded) * 1e3);
  };
  const auto first = load_and_run();
  const auto again = load_and_run();
  return {first.first, again.first, again.second};
}

struct Bench {
  std::string name;
  std::function<void()> launch;
};

class Kernels {
 public:
  explicit Kernels(const char* file) {
    std::ifstream stream(file, std::ios::binary);
    image = {std::istreambuf_iterator<char>(stream), {}};
    must(hipModuleLoadData(&module_, image.data()));
    for (float*& buffer : buffers_) {
      must(hipMalloc(reinterpret_cast<void**>(&buffer), kElems * sizeof(float)));
      must(hipMemcpy(buffer, values().data(), kElems * sizeof(float), hipMemcpyHostToDevice));
    }
  }

  ~Kernels() {
    for (float* buffer : buffers_) must(hipFree(buffer));
    must(hipModuleUnload(module_));
  }
  float* buffer() { return buffers_[0]; }

  std::vector<char> image;

  void long_one() {
    int n = 3;
    void* list[] = {&buffers_[0], &n};
    launch(kLongKernel, 1, 1, 32, 1, list);
  }

  std::vector<Bench> all() {
    return {
        {"add_1m", [this] { run("add", kElems / 256, 1, 256, 1, kElems); }},
        {"gemm_256", [this] { run("gemm", 16, 16, 16, 16, 256); }},
        {"gemm_lds_256", [this] { run("gemm_lds", 16, 16, 16, 16, 256); }},
        {"polynomial_2000",
         [this] {
           int times = 2000;
           void* list[] = {&buffers_[2], &times};
           launch("polynomial", 16, 1, 256, 1, list);
         }},
    };
  }

 private:
  static constexpr int kElems = 1 << 20;
  static const std::vector<float>& values() {
    static const std::vector<float> all = [] {
      std::vector<float> v(kElems);
      for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 1000) * 0.001f;
      return v;
    }();
    return all;
  }
  void run(const char* name, unsigned gx, unsigned gy, unsigned bx, unsigned by, int n) {
    void* list[] = {&buffers_[0], &buffers_[1], &buffers_[2], &n};
    launch(name, gx, gy, bx, by, list);
  }
  void launch(const char* name, unsigned gx, unsigned gy, unsigned bx, unsigned by, void** list) {
    hipFunction_t function;
    must(hipModuleGetFunction(&function, module_, name));
    must(hipModuleLaunchKernel(function, gx, gy, 1, bx, by, 1, 0, nullptr, list, nullptr));
    must(hipDeviceSynchronize());
  }

  hipModule_t module_ = nullptr;
  float* buffers_[3] = {};
};

/// Returns the wave-instructions of one launch of each kernel, from a profile of this program.
std::vector<double> count_instructions(char** argv, const std::vector<std::string>& kernels) {
  std::string file = (std::filesystem::temp_directory_path() / "emu_bench.XXXXXX").string();
  const int made = mkstemp(file.data());
  if (made < 0) std::exit(1);
  setenv("WICK_EMU_PROFILE", file.c_str(), 1);
  char once[] = "--count";
  char* arguments[] = {argv[0], argv[1], once, nullptr};
  pid_t child;
  int status = 1;
  if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0 ||
      waitpid(child, &status, 0) < 0 || status != 0) {
    std::fputs("emu_bench: the instructions couldn't be counted\n", stderr);
    std::exit(1);
  }
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::remove(file.c_str());
  std::vector<double> counts;
  for (const std::string& kernel : kernels) {
    const size_t at = text.find("\"name\": \"" + kernel + "\"");
    const size_t total = text.find("\"total\": ", at);
    counts.push_back(total == std::string::npos ? NAN
                                                : std::strtod(text.c_str() + total + 9, nullptr));
  }
  return counts;
}

Times best_times(const Bench& bench, int repeats) {
  bench.launch();
  Times best{1e9, 1e9};
  for (int i = 0; i < repeats; ++i) {
    const double wall = seconds(CLOCK_MONOTONIC), cpu = now();
    bench.launch();
    best.cpu = std::min(best.cpu, now() - cpu);
    best.wall = std::min(best.wall, seconds(CLOCK_MONOTONIC) - wall);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("emu_bench KERNELS.hsaco [REPEATS [NAME]]\n", stderr);
    return 2;
  }
  Kernels kernels(argv[1]);
  std::vector<Bench> benches = kernels.all();
  if (argc > 3) std::erase_if(benches, [&](const Bench& b) { return b.name != argv[3]; });
  if (argc > 2 && std::strcmp(argv[2], "--count") == 0) {
    for (const Bench& bench : benches) bench.launch();
    kernels.long_one();
    return 0;
  }
  const LoadTime load = load_time(kernels.image, kernels.buffer());
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 20;
  std::vector<Times> times;
  for (const Bench& bench : benches) times.push_back(best_times(bench, repeats));
  std::vector<std::string> names{kLongKernel};
  for (const Bench& bench : benches) {
    names.push_back(bench.name.substr(0, bench.name.find_last_of('_')));
  }
  const std::vector<double> counts = count_instructions(argv, names);
  const char* isa = variable("WICK_EMU_ISA", __builtin_cpu_supports("x86-64-v4") ? "v4" : "v3");
  const double peak = host_peak(std::strcmp(isa, "v4") == 0) * cores();
  std::printf(
      "{\"isa\": \"%s\", \"threads\": %d, \"checks\": \"%s\", \"peak_fma_per_s\": %.4g, \"rows\": "
      "[",
      isa, cores(), variable("WICK_EMU_CHECK", "none"), peak);
  for (size_t i = 0; i < benches.size(); ++i) {
    // Other programs may be running, so with one thread this uses the CPU time.
    const double time = cores() == 1 ? times[i].cpu : times[i].wall;
    std::printf(
        "%s\n  {\"kernel\": \"%s\", \"ms\": %.3f, \"cpu_ms\": %.3f, "
        "\"wave_instructions\": %.0f, \"million_per_s\": %.1f, \"share_of_peak\": %.3f}",
        i == 0 ? "" : ",", benches[i].name.c_str(), times[i].wall * 1e3, times[i].cpu * 1e3,
        counts[i + 1], counts[i + 1] / time * 1e-6, counts[i + 1] / time / peak);
  }
  std::printf(
      "\n], \"load\": {\"instructions\": %.0f, \"first_ms\": %.2f, \"again_ms\": %.2f, "
      "\"run_ms\": %.3f}}\n",
      counts[0], load.first_ms, load.again_ms, load.run_ms);
  return 0;
}
