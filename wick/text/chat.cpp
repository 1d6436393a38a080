#include "wick/text/chat.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

constexpr std::string_view kImStart = "<|im_start|>", kImEnd = "<|im_end|>";
constexpr std::string_view kHeaderStart = "<|start_header_id|>", kHeaderEnd = "<|end_header_id|>";
constexpr std::string_view kEot = "<|eot_id|>";

std::string_view role_name(ChatRole role) {
  switch (role) {
    case ChatRole::system:
      return "system";
    case ChatRole::user:
      return "user";
    case ChatRole::assistant:
      break;
  }
  return "assistant";
}

// A piece of a conversation: one marker, or the whole text between two markers. The text is encoded
// as a whole, because one token may span the newline after a role and blanks at the start of the
// content.
struct Segment {
  bool marker;
  std::string text;
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

void open_turn(ChatFormat format, ChatRole role, std::string_view content,
               std::vector<Segment>& out) {
  const std::string name(role_name(role));
  if (format == ChatFormat::chat_ml) {
    out.push_back({true, std::string(kImStart)});
    out.push_back({false, name + "\n" + std::string(content)});
  } else {
    out.push_back({true, std::string(kHeaderStart)});
    out.push_back({false, name});
    out.push_back({true, std::string(kHeaderEnd)});
    out.push_back({false, "\n\n" + std::string(trim(content))});
  }
}

void add_turn(ChatFormat format, ChatRole role, std::string_view content,
              std::vector<Segment>& out) {
  open_turn(format, role, content, out);
  if (format == ChatFormat::chat_ml) {
    out.push_back({true, std::string(kImEnd)});
    out.push_back({false, "\n"});
  } else {
    out.push_back({true, std::string(kEot)});
  }
}

std::vector<Segment> lay_out(ChatFormat format, std::span<const ChatMessage> messages,
                             const ChatOptions& options) {
  std::vector<Segment> out;
  if (!messages.empty() && messages[0].role != ChatRole::system &&
      !options.default_system.empty()) {
    add_turn(format, ChatRole::system, options.default_system, out);
  }
  for (const ChatMessage& message : messages) {
    add_turn(format, message.role, message.content, out);
  }
  if (options.add_generation_prompt) open_turn(format, ChatRole::assistant, {}, out);
  return out;
}

}  // namespace

ChatRole parse_chat_role(std::string_view name) {
  for (const ChatRole role : {ChatRole::system, ChatRole::user, ChatRole::assistant}) {
    if (role_name(role) == name) return role;
  }
  throw Error("chat", "unknown role", fmt::format("'{}'", printable(name, 60)),
              "need system, user or assistant");
}

std::optional<ChatFormat> detect_chat_format(std::string_view chat_template,
                                             const Tokenizer& tokenizer) {
  const auto fits = [&](std::initializer_list<std::string_view> markers) {
    for (const std::string_view marker : markers) {
      const auto id = tokenizer.token_id(marker);
      if (!id || !tokenizer.is_special(*id)) return false;
    }
    return chat_template.empty() || chat_template.find(*markers.begin()) != std::string_view::npos;
  };
  if (fits({kImStart, kImEnd})) return ChatFormat::chat_ml;
  if (fits({kHeaderStart, kHeaderEnd, kEot})) return ChatFormat::llama3;
  return std::nullopt;
}

std::string default_system_message(std::string_view chat_template) {
  // In the template it is a literal between the markers of a system turn; the newline is a
  // character or an escape. A turn that is composed of variables has a quote in between.
  constexpr std::string_view kOpen = "<|im_start|>system";
  // Keeps the positions of the next end marker and the next quote, so that the search stays linear.
  size_t end = 0, quote = 0;
  for (size_t pos = chat_template.find(kOpen); pos != std::string_view::npos;
       pos = chat_template.find(kOpen, pos + 1)) {
    std::string_view rest = chat_template.substr(pos + kOpen.size());
    if (rest.starts_with("\\n")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with("\n")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    const size_t begin = chat_template.size() - rest.size();
    if (end < begin) end = chat_template.find(kImEnd, begin);
    if (end == std::string_view::npos) return {};
    if (quote < begin) quote = chat_template.find_first_of("'\"{}\\", begin);
    if (quote > end) return std::string(chat_template.substr(begin, end - begin));
  }
  return {};
}

std::string render_chat(ChatFormat format, std::span<const ChatMessage> messages,
                        const ChatOptions& options) {
  std::string out;
  for (const Segment& segment : lay_out(format, messages, options)) out += segment.text;
  return out;
}

std::vector<int32_t> encode_chat(const Tokenizer& tokenizer, ChatFormat format,
                                 std::span<const ChatMessage> messages,
                                 const ChatOptions& options) {
  std::vector<int32_t> out;
  const bool wants_bos = format == ChatFormat::llama3 || tokenizer.add_bos();
  if (wants_bos && tokenizer.bos()) out.push_back(*tokenizer.bos());
  for (const Segment& segment : lay_out(format, messages, options)) {
    if (segment.marker) {
      const auto id = tokenizer.token_id(segment.text);
      if (!id || !tokenizer.is_special(*id)) {
        throw Error("chat", "the vocabulary lacks a marker of the chat format", segment.text);
      }
      out.push_back(*id);
    } else {
      const auto ids = tokenizer.encode(
          segment.text, {.add_bos = false, .add_eos = false, .parse_special = false});
      out.insert(out.end(), ids.begin(), ids.end());
    }
  }
  return out;
}

}  // namespace wick::text
