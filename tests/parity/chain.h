#pragma once

// Random chains of ops over the tensor layer: what one op leaves, the next ones take, by way of
// views, casts and shared storage. One op at a time is held against references elsewhere; a chain
// is held against itself: step by step the bits on every instruction set and device are those of
// the first, and those of the same steps over dense copies of their operands. Rows of the class
// bound get small whole numbers, whose products and sums are exact in any order: their bits are
// equal, too.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tests/parity/harness.h"
#include "wick/tensor/tensor.h"

namespace wick::parity {

/// One call of a function over tensors; it takes earlier values by their place.
struct Step {
  std::string text;  ///< "softmax(%3, dim 1)"
  std::function<Tensor(std::span<const Tensor> values)> run;
};

/// An error on purpose, to see that it is found: on one target the lowest bit of a step's result is
/// turned, in its first element that isn't NaN.
struct Plant {
  std::string target;
  size_t step = 0;
  int64_t element = -1;  ///< out: which one it was; -1: there was none
};

class Chain {
 public:
  /// Everything about it is a function of the seed.
  explicit Chain(uint64_t seed);

  /// Runs it on all targets. What is wrong, in words with the chain up to there; empty: nothing.
  std::string check(Plant* plant = nullptr);
  std::string text(size_t steps) const;
  size_t steps() const { return steps_.size(); }
  /// The ops that occur, by their rows' names.
  const std::vector<std::string>& ops() const { return ops_; }

 private:
  using Results = std::vector<std::vector<uint64_t>>;
  void generate(Random& random);
  std::vector<Tensor> inputs_on(Device device) const;
  /// The bits of every value; `dense` copies each operand first.
  std::vector<Tensor> run(const Target& target, bool dense, Plant* plant) const;
  std::string compare(const std::vector<Tensor>& first, const std::vector<Tensor>& other,
                      const std::string& who) const;

  uint64_t seed_;
  std::vector<TestTensor> inputs_;
  std::vector<std::string> input_texts_, ops_;
  std::vector<Step> steps_;
};

/// What a step can be made of: values so far, on whatever device; only their shapes and dtypes may
/// decide anything.
struct Choice {
  std::span<const Tensor> values;
  Random& random;

  bool one_in(int64_t n) const { return random.below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) const {
    return list[static_cast<size_t>(random.below(static_cast<int64_t>(list.size())))];
  }
  /// A value's place: of any dtype, or of one of a set; -1 where there is none. Late ones are
  /// likelier.
  int value(DTypeSet dtypes = dtypes::kReal, int least_rank = 0) const;
  const Tensor& at(int place) const { return values[static_cast<size_t>(place)]; }
};

/// A random step, and the name of its row (empty for views). Without a run where what it needs
/// isn't there.
struct Made {
  std::string op;
  Step step;
};
Made random_view(const Choice& choice);
/// Rows that ops.def declares by a macro of their own.
Made random_regular(const Choice& choice);
/// The others.
Made random_other(const Choice& choice);
/// Of those, what multiplies, attends and slides windows.
Made random_product(const Choice& choice);

/// Of one value, or what else a step makes of it.
constexpr int64_t kMostElems = 1 << 13;

// For writing steps.
inline Made made(std::string op, std::string text,
                 std::function<Tensor(std::span<const Tensor>)> run) {
  return {std::move(op), {std::move(text), std::move(run)}};
}
inline size_t z(int place) { return static_cast<size_t>(place); }

}  // namespace wick::parity
