#include "wick/text/vocab/added_tokens.h"

#include <algorithm>
#include <utility>

#include "wick/text/normalize/unicode.h"

namespace wick::text {
namespace {

size_t begin_of_last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
  return at;
}

bool ends_in_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = begin_of_last_character(text);
  return is_word_character(next_code_point(text, at));
}

bool begins_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word_character(next_code_point(text, at));
}

}  // namespace

AddedTokens::AddedTokens(const TokenTable& names, std::vector<int32_t> ids,
                         std::vector<AddedFlags> flags, std::vector<int32_t> results)
    : matcher_(std::make_unique<const SpecialMatcher>(names, ids)),
      flags_(std::move(flags)),
      results_(std::move(results)) {
  empty_ = std::all_of(ids.begin(), ids.end(), [&](int32_t id) { return names.bytes(id).empty(); });
}

AddedTokens::AddedTokens(std::shared_ptr<const TokenTable> names, std::vector<int32_t> ids,
                         std::vector<AddedFlags> flags, std::vector<int32_t> results)
    : AddedTokens(*names, std::move(ids), std::move(flags), std::move(results)) {
  owned_ = std::move(names);
}

std::optional<int32_t> AddedTokens::exact(std::string_view text) const {
  const std::optional<int32_t> found = matcher_->exact(text);
  if (!found || results_.empty()) return found;
  return results_[static_cast<size_t>(*found)];
}

AddedTokens::Cursor::Cursor(const AddedTokens& tokens, std::string_view text)
    : tokens_(tokens), matches_(*tokens.matcher_, text), text_(text) {}

AddedTokens::Cursor::Part AddedTokens::Cursor::next() {
  while (from_ < text_.size()) {
    const SpecialMatcher::Match match = matches_.next(from_);
    if (match.position == std::string_view::npos) break;
    size_t begin = match.position, end = begin + match.length;
    from_ = end;
    const auto index = static_cast<size_t>(match.id);
    if (!tokens_.flags_.empty()) {
      const AddedFlags& flags = tokens_.flags_[index];
      if (flags.single_word &&
          (ends_in_word(text_.substr(0, begin)) || begins_with_word(text_.substr(end)))) {
        continue;
      }
      while (flags.lstrip && begin > pos_) {
        const size_t last = begin_of_last_character(text_.substr(0, begin));
        size_t at = last;
        if (!is_space(next_code_point(text_, at))) break;
        begin = last;
      }
      while (flags.rstrip && end < text_.size()) {
        size_t at = end;
        if (!is_space(next_code_point(text_, at))) break;
        end = at;
      }
    }
    const size_t from = std::exchange(pos_, std::max(pos_, end));
    const std::string_view before =
        begin > from ? text_.substr(from, begin - from) : std::string_view();
    return {before, tokens_.results_.empty() ? match.id : tokens_.results_[index]};
  }
  from_ = text_.size();
  return {text_.substr(std::exchange(pos_, text_.size())), TokenTable::kNone};
}

}  // namespace wick::text
