#include "wick/backend/gpu/spatial/conv_choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <string_view>

#include "wick/base/sha256.h"

namespace wick::gpu {
namespace {

/// The contents of files. The number changes when kernels become faster, so that convolutions are
/// measured again.
constexpr std::string_view kFormat = "wick convolution 2";
constexpr std::string_view kOwn = "own", kFirst = "channels_first ", kLast = "channels_last ";

std::optional<ConvChoice> parse(std::string_view text) {
  if (text == kOwn) return ConvChoice();
  ConvChoice choice{.library = true, .channels_last = text.starts_with(kLast)};
  if (!choice.channels_last && !text.starts_with(kFirst)) return std::nullopt;
  text.remove_prefix(choice.channels_last ? kLast.size() : kFirst.size());
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, choice.algorithm);
  if (error != std::errc() || last != end || choice.algorithm < 0) return std::nullopt;
  return choice;
}

}  // namespace

std::string ConvChoice::str() const {
  if (!library) return std::string(kOwn);
  return fmt::format("{}{}", channels_last ? kLast : kFirst, algorithm);
}

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
    if (stored) at->second = parse(*stored);
  }
  return at->second;
}

void ConvChoices::store(const Key& key, ConvChoice choice, bool on_disk) {
  std::lock_guard lock(mutex_);
  known_[key] = choice;
  if (on_disk) cache_.store(file_key(key), choice.str());
}

}  // namespace wick::gpu
