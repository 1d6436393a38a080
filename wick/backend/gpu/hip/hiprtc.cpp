// AMD's run-time compiler: names of functions, and options. Source: hipRTC's documentation, 5.2 and
// later.

#include <fmt/format.h>

#include "wick/backend/gpu/compile/compiler.h"
#include "wick/base/environment.h"

namespace wick::gpu {
namespace {

constexpr CompilerApiNames kNames = {
    .version = "hiprtcVersion",
    .create = "hiprtcCreateProgram",
    .destroy = "hiprtcDestroyProgram",
    .compile = "hiprtcCompileProgram",
    .log_size = "hiprtcGetProgramLogSize",
    .log = "hiprtcGetProgramLog",
    .code_size = "hiprtcGetCodeSize",
    .code = "hiprtcGetCode",
    .error_text = "hiprtcGetErrorString",
};
static_assert(complete(kNames));

class HipCompiler final : public Compiler {
 public:
  HipCompiler(const CompilerApi& functions, std::string file, std::string release)
      : Compiler(functions, std::move(file), std::move(release)) {}

  CompilerTarget target(std::string_view architecture) const override {
    CompilerTarget target;
    target.architecture = architecture;
    // device.h reads the hidden kernel arguments of code object version 5.
    target.options = {fmt::format("--offload-arch={}", architecture), "-std=c++20", "-O3",
                      "-ffp-contract=off", "-mcode-object-version=5"};
    return target;
  }
};

constexpr const char* kVariable = "WICK_HIPRTC_LIBRARY";

/// The compiler reports 9.0 in every release, so the name includes the runtime's version.
std::string release(const CompilerApi& api) {
  int runtime = 0;
  if (const Driver* driver = Driver::of(DeviceKind::hip)) driver->api.driver_version(&runtime);
  return fmt::format("hipRTC {} (HIP {}.{}.{})", release_of(api), runtime / 10'000'000,
                     runtime / 100'000 % 100, runtime % 100'000);
}

}  // namespace

std::unique_ptr<Compiler> open_hip_compiler(std::string& trace) {
  CompilerApi api;
  const Driver* driver = Driver::of(DeviceKind::hip);
  if (driver != nullptr && environment(kVariable).empty()) {
    // Older runtimes contain the compiler; that one fits best.
    const auto runtime = Library::open({driver->library}, trace);
    if (runtime != nullptr && find_functions(*runtime, kNames, api, trace)) {
      return std::make_unique<HipCompiler>(api, runtime->file(), release(api));
    }
  }
  const auto library = Library::open_chosen(
      kVariable, {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5"}, trace);
  if (library == nullptr || !find_functions(*library, kNames, api, trace)) return nullptr;
  return std::make_unique<HipCompiler>(api, library->file(), release(api));
}

}  // namespace wick::gpu
