#include "wick/text/split/pre_tokenizers.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>

#include "wick/base/utf8.h"

namespace wick::text {
namespace {

// Parts that several patterns share. A pattern that needs no last alternative for white space
// leaves it out, because text between matches is a word, too.
#define WICK_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WICK_LETTERS R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define WICK_SYMBOLS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define WICK_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define WICK_ASCII_SYMBOL R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
// Words with at most one change from capitals to small letters.
#define WICK_CASED(tail)                                                                 \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" tail \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" tail
#define WICK_CASED_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" WICK_SPACES

constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kEachNumber = R"(\p{N})";
constexpr const char* kThreeDigits = "[0-9][0-9][0-9]";
constexpr const char* kQwen2Pattern =
    WICK_CONTRACTIONS "|" WICK_LETTERS R"(|\p{N}|)" WICK_SYMBOLS "|" WICK_SPACES;
constexpr const char* kLlama3Pattern =
    WICK_CONTRACTIONS "|" WICK_LETTERS R"(|\p{N}{1,3}|)" WICK_SYMBOLS "|" WICK_SPACES;
constexpr const char* kLines = R"([^\n]+|[\n]+)";
constexpr const char* kCjk = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr const char* kCjkWide = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr const char* kBloomPattern =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c})]+)";
#define WICK_DEEPSEEK3_HEAD WICK_ASCII_SYMBOL R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"

constexpr const char* kGpt2[] = {kGpt2Pattern};
// A single pattern for two stages: it isolates each number character, and applies GPT-2's pattern
// to the text between them. White space before a number keeps its last character, which GPT-2's
// pattern otherwise leaves to the next word.
constexpr const char* kSmolLm[] = {
    R"('s|'t|'re|'ve|'m|'ll|'d|\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\p{N}\s])|\s+)"};
constexpr const char* kLlama3[] = {kLlama3Pattern};
constexpr const char* kQwen2[] = {kQwen2Pattern};
constexpr const char* kQwen35[] = {
    WICK_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" WICK_SPACES};
// A run of spaces is cut into powers of two. White space that no line end follows is searched for
// one only once: the look-behind skips that alternative inside a run.
constexpr const char* kJais2[] = {
    WICK_CONTRACTIONS
    "|" WICK_LETTERS R"(|\p{N}{1,3}|)" WICK_SYMBOLS
    R"(|(?<![\t\x{b}\x{c} \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}])\s*[\r\n]+)"
    R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))"
    R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"};
constexpr const char* kDeepseekLlm[] = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-)"
    R"(\x{38a}\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-)"
    R"(\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-)"
    R"(\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-)"
    R"(\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d})"
    R"(\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-)"
    R"(\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-)"
    R"(\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126})"
    R"(\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149})"
    R"(\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2})"
    R"(\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-)"
    R"(\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-)"
    R"(\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)",
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++\z)",
    kCjkWide,
    R"(\p{N}+)",
};
constexpr const char* kDeepseekCoder[] = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kCjkWide,
                                          kEachNumber};
constexpr const char* kDeepseek3[] = {R"(\p{N}{1,3})", kCjk,
                                      WICK_DEEPSEEK3_HEAD R"( ?[\p{P}\p{S}]+[\r\n]*|)" WICK_SPACES};
constexpr const char* kSpark[] = {R"(\p{N}{1,3})", kCjk,
                                  WICK_DEEPSEEK3_HEAD R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
                                  kEachNumber};
constexpr const char* kYoutu[] = {
    R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+)"
    R"(|[\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c})"
    R"(\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+|[\x{3105}-\x{312f}]+)"
    R"(|[\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)",
    WICK_CASED(WICK_CONTRACTIONS "?") R"(|\p{N})" WICK_CASED_TAIL};
constexpr const char* kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", kGpt2Pattern, kThreeDigits};
constexpr const char* kBloom[] = {kBloomPattern};
constexpr const char* kViking[] = {kBloomPattern, kEachNumber};
constexpr const char* kTekken[] = {WICK_CASED("") R"(|\p{N})" WICK_CASED_TAIL};
constexpr const char* kChameleon[] = {"<sentinel:[0-9]+>",       "IMGIMG[A-I]{1,4}Z",
                                      R"([\t\n]|    |  )",       kEachNumber,
                                      R"([\p{P}!-/:-@\[-`{-~])", kGpt2Pattern};
constexpr const char* kGpt4oPattern =
    WICK_CASED(WICK_CONTRACTIONS "?") R"(|\p{N}{1,3})" WICK_CASED_TAIL;
constexpr const char* kGpt4o[] = {kGpt4oPattern};
// Numbers that end at a word's edge are cut into groups of three from their end.
constexpr const char* kTinyAya[] = {R"((?<!\p{Nd})\p{Nd}++(?!\w))", kGpt4oPattern};
// Classes without the script Han, as negations: all categories but the wanted ones, and Han.
#define WICK_NO_HAN(other) "[^" other R"(\p{N}\p{P}\p{S}\p{Z}\p{C}\p{Han}])"
#define WICK_KIMI_UPPER WICK_NO_HAN(R"(\p{Ll})")
#define WICK_KIMI_LOWER WICK_NO_HAN(R"(\p{Lu}\p{Lt})")
constexpr const char* kKimi[] = {
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?)" WICK_KIMI_UPPER "*" WICK_KIMI_LOWER "+" WICK_CONTRACTIONS
    R"(?|[^\r\n\p{L}\p{N}]?)" WICK_KIMI_UPPER "+" WICK_KIMI_LOWER "*" WICK_CONTRACTIONS
    R"(?|\p{N}{1,3}|)" WICK_SYMBOLS "|" WICK_SPACES};
constexpr const char* kSuperBpe[] = {R"(\p{N}+)", R"(\p{Nd}+)"};
constexpr const char* kBailing[] = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
    R"(|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kSeedCoder[] = {
    WICK_CONTRACTIONS "|" WICK_LETTERS R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" WICK_SPACES};
constexpr const char* kUfakzeka[] = {WICK_LETTERS R"(|\p{N}|)" WICK_SYMBOLS "|" WICK_SPACES};
constexpr const char* kAfmoe[] = {
    R"(\p{N}+)",
    R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{f900}-\x{faff}\x{3040}-\x{309f}\x{30a0}-\x{30ff})"
    R"(\x{ff65}-\x{ff9f}\x{2f00}-\x{2fdf}\x{e40}-\x{e7f}\x{e80}-\x{eff}\x{1780}-\x{17ff})"
    R"(\x{1000}-\x{109f}\x{aa60}-\x{aa7f}\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)",
    WICK_DEEPSEEK3_HEAD R"( ?[\p{P}\p{S}]+[\r\n]*|)" WICK_SPACES};
constexpr const char* kLaguna[] = {kLines, kQwen2Pattern};
// Possessive, because only one way to match is possible.
constexpr const char* kExaoneMoe[] = {
    WICK_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N})"
                      R"(| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr const char* kMiniCpm5[] = {
    R"(\p{N}{1,3})", WICK_CONTRACTIONS "|" WICK_LETTERS R"(|\p{N}+|)" WICK_SYMBOLS "|" WICK_SPACES};
constexpr const char* kDefault[] = {R"([\p{P}$+<=>^~|]+)", kGpt2Pattern, R"(\p{N}+)", kThreeDigits};
constexpr const char* kLinesOnly[] = {kLines};
constexpr const char* kNoSpaces[] = {R"(\S+)"};

constexpr PreTokenizer kFamilies[] = {
    {.name = "default", .patterns = kDefault},
    {.name = "smollm", .patterns = kSmolLm},
    {.name = "gpt-2", .patterns = kGpt2},
    {.name = "llama-bpe", .patterns = kLlama3, .whole_word_first = true, .adds_bos = true},
    {.name = "dbrx", .patterns = kLlama3},
    {.name = "glm4", .patterns = kLlama3, .whole_word_first = true},
    {.name = "qwen2", .patterns = kQwen2},
    {.name = "qwen35", .patterns = kQwen35},
    {.name = "jais-2", .patterns = kJais2},
    {.name = "deepseek-llm", .patterns = kDeepseekLlm},
    {.name = "deepseek-coder", .patterns = kDeepseekCoder},
    {.name = "deepseek-v3", .patterns = kDeepseek3},
    {.name = "spark2_5", .patterns = kSpark},
    {.name = "youtu", .patterns = kYoutu, .whole_word_first = true},
    {.name = "falcon", .patterns = kFalcon},
    {.name = "bloom", .patterns = kBloom},
    {.name = "viking", .patterns = kViking},
    {.name = "tekken", .patterns = kTekken, .whole_word_first = true, .adds_bos = true},
    {.name = "chameleon", .patterns = kChameleon, .adds_bos = true},
    {.name = "gpt-4o", .patterns = kGpt4o},
    {.name = "granite-embed-multi-97m", .patterns = kGpt4o, .whole_word_first = true},
    {.name = "tiny_aya", .patterns = kTinyAya, .grouped = 0},
    {.name = "kimi-k2", .patterns = kKimi},
    {.name = "superbpe", .patterns = kSuperBpe, .grouped = 1},
    {.name = "bailingmoe", .patterns = kBailing},
    {.name = "seed-coder", .patterns = kSeedCoder},
    {.name = "ufakzeka", .patterns = kUfakzeka},
    {.name = "afmoe", .patterns = kAfmoe, .grouped = 0},
    {.name = "laguna", .patterns = kLaguna},
    {.name = "exaone-moe", .patterns = kExaoneMoe},
    {.name = "minicpm5", .patterns = kMiniCpm5, .whole_word_first = true},
    {.name = "gemma4",
     .patterns = kLinesOnly,
     .adds_bos = true,
     .raw = true,
     .spaces_are_marks = true},
    {.name = "sarvam-moe", .patterns = kLinesOnly, .raw = true, .spaces_are_marks = true},
    {.name = "mmbert",
     .patterns = kLinesOnly,
     .raw = true,
     .spaces_are_marks = true,
     .marks_start_words = true},
    {.name = "whitespace", .patterns = kNoSpaces, .raw = true},
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
    {"mellum2", "smollm"},
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
    {"modern-bert", "gpt-2"},
    {"jina-es", "gpt-2"},
    {"jina-de", "gpt-2"},
    {"jina-v1-en", "gpt-2"},
    {"jina-v2-es", "gpt-2"},
    {"jina-v2-de", "gpt-2"},
    {"jina-v2-code", "gpt-2"},
    {"roberta-bpe", "gpt-2"},
    {"llama3", "llama-bpe"},
    {"llama-v3", "llama-bpe"},
    {"falcon3", "llama-bpe"},
    {"falcon-h1", "llama-bpe"},
    {"pixtral", "llama-bpe"},
    {"midm-2.0", "llama-bpe"},
    {"lfm2", "llama-bpe"},
    {"jina-v5-nano", "llama-bpe"},
    {"smaug-bpe", "dbrx"},
    {"chatglm-bpe", "dbrx"},
    {"glm5", "glm4"},
    {"deepseek-r1-qwen", "qwen2"},
    {"kormo", "qwen2"},
    {"f2llmv2", "qwen2"},
    {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"},
    {"megrez", "qwen2"},
    {"grok-2", "qwen2"},
    {"solar-open", "qwen2"},
    {"hunyuan-dense", "deepseek-v3"},
    {"joyai-llm", "deepseek-v3"},
    {"hy_v4", "deepseek-v3"},
    {"poro-chat", "bloom"},
    {"gpt3-finnish", "bloom"},
    {"llama4", "gpt-4o"},
    {"kanana2", "gpt-4o"},
    {"talkie", "gpt-4o"},
    {"minimax-m2", "gpt-4o"},
    {"cohere2moe", "tiny_aya"},
    {"bailingmoe2", "bailingmoe"},
    {"llada-moe", "bailingmoe"},
    {"granite-embed-multi-311m", "gemma4"},
};

/// A pattern with \\x{4e00} replaced by its character.
std::string without_numbers(std::string_view pattern) {
  constexpr std::string_view kOpen = "\\x{";
  constexpr uint32_t kAsciiEnd = 0x80;
  const char* const end = pattern.data() + pattern.size();
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at).starts_with(kOpen)) {
      uint32_t point = 0;
      const char* const digits = pattern.data() + at + kOpen.size();
      const auto [stop, error] = std::from_chars(digits, end, point, 16);
      const bool closed = error == std::errc{} && stop != end && *stop == '}';
      if (closed && point >= kAsciiEnd && is_character(point)) {
        append_utf8(out, point);
        at = static_cast<size_t>(stop - pattern.data());
        continue;
      }
    }
    out += pattern[at];
    if (pattern[at] == '\\' && at + 1 < pattern.size()) out += pattern[++at];
  }
  return out;
}

/// Whether a stage does nothing but isolate the matches of its pattern.
bool isolates(const SplitStage& stage) {
  return !stage.literal && stage.behavior == SplitBehavior::isolated && !stage.invert &&
         stage.group == 0 && stage.mark.empty() && stage.prefix.empty();
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::span<const SplitStage> stages, bool whole_word_first) {
  std::vector<std::string> patterns;
  for (const SplitStage& stage : stages) {
    if (!isolates(stage)) return nullptr;
    patterns.push_back(without_numbers(stage.pattern));
  }
  // A tokenizer.json has two stages for this family's pattern.
  if (patterns == std::vector<std::string>{kEachNumber, kGpt2Pattern} && !whole_word_first) {
    return find_pre_tokenizer("smollm");
  }
  for (const PreTokenizer& pre : kFamilies) {
    if (pre.raw || pre.grouped >= 0 || pre.whole_word_first != whole_word_first) continue;
    if (std::equal(patterns.begin(), patterns.end(), pre.patterns.begin(), pre.patterns.end(),
                   [](const std::string& a, const char* b) { return a == without_numbers(b); })) {
      return &pre;
    }
  }
  return nullptr;
}

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  std::string_view family = name;
  for (const Alias& alias : kAliases) {
    if (alias.name == name) family = alias.family;
  }
  const auto* found = std::find_if(std::begin(kFamilies), std::end(kFamilies),
                                   [&](const PreTokenizer& pre) { return pre.name == family; });
  return found == std::end(kFamilies) ? nullptr : found;
}

const PreTokenizer& default_pre_tokenizer() { return kFamilies[0]; }

std::vector<SplitStage> stages_of(const PreTokenizer& pre) {
  constexpr const char* kMark = "\xe2\x96\x81";  // U+2581
  std::vector<SplitStage> stages;
  if (pre.spaces_are_marks) stages.push_back({.mark = kMark});
  for (size_t i = 0; i < pre.patterns.size(); ++i) {
    stages.push_back(
        {.pattern = pre.patterns[i], .group = static_cast<int>(i) == pre.grouped ? 3u : 0u});
  }
  if (pre.marks_start_words) {
    stages.push_back({.pattern = kMark,
                      .literal = true,
                      .behavior = SplitBehavior::merged_with_next,
                      .prefix = kMark,
                      .spares_lines = true});
  }
  return stages;
}

std::vector<SplitStage> bert_stages() {
  return {{.pattern = R"(\s+)", .behavior = SplitBehavior::removed},
          {.pattern = R"([\p{P}!-/:-@\[-`{-~])"}};
}

const char* gpt2_pattern() { return kGpt2Pattern; }

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const PreTokenizer& pre : kFamilies) names.push_back(pre.name);
  for (const Alias& alias : kAliases) names.push_back(alias.name);
  return names;
}

}  // namespace wick::text
