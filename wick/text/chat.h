#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/tokenizer.h"

namespace wick::text {

/// The markup of turns that a model was trained with.
enum class ChatFormat {
  chat_ml,  ///< <|im_start|>role\ncontent<|im_end|>\n
  llama3,   ///< <|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>, content trimmed
};

enum class ChatRole { system, user, assistant };

/// One turn of a conversation.
struct ChatMessage {
  ChatRole role;
  std::string content;
};

/// Options of the conversion from a conversation to tokens.
struct ChatOptions {
  /// Whether the text ends with the start of an assistant turn, which the model continues.
  bool add_generation_prompt = true;
  /// The system message that is inserted if the messages don't begin with one; empty: none.
  /// Templates such as SmolLM2's do this: see default_system_message().
  std::string default_system = {};
};

/// Parses "system", "user" or "assistant". Errors: any other name.
WICK_API ChatRole parse_chat_role(std::string_view name);

/// Returns the format that a model's chat template (Jinja text, empty if the file has none)
/// produces. Without a template, returns the format whose markers the vocabulary has; nullopt if
/// the format is unknown.
WICK_API std::optional<ChatFormat> detect_chat_format(std::string_view chat_template,
                                                      const Tokenizer& tokenizer);

/// Returns the system message that a ChatML template inserts if the conversation has none; empty if
/// it inserts none. SmolLM2: "You are a helpful AI assistant named SmolLM, trained by Hugging
/// Face".
WICK_API std::string default_system_message(std::string_view chat_template);

/// Renders the conversation as text, without the beginning-of-text token that encode() adds if the
/// vocabulary requires it. Pass the result only to encode() with `parse_special`, and only if the
/// content is trusted, because markers in the content become control tokens. encode_chat() is safe
/// for untrusted content.
WICK_API std::string render_chat(ChatFormat format, std::span<const ChatMessage> messages,
                                 const ChatOptions& options = {});

/// Encodes the conversation. Only the format's own markers become control tokens; content that
/// spells a marker stays text. The ids begin with the bos token in Llama 3's format, and in ChatML
/// if the vocabulary requires it. If no content spells a marker, the result equals
/// encode(render_chat()). Errors: the vocabulary lacks a marker; ill-formed UTF-8.
WICK_API std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, ChatFormat format,
                                          std::span<const ChatMessage> messages,
                                          const ChatOptions& options = {});

}  // namespace wick::text
