#pragma once

// A long random test of a GPU's backend against the CPU's: what its cases share. A case makes one
// op's operands at random, runs it on both, and throws where the results aren't what the op's
// numeric class promises.

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
  std::optional<Device> other;  ///< to which tensors move, and back
  double seconds = 10;
  uint64_t seed = 1;
  int64_t elems = 1 << 14;    ///< most of one operand
  int64_t slack_mib = 8;      ///< that the driver may take for itself
  int64_t from = 0, to = -1;  ///< the cases to run; none that's last: as time allows
  std::string only;           ///< cases of that name
};

/// A result that isn't what it must be.
class Wrong : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A device's memory with a pattern that nobody else may touch.
class Held {
 public:
  Held(Backend& backend, size_t bytes, Random& random);
  ~Held() { backend_.free(data_, bytes_.size()); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  /// Throws if it has changed.
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
  /// Prompts' attention has the CPU's bits, too: WICK_REPRODUCIBLE.
  const bool reproducible;
  Random random;     ///< of the case that runs
  std::string what;  ///< it does, for messages

  // What lives from case to case.
  std::vector<std::unique_ptr<Held>> held;
  std::vector<std::unique_ptr<Chain>> chains;

  gpu::Gpu& device() const { return static_cast<gpu::GpuBackend&>(gpu).gpu(); }

  // Choices.
  bool one_in(int64_t n) { return random.below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[random.below(static_cast<int64_t>(list.size()))];
  }
  DType dtype(DTypeSet set);
  Place place();
  Values values() { return pick({Values::normal, Values::special, Values::bits}); }
  /// 1 … most, small ones as often as large ones.
  int64_t size(int64_t most);
  /// Of at most `elems` elements; now and then of none, where that may be.
  Shape shape(int least_rank, int most_rank, bool may_be_empty = true);

  using Call = parity::Call;
  /// Runs call(backend, out, inputs) on both and expects equal bits (of NaNs: NaN), inputs as they
  /// were and nothing written beside the output.
  void compare(TestTensor& out, std::initializer_list<const TestTensor*> inputs, const Call& call);
  /// On the GPU alone.
  void run(TestTensor& out, std::initializer_list<const TestTensor*> inputs, const Call& call);
  /// Throws where got is further than `tolerance` from `exact`.
  void expect_within(const TestTensor& out, const std::vector<double>& exact,
                     const std::vector<double>& tolerance) const;
  void expect_same(std::string_view which, DType dtype, const std::vector<uint64_t>& expected,
                   const std::vector<uint64_t>& got) const;
  /// Expects an error of this op at the latest when the work is waited for, and none after it.
  void expect_error(std::string_view op, const std::function<void()>& work);
  [[noreturn]] void fail(const std::string& text) const { throw Wrong(what + ": " + text); }
};

struct Case {
  const char* name;
  void (*run)(Soak& soak);
  int weight;  ///< how often, among all of them
};
/// soak_elements.cpp, soak_products.cpp, soak_memory.cpp.
std::span<const Case> element_cases();
std::span<const Case> product_cases();
std::span<const Case> memory_cases();

}  // namespace wick::soak
