#include "wick/text/normalize/normalizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

/// Calls `change(point, out)` for every character.
template <typename Change>
void for_each_character(std::string& text, const Change& change) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t point = next_code_point(text, at);
    change(point, out);
  }
  text = std::move(out);
}

void clean_bert(std::string& text) {
  for_each_character(text, [](uint32_t point, std::string& out) {
    if (point == 0 || point == 0xfffd || is_control(point)) return;
    append_utf8(out, is_space(point) ? ' ' : point);
  });
}

void isolate_ideographs(std::string& text) {
  if (is_ascii(text)) return;
  for_each_character(text, [](uint32_t point, std::string& out) {
    const bool isolated = is_ideograph(point);
    if (isolated) out += ' ';
    append_utf8(out, point);
    if (isolated) out += ' ';
  });
}

void strip_nonspacing_marks(std::string& text) {
  if (is_ascii(text)) return;
  normalize(text, NormalForm::nfd);
  for_each_character(text, [](uint32_t point, std::string& out) {
    if (!is_nonspacing_mark(point)) append_utf8(out, point);
  });
}

/// Replaces U+2581, SentencePiece's mark of a space, by a space.
void replace_marks(std::string& text) {
  constexpr std::string_view kMark = "\xe2\x96\x81";
  size_t at = text.find(kMark);
  if (at == std::string::npos) return;
  std::string out;
  size_t pos = 0;
  for (; at != std::string::npos; at = text.find(kMark, pos)) {
    out.append(text, pos, at - pos) += ' ';
    pos = at + kMark.size();
  }
  text = out.append(text, pos);
}

}  // namespace

void Normalizer::apply(std::string& text) const {
  const size_t most = 64 * text.size() + (64u << 10);
  for (const NormalizeStep& step : steps_) {
    step(text);
    if (text.size() > most) {
      throw Error("tokenize", "the normalised text is too long",
                  fmt::format("{} bytes", text.size()), fmt::format("need at most {}", most));
    }
  }
}

NormalizeStep unicode_step(NormalForm form) {
  return [form](std::string& text) { normalize(text, form); };
}

NormalizeStep lower_step() { return to_lower; }

NormalizeStep strip_accents_step() {
  return [](std::string& text) {
    if (is_ascii(text)) return;
    for_each_character(text, [](uint32_t point, std::string& out) {
      if (!is_mark(point)) append_utf8(out, point);
    });
  };
}

NormalizeStep strip_step(bool left, bool right) {
  return [left, right](std::string& text) {
    size_t begin = 0, end = 0, at = 0;
    bool started = false;
    while (at < text.size()) {
      const size_t from = at;
      if (is_space(next_code_point(text, at))) continue;
      if (!std::exchange(started, true)) begin = from;
      end = at;
    }
    if (!started) {
      if (left || right) text.clear();
      return;
    }
    if (right) text.erase(end);
    if (left) text.erase(0, begin);
  };
}

NormalizeStep prepend_step(std::string prefix) {
  return [prefix = std::move(prefix)](std::string& text) {
    if (!text.empty()) text.insert(0, prefix);
  };
}

NormalizeStep bert_step(BertOptions options) {
  return [options](std::string& text) {
    if (options.clean) clean_bert(text);
    if (options.ideographs) isolate_ideographs(text);
    if (options.strip_accents) strip_nonspacing_marks(text);
    if (options.lower) to_lower(text);
  };
}

NormalizeStep nmt_step() {
  return [](std::string& text) {
    for_each_character(text, [](uint32_t point, std::string& out) {
      const bool dropped = (point >= 0x1 && point <= 0x8) || point == 0xb ||
                           (point >= 0xe && point <= 0x1f) || point == 0x7f || point == 0x8f ||
                           point == 0x9f;
      if (dropped) return;
      const bool space = point == 0x9 || point == 0xa || point == 0xc || point == 0xd ||
                         point == 0x1680 || (point >= 0x200b && point <= 0x200f) ||
                         point == 0x2028 || point == 0x2029 || point == 0x2581 || point == 0xfeff ||
                         point == 0xfffd;
      append_utf8(out, space ? ' ' : point);
    });
  };
}

NormalizeStep charsmap_step(std::shared_ptr<const Charsmap> map) {
  return [map = std::move(map)](std::string& text) {
    // The reference tokenizer replaces a whole cluster by the replacement of its shortest prefix.
    constexpr size_t kLongest = 5;
    const std::string_view all = text;
    std::string out;
    out.reserve(text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t end = end_of_grapheme(all, at);
      const std::string_view cluster = all.substr(at, end - at);
      at = end;
      if (cluster.size() <= kLongest) {
        if (const auto match = map->find(cluster, true)) {
          out += match->replacement;
          continue;
        }
      }
      for (size_t i = 0; i < cluster.size();) {
        const size_t from = i;
        next_code_point(cluster, i);
        const std::string_view character = cluster.substr(from, i - from);
        const auto match = map->find(character, true);
        out += match ? match->replacement : character;
      }
    }
    text = std::move(out);
  };
}

NormalizeStep sentence_piece_step(SentencePieceOptions options) {
  return [options = std::move(options)](std::string& text) {
    const std::string_view all = text;
    std::string out;
    out.reserve(text.size() + 1);
    bool after_space = options.remove_extra_spaces;
    const auto put = [&](std::string_view part) {
      for (const char c : part) {
        const bool space = c == ' ';
        if (space && after_space && options.remove_extra_spaces) continue;
        out += c;
        after_space = space;
      }
    };
    for (size_t at = 0; at < all.size();) {
      if (const auto match = options.map->find(all.substr(at), false)) {
        put(match->replacement);
        at += match->length;
      } else {
        const size_t from = at;
        next_code_point(all, at);
        put(all.substr(from, at - from));
      }
    }
    replace_marks(out);
    while (options.remove_extra_spaces && out.ends_with(' ')) out.pop_back();
    // Characters that the map drops make a text that isn't empty, unless spaces are removed.
    const bool empty = options.remove_extra_spaces ? out.empty() : text.empty();
    if (options.add_space_prefix && !empty) out.insert(out.begin(), ' ');
    text = std::move(out);
  };
}

}  // namespace wick::text
