#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/jinja/values/value.h"
#include "wick/text/marked/marked_string.h"

namespace wick::text::jinja {

struct Syntax;

/// A parsed Jinja template. It renders as jinja2 does in the environment that Hugging Face
/// Transformers uses for chat templates: the immutable sandbox with trim_blocks, lstrip_blocks,
/// loop controls, raise_exception, strftime_now and its own tojson. Copies share the template, and
/// several threads may render it.
///
/// Deviations from jinja2, each an error that says so: integers have 64 bits; templates can't
/// include, import or extend others, or define blocks; filters that need HTML, a random source or
/// Python's pprint don't exist.
class WICK_API Template {
 public:
  /// Errors: syntax that jinja2 refuses, or that wick lacks; ill-formed UTF-8; a limit of limits.h.
  explicit Template(std::string_view source);

  /// Renders the template. `now`: the time that strftime_now() shows, in the local time zone. In
  /// the result, text that derives from Value::content() is marked as content. Errors: what Python
  /// raises; raise_exception(); a limit of limits.h. They name the line and the tag.
  MarkedString render(const std::vector<std::pair<std::string, Value>>& variables,
                      std::time_t now) const;

 private:
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace wick::text::jinja
