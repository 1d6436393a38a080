// Kernels of custom ops on the GPUs that WICK_TEST_DEVICES names: source text, code objects, launch
// geometry, modules, and bodies that are missing or fail.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "tests/backend/custom_kernels.h"
#include "tests/expect_error.h"
#include "tests/graph/graph_tests.h"
#include "tests/test_devices.h"
#include "wick/backend/gpu/compile/compiler.h"
#include "wick/backend/gpu/custom/code_metadata.h"
#include "wick/backend/gpu/custom/object_file.h"
#include "wick/backend/gpu/custom/user_modules.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/tensor/custom.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/recording.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

using Body = std::function<void(GpuContext&, const CustomOutput&, const CustomInput&)>;

struct GpuOp : CustomOp1 {
  explicit GpuOp(Body given, std::string name = "op")
      : CustomOp1(std::move(name)), body(std::move(given)) {}
  ResultSpec shape(const Tensor& x) const override { return rule ? rule(x) : like(x); }
  void gpu(GpuContext& gpu, const CustomOutput& y, const CustomInput& x) const override {
    body(gpu, y, x);
  }
  bool takes_strides() const override { return strides; }
  Body body;
  std::function<ResultSpec(const Tensor&)> rule;
  bool strides = false;
};

/// An op whose kernel is one text over the elements.
GpuOp map_op(const std::string& body, const std::string& name = "op") {
  return GpuOp(
      [body](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
        gpu.launch({.body = "const i64 i = global_index(); if (i >= y_elems) return; " + body},
                   KernelGrid::over(y.elems()), {{"x", x}, {"y", y}});
      },
      name);
}

/// A code object for a device.
std::string code_for(Device device, const std::string& text) {
  const Compiler& compiler = *Compiler::of(device.kind);
  const std::string source = "#include \"wick/backend/gpu/kernels/device/custom.h\"\n" + text;
  bool compiled = false;
  return compiler.compile_cached({"user.gpu", source, &kernel_sources()},
                                 compiler.target(backend_of(device).gpu().info.architecture),
                                 compiled);
}

class GpuCustom : public testing::TestWithParam<std::string> {
 protected:
  GpuBackend& gpu_backend() const { return backend_of(device_); }
  Tensor ramp(int64_t n, DType dtype = DType::f32) const {
    return Tensor::arange(0, n, 1, DType::f32).to(dtype).to(device_);
  }
  int loaded() const { return gpu_backend().user_modules().loaded(); }
  bool is_hip() const { return device_.kind == DeviceKind::hip; }
  std::string compiled(const std::string& text) const { return code_for(device_, text); }
  void SetUp() override {
    if (Compiler::of(device_.kind) == nullptr) {
      GTEST_SKIP() << "no compiler: " << Compiler::missing(device_.kind);
    }
  }
  const Device device_ = Device::parse(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuCustom);

constexpr const char* kScaleCode = R"(
extern "C" WICK_GLOBAL void scale(const float* x, float* y, float by, int n) {
  const int i = static_cast<int>(wick::gpu::global_index());
  if (i < n) y[i] = x[i] * by;
})";

GpuOp scale_op(const KernelCode& code, std::string function = "scale") {
  return GpuOp([code, function](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
    gpu.launch(code, function, KernelGrid::over(y.elems(), 64),
               {{"x", x}, {"y", y}, {"by", 3.0f}, {"n", static_cast<int>(y.elems())}});
  });
}

TEST_P(GpuCustom, EveryDtype) {
  for (const DType dtype : {DType::u8, DType::u32, DType::i16, DType::i32, DType::i64, DType::bf16,
                            DType::f16, DType::f32, DType::f64, DType::f8e4m3}) {
    const Tensor x = ramp(100, dtype);
    const Tensor y = apply_op1(x, map_op("y[i] = narrow<y_type>(widen(x[i]) + widen(x[i]));"));
    test::expect_same({y}, {add(x, x)}, std::string(name(dtype)));
  }
  const Tensor flags = gt(ramp(10), Tensor::full({10}, 4, DType::f32, device_));
  const Tensor not_flags = apply_op1(flags, map_op("y[i] = x[i] == 0;"));
  test::expect_same({not_flags}, {logical_not(flags)}, "bool");
}

TEST_P(GpuCustom, AllThatATextMayUse) {
  GpuOp op([](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
    gpu.launch(everything(), {.blocks = {4, 1, 1}, .threads = {64, 1, 1}, .shared_bytes = 256},
               {{"x", x}, {"y", y}, {"offset", 1.0f}});
  });
  op.rule = [](const Tensor&) { return dense(DType::f32, {4}); };
  op.strides = true;
  const Tensor x = ramp(20 * 30).reshape({20, 30}).t();
  const Tensor y = apply_op1(x, op);
  EXPECT_EQ(sum(y).item<float>(), 600 * 599 / 2 + 4);
}

TEST_P(GpuCustom, NumbersKeepTheirValues) {
  GpuOp op([](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
    gpu.launch({.body = R"(
      (void)x;
      y[0] = a == -5; y[1] = b == 0xffffffffu; y[2] = c == -(i64{1} << 62);
      y[3] = d == (u64{1} << 63); y[4] = e == 0.1f; y[5] = f == 0.1; y[6] = g;
      y[7] = ca == -5 && cb == 0xffffffffu && cc == -(i64{1} << 62) && cd == (u64{1} << 63);
      y[8] = ce == 0.1f && cf == 0.1 && cg && kInfinite > 1e38f && kNone != kNone;
    )",
                .constants = {{"ca", -5},
                              {"cb", UINT32_MAX},
                              {"cc", -(int64_t{1} << 62)},
                              {"cd", uint64_t{1} << 63},
                              {"ce", 0.1f},
                              {"cf", 0.1},
                              {"cg", true},
                              {"kInfinite", INFINITY},
                              {"kNone", NAN}}},
               {.threads = {1, 1, 1}},
               {{"x", x},
                {"y", y},
                {"a", -5},
                {"b", UINT32_MAX},
                {"c", -(int64_t{1} << 62)},
                {"d", uint64_t{1} << 63},
                {"e", 0.1f},
                {"f", 0.1},
                {"g", true}});
  });
  op.rule = [](const Tensor&) { return dense(DType::i32, {9}); };
  EXPECT_EQ(apply_op1(ramp(1), op).to_vector<int32_t>(), std::vector<int32_t>(9, 1));
}

TEST_P(GpuCustom, ScratchAndTheStream) {
  GpuOp op([](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
    EXPECT_NE(gpu.stream(), nullptr);
    EXPECT_GT(gpu.limits().multiprocessors, 0);
    float* const half = gpu.scratch<float>(x.elems());
    gpu.launch({.body = "if (global_index() < n) h[global_index()] = x[global_index()] * 0.5f;"},
               KernelGrid::over(x.elems()), {{"x", x}, {"h", half, x.elems()}, {"n", x.elems()}});
    gpu.launch({.body = "if (global_index() < n) y[global_index()] = h[n - 1 - global_index()];"},
               KernelGrid::over(x.elems()), {{"y", y}, {"h", half, x.elems()}, {"n", x.elems()}});
  });
  const Tensor x = ramp(1000);
  const size_t before = memory_stats(device_).in_use_bytes;
  Tensor y = apply_op1(x, op);
  EXPECT_EQ(y.to_vector<float>()[0], 499.5f);
  y = {};
  EXPECT_EQ(memory_stats(device_).in_use_bytes, before);
  GpuOp wrong([](GpuContext& gpu, const CustomOutput&, const CustomInput&) {
    gpu.scratch<double>(INT64_MAX / 4);
  });
  EXPECT_THAT(error_of([&] { apply_op1(x, wrong); }), HasSubstr("scratch memory of an impossible"));
}

TEST_P(GpuCustom, ASecondCallLoadsNothing) {
  const Tensor x = ramp(10);
  const int before = loaded();
  for (int i = 0; i < 3; ++i) apply_op1(x, map_op("y[i] = x[i] + 1717;"));
  apply_op1(ramp(99), map_op("y[i] = x[i] + 1717;"));
  EXPECT_EQ(loaded(), before + 1);
  apply_op1(ramp(10).reshape({2, 5}), map_op("y[i] = x[i] + 1717;"));
  EXPECT_EQ(loaded(), before + 2) << "another rank";
  const KernelCode code(compiled(kScaleCode)), copy(code.bytes());
  apply_op1(x, scale_op(code));
  apply_op1(x, scale_op(copy));
  EXPECT_EQ(loaded(), before + 3);
}

TEST_P(GpuCustom, EqualNamesCoexist) {
  const Tensor x = ramp(4);
  const GpuOp plus = map_op("y[i] = x[i] + 1;"), minus = map_op("y[i] = x[i] - 1;");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(apply_op1(x, plus).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(apply_op1(x, minus).to_vector<float>(), (std::vector<float>{-1, 0, 1, 2}));
  }
}

TEST_P(GpuCustom, ManyThreadsLoadOnce) {
  const Tensor x = ramp(64);
  const int before = loaded();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const Tensor y = apply_op1(x, map_op("y[i] = x[i] * 4242;"));
        if (y.to_vector<float>()[3] != 3 * 4242) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(loaded(), before + 1);
}

/// A compiled function would record nothing of what another thread launches.
TEST_P(GpuCustom, OnlyTheBodysThreadUsesTheContext) {
  const auto on_thread = [](const auto& use) {
    std::string error;
    std::thread([&] { error = error_of(use); }).join();
    EXPECT_THAT(error, HasSubstr("op: the GPU context was used by another thread"));
  };
  const Tensor x = ramp(4);
  for (const int which : {0, 1, 2}) {
    const GpuOp op([&](GpuContext& gpu, const CustomOutput& y, const CustomInput& from) {
      on_thread([&] {
        if (which == 0) gpu.launch({.body = "y[0] = x[0];"}, {}, {{"x", from}, {"y", y}});
        if (which == 1) gpu.scratch(16);
        if (which == 2) gpu.stream();
      });
    });
    EXPECT_THAT(error_of([&] { apply_op1(x, op); }),
                HasSubstr("op: the GPU context was used by another thread"));
  }
}

/// The exceptions of Python's bodies aren't wick's.
TEST_P(GpuCustom, BodiesThatWaitRunCallByCall) {
  const auto op =
      std::make_shared<GpuOp>([&](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
        const std::string error = error_of([&] { synchronize(gpu.device()); });
        if (error != "no error") throw std::runtime_error(error);
        gpu.launch({.body = "y[global_index()] = x[global_index()] + 1;"}, {.threads = {4, 1, 1}},
                   {{"x", x}, {"y", y}});
      });
  const Compiled f = compile(
      [&](std::span<const Tensor> a) -> std::vector<Tensor> { return {apply_op(op, {&a[0]})}; });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(f({ramp(4)})[0].to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST_P(GpuCustom, CompileErrorsNameTheLine) {
  const Tensor x = ramp(4);
  const std::string error = error_of([&] { apply_op1(x, map_op("\n\ny[i] = no_such_name;")); });
  EXPECT_THAT(error, AllOf(HasSubstr("custom_op.body"), HasSubstr("no_such_name")));
  EXPECT_THAT(error, testing::ContainsRegex("custom_op.body.3"));
  for (const char* hostile :
       {"}", "{", "}}}} extern \"C\" {", "#error no", "#include \"/etc/passwd\"", "/*", "R\"(",
        "asm(\"nonsense\");", "static_assert(false);"}) {
    EXPECT_NE(error_of([&] { apply_op1(x, map_op(hostile)); }), "no error") << hostile;
  }
  EXPECT_EQ(apply_op1(x, map_op("y[i] = x[i];")).to_vector<float>()[2], 2) << "the device goes on";
}

TEST_P(GpuCustom, GeometryIsCheckedBeforeTheLaunch) {
  const Tensor x = ramp(4);
  const auto error = [&](const KernelGrid& grid) {
    return error_of([&] {
      apply_op1(x, GpuOp([&](GpuContext& gpu, const CustomOutput& y, const CustomInput&) {
                  gpu.launch({.body = "y[0] = 1;"}, grid, {{"y", y}});
                }));
    });
  };
  const int before = loaded();
  EXPECT_THAT(error({.threads = {2048, 1, 1}}), HasSubstr("op: too many threads in a block"));
  EXPECT_THAT(error({.blocks = {int64_t{1} << 40, 1, 1}}), HasSubstr("op: too many blocks"));
  EXPECT_THAT(error({.blocks = {0, 1, 1}}), HasSubstr("op: a grid without threads"));
  EXPECT_THAT(error({.shared_bytes = int64_t{1} << 30}), HasSubstr("op: too much shared memory"));
  EXPECT_THAT(error({.shared_bytes = -4}), HasSubstr("op: a negative size of shared memory"));
  EXPECT_EQ(loaded(), before) << "nothing is compiled";
  // Static and dynamic shared memory count together, and the bounds of a code object's kernel.
  const int64_t most = gpu_backend().launch_limits().shared_bytes;
  EXPECT_THAT(
      error_of([&] {
        apply_op1(x, GpuOp([&](GpuContext& gpu, const CustomOutput& y, const CustomInput&) {
                    gpu.launch({.body = "WICK_SHARED float a[1024]; a[thread_index()] = 1; sync(); "
                                        "if (thread_index() == 0) y[0] = a[1];"},
                               {.shared_bytes = most - 100}, {{"y", y}});
                  }));
      }),
      AllOf(HasSubstr("too much shared memory"), HasSubstr("the kernel itself uses 4096")));
  const KernelCode narrow(
      compiled("extern \"C\" WICK_GLOBAL void WICK_BOUNDS(64) small(float* y) { y[0] = 1; }"));
  EXPECT_THAT(error_of([&] {
                apply_op1(x, GpuOp([&](GpuContext& gpu, const CustomOutput& y, const CustomInput&) {
                            gpu.launch(narrow, "small", {.threads = {128, 1, 1}}, {{"y", y}});
                          }));
              }),
              HasSubstr("the kernel's limit is 64"));
}

TEST_P(GpuCustom, CodeObjects) {
  const KernelCode code(compiled(kScaleCode));
  const Tensor x = ramp(100);
  test::expect_same({apply_op1(x, scale_op(code))}, {x * 3.0f}, "scaled");
  EXPECT_THAT(
      error_of([&] { apply_op1(x, scale_op(code, "missing")); }),
      AllOf(HasSubstr("op: no such kernel in the code: missing"), HasSubstr("extern \"C\"")));
}

TEST_P(GpuCustom, HostileCodeObjects) {
  const std::string good = compiled(kScaleCode);
  const Tensor x = ramp(100);
  const auto error = [&](const std::string& bytes) {
    return error_of([&] { apply_op1(x, scale_op(KernelCode(bytes))); });
  };
  EXPECT_THAT(error(""), HasSubstr("op: no code"));
  EXPECT_THAT(error("nonsense"), HasSubstr("op: not a code object"));
  for (size_t size = 1; size < good.size(); size += good.size() / 40 + 1) {
    EXPECT_NE(error(good.substr(0, size)), "no error") << size;
  }
  std::string other = good;
  other[18] = 62;  // a program for the host
  EXPECT_THAT(error(other), HasSubstr("for other processors"));
  // The kernel takes 24 bytes of arguments.
  const KernelCode code(good);
  const auto with = [&](std::vector<GpuArgument> arguments) {
    return error_of([&] {
      apply_op1(x, GpuOp([&](GpuContext& gpu, const CustomOutput&, const CustomInput&) {
                  gpu.launch(code, "scale", {}, arguments);
                }));
    });
  };
  EXPECT_THAT(with({}), HasSubstr("0 arguments"));
  EXPECT_THAT(with({{"x", int64_t{1}}, {"y", int64_t{2}}}), HasSubstr("2 arguments"));
  EXPECT_THAT(with(std::vector<GpuArgument>(200, {"x", int64_t{1}})),
              HasSubstr("the arguments have another size than the kernel's"));
  EXPECT_EQ(apply_op1(x, scale_op(code)).to_vector<float>()[5], 15) << "the device goes on";
}

TEST_P(GpuCustom, ArgumentsInMetadata) {
  if (!is_hip()) GTEST_SKIP() << "CUDA's driver checks the size of arguments";
  const std::string good = compiled(
      "extern \"C\" WICK_GLOBAL void two(float* y, int n) { y[n] = 1; }"
      "extern \"C\" WICK_GLOBAL void odd(char a, double b, char c, float* y) { y[0] = a + b + c; }"
      "extern \"C\" WICK_GLOBAL void byte(float* y, char a) { y[0] = a; }"
      "extern \"C\" WICK_GLOBAL void none() {}");
  using Bytes = std::unordered_map<std::string, int64_t>;
  EXPECT_EQ(kernel_argument_bytes(good),
            (Bytes{{"two", 12}, {"odd", 32}, {"byte", 9}, {"none", 0}}));
  EXPECT_EQ(kernel_argument_bytes("nonsense"), Bytes());
  // Damaged bytes give any sizes, or none.
  const std::string_view metadata = amd_metadata(good);
  ASSERT_FALSE(metadata.empty());
  const auto begin = static_cast<size_t>(metadata.data() - good.data());
  for (size_t at = begin; at < begin + metadata.size(); ++at) {
    for (const int change : {0x01, 0x0f, 0x55, 0x80, 0xff}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      EXPECT_LE(kernel_argument_bytes(damaged).size(), metadata.size());
    }
  }
}

/// Code objects with a damaged byte: any outcome but the end of the process. Only the emulator
/// defends itself against all of them.
TEST_P(GpuCustom, DamagedCodeObjects) {
  if (std::getenv("WICK_EMU_DEVICES") == nullptr) GTEST_SKIP() << "not the software GPU";
  const std::string good = compiled(kScaleCode);
  const Tensor x = ramp(8);
  std::vector<float> expected(8);
  for (size_t i = 0; i < 8; ++i) expected[i] = static_cast<float>(3 * i);
  int refused = 0;
  for (size_t at = 0; at < 1024 && at < good.size(); at += 7) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    if (error_of([&] { check_code("op", device_.kind, damaged); }) != "no error") ++refused;
    try {
      const UserModule module(gpu_backend().gpu(), damaged + std::string(4096, '\0'), "op", "it");
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
  EXPECT_EQ(apply_op1(x, scale_op(KernelCode(good))).to_vector<float>(), expected);
}

TEST_P(GpuCustom, DroppedModulesOutliveTheirWork) {
  Gpu& gpu = gpu_backend().gpu();
  UserModules modules(gpu, 2);
  std::weak_ptr<UserModule> first;
  const std::string image = compiled(kScaleCode);
  const auto make = [&] { return std::make_shared<UserModule>(gpu, image, "op", "it"); };
  first = modules.find("a", make);
  {
    // Work that holds the module, as a launch and a graph do.
    const std::shared_ptr<UserModule> held = modules.find("a", make);
    modules.find("b", make);
    modules.find("c", make);
    EXPECT_FALSE(first.expired());
    EXPECT_NE(held->function("scale", "op").handle, nullptr);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(modules.loaded(), 3);
  modules.find("c", make);
  EXPECT_EQ(modules.loaded(), 3);
  modules.find("a", make);
  EXPECT_EQ(modules.loaded(), 4);
  EXPECT_THROW(modules.find("d", []() -> std::shared_ptr<UserModule> { throw Error("op", "no"); }),
               Error);
  EXPECT_EQ(modules.loaded(), 4);
}

TEST_P(GpuCustom, CapturedGraphsKeepTheirModules) {
  const Tensor x = ramp(16);
  // A module of its own: no other test has these bytes.
  const KernelCode code(code_for(device_, std::string(kScaleCode) + "// captured\n") + "captured");
  const GpuOp op = scale_op(code);
  apply_op1(x, op);
  UserModules& modules = gpu_backend().user_modules();
  const std::weak_ptr<UserModule> module = modules.find(
      "code " + code.digest(), []() -> std::shared_ptr<UserModule> { throw Error("op", "new"); });
  Tensor y;
  auto graph = record(device_, [&] { y = apply_op1(x, op); });
  // So many other modules that the cache drops the one of the graph.
  const std::string image = compiled(kScaleCode);
  for (size_t i = 0; i <= UserModules::kMostModules; ++i) {
    modules.find("other " + std::to_string(i), [&] {
      return std::make_shared<UserModule>(gpu_backend().gpu(), image, "op", "it");
    });
  }
  EXPECT_FALSE(module.expired());
  for (int round = 0; round < 3; ++round) {
    graph->replay();
    EXPECT_EQ(y.to_vector<float>()[15], 45);
  }
  graph.reset();
  EXPECT_TRUE(module.expired());
  const int before = loaded();
  apply_op1(x, op);
  EXPECT_EQ(loaded(), before + 1) << "it was dropped";
}

// ---- Bodies that are missing ----

struct CpuOnly : CustomOp1 {
  explicit CpuOnly(std::string name) : CustomOp1(std::move(name)) {}
  ResultSpec shape(const Tensor& x) const override { return like(x); }
  void cpu(const CustomOutput& y, const CustomInput& x) const override {
    for (size_t i = 0; i < x.values<float>().size(); ++i) {
      y.values<float>()[i] = x.values<float>()[i] + 1;
    }
  }
  bool falls_back_to_cpu() const override { return falls_back; }
  void warn(const std::string& message) const override { warnings->push_back(message); }
  bool falls_back = false;
  std::shared_ptr<std::vector<std::string>> warnings = std::make_shared<std::vector<std::string>>();
};

TEST_P(GpuCustom, MissingBodies) {
  const Tensor x = ramp(4);
  CpuOnly op("cpu_only" + std::to_string(device_.index));
  EXPECT_THAT(error_of([&] { apply_op1(x, op); }),
              AllOf(HasSubstr(is_hip() ? "no body for ROCm: f32[4]" : "no body for CUDA: f32[4]"),
                    HasSubstr(is_hip() ? "implement gpu or rocm" : "implement gpu or cuda")));
  op.falls_back = true;
  EXPECT_EQ(apply_op1(x, op).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(apply_op1(x.slice(0, -1, INT64_MIN, -1), op).to_vector<float>()[0], 4);
  ASSERT_EQ(op.warnings->size(), 1u);
  EXPECT_THAT((*op.warnings)[0], HasSubstr("no body for " + device_.str()));
  struct OtherClass : CpuOnly {
    using CpuOnly::CpuOnly;
  };
  OtherClass other(op.name());
  other.falls_back = true;
  apply_op1(x, other);
  apply_op1(x, other);
  EXPECT_EQ(other.warnings->size(), 1u) << "an op of the same name";
}

/// In place, on a target that isn't dense.
TEST_P(GpuCustom, FallbackInPlace) {
  struct AddInto : InplaceOp2 {
    AddInto() : InplaceOp2("fallback_in_place") {}
    void check(const Tensor&, const Tensor&) const override {}
    void cpu(const CustomOutput& x, const CustomInput& a) const override {
      for (int64_t i = 0; i < x.elems(); ++i) {
        x.data<float>()[i * x.stride(0)] += a.values<float>()[static_cast<size_t>(i)];
      }
    }
    bool falls_back_to_cpu() const override { return true; }
    void warn(const std::string&) const override {}
  };
  Tensor x = Tensor::full({8}, 1, DType::f32, device_);
  x = x.slice(0, 6, INT64_MIN, -2);
  inplace_op2(x, ramp(4), AddInto());
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(GpuCustom, EachVendorsBody) {
  struct Vendors : GpuOp {
    Vendors() : GpuOp([](GpuContext&, const CustomOutput&, const CustomInput&) { FAIL(); }) {}
    void cuda(GpuContext& gpu, const CustomOutput& y, const CustomInput&) const override {
      gpu.launch({.body = "y[0] = 1;"}, {.threads = {1, 1, 1}}, {{"y", y}});
    }
    void rocm(GpuContext& gpu, const CustomOutput& y, const CustomInput&) const override {
      gpu.launch({.body = "y[0] = 2;"}, {.threads = {1, 1, 1}}, {{"y", y}});
    }
  };
  EXPECT_EQ(apply_op1(ramp(1), Vendors()).item<float>(), is_hip() ? 2 : 1);
}

/// A fallback copies to the host, which can't be captured: the compiled function runs call by call.
TEST_P(GpuCustom, FallbacksInCompiledFunctions) {
  CpuOnly op("fallback_in_function");
  op.falls_back = true;
  const Compiled f = compile([&](std::span<const Tensor> a) -> std::vector<Tensor> {
    return {apply_op1(a[0] * 2.0f, op)};
  });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(f({ramp(4)})[0].to_vector<float>(), (std::vector<float>{1, 3, 5, 7}));
  }
}

TEST_P(GpuCustom, BodiesThatThrow) {
  const Tensor x = ramp(1000);
  const size_t before = memory_stats(device_).in_use_bytes;
  for (int i = 0; i < 5; ++i) {
    EXPECT_THROW(apply_op1(x, GpuOp([](GpuContext& gpu, const CustomOutput&, const CustomInput&) {
                             gpu.scratch<float>(100000);
                             throw std::runtime_error("of the user");
                           })),
                 std::runtime_error);
  }
  EXPECT_EQ(memory_stats(device_).in_use_bytes, before);
  // In a capture, too; the thread can capture again.
  EXPECT_THROW(record(device_,
                      [&] {
                        apply_op1(x,
                                  GpuOp([](GpuContext&, const CustomOutput&, const CustomInput&) {
                                    throw std::runtime_error("of the user");
                                  }));
                      }),
               std::runtime_error);
  const GpuOp good = map_op("y[i] = x[i];");
  apply_op1(x, good);
  Tensor y;
  record(device_, [&] { y = apply_op1(x, good); })->replay();
  EXPECT_EQ(y.to_vector<float>()[7], 7);
}

/// A compiled function captures its calls in its second run.
TEST_P(GpuCustom, BodiesThatThrowInACapturedFunction) {
  const auto calls = std::make_shared<int>(0);
  const GpuOp op([calls](GpuContext& gpu, const CustomOutput& y, const CustomInput& x) {
    if (++*calls == 2) throw std::runtime_error("of the user");
    gpu.launch({.body = "if (global_index() < x_elems) y[global_index()] = x[global_index()];"},
               KernelGrid::over(x.elems()), {{"x", x}, {"y", y}});
  });
  const Compiled f = compile(
      [&](std::span<const Tensor> a) -> std::vector<Tensor> { return {apply_op1(a[0], op)}; });
  const Tensor x = ramp(1000);
  f({x});
  const size_t before = memory_stats(device_).in_use_bytes;
  EXPECT_THROW(f({x}), std::runtime_error);
  EXPECT_LE(memory_stats(device_).in_use_bytes, before);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f({x})[0].to_vector<float>()[7], 7);
}

INSTANTIATE_TEST_SUITE_P(Devices, GpuCustom, testing::ValuesIn(test::gpu_names()),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, ':');
                           return name;
                         });

// ---- NVIDIA's driver, by a stand-in that checks the arguments and runs nothing ----

TEST(CustomStandIn, LaunchesPassItsChecks) {
  if (std::getenv("WICK_CUDA_LIBRARY") == nullptr) GTEST_SKIP() << "WICK_CUDA_LIBRARY isn't set";
  if (Compiler::of(DeviceKind::cuda) == nullptr) {
    GTEST_SKIP() << "no NVRTC: " << Compiler::missing(DeviceKind::cuda);
  }
  const Device device{DeviceKind::cuda, 0};
  const LaunchLimits limits = backend_of(device).launch_limits();
  EXPECT_EQ(limits.block_threads, 1024);
  EXPECT_EQ(limits.blocks[1], 65535);
  EXPECT_GT(limits.shared_bytes, 200000);
  const Tensor x = Tensor::from(std::vector<float>{1, 2, 3, 4}, {4}, device);
  apply_op1(x, map_op("y[i] = x[i];"));
  apply_op1(x, scale_op(KernelCode(code_for(device, kScaleCode))));
  const auto shared = [&](int64_t bytes) {
    return error_of([&] {
      apply_op1(x, GpuOp([&](GpuContext& gpu, const CustomOutput& y, const CustomInput&) {
                  gpu.launch({.body = "y[0] = 1;"}, {.shared_bytes = bytes}, {{"y", y}});
                }));
    });
  };
  EXPECT_EQ(shared(limits.shared_bytes), "no error");
  EXPECT_THAT(shared(limits.shared_bytes + 1), HasSubstr("too much shared memory"));
  synchronize(device);
}

// ---- Kernels that lose the device; each runs in a process of its own ----

std::string lost(const char* body) {
  const char* const name = std::getenv("WICK_TEST_LOSE");
  const Device device = Device::parse(name);
  const Tensor x = Tensor::full({4}, 1, DType::f32, device);
  apply_op1(x, map_op(body));
  return error_of([&] { synchronize(device); });
}

TEST(GpuCustomWild, WritesOutOfBounds) {
  if (std::getenv("WICK_TEST_LOSE") == nullptr) GTEST_SKIP() << "WICK_TEST_LOSE names no device";
  EXPECT_THAT(lost("y[i + (i64{1} << 40)] = 1;"), HasSubstr("the device was lost"));
  EXPECT_EQ(Tensor::full({1}, 2, DType::f32).item<float>(), 2) << "the process goes on";
}

/// With exact blocks, the emulator's memory check knows where each tensor ends.
TEST(GpuCustomWild, WritesBehindTheEnd) {
  if (std::getenv("WICK_TEST_LOSE") == nullptr) GTEST_SKIP() << "WICK_TEST_LOSE names no device";
  EXPECT_THAT(lost("y[i + 1] = 1;"), HasSubstr("the device was lost"));
}

/// With exact blocks, what a freed tensor held isn't in the result's memory. The emulator reports
/// the read, and the kernel goes on.
TEST(GpuCustomWild, ReadsWhatNothingWrote) {
  if (std::getenv("WICK_TEST_LOSE") == nullptr) GTEST_SKIP() << "WICK_TEST_LOSE names no device";
  const Device device = Device::parse(std::getenv("WICK_TEST_LOSE"));
  Tensor::full({4}, 5, DType::f32, device);
  EXPECT_EQ(lost("y[i] = y[i] + 1;"), "no error");
}

TEST(GpuCustomWild, NeverEnds) {
  if (std::getenv("WICK_EMU_TIMEOUT") == nullptr) GTEST_SKIP() << "WICK_EMU_TIMEOUT isn't set";
  EXPECT_THAT(lost("volatile int n = 0; while (n == 0) y[i] = 1;"),
              HasSubstr("the device was lost"));
}

}  // namespace
}  // namespace wick::gpu
