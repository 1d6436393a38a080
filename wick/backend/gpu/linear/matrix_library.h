#pragma once

// Vendors' libraries of matrix products, found at run time like their drivers. They are never
// needed: where one is missing, or has no kernel for a device or a shape, wick's own serve.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "wick/backend/gpu/driver/driver.h"
#include "wick/base/dtype.h"

namespace wick::gpu {

/// c = a · b for each matrix of a batch, all row-major and of one dtype: a is [m, k], b [k, n] and
/// c [m, n]. A transposed operand is stored the other way round: a [k, m], b [n, k].
struct GemmCall {
  DType dtype = DType::f32;  ///< f32, f16 or bf16; computed in f32, without TF32
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_transposed = false, b_transposed = false;
  int64_t lda = 0, ldb = 0, ldc = 0;  ///< elements from one stored row to the next
  int64_t stride_a = 0, stride_b = 0,
          stride_c = 0;  ///< from one matrix to the next; a, b: may be 0
};

/// The same for libraries that count columns first: cᵀ = bᵀ · aᵀ, without moving anything.
struct ColumnMajorGemm {
  struct Operand {
    const void* data;
    bool transposed;
    int64_t rows, cols, ld, stride;  ///< as stored
  };
  explicit ColumnMajorGemm(const GemmCall& call);
  Operand first, second;
  void* out;
  int64_t rows, cols, inner, ld, stride, batch;
};

/// WICK_GPU_LIBRARIES: `off`, never; `auto`, where they are likely to be faster; `only`, wherever
/// they can.
enum class LibraryUse { off, automatic, only };
/// Errors: the variable holds something else.
LibraryUse library_use();

class MatrixLibrary {
 public:
  virtual ~MatrixLibrary() = default;
  MatrixLibrary(const MatrixLibrary&) = delete;
  MatrixLibrary& operator=(const MatrixLibrary&) = delete;

  /// The libraries that are there for a kind of device, the better ones first. Loaded at the first
  /// call, once.
  static const std::vector<std::unique_ptr<MatrixLibrary>>& of(DeviceKind kind);
  struct Missing {
    std::string name, reason;
  };
  /// Those that aren't there, and why.
  static const std::vector<Missing>& missing(DeviceKind kind);

  /// "rocBLAS"
  const std::string name;
  /// The file that was loaded.
  const std::string library;
  /// "4.4.1"; empty where it can't be told.
  virtual std::string version() const = 0;

  /// Puts the product on a stream of the device, which is the calling thread's. Products of a
  /// device follow each other: they share memory, on one stream and in graphs that it launches.
  /// False where the library can't do it; nothing has been done then. A device that it has no
  /// kernels for is named once on stderr. Errors: matrices that overlap themselves.
  bool gemm(Device device, const GemmCall& call, void* stream);
  /// Gives back what the library holds on a device: handle and workspace. Its work has ended.
  void release(Device device);

 protected:
  MatrixLibrary(DeviceKind kind, std::string what, std::string file)
      : name(std::move(what)), library(std::move(file)), kind_(kind) {}

  /// What a library holds on a device.
  class OnDevice {
   public:
    virtual ~OnDevice() = default;
    virtual bool gemm(const GemmCall& call, void* stream) = 0;
  };
  Driver& driver() const { return *Driver::of(kind_); }

 private:
  /// Prepares a device; null with a reason where the library can't be used there.
  virtual std::unique_ptr<OnDevice> prepare(Device device, std::string& reason) = 0;

  const DeviceKind kind_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<OnDevice>> devices_;
};

/// The first of the libraries that does it; see MatrixLibrary::gemm. Not asked where
/// WICK_GPU_LIBRARIES is off.
bool library_gemm(Device device, const GemmCall& call, void* stream);

/// Whether a library that keeps its kernels in files beside it, as AMD's do, has some for an
/// architecture; those libraries end the process where there are none. `variable` names another
/// folder than `beside` the library's file.
bool has_kernel_files(const void* function, const char* variable, std::string_view beside,
                      std::string_view architecture, std::string& reason);

/// A library that may be there; `open` gives null with a reason in `trace`.
struct KnownLibrary {
  const char* name;
  std::unique_ptr<MatrixLibrary> (*open)(std::string& trace);
};
/// Each vendor's, the better ones first.
std::vector<KnownLibrary> cuda_libraries();
std::vector<KnownLibrary> hip_libraries();

}  // namespace wick::gpu
