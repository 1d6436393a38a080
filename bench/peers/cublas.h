#pragma once

// NVIDIA's matrix products, loaded at run time if they are installed, for comparison. Source:
// documentation of the cuBLAS library, 12 and 13.

#include <dlfcn.h>

#include <memory>
#include <string>

#include "wick/base/dtype.h"

namespace wick::bench {

class Cublas {
 public:
  /// Returns null if the library isn't installed. Work is queued on the stream.
  static std::unique_ptr<Cublas> open(void* stream) {
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
      void* const library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
      if (library == nullptr) continue;
      std::unique_ptr<Cublas> cublas(new Cublas);
      const auto find = [&](auto& function, const char* symbol) {
        function =
            reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
        return function != nullptr;
      };
      if (find(cublas->create_, "cublasCreate_v2") && find(cublas->gemm_, "cublasGemmEx") &&
          find(cublas->set_stream_, "cublasSetStream_v2") &&
          cublas->create_(&cublas->handle_) == 0 &&
          cublas->set_stream_(cublas->handle_, stream) == 0) {
        return cublas;
      }
    }
    return nullptr;
  }

  /// Computes out [m, n] = a [m, k] @ b [k, n], all row-major; `a_turned` and `b_turned` mean that
  /// an operand is stored transposed. Supports f16, bf16 and f32 with sums in f32. Returns false if
  /// the library can't do it.
  bool multiply(DType dtype, bool a_turned, bool b_turned, int m, int n, int k, const void* a,
                const void* b, void* out) {
    constexpr int kF32 = 0, kF16 = 2, kBf16 = 14, kComputeF32 = 68, kDefault = -1;
    const int type = dtype == DType::f32 ? kF32 : dtype == DType::f16 ? kF16 : kBf16;
    const float one = 1, zero = 0;
    // The library is column-major, so this computes outᵀ = bᵀ aᵀ.
    return gemm_(handle_, b_turned ? 1 : 0, a_turned ? 1 : 0, n, m, k, &one, b, type,
                 b_turned ? k : n, a, type, a_turned ? m : k, &zero, out, type, n, kComputeF32,
                 kDefault) == 0;
  }

 private:
  Cublas() = default;
  int (*create_)(void** handle) = nullptr;
  int (*set_stream_)(void* handle, void* stream) = nullptr;
  int (*gemm_)(void* handle, int turn_a, int turn_b, int m, int n, int k, const void* alpha,
               const void* a, int a_type, int lda, const void* b, int b_type, int ldb,
               const void* beta, void* c, int c_type, int ldc, int compute,
               int algorithm) = nullptr;
  void* handle_ = nullptr;
};

}  // namespace wick::bench
