#include "wick/models/decoder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "wick/base/error.h"

namespace wick::models {
namespace {

/// WICK_GPU_RECORD=off launches kernel by kernel, for traces that show each.
bool records() {
  static const bool wanted = [] {
    const char* word = std::getenv("WICK_GPU_RECORD");
    return word == nullptr || std::string_view(word) != "off";
  }();
  return wanted;
}

}  // namespace

Decoder::Decoder(const CausalLm& model, nn::KvCache& cache, Device device)
    : model_(model),
      cache_(cache),
      device_(device),
      input_(Tensor::zeros({2}, DType::u32, device)) {}

Tensor Decoder::step(int32_t token) {
  if (token < 0 || token >= model_.vocab_size()) {
    throw Error("forward", "token id out of range", fmt::format("{}", token),
                fmt::format("the vocabulary has {}", model_.vocab_size()));
  }
  cache_.reserve(1);
  const uint32_t input[] = {static_cast<uint32_t>(token), static_cast<uint32_t>(cache_.length())};
  overwrite(input_, input);
  const Tensor id = input_.narrow(0, 0, 1), position = input_.narrow(0, 1, 1);
  if (cache_.capacity() != capacity_ || !records()) {
    // The first step is done as it comes: what it needs once, such as kernels, is then there.
    recording_.reset();
    logits_ = model_.decode(id, position, cache_);
    capacity_ = cache_.capacity();
  } else {
    if (recording_ == nullptr) {
      logits_ = {};
      recording_ = record(device_, [&] { logits_ = model_.decode(id, position, cache_); });
    }
    recording_->replay();
  }
  cache_.advance(1);
  return logits_;
}

}  // namespace wick::models
