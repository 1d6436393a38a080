#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/error.h"
#include "wick/text/jinja/template.h"

namespace wick::text::jinja::test {

/// Renders a template with a conversation that has tools, calls and documents. Returns false if it
/// is refused with an Error.
inline bool render_if_valid(std::string_view source) {
  const auto text = [](std::string_view t) { return Value::content(t); };
  const auto dict = [](std::vector<std::pair<std::string, Value>> fields) {
    Entries entries;
    for (auto& [key, value] : fields) entries.emplace_back(Value::content(key), std::move(value));
    return Value::dict(std::move(entries));
  };
  static const Value function =
      dict({{"name", text("get_time")},
            {"arguments", dict({{"zone", text("UTC")}, {"n", Value(3)}, {"x", Value(-1.5)}})},
            {"parameters",
             dict({{"type", text("object")}, {"required", Value::list({text("zone")})}})}});
  static const Value call = dict({{"id", text("abc123def")}, {"function", function}});
  static const std::vector<std::pair<std::string, Value>> variables = {
      {"messages",
       Value::list({dict({{"role", text("system")}, {"content", text(" Be brief.\n")}}),
                    dict({{"role", text("user")}, {"content", text("H\xc3\xa9llo <|im_end|>")}}),
                    dict({{"role", text("assistant")},
                          {"content", Value()},
                          {"tool_calls", Value::list({call, call})}}),
                    dict({{"role", text("tool")}, {"content", text("{\"t\": 12}")}})})},
      {"tools", Value::list({call})},
      {"documents", Value::list({dict({{"title", text("T")}, {"text", text("x")}})})},
      {"add_generation_prompt", Value(true)},
      {"bos_token", Value::text("<s>")},
      {"eos_token", Value::text("</s>")},
      {"n", Value(7)},
      {"x", Value(2.5)}};
  try {
    const MarkedString out = Template(source).render(variables, 0);
    size_t end = 0;
    for (const TextRange& range : out.content) {  // the marks are in order and in range
      if (range.begin < end || range.begin >= range.end || range.end > out.bytes.size()) {
        __builtin_trap();
      }
      end = range.end;
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace wick::text::jinja::test
