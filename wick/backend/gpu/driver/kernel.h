#pragma once

// Kernels as typed functions of one argument struct.
//
// A KernelFamily is a set of kernels that take the same struct, for instance copy_1 to copy_16.
// Its keys (a dtype, an op, a number) choose a kernel. Each Gpu has a table with a slot for every
// kernel of every family. Only the first launch of a kernel on a device formats its name and asks
// the driver for the function. The argument structs are declared in the *_abi.h beside the kernels.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "wick/base/dtype.h"
#include "wick/op/op.h"

namespace wick::gpu {

class Gpu;
struct Grid;

/// Describes a type of key. kCount: the number of values. index(value): a number below kCount.
/// value(index): its inverse. label(value): the text of the value in a kernel's name.
template <class Key>
struct KernelKey;

template <>
struct KernelKey<DType> {
  static constexpr unsigned kCount = kDTypeCount;
  static unsigned index(DType dtype) { return static_cast<unsigned>(dtype); }
  static DType value(unsigned index) { return static_cast<DType>(index); }
  static std::string label(DType dtype) { return std::string(name(dtype)); }
};

template <>
struct KernelKey<Op> {
  static constexpr unsigned kCount = kOpCount;
  static unsigned index(Op op) { return static_cast<unsigned>(op); }
  static Op value(unsigned index) { return static_cast<Op>(index); }
  static std::string label(Op op) { return std::string(name(op)); }
};

/// A key of an enum type. kernel_labels(Enum()) returns the labels of its values in a std::array.
template <class Enum>
requires requires { kernel_labels(Enum()).size(); }
struct KernelKey<Enum> {
  static constexpr unsigned kCount = static_cast<unsigned>(kernel_labels(Enum()).size());
  static unsigned index(Enum value) { return static_cast<unsigned>(value); }
  static Enum value(unsigned index) { return static_cast<Enum>(index); }
  static std::string label(Enum value) { return std::string(kernel_labels(Enum())[index(value)]); }
};

/// A key that is one of the given numbers, for instance the bytes of a unit.
template <int64_t... kNumbers>
struct OneOf {
  OneOf(int64_t n) : number(n) {}  // NOLINT: launches pass plain numbers
  int64_t number;
};

[[noreturn]] void fail_no_kernel_for(int64_t number);

template <int64_t... kNumbers>
struct KernelKey<OneOf<kNumbers...>> {
  using Key = OneOf<kNumbers...>;
  static constexpr unsigned kCount = sizeof...(kNumbers);
  /// Errors: the key is none of the numbers.
  static unsigned index(Key key) {
    constexpr std::array<int64_t, kCount> kAll{kNumbers...};
    for (unsigned i = 0; i < kCount; ++i) {
      if (kAll[i] == key.number) return i;
    }
    fail_no_kernel_for(key.number);
  }
  static Key value(unsigned index) { return std::array<int64_t, kCount>{kNumbers...}[index]; }
  static std::string label(Key key) { return std::to_string(key.number); }
};

/// The file in kernels/ that defines a kernel, and the name of its function.
struct KernelName {
  std::string file, kernel;
};

/// The part of a family that Gpu uses: the number of kernels, their names, and the size of their
/// argument struct. Families have static storage duration.
class KernelFamilyBase {
 public:
  KernelFamilyBase(const KernelFamilyBase&) = delete;
  KernelFamilyBase& operator=(const KernelFamilyBase&) = delete;

  virtual KernelName name(unsigned index) const = 0;

  const unsigned count;         ///< number of combinations of keys; some may have no kernel
  const size_t argument_bytes;  ///< size of the argument struct
  /// The family's row in the table of each Gpu, below kMostFamilies. The table has a fixed size,
  /// because a family may be constructed after a Gpu: static initialisers of a program may make
  /// tensors before those of another source have run.
  unsigned number() const { return number_; }
  static constexpr unsigned kMostFamilies = 256;

  /// The newest family in the program. next() leads to all others.
  static const KernelFamilyBase* all();
  const KernelFamilyBase* next() const { return next_; }

 protected:
  KernelFamilyBase(unsigned kernels, size_t bytes) noexcept;
  ~KernelFamilyBase() = default;

 private:
  unsigned number_;
  const KernelFamilyBase* next_;
};

/// Replaces each "{}" in a pattern by the next label, and "{N}" by label N, counted from 0.
std::string kernel_text(std::string_view pattern, const std::string* labels, size_t count);

/// A kernel that takes `Args` by value.
template <class Args>
class Kernel {
  static_assert(std::is_trivially_copyable_v<Args>, "drivers copy the bytes of arguments");

 public:
  Kernel(const KernelFamilyBase& family, unsigned index) : family_(&family), index_(index) {}
  /// Launches the kernel on gpu.stream(). Errors: the image has no such kernel; the driver refuses
  /// the grid.
  void launch(Gpu& gpu, const Grid& grid, const Args& args) const;

 private:
  const KernelFamilyBase* family_;
  unsigned index_;
};

/// Kernels that take `Args`, at most one for each combination of keys.
template <class Args, class... Keys>
class KernelFamily final : public KernelFamilyBase {
 public:
  /// file and pattern: patterns of the names of the files and of the kernels; see kernel_text().
  KernelFamily(std::string_view file, std::string_view pattern) noexcept
      : KernelFamilyBase((1u * ... * KernelKey<Keys>::kCount), sizeof(Args)),
        file_(file),
        pattern_(pattern) {}
  /// A family whose files are named by a function of the keys.
  KernelFamily(std::string_view (*file_of)(Keys...), std::string_view pattern) noexcept
      : KernelFamilyBase((1u * ... * KernelKey<Keys>::kCount), sizeof(Args)),
        file_of_(file_of),
        pattern_(pattern) {}

  /// The kernel for these keys. Errors: a key is none of the numbers of its OneOf.
  Kernel<Args> operator()(Keys... keys) const {
    unsigned index = 0;
    ((index = index * KernelKey<Keys>::kCount + KernelKey<Keys>::index(keys)), ...);
    return {*this, index};
  }

  KernelName name(unsigned index) const override {
    return name_of(index, std::index_sequence_for<Keys...>());
  }

 private:
  template <size_t... kI>
  KernelName name_of([[maybe_unused]] unsigned index, std::index_sequence<kI...>) const {
    constexpr size_t kKeys = sizeof...(Keys);
    constexpr std::array<unsigned, kKeys + 1> kCounts{KernelKey<Keys>::kCount..., 1};
    std::array<unsigned, kKeys + 1> digits{};
    for (size_t k = kKeys; k-- > 0; index /= kCounts[k]) digits[k] = index % kCounts[k];
    const std::array<std::string, kKeys + 1> labels{
        KernelKey<Keys>::label(KernelKey<Keys>::value(digits[kI]))..., ""};
    std::string file = file_of_ == nullptr
                           ? kernel_text(file_, labels.data(), kKeys)
                           : std::string(file_of_(KernelKey<Keys>::value(digits[kI])...));
    return {std::move(file), kernel_text(pattern_, labels.data(), kKeys)};
  }

  std::string_view file_;
  std::string_view (*file_of_)(Keys...) = nullptr;
  std::string_view pattern_;
};

/// The driver's handle of a kernel on one device.
struct KernelSlot {
  std::atomic<void*> function = nullptr;  ///< null until the first launch
  std::atomic<unsigned> allowed_shared_bytes =
      0;  ///< the most dynamic shared memory requested so far
};

/// Launches kernel `index` of a family; `args` is the address of its argument struct.
void launch_kernel(Gpu& gpu, const KernelFamilyBase& family, unsigned index, const Grid& grid,
                   const void* args);

template <class Args>
void Kernel<Args>::launch(Gpu& gpu, const Grid& grid, const Args& args) const {
  launch_kernel(gpu, *family_, index_, grid, &args);
}

}  // namespace wick::gpu
