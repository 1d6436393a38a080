// WICK_TRACE, on the software AMD GPU and on the stand-in for NVIDIA's driver, whose clock advances
// by half a millisecond per launch. The environment selects the library.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/backend/conv_case.h"
#include "tests/backend/gpu_launch.h"
#include "tests/expect_error.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/trace/trace.h"
#include "wick/backend/gpu/trace/trace_file.h"

namespace wick::gpu {
namespace {

using nlohmann::json;
using test::error_of;
using testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TraceFile, IsJsonHoweverItEnds) {
  const std::string path = testing::TempDir() + "wick-trace-file.json";
  {
    TraceFile file(path);
    file.flush();
    EXPECT_EQ(json::parse(read(path) + "]"), json::array());
    file.name_process(1, "a \"card\" \\ \x01\n\xc3\xa9");
    file.name_thread({1, 2}, "stream 2");
    file.span({1, 2}, "f", "kernel", 1234567.25, 0.5, "\"bytes\":3");
    file.flush();
    EXPECT_EQ(json::parse(read(path) + "]").size(), 3u);
  }
  const json events = json::parse(read(path));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["args"]["name"], "a \"card\" \\ \x01\n\xc3\xa9");
  EXPECT_EQ(events[2]["ts"], 1234567.25);
  EXPECT_EQ(events[2]["args"]["bytes"], 3);
  std::filesystem::remove(path);
  EXPECT_EQ(error_of([] { TraceFile file("/none/trace.json"); }),
            "WICK_TRACE: the file can't be written: '/none/trace.json': No such file or directory");
}

class GpuTrace : public testing::Test {
 protected:
  void SetUp() override {
    if (!tracing()) GTEST_SKIP() << "WICK_TRACE names no file";
    const bool cuda = std::getenv("WICK_CUDA_LIBRARY") != nullptr;
    device_ = Device::parse(cuda ? "cuda:0" : "hip:0");
    ASSERT_NE(Driver::of(device_.kind), nullptr) << Driver::missing(device_.kind);
    std::string chosen;
    if (!has_images(Driver::of(device_.kind)->info(0).architecture, chosen)) {
      GTEST_SKIP() << "no kernels for " << device_.str();
    }
  }

  /// Returns the events that the file contains so far.
  static json events() {
    std::string text = read(std::getenv("WICK_TRACE"));
    if (!text.ends_with("]\n")) text += "]";
    return json::parse(text);
  }
  static std::vector<json> spans(const json& all) {
    std::vector<json> found;
    for (const json& event : all) {
      if (event["ph"] == "X") found.push_back(event);
    }
    return found;
  }
  /// Returns the number of spans after a device has been synchronized.
  static size_t count(Gpu& gpu) {
    gpu.synchronize();
    return spans(events()).size();
  }
  /// Returns the last `count` spans, since initializing a device may add others.
  static std::vector<json> last(std::vector<json> all, size_t count) {
    EXPECT_GE(all.size(), count);
    if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
    return all;
  }
  static std::vector<std::string> names(const std::vector<json>& spans) {
    std::vector<std::string> all;
    for (const json& span : spans) all.push_back(span["name"]);
    return all;
  }

  /// Fills, copies to the device, launches twice and copies back.
  static void work(Gpu& gpu) {
    gpu.enter();
    std::vector<float> x(1024, 1.0f);
    void* data = gpu.pool.take(4096);
    const Api& api = gpu.driver.api;
    gpu.check(api.set_bytes(data, 0, 4096, gpu.stream()), "filling");
    gpu.check(api.copy_to_device(data, x.data(), 4096, gpu.stream()), "copying");
    launch_unary(gpu, Op::silu, data, 1024);
    launch_unary(gpu, Op::neg, data, 1024, true);
    gpu.check(api.copy_to_host(x.data(), data, 4096, gpu.stream()), "copying");
    gpu.pool.give(data);
  }
  static constexpr const char* kWork[] = {"fill", "copy to device", "silu_f32", "neg_f32",
                                          "copy to host"};

  Device device_;
};

TEST_F(GpuTrace, KernelsAndCopiesHaveNamesAndTimes) {
  Gpu gpu(device_);
  const size_t before = count(gpu);
  work(gpu);
  gpu.synchronize();
  const json all = events();
  ASSERT_EQ(spans(all).size(), before + std::size(kWork));
  const std::vector<json> found = last(spans(all), std::size(kWork));
  EXPECT_THAT(names(found), testing::ElementsAreArray(kWork));
  EXPECT_EQ(found[0]["cat"], "copy");
  EXPECT_EQ(found[1]["args"]["bytes"], 4096);
  EXPECT_EQ(found[2]["cat"], "kernel");
  EXPECT_THAT(found[2]["args"]["blocks"].get<std::string>(), testing::EndsWith("x1x1"));
  EXPECT_GE(found[2]["args"]["threads"], 32);
  double end = 0;
  for (const json& span : found) {
    EXPECT_GE(span["dur"].get<double>(), 0) << span;
    // Times have three digits, so the sum may be off by one in the last digit.
    EXPECT_GE(span["ts"].get<double>(), end - 0.002) << span;
    end = span["ts"].get<double>() + span["dur"].get<double>();
  }
  if (device_.kind == DeviceKind::cuda) {
    EXPECT_NEAR(found[2]["dur"].get<double>(), 500, 0.01);
    EXPECT_NEAR(found[3]["ts"].get<double>(), found[2]["ts"].get<double>() + 500, 0.01);
  }
  std::string device, stream;
  for (const json& event : all) {
    if (event["name"] == "process_name") device = event["args"]["name"];
    if (event["name"] == "thread_name") stream = event["args"]["name"];
  }
  EXPECT_THAT(device, testing::StartsWith(device_.str() + " "));
  EXPECT_THAT(device, HasSubstr("(" + gpu.info.architecture + ")"));
  EXPECT_EQ(stream, "stream 1");
}

TEST_F(GpuTrace, ManySpansDoNotWaitForASynchronisation) {
  Gpu gpu(device_);
  const size_t before = count(gpu);
  gpu.enter();
  void* data = gpu.pool.take(4096);
  for (int i = 0; i < 9000; ++i) {
    gpu.check(gpu.driver.api.set_bytes(data, 0, 4, gpu.stream()), "filling");
  }
  EXPECT_GE(spans(events()).size(), before + 4000);
  gpu.synchronize();
  EXPECT_EQ(spans(events()).size(), before + 9000);
  gpu.pool.give(data);
}

TEST_F(GpuTrace, AGraphIsOneSpan) {
  Gpu gpu(device_);
  const size_t before = count(gpu);
  gpu.enter();
  const Api& api = gpu.driver.api;
  void* data = gpu.pool.take(4096);
  gpu.check(api.set_bytes(data, 0, 4096, gpu.stream()), "filling");
  gpu.function("map_f32", "silu_f32");
  void *graph = nullptr, *exec = nullptr;
  gpu.check(api.capture_begin(gpu.stream(), 1), "capturing");
  for (int i = 0; i < 3; ++i) launch_unary(gpu, Op::silu, data, 1024);
  gpu.check(api.capture_end(gpu.stream(), &graph), "capturing");
  gpu.check(api.graph_instantiate(&exec, graph, 0), "making a graph");
  for (int i = 0; i < 2; ++i) gpu.check(api.graph_launch(exec, gpu.stream()), "launching");
  gpu.synchronize();
  const std::vector<json> found = spans(events());
  ASSERT_EQ(found.size(), before + 3);
  for (size_t i = before + 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["name"], "graph");
    EXPECT_EQ(found[i]["args"]["calls"], 3);
  }
  gpu.check(api.graph_exec_destroy(exec), "freeing");
  gpu.check(api.graph_destroy(graph), "freeing");
  gpu.pool.give(data);
}

TEST_F(GpuTrace, OnlyNvidiaProductsOfLibraries) {
  ASSERT_FALSE(MatrixLibrary::of(device_.kind).empty());
  Gpu gpu(device_);
  const size_t before = count(gpu);
  gpu.enter();
  void* data = gpu.pool.take(4096);
  GemmCall call;
  call.m = call.n = call.k = call.lda = call.ldb = call.ldc = 4;
  call.a = call.b = data;
  call.c = static_cast<char*>(data) + 2048;
  MatrixLibrary& library = *MatrixLibrary::of(device_.kind).front();
  EXPECT_TRUE(library.gemm(device_, call, gpu.stream()));
  call.n = 13;  // the stand-in declines results with 13 columns
  call.m = 13;
  call.ldb = call.ldc = 13;
  EXPECT_FALSE(library.gemm(device_, call, gpu.stream()));
  gpu.synchronize();
  const std::vector<json> found = spans(events());
  ASSERT_EQ(found.size(), before + 1);
  EXPECT_EQ(found.back()["name"], library.name);
  EXPECT_EQ(found.back()["cat"], "library");
  EXPECT_EQ(found.back()["args"]["shape"], "4x4x4");
  gpu.pool.give(data);
  library.release(device_);
}

TEST_F(GpuTrace, ConvolutionsOfLibraries) {
  ConvolutionLibrary* const library = ConvolutionLibrary::of(device_.kind);
  ASSERT_NE(library, nullptr);
  Gpu gpu(device_);
  gpu.enter();
  std::mt19937 random(1);
  const ConvCase c = {{1, 2, 4, 4}, {3, 2, 3, 3}, {}};
  constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
  ConvOperands operands(gpu, DType::f32, c, ConvForm::weight, kFirst, random);
  EXPECT_TRUE(library->convolve(gpu, operands.call(c, ConvForm::weight, DType::f32, false)));
  operands.check(c, ConvForm::weight, DType::f32);
  int found = 0;
  for (const json& span : spans(events())) {
    if (span["name"] != library->name) continue;
    ++found;
    EXPECT_EQ(span["cat"], "library");
    EXPECT_EQ(span["args"]["form"], "weight");
    EXPECT_EQ(span["args"]["x"], "[1,2,4,4]");
    EXPECT_EQ(span["args"]["w"], "[3,2,3,3]");
  }
  EXPECT_EQ(found, 1);
  library->release(device_);
}

/// Runs this program again for the case GpuTraceEnd, with its own trace file.
int run_again(const std::string& how, const std::string& trace) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("WICK_TRACE", trace.c_str(), 1);
    setenv("WICK_TEST_END", how.c_str(), 1);
    unsetenv("WICK_STAND_IN_LEAKS");
    execl("/proc/self/exe", "gpu_trace_test", "--gtest_filter=GpuTraceEnd.*", nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class GpuTraceEnd : public GpuTrace {};

TEST_F(GpuTraceEnd, AnotherProcessRunsThis) {
  const char* how = std::getenv("WICK_TEST_END");
  if (how == nullptr) GTEST_SKIP() << "WICK_TEST_END isn't set";
  auto* gpu = new Gpu(device_);  // never destroyed
  work(*gpu);
  if (std::string_view(how) == "exit") std::exit(0);
  gpu->synchronize();
  work(*gpu);
  std::raise(SIGKILL);
}

TEST_F(GpuTrace, TheFileIsEndedWithTheProcess) {
  const std::string path = std::string(std::getenv("WICK_TRACE")) + ".exit";
  const int status = run_again("exit", path);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(names(last(spans(json::parse(read(path))), std::size(kWork))),
              testing::ElementsAreArray(kWork));
}

TEST_F(GpuTrace, WhatWasWaitedForSurvivesAKill) {
  const std::string path = std::string(std::getenv("WICK_TRACE")) + ".kill";
  EXPECT_TRUE(WIFSIGNALED(run_again("kill", path)));
  EXPECT_THAT(names(last(spans(json::parse(read(path) + "]")), std::size(kWork))),
              testing::ElementsAreArray(kWork));
}

TEST_F(GpuTrace, AChildOfForkLeavesItsParentsFile) {
  Gpu gpu(device_);
  work(gpu);
  gpu.synchronize();
  const std::string before = read(std::getenv("WICK_TRACE"));
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("WICK_STAND_IN_LEAKS");
    std::exit(0);  // runs the exit handlers
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(read(std::getenv("WICK_TRACE")), before);
}

}  // namespace
}  // namespace wick::gpu
