#pragma once

// A vendor's run-time compiler, loaded like its driver. It compiles kernels for devices that the
// binary has no images for.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/backend/gpu/compile/images.h"
#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

/// The functions of compiler.def, as they were found in a library, and the text of an error code.
struct CompilerApi {
#define WICK_RTC_FN(role, arguments) int(*role) arguments = nullptr;
#include "wick/backend/gpu/compile/compiler.def"
  const char* (*error_text)(int code) = nullptr;
};

/// A vendor's name of each function.
struct CompilerApiNames {
#define WICK_RTC_FN(role, arguments) const char* role = nullptr;
#include "wick/backend/gpu/compile/compiler.def"
  const char* error_text = nullptr;
};

/// Whether every role has a name.
constexpr bool complete(const CompilerApiNames& names) {
  bool all = names.error_text != nullptr;
#define WICK_RTC_FN(role, arguments) all = all && names.role != nullptr;
#include "wick/backend/gpu/compile/compiler.def"
  return all;
}

/// A file of kernels, and the headers that it may include by name.
struct KernelSource {
  std::string name;  ///< for messages: "wick/backend/gpu/kernels/map/map_f32.gpu"
  std::string text;
  const Files* headers = nullptr;
};

/// The architecture of compiled code, with options that keep the numeric contract.
struct CompilerTarget {
  std::string architecture;  ///< "sm_90a", "gfx1101", "compute_120"
  std::vector<std::string> options;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// The vendor's compiler. Null if it isn't installed; see `missing`. The first call loads it. It
  /// works without a driver.
  static const Compiler* of(DeviceKind kind);
  /// One line that says why there is none: which files were tried, and their errors.
  static std::string missing(DeviceKind kind);

  /// The file that was loaded.
  const std::string library;
  /// "NVRTC 13.0"
  const std::string name;

  /// The target that runs on a device of an architecture, as its driver names it ("sm_90").
  virtual CompilerTarget target(std::string_view architecture) const = 0;
  /// Compiles a file to a code object, without the cache. Errors: it doesn't compile; the message
  /// has the compiler's log.
  std::string compile(const KernelSource& source, const CompilerTarget& target) const;
  /// Compiles a file, or loads it from the user's cache; then `compiled` is false.
  std::string compile_cached(const KernelSource& source, const CompilerTarget& target,
                             bool& compiled) const;

 protected:
  Compiler(const CompilerApi& functions, std::string file, std::string what)
      : library(std::move(file)), name(std::move(what)), api_(functions) {}
  void check(int code, std::string_view attempted, const KernelSource& source) const;
  /// Reads a text or the code of a program, by the function that gives its size and the one that
  /// copies it.
  template <class Size, class Get>
  std::string read(void* program, Size size, Get get, const KernelSource& source) const;

  const CompilerApi api_;

 private:
  /// The result of a compilation.
  virtual std::string code(void* program, const KernelSource& source,
                           const CompilerTarget& target) const;
  /// A hash of everything that the code depends on.
  std::string key(const KernelSource& source, const CompilerTarget& target) const;
};

template <class Size, class Get>
std::string Compiler::read(void* program, Size size, Get get, const KernelSource& source) const {
  size_t bytes = 0;
  check(size(program, &bytes), "reading the result", source);
  std::string text(bytes, '\0');
  check(get(program, text.data()), "reading the result", source);
  return text;
}

/// The headers that a text includes, directly or indirectly, as far as `headers` has them.
Files included(std::string_view text, const Files& headers);

/// Finds all functions of compiler.def.
bool find_functions(const Library& library, const CompilerApiNames& names, CompilerApi& api,
                    std::string& trace);
/// The compiler's release, "13.0".
std::string release_of(const CompilerApi& api);

/// The vendors' compilers. Null, with a reason in `trace`, if there is none.
std::unique_ptr<Compiler> open_cuda_compiler(std::string& trace);
std::unique_ptr<Compiler> open_hip_compiler(std::string& trace);

}  // namespace wick::gpu
