#include "wick/text/pipeline/text_pipeline.h"

namespace wick::text {

TextPipeline::Run::Run(const TextPipeline& pipeline) : pipeline_(pipeline) {
  if (pipeline.model != nullptr) model_ = pipeline.model->run();
}

void TextPipeline::Run::encode(std::string_view text, bool at_beginning, bool parse_special,
                               std::vector<int32_t>& out) {
  if (text.empty() || model_ == nullptr) return;
  if (!pipeline_.normalizer.empty()) {
    normalized_ = text;
    pipeline_.normalizer.apply(normalized_);
    text = normalized_;
  }
  const std::optional<AddedTokens>& added = parse_special ? pipeline_.added : pipeline_.added_plain;
  if (!added || added->empty()) return encode_words(text, at_beginning, out);
  AddedTokens::Cursor tokens(*added, text);
  for (;;) {
    const auto [part, id] = tokens.next();
    encode_words(part, at_beginning && part.data() == text.data(), out);
    if (id == TokenTable::kNone) return;
    out.push_back(id);
  }
}

void TextPipeline::Run::encode_words(std::string_view text, bool at_beginning,
                                     std::vector<int32_t>& out) {
  if (text.empty()) return;
  if (!pipeline_.splitter) return model_->encode(text, out);
  if (words_) {
    words_->restart(text, at_beginning);
  } else {
    words_.emplace(*pipeline_.splitter, text, at_beginning);
  }
  for (std::string_view word = words_->next(); !word.empty(); word = words_->next()) {
    model_->encode(word, out);
  }
}

}  // namespace wick::text
