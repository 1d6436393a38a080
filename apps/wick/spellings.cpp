// Options of llama.cpp's programs that wick spells differently. An error for one of them names
// wick's option.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common.h"

namespace wick::cli {
namespace {

struct Spelling {
  std::string_view foreign;
  std::string_view own;        ///< wick's option or argument
  std::string_view rest = {};  ///< follows `own` in the message
};

/// Options for what wick always does.
constexpr std::pair<std::string_view, std::string_view> kAlways[] = {
    {"-fa", "attention is always fused"},
    {"--flash-attn", "attention is always fused"},
    {"--jinja", "the file's chat template is always used"},
    {"--mmap", "files are always mapped"},
};

// Several rows of a spelling are for different commands: the first whose option a command has
// counts.
constexpr Spelling kSpellings[] = {
    {"-ngl", "--gpu-layers"},
    {"--n-gpu-layers", "--gpu-layers"},
    {"-ncmoe", "--cpu-experts"},
    {"--n-cpu-moe", "--cpu-experts"},
    {"-cmoe", "--cpu-experts", " all"},
    {"--cpu-moe", "--cpu-experts", " all"},
    {"-ot", "--cpu-experts"},
    {"--override-tensor", "--cpu-experts"},
    {"-dev", "--device"},
    {"-sm", "--device"},
    {"--split-mode", "--device"},
    {"-mg", "--device"},
    {"--main-gpu", "--device"},
    {"--ctx-size", "--ctx"},
    {"--predict", "--tokens"},
    {"--n-predict", "--tokens"},
    {"-tb", "--threads"},
    {"--threads-batch", "--threads"},
    {"-b", "--batch"},
    {"--batch-size", "--batch"},
    {"-ub", "--batch"},
    {"--ubatch-size", "--batch"},
    {"-ctk", "--cache-type"},
    {"-ctv", "--cache-type"},
    {"--cache-type-k", "--cache-type"},
    {"--cache-type-v", "--cache-type"},
    {"-p", "TEXT", " without an option"},
    {"--prompt", "TEXT", " without an option"},
    {"-p", "--file"},
    {"--prompt", "--file"},
    {"-sys", "--system"},
    {"--system-prompt", "--system"},
    {"-cnv", "--chat"},
    {"--conversation", "--chat"},
    {"-r", "--stop"},
    {"--reverse-prompt", "--stop"},
    {"--prompt-cache", "--save-session", " and --load-session"},
    {"--lora-scaled", "--lora", " FILE=N"},
    {"--temperature", "--temp"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--repeat-last-n", "--penalty-window"},
    {"--typical", "--typical-p"},
    {"--top-nsigma", "--top-n-sigma"},
    {"--dynatemp-range", "--dynamic-range"},
    {"--dynatemp-exp", "--dynamic-exponent"},
    {"--dry-penalty-last-n", "--dry-window"},
    {"--dry-sequence-breaker", "--dry-breaker"},
    {"--mirostat-lr", "--mirostat-eta"},
    {"--mirostat-ent", "--mirostat-tau"},
    {"-l", "--logit-bias", " ID=N"},
    {"--embd-normalize", "--raw", " for embeddings that aren't scaled"},
    {"--embd-output-format", "--json"},
    {"--ids", "--json"},
    {"--no-parse-special", "--no-special"},
    {"--stdin", "--file", " -"},
    {"--output-tensor-type", "--output-type"},
    {"--from-chunk", "--chunk"},
    {"-npl", "--sequences"},
};

}  // namespace

std::string foreign_option(const CLI::App& command, const std::vector<std::string>& words) {
  const auto takes_value = [&](const std::string& word) {
    const CLI::Option* const option =
        word.starts_with('-') ? command.get_option_no_throw(word) : nullptr;
    return option != nullptr && option->get_items_expected_min() > 0;
  };
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (i > 0 && takes_value(words[i - 1])) continue;
    if (!name.starts_with('-') || command.get_option_no_throw(name) != nullptr) continue;
    for (const auto& [always, why] : kAlways) {
      if (name == always) return fmt::format("unknown option: {}: leave it out: {}", name, why);
    }
    const auto fits = [&](const Spelling& s) {
      return s.foreign == name && command.get_option_no_throw(std::string(s.own)) != nullptr;
    };
    const auto* const found = std::find_if(std::begin(kSpellings), std::end(kSpellings), fits);
    if (found == std::end(kSpellings)) continue;
    return fmt::format("unknown option: {}: use {}{}", name, found->own, found->rest);
  }
  return {};
}

}  // namespace wick::cli
