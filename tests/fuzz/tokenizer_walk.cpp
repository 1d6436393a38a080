#include "tests/fuzz/tokenizer_walk.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "wick/base/error.h"
#include "wick/text/gguf_vocabulary.h"
#include "wick/text/stream_decoder.h"
#include "wick/text/tokenizer.h"

namespace wick::text::test {
namespace {

/// Removes the text up to `end` and `end` itself from the front of `text`.
std::string_view take(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return front;
}

TokenizerSpec spec_of(std::string_view data) {
  TokenizerSpec spec;
  std::string_view head = take(data, '\n');
  spec.model = take(head, ' ');
  spec.pre = take(head, ' ');
  spec.charsmap = take(head, ' ');
  while (!data.empty()) {
    std::string_view line = take(data, '\n');
    const std::string type(take(line, '\t')), score(take(line, '\t'));
    spec.token_types.push_back(std::atoi(type.c_str()));
    spec.scores.push_back(std::strtof(score.c_str(), nullptr));
    spec.tokens.push_back(take(line, '\t'));
    if (const std::string_view merge = take(line, '\t'); !merge.empty()) {
      spec.merges.push_back(merge);
    }
  }
  if (!spec.tokens.empty()) {
    spec.bos = spec.eos = spec.unk = 0;
    spec.add_bos = spec.add_eos = true;
  }
  spec.add_space_prefix = spec.tokens.size() % 2 == 0;
  spec.remove_extra_spaces = spec.tokens.size() % 3 == 0;
  return spec;
}

void encode(const Tokenizer& tokenizer, std::string_view text) {
  EncodeOptions options;
  options.replace_invalid = true;
  std::vector<int32_t> ids;
  try {
    ids = tokenizer.encode(text, options);
  } catch (const Error&) {
    return;  // a limit of patterns or of growth
  }
  StreamDecoder decoder(tokenizer);
  for (const int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) std::abort();
    decoder.push(id);
  }
  decoder.finish();
  tokenizer.decode(ids, true);
}

}  // namespace

bool walk_if_valid(std::string_view data) {
  try {
    const Tokenizer tokenizer =
        data.starts_with('{') ? Tokenizer::from_json(data) : Tokenizer(spec_of(data));
    encode(tokenizer, "");
    encode(tokenizer, "Hello, world! I'm 12345 \n\n caf\u00e9 cafe\u0301 \u4f60\u597d <s>");
    encode(tokenizer, data.substr(0, 400));
    if (data.starts_with('{')) gguf_vocabulary(data, 0);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace wick::text::test
