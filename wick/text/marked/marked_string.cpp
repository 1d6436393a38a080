#include "wick/text/marked/marked_string.h"

#include <algorithm>

namespace wick::text {
namespace {

void mark(std::vector<TextRange>& ranges, TextRange range) {
  if (range.begin == range.end) return;
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

MarkedString MarkedString::from_content(std::string_view text) {
  MarkedString result;
  result.append(text, true);
  return result;
}

void MarkedString::append(const MarkedString& text, size_t begin, size_t end) {
  const size_t at = bytes.size();
  bytes.append(text.bytes, begin, end - begin);
  const auto first =
      std::partition_point(text.content.begin(), text.content.end(),
                           [&](const TextRange& range) { return range.end <= begin; });
  for (auto range = first; range != text.content.end() && range->begin < end; ++range) {
    const size_t from = std::max(range->begin, begin), to = std::min(range->end, end);
    mark(content, {at + from - begin, at + to - begin});
  }
}

void MarkedString::append(std::string_view text, bool is_content) {
  const size_t at = bytes.size();
  bytes += text;
  if (is_content) mark(content, {at, bytes.size()});
}

MarkedString MarkedString::slice(size_t begin, size_t end) const {
  MarkedString result;
  result.append(*this, begin, end);
  return result;
}

}  // namespace wick::text
