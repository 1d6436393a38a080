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
/// Reads what save_conversation() wrote, or a list of messages. Errors: the file can't be read; it
/// isn't such JSON.
std::vector<text::ChatMessage> load_conversation(const std::string& path);

/// The parameters of answers that /params shows and sets.
struct AnswerParameters {
  text::SamplerOptions sampler;
  int64_t max_tokens = -1;

  /// All parameters as "name=value …".
  std::string str() const;
  /// Sets parameters from words "name=value". Errors: a name or value is wrong; then none is set.
  void set(std::string_view words);
};

}  // namespace wick::cli
