#pragma once

// Kernels that users bring: source text or code objects, their arguments and launch geometry.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wick/backend/view.h"
#include "wick/base/export.h"

namespace wick {

/// A number that a kernel takes by value.
using KernelNumber = std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, float, double>;

/// A constant of a kernel's source: a number, or a dtype, which names the type of its elements.
struct KernelConstant {
  std::string name;
  std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, float, double, DType> value;
};

/// A kernel as source text. The signature is generated from the arguments of a launch, so the text
/// is only the body of the kernel. One text serves both vendors; docs/custom-ops.md lists the
/// functions and names that it may use.
struct KernelText {
  std::string body;
  std::string header = {};  ///< functions, types and #include lines before the kernel
  std::vector<KernelConstant> constants = {};  ///< names that are constexpr in body and header
};

/// A code object with kernels: PTX or a cubin for NVIDIA, an ELF code object for AMD. Copies share
/// the bytes.
class WICK_API KernelCode {
 public:
  explicit KernelCode(std::string bytes);
  const std::string& bytes() const { return *bytes_; }
  /// A digest of the bytes.
  const std::string& digest() const { return *digest_; }

 private:
  std::shared_ptr<const std::string> bytes_, digest_;
};

/// The launch geometry of a kernel.
struct KernelGrid {
  std::array<int64_t, 3> blocks = {1, 1, 1};
  std::array<int64_t, 3> threads = {256, 1, 1};  ///< threads of a thread block
  int64_t shared_bytes = 0;                      ///< dynamic shared memory

  /// A grid with at least one thread for each of `elems` elements, along the first axis. The kernel
  /// compares its global_index() with the number of elements. Without elements the grid has
  /// `elems` blocks, which a launch refuses.
  static KernelGrid over(int64_t elems, int64_t threads = 256) {
    const int64_t blocks = elems <= 0 ? elems : threads <= 0 ? 1 : (elems - 1) / threads + 1;
    return {.blocks = {blocks, 1, 1}, .threads = {threads, 1, 1}};
  }
};

/// An argument of a kernel: elements in the device's memory, or a number.
class WICK_API KernelArgument {
 public:
  /// Elements that the kernel reads.
  KernelArgument(std::string name, const ConstView& view)
      : name_(std::move(name)), view_(view), is_view_(true) {}
  /// Elements that the kernel may also write.
  KernelArgument(std::string name, const View& view)
      : name_(std::move(name)), view_(view), is_view_(true), writes_(true) {}
  template <class T>
  requires(std::integral<T> || std::floating_point<T>) KernelArgument(std::string name, T number)
      : name_(std::move(name)), number_(stored(number)) {}

  /// The name of the argument in source text. Code objects take arguments by position.
  const std::string& name() const { return name_; }
  bool is_view() const { return is_view_; }
  bool writes() const { return writes_; }
  const ConstView& view() const { return view_; }
  const KernelNumber& number() const { return number_; }
  /// The address of the first element of a view.
  const void* address() const;

 private:
  template <class T>
  static KernelNumber stored(T number) {
    if constexpr (std::same_as<T, bool> || std::same_as<T, float>) {
      return number;
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(number);
    } else if constexpr (std::signed_integral<T>) {
      if constexpr (sizeof(T) <= 4) return static_cast<int32_t>(number);
      return static_cast<int64_t>(number);
    } else {
      if constexpr (sizeof(T) <= 4) return static_cast<uint32_t>(number);
      return static_cast<uint64_t>(number);
    }
  }

  std::string name_;
  ConstView view_;
  KernelNumber number_ = 0;
  bool is_view_ = false, writes_ = false;
};

/// A launch of a user's kernel: of `text`, or of `function` in `code`.
struct KernelLaunch {
  std::string_view op = {};  ///< name of the custom op, for errors and traces
  const KernelText* text = nullptr;
  const KernelCode* code = nullptr;
  std::string_view function = {};
  KernelGrid grid = {};
  std::span<const KernelArgument> arguments = {};
};

/// The limits of a device for one launch.
struct LaunchLimits {
  int64_t block_threads = 0;            ///< threads of a thread block, all axes together
  std::array<int64_t, 3> threads = {};  ///< threads of a thread block along each axis
  std::array<int64_t, 3> blocks = {};   ///< blocks of a grid along each axis
  std::array<int64_t, 3> in_grid = {};  ///< threads of a grid along each axis
  int64_t shared_bytes = 0;             ///< shared memory of a thread block
  int warp = 32;                        ///< lanes that run in lockstep: 64 on some AMD GPUs
  int multiprocessors = 0;              ///< compute units on AMD
};

/// Checks a launch against a device's limits. `kernel_threads` and `kernel_shared_bytes` are what
/// the compiled kernel says: the most threads of its thread blocks, and its static shared memory.
/// Errors: a size is zero or negative; a limit is exceeded, which the message names.
WICK_API void check_grid(std::string_view op, const KernelGrid& grid, const LaunchLimits& limits,
                         int64_t kernel_threads, int64_t kernel_shared_bytes);

}  // namespace wick
