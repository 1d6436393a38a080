#include "wick/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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

void Tokenizer::Impl::find_bound() {
  if (text.model == nullptr || (text.splitter && !text.splitter->keeps_all_bytes())) return;
  const std::bitset<256> bytes = text.model->kept_bytes();
  const bool rewrites = !text.normalizer.empty() || (text.splitter && text.splitter->rewrites());
  // A byte that is rewritten may become one that isn't kept.
  if (rewrites && (bytes & utf8_bytes()) != utf8_bytes()) return;
  kept = bytes;
  bytes_per_token = longest * text.normalizer.shrinkage();
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

namespace {

/// Encodes parts of one text.
class PartEncoder {
 public:
  PartEncoder(const Tokenizer::Impl& impl, std::string_view whole, std::vector<int32_t>& out)
      : impl_(impl), run_(impl.text), whole_(whole), out_(out) {}

  /// Appends the tokens of a part: added tokens, and the text between them.
  void encode(std::string_view part, bool parse_special) {
    const std::optional<AddedTokens>& added = parse_special ? impl_.added : impl_.added_plain;
    if (!added || added->empty()) return encode_text(part, parse_special);
    AddedTokens::Cursor tokens(*added, part);
    for (;;) {
      const AddedTokens::Cursor::Part found = tokens.next();
      encode_text(found.text, parse_special);
      if (found.id == TokenTable::kNone) break;
      out_.push_back(found.id);
    }
  }

 private:
  void encode_text(std::string_view text, bool parse_special) {
    run_.encode(text, text.data() == whole_.data(), parse_special, out_);
  }

  const Tokenizer::Impl& impl_;
  TextPipeline::Run run_;
  std::string_view whole_;
  std::vector<int32_t>& out_;
};

/// Encodes a text whose control tokens are found only between the ranges of `content`.
void encode_marked(const Tokenizer::Impl& impl, std::string_view text,
                   std::span<const TextRange> content, PartEncoder& encoder,
                   std::vector<int32_t>& out) {
  size_t begin = 0;  // of the text that isn't encoded yet
  const auto search = [&](size_t first, size_t last) {
    if (!impl.added || impl.added->empty()) return;
    AddedTokens::Cursor tokens(*impl.added, text.substr(first, last - first));
    for (;;) {
      const AddedTokens::Cursor::Part part = tokens.next();
      if (part.id == TokenTable::kNone) break;
      if (!impl.is_special(part.id)) continue;
      encoder.encode(text.substr(begin, first + part.begin - begin), false);
      out.push_back(part.id);
      begin = first + part.end;
    }
  };
  size_t gap = 0;
  for (const TextRange& range : content) {
    search(gap, range.begin);
    gap = range.end;
  }
  search(gap, text.size());
  encoder.encode(text.substr(begin), false);
}

}  // namespace

int64_t Tokenizer::least_tokens(std::string_view text) const {
  const size_t most = impl_->bytes_per_token;
  if (most == 0 || impl_->kept.none()) return 0;
  size_t counts[256] = {};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  size_t kept = 0;
  for (size_t byte = 0; byte < std::size(counts); ++byte) {
    if (impl_->kept[byte]) kept += counts[byte];
  }
  return static_cast<int64_t>((kept + most - 1) / most);
}

void Tokenizer::check_text(std::string_view text, const EncodeOptions& options) const {
  // Shorter texts are encoded, so that the caller's error can tell the number of their tokens.
  constexpr size_t kLong = 1'000'000;
  const int64_t least = options.most_tokens && text.size() >= kLong ? least_tokens(text) : 0;
  if (least > options.most_tokens.value_or(0)) {
    throw Error("tokenize", "the text is too long",
                fmt::format("{} bytes, at least {} tokens", text.size(), least),
                fmt::format("need at most {} tokens", *options.most_tokens));
  }
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    throw Error("tokenize", "the text is too long", fmt::format("{} bytes", text.size()),
                "need less than 2 GiB");
  }
  const size_t invalid = options.replace_invalid ? std::string_view::npos : find_invalid_utf8(text);
  if (invalid != std::string_view::npos) {
    throw Error("tokenize", "invalid UTF-8",
                fmt::format("byte {:#04x} at offset {}", static_cast<unsigned char>(text[invalid]),
                            invalid),
                "need well-formed UTF-8 text");
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  check_text(text, options);
  if (options.replace_invalid && find_invalid_utf8(text) != std::string_view::npos) {
    EncodeOptions valid = options;
    valid.replace_invalid = false;
    return encode(with_replacements(text), valid);
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
  PartEncoder encoder(impl, text, out);
  if (options.parse_special && !options.content.empty()) {
    encode_marked(impl, text, options.content, encoder, out);
  } else {
    encoder.encode(text, options.parse_special);
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
std::optional<int32_t> Tokenizer::unk() const { return impl_->unk; }
std::optional<int32_t> Tokenizer::first_added() const {
  return add_bos() ? std::optional(impl_->prefix.front()) : std::nullopt;
}
bool Tokenizer::add_bos() const { return impl_->add_bos; }
bool Tokenizer::add_eos() const { return impl_->add_eos; }
const std::string& Tokenizer::warning() const { return impl_->warning; }

}  // namespace wick::text
