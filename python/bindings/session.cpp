// wick.Session: a thin wrapper of serve::Session.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "python/bindings/arguments.h"
#include "python/bindings/generation.h"
#include "python/bindings/python.h"
#include "wick/base/error.h"

namespace wick::python {
namespace {

using namespace nb::literals;

Tensor session_logits(PySession& session) {
  const ReleasedGil released;
  const PySession::Use use = session.use();
  const std::span<const float> logits = session.session.logits();
  return Tensor::from(logits, {static_cast<int64_t>(logits.size())});
}

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<PySession>(m, "Session",
                        "One conversation with a model, whose tokens are kept in a cache.")
      .def_prop_ro(
          "context", [](const PySession& s) { return s.session.context(); },
          "The maximum number of tokens.")
      .def_prop_ro(
          "tokens",
          [](PySession& s) {
            const PySession::Use use = s.use();
            return s.session.tokens();
          },
          "The ids fed and generated so far.")
      .def("__len__",
           [](PySession& s) {
             const PySession::Use use = s.use();
             return s.session.length();
           })
      .def(
          "feed",
          [](PySession& s, nb::handle prompt) {
            const std::vector<int32_t> tokens =
                prompt_tokens(*s.engine, prompt, s.session.context());
            bool done = false;
            {
              const ReleasedGil released;
              const PySession::Use use = s.use();
              done = s.session.feed(tokens, interrupted);
            }
            if (!done) throw nb::python_error();
          },
          "prompt"_a, nb::sig("def feed(self, prompt: " WICK_PROMPT ") -> None"),
          "Feeds a text, token ids or a conversation to the model.")
      .def(
          "generate",
          [](PySession& s, const nb::kwargs& named) {
            return to_text(generate_now(s, {}, read_options("generate", named, nullptr)));
          },
          nb::sig("def generate(self, *, " WICK_SAMPLING ") -> str"),
          "Generates text after the tokens fed so far.")
      .def(
          "stream",
          [](std::shared_ptr<PySession> s, const nb::kwargs& named) {
            return std::make_unique<TextStream>(s, std::vector<int32_t>(),
                                                read_options("stream", named, nullptr));
          },
          nb::sig("def stream(self, *, " WICK_SAMPLING ") -> TextStream"),
          "Like generate, but returns an iterator over pieces of text.")
      .def("logits", &session_logits, "The logits of the next token, float32 [vocabulary].")
      .def(
          "truncate",
          [](PySession& s, int64_t length) {
            const PySession::Use use = s.use();
            const int64_t most = s.session.length();
            if (length < 0 || length > most) {
              throw Error(ErrorKind::index, "truncate", "length out of range",
                          fmt::format("{}", length),
                          fmt::format("the session has {} tokens", most));
            }
            s.session.truncate(length);
          },
          "length"_a,
          "Drops all tokens from `length` on. Raises IndexError unless 0 <= length <= the number "
          "of "
          "tokens fed so far.")
      .def(
          "save",
          [](PySession& s, nb::handle path, const std::string& text) {
            const std::string name = path_text(path, "save");
            const ReleasedGil released;
            const PySession::Use use = s.use();
            s.session.save(name, text);
          },
          "path"_a, "text"_a = "",
          nb::sig("def save(self, path: str | os.PathLike[str], text: str = '') -> None"),
          "Saves the tokens, the cache, the sampler and a text to a file.")
      .def(
          "load",
          [](PySession& s, nb::handle path) {
            const std::string name = path_text(path, "load");
            std::string text;
            {
              const ReleasedGil released;
              const PySession::Use use = s.use();
              text = s.session.load(name);
            }
            return to_text(text);
          },
          "path"_a, nb::sig("def load(self, path: str | os.PathLike[str]) -> str"),
          "Replaces the session by a saved one, of the same model on any device, and returns the "
          "text that was saved with it. generate(resume=True) goes on with its draws.\nErrors: the "
          "file is damaged or doesn't fit; the session is unchanged then.");
}

}  // namespace wick::python
