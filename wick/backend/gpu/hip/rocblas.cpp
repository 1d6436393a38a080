// rocBLAS: names of functions and values of constants. Source: its API reference, ROCm 6.0 and
// later.

#include <fmt/format.h>

#include <cstring>

#include "wick/backend/gpu/hip/libraries.h"
#include "wick/backend/gpu/linear/matrix_library.h"

namespace wick::gpu {
namespace {

enum Number : int {
  kNoTranspose = 111,
  kTranspose = 112,
  kF16 = 150,
  kF32 = 151,
  kBf16 = 168,
  kHostPointers = 0,
  kNoAtomics = 0,
  kStandardAlgorithm = 0,
};

struct Functions {
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*set_pointer_mode)(void* handle, int mode);
  int (*set_atomics_mode)(void* handle, int mode);
  int (*version)(char* text, size_t bytes);
  const char* (*status_text)(int status);
  /// d = alpha · op(a) · op(b) + beta · c for each matrix of a batch, column-major.
  int (*gemm)(void* handle, int op_a, int op_b, int m, int n, int k, const void* alpha,
              const void* a, int a_type, int lda, int64_t stride_a, const void* b, int b_type,
              int ldb, int64_t stride_b, const void* beta, const void* c, int c_type, int ldc,
              int64_t stride_c, void* d, int d_type, int ldd, int64_t stride_d, int batch,
              int compute_type, int algorithm, int32_t solution, uint32_t flags);
};

class Rocblas final : public MatrixLibrary {
 public:
  Rocblas(const Functions& functions, std::string file)
      : MatrixLibrary(DeviceKind::hip, "rocBLAS", std::move(file)), api_(functions) {}

  std::string version() const override {
    char text[128] = {};
    if (api_.version(text, sizeof text) != 0) return "";
    // "4.4.0.64143-31b0ba4c": the release is the part before the third dot.
    std::string_view all(text, strnlen(text, sizeof text));
    size_t end = 0;
    for (int dots = 0; end < all.size(); ++end) {
      if (all[end] == '.' && ++dots == 3) break;
    }
    return std::string(all.substr(0, end));
  }

 private:
  /// The device's only handle, because each handle allocates device memory.
  class Handle final : public OnDevice {
   public:
    Handle(const Functions& functions, void* handle) : api_(functions), handle_(handle) {}
    ~Handle() override { api_.destroy(handle_); }

    bool gemm(const GemmCall& call, void* stream) override {
      if (api_.set_stream(handle_, stream) != 0) return false;
      const ColumnMajorGemm g(call);
      const int type = call.dtype == DType::f32 ? kF32 : call.dtype == DType::f16 ? kF16 : kBf16;
      const auto operation = [](bool transposed) { return transposed ? kTranspose : kNoTranspose; };
      const auto small = [](int64_t size) { return static_cast<int>(size); };
      const float one = 1, zero = 0;
      return api_.gemm(handle_, operation(g.first.transposed), operation(g.second.transposed),
                       small(g.rows), small(g.cols), small(g.inner), &one, g.first.data, type,
                       small(g.first.ld), g.first.stride, g.second.data, type, small(g.second.ld),
                       g.second.stride, &zero, g.out, type, small(g.ld), g.stride, g.out, type,
                       small(g.ld), g.stride, small(g.batch), kF32, kStandardAlgorithm, 0, 0) == 0;
    }

   private:
    const Functions& api_;
    void* const handle_;
  };

  std::unique_ptr<OnDevice> prepare(Device device, std::string& reason) override {
    if (!has_kernel_files(reinterpret_cast<const void*>(api_.gemm), "ROCBLAS_TENSILE_LIBPATH",
                          "rocblas/library", driver().info(device.index).architecture, reason)) {
      return nullptr;
    }
    void* handle = nullptr;
    int status = api_.create(&handle);
    if (status == 0) {
      auto made = std::make_unique<Handle>(api_, handle);
      status = api_.set_pointer_mode(handle, kHostPointers);
      // Without atomics the same gemm has the same bits each time.
      if (status == 0) status = api_.set_atomics_mode(handle, kNoAtomics);
      if (status == 0) return made;
    }
    const char* words = api_.status_text(status);
    reason = words == nullptr ? fmt::format("status {}", status) : words;
    return nullptr;
  }

  const Functions api_;
};

bool find_functions(const Library& library, Functions& api, std::string& trace) {
  const auto find = [&](auto& function, const char* name) {
    return find_function(library, name, function, trace);
  };
  return find(api.create, "rocblas_create_handle") && find(api.destroy, "rocblas_destroy_handle") &&
         find(api.set_stream, "rocblas_set_stream") &&
         find(api.set_pointer_mode, "rocblas_set_pointer_mode") &&
         find(api.set_atomics_mode, "rocblas_set_atomics_mode") &&
         find(api.version, "rocblas_get_version_string") &&
         find(api.status_text, "rocblas_status_to_string") &&
         find(api.gemm, "rocblas_gemm_strided_batched_ex");
}

std::unique_ptr<MatrixLibrary> open_rocblas(std::string& trace) {
  const auto library =
      Library::open_chosen("WICK_ROCBLAS_LIBRARY", {"librocblas.so.5", "librocblas.so.4"}, trace);
  Functions api;
  if (library == nullptr || !find_functions(*library, api, trace)) return nullptr;
  return std::make_unique<Rocblas>(api, library->file());
}

}  // namespace

std::vector<KnownLibrary> hip_libraries() {
  return {{"hipBLASLt", open_hipblaslt}, {"rocBLAS", open_rocblas}};
}

}  // namespace wick::gpu
