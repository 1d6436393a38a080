// Conversations as Python objects.
#include "python/bindings/chat.h"

#include <fmt/format.h>

#include "python/bindings/arguments.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

using text::jinja::Value;

constexpr int kDeepest = 100;

bool is_mapping(nb::handle item) {
  return PyMapping_Check(item.ptr()) != 0 && !PyUnicode_Check(item.ptr()) &&
         nb::hasattr(item, "keys");
}

Value value_of(nb::handle item, int depth = 0) {
  if (depth > kDeepest) throw Error("chat", "lists and dicts nested too deeply");
  PyObject* const object = item.ptr();
  if (item.is_none()) return {};
  if (PyBool_Check(object)) return Value(object == Py_True);
  if (PyLong_Check(object)) return Value(to_int(item, "chat"));
  if (PyFloat_Check(object)) return Value(nb::cast<double>(item));
  if (PyUnicode_Check(object)) return Value::content(nb::cast<std::string>(item));
  if (is_mapping(item)) {
    text::jinja::Entries entries;
    for (const nb::handle key : nb::list(item.attr("keys")())) {
      entries.emplace_back(value_of(key, depth + 1), value_of(nb::object(item[key]), depth + 1));
    }
    return Value::dict(std::move(entries));
  }
  if (PyList_Check(object) || PyTuple_Check(object)) {
    std::vector<Value> items;
    for (const nb::object& element : items_of(item)) items.push_back(value_of(element, depth + 1));
    return PyTuple_Check(object) ? Value::tuple(std::move(items)) : Value::list(std::move(items));
  }
  throw nb::type_error(fmt::format("chat: templates can't read a value of type {}",
                                   nb::cast<std::string>(nb::str(item.type().attr("__name__"))))
                           .c_str());
}

text::ChatMessage message_of(nb::handle item, size_t number) {
  if (!is_mapping(item)) {
    throw nb::type_error("a conversation is a sequence of {'role': …, 'content': …}");
  }
  const auto has = [&](const char* key) { return PyMapping_HasKeyString(item.ptr(), key) == 1; };
  for (const char* key : {"role", "content"}) {
    if (has(key) || (has("role") && has("tool_calls"))) continue;
    throw Error("chat", fmt::format("a message without '{}'", key),
                fmt::format("message {}", number), "need {'role': …, 'content': …}");
  }
  text::ChatMessage message{nb::cast<std::string>(item["role"]), {}};
  for (const nb::handle key : nb::list(item.attr("keys")())) {
    const auto name = nb::cast<std::string>(key);
    const nb::object value(item[key]);
    const bool parts = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || value.is_none();
    if (name == "role") continue;
    if (name == "content" && !parts) {
      message.content = nb::cast<std::string>(value);
    } else {
      message.fields.emplace_back(name, value_of(value));
    }
  }
  return message;
}

}  // namespace

std::vector<text::ChatMessage> messages_of(const std::vector<nb::object>& items) {
  std::vector<text::ChatMessage> messages;
  for (const nb::object& item : items) messages.push_back(message_of(item, messages.size()));
  return messages;
}

text::ChatOptions chat_options_of(const nb::kwargs& named) {
  text::ChatOptions options;
  for (const auto& [key, value] : named) {
    const auto name = nb::cast<std::string>(key);
    if (name == "add_generation_prompt") {
      options.add_generation_prompt = nb::cast<bool>(value);
    } else {
      options.variables.emplace_back(name, value_of(value));
    }
  }
  return options;
}

}  // namespace wick::python
