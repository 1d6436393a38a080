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
  if (PyUnicode_Check(object)) return Value::content(utf8_of(item, "chat: a value"));
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
  throw nb::type_error(
      fmt::format("chat: templates can't read a value of type {}", type_text(item)).c_str());
}

text::ChatMessage message_of(nb::handle item, size_t number) {
  if (!is_mapping(item)) {
    throw nb::type_error(fmt::format("chat: message {}: need {{'role': …, 'content': …}}: not '{}'",
                                     number, type_text(item))
                             .c_str());
  }
  const auto has = [&](const char* key) { return PyMapping_HasKeyString(item.ptr(), key) == 1; };
  if (!has("role")) {
    throw Error("chat", "a message without 'role'", fmt::format("message {}", number),
                "need {'role': …, 'content': …}");
  }
  const auto what = [&](const char* part) {
    return fmt::format("chat: message {}: {}", number, part);
  };
  text::ChatMessage message{utf8_of(nb::object(item["role"]), what("role")), {}};
  message.lacks_content = !has("content");
  for (const nb::handle key : nb::list(item.attr("keys")())) {
    const std::string name = utf8_of(key, what("a key"));
    const nb::object value(item[key]);
    const bool parts = PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || value.is_none();
    if (name == "role") continue;
    if (name == "content" && PyUnicode_Check(value.ptr())) {
      message.content = utf8_of(value, what("content"));
    } else if (name == "content" && !parts) {
      throw nb::type_error(fmt::format("{}: need text, a list of parts or None: not '{}'",
                                       what("content"), type_text(value))
                               .c_str());
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
    const std::string name = utf8_of(key, "chat: name of a variable");
    if (name == "add_generation_prompt") {
      if (!PyBool_Check(value.ptr())) {
        throw nb::type_error(
            fmt::format("chat: add_generation_prompt: need a bool: not '{}'", type_text(value))
                .c_str());
      }
      options.add_generation_prompt = value.ptr() == Py_True;
    } else {
      options.variables.emplace_back(name, value_of(value));
    }
  }
  return options;
}

}  // namespace wick::python
