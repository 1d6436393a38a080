#include "wick/models/causal_lm.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/llama.h"

namespace wick::models {

CausalLm::~CausalLm() = default;

std::unique_ptr<CausalLm> CausalLm::load(const io::Gguf& file, const LoadOptions& options) {
  const std::string_view architecture = file.get_string("general.architecture");
  if (architecture == "llama") {
    try {
      auto model = std::make_unique<Llama>(file, options);
      file.require_unchanged("load");
      return model;
    } catch (const Error&) {
      file.require_unchanged("load");  // says more than what a changed file happens to contain
      throw;
    }
  }
  throw Error(ErrorKind::not_implemented, file.path(), "unknown architecture",
              fmt::format("'{}'", printable(architecture)), "this version runs: llama");
}

}  // namespace wick::models
