#pragma once

#include <mutex>
#include <vector>

#include "wick/models/decoder_config.h"
#include "wick/nn/attention.h"
#include "wick/nn/rope.h"

namespace wick::models {

/// Tables of what depends on positions: angles of each of a model's ropes, and the temperatures of
/// queries. They grow as positions are first used. Several threads may call at the same time.
class PositionTables {
 public:
  /// Errors: those of nn::RopeTable.
  PositionTables(const DecoderConfig& config, Device device);

  /// Cosines and sines of each rope for positions u32 [t] below `reach`.
  std::vector<nn::Rotation> rotations(const Tensor& positions, int64_t reach) const;
  /// The queries' factors f32 [t, 1, 1]; undefined if the model has none.
  Tensor temperatures(const Tensor& positions, int64_t reach) const;

 private:
  Device device_;
  TemperatureConfig temperature_;
  mutable std::mutex mutex_;
  mutable std::vector<nn::RopeTable> ropes_;
  mutable Tensor factors_;  // f32 [positions]
};

}  // namespace wick::models
