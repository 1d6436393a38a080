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

Tensor normed(const std::optional<nn::Norm>& norm, const Tensor& x) {
  return norm ? (*norm)(x) : x;
}

}  // namespace

struct DecoderLm::Step {
  std::vector<StepRows> slices;
  Tensor wanted;                      // rows whose logits are returned; undefined: all rows
  std::vector<nn::RowRun> last_runs;  // runs of the rows that follow the last layer's attention
  std::vector<LayerCache> caches;     // of each layer
};

// ---- Forward pass ----

// Passes the step's tensors to the compiled function as one list: tokens, positions and tables of
// each run, `wanted` if defined, and the keys and values of each layer. step_of() recognises them
// by their number.
Tensor DecoderLm::forward(const Batch& batch, nn::KvCache& cache) const {
  require_file("forward");  // also reinstalls the SIGBUS handler
  std::vector<Tensor> arguments = {batch.tokens};
  for (const Batch::Run& run : batch.runs) {
    arguments.push_back(run.positions);
    arguments.push_back(run.tables);
  }
  if (batch.wanted.defined()) arguments.push_back(batch.wanted);
  for (size_t i = 0; i < cache_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    if (cache_[i].heads > 0) arguments.push_back(cache.keys(layer));
    if (cache_[i].value_size > 0) arguments.push_back(cache.values(layer));
  }
  const bool is_long = long_positions_ != nullptr && cache.context() > long_context_;
  Tensor logits = (is_long ? run_long_ : run_)(arguments).front();
  require_file("forward");
  return logits;
}

DecoderLm::Step DecoderLm::step_of(std::span<const Tensor> arguments,
                                   const PositionTables& positions) const {
  size_t cached = 0;
  for (const nn::KvLayer& layer : cache_) {
    cached += (layer.heads > 0 ? 1U : 0U) + (layer.value_size > 0 ? 1U : 0U);
  }
  const size_t front = arguments.size() - cached;
  Batch batch;
  batch.tokens = arguments[0];
  for (size_t i = 1; i + 1 < front; i += 2) {
    batch.runs.push_back({arguments[i], arguments[i + 1]});
  }
  Step step{.slices = {},
            .wanted = front % 2 == 0 ? arguments[front - 1] : Tensor(),
            .last_runs = {},
            .caches = {}};
  size_t at = front;
  for (const nn::KvLayer& layer : cache_) {
    LayerCache& of = step.caches.emplace_back();
    if (layer.heads > 0) of.keys = arguments[at++];
    if (layer.value_size > 0) of.values = arguments[at++];
  }
  const int64_t slices = slice_count(batch, device_, block_weights_), rows = batch.rows();
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = rows * i / slices, count = rows * (i + 1) / slices - begin;
    StepRows slice{.tokens = batch.tokens.narrow(0, begin, count), .runs = {}, .row_runs = {}};
    int64_t first = 0;
    for (const Batch::Run& run : batch.runs) {
      const Tensor of_run = slices == 1 ? run.positions : run.positions.narrow(0, begin, count);
      const int64_t reach = run.tables.size(1) * nn::KvCache::kPage;
      slice.runs.push_back({.first = first,
                            .rows = nn::SequenceRows(of_run, run.tables),
                            .rotations = positions.rotations(of_run, reach),
                            .temperature = positions.temperatures(of_run, reach)});
      const int64_t run_rows = of_run.size(0);
      slice.row_runs.push_back({run_rows, run_rows / run.tables.size(0)});
      first += run_rows;
    }
    step.slices.push_back(std::move(slice));
  }
  // A selected row is computed as a single row, however many rows its sequence has in the step.
  if (step.wanted.defined()) {
    step.last_runs = {{step.wanted.size(0), 1}};
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
  const Step step = step_of(arguments, positions);
  std::vector<Tensor> xs;  // [t, hidden] of each slice
  for (const StepRows& rows : step.slices) xs.push_back(embed(rows));
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
    for (size_t j = 0; j < xs.size(); ++j) {
      xs[j] = layer(blocks_[i], xs[j], step.slices[j], step.caches[i]);
    }
  }
  return head(last_layer(xs, step), step.last_runs);
}

/// → [t, hidden]
Tensor DecoderLm::embed(const StepRows& rows) const {
  Tensor x = embedding_(rows.tokens);
  if (config_.embedding_scale != 1.0f) x = x * config_.embedding_scale;
  if (!learned_positions_.defined()) return x;
  std::vector<Tensor> positions;
  for (const StepRows::Run& run : rows.runs) positions.push_back(run.rows.positions);
  return x + index_select(learned_positions_,
                          positions.size() == 1 ? positions.front() : cat(positions, 0), 0);
}

/// x [t, hidden] → [t, hidden]
Tensor DecoderLm::layer(const Block& block, const Tensor& x, const StepRows& rows,
                        const LayerCache& cache) const {
  return after_heads(block, x, heads_of(block, x, rows, cache), rows.row_runs);
}

/// Runs attention for each slice, then the rest of the last layer for the selected rows of all
/// slices.
Tensor DecoderLm::last_layer(std::span<const Tensor> xs, const Step& step) const {
  const Block& block = blocks_.back();
  std::vector<Tensor> heads;
  for (size_t i = 0; i < xs.size(); ++i) {
    heads.push_back(heads_of(block, xs[i], step.slices[i], step.caches.back()));
  }
  const auto joined = [&](std::span<const Tensor> parts) {
    const Tensor all = parts.size() == 1 ? parts.front() : cat(parts, 0);
    return step.wanted.defined() ? index_select(all, step.wanted, 0) : all;
  };
  return after_heads(block, joined(xs), joined(heads), step.last_runs);
}

/// x [t, hidden] → concatenated heads [t, h · e]. Stores keys and values in the cache.
Tensor DecoderLm::heads_of(const Block& block, const Tensor& x, const StepRows& rows,
                           const LayerCache& cache) const {
  const Tensor in = normed(block.attention_norm, x);
  return std::visit([&](const auto& attention) { return attention(in, rows, cache); },
                    block.attention);
}

/// The rest of a layer: its input x [t, hidden] and its heads [t, h · e] → [t, hidden].
Tensor DecoderLm::after_heads(const Block& block, const Tensor& x, const Tensor& heads,
                              Runs runs) const {
  const Tensor projected = std::visit(
      [&](const auto& attention) { return attention.output(heads, runs); }, block.attention);
  const Tensor y = x + scaled(normed(block.attention_post_norm, projected));
  const Tensor& read = config_.parallel ? x : y;
  const Tensor in =
      normed(config_.mlp_norm || !config_.parallel ? block.mlp_norm : block.attention_norm, read);
  const Tensor out = std::visit([&](const auto& mlp) { return mlp(in, runs); }, block.mlp);
  return y + scaled(normed(block.mlp_post_norm, out));
}

Tensor DecoderLm::scaled(const Tensor& x) const {
  return config_.residual_scale == 1.0f ? x : x * config_.residual_scale;
}

/// x [t, hidden] → logits [t, vocabulary]
Tensor DecoderLm::head(const Tensor& x, Runs runs) const {
  Tensor logits = head_(output_norm_(x), runs);
  if (config_.logit_scale != 1.0f) logits = logits * config_.logit_scale;
  const float cap = config_.logit_soft_cap;
  return cap > 0.0f ? tanh(logits / cap) * cap : logits;
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
  load(weights, options);
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
  if (c.learned_positions) {
    learned_positions_ = weights.floats("position_embd.weight", {c.context, c.hidden}).to(device_);
  }
  const auto layers = static_cast<int64_t>(c.layers.size());
  for (int64_t i = 0; i < layers; ++i) {
    const LayerConfig& layer = c.layers[static_cast<size_t>(i)];
    blocks_.push_back(
        load_block({c, layer, weights / fmt::format("blk.{}.", i), options.device, release}));
    cache_.push_back(c.is_latent() ? LatentAttention::cache_of(c)
                                   : nn::KvLayer{layer.kv_heads, layer.key_size, layer.value_size});
    if (options.progress) options.progress(i + 1, layers);
  }
  output_norm_ =
      nn::Norm(c.norm, weights.vector("output_norm.weight", c.hidden),
               weights.optional_vector("output_norm.bias", c.hidden), c.norm_eps, device_);
  const bool tied = !weights.contains("output.weight");
  // A tied table serves the embedding, too, which reads its rows from the file; the system reads
  // released pages again on use.
  head_ = nn::Linear(tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden),
                     weights.optional_vector("output.bias", c.vocabulary), device_, release);
}

DecoderLm::Block DecoderLm::load_block(const LayerLoader& loader) {
  const DecoderConfig& c = loader.config;
  const auto norm = [&](bool present, std::string_view name) {
    return present ? std::optional(loader.norm(name, c.hidden)) : std::nullopt;
  };
  const auto attention = [&]() -> std::variant<GroupedAttention, LatentAttention> {
    if (c.is_latent()) return LatentAttention(loader);
    return GroupedAttention(loader);
  };
  const auto mlp = [&]() -> std::variant<Mlp, Experts> {
    if (loader.layer.experts) return Experts(loader);
    return Mlp(loader, loader.layer.intermediate);
  };
  return {.attention_norm = norm(c.attention_norm, "attn_norm"),
          .attention_post_norm = norm(c.attention_post_norm, "post_attention_norm"),
          .mlp_norm = norm(c.mlp_norm, c.mlp_norm_name),
          .mlp_post_norm = norm(c.mlp_post_norm, "post_ffw_norm"),
          .attention = attention(),
          .mlp = mlp()};
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
