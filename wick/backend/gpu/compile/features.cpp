#include "wick/backend/gpu/compile/features.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstring>
#include <string>

#include "wick/base/error.h"

namespace wick::gpu {
namespace {

using Words = std::array<uint32_t, 4>;

bool is_valid(const Words& words) {
  return words[0] == kFeatureMark[0] && words[1] == kFeatureMark[1] && words[3] == ~words[2];
}

/// Finds the words in machine code, which contains them as bytes.
bool find_in_code(std::string_view image, Words& words) {
  const std::string_view mark(reinterpret_cast<const char*>(kFeatureMark), sizeof kFeatureMark);
  for (size_t at = image.find(mark); at != std::string_view::npos; at = image.find(mark, at + 1)) {
    if (image.size() - at < sizeof words) return false;
    std::memcpy(words.data(), image.data() + at, sizeof words);
    if (is_valid(words)) return true;
  }
  return false;
}

/// Finds the words in PTX, which lists their bytes behind the variable's name.
bool find_in_text(std::string_view text, Words& words) {
  const size_t name = text.find("wick_features[16] = {");
  if (name == std::string_view::npos) return false;
  const char* at = text.data() + text.find('{', name) + 1;
  const char* const end = text.data() + text.size();
  std::array<uint8_t, sizeof words> bytes{};
  for (uint8_t& byte : bytes) {
    while (at != end && (*at == ' ' || *at == ',')) ++at;
    const auto [next, error] = std::from_chars(at, end, byte);
    if (error != std::errc()) return false;
    at = next;
  }
  std::memcpy(words.data(), bytes.data(), sizeof words);
  return is_valid(words);
}

}  // namespace

uint32_t features_of(std::string_view image) {
  Words words{};
  if (find_in_code(image, words) || find_in_text(image, words)) return words[2];
  throw Error(ErrorKind::runtime, "gpu", "an image of kernels doesn't say what its chip can do");
}

void check_waves(uint32_t features, int lanes) {
  const int compiled = (features & bit(Feature::wave64)) != 0 ? 64 : 32;
  if (compiled == lanes) return;
  throw Error(ErrorKind::runtime, "gpu", "the kernels are compiled for waves of another size",
              fmt::format("{} lanes; the device has {}", compiled, lanes));
}

}  // namespace wick::gpu
