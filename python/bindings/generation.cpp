#include "python/bindings/generation.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>

#include "python/bindings/arguments.h"
#include "python/bindings/chat.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::python {
namespace {

/// Converts an object to a token id. Errors: it isn't an int; it exceeds 32 bits.
int32_t token_id(nb::handle item) {
  const int64_t id = to_int(item, "prompt");
  if (id == static_cast<int32_t>(id)) return static_cast<int32_t>(id);
  throw Error(ErrorKind::index, "prompt", "token id out of range", fmt::format("{}", id));
}

/// What an option of a type needs, for error messages.
template <class T>
constexpr const char* needed() {
  if constexpr (std::is_same_v<T, bool>) return "a bool";
  if constexpr (std::is_unsigned_v<T>) return "an int of at least 0";
  if constexpr (std::is_integral_v<T>) return "an int";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::vector<int32_t>>) return "a sequence of token ids";
  if constexpr (std::is_same_v<T, std::vector<float>>) return "a sequence of numbers";
  if constexpr (std::is_same_v<T, std::map<int32_t, float>>)
    return "a dict of token ids and numbers";
  return "a sequence of texts";
}

/// Reads an option of a type that nanobind knows.
template <class T>
void read(const std::string& what, nb::handle given, T& value) {
  if (nb::try_cast(given, value)) return;
  const auto shown = nb::cast<std::string>(nb::repr(given));
  throw nb::type_error(
      fmt::format("{}: need {}: not {}", what, needed<T>(), printable(shown, 60)).c_str());
}

void read(const std::string& what, nb::handle given, std::vector<std::string>& value) {
  value.clear();
  for (const nb::object& item : items_of(given, what, "need a sequence of texts")) {
    value.push_back(utf8_of(item, what));
  }
}

void read(const std::string& what, nb::handle given,
          std::optional<std::vector<std::string>>& value) {
  if (given.is_none()) {
    value.reset();
  } else {
    read(what, given, value.emplace());
  }
}

}  // namespace

bool interrupted() {
  const HeldGil held;
  return PyErr_CheckSignals() != 0;
}

serve::GenerateOptions read_options(const char* function, const nb::kwargs& named, int64_t* context,
                                    std::vector<float>* scales) {
  serve::GenerateOptions options;
  options.max_tokens = 256;
  text::SamplerOptions& s = options.sampler;
  std::map<int32_t, float> biases;
  std::optional<std::vector<std::string>> steps;
  std::string name;
  const auto into = [&](auto& value) {
    return [&](nb::handle given) { read(fmt::format("{}: {}", function, name), given, value); };
  };
  std::map<std::string_view, std::function<void(nb::handle)>> readers = {
      {"max_tokens", into(options.max_tokens)},
      {"ignore_end", into(options.ignore_end)},
      {"resume", into(options.resume)},
      {"stop", into(options.stop)},
      {"dry_breakers", into(s.dry_breakers)},
      {"logit_bias", into(biases)},
      {"samplers", into(steps)},
  };
  for_each_option(s, [&](const char* option, auto& value) { readers[option] = into(value); });
  for (const auto& [key, value] : named) {
    name = utf8_of(key, fmt::format("{}: name of an argument", function));
    const auto reader = readers.find(name);
    if (reader != readers.end()) {
      reader->second(value);
    } else if (name == "context" && context != nullptr) {
      into (*context)(value);
    } else if (name == "adapter_scales" && scales != nullptr) {
      into (*scales)(value);
    } else {
      throw nb::type_error(
          fmt::format("{}() got an unexpected keyword argument '{}'", function, name).c_str());
    }
  }
  s.logit_bias.assign(biases.begin(), biases.end());
  if (steps) {
    s.order.clear();
    for (const std::string& step : *steps) s.order.push_back(parse_sampler_step(step));
  }
  return options;
}

std::vector<int32_t> prompt_tokens(const serve::Engine& engine, nb::handle prompt,
                                   std::optional<int64_t> most) {
  if (nb::isinstance<nb::str>(prompt)) {
    return engine.tokenizer().encode(utf8_of(prompt, "prompt"), {.most_tokens = most});
  }
  if (PySequence_Check(prompt.ptr()) == 0 || PyBytes_Check(prompt.ptr())) {
    throw nb::type_error(
        fmt::format("prompt: need text, token ids or a conversation: not '{}'", type_text(prompt))
            .c_str());
  }
  const std::vector<nb::object> items = items_of(prompt);
  if (items.empty() || is_int(items.front())) {
    std::vector<int32_t> ids;
    for (const nb::object& item : items) ids.push_back(token_id(item));
    return ids;
  }
  return engine.encode_chat(messages_of(items), {.most_tokens = most});
}

std::string generate_now(PySession& session, const std::vector<int32_t>& tokens,
                         serve::GenerateOptions options) {
  options.cancelled = interrupted;
  std::string text;
  bool stopped = false;
  {
    const ReleasedGil released;
    const PySession::Use use = session.use();
    stopped = !session.session.feed(tokens, interrupted);
    if (!stopped) {
      serve::Generated made = session.session.generate(options);
      stopped = made.finish == serve::FinishReason::cancelled;
      text = std::move(made.text);
    }
  }
  if (stopped) throw nb::python_error();
  return text;
}

}  // namespace wick::python
