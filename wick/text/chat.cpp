#include "wick/text/chat.h"

#include <algorithm>
#include <string_view>

#include "wick/base/error.h"

namespace wick::text {
namespace {

struct BuiltIn {
  std::string_view name;
  std::initializer_list<std::string_view> markers;
  std::string_view source;
};

const BuiltIn kBuiltIn[] = {
    {"ChatML",
     {"<|im_start|>", "<|im_end|>"},
     "{%- for message in messages %}"
     "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
     "{%- endfor %}"
     "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"},
    {"Llama 3",
     {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
     "{%- macro open(role) %}{{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' }}"
     "{%- endmacro %}"
     "{{- bos_token }}"
     "{%- for message in messages %}"
     "{{- open(message.role) + message.content | trim + '<|eot_id|>' }}"
     "{%- endfor %}"
     "{%- if add_generation_prompt %}{{- open('assistant') }}{%- endif %}"},
};

const BuiltIn& find_built_in(const Tokenizer& tokenizer) {
  for (const BuiltIn& format : kBuiltIn) {
    bool fits = true;
    for (const std::string_view marker : format.markers) {
      const auto id = tokenizer.token_id(marker);
      fits = fits && id && tokenizer.is_special(*id);
    }
    if (fits) return format;
  }
  throw Error("chat", "the file has no chat template", {},
              "its vocabulary has the markers of neither ChatML nor Llama 3; a text prompt works "
              "with any model");
}

jinja::Value value_of(const ChatMessage& message) {
  using jinja::Value;
  jinja::Entries entries = {{Value::text("role"), Value::content(message.role)}};
  if (!message.lacks_content) {
    entries.emplace_back(Value::text("content"), Value::content(message.content));
  }
  for (const auto& [key, value] : message.fields) entries.emplace_back(Value::content(key), value);
  return Value::dict(std::move(entries));
}

}  // namespace

ChatTemplate::ChatTemplate(std::string_view source, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      built_in_(source.empty() ? find_built_in(tokenizer).name : std::string_view()),
      template_(source.empty() ? find_built_in(tokenizer).source : source) {}

MarkedString ChatTemplate::render(std::span<const ChatMessage> messages,
                                  const ChatOptions& options) const {
  using jinja::Value;
  std::vector<Value> list;
  for (const ChatMessage& message : messages) list.push_back(value_of(message));
  // The variables that Transformers sets, then the caller's.
  std::vector<std::pair<std::string, Value>> variables = {
      {"messages", Value::list(std::move(list))},
      {"tools", Value()},
      {"documents", Value()},
      {"add_generation_prompt", Value(options.add_generation_prompt)}};
  const auto add_token = [&](const char* name, std::optional<int32_t> id) {
    if (id) variables.emplace_back(name, Value::text(tokenizer_.piece(*id)));
  };
  add_token("bos_token", tokenizer_.bos());
  add_token("eos_token", tokenizer_.eos());
  add_token("pad_token", tokenizer_.pad());
  add_token("unk_token", tokenizer_.unk());
  for (const auto& variable : options.variables) variables.push_back(variable);
  return template_.render(variables, options.now ? *options.now : std::time(nullptr));
}

std::vector<int32_t> ChatTemplate::encode(std::span<const ChatMessage> messages,
                                          const ChatOptions& options) const {
  if (options.most_tokens && !messages.empty() && messages.back().role == "user") {
    // Templates strip the white space around messages. Rendering takes longer than this check.
    constexpr std::string_view kSpaces = " \t\r\n";
    std::string_view newest = messages.back().content;
    newest.remove_prefix(std::min(newest.find_first_not_of(kSpaces), newest.size()));
    newest = newest.substr(0, newest.find_last_not_of(kSpaces) + 1);
    tokenizer_.check_text(newest, {.most_tokens = options.most_tokens});
  }
  const MarkedString text = render(messages, options);
  if (text.bytes.empty()) {
    throw Error("chat", "the chat template renders no text", {}, "a text prompt works");
  }
  std::vector<int32_t> ids = tokenizer_.encode(text.bytes, {.add_bos = false,
                                                            .add_eos = false,
                                                            .content = text.content,
                                                            .most_tokens = options.most_tokens});
  const auto first = tokenizer_.first_added();
  if (first && (ids.empty() || ids.front() != *first)) ids.insert(ids.begin(), *first);
  return ids;
}

}  // namespace wick::text
