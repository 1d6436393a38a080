#pragma once

// A soak case that runs several times with the same calls: eagerly, captured into a graph, and
// traced. Each run gives the values of one of two sets to the operands.

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/soak/soak.h"
#include "wick/backend/backend.h"
#include "wick/graph/trace.h"

namespace wick::soak {

/// The elements of a result in row-major order; for block dtypes, its bytes.
struct Elements {
  std::string what;  ///< dtype and shape
  DType dtype;       ///< of an element
  std::vector<uint64_t> bits;

  /// Returns the elements of a tensor on any device.
  static Elements of(const Tensor& x);
};

/// Returns how two results differ; empty if their shapes, dtypes and bits are equal. All NaNs are
/// equal.
std::string difference(const Elements& a, const Elements& b);

/// One of the two sets of values that the operands get.
enum class ValueSet : uint8_t { first, second };

class ReplayedCase final : public Stage {
 public:
  /// `seed` determines the calls, shapes, dtypes and layouts. `gradients`: operands of float dtypes
  /// are leaves, and the gradients of each result are further results.
  ReplayedCase(const Row& row, Device device, uint64_t seed, bool gradients);

  /// Runs the case op by op, with its own comparison of the results. Errors: wrong results, as
  /// Wrong; those of the calls.
  void run_eagerly(ValueSet values);
  /// The results of run_eagerly().
  const std::vector<Elements>& results(ValueSet values) const { return of(values).results; }

  /// Captures the calls into a graph of the driver and replays it with either set of values. Both
  /// sets have run eagerly. Returns what was wrong; empty if nothing was.
  std::string check_captured();
  /// The same for wick::compile.
  std::string check_compiled();

  /// The operands and parameters, for messages.
  const std::string& what() const { return what_; }
  /// Whether all devices promise the same bits: neither a call of the case or of its gradients is
  /// of class bound, nor the form of a call. The case has run eagerly.
  bool has_equal_bits();
  /// The number of elements in the results.
  int64_t elems() const;
  /// The number of gradients among the results.
  int gradients() const { return gradient_count_; }

  bool computes() const override { return mode_ == Mode::eager; }
  Random& values() override { return values_; }
  Tensor operand(DType dtype, const Layout& layout, const std::vector<std::byte>& storage) override;
  void result(const Tensor& got) override;
  std::any once(Random& random, const std::function<std::any()>& make) override;

 private:
  enum class Mode : uint8_t { eager, captured, traced };
  struct Run {
    std::vector<std::vector<std::byte>> operands;  ///< the bytes of the operands' storages
    std::vector<Elements> results;
  };
  struct Made {
    std::any value;
    Random after;  ///< the case's generator afterwards
  };

  Run& of(ValueSet values) { return runs_[static_cast<size_t>(values)]; }
  const Run& of(ValueSet values) const { return runs_[static_cast<size_t>(values)]; }
  void run(Mode mode, ValueSet values);
  /// The case as a function of the operands' storages, for traces; and those storages.
  graph::Function traced_function();
  std::vector<Tensor> arguments() const;
  void add_result(const Tensor& t);
  void upload(ValueSet values);
  std::string compare(std::span<const Tensor> got, ValueSet values) const;
  std::string changed_operand(ValueSet values) const;

  const Row& row_;
  const Device device_;
  const uint64_t seed_;
  const bool with_gradients_;

  // Of the current run.
  Mode mode_ = Mode::eager;
  ValueSet set_ = ValueSet::first;
  Random values_;
  size_t operand_ = 0, made_at_ = 0;
  bool makes_once_ = false;
  std::vector<Tensor> leaves_;
  std::vector<Tensor> given_;  ///< arguments of the traced function: the operands' storages
  std::vector<Tensor> got_;    ///< results without values

  Run runs_[2];
  std::vector<Tensor> slots_;  ///< the operands' storages as vectors, at fixed addresses
  std::vector<Made> made_;
  std::string what_;
  bool is_bound_ = false;
  int gradient_count_ = 0;
};

/// Returns what work, done while a graph is captured, did besides launching kernels in memory of
/// the pool: copies from or to the host, waits, allocations. Empty if it did nothing else.
std::string forbidden_work(Device device, const std::function<void()>& work);

}  // namespace wick::soak
