#include "wick/models/causal_lm.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/log.h"
#include "wick/base/pages.h"
#include "wick/base/printable.h"
#include "wick/models/decoder_lm.h"
#include "wick/models/registry.h"

namespace wick::models {

CausalLm::~CausalLm() = default;

void CausalLm::require_supported(const io::ModelFile& file) { find_architecture(file); }

Tensor CausalLm::run_pieces(
    const std::function<Carried(size_t piece, const Carried& in)>& run) const {
  Carried in;
  std::vector<Tensor> kept;  // by the piece before
  for (size_t piece = 0; piece < pieces(); ++piece) {
    for (Tensor& moved : in.moved) moved = moved.to(device_of(piece));
    Carried out = run(piece, in);
    in = {std::move(out.moved), std::move(kept)};
    kept = std::move(out.kept);
  }
  return in.moved.front();
}

Tensor CausalLm::forward(const Batch& batch, nn::KvCache& cache) const {
  if (!makes_logits()) throw Error("forward", "this model makes embeddings, not logits");
  BatchOnDevices batches(batch);
  return run_pieces([&](size_t piece, const Carried& in) {
    return run_piece(piece, batches.on(device_of(piece)), cache, in);
  });
}

Tensor CausalLm::forward(std::span<const BatchInput> inputs, nn::KvCache& cache,
                         Logits logits) const {
  // The host's copy of a batch for several devices is moved to each of them.
  const Device made_on = pieces() == 1 ? device() : Device::cpu();
  const Batch batch = Batch::of(cache, inputs, logits, batch_options(), made_on);
  Tensor result;
  try {
    result = forward(batch, cache);
  } catch (...) {
    // Some layers may have advanced their recurrent states.
    if (cache.has_states()) {
      for (const BatchInput& input : inputs) cache.truncate(0, input.sequence);
    }
    throw;
  }
  for (const BatchInput& input : inputs) {
    cache.advance(static_cast<int64_t>(input.tokens.size()), input.sequence);
  }
  return result;
}

Tensor CausalLm::forward(std::span<const int32_t> tokens, nn::KvCache& cache, Logits logits) const {
  const BatchInput input{0, tokens};
  return forward({&input, 1}, cache, logits);
}

std::unique_ptr<CausalLm> CausalLm::load(const io::ModelFile& file, const LoadOptions& options) {
  const Architecture& architecture = find_architecture(file);
  if (logging()) {
    log_line(fmt::format("mapped model {}: {}, {:.1f} MB, architecture {}", printable(file.path()),
                         file.format(), static_cast<double>(file.file_bytes()) / 1e6,
                         architecture.name));
  }
  // The system would drop the first pages of files that are larger than its memory.
  if (file.file_bytes() <= usable_memory() / 2) {
    for (const std::string& path : file.files()) io::read_ahead(path);
  }
  try {
    auto model = std::make_unique<DecoderLm>(file, architecture, options);
    file.require_unchanged("load");
    if (logging()) {
      log_line(fmt::format("loaded {:.1f} M parameters and {} adapters: {}",
                           static_cast<double>(model->parameters()) / 1e6, model->adapters(),
                           model->placement()));
    }
    return model;
  } catch (const Error& e) {
    file.require_unchanged(
        "load");  // reports the change instead of an error in the changed contents
    if (e.kind() != ErrorKind::memory || options.device.kind == DeviceKind::cpu) throw;
    throw Error(ErrorKind::memory, file.path(), e.what(), {},
                "ask for fewer layers on the GPU (gpu layers), or for experts on the CPU (cpu "
                "experts); auto chooses what fits");
  }
}

}  // namespace wick::models
