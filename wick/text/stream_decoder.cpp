#include "wick/text/stream_decoder.h"

#include "wick/base/utf8.h"

namespace wick::text {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

std::string StreamDecoder::push(int32_t id) {
  const std::string_view piece = tokenizer_.piece(id);
  if (skip_special_ && tokenizer_.is_special(id)) return {};
  held_ += piece;
  std::string out;
  size_t pos = 0;
  while (pos < held_.size()) {
    const Utf8Step step = utf8_step(std::string_view(held_).substr(pos, 4));
    if (step.kind == Utf8Step::incomplete) break;
    if (step.kind == Utf8Step::valid) {
      out.append(held_, pos, step.length);
    } else {
      out += kReplacement;
    }
    pos += step.length;
  }
  held_.erase(0, pos);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out(held_.empty() ? std::string_view() : kReplacement);
  held_.clear();
  return out;
}

}  // namespace wick::text
