#include "wick/models/layers/position_tables.h"

#include <algorithm>
#include <cmath>

#include "wick/math/scalar.h"
#include "wick/tensor/ops.h"

namespace wick::models {

PositionTables::PositionTables(const DecoderConfig& config, Device device)
    : device_(device), temperature_(config.temperature) {
  for (const nn::RopeOptions& rope : config.ropes) ropes_.emplace_back(rope, device);
}

std::vector<nn::Rotation> PositionTables::rotations(const Tensor& positions, int64_t reach) const {
  std::vector<nn::Rotation> result;
  const std::lock_guard lock(mutex_);
  for (nn::RopeTable& rope : ropes_) {
    rope.reserve(reach);
    result.push_back({index_select(rope.cos(0, reach), positions, 0),
                      index_select(rope.sin(0, reach), positions, 0)});
  }
  return result;
}

Tensor PositionTables::temperatures(const Tensor& positions, int64_t reach) const {
  if (temperature_.scale == 0.0f) return {};
  const std::lock_guard lock(mutex_);
  if (const int64_t have = factors_.defined() ? factors_.size(0) : 0; have < reach) {
    std::vector<float> factors;
    for (int64_t p = 0; p < std::max<int64_t>({reach, 2 * have, 256}); ++p) {
      const double position = static_cast<double>(p) + static_cast<double>(temperature_.offset);
      const double steps = std::floor(position / static_cast<double>(temperature_.length));
      factors.push_back(static_cast<float>(1.0 + static_cast<double>(temperature_.scale) *
                                                     math::log(steps + 1.0)));
    }
    const auto count = static_cast<int64_t>(factors.size());
    factors_ = Tensor::from(factors, {count}, device_);
  }
  return index_select(factors_.narrow(0, 0, reach), positions, 0)
      .reshape({positions.size(0), 1, 1});
}

}  // namespace wick::models
