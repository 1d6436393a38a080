// The pieces of a DecoderLm's step: stages of layers on one device, and what they hand over.
#include <algorithm>

#include "wick/base/error.h"
#include "wick/models/decoder_step.h"
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

Tensor joined(std::span<const Tensor> parts) {
  return parts.size() == 1 ? parts.front() : cat(parts, 0);
}

}  // namespace

// ---- Stages ----

/// Cuts the model where the device changes, and around experts on another device.
void DecoderLm::make_stages() {
  Stage stage{.device = placement_.layers.front()};
  const auto cut = [&](Stage next) { stages_.push_back(std::exchange(stage, std::move(next))); };
  for (size_t i = 0; i < placement_.layers.size(); ++i) {
    const Device device = placement_.layers[i], experts = placement_.experts[i];
    if (device != stage.device) cut({.device = device, .first = i});
    stage.end = i + 1;
    if (experts == device) continue;
    stage.before_experts = true;
    cut({.device = experts, .first = i, .end = i + 1, .only_experts = true});
    cut({.device = device, .first = i, .end = i + 1, .after_experts = true});
  }
  stages_.push_back(std::move(stage));
  for (Stage& of : stages_) find_cached(of);
}

/// Lists the layers whose cache a stage reads: its own, and earlier ones that share theirs.
void DecoderLm::find_cached(Stage& stage) const {
  if (stage.only_experts) return;
  for (size_t i = stage.first + (stage.after_experts ? 1 : 0); i < stage.end; ++i) {
    const int other = config_.layers[i].cache_of;
    stage.cached.push_back(other == LayerConfig::kOwnCache ? i : static_cast<size_t>(other));
  }
  std::sort(stage.cached.begin(), stage.cached.end());
  stage.cached.erase(std::unique(stage.cached.begin(), stage.cached.end()), stage.cached.end());
}

void DecoderLm::compile_stages() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    // Not captured here: Decoder captures steps itself, and prompts rarely have equal lengths.
    stages_[i].run = std::make_shared<const Compiled>(
        [this, i](std::span<const Tensor> arguments) { return run(stages_[i], arguments); },
        CompileOptions{.capture = false});
  }
}

/// Whether a stage returns the result of the last layer.
bool DecoderLm::ends_model(const Stage& stage) const {
  return stage.end == config_.layers.size() && !stage.only_experts && !stage.before_experts;
}

/// The number of tensors that a stage gets from the one before it.
size_t DecoderLm::moved_into(const Stage& stage) const {
  if (&stage == stages_.data()) return 0;
  // Input, ids, weights, and scales of adapters
  if (stage.only_experts) return adapters_.empty() ? 3 : 4;
  if (stage.after_experts) return 1;  // the experts' result
  return per_layer_ ? 2 : 1;          // x and the per-layer embeddings
}

/// The number of tensors that are kept for a stage during the one before it.
size_t DecoderLm::kept_for(const Stage& stage) const {
  if (!stage.after_experts) return 0;
  const auto& experts = std::get<Experts>(*blocks_[stage.first].mlp);
  return 1U + (experts.has_shared() ? 1U : 0U) + (per_layer_ ? 1U : 0U);
}

// ---- Arguments of the compiled functions ----

// Passes the batch to the compiled function as one list: tokens, positions and tables of each run,
// slots of each run if the cache has recurrent states, is_long of each run if the model has
// LongRoPE, `wanted` if defined and the stage has a part of the last layer, scales of adapters if
// there are any, and the keys, values and states of each layer whose cache it reads. step_of()
// recognises them by their number.
void DecoderLm::add_arguments(const Stage& stage, const Batch& batch, const nn::KvCache& cache,
                              std::vector<Tensor>& arguments) const {
  if (stage.only_experts) return;
  arguments.push_back(batch.tokens);
  for (const Batch::Run& run : batch.runs) {
    arguments.push_back(run.positions);
    arguments.push_back(run.tables);
    if (has_states_) arguments.push_back(run.slots);
    if (short_context_ > 0) arguments.push_back(run.is_long);
  }
  if (batch.wanted.defined() && stage.end == blocks_.size()) arguments.push_back(batch.wanted);
  if (!adapters_.empty()) arguments.push_back(batch.scales);
  for (const size_t i : stage.cached) {
    const auto layer = static_cast<int64_t>(i);
    if (cache_[i].heads > 0) arguments.push_back(cache.keys(layer));
    if (cache_[i].value_size > 0) arguments.push_back(cache.values(layer));
    for (const Tensor& state : cache.states(layer)) arguments.push_back(state);
  }
}

CausalLm::Carried DecoderLm::run_piece(size_t piece, const Batch& batch, const nn::KvCache& cache,
                                       const Carried& in) const {
  const Stage& stage = stages_[piece];
  // The first piece reads rows of the embedding table, which may be mapped. The check also
  // reinstalls the SIGBUS handler.
  if (piece == 0) require_file("forward");
  std::vector<Tensor> arguments = in.moved;
  arguments.insert(arguments.end(), in.kept.begin(), in.kept.end());
  add_arguments(stage, batch, cache, arguments);
  Carried out{.moved = (*stage.run)(arguments), .kept = {}};
  if (piece == 0) require_file("forward");
  if (stage.before_experts) {
    const auto moved = static_cast<ptrdiff_t>(moved_into(stages_[piece + 1]));
    out.kept.assign(out.moved.begin() + moved, out.moved.end());
    out.moved.resize(static_cast<size_t>(moved));
  }
  return out;
}

/// The function that is compiled; its arguments are the list that run_piece() makes.
std::vector<Tensor> DecoderLm::run(const Stage& stage, std::span<const Tensor> arguments) const {
  const size_t moved = moved_into(stage), kept = kept_for(stage);
  const auto part = [&](size_t first, size_t count) {
    const std::span<const Tensor> of = arguments.subspan(first, count);
    return std::vector<Tensor>(of.begin(), of.end());
  };
  const Carried in{.moved = part(0, moved), .kept = part(moved, kept)};
  Step step = stage.only_experts ? Step() : step_of(stage, arguments.subspan(moved + kept));
  Carried out = through(stage, step, in);
  if (ends_model(stage)) return {head(out.moved.front(), step.last_set())};
  out.moved.insert(out.moved.end(), out.kept.begin(), out.kept.end());
  return std::move(out.moved);
}

/// Rows of a batch. A part of the batch must be of its only run.
StepRows DecoderLm::slice_of(const Batch& batch, int64_t begin, int64_t count,
                             const PositionTables& positions) const {
  const bool is_all = count == batch.rows();
  StepRows slice{.tokens = batch.tokens.narrow(0, begin, count),
                 .runs = {},
                 .row_runs = {},
                 .scales = adapters_.empty() ? Tensor() : batch.scales.narrow(0, begin, count),
                 .per_layer = {}};
  int64_t first = 0;
  for (const Batch::Run& run : batch.runs) {
    const auto rows_of = [&](const Tensor& all) {
      return is_all || !all.defined() ? all : all.narrow(0, begin, count);
    };
    const Tensor of_run = rows_of(run.positions);
    const int64_t reach = run.tables.size(1) * nn::KvCache::kPage;
    slice.runs.push_back({.first = first,
                          .rows = nn::SequenceRows(of_run, run.tables),
                          .rotations = positions.rotations(of_run, rows_of(run.is_long), reach),
                          .temperature = positions.temperatures(of_run, reach),
                          .slots = run.slots,
                          .chunk = positions.within_chunks(of_run, run.tables),
                          .near = {}});
    const int64_t run_rows = of_run.size(0);
    slice.row_runs.push_back({run_rows, run_rows / run.tables.size(0)});
    first += run_rows;
  }
  return slice;
}

DecoderLm::Step DecoderLm::step_of(const Stage& stage, std::span<const Tensor> arguments) const {
  size_t cached = 0;
  for (const size_t i : stage.cached) {
    const nn::KvLayer& layer = cache_[i];
    cached += (layer.heads > 0 ? 1U : 0U) + (layer.value_size > 0 ? 1U : 0U) + layer.states.size();
  }
  size_t front = arguments.size() - cached, at = front;
  Batch batch;
  if (!adapters_.empty()) batch.scales = arguments[--front];
  batch.tokens = arguments[0];
  const bool has_long = short_context_ > 0;
  const size_t per_run = 2U + (has_states_ ? 1U : 0U) + (has_long ? 1U : 0U);
  for (size_t i = 1; i + per_run <= front; i += per_run) {
    batch.runs.push_back({arguments[i], arguments[i + 1], has_states_ ? arguments[i + 2] : Tensor(),
                          has_long ? arguments[i + per_run - 1] : Tensor()});
  }
  Step step{.slices = {},
            .wanted = front % per_run != 1 ? arguments[front - 1] : Tensor(),
            .last_runs = {},
            .last_scales = batch.scales,
            .caches = std::vector<LayerCache>(cache_.size())};
  for (const size_t i : stage.cached) {
    LayerCache& of = step.caches[i];
    if (cache_[i].heads > 0) of.keys = arguments[at++];
    if (cache_[i].value_size > 0) of.values = arguments[at++];
    for (size_t j = 0; j < cache_[i].states.size(); ++j) of.states.push_back(arguments[at++]);
  }
  for (size_t i = 0; i < step.caches.size(); ++i) {
    const int other = config_.layers[i].cache_of;
    if (other != LayerConfig::kOwnCache) step.caches[i] = step.caches[static_cast<size_t>(other)];
  }
  const bool is_cut = stage.before_experts || stage.after_experts;
  const int64_t slices = is_cut ? 1 : slice_count(batch, stage.device, block_weights_);
  const int64_t rows = batch.rows();
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t begin = rows * i / slices, end = rows * (i + 1) / slices;
    step.slices.push_back(slice_of(batch, begin, end - begin, *stage.positions));
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

// ---- What stages hand over ----

/// Runs a stage. It moves the result of the last layer for the wanted rows if it ends the model,
/// else what the next stage needs.
CausalLm::Carried DecoderLm::through(const Stage& stage, Step& step, const Carried& in) const {
  if (stage.only_experts) {
    const auto& experts = std::get<Experts>(*blocks_[stage.first].mlp);
    // This stage doesn't know the sequences: each row gets the bits that it has alone.
    const nn::RowRun alone[] = {{in.moved[0].size(0), 1}};
    const RowSet rows(alone, adapters_.empty() ? Tensor() : in.moved[3]);
    return {{experts.through_experts(in.moved[0], {in.moved[1], in.moved[2]}, rows)}, {}};
  }
  std::vector<Tensor> xs = begin(stage, step, in);  // [t, hidden] of each slice
  const size_t last = blocks_.size() - 1;
  for (size_t i = stage.first + (stage.after_experts ? 1 : 0); i < stage.end; ++i) {
    if (stage.before_experts && i + 1 == stage.end) return stop_before_experts(stage, xs, step);
    if (i == last) {
      // Attention runs for each slice, then the rest of the layer for the wanted rows of all.
      const auto [x, heads, per_layer] = attended(i, xs, step);
      return {{after_heads(i, x, heads, per_layer, step.last_set())}, {}};
    }
    for (size_t j = 0; j < xs.size(); ++j) {
      xs[j] = layer(i, xs[j], step.slices[j], step.caches[i]);
    }
  }
  return ends_model(stage) ? Carried{std::move(xs), {}} : hand_over(xs, step);
}

/// The input of a stage's first whole layer, [t, hidden] of each slice. Sets the slices' per-layer
/// embeddings.
std::vector<Tensor> DecoderLm::begin(const Stage& stage, Step& step, const Carried& in) const {
  std::vector<Tensor> xs;
  if (&stage == stages_.data()) {
    for (StepRows& rows : step.slices) {
      xs.push_back(embed_tokens(rows));
      if (per_layer_) rows.per_layer = (*per_layer_)(rows.tokens, xs.back(), rows.set());
    }
    return xs;
  }
  if (stage.after_experts) return {resume_after_experts(stage, step, in)};
  int64_t first = 0;
  for (StepRows& rows : step.slices) {
    const int64_t count = rows.tokens.size(0);
    const bool is_all = step.slices.size() == 1;
    xs.push_back(is_all ? in.moved[0] : in.moved[0].narrow(0, first, count));
    if (per_layer_) rows.per_layer = is_all ? in.moved[1] : in.moved[1].narrow(0, first, count);
    first += count;
  }
  return xs;
}

CausalLm::Carried DecoderLm::hand_over(std::span<const Tensor> xs, const Step& step) const {
  Carried out{.moved = {joined(xs).contiguous()}, .kept = {}};
  if (!per_layer_) return out;
  std::vector<Tensor> per_layer;
  for (const StepRows& rows : step.slices) per_layer.push_back(rows.per_layer);
  out.moved.push_back(joined(per_layer).contiguous());
  return out;
}

/// The attention of a layer for all rows, of which the wanted ones are returned if it is the last.
DecoderLm::AfterAttention DecoderLm::attended(size_t index, std::span<const Tensor> xs,
                                              const Step& step) const {
  std::vector<Tensor> heads, per_layer;
  for (size_t i = 0; i < xs.size(); ++i) {
    heads.push_back(heads_of(blocks_[index], xs[i], step.slices[i], step.caches[index]));
    if (per_layer_) per_layer.push_back(step.slices[i].per_layer);
  }
  const bool selects = step.wanted.defined() && index + 1 == blocks_.size();
  const auto wanted = [&](std::span<const Tensor> parts) {
    return selects ? index_select(joined(parts), step.wanted, 0) : joined(parts);
  };
  return {wanted(xs), wanted(heads), per_layer_ ? wanted(per_layer) : Tensor()};
}

/// Runs the stage's last layer up to its experts, which the next stage computes. What the rest of
/// the layer needs besides is kept for the stage after that.
CausalLm::Carried DecoderLm::stop_before_experts(const Stage& stage, std::span<const Tensor> xs,
                                                 const Step& step) const {
  const size_t index = stage.end - 1;
  const Block& block = blocks_[index];
  const auto [x, heads, per_layer] = attended(index, xs, step);
  const Tensor y = before_mlp(block, x, heads, step.last_set());
  const Tensor in = mlp_input(block, x, y);
  const Experts::Routed routed = std::get<Experts>(*block.mlp).route(in, step.last_set());
  Carried out{.moved = {routed.x.contiguous(), routed.chosen.ids.contiguous(),
                        routed.chosen.weights.contiguous()},
              .kept = {y}};
  if (!adapters_.empty()) out.moved.push_back(step.last_scales.contiguous());
  if (routed.shared.defined()) out.kept.push_back(routed.shared);
  if (per_layer_) out.kept.push_back(per_layer);
  return out;
}

/// The rest of the stage's first layer, whose experts the stage before computed → [t, hidden].
Tensor DecoderLm::resume_after_experts(const Stage& stage, Step& step, const Carried& in) const {
  const auto& experts = std::get<Experts>(*blocks_[stage.first].mlp);
  const Tensor shared = experts.has_shared() ? in.kept[1] : Tensor();
  const Tensor per_layer = per_layer_ ? in.kept.back() : Tensor();
  step.slices.front().per_layer = per_layer;
  const bool is_last = stage.first + 1 == blocks_.size();
  return after_mlp(stage.first, in.kept.front(), experts.finish(in.moved.front(), shared),
                   per_layer, is_last ? step.last_set() : step.slices.front().set());
}

}  // namespace wick::models
