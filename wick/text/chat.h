#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/jinja/template.h"
#include "wick/text/marked/marked_string.h"
#include "wick/text/tokenizer.h"

namespace wick::text {

/// One message of a conversation.
struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", or another role that the template knows
  std::string content;
  /// Further keys that the template may read, such as tool_calls or reasoning_content. A key
  /// "content" replaces the text, for content in parts.
  std::vector<std::pair<std::string, jinja::Value>> fields = {};
  bool lacks_content = false;  ///< the template finds no key "content"
};

/// Options of the conversion from a conversation to text.
struct ChatOptions {
  /// Whether the text ends with the start of an assistant turn, which the model continues.
  bool add_generation_prompt = true;
  /// Variables of the template: tools, documents, enable_thinking …
  std::vector<std::pair<std::string, jinja::Value>> variables = {};
  /// The time that strftime_now() shows; unset: now.
  std::optional<std::time_t> now = std::nullopt;
  /// As in EncodeOptions, of encode(). The newest message is checked before it is rendered if a
  /// user sent it.
  std::optional<int64_t> most_tokens = std::nullopt;
};

/// Renders conversations by a model's chat template, a Jinja template (jinja/template.h). Copies
/// share the template, and several threads may use it.
class WICK_API ChatTemplate {
 public:
  /// `source`: the model file's template. If it is empty, ChatML's or Llama 3's turns are used, if
  /// the vocabulary has their markers as control tokens. Errors: there is neither; those of
  /// jinja::Template.
  ChatTemplate(std::string_view source, const Tokenizer& tokenizer);

  /// "ChatML" or "Llama 3" if the file has no template; otherwise empty.
  std::string_view built_in() const { return built_in_; }

  /// Renders a conversation. The strings of messages and variables are marked as content. Errors:
  /// those of jinja::Template::render.
  MarkedString render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;

  /// Encodes a conversation. Only text of the template becomes control tokens; content that spells
  /// such a token stays text. If no content spells one, the ids are those of the rendered text. A
  /// beginning-of-text token is added if the vocabulary requires it and the text lacks it. Errors:
  /// those of render(); the rendered text is empty; ill-formed UTF-8.
  std::vector<int32_t> encode(std::span<const ChatMessage> messages,
                              const ChatOptions& options = {}) const;

 private:
  Tokenizer tokenizer_;
  std::string_view built_in_;
  jinja::Template template_;
};

}  // namespace wick::text
