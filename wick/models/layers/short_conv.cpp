#include "wick/models/layers/short_conv.h"

#include <string>

namespace wick::models {

LayerConv::LayerConv(const LayerLoader& loader, std::string_view name, int64_t channels,
                     int64_t taps) {
  const std::string stem(name);
  weight_ = loader.weights.floats(stem + ".weight", {channels, taps}).to(loader.device);
  const Tensor bias = loader.weights.optional_vector(stem + ".bias", channels);
  if (bias.defined()) bias_ = bias.to(loader.device);
}

ShortConv::ShortConv(const LayerLoader& loader)
    : in_(loader.linear("shortconv.in_proj", 3 * loader.config.hidden, loader.config.hidden)),
      conv_(loader, "shortconv.conv", loader.config.hidden, loader.config.recurrent.taps),
      output_(loader.linear("shortconv.out_proj", loader.config.hidden, loader.config.hidden)) {}

Tensor ShortConv::operator()(const Tensor& x, const StepRows& rows, const LayerCache& cache) const {
  const std::vector<Tensor> parts = in_(x, rows.set()).chunk(3, -1);  // b, c and x
  const Tensor input = parts[0] * parts[2];
  const Tensor y = of_runs(rows, [&](const StepRows::Run& run) {
    return conv_(run.of(input), cache.states[0], run.slots);
  });
  return parts[1] * y;
}

}  // namespace wick::models
