#include "wick/backend/gpu/spatial/conv_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>

#include "wick/base/sha256.h"

namespace wick::gpu {
namespace {

/// The contents of files. The number changes when kernels become faster, so that convolutions are
/// measured again.
constexpr std::string_view kFormat = "wick convolution 1";
constexpr std::array<std::string_view, 3> kChoices = {"own", "channels_first", "channels_last"};

}  // namespace

std::string ConvChoices::file_key(const Key& key) const {
  Sha256 sum;
  sum.add(fmt::format("{}\n{}\n{} {}", kFormat, context_, fmt::join(key.first, " "), key.second));
  return "conv-" + hex(sum.finish());
}

std::optional<ConvChoice> ConvChoices::find(const Key& key) {
  std::lock_guard lock(mutex_);
  const auto [at, added] = known_.try_emplace(key);
  if (added) {
    const std::optional<std::string> stored = cache_.load(file_key(key));
    for (size_t i = 0; stored && i < kChoices.size(); ++i) {
      if (*stored == kChoices[i]) at->second = static_cast<ConvChoice>(i);
    }
  }
  return at->second;
}

void ConvChoices::store(const Key& key, ConvChoice choice, bool on_disk) {
  std::lock_guard lock(mutex_);
  known_[key] = choice;
  if (on_disk) cache_.store(file_key(key), kChoices[static_cast<size_t>(choice)]);
}

}  // namespace wick::gpu
