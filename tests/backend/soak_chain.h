#pragma once

#include "tests/backend/soak.h"

namespace wick::soak {

/// A sequence of ops that is captured once and replayed with other inputs: rows of f32 pass through
/// maps, norms and GEMMs with one quantized weight. The intermediate memory is released right
/// after the capture; the graph keeps it.
class Chain {
 public:
  explicit Chain(Soak& soak);

  /// Replays with new inputs, sometimes several times without waiting. Throws if the results aren't
  /// the CPU's.
  void replay(Soak& soak);
  /// Starts a replay without waiting for it.
  void start() { recording_->replay(); }

 private:
  enum class Step : uint8_t { silu, add_input, rms_norm, softmax, linear, through_half, copy };
  /// Runs one step from `in` to `out`. `input` is the chain's input.
  void step(Backend& backend, Step step, const View& out, const ConstView& in,
            const ConstView& input, const ConstView& norm, const PreparedWeight& weight,
            void* half) const;
  void compute(Backend& backend, const ConstView& input, const std::vector<View>& between,
               const ConstView& norm, const PreparedWeight& weight, void* half) const;

  std::vector<Step> steps_;
  std::string what_;
  TestTensor input_, norm_, weight_, out_;
  std::vector<TestTensor> between_;  // on the CPU
  std::unique_ptr<OnDevice> input_there_, norm_there_, out_there_;
  std::unique_ptr<PreparedWeight> weight_here_;
  std::unique_ptr<DeviceGraph> recording_;
};

}  // namespace wick::soak
