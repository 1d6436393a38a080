#include "chat_commands.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "common.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::cli {
namespace {

using Json = nlohmann::ordered_json;
using text::jinja::Value;

constexpr int kDeepest = 100;

/// Converts JSON to content of a conversation. Errors: lists and objects are nested too deeply.
Value content_of(const Json& json, int depth = 0) {
  if (depth > kDeepest) throw Error("chat", "JSON nested too deeply");
  if (json.is_null()) return {};
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value::content(json.get<std::string>());
  std::vector<Value> items;
  text::jinja::Entries entries;
  for (const auto& [key, item] : json.items()) {
    if (json.is_array()) {
      items.push_back(content_of(item, depth + 1));
    } else {
      entries.emplace_back(Value::content(key), content_of(item, depth + 1));
    }
  }
  return json.is_array() ? Value::list(std::move(items)) : Value::dict(std::move(entries));
}

Json json_of(const Value& value) {
  if (const bool* flag = value.boolean()) return *flag;
  if (const int64_t* integer = value.strict_integer()) return *integer;
  if (const double* real = value.real()) return *real;
  if (const auto* text = value.string()) return text->text.bytes;
  if (const auto* list = value.sequence()) {
    Json items = Json::array();
    for (const Value& item : list->items) items.push_back(json_of(item));
    return items;
  }
  if (value.dict() == nullptr) return nullptr;
  Json object = Json::object();
  for (const auto& [key, item] : value.dict()->entries) {
    object[key.string()->text.bytes] = json_of(item);
  }
  return object;
}

text::ChatMessage message_of(const std::string& path, size_t number, const Json& json) {
  const auto text = [&](const char* key) -> std::optional<std::string> {
    if (!json.is_object() || !json.contains(key) || !json[key].is_string()) return std::nullopt;
    return json[key].get<std::string>();
  };
  const auto role = text("role"), content = text("content");
  const bool has_content = json.is_object() && json.contains("content");
  if (!role || (!has_content && !json.contains("tool_calls"))) {
    throw Error(printable(path), fmt::format("message {} is malformed", number), {},
                R"(need {"role": "…", "content": "…"})");
  }
  if (has_content && !content && !json["content"].is_array() && !json["content"].is_null()) {
    throw Error(printable(path), fmt::format("content of message {} is malformed", number),
                printable(json_text(json["content"]), 60), "need text, a list of parts or null");
  }
  text::ChatMessage message{*role, content.value_or("")};
  message.lacks_content = !has_content;
  for (const auto& [key, value] : json.items()) {
    if (key == "role" || (key == "content" && content)) continue;
    message.fields.emplace_back(key, content_of(value));
  }
  return message;
}

template <class T>
bool parse(std::string_view text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// Calls `visit` with the name and the variable of each parameter.
template <class Parameters, class Visit>
void for_each_parameter(Parameters& p, const Visit& visit) {
  for_each_option(p.sampler, visit);
  visit("max_tokens", p.max_tokens);
}

/// Whether a parameter is shown even if it has its default.
bool is_basic(std::string_view name) {
  bool found = name == "max_tokens";
  text::SamplerOptions options;
  for_each_basic_option(options, [&](std::string_view other, auto&) { found |= other == name; });
  return found;
}

}  // namespace

std::string conversation_text(const std::vector<text::ChatMessage>& messages) {
  Json list = Json::array();
  for (const text::ChatMessage& message : messages) {
    Json object = {{"role", message.role}};
    if (!message.lacks_content) object["content"] = message.content;
    for (const auto& [key, value] : message.fields) object[key] = json_of(value);
    list.push_back(std::move(object));
  }
  return Json{{"messages", list}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void save_conversation(const std::string& path, const std::vector<text::ChatMessage>& messages) {
  std::ofstream file(path, std::ios::binary);
  file << conversation_text(messages);
  file.close();
  if (!file)
    throw Error(ErrorKind::file, printable(path), "can't be written", std::strerror(errno));
}

std::vector<text::ChatMessage> parse_conversation(const std::string& path,
                                                  const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) throw Error(printable(path), "isn't JSON");
  const Json& list = json.is_object() && json.contains("messages") ? json["messages"] : json;
  if (!list.is_array()) {
    throw Error(printable(path), "has no list of messages", {}, R"(need {"messages": […]})");
  }
  std::vector<text::ChatMessage> messages;
  for (const Json& item : list) messages.push_back(message_of(path, messages.size(), item));
  return messages;
}

std::string AnswerParameters::str() const {
  std::string out;
  const AnswerParameters defaults{};
  for_each_parameter(*this, [&](const char* name, const auto& value) {
    bool shown = is_basic(name);
    for_each_parameter(defaults, [&](std::string_view other, const auto& usual) {
      if (other == name) shown |= static_cast<double>(usual) != static_cast<double>(value);
    });
    if (shown) out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  });
  if (sampler.order != text::SamplerOptions::default_order()) {
    std::vector<std::string_view> steps;
    for (const SamplerStep step : sampler.order) steps.push_back(sampler_step_name(step));
    out += fmt::format(" samplers={}", fmt::join(steps, ","));
  }
  if (!recommended.empty()) out += fmt::format(" (the model file recommends {})", recommended);
  return out;
}

void AnswerParameters::set(std::string_view words) {
  AnswerParameters changed = *this;
  while (!words.empty()) {
    const size_t blank = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, blank);
    words.remove_prefix(std::min(blank + 1, words.size()));
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    bool known = false, valid = false;
    for_each_parameter(changed, [&](std::string_view name, auto& value) {
      if (word.substr(0, equals) != name) return;
      if (name == "dry_multiplier" && changed.sampler.dry_breakers.empty()) {
        throw Error("/params", "dry_multiplier can't be set now", {},
                    "start the command with --dry-multiplier, which finds where repetitions end");
      }
      known = true;
      valid = equals != std::string_view::npos && parse(word.substr(equals + 1), value);
    });
    if (!known || !valid) {
      throw Error("/params", known ? "malformed value" : "unknown parameter", printable(word, 60),
                  "need " + str());
    }
  }
  check_sampler_options(changed.sampler);
  if (changed.max_tokens < -1) {
    throw Error("/params", "max_tokens out of range", fmt::format("{}", changed.max_tokens),
                "need at least -1, which means no limit");
  }
  *this = changed;
}

}  // namespace wick::cli
