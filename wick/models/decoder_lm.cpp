#include "wick/models/decoder_lm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "wick/base/error.h"
#include "wick/models/decoder_step.h"
#include "wick/tensor/ops.h"

namespace wick::models {

namespace {

/// What the cache stores for a layer.
nn::KvLayer cache_of(const DecoderConfig& config, const LayerConfig& layer) {
  switch (layer.mixer) {
    case Mixer::attention:
      break;
    case Mixer::short_conv:
      return ShortConv::cache_of(config);
    case Mixer::mamba2:
      return Mamba2::cache_of(config);
    case Mixer::attention_and_mamba2:
      return AttentionAndMamba2::cache_of(config, layer);
    case Mixer::delta_net:
      return DeltaNet::cache_of(config);
  }
  return config.is_latent() ? LatentAttention::cache_of(config) : GroupedAttention::cache_of(layer);
}

Tensor normed(const std::optional<nn::Norm>& norm, const Tensor& x) {
  return norm ? (*norm)(x) : x;
}

/// Errors: there are no tokens; an id is outside the vocabulary; there are more tokens than
/// positions.
void check_tokens(std::span<const int32_t> tokens, const DecoderConfig& config) {
  if (tokens.empty()) throw Error("embed", "no tokens");
  if (static_cast<int64_t>(tokens.size()) > config.context) {
    throw Error("embed", "too many tokens", fmt::format("{}", tokens.size()),
                fmt::format("the model was trained for {}", config.context));
  }
  for (const int32_t id : tokens) {
    if (id >= 0 && id < config.vocabulary) continue;
    throw Error(ErrorKind::index, "embed", "token id out of range", fmt::format("{}", id),
                fmt::format("the vocabulary has {}", config.vocabulary));
  }
}

/// Whether rows are at most `distance` apart: bool [count, count].
Tensor rows_within(int64_t distance, int64_t count, Device device) {
  std::vector<bool> near;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < count; ++j) near.push_back(std::abs(i - j) <= distance);
  }
  return Tensor::from(near, {count, count}, device);
}

}  // namespace

// ---- Forward pass: decoder_stages.cpp calls these functions ----

/// → [t, hidden]
Tensor DecoderLm::embed_tokens(const StepRows& rows) const {
  Tensor x = embedding_(rows.tokens, rows.set());
  if (config_.embedding_scale != 1.0f) x = x * config_.embedding_scale;
  if (token_type_.defined()) x = x + token_type_;
  if (learned_positions_.defined()) {
    std::vector<Tensor> positions;
    for (const StepRows::Run& run : rows.runs) positions.push_back(run.rows.positions);
    x = x + index_select(learned_positions_,
                         positions.size() == 1 ? positions.front() : cat(positions, 0), 0);
  }
  return normed(embedding_norm_, x);
}

/// x [t, hidden] → [t, hidden]
Tensor DecoderLm::layer(size_t index, const Tensor& x, const StepRows& rows,
                        const LayerCache& cache) const {
  return after_heads(index, x, heads_of(blocks_[index], x, rows, cache), rows.per_layer,
                     rows.set());
}

/// x [t, hidden] → concatenated heads [t, h · e]. Stores keys and values in the cache.
Tensor DecoderLm::heads_of(const Block& block, const Tensor& x, const StepRows& rows,
                           const LayerCache& cache) const {
  const Tensor in = normed(block.attention_norm, x);
  return std::visit([&](const auto& attention) { return attention(in, rows, cache); },
                    block.attention);
}

/// The rest of a layer: its input x [t, hidden], its heads [t, h · e] and the rows of the per-layer
/// embeddings → [t, hidden].
Tensor DecoderLm::after_heads(size_t index, const Tensor& x, const Tensor& heads,
                              const Tensor& per_layer, Runs runs) const {
  const Block& block = blocks_[index];
  const Tensor y = before_mlp(block, x, heads, runs);
  if (!block.mlp) return y;
  const Tensor in = mlp_input(block, x, y);
  const Tensor out = std::visit([&](const auto& mlp) { return mlp(in, runs); }, *block.mlp);
  return after_mlp(index, y, out, per_layer, runs);
}

/// Adds the projected heads to the layer's input → [t, hidden].
Tensor DecoderLm::before_mlp(const Block& block, const Tensor& x, const Tensor& heads,
                             Runs runs) const {
  const Tensor projected = std::visit(
      [&](const auto& attention) { return attention.output(heads, runs); }, block.attention);
  return added(x, projected, block.attention_post_norm);
}

/// What the MLP reads, of the layer's input x and of before_mlp's result y → [t, hidden].
Tensor DecoderLm::mlp_input(const Block& block, const Tensor& x, const Tensor& y) const {
  const Tensor& read = config_.parallel ? x : y;
  return normed(config_.mlp_norm || !config_.parallel ? block.mlp_norm : block.attention_norm,
                read);
}

/// Adds the MLP's result and the per-layer embeddings to before_mlp's result y → [t, hidden].
Tensor DecoderLm::after_mlp(size_t index, const Tensor& y, const Tensor& out,
                            const Tensor& per_layer, Runs runs) const {
  const Block& block = blocks_[index];
  Tensor result = added(y, out, block.mlp_post_norm);
  if (block.per_layer) {
    const Tensor e = per_layer.narrow(1, static_cast<int64_t>(index), 1).squeeze(1);
    result = result + (*block.per_layer)(result, e, runs);
  }
  return block.output_scale.defined() ? result * block.output_scale : result;
}

Tensor DecoderLm::added(const Tensor& to, const Tensor& part,
                        const std::optional<nn::Norm>& norm) const {
  return config_.post_norm ? normed(norm, to + part) : to + scaled(normed(norm, part));
}

Tensor DecoderLm::scaled(const Tensor& x) const {
  return config_.residual_scale == 1.0f ? x : x * config_.residual_scale;
}

/// x [t, hidden] → logits [t, vocabulary]
Tensor DecoderLm::head(const Tensor& x, Runs runs) const {
  Tensor logits = head_(normed(output_norm_, x), runs);
  if (config_.logit_scale != 1.0f) logits = logits * config_.logit_scale;
  const float cap = config_.logit_soft_cap;
  return cap > 0.0f ? tanh(logits / cap) * cap : logits;
}

// ---- Embeddings ----

Tensor DecoderLm::embed(std::span<const std::vector<int32_t>> sequences) const {
  if (sequences.empty()) throw Error("embed", "no sequences");
  require_file("embed");
  const Tensor rows = config_.causal ? hidden_of_decoder(sequences) : hidden_of_encoder(sequences);
  const Tensor states = normed(output_norm_, rows);
  std::vector<Tensor> embeddings;
  int64_t first = 0;
  for (const std::vector<int32_t>& tokens : sequences) {
    const auto count = static_cast<int64_t>(tokens.size());
    embeddings.push_back(pooled(states.narrow(0, first, count)));
    first += count;
  }
  Tensor result = cat(embeddings, 0);
  for (const nn::Linear& layer : dense_) result = layer(result);
  require_file("embed");
  return result;
}

/// [t, hidden] of one sequence → [1, hidden]
Tensor DecoderLm::pooled(const Tensor& rows) const {
  constexpr int kRows[] = {0};
  switch (config_.pooling) {
    case Pooling::mean:
      return mean(rows, kRows, true);
    case Pooling::first:
      return rows.narrow(0, 0, 1);
    case Pooling::last:
      break;
  }
  return rows.narrow(0, rows.size(0) - 1, 1);
}

Tensor DecoderLm::hidden_of_decoder(std::span<const std::vector<int32_t>> sequences) const {
  size_t longest = 1;
  std::vector<BatchInput> inputs;
  for (const std::vector<int32_t>& tokens : sequences) {
    check_tokens(tokens, config_);
    longest = std::max(longest, tokens.size());
    inputs.push_back({static_cast<int64_t>(inputs.size()), tokens});
  }
  nn::KvCache cache = make_cache(static_cast<int64_t>(longest), DType::f32,
                                 static_cast<int64_t>(sequences.size()), 0);
  BatchOnDevices batches(
      Batch::of(cache, inputs, Logits::all, batch_options(), stages_.front().device));
  return run_pieces([&](size_t piece, const Carried& in) {
    const Stage& stage = stages_[piece];
    std::vector<Tensor> arguments;
    add_arguments(stage, batches.on(stage.device), cache, arguments);
    Step step = step_of(stage, arguments);
    return through(stage, step, in);
  });
}

Tensor DecoderLm::hidden_of_encoder(std::span<const std::vector<int32_t>> sequences) const {
  for (const std::vector<int32_t>& tokens : sequences) check_tokens(tokens, config_);
  return run_pieces([&](size_t piece, const Carried& in) {
    Step step = encoder_step(stages_[piece], sequences);
    return through(stages_[piece], step, in);
  });
}

DecoderLm::Step DecoderLm::encoder_step(const Stage& stage,
                                        std::span<const std::vector<int32_t>> sequences) const {
  StepRows rows;
  std::vector<uint32_t> ids;
  int64_t window = 0;
  for (const LayerConfig& layer : config_.layers) window = std::max(window, layer.window);
  for (const std::vector<int32_t>& tokens : sequences) {
    const auto count = static_cast<int64_t>(tokens.size());
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    const Tensor positions = Tensor::arange(0, count, 1, DType::u32, stage.device);
    Tensor is_long;
    if (short_context_ > 0) {
      const std::vector<bool> rows_are_long(tokens.size(), count > short_context_);
      is_long = Tensor::from(rows_are_long, {count, 1}, stage.device);
    }
    rows.runs.push_back(
        {.first = static_cast<int64_t>(ids.size()) - count,
         .rows = nn::SequenceRows(positions),
         .rotations = stage.positions->rotations(positions, is_long, count),
         .temperature = {},
         .near = window > 0 ? rows_within(window / 2, count, stage.device) : Tensor()});
    rows.row_runs.push_back({count, count});
  }
  const auto all = static_cast<int64_t>(ids.size());
  rows.tokens = Tensor::from(ids, {all}, stage.device);
  if (adapters() > 0) rows.scales = Tensor::ones({all, adapters()}, DType::f32, stage.device);
  return {.slices = {rows},
          .wanted = {},
          .last_runs = rows.row_runs,
          .last_scales = rows.scales,
          .caches = std::vector<LayerCache>(config_.layers.size())};
}

// ---- Loading ----

DecoderLm::DecoderLm(const io::ModelFile& file, const Architecture& architecture,
                     const LoadOptions& options)
    : config_(architecture.configure(Metadata(file))) {
  for (const LayerConfig& layer : config_.layers) {
    cache_.push_back(cache_of(config_, layer));
    has_states_ = has_states_ || !cache_.back().states.empty();
  }
  make_placement(file, options);
  const Weights weights(file, device_);
  parameters_ = weights.parameters();
  block_weights_ = std::any_of(file.tensors().begin(), file.tensors().end(), [](const auto& t) {
    return t.shape.rank() > 1 && t.name.starts_with("blk.") && t.dtype && is_block(*t.dtype);
  });
  for (const std::string& path : options.adapters) {
    adapters_.push_back(Adapter::open(path, architecture.name, file));
  }
  load(weights, options);
  for (const Adapter& adapter : adapters_) adapter.require_all_used();
  if (embedding_.table().storage()->file_backed()) {
    file_ = file.mapped(file.require_tensor("token_embd.weight"), 0);
  }
  make_stages();
  load_positions(weights, file);
  compile_stages();
  weights.require_all_used();
}

/// Chooses the devices of the layers.
void DecoderLm::make_placement(const io::ModelFile& file, const LoadOptions& options) {
  PlacementInput input{.file = file,
                       .config = config_,
                       .cache = cache_,
                       .device = options.device,
                       .adapter_bytes = 0};
  for (const std::string& path : options.adapters) {
    std::error_code ignored;  // Adapter::open reports what is wrong with the file
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const auto bytes =
        std::filesystem::file_size(is_folder ? path + "/adapter_model.safetensors" : path, ignored);
    if (!ignored) input.adapter_bytes += bytes;
  }
  placement_ = place(input, options.split);
  placement_text_ = summary(input, options.split, placement_);
  device_ = placement_.layers.back();
}

void DecoderLm::load(const Weights& weights, const LoadOptions& options) {
  const DecoderConfig& c = config_;
  const bool release = options.release_file_pages;
  const Device first = placement_.layers.front();
  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = AdaptedTable("token_embd.weight", table, adapters_, first);
  if (c.token_types) {
    // All tokens are of the first type.
    const Shape types{weights.rows("token_types.weight"), c.hidden};
    token_type_ = weights.floats("token_types.weight", types)[0].contiguous().to(first);
  }
  if (c.embedding_norm) {
    embedding_norm_ =
        nn::Norm(c.norm, weights.vector("token_embd_norm.weight", c.hidden),
                 weights.optional_vector("token_embd_norm.bias", c.hidden), c.norm_eps, first);
  }
  if (c.learned_positions) {
    learned_positions_ = weights.floats("position_embd.weight", {c.context, c.hidden}).to(first);
  }
  if (c.per_layer_size > 0) per_layer_.emplace(c, weights, first, release);
  const size_t layers = c.layers.size();
  for (size_t i = 0; i < layers; ++i) {
    blocks_.push_back(load_layer(weights, i, release));
    if (options.progress) {
      options.progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(layers));
    }
  }
  if (c.output_norm) {
    const std::string name(c.output_norm_name);
    output_norm_ = nn::Norm(c.norm, weights.vector(name + ".weight", c.hidden),
                            weights.optional_vector(name + ".bias", c.hidden), c.norm_eps, device_);
  }
  load_dense(weights, release);
  if (!makes_logits()) return;
  const bool tied = !weights.contains("output.weight");
  // A tied table serves the embedding, too, which reads its rows from the file; the system reads
  // released pages again on use. Adapters tell the table from the output matrix even then.
  head_ = AdaptedLinear(
      {{.name = tied ? "token_embd.weight" : "output.weight",
        .matrix = tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden),
        .bias = weights.optional_vector("output.bias", c.vocabulary),
        .order = {},
        .scale = tied ? Tensor() : weights.optional_scale("output"),
        .adapted = "output.weight"}},
      adapters_, device_, release);
}

/// Loads the dense layers that makers of embeddings have after the pooling: EmbeddingGemma has two.
void DecoderLm::load_dense(const Weights& weights, bool release) {
  embedding_size_ = config_.hidden;
  for (const char* name : {"dense_2", "dense_3"}) {
    const std::string weight = fmt::format("{}.weight", name);
    if (!weights.contains(weight)) continue;
    const int64_t rows = weights.rows(weight);
    dense_.emplace_back(weights.matrix(weight, rows, embedding_size_),
                        weights.optional_vector(fmt::format("{}.bias", name), rows), device_,
                        release);
    embedding_size_ = rows;
  }
}

DecoderLm::Block DecoderLm::load_layer(const Weights& weights, size_t index, bool release) const {
  return load_block({config_, config_.layers[index], weights / fmt::format("blk.{}.", index),
                     placement_.layers[index], release, adapters_, placement_.experts[index]});
}

DecoderLm::Block DecoderLm::load_block(const LayerLoader& loader) {
  const DecoderConfig& c = loader.config;
  const auto norm = [&](bool present, std::string_view name) {
    return present ? std::optional(loader.norm(name, c.hidden)) : std::nullopt;
  };
  const auto mlp = [&]() -> std::optional<std::variant<Mlp, Experts>> {
    if (loader.layer.experts) return Experts(loader);
    if (loader.layer.intermediate == 0) return std::nullopt;
    return Mlp(loader, loader.layer.intermediate);
  };
  const Tensor scale = loader.weights.optional_vector("layer_output_scale.weight", 1);
  const bool first_norm = c.first_norm || loader.has("attn_norm");
  return {.attention_norm = norm(c.attention_norm && first_norm, "attn_norm"),
          .attention_post_norm = norm(c.attention_post_norm, c.attention_post_norm_name),
          .mlp_norm = norm(c.mlp_norm, c.mlp_norm_name),
          .mlp_post_norm = norm(c.mlp_post_norm, c.mlp_post_norm_name),
          .attention = load_mixer(loader),
          .mlp = mlp(),
          .per_layer = c.per_layer_size > 0 ? std::optional(PerLayerInput(loader)) : std::nullopt,
          .output_scale = scale.defined() ? scale.to(loader.device) : scale};
}

DecoderLm::AnyMixer DecoderLm::load_mixer(const LayerLoader& loader) {
  switch (loader.layer.mixer) {
    case Mixer::attention:
      break;
    case Mixer::short_conv:
      return ShortConv(loader);
    case Mixer::mamba2:
      return Mamba2(loader);
    case Mixer::attention_and_mamba2:
      return AttentionAndMamba2(loader);
    case Mixer::delta_net:
      return DeltaNet(loader);
  }
  if (loader.config.is_latent()) return LatentAttention(loader);
  return GroupedAttention(loader);
}

/// Makes the tables of angles. The file may have divisors of the first rope's frequencies: one list
/// for all sequences, or one for those up to the original context and another for longer ones.
void DecoderLm::load_positions(const Weights& weights, const io::ModelFile& file) {
  DecoderConfig config = config_;
  weights.ignore("rope_freqs.weight");  // of models without rope
  if (!config.ropes.empty()) {
    nn::RopeOptions& rope = config.ropes.front();
    const auto divisors = [&](const char* name) {
      return weights.vector(name, rope.dims / 2).to_vector<float>();
    };
    if (weights.contains("rope_freqs.weight")) {
      rope.frequency_divisors = divisors("rope_freqs.weight");
    }
    if (Metadata(file).string("rope.scaling.type", "") == "longrope" ||
        weights.contains("rope_factors_short.weight")) {
      rope.frequency_divisors = divisors("rope_factors_short.weight");
      rope.long_divisors = divisors("rope_factors_long.weight");
      short_context_ = rope.original_context;
    }
  }
  try {
    for (size_t i = 0; i < stages_.size(); ++i) {
      Stage& stage = stages_[i];
      const auto same = std::find_if(stages_.begin(), stages_.begin() + static_cast<ptrdiff_t>(i),
                                     [&](const Stage& s) { return s.device == stage.device; });
      if (same != stages_.begin() + static_cast<ptrdiff_t>(i)) {
        stage.positions = same->positions;
        continue;
      }
      stage.positions = std::make_shared<PositionTables>(config, stage.device);
    }
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());  // rope's metadata or divisors are wrong
  }
}

bool DecoderLm::has_experts() const {
  return std::any_of(config_.layers.begin(), config_.layers.end(),
                     [](const auto& layer) { return layer.experts; });
}

nn::KvCache DecoderLm::make_cache(int64_t context, DType dtype, int64_t sequences,
                                  int64_t positions) const {
  return nn::KvCache({.layers = cache_,
                      .context = context,
                      .dtype = dtype,
                      .device = device_,
                      .sequences = sequences,
                      .positions = positions,
                      .devices = placement_.layers});
}

void DecoderLm::require_file(std::string_view op) const {
  if (file_ != nullptr) file_->require_unchanged(op);
}

}  // namespace wick::models
