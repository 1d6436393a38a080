#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"

namespace wick::text {

/// Bytes [begin, end) of a text.
struct TextRange {
  size_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

/// Text in UTF-8 of which some ranges are content: they come from a conversation, not from a
/// template. Control tokens that content spells stay text when it is encoded.
struct WICK_API MarkedString {
  std::string bytes;
  std::vector<TextRange> content;  ///< ascending; neither empty nor adjacent

  /// Text of a template.
  static MarkedString plain(std::string_view text) { return {std::string(text), {}}; }
  /// Text of a conversation.
  static MarkedString from_content(std::string_view text);

  /// Appends text[begin, end) with its marks.
  void append(const MarkedString& text, size_t begin, size_t end);
  void append(const MarkedString& text) { append(text, 0, text.bytes.size()); }
  /// Appends `text`, which is content if `is_content`.
  void append(std::string_view text, bool is_content);
  MarkedString slice(size_t begin, size_t end) const;
  /// Whether any byte is content.
  bool has_content() const { return !content.empty(); }
};

}  // namespace wick::text
