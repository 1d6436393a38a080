#include "wick/tensor/random.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/bodies.h"

namespace wick {
namespace {

/// Each device's seed and next counter.
class Generators {
 public:
  static Generators& all() {
    static Generators generators;
    return generators;
  }
  void seed(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    default_seed_ = seed;
    states_.clear();
  }
  void seed(uint64_t seed, Device device) {
    const std::lock_guard lock(mutex_);
    of(device) = {seed, 0};
  }
  uint64_t seed_of(Device device) {
    const std::lock_guard lock(mutex_);
    return of(device).seed;
  }
  /// Reserves `counters` counters; returns the seed and the first counter.
  std::pair<uint64_t, uint64_t> take(Device device, uint64_t counters) {
    const std::lock_guard lock(mutex_);
    State& state = of(device);
    const uint64_t first = state.next;
    state.next += counters;
    return {state.seed, first};
  }

 private:
  struct State {
    uint64_t seed, next;
  };
  State& of(Device device) {
    for (auto& [known, state] : states_) {
      if (known == device) return state;
    }
    return states_.emplace_back(device, State{default_seed_, 0}).second;
  }

  std::mutex mutex_;
  uint64_t default_seed_ = 0;
  std::vector<std::pair<Device, State>> states_;
};

Tensor draw(Op op, const Shape& shape, double a, double b, DType dtype, Device device) {
  if (recorder() != nullptr) {
    throw Error(ErrorKind::runtime, name(op), "random numbers in a traced function", "",
                "each call would get the same ones: draw them outside and pass them in");
  }
  Tensor out = Tensor::empty(shape, dtype, device);
  const uint64_t each = dtype == DType::f64 ? 2 : 4;
  const uint64_t counters = (static_cast<uint64_t>(out.elems()) + each - 1) / each;
  const auto [seed, first] = Generators::all().take(device, counters);
  apply_into({op, {}, Distribution{seed, first, a, b}}, out);
  return out;
}

void check_dtype(Op op, DType dtype) {
  if (info(op).dtypes.contains(dtype)) return;
  throw Error(ErrorKind::type, name(op), "unsupported dtype", name(dtype),
              "takes bf16 f16 f32 f64 f8e4m3");
}

/// Whether a value is finite in the compute type of a dtype (f32 or f64).
bool in_range(double value, DType dtype) {
  return dtype == DType::f64 ? std::isfinite(value) : std::isfinite(static_cast<float>(value));
}

}  // namespace

namespace bodies {

const OpBody random{nullptr, [](Backend& backend, const OpCall& call, const Tensor* out) {
                      const auto& [seed, first, a, b] = call.get<Distribution>();
                      backend.random(call.op, out->mutable_view(), seed, first, a, b);
                    }};

}  // namespace bodies

void set_seed(uint64_t seed) { Generators::all().seed(seed); }
void set_seed(uint64_t seed, Device device) { Generators::all().seed(seed, device); }
uint64_t get_seed(Device device) { return Generators::all().seed_of(device); }

Tensor uniform(const Shape& shape, double low, double high, DType dtype, Device device) {
  check_dtype(Op::uniform, dtype);
  if (!(low <= high) || !in_range(low, dtype) || !in_range(high, dtype) ||
      !in_range(high - low, dtype)) {
    throw Error("uniform", "bounds out of range",
                fmt::format("low {}, high {}, {}", low, high, name(dtype)),
                "need finite low <= high and a finite high - low");
  }
  return draw(Op::uniform, shape, low, high, dtype, device);
}

Tensor normal(const Shape& shape, double mean, double deviation, DType dtype, Device device) {
  check_dtype(Op::normal, dtype);
  if (!in_range(mean, dtype) || !in_range(deviation, dtype) || deviation < 0) {
    throw Error("normal", "parameters out of range",
                fmt::format("mean {}, deviation {}, {}", mean, deviation, name(dtype)),
                "need a finite mean and a finite deviation >= 0");
  }
  return draw(Op::normal, shape, mean, deviation, dtype, device);
}

}  // namespace wick
