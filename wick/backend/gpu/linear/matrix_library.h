#pragma once

// Vendors' gemm libraries, loaded at run time like their drivers. They are optional: if one is
// missing, or has no kernel for a device or a shape, wick's kernels are used.

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

/// c = a · b for each matrix of a batch, all row-major and of one dtype: a is [m, k], b is [k, n]
/// and c is [m, n]. A transposed operand is stored as a [k, m] or b [n, k].
struct GemmCall {
  DType dtype = DType::f32;  ///< f32, f16 or bf16; computed in f32
  bool fast = false;         ///< operands of f32 may be rounded to TF32
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_transposed = false, b_transposed = false;
  int64_t lda = 0, ldb = 0, ldc = 0;  ///< elements from one stored row to the next
  int64_t stride_a = 0, stride_b = 0,
          stride_c = 0;  ///< elements from one matrix to the next; 0 is allowed for a and b
};

/// A GemmCall for column-major libraries: cᵀ = bᵀ · aᵀ, without moving any data.
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

/// WICK_GPU_LIBRARIES: `off` never uses libraries, `auto` where they are likely to be faster,
/// `only` wherever they can compute the gemm.
enum class LibraryUse { off, automatic, only };
/// Errors: the variable has another value.
LibraryUse library_use();

class MatrixLibrary {
 public:
  virtual ~MatrixLibrary() = default;
  MatrixLibrary(const MatrixLibrary&) = delete;
  MatrixLibrary& operator=(const MatrixLibrary&) = delete;

  /// The libraries for a kind of device, in order of preference. The first call loads them.
  static const std::vector<std::unique_ptr<MatrixLibrary>>& of(DeviceKind kind);
  struct Missing {
    std::string name, reason;
  };
  /// The libraries that couldn't be loaded, with the reasons.
  static const std::vector<Missing>& missing(DeviceKind kind);

  /// For example "rocBLAS".
  const std::string name;
  /// The file that was loaded.
  const std::string library;
  /// For example "4.4.1"; empty if it is unknown.
  virtual std::string version() const = 0;

  /// Launches a gemm on a stream of the device, which must be the calling thread's current one.
  /// Gemms of a device must run one after another, on one stream or in graphs launched on it,
  /// because they share a workspace. Returns false, and does nothing, if the library can't compute
  /// it. A device without kernels is reported once on stderr. Errors: matrices overlap themselves.
  bool gemm(Device device, const GemmCall& call, void* stream);
  /// Frees the library's handle and workspace on a device. Its work must have completed.
  void release(Device device);

 protected:
  MatrixLibrary(DeviceKind kind, std::string what, std::string file)
      : name(std::move(what)), library(std::move(file)), kind_(kind) {}

  /// A library's state on a device.
  class OnDevice {
   public:
    virtual ~OnDevice() = default;
    virtual bool gemm(const GemmCall& call, void* stream) = 0;
  };
  Driver& driver() const { return *Driver::of(kind_); }

 private:
  /// Prepares a device. Null, with a reason, if the library can't be used on it.
  virtual std::unique_ptr<OnDevice> prepare(Device device, std::string& reason) = 0;

  const DeviceKind kind_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<OnDevice>> devices_;
};

/// Calls the libraries in order until one computes the gemm; see MatrixLibrary::gemm. False if
/// WICK_GPU_LIBRARIES is off.
bool library_gemm(Device device, const GemmCall& call, void* stream);

/// The folders in which the kernels of a library may be: `beside` ("rocblas/library") next to its
/// file, as in AMD's packages, and "rocblas/VERSION/library", as in Debian's, for versions that
/// begin with the number in the file's name.
std::vector<std::string> kernel_folders(const std::string& library, std::string_view beside);

/// Whether a library that keeps its kernels in separate files, as AMD's libraries do, has files for
/// an architecture. Those libraries abort the process if there are none. `beside` is the folder
/// relative to the library's file; the environment variable `variable` overrides it.
bool has_kernel_files(const void* function, const char* variable, std::string_view beside,
                      std::string_view architecture, std::string& reason);

/// A library that may be installed. `open` returns null, with a reason in `trace`, if it isn't.
struct KnownLibrary {
  const char* name;
  std::unique_ptr<MatrixLibrary> (*open)(std::string& trace);
};
/// Each vendor's libraries, in order of preference.
std::vector<KnownLibrary> cuda_libraries();
std::vector<KnownLibrary> hip_libraries();

}  // namespace wick::gpu
