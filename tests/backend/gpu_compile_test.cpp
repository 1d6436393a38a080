// Run-time compilation of kernels: with hiprtc of the software AMD GPU, and with NVIDIA's compiler,
// which needs no GPU. CMakeLists.txt runs the cases with the environment that they need.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/backend/gpu_launch.h"
#include "tests/expect_error.h"
#include "wick/backend/gpu/compile/features.h"
#include "wick/backend/gpu/compile/kernel_cache.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/base/error.h"
#include "wick/math/scalar.h"

extern char** environ;

namespace wick::gpu {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr std::string_view kKernels = "wick/backend/gpu/kernels/";

bool is(const char* variable, std::string_view value) {
  const char* text = std::getenv(variable);
  return text != nullptr && text == value;
}

std::vector<std::string> kernel_files() {
  std::vector<std::string> names;
  for (const auto& [path, text] : kernel_sources()) {
    if (path.ends_with(".gpu")) names.push_back(path);
  }
  return names;
}

/// Returns whether a file has code for the matrix units or copies of a single NVIDIA generation.
bool has_clusters(const std::string& path) {
  const Files headers = included(kernel_sources().at(path), kernel_sources());
  return headers.contains(std::string(kKernels) + "device/cluster.h") ||
         headers.contains(std::string(kKernels) + "device/wgmma.h");
}

/// Returns the files to compile at run time. For sm_80 these are all files. For sm_90a, if the
/// binary has its images, nvcc (the same compiler) has compiled all files already, so only those
/// with generation-specific code remain.
std::vector<std::string> files_to_compile(const CompilerTarget& target) {
  std::vector<std::string> files = kernel_files();
  const std::vector<std::string> built = image_architectures();
  if (target.architecture == "sm_90a" &&
      std::find(built.begin(), built.end(), target.architecture) != built.end()) {
    std::erase_if(files, [](const std::string& path) { return !has_clusters(path); });
  }
  return files;
}

TEST(GpuCompile, HeadersAreThoseThatAreIncluded) {
  const Files headers = {{"a.h", "#include \"b.h\"\n"},
                         {"b.h", "#pragma once\n#include \"a.h\"\n#include \"gone.h\""},
                         {"c.h", ""}};
  const Files found = included("int x;\n#include \"a.h\"\n// #include \"c.h\"\n", headers);
  EXPECT_EQ(found.size(), 2u);
  EXPECT_TRUE(found.contains("a.h") && found.contains("b.h"));
  EXPECT_TRUE(included("", headers).empty());
  EXPECT_TRUE(included("\n\n", headers).empty());
  for (const std::string& path : kernel_files()) {
    EXPECT_TRUE(included(kernel_sources().at(path), kernel_sources())
                    .contains("wick/backend/gpu/kernels/device/features.h"))
        << path;
  }
}

/// A compiler that, like that of ROCm 6.4, fails unless branches are limited.
class BranchLimit final : public Compiler {
 public:
  explicit BranchLimit(int* calls) : Compiler(functions(), "none", "test") { kCalls = calls; }
  CompilerTarget target(std::string_view architecture) const override {
    return {std::string(architecture), {"-O3"}};
  }

 private:
  static inline int* kCalls = nullptr;
  static constexpr std::string_view kLog = "error: branch size exceeds simm16", kCode = "code";

  static CompilerApi functions() {
    CompilerApi api;
    api.create = [](void**, const char*, const char*, int, const char* const*, const char* const*) {
      return 0;
    };
    api.destroy = [](void**) { return 0; };
    api.compile = [](void*, int count, const char* const* options) {
      ++*kCalls;
      return count == 3 && options[1] == std::string_view("-mllvm") ? 0 : 6;
    };
    api.log_size = [](void*, size_t* bytes) { return *bytes = kLog.size(), 0; };
    api.log = [](void*, char* text) { return kLog.copy(text, kLog.size()), 0; };
    api.code_size = [](void*, size_t* bytes) { return *bytes = kCode.size(), 0; };
    api.code = [](void*, char* bytes) { return kCode.copy(bytes, kCode.size()), 0; };
    api.error_text = [](int) { return "failed"; };
    return api;
  }
};

TEST(GpuCompile, BranchesAreLimitedWhereTheCompilerNeedsIt) {
  int calls = 0;
  const BranchLimit compiler(&calls);
  EXPECT_EQ(compiler.compile({"a.gpu", "", nullptr}, compiler.target("gfx1100")), "code");
  EXPECT_EQ(calls, 2);
  // With other options it fails twice, and then reports the log.
  const std::string what = error_of([&] {
    compiler.compile({"a.gpu", "", nullptr}, {"gfx1100", {"-O3", "-g"}});
  });
  EXPECT_THAT(what, HasSubstr("branch size exceeds simm16"));
  EXPECT_EQ(calls, 4);
}

TEST(GpuCompile, TargetsAreExact) {
  const Compiler* compiler = Compiler::of(DeviceKind::cuda);
  if (compiler == nullptr) GTEST_SKIP() << "no NVRTC: " << Compiler::missing(DeviceKind::cuda);
  EXPECT_EQ(compiler->target("sm_80").architecture, "sm_80");
  EXPECT_EQ(compiler->target("sm_90").architecture, "sm_90a");
  const CompilerTarget target = compiler->target("sm_90");
  for (const char* option : {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
                             "--gpu-architecture=sm_90a"}) {
    EXPECT_THAT(target.options, testing::Contains(option));
  }
}

/// A device's target with the compiler's fast mode, where it has one (CUDA 12.9): whether a file
/// compiles is asked, not how fast it runs.
CompilerTarget fast_target(const Compiler& compiler, std::string_view device) {
  CompilerTarget target = compiler.target(device), fast = target;
  fast.options.emplace_back("--Ofast-compile=max");
  try {
    compiler.compile({"empty.gpu", "extern \"C\" __global__ void empty() {}", nullptr}, fast);
    return fast;
  } catch (const Error&) {
    return target;
  }
}

/// Compiles files on all cores. A result is an image, or the text of an error. Unchanged files come
/// from the cache, since compiling all of them takes minutes.
std::vector<std::string> compile_all(const Compiler& compiler, const CompilerTarget& target,
                                     const std::vector<std::string>& files) {
  std::vector<std::string> results(files.size());
  std::atomic<size_t> next = 0;
  const auto compile_some = [&] {
    for (size_t i; (i = next++) < files.size();) {
      try {
        bool compiled = false;
        results[i] = compiler.compile_cached(
            {files[i], kernel_sources().at(files[i]), &kernel_sources()}, target, compiled);
      } catch (const Error& error) {
        results[i] = error.what();
      }
    }
  };
  std::vector<std::thread> threads(std::max(std::thread::hardware_concurrency(), 1u));
  for (std::thread& thread : threads) thread = std::thread(compile_some);
  for (std::thread& thread : threads) thread.join();
  return results;
}

/// Checks that a result is an ELF image for a machine.
void expect_image(const std::string& result, uint8_t machine, const std::string& file) {
  ASSERT_EQ(result.substr(0, 4), "\177ELF") << file << ": " << result.substr(0, 2000);
  ASSERT_GT(result.size(), 64u) << file;
  EXPECT_EQ(static_cast<uint8_t>(result[18]), machine) << file << ": code for another machine";
}

TEST(GpuCompile, KernelsOfEveryFileForNvidia) {
  const char* device = std::getenv("WICK_TEST_NVRTC");
  if (device == nullptr) GTEST_SKIP() << "WICK_TEST_NVRTC names no architecture";
  const Compiler* compiler = Compiler::of(DeviceKind::cuda);
  if (compiler == nullptr) GTEST_SKIP() << "no NVRTC: " << Compiler::missing(DeviceKind::cuda);
  const CompilerTarget target = fast_target(*compiler, device);
  const std::vector<std::string> files = files_to_compile(target);
  ASSERT_FALSE(files.empty());
  const std::vector<std::string> results = compile_all(*compiler, target, files);
  constexpr uint8_t kCuda = 190;
  for (size_t i = 0; i < files.size(); ++i) expect_image(results[i], kCuda, files[i]);
}

/// The lanes of a wave that an image's kernels say they need; 0 if they don't say it.
int lanes_of(const std::string& image) {
  constexpr std::string_view kKey =
      ".wavefront_size";  // in the metadata; a small number follows it
  const size_t at = image.find(kKey);
  return at == std::string::npos ? 0 : image.at(at + kKey.size());
}

/// Needs AMD's hiprtc but no card: tools/real_rocm.py runs it.
TEST(GpuCompile, KernelsOfEveryFileForAmd) {
  const char* device = std::getenv("WICK_TEST_HIPRTC");
  if (device == nullptr) GTEST_SKIP() << "WICK_TEST_HIPRTC names no architecture";
  const Compiler* compiler = Compiler::of(DeviceKind::hip);
  ASSERT_NE(compiler, nullptr) << Compiler::missing(DeviceKind::hip);
  const std::vector<std::string> files = kernel_files();
  ASSERT_FALSE(files.empty());
  // Whether a file compiles is asked, not how fast it runs.
  CompilerTarget target = compiler->target(device);
  std::replace(target.options.begin(), target.options.end(), std::string("-O3"),
               std::string("-O0"));
  const std::vector<std::string> results = compile_all(*compiler, target, files);
  constexpr uint8_t kAmdgpu = 224;
  const int lanes = std::string_view(device).starts_with("gfx9") ? 64 : 32;
  size_t empty = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    expect_image(results[i], kAmdgpu, files[i]);
    if (HasFatalFailure()) continue;
    if (files[i].ends_with("/features.gpu")) {
      check_waves(features_of(results[i]), lanes);
    } else if (results[i].find(".kd") != std::string::npos) {
      EXPECT_EQ(lanes_of(results[i]), lanes) << files[i];
    } else {
      ++empty;
    }
  }
  EXPECT_LT(empty, files.size() / 3) << "files whose kernels are all for other chips";
}

TEST(GpuCompile, ADeviceNewerThanTheCompilerGetsTextForItsDriver) {
  const Compiler* compiler = Compiler::of(DeviceKind::cuda);
  if (compiler == nullptr) GTEST_SKIP() << "no NVRTC: " << Compiler::missing(DeviceKind::cuda);
  const CompilerTarget target = compiler->target("sm_999");
  EXPECT_TRUE(target.architecture.starts_with("compute_")) << target.architecture;
  const std::string text = compiler->compile(
      {"twice.gpu", "extern \"C\" __global__ void twice(float* x) { *x *= 2; }", nullptr}, target);
  EXPECT_THAT(text, HasSubstr(".entry twice"));
  EXPECT_THAT(text, HasSubstr(".target sm_"));
}

TEST(GpuCompile, WhatDoesNotCompileIsNamed) {
  bool some = false;
  for (const auto& [kind, device] :
       {std::pair{DeviceKind::cuda, "sm_80"}, std::pair{DeviceKind::hip, "gfx1100"}}) {
    const Compiler* compiler = Compiler::of(kind);
    if (compiler == nullptr) continue;
    some = true;
    const Files headers = {{"a/wrong.h", "\nthis is no C++\n"}};
    const std::string what = error_of([&] {
      compiler->compile({"user.gpu", "#include \"a/wrong.h\"\n", &headers},
                        compiler->target(device));
    });
    EXPECT_THAT(what, HasSubstr("compile: no code for "));
    EXPECT_THAT(what, HasSubstr("user.gpu"));
    EXPECT_THAT(what, HasSubstr("wrong.h"));
    EXPECT_THAT(what, HasSubstr(compiler->name));
  }
  if (!some) GTEST_SKIP() << "no compiler of either vendor";
}

TEST(GpuCompile, WithoutImagesAndCompilerTheErrorListsWhatWasTried) {
  if (!is("WICK_HIPRTC_LIBRARY", "/none/libhiprtc.so")) {
    GTEST_SKIP() << "WICK_HIPRTC_LIBRARY isn't /none/libhiprtc.so";
  }
  ASSERT_NE(Driver::of(DeviceKind::hip), nullptr) << Driver::missing(DeviceKind::hip);
  const std::string what = error_of([] { Gpu gpu(Device::parse("hip:0")); });
  EXPECT_THAT(what, HasSubstr("device: no kernels for its architecture: hip:0 "));
  EXPECT_THAT(what, HasSubstr("(gfx1100)"));
  EXPECT_THAT(what, HasSubstr("WICK_GPU_IMAGES=off"));
  EXPECT_THAT(what, HasSubstr("/none/libhiprtc.so"));
}

/// Tests on the software GPU without the binary's images and with a separate cache.
class GpuCompiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!is("WICK_GPU_IMAGES", "off")) GTEST_SKIP() << "WICK_GPU_IMAGES isn't off";
    if (Compiler::of(DeviceKind::hip) == nullptr) {
      GTEST_SKIP() << "no compiler: " << Compiler::missing(DeviceKind::hip);
    }
    if (Driver::of(DeviceKind::hip) == nullptr) {
      GTEST_SKIP() << "no HIP device: " << Driver::missing(DeviceKind::hip);
    }
    ASSERT_FALSE(KernelCache::standard().folder().empty());
    if (std::getenv("WICK_TEST_KEEP_CACHE") == nullptr) empty_cache();
  }
  static void empty_cache() { fs::remove_all(KernelCache::standard().folder()); }
  static std::vector<fs::path> entries() {
    std::vector<fs::path> all;
    for (const auto& file : fs::directory_iterator(KernelCache::standard().folder())) {
      all.push_back(file.path());
    }
    return all;
  }
  /// Returns a kernel of a file that compiles quickly.
  static void* find(Gpu& gpu) { return gpu.function("iota", "iota_f32"); }
  static float silu(Gpu& gpu, float x) {
    gpu.enter();
    float values[4] = {x, x, x, x};
    void* data = gpu.pool.take(sizeof values);
    const Api& api = gpu.driver.api;
    gpu.check(api.copy_to_device(data, values, sizeof values, gpu.stream()), "copying");
    launch_unary(gpu, Op::silu, data, 4);
    gpu.check(api.copy_to_host(values, data, sizeof values, gpu.stream()), "copying");
    gpu.synchronize();
    gpu.pool.give(data);
    return values[3];
  }
};

TEST_F(GpuCompiles, WhatIsCompiledGivesTheSameBits) {
  Gpu gpu(Device::parse("hip:0"));
  for (const float x : {2.5f, -1.0f, 0.3f}) EXPECT_EQ(silu(gpu, x), math::silu(x));
}

/// A kernel's file, and that of the features, which tells whether the image's waves fit the device.
constexpr int kFiles = 2;

TEST_F(GpuCompiles, AFileAtItsFirstUseAndOnceAMachine) {
  {
    Gpu gpu(Device::parse("hip:0"));
    EXPECT_TRUE(gpu.code().compiles());
    EXPECT_EQ(gpu.code().compiled(), 0);
    EXPECT_NE(find(gpu), nullptr);
    EXPECT_EQ(find(gpu), find(gpu));
    EXPECT_EQ(gpu.code().compiled(), kFiles);
    EXPECT_EQ(gpu.code().cached(), 0);
    EXPECT_EQ(gpu.modules_loaded(), 1);
    EXPECT_THROW(gpu.function("iota", "no_such_kernel"), Error);
    EXPECT_THROW(gpu.function("no_such_file", "silu_f32"), Error);
    EXPECT_EQ(gpu.modules_loaded(), 1);
  }
  {
    Gpu gpu(Device::parse("hip:0"));
    EXPECT_NE(find(gpu), nullptr);
    EXPECT_EQ(gpu.code().compiled(), 0);
    EXPECT_EQ(gpu.code().cached(), kFiles);
  }
  // A damaged entry is compiled again and replaced.
  ASSERT_EQ(entries().size(), kFiles);
  fs::resize_file(entries()[0], fs::file_size(entries()[0]) - 1);
  for (const int compiled : {1, 0}) {
    Gpu gpu(Device::parse("hip:0"));
    EXPECT_NE(find(gpu), nullptr);
    EXPECT_EQ(gpu.code().compiled(), compiled);
  }
}

TEST_F(GpuCompiles, AnotherKeyForAnythingThatMatters) {
  const Compiler& compiler = *Compiler::of(DeviceKind::hip);
  const char* const text =
      "#include \"f.h\"\nextern \"C\" __attribute__((global)) void f(int* x) { *x = kF; }";
  const auto compiled = [&](const std::string& source, const std::string& header,
                            const CompilerTarget& target) {
    const Files headers = {{"f.h", header}, {"other.h", source.substr(0, 5)}};
    bool result = false;
    EXPECT_EQ(compiler.compile_cached({"f.gpu", source, &headers}, target, result).substr(0, 4),
              "\177ELF");
    return result;
  };
  CompilerTarget target = compiler.target("gfx1100");
  EXPECT_TRUE(compiled(text, "#define kF 1\n", target));
  EXPECT_FALSE(compiled(text, "#define kF 1\n", target));
  EXPECT_TRUE(compiled(text, "#define kF 2\n", target));
  EXPECT_TRUE(compiled(std::string(text) + "\n", "#define kF 1\n", target));
  EXPECT_TRUE(compiled(text, "#define kF 1\n", compiler.target("gfx1101")));
  target.options.push_back("-DOTHER");
  EXPECT_TRUE(compiled(text, "#define kF 1\n", target));
  EXPECT_FALSE(compiled(text, "#define kF 2\n", compiler.target("gfx1100")));
}

/// Starts this program again for one case.
pid_t start(const char* filter) {
  std::string words[] = {"/proc/self/exe", std::string("--gtest_filter=") + filter};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  std::string keep = "WICK_TEST_KEEP_CACHE=1";
  environment.push_back(keep.data());
  environment.push_back(nullptr);
  // The child's report would look like this program's.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int failed =
      posix_spawn(&child, words[0].c_str(), &actions, nullptr, argv, environment.data());
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

TEST_F(GpuCompiles, InOneOfTwoProcesses) {
  Gpu gpu(Device::parse("hip:0"));
  EXPECT_NE(find(gpu), nullptr);
}

TEST_F(GpuCompiles, InTwoProcessesAtOnce) {
  const pid_t children[] = {start("GpuCompiles.InOneOfTwoProcesses"),
                            start("GpuCompiles.InOneOfTwoProcesses")};
  for (const pid_t child : children) {
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(entries().size(), kFiles);
  Gpu gpu(Device::parse("hip:0"));
  EXPECT_NE(find(gpu), nullptr);
  EXPECT_EQ(gpu.code().compiled(), 0);
}

}  // namespace
}  // namespace wick::gpu
