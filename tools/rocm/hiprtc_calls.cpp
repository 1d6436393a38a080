// Kernels that AMD's hiprtc compiles, with ROCm's device libraries, and that call their host:
// printf with all kinds of arguments, a failed assertion, malloc and free. On gfx1100, which has
// images, also textures by HIP's own functions. hiprtc_calls LIBRARY_OF_HIP LIBRARY_OF_HIPRTC
// ARCHITECTURE. Prints "ok NAME" or "bad NAME: why".

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "emu/hip/texture_types.h"

namespace {

constexpr char kSource[] = R"(
extern "C" __global__ void say(const char* name, int from) {
  printf("%s %d %5.2f %c %lld %%\n", name, from + (int)threadIdx.x, 0.25 * threadIdx.x, 'a' + (int)threadIdx.x, -5000000000ll);
}
// hiprtc has no assert().
extern "C" __global__ void check(int limit) {
  if ((int)threadIdx.x >= limit) __assert_fail("(int)threadIdx.x < limit", "calls.hip", 6, "check");
}
extern "C" __global__ void take(int** blocks, int bytes) {
  const int i = threadIdx.x + blockIdx.x * blockDim.x;
  int* block = (int*)malloc(bytes);
  if (block) for (int k = 0; k < bytes / 4; ++k) block[k] = i + k;
  blocks[i] = block;
}
extern "C" __global__ void give(int** blocks, int bytes, int* sum) {
  int* block = blocks[threadIdx.x + blockIdx.x * blockDim.x];
  int own = 0;
  for (int k = 0; k < bytes / 4; ++k) own += block[k];
  atomicAdd(sum, own);
  free(block);
}
#ifdef __gfx1100__
extern "C" __global__ void look(hipTextureObject_t plane, hipTextureObject_t line, float* out) {
  const int i = threadIdx.x + 8 * threadIdx.y;
  out[i] = tex2D<float>(plane, threadIdx.x + 1.f, threadIdx.y + 0.5f);
  out[i + 32] = tex1Dfetch<float>(line, i);
}
#endif
)";

void* library(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (handle != nullptr) return handle;
  std::printf("bad start: %s\n", dlerror());
  std::exit(1);
}

/// Calls a function of a library.
template <class... Arguments>
int call(void* handle, const char* name, Arguments... arguments) {
  void* address = dlsym(handle, name);
  if (address == nullptr) {
    std::printf("bad start: no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<int (*)(Arguments...)>(address)(arguments...);
}

void* hip = nullptr;
void* module = nullptr;

void must(const char* name, int error) {
  if (error == 0) return;
  std::printf("bad %s: it gave %d\n", name, error);
  std::exit(1);
}

std::vector<char> compile(void* hiprtc, const std::string& architecture) {
  void* program = nullptr;
  must("hiprtcCreateProgram",
       call(hiprtc, "hiprtcCreateProgram", &program, kSource, "calls.hip", 0,
            static_cast<const char**>(nullptr), static_cast<const char**>(nullptr)));
  const std::string option = "--offload-arch=" + architecture;
  const char* options[] = {option.c_str(), "-O2"};
  if (const int error = call(hiprtc, "hiprtcCompileProgram", program, 2, options)) {
    size_t bytes = 0;
    call(hiprtc, "hiprtcGetProgramLogSize", program, &bytes);
    std::string log(bytes, 0);
    call(hiprtc, "hiprtcGetProgramLog", program, log.data());
    std::printf("%s\nbad hiprtcCompileProgram: it gave %d\n", log.c_str(), error);
    std::exit(1);
  }
  size_t bytes = 0;
  must("hiprtcGetCodeSize", call(hiprtc, "hiprtcGetCodeSize", program, &bytes));
  std::vector<char> code(bytes);
  must("hiprtcGetCode", call(hiprtc, "hiprtcGetCode", program, code.data()));
  return code;
}

template <class... Arguments>
int launch(const char* kernel, dim3 groups, dim3 block, Arguments... arguments) {
  void* function = nullptr;
  must("hipModuleGetFunction", call(hip, "hipModuleGetFunction", &function, module, kernel));
  void* list[] = {&arguments..., nullptr};
  void** none = nullptr;
  void* stream = nullptr;
  must("hipModuleLaunchKernel",
       call(hip, "hipModuleLaunchKernel", function, groups.x, groups.y, groups.z, block.x, block.y,
            block.z, 0u, stream, static_cast<void**>(list), none));
  return call(hip, "hipDeviceSynchronize");
}

/// Returns what `work` prints on a stream.
std::string printed(FILE* stream, const std::function<void()>& work) {
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

void result(const char* name, bool good, const std::string& why) {
  if (good) {
    std::printf("ok %s\n", name);
  } else {
    std::printf("bad %s: %s\n", name, why.c_str());
  }
}

void check_printf() {
  char* name = nullptr;
  must("hipMalloc", call(hip, "hipMalloc", reinterpret_cast<void**>(&name), size_t{32}));
  must("hipMemcpy", call(hip, "hipMemcpy", static_cast<void*>(name),
                         static_cast<const void*>("the name of a kernel"), size_t{21}, 1));
  int error = 0;
  const std::string text =
      printed(stdout, [&] { error = launch("say", dim3(1), dim3(70), name, 100); });
  std::vector<std::string> lines, wanted;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == text.npos ? text.size() : end + 1;
  }
  for (int i = 0; i < 70; ++i) {
    char line[100];
    std::snprintf(line, sizeof line, "the name of a kernel %d %5.2f %c -5000000000 %%", 100 + i,
                  0.25 * i, 'a' + i);
    wanted.emplace_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::sort(wanted.begin(), wanted.end());
  result("printf", error == 0 && lines == wanted,
         "error " + std::to_string(error) + ", it printed " + text.substr(0, 100));
}

void check_assert() {
  int error = 0;
  const std::string text = printed(stderr, [&] { error = launch("check", dim3(1), dim3(64), 60); });
  const bool says =
      text.find("Device-side assertion `(int)threadIdx.x < limit' failed.") != text.npos;
  result("assert", error == 719 && says,
         "error " + std::to_string(error) + ", it printed " + text.substr(0, 200));
  call(hip, "hipGetLastError");
}

void check_malloc(int bytes) {
  constexpr unsigned kGroups = 3, kBlock = 64, kItems = kGroups * kBlock;
  int** blocks = nullptr;
  int* sum = nullptr;
  must("hipMalloc", call(hip, "hipMalloc", reinterpret_cast<void**>(&blocks), size_t{kItems * 8}));
  must("hipMalloc", call(hip, "hipMalloc", reinterpret_cast<void**>(&sum), size_t{4}));
  int host = 0;
  must("hipMemcpy", call(hip, "hipMemcpy", static_cast<void*>(sum), static_cast<const void*>(&host),
                         size_t{4}, 1));
  const int taken = launch("take", dim3(kGroups), dim3(kBlock), blocks, bytes);
  std::vector<int*> all(kItems);
  must("hipMemcpy", call(hip, "hipMemcpy", static_cast<void*>(all.data()),
                         static_cast<const void*>(blocks), size_t{kItems * 8}, 2));
  std::sort(all.begin(), all.end());
  const bool distinct =
      all.front() != nullptr && std::adjacent_find(all.begin(), all.end()) == all.end();
  const int given = launch("give", dim3(kGroups), dim3(kBlock), blocks, bytes, sum);
  must("hipMemcpy", call(hip, "hipMemcpy", static_cast<void*>(&host), static_cast<const void*>(sum),
                         size_t{4}, 2));
  int wanted = 0;
  for (int i = 0; i < static_cast<int>(kItems); ++i) {
    for (int k = 0; k < bytes / 4; ++k) wanted += i + k;
  }
  const std::string name = "malloc of " + std::to_string(bytes) + " bytes";
  result(name.c_str(), taken == 0 && given == 0 && distinct && host == wanted,
         "errors " + std::to_string(taken) + " and " + std::to_string(given) + ", the sum is " +
             std::to_string(host));
}

hipTextureObject_t texture_of(const hipResourceDesc& resource, hipTextureFilterMode filter) {
  hipTextureDesc desc{};
  desc.filterMode = filter;
  desc.addressMode[0] = hipAddressModeClamp;
  hipTextureObject_t texture = nullptr;
  const hipResourceViewDesc* none = nullptr;
  must("hipCreateTextureObject", call(hip, "hipCreateTextureObject", &texture, &resource,
                                      static_cast<const hipTextureDesc*>(&desc), none));
  return texture;
}

void copy(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  must("hipMemcpy", call(hip, "hipMemcpy", to, from, bytes, kind));
}

/// A linear filter halfway between the texels of a row, and elements by index.
void check_textures() {
  constexpr size_t kWidth = 8, kHeight = 4, kCount = kWidth * kHeight;
  const hipChannelFormatDesc floats{32, 0, 0, 0, hipChannelFormatKindFloat};
  std::vector<float> values, got(2 * kCount);
  for (size_t i = 0; i < kCount; ++i) values.push_back(static_cast<float>(i * i));
  hipResourceDesc plane{}, line{};
  void *memory = nullptr, *out = nullptr;
  must("hipMallocArray",
       call(hip, "hipMallocArray", &plane.res.array.array, &floats, kWidth, kHeight, 0u));
  must("hipMemcpy2DToArray", call(hip, "hipMemcpy2DToArray", plane.res.array.array, size_t{0},
                                  size_t{0}, static_cast<const void*>(values.data()), 4 * kWidth,
                                  4 * kWidth, kHeight, hipMemcpyHostToDevice));
  must("hipMalloc", call(hip, "hipMalloc", &memory, 4 * kCount));
  must("hipMalloc", call(hip, "hipMalloc", &out, 8 * kCount));
  copy(memory, values.data(), 4 * kCount, hipMemcpyHostToDevice);
  plane.resType = hipResourceTypeArray;
  line.resType = hipResourceTypeLinear;
  line.res.linear = {memory, floats, 4 * kCount};
  const int error =
      launch("look", dim3(1), dim3(kWidth, kHeight), texture_of(plane, hipFilterModeLinear),
             texture_of(line, hipFilterModePoint), out);
  copy(got.data(), out, 8 * kCount, hipMemcpyDeviceToHost);
  int wrong = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const float next = values[i % kWidth == kWidth - 1 ? i : i + 1];
    wrong += got[i] != (values[i] + next) / 2;
    wrong += got[i + kCount] != values[i];
  }
  result("textures", error == 0 && wrong == 0,
         "error " + std::to_string(error) + ", " + std::to_string(wrong) + " wrong values");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "hiprtc_calls LIBRARY_OF_HIP LIBRARY_OF_HIPRTC ARCHITECTURE\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  hip = library(argv[1]);
  const std::vector<char> code = compile(library(argv[2]), argv[3]);
  must("hipModuleLoadData",
       call(hip, "hipModuleLoadData", &module, static_cast<const void*>(code.data())));
  check_printf();
  for (const int bytes : {16, 100, 2000, 8000}) check_malloc(bytes);
  if (std::string(argv[3]) == "gfx1100") check_textures();
  check_assert();
  return 0;
}
