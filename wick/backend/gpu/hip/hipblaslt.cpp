// hipBLASLt: names of functions and values of constants. Source: its API reference, 0.6 (ROCm 6.0)
// and later. Earlier releases number types differently.

#include <fmt/format.h>

#include "wick/backend/gpu/hip/libraries.h"
#include "wick/backend/gpu/linear/lt_library.h"

namespace wick::gpu {
namespace {

constexpr LtApiNames kNames = {
    .create = "hipblasLtCreate",
    .destroy = "hipblasLtDestroy",
    .layout_create = "hipblasLtMatrixLayoutCreate",
    .layout_destroy = "hipblasLtMatrixLayoutDestroy",
    .layout_set = "hipblasLtMatrixLayoutSetAttribute",
    .gemm_create = "hipblasLtMatmulDescCreate",
    .gemm_destroy = "hipblasLtMatmulDescDestroy",
    .gemm_set = "hipblasLtMatmulDescSetAttribute",
    .preference_create = "hipblasLtMatmulPreferenceCreate",
    .preference_destroy = "hipblasLtMatmulPreferenceDestroy",
    .preference_set = "hipblasLtMatmulPreferenceSetAttribute",
    .choose = "hipblasLtMatmulAlgoGetHeuristic",
    .multiply = "hipblasLtMatmul",
};
static_assert(complete(kNames));

constexpr LtNumbers kNumbers = {.f32 = 0,
                                .f16 = 2,
                                .bf16 = 14,
                                .compute_f32 = 2,
                                .compute_fast = 2,
                                .no_transpose = 111,
                                .transpose = 112,
                                .batch_count = 0,
                                .batch_stride = 1,
                                .transpose_first = 0,
                                .transpose_second = 1,
                                .workspace_bytes = 1,
                                .alignments = -1};

constexpr int kOldest = 600;

class HipblasLt final : public LtLibrary {
 public:
  using Version = int(void* handle, int* version);
  HipblasLt(const LtApi& functions, Version* get_version, std::string file)
      : LtLibrary(DeviceKind::hip, "hipBLASLt", std::move(file), functions, kNumbers),
        version_(get_version) {}

  std::string version() const override {
    std::string ignored;
    if (!has_files(wick::Device{DeviceKind::hip, 0}, ignored)) return "";
    const int number = version_number();
    return fmt::format("{}.{}.{}", number / 100'000, number / 100 % 1000, number % 100);
  }

 private:
  bool has_files(wick::Device device, std::string& reason) const {
    return has_kernel_files(reinterpret_cast<const void*>(version_), "HIPBLASLT_TENSILE_LIBPATH",
                            "hipblaslt/library", driver().info(device.index).architecture, reason);
  }

  bool usable(wick::Device device, std::string& reason) const override {
    if (!has_files(device, reason)) return false;
    const int number = version_number();
    if (number < kOldest) reason = fmt::format("its release {} is too old", number);
    return number >= kOldest;
  }

  /// The library's version; it is read through a handle.
  int version_number() const {
    void* handle = nullptr;
    int number = 0;
    if (api_.create(&handle) != 0) return 0;
    version_(handle, &number);
    api_.destroy(handle);
    return number;
  }

  Version* const version_;
};

}  // namespace

std::unique_ptr<MatrixLibrary> open_hipblaslt(std::string& trace) {
  const auto library = Library::open_chosen("WICK_HIPBLASLT_LIBRARY",
                                            {"libhipblaslt.so.1", "libhipblaslt.so.0"}, trace);
  LtApi api;
  HipblasLt::Version* version = nullptr;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_function(*library, "hipblasLtGetVersion", version, trace)) {
    return nullptr;
  }
  return std::make_unique<HipblasLt>(api, version, library->file());
}

}  // namespace wick::gpu
