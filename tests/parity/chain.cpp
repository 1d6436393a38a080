#include "tests/parity/chain.h"

#include <fmt/format.h>

#include "tests/parity/tensors.h"
#include "wick/tensor/random.h"

namespace wick::parity {
namespace {

Shape random_shape(Random& random) {
  constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 100, 257};
  std::vector<int64_t> sizes;
  int64_t elems = 1;
  for (int64_t rank = random.below(12) == 0 ? random.below(9) : random.below(4) + 1; rank > 0;
       --rank) {
    int64_t size = kSizes[random.below(static_cast<int64_t>(std::size(kSizes)))];
    if (elems * size > kMostElems) size = 1;
    if (random.below(60) == 0) size = 0;
    sizes.push_back(size);
    elems *= std::max<int64_t>(size, 1);
  }
  return Shape(std::span<const int64_t>(sizes));
}

DType random_dtype(Random& random) {
  if (random.below(2) == 0) return DType::f32;
  return static_cast<DType>(random.below(kRealDTypeCount));
}

/// Returns x with the lowest bit of one element flipped: see Plant.
Tensor planted(const Tensor& x, Plant& plant) {
  const std::vector<uint64_t> bits = bits_of(x);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (same_bits(x.dtype(), bits[i], bits[i] ^ 1)) continue;  // NaN with either bit
    plant.element = static_cast<int64_t>(i);
    TestTensor copy(x.dtype(), Place::contiguous, x.shape());
    copy.fill_bits([&](int64_t at) {
      return bits[static_cast<size_t>(at)] ^ (at == plant.element ? 1u : 0u);
    });
    return tensor_of(copy, x.device());
  }
  return x;
}

}  // namespace

int Choice::value(DTypeSet dtypes, int least_rank) const {
  std::vector<int> list;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!dtypes.contains(values[i].dtype()) || values[i].rank() < least_rank) continue;
    list.push_back(static_cast<int>(i));
    if (i + 3 >= values.size()) list.insert(list.end(), 3, static_cast<int>(i));
  }
  return list.empty() ? -1 : of(list);
}

Chain::Chain(uint64_t seed) : seed_(seed) {
  Random random(seed * 2 + 7);
  for (int64_t i = random.below(3) + 1; i >= 0; --i) {
    // Chooses shapes that are equal to the first one or broadcast with it.
    Shape shape = random_shape(random);
    if (!inputs_.empty() && random.below(3) > 0) shape = inputs_.front().shape();
    const DType dtype =
        !inputs_.empty() && random.below(3) > 0 ? inputs_.front().dtype() : random_dtype(random);
    const auto place = static_cast<Place>(random.below(7));
    const auto values = random.below(3) == 0 ? Values::special : Values::normal;
    input_texts_.push_back(
        fmt::format("{}{} {} {}", name(dtype), shape.str(), name(place), name(values)));
    inputs_.emplace_back(dtype, place, shape, static_cast<int>(i));
    inputs_.back().fill(values, random);
  }
  generate(random);
}

void Chain::generate(Random& random) {
  // Shapes and dtypes are the same on all targets, so those of the first target determine the next
  // step.
  const TensorsOn on(targets().front());
  set_seed(seed_, on.device());
  std::vector<Tensor> values = inputs_on(on.device());
  const auto wanted = static_cast<size_t>(3 + random.below(14));
  for (int tries = 0; steps_.size() < wanted && tries < 400; ++tries) {
    const Choice choice{values, random};
    const int64_t kind = random.below(10);
    Made made = kind < 3   ? random_view(choice)
                : kind < 7 ? random_regular(choice)
                           : random_other(choice);
    if (!made.step.run) continue;
    steps_.push_back(std::move(made.step));
    if (!made.op.empty()) ops_.push_back(made.op);
    try {
      values.push_back(steps_.back().run(values));
    } catch (const std::exception&) {
      return;  // check() reports it
    }
    if (values.back().elems() > 4 * kMostElems) return;
  }
}

std::vector<Tensor> Chain::inputs_on(Device device) const {
  std::vector<Tensor> list;
  for (const TestTensor& t : inputs_) list.push_back(tensor_of(t, device));
  return list;
}

std::vector<Tensor> Chain::run(const Target& target, bool dense, Plant* plant) const {
  const TensorsOn on(target);
  set_seed(seed_, on.device());
  std::vector<Tensor> values = inputs_on(on.device());
  for (size_t i = 0; i < steps_.size(); ++i) {
    try {
      if (dense) {
        std::vector<Tensor> copies;
        for (const Tensor& value : values) copies.push_back(value.clone());
        values.push_back(steps_[i].run(copies));
      } else {
        values.push_back(steps_[i].run(values));
      }
      if (plant != nullptr && plant->target == target.name && plant->step == i) {
        values.back() = planted(values.back(), *plant);
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(
          fmt::format("{} threw on {}: {}", text(i + 1), target.name, error.what()));
    }
  }
  return values;
}

std::string Chain::text(size_t steps) const {
  std::string all;
  size_t place = 0;
  for (const std::string& input : input_texts_) all += fmt::format("  %{} = {}\n", place++, input);
  for (size_t i = 0; i < steps; ++i) all += fmt::format("  %{} = {}\n", place++, steps_[i].text);
  return all;
}

std::string Chain::compare(const std::vector<Tensor>& first, const std::vector<Tensor>& other,
                           const std::string& who) const {
  for (size_t v = 0; v < first.size(); ++v) {
    const size_t steps = v < inputs_.size() ? 0 : v - inputs_.size() + 1;
    const DType dtype = first[v].dtype();
    if (other[v].dtype() != dtype || !(other[v].shape() == first[v].shape())) {
      return fmt::format("{}%{} is {} {}, {} at first", text(steps), v, other[v].str(), who,
                         first[v].str());
    }
    const std::vector<uint64_t> a = bits_of(first[v]), b = bits_of(other[v]);
    for (size_t i = 0; i < a.size(); ++i) {
      if (same_bits(dtype, a[i], b[i])) continue;
      return fmt::format("{}%{}, element {} of {}: {:#x} {}, {:#x} on {}", text(steps), v, i,
                         first[v].str(), b[i], who, a[i], targets().front().name);
    }
  }
  return "";
}

std::string Chain::check(Plant* plant) {
  try {
    const Target& reference = targets().front();
    const std::vector<Tensor> first = run(reference, false, plant);
    std::string wrong = compare(first, run(reference, true, plant), "over dense copies");
    for (const Target& target : targets().subspan(1)) {
      if (wrong.empty()) wrong = compare(first, run(target, false, plant), "on " + target.name);
    }
    return wrong;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace wick::parity
