#include "wick/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/utf8.h"
#include "wick/text/tokenizer_impl.h"

namespace wick::text {
namespace {

// Tokens that end an answer. The metadata of many files names only some of them.
constexpr std::string_view kEndNames[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
};

/// Returns `text` with U+FFFD for ill-formed parts.
std::string with_replacements(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    if (step.kind == Utf8Step::valid) {
      out += text.substr(0, step.length);
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(step.kind == Utf8Step::incomplete ? text.size() : step.length);
  }
  return out;
}

/// Removes spaces before the punctuation at the end of sentences and clauses.
void clean_up(std::string& text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dropped = text[i] == ' ' && i + 1 < text.size() &&
                         std::string_view(".?!,").find(text[i + 1]) != std::string_view::npos;
    if (!dropped) text[end++] = text[i];
  }
  text.resize(end);
}

}  // namespace

// Some files mark chat markup as user-defined or even normal. It is treated as control tokens,
// because otherwise text could forge it with parse_special off.
bool looks_like_control(std::string_view token) {
  if (token.size() > 4 && token.starts_with("<|") && token.ends_with("|>")) return true;
  return std::find(std::begin(kEndNames), std::end(kEndNames), token) != std::end(kEndNames);
}

void Tokenizer::Impl::find_ends() {
  for (const std::string_view name : kEndNames) {
    const auto id = added ? added->exact(name) : std::nullopt;
    if (id && is_special(*id)) ends.push_back(*id);
  }
  for (const auto id : {eos, eot}) {
    if (id) ends.push_back(*id);
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error("tokenize", "the text is too long", fmt::format("{} bytes", text.size()),
                "need less than 2 GiB");
  }
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    if (options.replace_invalid) {
      EncodeOptions valid = options;
      valid.replace_invalid = false;
      return encode(with_replacements(text), valid);
    }
    throw Error("tokenize", "invalid UTF-8",
                fmt::format("byte {:#04x} at offset {}", static_cast<unsigned char>(text[invalid]),
                            invalid),
                "need well-formed UTF-8 text");
  }
  const Impl& impl = *impl_;
  if (impl.text.model == nullptr && !text.empty()) {
    throw Error(ErrorKind::not_implemented, "tokenize", "the file has no vocabulary", {},
                "need token ids instead of text");
  }
  std::vector<int32_t> out;
  out.reserve(text.size() / 4 + 4);
  const bool add_bos = options.add_bos.value_or(impl.add_bos);
  const bool add_eos = options.add_eos.value_or(impl.add_eos);
  if (add_bos && impl.prefix.empty()) throw Error("tokenize", "the vocabulary has no bos token");
  if (add_eos && impl.suffix.empty()) throw Error("tokenize", "the vocabulary has no eos token");
  if (add_bos) out.insert(out.end(), impl.prefix.begin(), impl.prefix.end());
  TextPipeline::Run run(impl.text);
  const std::optional<AddedTokens>& added = options.parse_special ? impl.added : impl.added_plain;
  if (!added || added->empty()) {
    run.encode(text, true, options.parse_special, out);
  } else {
    AddedTokens::Cursor tokens(*added, text);
    for (;;) {
      const auto [part, id] = tokens.next();
      run.encode(part, part.data() == text.data(), options.parse_special, out);
      if (id == TokenTable::kNone) break;
      out.push_back(id);
    }
  }
  if (add_eos) out.insert(out.end(), impl.suffix.begin(), impl.suffix.end());
  return out;
}

std::string_view Tokenizer::piece(int32_t id) const {
  if (!impl_->contains(id)) {
    throw Error(ErrorKind::index, "detokenize", "token id outside the vocabulary",
                fmt::format("id {}, {} tokens", id, impl_->tokens.size()));
  }
  return impl_->tokens.bytes(id);
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string out;
  using FirstSpace = Impl::FirstSpace;
  bool strips = impl_->first_space == FirstSpace::all_of_first_token;
  for (const int32_t id : ids) {
    const std::string_view bytes = piece(id);
    if (skip_special && impl_->is_special(id)) continue;
    out += bytes;
    if (std::exchange(strips, false)) std::erase(out, ' ');
  }
  if (impl_->drops_last_space && out.ends_with(' ')) out.pop_back();
  if (impl_->cleans_up) clean_up(out);
  if (impl_->first_space == FirstSpace::removed ||
      impl_->first_space == FirstSpace::removed_after_control) {
    // Text begins after the leading control tokens, whose bytes are their names.
    size_t begin = 0;
    const bool passes_control = impl_->first_space == FirstSpace::removed_after_control;
    for (size_t i = 0; passes_control && i < ids.size() && impl_->is_special(ids[i]); ++i) {
      if (!skip_special) begin += piece(ids[i]).size();
    }
    if (begin < out.size() && out[begin] == ' ') out.erase(begin, 1);
  }
  return out;
}

std::optional<int32_t> Tokenizer::token_id(std::string_view text) const {
  if (const auto id = impl_->added ? impl_->added->exact(text) : std::nullopt) return id;
  if (const int32_t id = impl_->tokens.find(text); id != TokenTable::kNone) return id;
  return std::nullopt;
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(impl_->tokens.size()); }

bool Tokenizer::is_end_of_generation(int32_t id) const {
  return std::find(impl_->ends.begin(), impl_->ends.end(), id) != impl_->ends.end();
}

bool Tokenizer::is_special(int32_t id) const { return impl_->is_special(id); }

std::optional<int32_t> Tokenizer::bos() const { return impl_->bos; }
std::optional<int32_t> Tokenizer::eos() const { return impl_->eos; }
std::optional<int32_t> Tokenizer::eot() const { return impl_->eot; }
std::optional<int32_t> Tokenizer::pad() const { return impl_->pad; }
bool Tokenizer::add_bos() const { return impl_->add_bos; }
bool Tokenizer::add_eos() const { return impl_->add_eos; }
const std::string& Tokenizer::warning() const { return impl_->warning; }

}  // namespace wick::text
