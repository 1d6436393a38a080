// NVIDIA's run-time compiler: names of functions, and options. Source: NVRTC's documentation, 11.2
// and later.

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/compile/compiler.h"
#include "wick/backend/gpu/compile/kernel_cache.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

constexpr CompilerApiNames kNames = {
    .version = "nvrtcVersion",
    .create = "nvrtcCreateProgram",
    .destroy = "nvrtcDestroyProgram",
    .compile = "nvrtcCompileProgram",
    .log_size = "nvrtcGetProgramLogSize",
    .log = "nvrtcGetProgramLog",
    .code_size = "nvrtcGetCUBINSize",
    .code = "nvrtcGetCUBIN",
    .error_text = "nvrtcGetErrorString",
};
static_assert(complete(kNames));

/// Functions that only this vendor has.
struct Extra {
  int (*ptx_size)(void* program, size_t* bytes);
  int (*ptx)(void* program, char* text);
  int (*architecture_count)(int* count);
  int (*architectures)(int* numbers);
};

/// From this architecture on, some features need code for exactly one architecture ("sm_90a").
constexpr int kFirstExact = 90;

class CudaCompiler final : public Compiler {
 public:
  CudaCompiler(const CompilerApi& functions, const Extra& extra, std::string file)
      : Compiler(functions, std::move(file), "NVRTC " + release_of(functions)), extra_(extra) {
    int count = 0;
    if (extra_.architecture_count(&count) != 0 || count <= 0) return;
    known_.resize(static_cast<size_t>(count));
    if (extra_.architectures(known_.data()) != 0) known_.clear();
    std::sort(known_.begin(), known_.end());
  }

  /// Machine code for the device's architecture. For a device that is newer than the compiler, PTX,
  /// which the driver compiles.
  CompilerTarget target(std::string_view architecture) const override {
    const int number = cuda_number(architecture);
    const auto above = std::upper_bound(known_.begin(), known_.end(), number);
    const int known = above == known_.begin() ? number : *(above - 1);
    CompilerTarget target;
    target.architecture = known == number
                              ? fmt::format("sm_{}{}", number, number >= kFirstExact ? "a" : "")
                              : fmt::format("compute_{}", known);
    // There is no host code, so functions and lambdas without an annotation are device code.
    target.options = {"--gpu-architecture=" + target.architecture,
                      "--std=c++20",
                      "--device-as-default-execution-space",
                      "--fmad=false",
                      "--ftz=false",
                      "--prec-div=true",
                      "--prec-sqrt=true"};
    return target;
  }

 private:
  std::string code(void* program, const KernelSource& source,
                   const CompilerTarget& target) const override {
    if (target.architecture.starts_with("compute_")) {
      return read(program, extra_.ptx_size, extra_.ptx, source);
    }
    return read(program, api_.code_size, api_.code, source);
  }

  const Extra extra_;
  std::vector<int> known_;
};

/// The library names to try, beginning with the newest release whose code the driver accepts.
/// Besides the system's search path they include the toolkit's usual folder and the one that
/// tools/install_cuda.py fills.
std::vector<std::string> names(std::string& trace) {
  if (const std::string_view chosen = environment("WICK_NVRTC_LIBRARY"); !chosen.empty()) {
    return {std::string(chosen)};
  }
  int version = 0;
  if (const Driver* driver = Driver::of(DeviceKind::cuda)) driver->api.driver_version(&version);
  std::vector<std::string> all;
  for (const int major : {13, 12, 11}) {
    const std::string file =
        fmt::format("libnvrtc.so.{}", major == 11 ? "11.2" : fmt::to_string(major));
    if (version != 0 && version / 1000 < major) {
      trace += fmt::format("{}{}: the driver is older", trace.empty() ? "" : "; ", file);
      continue;
    }
    all.insert(all.end(), {file, "/usr/local/cuda/lib64/" + file});
    const std::filesystem::path cache = user_cache_folder();
    if (cache.empty()) continue;
    all.push_back((cache / fmt::format("wick/cuda/nvidia/cu{}/lib", major) / file).string());
  }
  return all;
}

bool find_extra(const Library& library, Extra& extra, std::string& trace) {
  return find_function(library, "nvrtcGetPTXSize", extra.ptx_size, trace) &&
         find_function(library, "nvrtcGetPTX", extra.ptx, trace) &&
         find_function(library, "nvrtcGetNumSupportedArchs", extra.architecture_count, trace) &&
         find_function(library, "nvrtcGetSupportedArchs", extra.architectures, trace);
}

/// NVRTC loads its builtins library by name alone. If that lies in a folder that the system doesn't
/// search, it is found only if it is loaded already.
void open_builtins(const std::string& library, const CompilerApi& api) {
  const size_t folder = library.rfind('/');
  if (folder == std::string::npos) return;
  std::string ignored;
  Library::open(
      {fmt::format("{}/libnvrtc-builtins.so.{}", library.substr(0, folder), release_of(api))},
      ignored);
}

}  // namespace

std::unique_ptr<Compiler> open_cuda_compiler(std::string& trace) {
  const auto library = Library::open(names(trace), trace);
  CompilerApi api;
  Extra extra;
  if (library == nullptr || !find_functions(*library, kNames, api, trace) ||
      !find_extra(*library, extra, trace)) {
    return nullptr;
  }
  open_builtins(library->file(), api);
  return std::make_unique<CudaCompiler>(api, extra, library->file());
}

}  // namespace wick::gpu
