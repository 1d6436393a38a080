#pragma once

// Random chains of ops in the tensor layer: later ops use the results of earlier ones through
// views, casts and shared storage. Other tests compare single ops with references. A chain is
// compared with itself: after each step, the bits on every instruction set and device must equal
// those of the first target, and those of the same steps on dense copies of their operands. Ops of
// the class bound get small integers, whose products and sums are exact in any order, so their bits
// are equal, too.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/parity/harness.h"
#include "wick/tensor/tensor.h"

namespace wick::parity {

/// One call of a tensor function, whose operands are earlier values, given by index.
struct Step {
  std::string text;  ///< "softmax(%3, dim 1)"
  std::function<Tensor(std::span<const Tensor> values)> run;
};

/// A deliberate error that the check must find: on one target, the lowest bit of the first element
/// of a step's result that isn't NaN is flipped.
struct Plant {
  std::string target;
  size_t step = 0;
  int64_t element = -1;  ///< output: the index of the element; -1: all are NaN
};

class Chain {
 public:
  /// The seed determines everything about the chain.
  explicit Chain(uint64_t seed);

  /// Runs the chain on all targets. Returns a description of the first difference with the chain up
  /// to it, or an empty string.
  std::string check(Plant* plant = nullptr);
  std::string text(size_t steps) const;
  size_t steps() const { return steps_.size(); }
  /// The ops that occur, as names of rows.
  const std::vector<std::string>& ops() const { return ops_; }

 private:
  using Results = std::vector<std::vector<uint64_t>>;
  void generate(Random& random);
  std::vector<Tensor> inputs_on(Device device) const;
  /// Returns the bits of every value. `dense` copies each operand first.
  std::vector<Tensor> run(const Target& target, bool dense, Plant* plant) const;
  std::string compare(const std::vector<Tensor>& first, const std::vector<Tensor>& other,
                      const std::string& who) const;

  uint64_t seed_;
  std::vector<TestTensor> inputs_;
  std::vector<std::string> input_texts_, ops_;
  std::vector<Step> steps_;
};

/// The earlier values, on any device, from which a step can be made. Only their shapes and dtypes
/// may influence the choice.
struct Choice {
  std::span<const Tensor> values;
  Random& random;

  bool one_in(int64_t n) const { return random.below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) const {
    return list[static_cast<size_t>(random.below(static_cast<int64_t>(list.size())))];
  }
  /// Returns the index of a random value with one of the dtypes, or -1 if there is none. Later
  /// values are more likely.
  int value(DTypeSet dtypes = dtypes::kReal, int least_rank = 0) const;
  const Tensor& at(int place) const { return values[static_cast<size_t>(place)]; }
};

/// A random step and the name of its row, which is empty for views. There is no `run` if the step
/// isn't possible with the values.
struct Made {
  std::string op;
  Step step;
};
Made random_view(const Choice& choice);
/// Chooses among the rows that ops.def declares with their own macro.
Made random_regular(const Choice& choice);
/// Chooses among the other rows.
Made random_other(const Choice& choice);
/// Chooses among the other rows that multiply, attend, or use sliding windows.
Made random_product(const Choice& choice);

/// Limit for one value, including intermediates of a step.
constexpr int64_t kMostElems = 1 << 13;

// Helpers for writing steps.
inline Made made(std::string op, std::string text,
                 std::function<Tensor(std::span<const Tensor>)> run) {
  return {std::move(op), {std::move(text), std::move(run)}};
}
inline size_t z(int place) { return static_cast<size_t>(place); }

}  // namespace wick::parity
