#include "wick/text/jinja/template.h"

#include "wick/text/jinja/evaluator.h"
#include "wick/text/jinja/parse/syntax.h"

namespace wick::text::jinja {

Template::Template(std::string_view source)
    : syntax_(std::make_shared<const Syntax>(parse(source))) {}

MarkedString Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                              std::time_t now) const {
  Run run(syntax_->source, now);
  return Evaluator(*syntax_, run, variables).render();
}

}  // namespace wick::text::jinja
