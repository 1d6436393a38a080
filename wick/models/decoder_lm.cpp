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

/// y [t, n · size] → [t, n, size]
Tensor split_heads(const Tensor& y, int64_t size) {
  return y.reshape({y.size(0), y.size(1) / size, size});
}

}  // namespace

struct DecoderLm::Slice {
  struct Run {
    int64_t first;  // index of the run's first row in the slice
    nn::SequenceRows rows;
    std::array<nn::Rotation, 2> rotations;  // for layers without and with a window
  };
  Tensor tokens;
  std::vector<Run> runs;
  std::vector<nn::RowRun> row_runs;  // the sequences of these rows, for Projections
};

struct DecoderLm::Step {
  std::vector<Slice> slices;
  Tensor wanted;                         // rows whose logits are returned; undefined: all rows
  std::vector<nn::RowRun> last_runs;     // runs of the rows that follow the last layer's attention
  std::span<const Tensor> keys, values;  // the cache pages of each layer
};

// ---- Forward pass ----

// Passes the step's tensors to the compiled function as one list: tokens, positions and tables of
// each run, `wanted` if defined, and the keys and values of each layer. step_of() recognises them
// by their shapes.
Tensor DecoderLm::forward(const Batch& batch, nn::KvCache& cache) const {
  require_file("forward");  // also reinstalls the SIGBUS handler
  std::vector<Tensor> arguments = {batch.tokens};
  for (const Batch::Run& run : batch.runs) {
    arguments.push_back(run.positions);
    arguments.push_back(run.tables);
  }
  if (batch.wanted.defined()) arguments.push_back(batch.wanted);
  for (int64_t i = 0; i < config_.layers; ++i) arguments.push_back(cache.keys(i));
  for (int64_t i = 0; i < config_.layers; ++i) arguments.push_back(cache.values(i));
  Tensor logits = run_(arguments).front();
  require_file("forward");
  return logits;
}

DecoderLm::Step DecoderLm::step_of(std::span<const Tensor> arguments) const {
  const auto layers = static_cast<size_t>(config_.layers);
  const size_t front = arguments.size() - 2 * layers;
  Batch batch;
  batch.tokens = arguments[0];
  for (size_t i = 1; i + 1 < front; i += 2) {
    batch.runs.push_back({arguments[i], arguments[i + 1]});
  }
  Step step{.slices = {},
            .wanted = front % 2 == 0 ? arguments[front - 1] : Tensor(),
            .last_runs = {},
            .keys = arguments.subspan(front, layers),
            .values = arguments.subspan(front + layers)};
  const int64_t slices = slice_count(batch, device_, block_weights_), rows = batch.rows();
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = rows * i / slices, count = rows * (i + 1) / slices - begin;
    Slice slice{.tokens = batch.tokens.narrow(0, begin, count), .runs = {}, .row_runs = {}};
    int64_t first = 0;
    for (const Batch::Run& run : batch.runs) {
      const Tensor positions = slices == 1 ? run.positions : run.positions.narrow(0, begin, count);
      const int64_t reach = run.tables.size(1) * nn::KvCache::kPage;
      slice.runs.push_back({.first = first,
                            .rows = nn::SequenceRows(positions, run.tables),
                            .rotations = rotations(positions, reach)});
      const int64_t run_rows = positions.size(0);
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

/// Cosines and sines for the positions, which are below `reach`, for layers without and with a
/// window.
std::array<nn::Rotation, 2> DecoderLm::rotations(const Tensor& positions, int64_t reach) const {
  std::array<nn::Rotation, 2> result;
  const std::lock_guard lock(rope_mutex_);
  for (size_t i = 0; i < 2; ++i) {
    if (i == 1 && !config_.has_local_rope()) {
      result[1] = result[0];
      break;
    }
    rope_[i].reserve(reach);
    result[i] = {index_select(rope_[i].cos(0, reach), positions, 0),
                 index_select(rope_[i].sin(0, reach), positions, 0)};
  }
  return result;
}

/// The function that forward() compiles; its arguments are the list that forward() makes.
Tensor DecoderLm::run(std::span<const Tensor> arguments) const {
  const Step step = step_of(arguments);
  std::vector<Tensor> xs;  // [t, hidden] of each slice
  for (const Slice& slice : step.slices) xs.push_back(embed(slice.tokens));
  for (size_t i = 0; i + 1 < blocks_.size(); ++i) {
    for (size_t j = 0; j < xs.size(); ++j) xs[j] = layer(blocks_[i], xs[j], step.slices[j], step);
  }
  return head(last_layer(xs, step), step.last_runs);
}

/// ids [t] → [t, hidden]
Tensor DecoderLm::embed(const Tensor& ids) const {
  const Tensor x = embedding_(ids);
  return config_.embedding_scale == 1.0f ? x : x * config_.embedding_scale;
}

/// x [t, hidden] → [t, hidden]
Tensor DecoderLm::layer(const Block& block, const Tensor& x, const Slice& slice,
                        const Step& step) const {
  const Tensor heads = attention(block, x, slice, step);
  return add_mlp(block, add_attention(block, x, heads, slice.row_runs), slice.row_runs);
}

/// Runs attention for each slice, then the rest of the last layer for the selected rows of all
/// slices.
Tensor DecoderLm::last_layer(std::span<const Tensor> xs, const Step& step) const {
  const Block& block = blocks_.back();
  std::vector<Tensor> heads;
  for (size_t i = 0; i < xs.size(); ++i) {
    heads.push_back(attention(block, xs[i], step.slices[i], step));
  }
  const auto joined = [&](std::span<const Tensor> parts) {
    const Tensor all = parts.size() == 1 ? parts.front() : cat(parts, 0);
    return step.wanted.defined() ? index_select(all, step.wanted, 0) : all;
  };
  const Tensor y = add_attention(block, joined(xs), joined(heads), step.last_runs);
  return add_mlp(block, y, step.last_runs);
}

/// x [t, hidden] and attention output [t, h · e] → [t, hidden]
Tensor DecoderLm::add_attention(const Block& block, const Tensor& x, const Tensor& heads,
                                Runs runs) const {
  const Tensor y = block.output(heads, runs);
  return x + (block.attention_post_norm ? (*block.attention_post_norm)(y) : y);
}

/// x [t, hidden] → [t, hidden]
Tensor DecoderLm::add_mlp(const Block& block, const Tensor& x, Runs runs) const {
  const Tensor y = mlp(block, block.mlp_norm(x), runs);
  return x + (block.mlp_post_norm ? (*block.mlp_post_norm)(y) : y);
}

/// x [t, hidden] → concatenated heads [t, h · e]. Stores keys and values in the cache.
Tensor DecoderLm::attention(const Block& block, const Tensor& x, const Slice& slice,
                            const Step& step) const {
  const auto [q, k, v] = queries_keys_values(block, block.attention_norm(x), slice.row_runs);
  const auto layer = static_cast<size_t>(block.index);
  const int64_t window = config_.windows[layer];
  std::vector<Tensor> ys;
  for (const Slice::Run& run : slice.runs) {
    const auto rows = [&](const Tensor& t) {
      return t.narrow(0, run.first, run.rows.positions.size(0));
    };
    ys.push_back(nn::attend(rows(q), rows(k), rows(v), run.rows, run.rotations[window > 0 ? 1 : 0],
                            step.keys[layer], step.values[layer], attention_options(window)));
  }
  return ys.size() == 1 ? ys.front() : cat(ys, 0);
}

/// x [t, hidden] → queries [t, h, d], keys [t, g, d] and values [t, g, e]
std::array<Tensor, 3> DecoderLm::queries_keys_values(const Block& block, const Tensor& x,
                                                     Runs runs) const {
  const DecoderConfig& c = config_;
  const int64_t sizes[] = {c.heads * c.key_size, c.kv_heads * c.key_size,
                           c.kv_heads * c.value_size};
  const std::vector<Tensor> parts = block.qkv.joined(x, runs).split(sizes, -1);
  Tensor q = split_heads(parts[0], c.key_size), k = split_heads(parts[1], c.key_size);
  if (block.query_norm) q = (*block.query_norm)(q);
  if (block.key_norm) k = (*block.key_norm)(k);
  return {q, k, split_heads(parts[2], c.value_size)};
}

/// x [t, hidden] → [t, hidden]
Tensor DecoderLm::mlp(const Block& block, const Tensor& x, Runs runs) const {
  const std::vector<Tensor> halves = block.gate_up.joined(x, runs).chunk(2, -1);
  const Tensor gate = config_.activation == Activation::silu ? silu(halves[0]) : gelu(halves[0]);
  return block.down(gate * halves[1], runs);
}

/// x [t, hidden] → logits [t, vocabulary]
Tensor DecoderLm::head(const Tensor& x, Runs runs) const {
  const Tensor logits = head_(output_norm_(x), runs);
  const float cap = config_.logit_soft_cap;
  return cap > 0.0f ? tanh(logits / cap) * cap : logits;
}

AttentionOptions DecoderLm::attention_options(int64_t window) const {
  return {.scale = config_.attention_scale,
          .causal = true,
          .window = window,
          .soft_cap = config_.attention_soft_cap};
}

// ---- Loading ----

DecoderLm::DecoderLm(const io::Gguf& file, const Architecture& architecture,
                     const LoadOptions& options)
    : config_(architecture.configure(Metadata(file))),
      device_(options.device),
      // Not captured here: Decoder captures steps itself, and prompts rarely have equal lengths.
      run_([this](std::span<const Tensor> a) { return std::vector<Tensor>{run(a)}; },
           {.capture = false}) {
  const DecoderConfig& c = config_;
  const Weights weights(file, options.device);
  parameters_ = weights.parameters();
  const bool release = options.release_file_pages;

  const Tensor table = weights.matrix("token_embd.weight", c.vocabulary, c.hidden);
  embedding_ = nn::Embedding(table, device_);
  if (embedding_.table().storage()->file_backed()) file_ = file.bytes();
  for (int64_t i = 0; i < c.layers; ++i) {
    blocks_.push_back(
        load_block(weights / fmt::format("blk.{}.", i), architecture.tensors, i, release));
    if (options.progress) options.progress(i + 1, c.layers);
  }
  output_norm_ = nn::RmsNorm(weights.vector("output_norm.weight", c.hidden), c.norm_eps, device_);
  const bool tied = !weights.contains("output.weight");
  // A tied table serves the embedding, too, which reads its rows from the file; the system reads
  // released pages again on use.
  head_ = nn::Linear(tied ? table : weights.matrix("output.weight", c.vocabulary, c.hidden), {},
                     device_, release);
  load_rope(weights, file);
}

DecoderLm::Block DecoderLm::load_block(const Weights& w, const TensorNames& names, int64_t index,
                                       bool release) {
  const DecoderConfig& c = config_;
  const auto norm = [&](std::string_view name) {
    return nn::RmsNorm(w.vector(fmt::format("{}.weight", name), c.hidden), c.norm_eps, device_);
  };
  const auto optional_norm = [&](std::string_view name) {
    return name.empty() ? std::nullopt : std::optional(norm(name));
  };
  // rope_interleaved rotates pairs (2i, 2i + 1), and the file pairs i with i + r/2, so weights of
  // queries and keys are permuted.
  const auto head_norm = [&](std::string_view name) -> std::optional<nn::RmsNorm> {
    if (name.empty()) return std::nullopt;
    const Tensor weight = w.vector(fmt::format("{}.weight", name), c.key_size);
    return nn::RmsNorm(reordered(weight, rotated_order(1)), c.norm_eps, device_);
  };
  const auto linear = [&](std::string_view name, int64_t n, int64_t k) {
    return nn::Linear(w.matrix(fmt::format("{}.weight", name), n, k),
                      w.optional_vector(fmt::format("{}.bias", name), n), device_, release);
  };
  return {
      .index = index,
      .attention_norm = norm(names.attention_norm),
      .mlp_norm = norm(names.mlp_norm),
      .query_norm = head_norm(names.query_norm),
      .key_norm = head_norm(names.key_norm),
      .attention_post_norm = optional_norm(names.attention_post_norm),
      .mlp_post_norm = optional_norm(names.mlp_post_norm),
      .qkv = load_qkv(w, names, release),
      .gate_up = load_gate_up(w, names, release),
      .output = linear(names.attention_output, c.hidden, c.heads * c.value_size),
      .down = linear(names.down, c.hidden, c.intermediate),
  };
}

nn::Projections DecoderLm::load_qkv(const Weights& w, const TensorNames& names, bool release) {
  const DecoderConfig& c = config_;
  const int64_t values = c.kv_heads * c.value_size;
  if (!names.qkv.empty()) {
    std::vector<int64_t> order = rotated_order(c.heads + c.kv_heads);
    const auto rotated = static_cast<int64_t>(order.size());
    if (rotated > 0) {
      for (int64_t i = 0; i < values; ++i) order.push_back(rotated + i);
    }
    const int64_t all = (c.heads + c.kv_heads) * c.key_size + values;
    return load_projections(w, {{names.qkv, all, std::move(order)}}, c.qkv_biases, release);
  }
  return load_projections(w,
                          {{names.query, c.heads * c.key_size, rotated_order(c.heads)},
                           {names.key, c.kv_heads * c.key_size, rotated_order(c.kv_heads)},
                           {names.value, values, {}}},
                          c.qkv_biases, release);
}

nn::Projections DecoderLm::load_gate_up(const Weights& w, const TensorNames& names, bool release) {
  const int64_t n = config_.intermediate;
  if (!names.gate_up.empty()) return load_projections(w, {{names.gate_up, 2 * n}}, false, release);
  return load_projections(w, {{names.gate, n}, {names.up, n}}, false, release);
}

nn::Projections DecoderLm::load_projections(const Weights& w, std::vector<Projection> projections,
                                            bool need_biases, bool release) {
  std::vector<Tensor> matrices, biases;
  for (const auto& [name, rows, order] : projections) {
    const std::string bias = fmt::format("{}.bias", name);
    matrices.push_back(
        reordered(w.matrix(fmt::format("{}.weight", name), rows, config_.hidden), order));
    biases.push_back(
        reordered(need_biases ? w.vector(bias, rows) : w.optional_vector(bias, rows), order));
    block_weights_ = block_weights_ || is_block(matrices.back().dtype());
  }
  return nn::Projections(matrices, biases, device_, release);
}

/// The order of the rows of `heads` heads that rope_interleaved needs; empty: the file's order.
std::vector<int64_t> DecoderLm::rotated_order(int64_t heads) const {
  if (config_.rope_style == RopeStyle::interleaved) return {};
  const int64_t size = config_.key_size, rotated = config_.rope.dims;
  std::vector<int64_t> order;
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t from = i >= rotated ? i : i / 2 + (i % 2) * (rotated / 2);
      order.push_back(head * size + from);
    }
  }
  return order;
}

void DecoderLm::load_rope(const Weights& weights, const io::Gguf& file) {
  nn::RopeOptions rope = config_.rope;
  if (const Tensor divisors = weights.optional_vector("rope_freqs.weight", rope.dims / 2);
      divisors.defined()) {
    rope.frequency_divisors = divisors.to_vector<float>();
  }
  try {
    rope_[0] = nn::RopeTable(rope, device_);
    if (config_.has_local_rope()) rope_[1] = nn::RopeTable(config_.local_rope, device_);
  } catch (const Error& e) {
    throw Error(e.kind(), file.path(), e.what());  // rope's metadata or rope_freqs.weight is wrong
  }
}

nn::KvCache DecoderLm::make_cache(int64_t context, DType dtype, int64_t sequences,
                                  int64_t positions) const {
  return nn::KvCache({.layers = config_.layers,
                      .heads = config_.kv_heads,
                      .key_size = config_.key_size,
                      .value_size = config_.value_size,
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
