#include "wick/base/dtype.h"

namespace wick {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<DType> parse_dtype(std::string_view text) {
  for (int d = 0; d < kDTypeCount; ++d) {
    const std::string_view candidate = kDTypes[static_cast<size_t>(d)].name;
    if (candidate.size() != text.size()) continue;
    bool same = true;
    for (size_t i = 0; i < text.size(); ++i) same = same && lower(text[i]) == candidate[i];
    if (same) return static_cast<DType>(d);
  }
  return std::nullopt;
}

std::string names(DTypeSet set, std::string_view last) {
  std::string text;
  int left = 0;
  for (int d = 0; d < kDTypeCount; ++d) left += set.contains(static_cast<DType>(d)) ? 1 : 0;
  for (int d = 0; d < kDTypeCount; ++d) {
    if (!set.contains(static_cast<DType>(d))) continue;
    text += name(static_cast<DType>(d));
    --left;
    if (left > 1) text += ", ";
    if (left == 1) (text += " ").append(last) += " ";
  }
  return text;
}

}  // namespace wick
