// GEMMs of vendors' libraries: NVIDIA's if there is such a device, and stand-ins for
// AMD's on the software GPU. CMakeLists.txt names the libraries in the environment.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/expect_error.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/math/half.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::HasSubstr;
namespace fs = std::filesystem;

float load(DType dtype, const char* at) {
  if (dtype == DType::f32) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return dtype == DType::f16 ? math::to_f32(math::f16{bits}) : math::to_f32(math::bf16{bits});
}
void store(DType dtype, char* at, float x) {
  if (dtype == DType::f32) {
    std::memcpy(at, &x, sizeof x);
    return;
  }
  const uint16_t bits =
      dtype == DType::f16 ? math::from_f32<math::f16>(x).bits : math::from_f32<math::bf16>(x).bits;
  std::memcpy(at, &bits, sizeof bits);
}
/// Returns half a unit in the last place of the result.
double half_ulp(DType dtype, double x) {
  const int bits = dtype == DType::f32 ? 24 : dtype == DType::f16 ? 11 : 8;
  const int least = dtype == DType::f16 ? -14 : -126;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(0.5, std::max(exponent - 1, least) - bits + 1);
}

/// Matrices on a device and on the host. The gaps between rows hold another value.
class Matrices {
 public:
  /// The first matrix begins `skip` elements after a well-aligned address.
  Matrices(Gpu& gpu, DType dtype, int64_t rows, int64_t cols, int64_t ld, int64_t stride,
           int64_t batch, int64_t skip, std::mt19937* random)
      : gpu_(gpu), dtype_(dtype), ld_(ld), stride_(stride) {
    const int64_t all = (batch - 1) * stride + (rows - 1) * ld + cols;
    host_.resize(static_cast<size_t>(all) * size());
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < all; ++i) {
      store(dtype, at(i), random == nullptr ? 77.0f : uniform(*random));
    }
    const size_t before = static_cast<size_t>(skip) * size();
    memory_ = gpu.pool.take(host_.size() + before);
    data = static_cast<char*>(memory_) + before;
    gpu.check(gpu.driver.api.copy_to_device(data, host_.data(), host_.size(), gpu.stream()),
              "copy");
  }
  ~Matrices() { gpu_.pool.give(memory_); }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  void fetch() {
    gpu_.check(gpu_.driver.api.copy_to_host(host_.data(), data, host_.size(), gpu_.stream()),
               "copy");
    gpu_.synchronize();
  }
  float get(int64_t batch, int64_t row, int64_t col) const {
    return load(dtype_, const_cast<Matrices*>(this)->at(batch * stride_ + row * ld_ + col));
  }
  void* data = nullptr;

 private:
  size_t size() const { return dtype_ == DType::f32 ? 4 : 2; }
  char* at(int64_t i) { return host_.data() + static_cast<size_t>(i) * size(); }

  Gpu& gpu_;
  const DType dtype_;
  const int64_t ld_, stride_;
  std::vector<char> host_;
  void* memory_ = nullptr;
};

struct Shape {
  int64_t m, n, k, batch;
  int64_t pad;  ///< gap between rows and between matrices, in elements
  bool same_b;  ///< one matrix serves the whole batch
};

class GpuLibraries : public testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
      if (Driver::of(kind) != nullptr && !MatrixLibrary::of(kind).empty()) device_.kind = kind;
    }
    if (device_.kind == DeviceKind::cpu) GTEST_SKIP() << "no device with a library";
    std::string chosen;
    const std::string architecture = Driver::of(device_.kind)->info(0).architecture;
    if (!has_images(architecture, chosen) && Compiler::of(device_.kind) == nullptr) {
      GTEST_SKIP() << "no kernels for " << architecture << ", so no Gpu";
    }
  }

  /// Checks that the library's GEMM is within the error bound of floats. Returns false if the
  /// library declines it.
  static bool check(Gpu& gpu, MatrixLibrary* library, DType dtype, const Shape& s,
                    bool a_transposed, bool b_transposed) {
    std::mt19937 random(static_cast<unsigned>(s.m * 31 + s.n * 7 + s.k));
    GemmCall call;
    call.dtype = dtype;
    call.m = s.m, call.n = s.n, call.k = s.k, call.batch = s.batch;
    call.a_transposed = a_transposed, call.b_transposed = b_transposed;
    const int64_t a_rows = a_transposed ? s.k : s.m, a_cols = a_transposed ? s.m : s.k;
    const int64_t b_rows = b_transposed ? s.n : s.k, b_cols = b_transposed ? s.k : s.n;
    call.lda = a_cols + s.pad, call.ldb = b_cols + s.pad, call.ldc = s.n + s.pad;
    call.stride_a = a_rows * call.lda + s.pad, call.stride_c = s.m * call.ldc + s.pad;
    call.stride_b = s.same_b ? 0 : b_rows * call.ldb + s.pad;
    Matrices a(gpu, dtype, a_rows, a_cols, call.lda, call.stride_a, s.batch, s.pad, &random);
    Matrices b(gpu, dtype, b_rows, b_cols, call.ldb, call.stride_b, s.batch, s.pad, &random);
    Matrices c(gpu, dtype, s.m, s.n, call.ldc, call.stride_c, s.batch, s.pad, nullptr);
    call.a = a.data, call.b = b.data, call.c = c.data;
    const bool done = library == nullptr ? library_gemm(gpu.device, call, gpu.stream())
                                         : library->gemm(gpu.device, call, gpu.stream());
    c.fetch();
    if (!done) {
      EXPECT_EQ(c.get(0, 0, 0), 77) << "nothing may be written";
      return false;
    }
    for (int64_t i = 0; i < s.batch; ++i) {
      for (int64_t row = 0; row < s.m; ++row) {
        for (int64_t col = 0; col < s.n; ++col) {
          double exact = 0, sum = 0;
          for (int64_t j = 0; j < s.k; ++j) {
            const double x = a_transposed ? a.get(i, j, row) : a.get(i, row, j);
            const double y = b_transposed ? b.get(i, col, j) : b.get(i, j, col);
            exact += x * y;
            sum += std::abs(x * y);
          }
          const double bound = half_ulp(dtype, exact) +
                               4 * std::sqrt(static_cast<double>(s.k)) * std::ldexp(sum, -24);
          EXPECT_NEAR(c.get(i, row, col), exact, bound) << i << " " << row << " " << col;
          if (testing::Test::HasFailure()) return true;
        }
        if (s.pad != 0 && row + 1 < s.m) {
          EXPECT_EQ(c.get(i, row, s.n), 77) << "between rows";
        }
      }
    }
    return true;
  }

  Device device_;
};

constexpr Shape kShapes[] = {{1, 1, 1, 1, 0, false},    {5, 7, 3, 1, 0, false},
                             {16, 8, 64, 1, 3, false},  {1, 33, 40, 2, 0, false},
                             {7, 1, 9, 3, 1, false},    {6, 4, 10, 3, 2, true},
                             {32, 48, 100, 2, 8, false}};

TEST_F(GpuLibraries, ProductsAreWithinTheBoundOfFloats) {
  Gpu gpu(device_);
  gpu.enter();
  for (const auto& library : MatrixLibrary::of(device_.kind)) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const Shape& shape : kShapes) {
        for (const int transposed : {0, 1, 2, 3}) {
          SCOPED_TRACE(testing::Message()
                       << library->name << " " << name(dtype) << " " << shape.m << "x" << shape.n
                       << "x" << shape.k << " transposed " << transposed);
          EXPECT_TRUE(check(gpu, library.get(), dtype, shape, transposed & 1, transposed & 2));
          if (HasFailure()) return;
        }
      }
    }
    library->release(device_);
    EXPECT_TRUE(check(gpu, library.get(), DType::f32, kShapes[1], false, false)) << "once more";
    library->release(device_);
  }
}

TEST_F(GpuLibraries, F32IsNotComputedInLess) {
  Gpu gpu(device_);
  gpu.enter();
  for (const auto& library : MatrixLibrary::of(device_.kind)) {
    EXPECT_TRUE(check(gpu, library.get(), DType::f32, {64, 64, 512, 1, 0, false}, false, true));
    library->release(device_);
  }
}

TEST_F(GpuLibraries, WhatCannotBeDoneIsLeft) {
  Gpu gpu(device_);
  gpu.enter();
  MatrixLibrary& library = *MatrixLibrary::of(device_.kind).front();
  GemmCall call;
  call.m = call.n = call.batch = 1;
  EXPECT_FALSE(library.gemm(device_, call, gpu.stream())) << "k = 0: zeros are to be written";
  call.k = call.lda = call.ldb = call.ldc = 1;
  call.dtype = DType::f64;
  EXPECT_FALSE(library.gemm(device_, call, gpu.stream()));
  call.dtype = DType::f32;
  EXPECT_FALSE(library.gemm(Device::cpu(), call, gpu.stream()));
  call.m = int64_t{1} << 40;
  EXPECT_FALSE(library.gemm(device_, call, gpu.stream()));
  call.m = 0;
  EXPECT_TRUE(library.gemm(device_, call, gpu.stream())) << "nothing to do";
  call.m = 2, call.n = 3;
  EXPECT_EQ(
      error_of([&] { library.gemm(device_, call, gpu.stream()); }),
      "gemm: rows or matrices overlap: m 2 n 3 k 1 batch 1: rows 1 1 1, matrices 0 0 0 apart");
  call.ldb = call.ldc = 3, call.batch = 2, call.stride_c = 5;
  EXPECT_THAT(error_of([&] { library.gemm(device_, call, gpu.stream()); }),
              HasSubstr("matrices 0 0 5 apart"));
}

/// Whether a variable names a stand-in for a library, not a real one.
bool is_stand_in(const char* variable) {
  const char* const file = std::getenv(variable);
  return file != nullptr && std::string_view(file).find("stand_in") != std::string_view::npos;
}

TEST_F(GpuLibraries, TheNextOneDoesWhatTheFirstDeclines) {
  if (!is_stand_in("WICK_HIPBLASLT_LIBRARY")) {
    GTEST_SKIP() << "only stand-ins decline on request";
  }
  Gpu gpu(device_);
  gpu.enter();
  const Shape shape{13, 4, 8, 1, 0, false};  // a shape that the first stand-in doesn't support
  const auto& all = MatrixLibrary::of(device_.kind);
  EXPECT_FALSE(check(gpu, all[0].get(), DType::f16, shape, false, false));
  EXPECT_TRUE(check(gpu, nullptr, DType::f16, shape, false, false));
  setenv("WICK_GPU_LIBRARIES", "off", 1);
  EXPECT_FALSE(check(gpu, nullptr, DType::f16, shape, false, false));
  unsetenv("WICK_GPU_LIBRARIES");
  for (const auto& library : all) library->release(device_);
}

TEST_F(GpuLibraries, OnlyAmdADeviceWithoutKernelsIsNamedOnce) {
  if (device_.kind != DeviceKind::hip)
    GTEST_SKIP() << "AMD's libraries alone keep kernels in files";
  Gpu gpu(device_);
  gpu.enter();
  for (const auto& library : MatrixLibrary::of(device_.kind)) {
    library->release(device_);
    const char* variable =
        library->name == "rocBLAS" ? "ROCBLAS_TENSILE_LIBPATH" : "HIPBLASLT_TENSILE_LIBPATH";
    const char* const chosen = std::getenv(variable);  // real libraries need none
    const std::string before = chosen == nullptr ? "" : chosen;
    setenv(variable, "/none", 1);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(check(gpu, library.get(), DType::f32, kShapes[1], false, false));
    }
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "wick: hip:0: " + library->name + " isn't used: no kernels in /none\n");
    if (chosen == nullptr) unsetenv(variable);
    if (chosen != nullptr) setenv(variable, before.c_str(), 1);
    library->release(device_);
  }
}

TEST_F(GpuLibraries, AreNamedWithTheirReleases) {
  for (const auto& library : MatrixLibrary::of(device_.kind)) {
    EXPECT_THAT(library->version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"))
        << library->name;
    EXPECT_FALSE(library->library.empty());
    if (device_.kind == DeviceKind::hip && is_stand_in("WICK_ROCBLAS_LIBRARY")) {
      EXPECT_EQ(library->version(), library->name == "rocBLAS" ? "4.2.1" : "0.10.2");
    }
  }
}

/// The stand-ins must report what a program does wrong, otherwise these tests would prove nothing.
TEST_F(GpuLibraries, OnlyAmdStandInsComplain) {
  const char *rocblas = std::getenv("WICK_ROCBLAS_LIBRARY"),
             *lt = std::getenv("WICK_HIPBLASLT_LIBRARY");
  if (!is_stand_in("WICK_ROCBLAS_LIBRARY") || !is_stand_in("WICK_HIPBLASLT_LIBRARY")) {
    GTEST_SKIP() << "no stand-ins are named";
  }
  Gpu gpu(device_);
  gpu.enter();
  const auto symbol = [](const char* file, const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(dlopen(file, RTLD_NOW), name));
    ASSERT_NE(function, nullptr) << name;
  };
  int (*create)(void**);
  int (*destroy)(void*);
  int (*set_stream)(void*, void*);
  int (*gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, int64_t,
              const void*, int, int, int64_t, const void*, const void*, int, int, int64_t, void*,
              int, int, int64_t, int, int, int, int32_t, uint32_t);
  symbol(rocblas, "rocblas_create_handle", create);
  symbol(rocblas, "rocblas_destroy_handle", destroy);
  symbol(rocblas, "rocblas_set_stream", set_stream);
  symbol(rocblas, "rocblas_gemm_strided_batched_ex", gemm);
  void *handle = nullptr, *data = gpu.pool.take(4096);
  ASSERT_EQ(create(&handle), 0);
  const float one = 1, zero = 0;
  const auto complaint = [&](int lda, int compute, void* c) {
    testing::internal::CaptureStderr();
    EXPECT_NE(gemm(handle, 111, 111, 4, 4, 4, &one, data, 151, lda, 16, data, 151, 4, 16, &zero, c,
                   151, 4, 16, c, 151, 4, 16, 1, compute, 0, 0, 0),
              0);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(complaint(4, 151, data), HasSubstr("no stream was set"));
  ASSERT_EQ(set_stream(handle, gpu.stream()), 0);
  EXPECT_THAT(complaint(3, 151, data), HasSubstr("a leading dimension is less than the rows"));
  EXPECT_THAT(complaint(4, 150, data), HasSubstr("the compute type isn't f32"));
  EXPECT_THAT(complaint(4, 151, nullptr), HasSubstr("a pointer is null"));
  float on_host[16] = {};
  EXPECT_THAT(complaint(4, 151, on_host), HasSubstr("not all of a matrix is on the device"));
  ASSERT_EQ(destroy(handle), 0);
  EXPECT_THAT(complaint(4, 151, data), HasSubstr("was destroyed"));
  gpu.pool.give(data);

  int (*layout)(void**, int, uint64_t, uint64_t, int64_t);
  int (*product)(void**, int, int);
  symbol(lt, "hipblasLtMatrixLayoutCreate", layout);
  symbol(lt, "hipblasLtMatmulDescCreate", product);
  testing::internal::CaptureStderr();
  EXPECT_NE(layout(&handle, 0, 8, 4, 7), 0);
  EXPECT_NE(product(&handle, 0, 2), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("a leading dimension is less than the rows"));
  EXPECT_THAT(said, HasSubstr("the compute type isn't f32"));
}

TEST(GpuLibraryFiles, DebiansFoldersHaveAVersion) {
  namespace fs = std::filesystem;
  std::string folder = testing::TempDir() + "wick-rocblas-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const fs::path home = fs::canonical(folder);
  for (const char* version : {"4.4.1", "5", "44"}) {
    fs::create_directories(home / "rocblas" / version / "library");
  }
  const auto folders = [&](const char* file) {
    std::ofstream(home / file).put('\n');
    return kernel_folders((home / file).string(), "rocblas/library");
  };
  const std::string plain = (home / "rocblas/library").string();
  EXPECT_THAT(folders("librocblas.so.4.4"),
              testing::ElementsAre(plain, (home / "rocblas/4.4.1/library").string()));
  EXPECT_THAT(folders("librocblas.so.5"),
              testing::ElementsAre(plain, (home / "rocblas/5/library").string()));
  EXPECT_THAT(folders("librocblas.so.6"), testing::ElementsAre(plain));
  EXPECT_THAT(folders("librocblas.so"), testing::ElementsAre(plain));
  fs::remove_all(home);
}

TEST(GpuLibraryFiles, KernelsAreFoundByTheirArchitecture) {
  std::string folder = testing::TempDir() + "wick-tensile-XXXXXX", reason;
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  setenv("WICK_TEST_TENSILE", folder.c_str(), 1);
  const auto has = [&](const char* architecture) {
    return has_kernel_files(nullptr, "WICK_TEST_TENSILE", "", architecture, reason);
  };
  EXPECT_FALSE(has("gfx1100"));
  EXPECT_EQ(reason, "no kernels in " + folder);
  std::ofstream(folder + "/TensileLibrary_lazy_gfx1100.dat");
  std::ofstream(folder + "/Kernels.so-000-gfx1103.hsaco");
  EXPECT_TRUE(has("gfx1100"));
  EXPECT_FALSE(has("gfx110"));
  EXPECT_FALSE(has("gfx1103"));
  EXPECT_EQ(reason, "no kernels for gfx1103 in " + folder);
  std::ofstream(folder + "/TensileLibrary.dat");
  EXPECT_TRUE(has("gfx1103"));
  fs::remove_all(folder);
  EXPECT_FALSE(has("gfx1100"));
}

TEST(GpuLibraryUse, IsChosenByName) {
  unsetenv("WICK_GPU_LIBRARIES");
  EXPECT_EQ(library_use(), LibraryUse::automatic);
  setenv("WICK_GPU_LIBRARIES", "only", 1);
  EXPECT_EQ(library_use(), LibraryUse::only);
  setenv("WICK_GPU_LIBRARIES", "always", 1);
  EXPECT_EQ(error_of([] { library_use(); }),
            "WICK_GPU_LIBRARIES: no such choice: 'always': use off, auto, only");
  unsetenv("WICK_GPU_LIBRARIES");
}

}  // namespace
}  // namespace wick::gpu
