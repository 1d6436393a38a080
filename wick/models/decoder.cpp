#include "wick/models/decoder.h"

#include <fmt/format.h>

#include <vector>

#include "wick/base/environment.h"
#include "wick/base/error.h"

namespace wick::models {

Decoder::Decoder(const CausalLm& model, nn::KvCache& cache, int64_t vocabulary)
    : model_(model),
      cache_(cache),
      device_(model.device()),
      records_(environment_choice("WICK_GPU_RECORD") != "off"),
      vocabulary_(vocabulary == 0 ? model.vocab_size() : vocabulary),
      state_(Tensor::zeros({4}, DType::u32, device_)) {}

Tensor Decoder::step(int32_t token) {
  if (token < 0 || token >= model_.vocab_size()) {
    throw Error(ErrorKind::index, "forward", "token id out of range", fmt::format("{}", token),
                fmt::format("the vocabulary has {}", model_.vocab_size()));
  }
  cache_.reserve(1);
  options_.reset();
  coming_.clear();
  const uint32_t input[] = {static_cast<uint32_t>(token), static_cast<uint32_t>(cache_.length())};
  overwrite(state_.narrow(0, 0, 2), input);
  run({});
  return logits_;
}

void Decoder::start(const Tensor& logits, std::span<const int32_t> history,
                    const SamplerOptions& options) {
  coming_.clear();
  options_ = options;
  if (!history_.defined()) history_ = Tensor::zeros({cache_.context() + 1}, DType::u32, device_);
  // Without penalties the history isn't read.
  drawn_ = options.penalizes() ? static_cast<int64_t>(history.size()) : 0;
  if (drawn_ > cache_.context()) throw Error("decode", "a history longer than the context");
  const std::vector<uint32_t> words(history.end() - drawn_, history.end());
  if (drawn_ > 0) overwrite(history_.narrow(0, 0, drawn_), words);
  // Drawing a token increments the position.
  const uint32_t state[] = {0, static_cast<uint32_t>(cache_.length() - 1),
                            static_cast<uint32_t>(drawn_), 0};
  overwrite(state_, state);
  draw(logits, options);
  expect_token();
}

int32_t Decoder::next(bool more) {
  if (coming_.empty()) throw Error(ErrorKind::runtime, "decode", "no token was drawn");
  if (more) {
    cache_.reserve(1);
    run(options_);
    expect_token();
  }
  const auto front = std::move(coming_.front());
  coming_.pop_front();
  uint32_t token = 0;
  front->finish(&token);
  return static_cast<int32_t>(token);
}

/// Runs one step from the state in device memory; replays the recording if there is one.
void Decoder::run(const std::optional<SamplerOptions>& sampler) {
  const auto work = [this, sampler] {
    logits_ = model_.decode(state_.narrow(0, 0, 1), state_.narrow(0, 1, 1), cache_);
    if (sampler) draw(logits_, *sampler);
  };
  if (cache_.capacity() != capacity_ || !records_) {
    // The first step isn't recorded: it also does what is needed once, such as loading kernels.
    recording_.reset();
    work();
    capacity_ = cache_.capacity();
  } else {
    if (recording_ == nullptr || recorded_ != sampler) {
      recording_.reset();
      logits_ = {};
      recording_ = record(device_, work);
      recorded_ = sampler;
    }
    recording_->replay();
  }
  cache_.advance(1);
}

void Decoder::draw(const Tensor& logits, const SamplerOptions& options) const {
  const auto word = [&](int64_t i, int64_t count) {
    return state_.narrow(0, i, count).mutable_view();
  };
  backend(device_).sample({.token = word(0, 1),
                           .position = word(1, 1),
                           .history = history_.mutable_view(),
                           .counts = word(2, 2)},
                          logits.squeeze(0).narrow(0, 0, vocabulary_).view(), options);
}

/// Starts copying the newest token to the host. The copy reads the history, since a later step may
/// overwrite the token in the state before the copy is done.
void Decoder::expect_token() {
  const View all = history_.mutable_view();
  const auto* word = static_cast<const uint32_t*>(all.data) + all.layout.offset() + drawn_++;
  coming_.push_back(backend(device_).start_readback(word, sizeof *word));
}

}  // namespace wick::models
