#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/chat.h"
#include "wick/text/sampler.h"

namespace wick::cli {

/// Writes a conversation as JSON: {"messages": [{"role": …, "content": …}]}. Errors: the file can't
/// be written.
void save_conversation(const std::string& path, const std::vector<text::ChatMessage>& messages);
/// The text that save_conversation() writes.
std::string conversation_text(const std::vector<text::ChatMessage>& messages);
/// Parses such a text, or a list of messages. Errors: it isn't such JSON; the message names `path`.
std::vector<text::ChatMessage> parse_conversation(const std::string& path, const std::string& text);

/// The parameters of answers that /params shows and sets.
struct AnswerParameters {
  text::SamplerOptions sampler;
  int64_t max_tokens = -1;
  std::string recommended = {};  ///< names of those that the model's file recommended

  /// All parameters as "name=value …", and which of them the model's file recommended.
  std::string str() const;
  /// Sets parameters from words "name=value". Errors: a name or value is wrong; then none is set.
  void set(std::string_view words);
};

}  // namespace wick::cli
