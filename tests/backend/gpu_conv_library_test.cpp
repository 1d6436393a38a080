// Convolutions of vendors' libraries: NVIDIA's if there is such a device, and stand-ins for both
// vendors' libraries. CMakeLists.txt names the libraries in the environment.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include "tests/backend/conv_case.h"
#include "tests/expect_error.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/spatial/library_conv.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr ConvForm kForms[] = {ConvForm::forward, ConvForm::input, ConvForm::weight};
constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::bf16};

ConvParams params(int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                  int64_t dilation_h = 1, int64_t dilation_w = 1, int64_t groups = 1) {
  return {.stride = {stride_h, stride_w},
          .padding = {pad_h, pad_w},
          .dilation = {dilation_h, dilation_w},
          .groups = groups};
}

const ConvCase kPlain = {{2, 3, 7, 9}, {4, 3, 3, 3}, params(1, 1, 1, 1)};

/// Strides that leave columns unused, groups, dilation, asymmetric kernels, one channel, one pixel.
const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> all = {
      kPlain,
      {{1, 5, 11, 13}, {9, 5, 3, 2}, params(2, 3, 1, 2, 2, 1)},
      {{2, 6, 8, 8}, {20, 3, 3, 3}, params(1, 1, 1, 1, 1, 1, 2)},
      {{2, 5, 9, 10}, {5, 1, 3, 3}, params(2, 1, 1, 0, 1, 2, 5)},
      {{2, 16, 6, 5}, {24, 16, 1, 1}, params(1, 1, 0, 0)},
      {{3, 8, 1, 30}, {8, 8, 1, 5}, params(1, 2, 0, 2)},
      {{2, 8, 4, 4}, {16, 8, 4, 4}, params(1, 1, 0, 0)},
      {{1, 1, 9, 9}, {8, 1, 3, 3}, params(1, 1, 0, 1)},
      {{1, 8, 6, 6}, {16, 8, 3, 3}, params(1, 1, 4, 3)},
  };
  return all;
}

/// Sets a variable of the environment for a scope.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~WithVariable() {
    if (before_) setenv(name_, before_->c_str(), 1);
    if (!before_) unsetenv(name_);
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class GpuConvLibrary : public testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
      if (Driver::of(kind) != nullptr && ConvolutionLibrary::of(kind) != nullptr) {
        device_.kind = kind;
      }
    }
    if (device_.kind == DeviceKind::cpu) GTEST_SKIP() << "no device with a library";
    std::string chosen;
    const std::string architecture = Driver::of(device_.kind)->info(0).architecture;
    if (!has_images(architecture, chosen) && Compiler::of(device_.kind) == nullptr) {
      GTEST_SKIP() << "no kernels for " << architecture << ", so no Gpu";
    }
    library_ = ConvolutionLibrary::of(device_.kind);
    for (const char* name : {"WICK_CUDNN_LIBRARY", "WICK_MIOPEN_LIBRARY"}) {
      const char* const file = std::getenv(name);
      void* const stand_in = file == nullptr ? nullptr : dlopen(file, RTLD_NOW | RTLD_NOLOAD);
      void* const counter =
          stand_in == nullptr ? nullptr : dlsym(stand_in, "stand_in_convolutions");
      if (counter == nullptr) continue;
      computed_ = reinterpret_cast<int (*)()>(counter);
      asked_ = reinterpret_cast<int (*)()>(dlsym(stand_in, "stand_in_asked"));
    }
  }
  void TearDown() override {
    if (library_ != nullptr) library_->release(device_);
    gpu_ = nullptr;
  }
  /// The device of the test, which becomes the calling thread's current one.
  virtual Gpu& enter() {
    if (gpu_ == nullptr) gpu_ = std::make_unique<Gpu>(device_);
    gpu_->enter();
    return *gpu_;
  }

  /// Convolutions that the stand-in has computed.
  int computed() const { return computed_ == nullptr ? 0 : computed_(); }
  void expect_computed(int count) const {
    EXPECT_TRUE(computed_ == nullptr || computed_() == count)
        << computed() << ", expected " << count;
  }

  Device device_;
  ConvolutionLibrary* library_ = nullptr;
  int (*computed_)() = nullptr;
  int (*asked_)() = nullptr;
  std::unique_ptr<Gpu> gpu_;
};

TEST_F(GpuConvLibrary, DenseOperandsGiveResultsWithinTheBound) {
  Gpu& gpu = enter();
  std::mt19937 random(3);
  int declined = 0;
  for (const ConvCase& c : cases()) {
    for (const ConvForm form : kForms) {
      for (const DType dtype : kDTypes) {
        for (const ConvPlace place : {ConvPlace::first, ConvPlace::last}) {
          SCOPED_TRACE(testing::Message()
                       << form_name(form) << " " << name(dtype) << " " << c.x.str() << " "
                       << c.w.str() << (place == ConvPlace::last ? " channels last" : ""));
          ConvOperands operands(gpu, dtype, c, form, {place, place, place}, random);
          const ConvCall call = operands.call(c, form, dtype, place == ConvPlace::last);
          const bool takes = library_->takes(gpu, call);
          EXPECT_EQ(library_->convolve(gpu, call), takes);
          EXPECT_TRUE(takes || computed_ == nullptr) << "a stand-in takes all";
          if (takes) operands.check(c, form, dtype);
          declined += takes ? 0 : 1;
          if (HasFailure()) return;
        }
      }
    }
  }
  RecordProperty("declined", declined);
}

TEST_F(GpuConvLibrary, EveryAlgorithmGivesResultsWithinTheBound) {
  Gpu& gpu = enter();
  std::mt19937 random(10);
  for (const ConvForm form : kForms) {
    for (const DType dtype : kDTypes) {
      for (const ConvPlace place : {ConvPlace::first, ConvPlace::last}) {
        int algorithms = 0;
        for (;; ++algorithms) {
          SCOPED_TRACE(testing::Message()
                       << form_name(form) << " " << name(dtype) << " algorithm " << algorithms);
          ConvOperands operands(gpu, dtype, kPlain, form, {place, place, place}, random);
          ConvCall call = operands.call(kPlain, form, dtype, place == ConvPlace::last);
          call.algorithm = algorithms;
          if (!library_->takes(gpu, call)) break;
          ASSERT_TRUE(library_->convolve(gpu, call));
          operands.check(kPlain, form, dtype);
          ASSERT_FALSE(HasFailure());
        }
        EXPECT_TRUE(computed_ == nullptr || algorithms >= (dtype == DType::f32 ? 2 : 1));
      }
    }
  }
}

TEST_F(GpuConvLibrary, WhatCannotBeDoneIsLeft) {
  Gpu& gpu = enter();
  std::mt19937 random(4);
  constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
  ConvOperands operands(gpu, DType::f32, kPlain, ConvForm::forward, kFirst, random);
  const ConvCall good = operands.call(kPlain, ConvForm::forward, DType::f32, false);
  const auto takes = [&](const auto& change) {
    ConvCall call = good;
    change(call);
    return library_->takes(gpu, call);
  };
  EXPECT_TRUE(takes([](ConvCall&) {}));
  EXPECT_FALSE(takes([](ConvCall& c) { c.dtype = DType::f64; }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.dtype = DType::f8e4m3; }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.y.shape = c.y.shape.with(3, 8); }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.y.shape = c.y.shape.with(1, 5); }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.params.groups = 2; }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.x.shape = c.x.shape.with(0, 0); }));
  EXPECT_FALSE(takes([](ConvCall& c) {
    c.x.shape = c.x.shape.with(0, int64_t{1} << 30);
    c.y.shape = c.y.shape.with(0, int64_t{1} << 30);
  }));
  EXPECT_FALSE(takes([](ConvCall& c) { c.params.padding[0] = int64_t{1} << 32; }));
}

TEST_F(GpuConvLibrary, AFailureIsReportedOnce) {
  if (computed_ == nullptr) GTEST_SKIP() << "only stand-ins fail on request";
  Gpu& gpu = enter();
  std::mt19937 random(5);
  testing::internal::CaptureStderr();
  for (const int64_t size : {5, 6, 5}) {
    const ConvCase c = {{1, 2, size, 5}, {11, 2, 3, 3}, params(1, 1, 1, 1)};
    constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
    ConvOperands operands(gpu, DType::f32, c, ConvForm::forward, kFirst, random);
    EXPECT_FALSE(library_->convolve(gpu, operands.call(c, ConvForm::forward, DType::f32, false)));
  }
  const std::string text = device_.kind == DeviceKind::cuda ? "CUDNN_STATUS_EXECUTION_FAILED"
                                                            : "miopenStatusInternalError";
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "wick: " + device_.str() + ": " + library_->name +
                " failed, so wick's kernels compute a convolution: " + text + "\n");
}

TEST_F(GpuConvLibrary, IsNamedWithItsRelease) {
  EXPECT_THAT(library_->version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_FALSE(library_->library.empty());
  if (computed_ != nullptr) {
    EXPECT_EQ(library_->version(), device_.kind == DeviceKind::cuda ? "9.10.2" : "3.4.1");
  }
}

/// Tests of the backend's methods. They launch wick's kernels, too, for copies at least.
class GpuConvBackend : public GpuConvLibrary {
 protected:
  void SetUp() override {
    GpuConvLibrary::SetUp();
    if (library_ != nullptr) backend_ = &backend_of(device_);
  }
  Gpu& enter() override {
    backend_->gpu().enter();
    return backend_->gpu();
  }
  /// Computes a case and checks the result.
  void compute(const ConvCase& c, ConvForm form = ConvForm::forward, DType dtype = DType::f32) {
    std::mt19937 random(6);
    constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
    Gpu& gpu = enter();
    ConvOperands operands(gpu, dtype, c, form, kFirst, random);
    operands.run(*backend_, form, c.params);
    operands.check(c, form, dtype);
  }

  GpuBackend* backend_ = nullptr;
};

TEST_F(GpuConvBackend, OperandsOfAnyLayoutAreCopied) {
  const WithVariable use("WICK_GPU_CONV", "library");
  Gpu& gpu = enter();
  std::mt19937 random(7);
  using enum ConvPlace;
  const std::array<ConvPlace, 3> places[] = {{first, first, first},      {last, first, last},
                                             {last, last, first},        {offset, first, first},
                                             {stepped, offset, stepped}, {first, stepped, last}};
  for (const ConvCase& c : cases()) {
    for (const ConvForm form : kForms) {
      for (const DType dtype : kDTypes) {
        for (const auto& of : places) {
          SCOPED_TRACE(testing::Message()
                       << form_name(form) << " " << name(dtype) << " " << c.x.str() << " "
                       << c.w.str() << " places " << static_cast<int>(of[0])
                       << static_cast<int>(of[1]) << static_cast<int>(of[2]));
          const int before = computed();
          ConvOperands operands(gpu, dtype, c, form, of, random);
          operands.run(*backend_, form, c.params);
          operands.check(c, form, dtype);
          expect_computed(before + 1);
          if (HasFailure()) return;
        }
      }
    }
  }
  // One image for the whole batch.
  for (const ConvForm form : {ConvForm::forward, ConvForm::weight}) {
    const int before = computed();
    ConvOperands operands(gpu, DType::f32, kPlain, form, {repeated, first, first}, random);
    operands.run(*backend_, form, kPlain.params);
    operands.check(kPlain, form, DType::f32);
    expect_computed(before + 1);
  }
}

TEST_F(GpuConvBackend, WicksKernelsComputeWhatTheLibraryDoesNot) {
  const WithVariable use("WICK_GPU_CONV", "library");
  testing::internal::CaptureStderr();
  const int before = computed();
  for (const int64_t outputs : {13, 11}) {  // the stand-in declines and fails
    for (const ConvForm form : kForms) {
      compute({{1, 4, 6, 6}, {outputs, 4, 3, 3}, params(1, 1, 1, 1)}, form, DType::f16);
    }
  }
  expect_computed(before);
  const std::string said = testing::internal::GetCapturedStderr();
  if (computed_ == nullptr) return;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(GpuConvBackend, NeverWithoutPermission) {
  const int before = computed();
  {
    const WithVariable use("WICK_GPU_CONV", "own");
    compute(kPlain);
  }
  const WithVariable use("WICK_GPU_CONV", "library"), order("WICK_REPRODUCIBLE", "1");
  compute(kPlain);
  expect_computed(before);
}

TEST_F(GpuConvBackend, OnlyStandInsTheFasterOneIsChosenOnce) {
  if (computed_ == nullptr) GTEST_SKIP() << "times of real libraries aren't known";
  ASSERT_STREQ(std::getenv("WICK_KERNEL_CACHE"), "off") << "choices on disk aren't measured";
  // The stand-in sleeps for 17 output channels.
  const ConvCase slow = {{1, 4, 6, 6}, {17, 4, 3, 3}, params(1, 1, 1, 1)};
  int before = computed();
  compute(slow);
  EXPECT_GT(computed(), before) << "nothing was measured";
  before = computed();
  compute(slow);
  expect_computed(before);

  // On the emulator, wick's kernel computes whole tiles for these sixteen outputs.
  const ConvCase quick = {{1, 600, 3, 3}, {16, 600, 3, 3}, params(1, 1, 0, 0)};
  before = computed();
  compute(quick);
  EXPECT_GT(computed(), before + 1);
  before = computed();
  compute(quick);
  expect_computed(before + 1);
}

TEST_F(GpuConvBackend, CapturesOnlyUseWhatIsKnown) {
  {
    const WithVariable use("WICK_GPU_CONV", "library");
    compute(kPlain);  // the library is in use from now on
  }
  std::mt19937 random(8);
  Gpu& gpu = enter();
  const ConvCase c = {{1, 3, 5, 4}, {6, 3, 3, 3}, params(1, 1, 1, 1)};
  constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
  ConvOperands operands(gpu, DType::f32, c, ConvForm::forward, kFirst, random);
  const int before = computed(), asked = asked_ == nullptr ? 0 : asked_();
  for (const char* use : {"auto", "library"}) {
    const WithVariable variable("WICK_GPU_CONV", use);
    const auto graph =
        backend_->record([&] { operands.run(*backend_, ConvForm::forward, c.params); });
    graph->replay();
    operands.check(c, ConvForm::forward, DType::f32);
  }
  expect_computed(before);
  EXPECT_TRUE(asked_ == nullptr || asked_() == asked) << "the library may load modules";

  // The library computes a shape in a graph that it has computed before.
  const WithVariable variable("WICK_GPU_CONV", "library");
  const ConvCase known = {{1, 8, 5, 4}, {6, 8, 3, 3}, params(1, 1, 1, 1)};
  for (const auto& places :
       {kFirst, std::array{ConvPlace::stepped, ConvPlace::first, ConvPlace::stepped}}) {
    ConvOperands again(gpu, DType::f32, known, ConvForm::forward, places, random);
    again.run(*backend_, ConvForm::forward, known.params);
    again.check(known, ConvForm::forward, DType::f32);
    const int outside = computed();
    const auto graph =
        backend_->record([&] { again.run(*backend_, ConvForm::forward, known.params); });
    expect_computed(outside);
    for (int i = 0; i < 2; ++i) graph->replay();
    again.check(known, ConvForm::forward, DType::f32);
    expect_computed(outside + 2);
  }
}

TEST_F(GpuConvLibrary, OnlyAmdADeviceWithoutKernelsIsNamedOnce) {
  if (device_.kind != DeviceKind::hip) GTEST_SKIP() << "MIOpen alone needs rocBLAS";
  const WithVariable kernels("ROCBLAS_TENSILE_LIBPATH", "/none");
  Gpu& gpu = enter();
  std::mt19937 random(9);
  constexpr std::array kFirst = {ConvPlace::first, ConvPlace::first, ConvPlace::first};
  ConvOperands operands(gpu, DType::f32, kPlain, ConvForm::forward, kFirst, random);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(
        library_->convolve(gpu, operands.call(kPlain, ConvForm::forward, DType::f32, false)));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "wick: hip:0: MIOpen isn't used: no kernels in /none\n");
}

TEST(GpuConvUse, IsChosenByName) {
  unsetenv("WICK_GPU_CONV");
  EXPECT_EQ(conv_library_use(), ConvLibraryUse::automatic);
  for (const auto& [name, use] :
       {std::pair("own", ConvLibraryUse::own), std::pair("auto", ConvLibraryUse::automatic),
        std::pair("library", ConvLibraryUse::library)}) {
    const WithVariable variable("WICK_GPU_CONV", name);
    EXPECT_EQ(conv_library_use(), use);
  }
  const WithVariable variable("WICK_GPU_CONV", "only");
  EXPECT_EQ(error_of([] { conv_library_use(); }),
            "WICK_GPU_CONV: no such choice: 'only': use own, auto, library");
}

constexpr ConvChoice kFirst = {.library = true}, kLast = {.library = true, .channels_last = true},
                     kThird = {.library = true, .channels_last = true, .algorithm = 2};

TEST(GpuConvUse, ALibraryMustBeClearlyFaster) {
  const float never = std::numeric_limits<float>::infinity();
  const auto best = [](float own, float first, float last, float third) {
    return fastest({{{}, own}, {kFirst, first}, {kLast, last}, {kThird, third}}).str();
  };
  EXPECT_EQ(best(1, never, never, never), "own");
  EXPECT_EQ(best(1, 0.96f, 1.1f, 1), "own");
  EXPECT_EQ(best(1, 0.9f, 0.94f, 1), "channels_first 0");
  EXPECT_EQ(best(1, never, 0.94f, never), "channels_last 0");
  EXPECT_EQ(best(1, 0.9f, 0.5f, 0.4f), "channels_last 2");
  EXPECT_EQ(best(0, 0, 0, 0), "own");
  EXPECT_EQ(fastest({{{}, 1}}).str(), "own");
}

class ConvChoicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "wick-conv-choices-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(ConvChoicesTest, AreKeptOnDisk) {
  const KernelCache cache(folder_, 1 << 20);
  ConvChoices::Key a{}, b{};
  a.first[3] = 7;
  b.second = 5;
  ConvChoices choices("device", cache);
  EXPECT_FALSE(choices.find(a));
  choices.store(a, kThird, true);
  choices.store(b, kFirst, false);
  EXPECT_EQ(choices.find(a), kThird);
  EXPECT_EQ(choices.find(b), kFirst);
  EXPECT_EQ(ConvChoices("device", cache).find(a), kThird);
  EXPECT_FALSE(ConvChoices("device", cache).find(b)) << "it isn't for the disk";
  EXPECT_FALSE(ConvChoices("another device", cache).find(a));
  for (const ConvChoice choice : {ConvChoice(), kFirst}) {
    choices.store(a, choice, true);
    EXPECT_EQ(ConvChoices("device", cache).find(a), choice);
  }
  EXPECT_FALSE(ConvChoices("device", KernelCache({}, 0)).find(a));
}

TEST_F(ConvChoicesTest, DamagedFilesAreIgnored) {
  const KernelCache cache(folder_, 1 << 20);
  const ConvChoices::Key key{};
  ConvChoices("device", cache).store(key, kFirst, true);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  const fs::path file = fs::directory_iterator(folder_)->path();
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end)
      << 'X';
  EXPECT_FALSE(ConvChoices("device", cache).find(key));
  fs::resize_file(file, 10);
  EXPECT_FALSE(ConvChoices("device", cache).find(key));
  // Whole files with other words.
  for (const char* text : {"sideways", "channels_last", "channels_last ", "channels_last -1",
                           "channels_first 1x", "channels_first 99999999999", "own 1", ""}) {
    cache.store(file.stem().string(), text);
    EXPECT_FALSE(ConvChoices("device", cache).find(key)) << text;
  }
  cache.store(file.stem().string(), "own");
  EXPECT_EQ(ConvChoices("device", cache).find(key), ConvChoice());
}

}  // namespace
}  // namespace wick::gpu
