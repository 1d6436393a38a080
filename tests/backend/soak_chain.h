#pragma once

#include "tests/backend/soak.h"

namespace wick::soak {

/// Ops one after another, recorded once and replayed with other inputs: rows of f32 go through
/// maps, norms and products with one quantised weight. The memory in between is given back as soon
/// as they are recorded: the recording keeps it.
class Chain {
 public:
  explicit Chain(Soak& soak);

  /// With new inputs, some times at once; throws where the results aren't the CPU's.
  void replay(Soak& soak);
  /// Not waited for.
  void start() { recording_->replay(); }

 private:
  enum class Step : uint8_t { silu, add_input, rms_norm, softmax, linear, through_half, copy };
  /// One step from `in` to `out`; `input` is the chain's.
  void step(Backend& backend, Step step, const View& out, const ConstView& in,
            const ConstView& input, const ConstView& norm, const PreparedWeight& weight,
            void* half) const;
  void compute(Backend& backend, const ConstView& input, const std::vector<View>& between,
               const ConstView& norm, const PreparedWeight& weight, void* half) const;

  std::vector<Step> steps_;
  std::string what_;
  TestTensor input_, norm_, weight_, out_;
  std::vector<TestTensor> between_;  // the CPU's
  std::unique_ptr<OnDevice> input_there_, norm_there_, out_there_;
  std::unique_ptr<PreparedWeight> weight_here_;
  std::unique_ptr<DeviceGraph> recording_;
};

}  // namespace wick::soak
