// Error messages for calls whose arguments fit no signature.
//
// nanobind reports such a call as a list of all signatures and argument types, through
// PyErr_SetString, and has no hook to change the text. Therefore the linker redirects the
// extension's calls of that function to this file (--wrap in CMakeLists.txt), and the list becomes
// one line in the form of wick's other errors: `function: argument: need …: not '…'`. Signatures
// and types are parsed from the list. A text that isn't such a list, or can't be parsed, stays
// unchanged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/bindings/axis.h"
#include "python/bindings/binding.h"
#include "wick/tensor/tensor.h"

namespace wick::python {
namespace {

using Texts = std::vector<std::string_view>;

// The start of nanobind's list, after the function's name, and the text before the types.
constexpr std::string_view kListBegins =
    "(): incompatible function arguments. The following argument types are supported:\n";
constexpr std::string_view kTypesBegin = "\nInvoked with types: ";
constexpr std::string_view kNamedBegin = "kwargs = { ", kNamedEnd = " }";

struct Parameter {
  std::string_view name, type, otherwise;  ///< `otherwise`: the default value; empty: none
  bool by_position = true, by_name = true;
  bool takes_rest = false;  ///< whether it is *name or **name
};

/// A signature, for a method without self.
struct Signature {
  std::vector<Parameter> parameters;
  bool is_method = false;
};

struct Argument {
  std::string_view name, type;  ///< no name: given by position
};

/// An argument type in nanobind's spelling, with the words for one and for several such values.
struct Words {
  std::string_view type, one, many;
};
constexpr Words kWords[] = {
    {"int", "an int", "ints"},
    {"SupportsIndex", "an int", "ints"},
    {"float", "a number", "numbers"},
    {"bool", "a bool", "bools"},
    {"str", "text", "texts"},
    {"Tensor", "a tensor", "tensors"},
    {"PathLike[str]", "a path", "paths"},
    {"tuple[int, int]", "a pair of ints", "pairs of ints"},
    {"None", "None", "Nones"},
    {"object", "anything", "objects"},
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// The first position of a character outside of brackets and quotes; npos if there is none.
size_t find_outside(std::string_view text, char wanted) {
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == wanted && depth == 0) return i;
    if (c == '\'' || c == '"') quote = c;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
  }
  return std::string_view::npos;
}

Texts split(std::string_view text, char separator) {
  Texts parts;
  while (!trimmed(text).empty()) {
    const size_t end = std::min(find_outside(text, separator), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// A type name without its module.
std::string_view bare(std::string_view type) {
  for (const std::string_view module : {"wick.", "typing.", "collections.abc.", "os."}) {
    if (type.starts_with(module)) return type.substr(module.size());
  }
  return type;
}

/// The X of Sequence[X]; empty for other types.
std::string_view item_of(std::string_view type) {
  constexpr std::string_view kSequence = "Sequence[";
  if (!type.starts_with(kSequence) || !type.ends_with(']')) return {};
  return bare(type.substr(kSequence.size(), type.size() - kSequence.size() - 1));
}

/// Words for the items of a sequence: "ints or None".
std::string several_of(std::string_view items) {
  std::vector<std::string_view> words;
  for (const std::string_view alternative : split(items, '|')) {
    const std::string_view type = bare(alternative);
    const auto* const known = std::ranges::find(kWords, type, &Words::type);
    words.push_back(known == std::end(kWords) ? type : known->many);
  }
  return fmt::format("{}", fmt::join(words, " or "));
}

std::string one_of(std::string_view type) {
  if (const auto item = item_of(type); !item.empty()) {
    return fmt::format("a sequence of {}", several_of(item));
  }
  for (const Words& words : kWords) {
    if (words.type == type) return std::string(words.one);
  }
  if (type.starts_with("Callable")) return "a function";
  return fmt::format("a {}", type);
}

/// Words for alternative types, without repetitions: "a tensor, an int or None".
std::string need(const Texts& types) {
  std::vector<std::string> words;
  for (const std::string_view type : types) {
    std::string word = one_of(bare(type));
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  if (words.empty()) return "something else";
  const std::string last = words.back();
  words.pop_back();
  return words.empty() ? last : fmt::format("{} or {}", fmt::join(words, ", "), last);
}

/// Whether an argument of a type can be accepted. nanobind reports only the type's name.
enum class Fit { no, perhaps, yes };

Fit fit_of_one(std::string_view wanted, std::string_view type) {
  constexpr std::array<std::string_view, 12> kOfPython = {
      "int",  "float", "bool",    "str",   "bytes",    "list",
      "dict", "set",   "complex", "slice", "NoneType", "builtin_function_or_method"};
  wanted = bare(wanted);
  if (wanted.empty() || wanted == "Any" || wanted == "object") return Fit::yes;
  if (wanted == "None") return type == "NoneType" ? Fit::yes : Fit::no;
  if (wanted == bare(type)) return Fit::yes;
  const bool is_int = type == "int" || type == "bool";
  if (wanted == "int" || wanted == "SupportsIndex") {
    if (is_int) return Fit::yes;
  } else if (wanted == "float") {
    if (is_int) return Fit::yes;
  } else if (!item_of(wanted).empty() || wanted.starts_with("tuple")) {
    // The error may be in an item of the sequence.
    if (type == "list" || type == "tuple" || type == "wick.Tensor") return Fit::perhaps;
  }
  const bool is_known = type == "tuple" || type == "object" || type.starts_with("wick.") ||
                        std::ranges::find(kOfPython, type) != kOfPython.end();
  return is_known ? Fit::no : Fit::perhaps;
}

Fit fit(std::string_view wanted, std::string_view type) {
  const Texts alternatives = split(wanted, '|');
  Fit best = alternatives.empty() ? Fit::yes : Fit::no;
  for (const std::string_view one : alternatives) best = std::max(best, fit_of_one(one, type));
  return best;
}

/// Parses "name(self, x: int = 3, *, y: str) -> T".
Signature parse_signature(std::string_view line) {
  Signature signature;
  const size_t open = line.find('(');
  if (open == std::string_view::npos) return signature;
  line.remove_prefix(open + 1);
  bool by_position = true;
  for (const std::string_view part : split(line.substr(0, find_outside(line, ')')), ',')) {
    if (part == "self") {
      signature.is_method = true;
    } else if (part == "/") {
      for (Parameter& before : signature.parameters) before.by_name = false;
    } else if (part == "*") {
      by_position = false;
    } else {
      Parameter p;
      const size_t equals = find_outside(part, '=');
      if (equals != std::string_view::npos) p.otherwise = trimmed(part.substr(equals + 1));
      const std::string_view declared = part.substr(0, equals);
      const size_t colon = find_outside(declared, ':');
      if (colon != std::string_view::npos) p.type = trimmed(declared.substr(colon + 1));
      p.name = trimmed(declared.substr(0, colon));
      p.takes_rest = p.name.starts_with('*');
      p.by_name = !p.takes_rest || p.name.starts_with("**");
      p.by_position = by_position && !p.name.starts_with("**");
      if (p.takes_rest) by_position = false;
      signature.parameters.push_back(p);
    }
  }
  return signature;
}

/// Formats a signature: "(x, dim=-1)".
std::string shown(const Signature& signature) {
  std::vector<std::string> parts;
  bool by_position = true;
  for (const Parameter& p : signature.parameters) {
    if (by_position && !p.by_position && !p.takes_rest) parts.emplace_back("*");
    by_position = p.by_position && !p.takes_rest;
    parts.push_back(p.otherwise.empty() ? std::string(p.name)
                                        : fmt::format("{}={}", p.name, p.otherwise));
  }
  return fmt::format("({})", fmt::join(parts, ", "));
}

/// A call, parsed from nanobind's list.
struct Call {
  std::string_view function;
  std::vector<Signature> signatures;
  std::vector<Argument> arguments;  ///< arguments without self
  std::string_view self;            ///< the type of self; empty: no self
};

std::vector<Argument> parse_arguments(std::string_view text) {
  std::vector<Argument> arguments;
  std::string_view named;
  if (const size_t begin = text.find(kNamedBegin); begin != std::string_view::npos) {
    named = text.substr(begin + kNamedBegin.size());
    if (named.ends_with(kNamedEnd)) named.remove_suffix(kNamedEnd.size());
    text = text.substr(0, begin);
  }
  for (const std::string_view type : split(text, ',')) arguments.push_back({"", type});
  for (const std::string_view pair : split(named, ',')) {
    const size_t colon = pair.find(": ");
    if (colon == std::string_view::npos) continue;
    arguments.push_back({pair.substr(0, colon), pair.substr(colon + 2)});
  }
  return arguments;
}

std::optional<Call> parse(std::string_view text) {
  const size_t list = text.find(kListBegins), types = text.rfind(kTypesBegin);
  if (list == std::string_view::npos || types == std::string_view::npos || types < list) return {};
  Call call;
  call.function = text.substr(0, list);
  std::string_view lines =
      text.substr(list + kListBegins.size(), types - list - kListBegins.size());
  while (!trimmed(lines).empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    if (end > 0) call.signatures.push_back(parse_signature(lines.substr(0, end)));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  if (call.signatures.empty()) return {};
  call.arguments = parse_arguments(text.substr(types + kTypesBegin.size()));
  const bool has_self = !call.arguments.empty() && call.arguments.front().name.empty();
  if (call.signatures.front().is_method && has_self) {
    call.self = call.arguments.front().type;
    call.arguments.erase(call.arguments.begin());
  }
  // Replaces names that users don't know: constructors are named by their classes, setters by their
  // properties, and functions that the Python part of the package calls by its own functions
  // (wick.grad calls _grad).
  if (call.function.starts_with('_') && !call.function.starts_with("__")) {
    call.function.remove_prefix(1);
  }
  if (call.function == "__init__") call.function = bare(call.self);
  if (call.function.empty() && !call.signatures.front().parameters.empty()) {
    call.function = call.signatures.front().parameters.front().name;
  }
  return call;
}

/// The reason why a call doesn't fit one signature. Later kinds are better explanations.
struct Misfit {
  enum Kind { unknown_name, too_many, given_twice, missing, out_of_range, perhaps, type };
  Kind kind = unknown_name;
  Texts names{};  ///< names of the argument; if an int is out of range, of all possible arguments
  size_t at = 0;  ///< index of the parameter, for the last three kinds
  std::string_view needed{}, given{};
  Texts texts{};  ///< names of arguments with text that fit
};

/// The parameter that receives an argument; null if all are taken or none has its name.
const Parameter* parameter_of(const Signature& s, const Argument& argument, size_t position) {
  const Parameter* rest = nullptr;
  for (const Parameter& p : s.parameters) {
    const bool takes = argument.name.empty() ? p.by_position : p.by_name;
    if (!takes) continue;
    if (p.takes_rest) {
      rest = &p;
    } else if (argument.name.empty() ? position-- == 0 : p.name == argument.name) {
      return &p;
    }
  }
  return rest;
}

Misfit misfit(const Signature& s, const std::vector<Argument>& arguments) {
  std::vector<bool> given(s.parameters.size());
  Misfit worst{.kind = Misfit::out_of_range};
  size_t position = 0;
  for (const Argument& argument : arguments) {
    const Parameter* const p = parameter_of(s, argument, position++);
    if (p == nullptr) {
      const auto kind = argument.name.empty() ? Misfit::too_many : Misfit::unknown_name;
      return {.kind = kind, .names = {argument.name}};
    }
    const auto at = static_cast<size_t>(p - s.parameters.data());
    if (given[at] && !p->takes_rest) return {.kind = Misfit::given_twice, .names = {p->name}};
    given[at] = true;
    const Fit fits = fit(p->type, argument.type);
    const Misfit::Kind kind = fits == Fit::no        ? Misfit::type
                              : fits == Fit::perhaps ? Misfit::perhaps
                                                     : Misfit::out_of_range;
    if (kind > worst.kind) {
      worst = {kind, {p->name}, at, p->type, argument.type, {}};
    } else if (kind == Misfit::out_of_range && kind == worst.kind && argument.type == "int") {
      worst.names.push_back(p->name);
      worst.at = at;
    } else if (kind == Misfit::out_of_range && argument.type == "str" &&
               p->type.find("PathLike") == std::string_view::npos) {
      worst.texts.push_back(p->name);
    }
  }
  for (size_t at = 0; at < given.size(); ++at) {
    const Parameter& p = s.parameters[at];
    if (!given[at] && p.otherwise.empty() && !p.takes_rest) {
      return {.kind = Misfit::missing, .names = {p.name}};
    }
  }
  return worst;
}

bool has_parameter(const Signature& s, std::string_view name) {
  return std::ranges::any_of(s.parameters, [&](const Parameter& p) { return p.name == name; });
}
bool is_given(const Call& call, std::string_view name) {
  return std::ranges::any_of(call.arguments, [&](const Argument& a) { return a.name == name; });
}
bool takes(const Call& call, std::string_view name) {
  return std::ranges::any_of(call.signatures,
                             [&](const Signature& s) { return has_parameter(s, name); });
}

/// Drops the signatures with an alias, such as `axis` for `dim`. If the call uses the alias, drops
/// the signatures with the original name instead.
void drop_aliases(Call& call) {
  for (const auto& [name, other] : kAliases) {
    if (!takes(call, other)) continue;
    const bool by_other = is_given(call, other) && !is_given(call, name);
    std::erase_if(call.signatures,
                  [&](const Signature& s) { return has_parameter(s, other) != by_other; });
  }
}

/// The argument that a call gives by both of its names, or nullptr.
const Alias* given_by_both_names(const Call& call) {
  for (const Alias& alias : kAliases) {
    if (is_given(call, alias.name) && is_given(call, alias.other) && takes(call, alias.other)) {
      return &alias;
    }
  }
  return nullptr;
}

struct Plain {
  PyObject* type;
  std::string text;
};

Plain explain(const Call& call) {
  std::vector<Misfit> all;
  std::vector<std::string> forms;
  for (const Signature& s : call.signatures) {
    all.push_back(misfit(s, call.arguments));
    forms.push_back(shown(s));
  }
  const auto is_better = [](const Misfit& a, const Misfit& b) {
    const bool a_binds = a.kind >= Misfit::out_of_range, b_binds = b.kind >= Misfit::out_of_range;
    if (!a_binds || !b_binds) return a.kind > b.kind;
    return a.at != b.at ? a.at > b.at : a.kind < b.kind;
  };
  const Misfit best = *std::ranges::min_element(all, is_better);
  const std::string what_it_takes = forms == std::vector<std::string>{"()"}
                                        ? "takes no arguments"
                                        : fmt::format("takes {}", fmt::join(forms, " or "));
  const auto say = [&](PyObject* type, const std::string& what) {
    return Plain{type, fmt::format("{}: {}", call.function, what)};
  };
  switch (best.kind) {
    case Misfit::unknown_name:
      return say(PyExc_TypeError,
                 fmt::format("no argument is named '{}': {}", best.names[0], what_it_takes));
    case Misfit::too_many:
      return say(PyExc_TypeError, fmt::format("too many arguments: {}", what_it_takes));
    case Misfit::given_twice:
      return say(PyExc_TypeError,
                 fmt::format("argument '{}' is given twice: {}", best.names[0], what_it_takes));
    case Misfit::missing:
      return say(PyExc_TypeError,
                 fmt::format("argument '{}' is missing: {}", best.names[0], what_it_takes));
    default:
      break;
  }
  if (best.names.empty() && !best.texts.empty()) {
    return say(PyExc_ValueError,
               fmt::format("{}: text with a surrogate: need text that UTF-8 can encode",
                           fmt::join(best.texts, " or ")));
  }
  if (best.names.empty()) {
    return say(PyExc_TypeError, fmt::format("arguments don't fit: {}", what_it_takes));
  }
  if (best.kind == Misfit::out_of_range) {
    return say(PyExc_OverflowError,
               fmt::format("{}: an int out of range", fmt::join(best.names, " or ")));
  }
  // Collects what other signatures that fit equally far need at the same position.
  Texts names, types;
  for (const Misfit& other : all) {
    if (other.kind < Misfit::perhaps || other.at != best.at) continue;
    if (std::ranges::find(names, other.names[0]) == names.end()) names.push_back(other.names[0]);
    for (const std::string_view type : split(other.needed, '|')) types.push_back(type);
  }
  std::string where = fmt::format("{}: ", fmt::join(names, " or "));
  if (names == Texts{call.function}) where.clear();  // the function is a setter
  const std::string_view given = best.given.substr(best.given.rfind('.') + 1);
  return say(PyExc_TypeError, fmt::format("{}need {}: not '{}'", where, need(types), given));
}

std::optional<Plain> plain_error(const char* text) {
  if (text == nullptr || std::string_view(text).find(kListBegins) == std::string_view::npos)
    return {};
  std::optional<Call> call = parse(text);
  if (!call || call->function.empty()) return {};
  const bool is_method = call->signatures.front().is_method;
  if (is_method && call->self.empty()) {
    return Plain{PyExc_TypeError, fmt::format("{}: self is missing", call->function)};
  }
  if (is_method && fit_of_one("wick.Tensor", call->self) == Fit::no &&
      !call->self.starts_with("wick.")) {
    const bool of_tensor =
        PyObject_HasAttrString(nb::type<Tensor>().ptr(), std::string(call->function).c_str()) == 1;
    return Plain{PyExc_TypeError,
                 fmt::format("{}: need {} first: not '{}'", call->function,
                             of_tensor ? "a tensor" : "an object of its class", call->self)};
  }
  if (const Alias* const alias = given_by_both_names(*call)) {
    return Plain{PyExc_TypeError,
                 fmt::format("{}: {} and {} are two names of one argument: give one of them",
                             call->function, alias->name, alias->other)};
  }
  drop_aliases(*call);
  return explain(*call);
}

}  // namespace
}  // namespace wick::python

// Names that the linker's --wrap gives to the original function and to its replacement.
extern "C" {
void __real_PyErr_SetString(PyObject* type, const char* text);

void __wrap_PyErr_SetString(PyObject* type, const char* text) {
  try {
    if (const auto plain = wick::python::plain_error(text)) {
      __real_PyErr_SetString(plain->type, plain->text.c_str());
      return;
    }
  } catch (const std::exception&) {  // out of memory: keeps the list
  }
  __real_PyErr_SetString(type, text);
}
}
