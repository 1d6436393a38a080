#include "wick/text/split.h"

#include <fmt/format.h>

#include <new>
#include <string>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace wick::text {
namespace {

// The reference tokenizers read \s as Unicode's White_Space. PCRE2's \s also contains U+180E, which
// Unicode 6.3 removed from that class, so the class is written out.
#define WICK_SPACE                                                         \
  R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f})" \
  R"(\x{205f}\x{3000})"
#define WICK_GPT2_CONTRACTIONS R"('s|'t|'re|'ve|'m|'ll|'d)"
#define WICK_LLAMA3_HEAD "(?i:" WICK_GPT2_CONTRACTIONS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define WICK_LLAMA3_TAIL                                                      \
  R"(| ?[^\p{L}\p{N})" WICK_SPACE R"(]+[\r\n]*|[)" WICK_SPACE R"(]*[\r\n]+|)" \
  "[" WICK_SPACE "]+(?![^" WICK_SPACE "])|[" WICK_SPACE "]+"

constexpr const char* kGpt2 =
    WICK_GPT2_CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^\p{L}\p{N})" WICK_SPACE "]+|[" WICK_SPACE
                           "]+(?![^" WICK_SPACE "])|[" WICK_SPACE "]+";

// smollm first isolates every digit and then applies GPT-2's pattern to the text between digits.
// This single pattern does both: a digit is a word, and white space before a digit keeps its last
// character, which GPT-2's pattern otherwise leaves to the next word.
constexpr const char* kSmolLm =
    WICK_GPT2_CONTRACTIONS R"(|\p{N}| ?\p{L}+| ?[^\p{L}\p{N})" WICK_SPACE "]+|[" WICK_SPACE
                           R"(]+(?![^\p{N})" WICK_SPACE "])|[" WICK_SPACE "]+";

constexpr const char* kLlama3 = WICK_LLAMA3_HEAD R"(\p{N}{1,3})" WICK_LLAMA3_TAIL;
constexpr const char* kQwen2 = WICK_LLAMA3_HEAD R"(\p{N})" WICK_LLAMA3_TAIL;

constexpr PreTokenizer kFamilies[] = {
    {"smollm", kSmolLm, false},
    {"gpt-2", kGpt2, false},
    {"llama-bpe", kLlama3, true},
    {"qwen2", kQwen2, false},
};

// Other names in GGUF files for vocabularies that split in the same way.
struct Alias {
  std::string_view name;
  std::string_view family;
};
constexpr Alias kAliases[] = {
    {"starcoder", "smollm"},
    {"refact", "smollm"},
    {"command-r", "smollm"},
    {"codeshell", "smollm"},
    {"exaone", "smollm"},
    {"minerva-7b", "smollm"},
    {"gpt2", "gpt-2"},
    {"phi-2", "gpt-2"},
    {"olmo", "gpt-2"},
    {"mpt", "gpt-2"},
    {"jais", "gpt-2"},
    {"gigachat", "gpt-2"},
    {"mellum", "gpt-2"},
    {"trillion", "gpt-2"},
    {"granite-docling", "gpt-2"},
    {"exaone4", "gpt-2"},
    {"a.x-4.0", "gpt-2"},
    {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"falcon3", "llama-bpe"},
    {"falcon-h1", "llama-bpe"},
    {"pixtral", "llama-bpe"},
    {"midm-2.0", "llama-bpe"},
    {"lfm2", "llama-bpe"},
    {"deepseek-r1-qwen", "qwen2"},
    {"kormo", "qwen2"},
    {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"},
    {"megrez", "qwen2"},
};

}  // namespace

PreTokenizer find_pre_tokenizer(std::string_view name) {
  std::string_view family = name;
  for (const Alias& alias : kAliases) {
    if (alias.name == name) family = alias.family;
  }
  std::string known;
  for (const PreTokenizer& pre : kFamilies) {
    if (pre.name == family) return pre;
    known += known.empty() ? "" : ", ";
    known += pre.name;
  }
  throw Error("tokenizer", "unknown pre-tokenizer", fmt::format("'{}'", printable(name, 60)),
              fmt::format("need one of {}", known));
}

Splitter::Splitter(const PreTokenizer& pre) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pre.pattern), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr);
  if (code == nullptr) {
    throw Error(ErrorKind::runtime, "tokenizer", "the split pattern does not compile",
                fmt::format("{} at offset {}, PCRE2 error {}", pre.name, offset, error));
  }
  code_.reset(code);
  // If the system forbids JIT code pages, PCRE2's slower interpreter runs the pattern.
  jit_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
}

void Splitter::FreeCode::operator()(void* code) const {
  pcre2_code_free(static_cast<pcre2_code*>(code));
}

void Splitter::Cursor::FreeMatch::operator()(void* match) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match));
}

Splitter::Cursor::Cursor(const Splitter& splitter, std::string_view text)
    : code_(splitter.code_.get()),
      jit_(splitter.jit_),
      text_(text),
      match_(pcre2_match_data_create(1, nullptr)) {
  if (match_ == nullptr) throw std::bad_alloc();
}

std::string_view Splitter::Cursor::next() {
  if (pos_ >= text_.size()) return {};
  const auto* code = static_cast<const pcre2_code*>(code_);
  auto* match = static_cast<pcre2_match_data*>(match_.get());
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const auto run = jit_ ? pcre2_jit_match : pcre2_match;
  const int rc = run(code, subject, text_.size(), pos_, PCRE2_NO_UTF_CHECK, match, nullptr);
  const size_t begin = pos_;
  if (rc < 0) {
    throw Error(ErrorKind::runtime, "tokenize", "the split pattern failed",
                fmt::format("at offset {}, PCRE2 error {}", begin, rc));
  }
  pos_ = pcre2_get_ovector_pointer(match)[1];
  if (pos_ <= begin) {
    throw Error(ErrorKind::runtime, "tokenize", "the split pattern made no progress",
                fmt::format("offset {}", begin));
  }
  return text_.substr(begin, pos_ - begin);
}

}  // namespace wick::text
