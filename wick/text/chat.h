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

/// How a conversation becomes tokens.
struct ChatOptions {
  /// Ends with the opening of an assistant turn, for the model to go on from.
  bool add_generation_prompt = true;
  /// The system message put in front of messages that don't begin with one; empty: none. Templates
  /// such as SmolLM2's do so: see default_system_message().
  std::string default_system = {};
};

/// "system", "user" or "assistant". Errors: any other name.
WICK_API ChatRole parse_chat_role(std::string_view name);

/// The format that a model's chat template (Jinja text, empty if the file has none) is written for;
/// without a template, the one whose markers the vocabulary has. nullopt: no known format.
WICK_API std::optional<ChatFormat> detect_chat_format(std::string_view chat_template,
                                                      const Tokenizer& tokenizer);

/// The system message that a ChatML template inserts when the conversation brings none, empty if
/// there is none. SmolLM2: "You are a helpful AI assistant named SmolLM, trained by Hugging Face".
WICK_API std::string default_system_message(std::string_view chat_template);

/// The conversation as text, without the beginning-of-text token that encode() adds where the
/// vocabulary asks for one. Only for encode() with `parse_special` set, hence only for content that
/// is trusted: markers inside it become control tokens. encode_chat() is the safe way.
WICK_API std::string render_chat(ChatFormat format, std::span<const ChatMessage> messages,
                                 const ChatOptions& options = {});

/// The conversation as token ids, where only the format's own markers are control tokens: content
/// that spells a marker stays text. Begins with the bos token in Llama 3's format, and in ChatML
/// where the vocabulary asks for it. If no content spells a marker, equals encode(render_chat()).
/// Errors: a marker that the vocabulary lacks, ill-formed UTF-8.
WICK_API std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, ChatFormat format,
                                          std::span<const ChatMessage> messages,
                                          const ChatOptions& options = {});

}  // namespace wick::text
