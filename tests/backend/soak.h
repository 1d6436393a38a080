#pragma once

// Shared declarations of a long random test of a GPU backend against the CPU's. A case makes one
// op's operands at random, runs the op on both, and throws if the results violate the op's numeric
// class.

#include <fmt/format.h>

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/parity/harness.h"
#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"

namespace wick::soak {

using parity::OnDevice;
using parity::Place;
using parity::Random;
using parity::TestTensor;
using parity::Values;

struct Options {
  Device device;
  std::optional<Device> other;  ///< to which tensors move and from which they return
  double seconds = 10;
  uint64_t seed = 1;
  int64_t elems = 1 << 14;  ///< limit of one operand
  int64_t slack_mib = 8;    ///< device memory that the driver may use for itself
  /// The cases to run; without a last one, the time limit ends the test.
  int64_t from = 0, to = -1;
  std::string only;  ///< only cases of that name
};

/// A wrong result.
class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Device memory with a pattern that nothing else may change.
class Held {
 public:
  Held(Backend& backend, size_t bytes, Random& random);
  ~Held() { backend_.free(data_, bytes_.size()); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  /// Throws if the pattern has changed.
  void check() const;

 private:
  Backend& backend_;
  std::vector<std::byte> bytes_;
  void* data_;
};

class Chain;

class Soak {
 public:
  explicit Soak(const Options& options);
  ~Soak();
  Soak(const Soak&) = delete;
  Soak& operator=(const Soak&) = delete;

  Backend& cpu;
  Backend& gpu;
  const Options options;
  /// WICK_REPRODUCIBLE: attention of prompts must have the CPU's bits, too.
  const bool reproducible;
  Random random;     ///< of the running case
  std::string what;  ///< what the case does, for messages

  // State that lives across cases.
  std::vector<std::unique_ptr<Held>> held;
  std::vector<std::unique_ptr<Chain>> chains;

  gpu::Gpu& device() const { return static_cast<gpu::GpuBackend&>(gpu).gpu(); }

  // Random choices.
  bool one_in(int64_t n) { return random.below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[random.below(static_cast<int64_t>(list.size()))];
  }
  DType dtype(DTypeSet set);
  Place place();
  Values values() { return pick({Values::normal, Values::special, Values::bits}); }
  /// Returns 1 to `most`; small sizes are as likely as large ones.
  int64_t size(int64_t most);
  /// Returns a shape with at most `elems` elements, and sometimes an empty one if `may_be_empty`.
  Shape shape(int least_rank, int most_rank, bool may_be_empty = true);

  using Call = parity::Call;
  /// Runs call(backend, out, inputs) on both backends. Expects equal bits (NaN where NaN is
  /// expected), unchanged inputs, and no writes outside the output.
  void compare(TestTensor& out, std::initializer_list<const TestTensor*> inputs, const Call& call);
  /// Runs on the GPU only.
  void run(TestTensor& out, std::initializer_list<const TestTensor*> inputs, const Call& call);
  /// Throws if an element differs from `exact` by more than `tolerance`.
  void expect_within(const TestTensor& out, const std::vector<double>& exact,
                     const std::vector<double>& tolerance) const;
  void expect_same(std::string_view which, DType dtype, const std::vector<uint64_t>& expected,
                   const std::vector<uint64_t>& got) const;
  /// Expects an error of this op, at the latest at the next synchronization, and no error after it.
  void expect_error(std::string_view op, const std::function<void()>& work);
  [[noreturn]] void fail(const std::string& text) const { throw Wrong(what + ": " + text); }
};

struct Case {
  const char* name;
  void (*run)(Soak& soak);
  int weight;  ///< relative frequency
};
/// Defined in soak_elements.cpp, soak_products.cpp and soak_memory.cpp.
std::span<const Case> element_cases();
std::span<const Case> product_cases();
std::span<const Case> memory_cases();

}  // namespace wick::soak
