#pragma once

// A vendor's run-time compiler, found like its driver: it makes the kernels of devices that the
// binary has no images for.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/backend/gpu/compile/images.h"
#include "wick/backend/gpu/driver/driver.h"

namespace wick::gpu {

/// The functions of compiler.def as they were found in a library, and what a code means.
struct CompilerApi {
#define WICK_RTC_FN(role, arguments) int(*role) arguments = nullptr;
#include "wick/backend/gpu/compile/compiler.def"
  const char* (*error_text)(int code) = nullptr;
};

/// The name of each of them at a vendor.
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

/// One file of kernels, and the headers that it may include by their names.
struct KernelSource {
  std::string name;  ///< for messages: "wick/backend/gpu/kernels/map.gpu"
  std::string text;
  const Files* headers = nullptr;
};

/// What a compiler makes: code of an architecture, with the flags of the numeric contract.
struct CompilerTarget {
  std::string architecture;  ///< "sm_90a", "gfx1101", "compute_120"
  std::vector<std::string> options;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// The vendor's compiler; null where it isn't installed, see `missing`. Loaded at the first call,
  /// once. It may be there without a driver.
  static const Compiler* of(DeviceKind kind);
  /// One line that says why there is none: what was tried, and what each said.
  static std::string missing(DeviceKind kind);

  /// The file that was loaded.
  const std::string library;
  /// "NVRTC 13.0"
  const std::string name;

  /// What runs on a device of an architecture as its driver names it, "sm_90".
  virtual CompilerTarget target(std::string_view architecture) const = 0;
  /// The code object, without looking for it on disk. Errors: it doesn't compile, with what the
  /// compiler says.
  std::string compile(const KernelSource& source, const CompilerTarget& target) const;
  /// The same, from the cache of the user where it is there (`compiled` is false then).
  std::string compile_cached(const KernelSource& source, const CompilerTarget& target,
                             bool& compiled) const;

 protected:
  Compiler(const CompilerApi& functions, std::string file, std::string what)
      : library(std::move(file)), name(std::move(what)), api_(functions) {}
  void check(int code, std::string_view attempted, const KernelSource& source) const;
  /// A text or code of a program, by the functions that give its size and itself.
  template <class Size, class Get>
  std::string read(void* program, Size size, Get get, const KernelSource& source) const;

  const CompilerApi api_;

 private:
  /// The result of a compilation.
  virtual std::string code(void* program, const KernelSource& source,
                           const CompilerTarget& target) const;
  /// Whatever the code depends on, as one name.
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

/// The headers that a text includes, and those that they include, as far as they are there.
Files included(std::string_view text, const Files& headers);

/// Finds all functions of compiler.def.
bool find_functions(const Library& library, const CompilerApiNames& names, CompilerApi& api,
                    std::string& trace);
/// The compiler's release, "13.0".
std::string release_of(const CompilerApi& api);

/// The vendors' compilers; null with a reason in `trace` where there is none.
std::unique_ptr<Compiler> open_cuda_compiler(std::string& trace);
std::unique_ptr<Compiler> open_hip_compiler(std::string& trace);

}  // namespace wick::gpu
