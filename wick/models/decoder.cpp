#include "wick/models/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::models {
namespace {

constexpr int64_t kFirst[] = {0};
// The device may be two steps ahead of what the host has read.
constexpr int64_t kPlaces = 4;

}  // namespace

Decoder::Decoder(const CausalLm& model, nn::KvCache& cache, int64_t vocabulary)
    : Decoder(model, cache, kFirst, vocabulary) {}

Decoder::Decoder(const CausalLm& model, nn::KvCache& cache, std::span<const int64_t> sequences,
                 int64_t vocabulary)
    : model_(model),
      cache_(cache),
      device_(model.device()),
      sequences_(sequences.begin(), sequences.end()),
      records_(environment_choice("WICK_GPU_RECORD") != "off"),
      vocabulary_(vocabulary == 0 ? model.vocab_size() : vocabulary) {
  if (sequences_.empty()) throw Error("decode", "no sequences");
  std::vector<int64_t> sorted = sequences_;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    throw Error("decode", "a sequence is given twice");
  }
  for (int64_t sequence : sequences_) cache_.length(sequence);  // checks that it exists
  const auto count = static_cast<int64_t>(sequences_.size());
  add_pieces();
  counts_ = Tensor::zeros({count, 3}, DType::u32, device_);
  chosen_ = Tensor::zeros({kPlaces, count}, DType::u32, device_);
  options_ = Tensor::zeros({count, kSamplerWords}, DType::u32, device_);
}

/// Makes the pieces and their devices' inputs.
void Decoder::add_pieces() {
  const auto count = static_cast<int64_t>(sequences_.size());
  const auto inputs_on = [&](Device device) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].device == device) return i;
    }
    const int64_t adapters = model_.adapters();
    inputs_.push_back(
        {.device = device,
         .tokens = Tensor::zeros({count}, DType::u32, device),
         .positions = Tensor::zeros({count}, DType::u32, device),
         .tables = {},
         .slots = cache_.has_states() ? cache_.slots(sequences_, device) : Tensor(),
         .is_long = model_.short_context() > 0 ? Tensor::zeros({count, 1}, DType::boolean, device)
                                               : Tensor(),
         .scales = adapters > 0 ? Tensor::ones({count, adapters}, DType::f32, device) : Tensor()});
    ahead_ = ahead_ && backend(device).runs_ahead();
    return inputs_.size() - 1;
  };
  inputs_on(device_);
  for (size_t i = 0; i < model_.pieces(); ++i) {
    pieces_.push_back({.inputs = inputs_on(model_.device_of(i)), .moved = {}, .graph = nullptr});
  }
}

void Decoder::set_scales(size_t index, std::span<const float> scales) {
  const std::vector<float> of_row = scales_of(scales, model_.adapters());
  if (of_row.empty()) return;
  std::vector<float> all = main().scales.to_vector<float>();
  std::copy(of_row.begin(), of_row.end(),
            all.begin() + static_cast<ptrdiff_t>(index * of_row.size()));
  for (Inputs& inputs : inputs_) {
    inputs.scales = Tensor::from(all, inputs.scales.shape(), inputs.device);
  }
  for (Piece& piece : pieces_) piece.graph.reset();  // captured pieces read the former tensors
}

Tensor Decoder::step(std::span<const int32_t> tokens) {
  if (tokens.size() != sequences_.size()) {
    throw Error("decode", "numbers of tokens and sequences differ",
                fmt::format("{} and {}", tokens.size(), sequences_.size()));
  }
  std::vector<uint32_t> ids, positions;
  for (int32_t token : tokens) {
    if (token < 0 || token >= model_.vocab_size()) {
      throw Error(ErrorKind::index, "forward", "token id out of range", fmt::format("{}", token),
                  fmt::format("the vocabulary has {}", model_.vocab_size()));
    }
    ids.push_back(static_cast<uint32_t>(token));
  }
  reserve();
  step_due_ = false;
  coming_.clear();
  for (int64_t sequence : sequences_) {
    positions.push_back(static_cast<uint32_t>(cache_.length(sequence)));
  }
  overwrite(main().tokens, ids);
  overwrite(main().positions, positions);
  run(false);
  return logits_;
}

void Decoder::start(const Tensor& logits, std::span<const Sampling> sampling) {
  const auto count = static_cast<int64_t>(sequences_.size());
  if (static_cast<int64_t>(sampling.size()) != count || logits.size(0) != count) {
    throw Error("decode", "numbers of samplings, logits and sequences differ",
                fmt::format("{}, {} and {}", sampling.size(), logits.str(), count));
  }
  coming_.clear();
  const int64_t room = cache_.context() + 1;
  if (!history_.defined()) history_ = Tensor::zeros({count, room}, DType::u32, device_);
  std::vector<uint32_t> options, counts, positions;
  for (int64_t i = 0; i < count; ++i) {
    const auto& [history, of, draws] = sampling[static_cast<size_t>(i)];
    for (const uint32_t word : sampler_words(of)) options.push_back(word);
    // Without penalties the history isn't read.
    const auto length = of.penalizes() ? static_cast<int64_t>(history.size()) : 0;
    if (length > cache_.context()) throw Error("decode", "a history longer than the context");
    for (const uint32_t n : {static_cast<uint32_t>(length), draws, 0U}) counts.push_back(n);
    // Drawing a token increments the position.
    const int64_t position = cache_.length(sequences_[static_cast<size_t>(i)]) - 1;
    positions.push_back(static_cast<uint32_t>(position));
    const std::vector<uint32_t> words(history.end() - length, history.end());
    if (length > 0) overwrite(history_.narrow(0, i, 1).squeeze(0).narrow(0, 0, length), words);
  }
  overwrite(options_.reshape({count * kSamplerWords}), options);
  overwrite(counts_.reshape({count * 3}), counts);
  overwrite(main().positions, positions);
  step_due_ = false, drawn_ = 0;
  draw(logits);
  expect_tokens();
}

std::vector<int32_t> Decoder::next(bool more) {
  if (step_due_) {
    step_due_ = false;
    run(true);
    expect_tokens();
  }
  if (coming_.empty()) throw Error(ErrorKind::runtime, "decode", "no token was drawn");
  if (more) {
    reserve();
    if (ahead_) {
      run(true);
      expect_tokens();
    } else {
      step_due_ = true;
    }
  }
  const auto front = std::move(coming_.front());
  coming_.pop_front();
  std::vector<int32_t> tokens(sequences_.size());
  front->finish(tokens.data());
  return tokens;
}

void Decoder::reserve() {
  for (int64_t sequence : sequences_) cache_.reserve(1, sequence);
}

/// Runs one step from the state in device memory; replays the captured step if there is one. A step
/// that fails may have advanced some recurrent states, so it clears the sequences that have them.
void Decoder::run(bool draws) {
  try {
    run_step(draws);
  } catch (...) {
    if (cache_.has_states()) {
      for (int64_t sequence : sequences_) cache_.truncate(0, sequence);
    }
    throw;
  }
  for (int64_t sequence : sequences_) cache_.advance(1, sequence);
}

void Decoder::run_step(bool draws) {
  refresh_tables();
  for (size_t i = 1; i < inputs_.size(); ++i) {
    overwrite(inputs_[i].tokens, main().tokens);
    overwrite(inputs_[i].positions, main().positions);
  }
  const bool can_replay = cache_.moves() == moves_ && records_;
  if (!can_replay) {
    for (Piece& piece : pieces_) piece.graph.reset();
  } else if (recorded_draws_ != draws) {
    pieces_.back().graph.reset();
  }
  for (size_t i = 0; i < pieces_.size(); ++i) {
    Piece& piece = pieces_[i];
    const Device device = model_.device_of(i);
    if (i > 0) receive(i);
    const auto work = [this, i, draws] { run_piece(i, draws); };
    // The first step isn't captured: it also does one-time work, such as loading kernels. Pieces on
    // the CPU of a split model aren't either: their results may have other addresses in each step.
    if (!can_replay || (pieces_.size() > 1 && device.kind == DeviceKind::cpu)) {
      work();
      continue;
    }
    if (piece.graph == nullptr) {
      piece.out = {};
      if (i + 1 == pieces_.size()) logits_ = {};
      piece.graph = record(device, work);
    }
    piece.graph->replay();
  }
  recorded_draws_ = draws;
  moves_ = cache_.moves();
}

/// Copies what the piece before hands over to this piece's device.
void Decoder::receive(size_t index) {
  Piece& piece = pieces_[index];
  const std::vector<Tensor>& from = pieces_[index - 1].out.moved;
  piece.moved.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (piece.moved[i].defined()) {
      overwrite(piece.moved[i], from[i]);
    } else {
      piece.moved[i] = from[i].to(model_.device_of(index));
    }
  }
}

void Decoder::run_piece(size_t index, bool draws) {
  Piece& piece = pieces_[index];
  const Inputs& inputs = inputs_[piece.inputs];
  const Batch batch{.tokens = inputs.tokens,
                    .runs = {{inputs.positions, inputs.tables, inputs.slots, inputs.is_long}},
                    .scales = inputs.scales,
                    .wanted = {}};
  const auto kept = index < 2 ? std::vector<Tensor>() : pieces_[index - 2].out.kept;
  piece.out = model_.run_piece(index, batch, cache_, {piece.moved, kept});
  if (index + 1 < pieces_.size()) return;
  logits_ = piece.out.moved.front();
  if (draws) draw(logits_);
}

/// Rewrites the page tables if pages were assigned or freed.
void Decoder::refresh_tables() {
  if (cache_.changes() == changes_) return;
  const std::vector<uint32_t> rows = cache_.table_rows(sequences_);
  const auto count = static_cast<int64_t>(sequences_.size());
  const int64_t entries = cache_.reach() / nn::KvCache::kPage;
  for (Inputs& inputs : inputs_) {
    if (!inputs.tables.defined() || inputs.tables.size(1) != entries) {
      inputs.tables = Tensor::zeros({count, entries}, DType::u32, inputs.device);
    }
    overwrite(inputs.tables.reshape({count * entries}), rows);
  }
  changes_ = cache_.changes();
}

void Decoder::draw(const Tensor& logits) {
  backend(device_).sample({.tokens = main().tokens.mutable_view(),
                           .positions = main().positions.mutable_view(),
                           .history = history_.mutable_view(),
                           .counts = counts_.mutable_view(),
                           .chosen = chosen_.mutable_view(),
                           .options = options_.view()},
                          logits.narrow(1, 0, vocabulary_).view());
}

/// Starts copying the newest tokens to the host, from a row that the next steps don't overwrite.
void Decoder::expect_tokens() {
  const View row = chosen_.narrow(0, drawn_++ % kPlaces, 1).mutable_view();
  const auto* words = static_cast<const uint32_t*>(row.data) + row.layout.offset();
  coming_.push_back(backend(device_).start_readback(words, sequences_.size() * sizeof *words));
}

}  // namespace wick::models
