// cuBLASLt: names of functions and values of constants. Source: the cuBLAS library's documentation,
// 12.0 and later.

#include <fmt/format.h>

#include "wick/backend/gpu/linear/lt_library.h"

namespace wick::gpu {
namespace {

constexpr LtApiNames kNames = {
    .create = "cublasLtCreate",
    .destroy = "cublasLtDestroy",
    .layout_create = "cublasLtMatrixLayoutCreate",
    .layout_destroy = "cublasLtMatrixLayoutDestroy",
    .layout_set = "cublasLtMatrixLayoutSetAttribute",
    .gemm_create = "cublasLtMatmulDescCreate",
    .gemm_destroy = "cublasLtMatmulDescDestroy",
    .gemm_set = "cublasLtMatmulDescSetAttribute",
    .preference_create = "cublasLtMatmulPreferenceCreate",
    .preference_destroy = "cublasLtMatmulPreferenceDestroy",
    .preference_set = "cublasLtMatmulPreferenceSetAttribute",
    .choose = "cublasLtMatmulAlgoGetHeuristic",
    .multiply = "cublasLtMatmul",
};
static_assert(complete(kNames));

constexpr LtNumbers kNumbers = {.f32 = 0,
                                .f16 = 2,
                                .bf16 = 14,
                                .compute_f32 = 68,
                                .compute_fast = 77,
                                .no_transpose = 0,
                                .transpose = 1,
                                .batch_count = 5,
                                .batch_stride = 6,
                                .transpose_first = 3,
                                .transpose_second = 4,
                                .workspace_bytes = 1,
                                .alignments = 5};

class CublasLt final : public LtLibrary {
 public:
  CublasLt(const LtApi& functions, size_t (*get_version)(), std::string file)
      : LtLibrary(DeviceKind::cuda, "cuBLASLt", std::move(file), functions, kNumbers),
        version_(get_version) {}

  std::string version() const override {
    const size_t number = version_();
    const size_t major = number >= 100'000 ? number / 10'000 : number / 1'000;
    return fmt::format("{}.{}.{}", major, number / 100 % (number >= 100'000 ? 100 : 10),
                       number % 100);
  }

 private:
  bool usable(wick::Device, std::string&) const override { return true; }

  size_t (*const version_)();
};

std::unique_ptr<MatrixLibrary> open_cublaslt(std::string& trace) {
  const auto library = Library::open_chosen("WICK_CUBLASLT_LIBRARY",
                                            {"libcublasLt.so.13", "libcublasLt.so.12"}, trace);
  LtApi api;
  size_t (*version)() = nullptr;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_function(*library, "cublasLtGetVersion", version, trace)) {
    return nullptr;
  }
  return std::make_unique<CublasLt>(api, version, library->file());
}

}  // namespace

std::vector<KnownLibrary> cuda_libraries() { return {{"cuBLASLt", open_cublaslt}}; }

}  // namespace wick::gpu
