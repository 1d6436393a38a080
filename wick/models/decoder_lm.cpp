#include "wick/models/decoder_lm.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::models {

namespace {

/// The number of slices that a layer's rows are cut into. Each slice goes through the whole layer
/// before the next one, so that its intermediates stay in caches. Rows are independent, so the
/// number doesn't change their bits. Float weights get one slice: they are unpacked again for each,
/// which costs more than the caches save.
int64_t slice_count(const Batch& batch, Device device, bool blocks) {
  const int64_t rows = rows_in_cache(device);
  const bool one_sequence = batch.runs.size() == 1 && batch.runs.front().tables.size(0) == 1;
  return rows == 0 || !blocks || !one_sequence ? 1 : std::max<int64_t>(1, batch.rows() / rows);
}

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

struct DecoderLm::Step {
  std::vector<StepRows> slices;
  Tensor wanted;                      // rows whose logits are returned; undefined: all rows
  std::vector<nn::RowRun> last_runs;  // runs of the rows that follow the last layer's attention
  Tensor last_scales;                 // and their scales of adapters
  RowSet last_set() const { return {last_runs, last_scales}; }
  std::vector<LayerCache> caches;  // of each layer
};

// ---- Forward pass ----

// Passes the step's tensors to the compiled function as one list: tokens, positions and tables of
// each run, slots of each run if the cache has recurrent states, `wanted` if defined, scales of
// adapters if there are any, and the keys, values and states of each layer. step_of() recognises
// them by their number.
std::vector<Tensor> DecoderLm::arguments_of(const Batch& batch, const nn::KvCache& cache) const {
  std::vector<Tensor> arguments = {batch.tokens};
  for (const Batch::Run& run : batch.runs) {
    arguments.push_back(run.positions);
    arguments.push_back(run.tables);
    if (has_states_) arguments.push_back(run.slots);
  }
  if (batch.wanted.defined()) arguments.push_back(batch.wanted);
  if (!adapters_.empty()) arguments.push_back(batch.scales);
  for (size_t i = 0; i < cache_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    if (cache_[i].heads > 0) arguments.push_back(cache.keys(layer));
    if (cache_[i].value_size > 0) arguments.push_back(cache.values(layer));
    for (const Tensor& state : cache.states(layer)) arguments.push_back(state);
  }
  return arguments;
}

Tensor DecoderLm::forward(const Batch& batch, nn::KvCache& cache) const {
  if (!makes_logits()) throw Error("forward", "this model makes embeddings, not logits");
  require_file("forward");  // also reinstalls the SIGBUS handler
  const bool is_long = long_positions_ != nullptr && cache.context() > long_context_;
  Tensor logits = (is_long ? run_long_ : run_)(arguments_of(batch, cache)).front();
  require_file("forward");
  return logits;
}

DecoderLm::Step DecoderLm::step_of(std::span<const Tensor> arguments,
                                   const PositionTables& positions) const {
  size_t cached = 0;
  for (const nn::KvLayer& layer : cache_) {
    cached += (layer.heads > 0 ? 1U : 0U) + (layer.value_size > 0 ? 1U : 0U) + layer.states.size();
  }
  size_t front = arguments.size() - cached, at = front;
  Batch batch;
  if (!adapters_.empty()) batch.scales = arguments[--front];
  batch.tokens = arguments[0];
  const size_t per_run = has_states_ ? 3 : 2;
  for (size_t i = 1; i + per_run <= front; i += per_run) {
    batch.runs.push_back(
        {arguments[i], arguments[i + 1], has_states_ ? arguments[i + 2] : Tensor()});
  }
  Step step{.slices = {},
            .wanted = front % per_run != 1 ? arguments[front - 1] : Tensor(),
            .last_runs = {},
            .last_scales = batch.scales,
            .caches = {}};
  for (const nn::KvLayer& layer : cache_) {
    LayerCache& of = step.caches.emplace_back();
    if (layer.heads > 0) of.keys = arguments[at++];
    if (layer.value_size > 0) of.values = arguments[at++];
    for (size_t i = 0; i < layer.states.size(); ++i) of.states.push_back(arguments[at++]);
  }
  for (size_t i = 0; i < step.caches.size(); ++i) {
    const int other = config_.layers[i].cache_of;
    if (other != LayerConfig::kOwnCache) step.caches[i] = step.caches[static_cast<size_t>(other)];
  }
  const int64_t slices = slice_count(batch, device_, block_weights_), rows = batch.rows();
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = rows * i / slices, count = rows * (i + 1) / slices - begin;
    StepRows slice{.tokens = batch.tokens.narrow(0, begin, count),
                   .runs = {},
                   .row_runs = {},
                   .scales = adapters_.empty() ? Tensor() : batch.scales.narrow(0, begin, count),
                   .per_layer = {}};
    int64_t first = 0;
    for (const Batch::Run& run : batch.runs) {
      const Tensor of_run = slices == 1 ? run.positions : run.positions.narrow(0, begin, count);
      const int64_t reach = run.tables.size(1) * nn::KvCache::kPage;
      slice.runs.push_back({.first = first,
                            .rows = nn::SequenceRows(of_run, run.tables),
                            .rotations = positions.rotations(of_run, reach),
                            .temperature = positions.temperatures(of_run, reach),
                            .slots = run.slots,
                            .near = {}});
      const int64_t run_rows = of_run.size(0);
      slice.row_runs.push_back({run_rows, run_rows / run.tables.size(0)});
      first += run_rows;
    }
    step.slices.push_back(std::move(slice));
  }
  // A selected row is computed as a single row, however many rows its sequence has in the step.
  if (step.wanted.defined()) {
    step.last_runs = {{step.wanted.size(0), 1}};
    if (!adapters_.empty()) step.last_scales = index_select(batch.scales, step.wanted, 0);
  } else {
    for (const Batch::Run& run : batch.runs) {
      const int64_t run_rows = run.positions.size(0);
      step.last_runs.push_back({run_rows, run_rows / run.tables.size(0)});
    }
  }
  return step;
}

/// The function that forward() compiles; its arguments are the list that forward() makes.
Tensor DecoderLm::run(std::span<const Tensor> arguments, const PositionTables& positions) const {
  Step step = step_of(arguments, positions);
  const Tensor x = hidden(step);
  return head(x, step.last_set());
}

/// The result of the last layer for the wanted rows, [rows, hidden].
Tensor DecoderLm::hidden(Step& step) const {
  std::vector<Tensor> xs;  // [t, hidden] of each slice
  for (StepRows& rows : step.slices) {
    xs.push_back(embed_tokens(rows));
    if (per_layer_) rows.per_layer = (*per_layer_)(rows.tokens, xs.back(), rows.set());
  }
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
    for (size_t j = 0; j < xs.size(); ++j) {
      xs[j] = layer(i, xs[j], step.slices[j], step.caches[i]);
    }
  }
  return last_layer(xs, step);
}

/// → [t, hidden]
Tensor DecoderLm::embed_tokens(const StepRows& rows) const {
  Tensor x = embedding_(rows.tokens);
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

/// Runs attention for each slice, then the rest of the last layer for the selected rows of all
/// slices.
Tensor DecoderLm::last_layer(std::span<const Tensor> xs, const Step& step) const {
  const Block& block = blocks_.back();
  std::vector<Tensor> heads, per_layer;
  for (size_t i = 0; i < xs.size(); ++i) {
    heads.push_back(heads_of(block, xs[i], step.slices[i], step.caches.back()));
    if (per_layer_) per_layer.push_back(step.slices[i].per_layer);
  }
  const auto joined = [&](std::span<const Tensor> parts) {
    const Tensor all = parts.size() == 1 ? parts.front() : cat(parts, 0);
    return step.wanted.defined() ? index_select(all, step.wanted, 0) : all;
  };
  return after_heads(blocks_.size() - 1, joined(xs), joined(heads),
                     per_layer_ ? joined(per_layer) : Tensor(), step.last_set());
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
  const Tensor projected = std::visit(
      [&](const auto& attention) { return attention.output(heads, runs); }, block.attention);
  const auto added = [&](const Tensor& to, const Tensor& part,
                         const std::optional<nn::Norm>& norm) {
    return config_.post_norm ? normed(norm, to + part) : to + scaled(normed(norm, part));
  };
  const Tensor y = added(x, projected, block.attention_post_norm);
  if (!block.mlp) return y;
  const Tensor& read = config_.parallel ? x : y;
  const Tensor in =
      normed(config_.mlp_norm || !config_.parallel ? block.mlp_norm : block.attention_norm, read);
  const Tensor out = std::visit([&](const auto& mlp) { return mlp(in, runs); }, *block.mlp);
  Tensor result = added(y, out, block.mlp_post_norm);
  if (block.per_layer) {
    const Tensor e = per_layer.narrow(1, static_cast<int64_t>(index), 1).squeeze(1);
    result = result + (*block.per_layer)(result, e, runs);
  }
  return block.output_scale.defined() ? result * block.output_scale : result;
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
  require_file("embed");
  return cat(embeddings, 0);
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
  const Batch batch =
      Batch::of(cache, inputs, Logits::all, config_.vocabulary, device_, adapters());
  const bool is_long = long_positions_ != nullptr && cache.context() > long_context_;
  Step step = step_of(arguments_of(batch, cache), is_long ? *long_positions_ : *positions_);
  return hidden(step);
}

Tensor DecoderLm::hidden_of_encoder(std::span<const std::vector<int32_t>> sequences) const {
  StepRows rows;
  std::vector<uint32_t> ids;
  int64_t window = 0;
  for (const LayerConfig& layer : config_.layers) window = std::max(window, layer.window);
  for (const std::vector<int32_t>& tokens : sequences) {
    const auto count = static_cast<int64_t>(tokens.size());
    check_tokens(tokens, config_);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    const Tensor positions = Tensor::arange(0, count, 1, DType::u32, device_);
    rows.runs.push_back({.first = static_cast<int64_t>(ids.size()) - count,
                         .rows = nn::SequenceRows(positions),
                         .rotations = positions_->rotations(positions, count),
                         .temperature = {},
                         .near = window > 0 ? rows_within(window / 2, count, device_) : Tensor()});
    rows.row_runs.push_back({count, count});
  }
  const auto all = static_cast<int64_t>(ids.size());
  rows.tokens = Tensor::from(ids, {all}, device_);
  Step step{.slices = {rows},
            .wanted = {},
            .last_runs = rows.row_runs,
            .last_scales = {},
            .caches = std::vector<LayerCache>(config_.layers.size())};
  return hidden(step);
}

// ---- Loading ----

DecoderLm::DecoderLm(const io::ModelFile& file, const Architecture& architecture,
                     const LoadOptions& options)
    : config_(architecture.configure(Metadata(file))),
      device_(options.device),
      // Not captured here: Decoder captures steps itself, and prompts rarely have equal lengths.
      run_([this](std::span<const Tensor> a) { return std::vector<Tensor>{run(a, *positions_)}; },
           {.capture = false}),
      run_long_(
          [this](std::span<const Tensor> a) {
            return std::vector<Tensor>{run(a, *long_positions_)};
          },
          {.capture = false}) {
  const Weights weights(file, options.device);
  parameters_ = weights.parameters();
  block_weights_ = std::any_of(file.tensors().begin(), file.tensors().end(), [](const auto& t) {
    return t.shape.rank() > 1 && t.name.starts_with("blk.") && t.dtype && is_block(*t.dtype);
  });
  for (const std::string& path : options.adapters) {
    adapters_.push_back(Adapter::open(path, architecture.name));
  }
  load(weights, options);
  for (const Adapter& adapter : adapters_) adapter.require_all_used();
  if (embedding_.table().storage()->file_backed()) {
    file_ = file.mapped(file.require_tensor("token_embd.weight"), 0);
  }
  load_positions(weights, file);
  weights.require_all_used();
}

void DecoderLm::load(const Weights& weights, const LoadOptions& options) {
  const DecoderConfig& c = config_;
  const bool release = options.release_file_pages;
  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = nn::Embedding(table, device_);
  if (c.token_types) {
    // All tokens are of the first type.
    const Shape types{weights.rows("token_types.weight"), c.hidden};
    token_type_ = weights.floats("token_types.weight", types)[0].contiguous().to(device_);
  }
  if (c.embedding_norm) {
    embedding_norm_ =
        nn::Norm(c.norm, weights.vector("token_embd_norm.weight", c.hidden),
                 weights.optional_vector("token_embd_norm.bias", c.hidden), c.norm_eps, device_);
  }
  if (c.learned_positions) {
    learned_positions_ = weights.floats("position_embd.weight", {c.context, c.hidden}).to(device_);
  }
  if (c.per_layer_size > 0) per_layer_.emplace(c, weights, device_, release);
  const auto layers = static_cast<int64_t>(c.layers.size());
  for (int64_t i = 0; i < layers; ++i) {
    const LayerConfig& layer = c.layers[static_cast<size_t>(i)];
    blocks_.push_back(load_block(
        {c, layer, weights / fmt::format("blk.{}.", i), options.device, release, adapters_}));
    cache_.push_back(cache_of(c, layer));
    has_states_ = has_states_ || !cache_.back().states.empty();
    if (options.progress) options.progress(i + 1, layers);
  }
  if (c.output_norm) {
    const std::string name(c.output_norm_name);
    output_norm_ = nn::Norm(c.norm, weights.vector(name + ".weight", c.hidden),
                            weights.optional_vector(name + ".bias", c.hidden), c.norm_eps, device_);
  }
  if (!makes_logits()) return;
  const bool tied = !weights.contains("output.weight");
  // A tied table serves the embedding, too, which reads its rows from the file; the system reads
  // released pages again on use.
  head_ = AdaptedLinear(
      {{.name = tied ? "token_embd.weight" : "output.weight",
        .matrix = tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden),
        .bias = weights.optional_vector("output.bias", c.vocabulary),
        .order = {},
        .scale = tied ? Tensor() : weights.optional_scale("output")}},
      tied ? std::span<const Adapter>() : adapters_, device_, release);
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

/// Makes the tables of angles. The file may have divisors of the first rope's frequencies: one for
/// all contexts, or one for contexts up to the trained one and another for longer ones.
void DecoderLm::load_positions(const Weights& weights, const io::ModelFile& file) {
  DecoderConfig config = config_, longer = config_;
  weights.ignore("rope_freqs.weight");  // of models without rope
  bool has_long = false;
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
      longer.ropes.front().frequency_divisors = divisors("rope_factors_long.weight");
      has_long = true;
    }
    long_context_ = rope.original_context;
  }
  try {
    positions_ = std::make_unique<PositionTables>(config, device_);
    if (has_long) long_positions_ = std::make_unique<PositionTables>(longer, device_);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());  // rope's metadata or divisors are wrong
  }
}

nn::KvCache DecoderLm::make_cache(int64_t context, DType dtype, int64_t sequences,
                                  int64_t positions) const {
  return nn::KvCache({.layers = cache_,
                      .context = context,
                      .dtype = dtype,
                      .device = device_,
                      .sequences = sequences,
                      .positions = positions});
}

void DecoderLm::require_file(std::string_view op) const {
  if (file_ != nullptr) file_->require_unchanged(op);
}

}  // namespace wick::models
