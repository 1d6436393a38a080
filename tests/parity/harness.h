#pragma once

// Support for parity tests: tensors of every layout in guarded memory, difficult values, the list
// of backends, and comparisons whose messages name the element.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/device_work.h"
#include "tests/parity/formats.h"
#include "wick/backend/backend.h"

namespace wick::parity {

/// The arrangement of a tensor's elements in its storage.
enum class Place : uint8_t {
  contiguous,
  transposed,  ///< dims stored in reverse order
  broadcast,   ///< every other dim has stride 0 (which one depends on the operand); inputs only
  scalar,      ///< every stride is 0; inputs only
  sliced,      ///< a box within a larger tensor, with an offset
  stepped,     ///< every second or third element, some dims reversed
  scattered,   ///< dims stored in a shuffled order with gaps
};
std::string_view name(Place place);

/// A layout for testing an elementwise op: the placement of the operands and their common shape.
struct Geometry {
  std::string_view name;
  Place place;
  Shape shape;
};
/// contiguous, transposed, broadcast, scalar, sliced, stepped, empty, rank0, rank8, and two large
/// ones that are split over threads.
std::span<const Geometry> geometries();

/// A layout and the number of elements of its storage. Different operands get different layouts.
/// Outputs (`writable`) use a contiguous layout if elements would overlap. Block dtypes stay dense
/// along the last dim; only their rows are placed.
struct Placement {
  Layout layout;
  int64_t storage_elems = 0;
};
Placement place(Place place, const Shape& shape, DType dtype = DType::f32, int operand = 0,
                bool writable = false);

/// A small fast generator with a fixed sequence.
class Random {
 public:
  explicit Random(uint64_t seed = 1) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) {}
  uint64_t next();
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double normal();

 private:
  uint64_t state_;
};

enum class Values : uint8_t {
  /// Normal distribution around 0 with deviation 2; small integers, negative if the dtype is
  /// signed.
  normal,
  special,  ///< ±0, ±inf, NaN, denormals, largest and smallest, ±1, mixed with ordinary numbers
  bits,     ///< every bit pattern in turn (up to 16 bits), or random ones
};
inline constexpr Values kAllValues[] = {Values::normal, Values::special, Values::bits};
std::string_view name(Values values);
uint64_t random_bits(DType dtype, Values values, Random& random, int64_t index);

/// Calls visit(row-major index, offset in elements) for every element.
template <class Visit>
void for_each_element(const Layout& layout, Visit&& visit) {
  const int64_t n = layout.elems();
  int64_t index[Shape::kMaxRank] = {};
  int64_t at = layout.offset();
  for (int64_t i = 0; i < n; ++i) {
    visit(i, at);
    for (int d = layout.rank() - 1; d >= 0; --d) {
      at += layout.stride(d);
      if (++index[d] < layout.shape()[d]) break;
      at -= layout.stride(d) * index[d];
      index[d] = 0;
    }
  }
}

/// A tensor in memory with inaccessible pages on both sides. All bytes that aren't elements hold a
/// canary. The storage touches one of the pages, depending on the operand's parity.
class TestTensor {
 public:
  TestTensor(DType dtype, Place place, const Shape& shape, int operand = 0, bool writable = false);
  /// Makes a contiguous tensor with the given values, rounded to the dtype.
  TestTensor(DType dtype, const Shape& shape, std::span<const double> values);
  TestTensor(TestTensor&&) noexcept;
  TestTensor& operator=(TestTensor&&) noexcept;
  ~TestTensor();

  DType dtype() const { return dtype_; }
  const Layout& layout() const { return layout_; }
  const Shape& shape() const { return layout_.shape(); }
  int64_t elems() const { return layout_.elems(); }
  View view() { return {storage_, dtype_, layout_}; }
  ConstView view() const { return {storage_, dtype_, layout_}; }

  /// Sets every element. Block dtypes get random, finite blocks.
  void fill(Values values, Random& random);
  /// Sets every element from its row-major index.
  void fill_with(const std::function<long double(int64_t)>& value);
  void fill_bits(const std::function<uint64_t(int64_t)>& bits);

  /// Returns the elements in row-major order. Not for block dtypes.
  std::vector<uint64_t> bits() const;
  std::vector<double> doubles() const;
  std::vector<int64_t> ints() const;

  /// Overwrites everything with the canary. surroundings_intact() returns whether all bytes outside
  /// the elements still hold it.
  void wipe();
  bool surroundings_intact() const;

  /// All bytes, for comparisons and for copies to other memory.
  std::span<std::byte> storage() { return {storage_, static_cast<size_t>(storage_bytes_)}; }
  std::span<const std::byte> storage() const {
    return {storage_, static_cast<size_t>(storage_bytes_)};
  }

 private:
  struct Pages;
  void allocate(int64_t storage_elems, bool flush_end);

  std::unique_ptr<Pages> pages_;
  std::byte* storage_ = nullptr;
  int64_t storage_bytes_ = 0;
  DType dtype_;
  Layout layout_;
};

/// A backend under test, such as `cpu-v3`.
struct Target {
  std::string name;
  Backend* backend;     ///< null if absent
  std::string missing;  ///< why it is absent
};
/// Returns one CPU backend for each instruction set that wick has kernels for, slowest first, then
/// the GPUs that WICK_TEST_DEVICES names ("cuda:0,hip:0"). With GPUs, only the fastest CPU backend
/// is included, since other tests compare the rest. Backends that this machine lacks are included
/// as absent.
std::span<const Target> all_targets();
/// Returns the targets of the running test. Outside of tests of rows (grid.h) these are all that
/// are present.
std::span<const Target> targets();
/// Limits targets() to these. An empty list stands for all that are present.
void limit_targets(std::vector<Target> to);

/// Attributes failures to a target during its lifetime, and names the target if the process
/// crashes. run_everywhere uses it.
class Blame {
 public:
  Blame(const Target& target, std::string_view what);
  ~Blame();
  Blame(const Blame&) = delete;
  Blame& operator=(const Blame&) = delete;
  /// Returns the target's name, or an empty string if there is none.
  static std::string_view target();
  /// Returns what is running, for a signal handler.
  static std::string_view what();
};

/// A copy of a test tensor's bytes in a device's memory. On the CPU, the tensor's own memory.
class OnDevice {
 public:
  OnDevice(Backend& backend, std::span<const std::byte> host)
      : backend_(backend), bytes_(host.size()) {
    if (backend.device().kind == DeviceKind::cpu) return;
    data_ = backend.alloc(bytes_);
    backend.upload(data_, host.data(), bytes_);
  }
  ~OnDevice() {
    if (data_ != nullptr) backend_.free(data_, bytes_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  template <class V>
  V view(V host) const {
    if (data_ != nullptr) host.data = data_;
    return host;
  }
  void fetch(std::span<std::byte> host) const {
    if (data_ == nullptr) return;
    const test::OwnCopies own(backend_.device());
    backend_.download(host.data(), data_, bytes_);
  }

 private:
  Backend& backend_;
  size_t bytes_;
  void* data_ = nullptr;
};

/// Runs call(backend, out, inputs) on every target. Expects equal bits from all of them (any NaN
/// equals any other), and unchanged inputs and surroundings of the output. Leaves the first
/// target's result in `out`. Expects a GPU to run kernels for a result with elements, and the call
/// to copy nothing to the host. Returns false if anything failed, after reporting it.
using Call =
    std::function<void(Backend& backend, const View& out, std::span<const ConstView> inputs)>;
bool run_everywhere(std::string_view what, TestTensor& out,
                    std::span<const TestTensor* const> inputs, const Call& call);

/// Expects each element of a float `out` to be within `ulps` of the exact value. Reports at most
/// one failure per call.
void expect_close(std::string_view what, const TestTensor& out, std::span<const long double> exact,
                  long double ulps);
/// Expects each element to be within its own absolute tolerance.
void expect_within(std::string_view what, const TestTensor& out, std::span<const long double> exact,
                   std::span<const long double> tolerance);
/// Expects equal bits; any NaN equals any other.
void expect_bits(std::string_view what, const TestTensor& out, std::span<const uint64_t> expected);
/// Returns whether the bits are equal, or both are NaNs of a float dtype.
bool same_bits(DType dtype, uint64_t a, uint64_t b);

}  // namespace wick::parity
