// wick.Model, wick.Tokenizer and wick.Session: thin wrappers of wick/serve.
#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/chat.h"
#include "python/bindings/python.h"
#include "python/bindings/text_stream.h"
#include "wick/base/error.h"
#include "wick/serve/engine.h"
#include "wick/text/chat.h"

namespace wick::python {
namespace {

using namespace nb::literals;

// The options of generate and stream; those of Model also have `context`.
#define WICK_SAMPLING                                                                              \
  "max_tokens: int = 256, temperature: float = 0.8, top_k: int = 40, top_p: float = 0.95, min_p: " \
  "float = 0.05, repetition_penalty: float = 1.0, presence_penalty: float = 0.0, "                 \
  "frequency_penalty: float = 0.0, seed: int = 0, ignore_end: bool = False"
#define WICK_CONVERSATION "collections.abc.Sequence[collections.abc.Mapping[str, object]]"
#define WICK_PROMPT "str | collections.abc.Sequence[int] | " WICK_CONVERSATION

/// A loaded model.
struct Model {
  std::shared_ptr<const serve::Engine> engine;
};

nb::object to_text(std::string_view bytes) {
  return nb::steal(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

bool interrupted() {
  const HeldGil held;
  return PyErr_CheckSignals() != 0;
}

/// Reads the options in WICK_SAMPLING, and `context` if it isn't null.
serve::GenerateOptions read_options(const char* function, const nb::kwargs& named,
                                    int64_t* context) {
  serve::GenerateOptions options;
  options.max_tokens = 256;
  for (const auto& [key, value] : named) {
    const auto name = nb::cast<std::string>(key);
    const auto read = [&, v = nb::handle(value)](auto& into) {
      using T = std::decay_t<decltype(into)>;
      if (!nb::try_cast(v, into)) {
        throw nb::type_error(
            fmt::format("{}: {} can't be {}", function, name, nb::cast<std::string>(nb::repr(v)))
                .c_str());
      }
      static_assert(!std::is_pointer_v<T>);
    };
    text::SamplerOptions& s = options.sampler;
    if (name == "max_tokens") {
      read(options.max_tokens);
    } else if (name == "temperature") {
      read(s.temperature);
    } else if (name == "top_k") {
      read(s.top_k);
    } else if (name == "top_p") {
      read(s.top_p);
    } else if (name == "min_p") {
      read(s.min_p);
    } else if (name == "repetition_penalty") {
      read(s.repetition_penalty);
    } else if (name == "presence_penalty") {
      read(s.presence_penalty);
    } else if (name == "frequency_penalty") {
      read(s.frequency_penalty);
    } else if (name == "seed") {
      read(s.seed);
    } else if (name == "ignore_end") {
      read(options.ignore_end);
    } else if (name == "context" && context != nullptr) {
      read(*context);
    } else {
      throw nb::type_error(
          fmt::format("{}() got an unexpected keyword argument '{}'", function, name).c_str());
    }
  }
  return options;
}

/// Converts an object to a token id. Errors: it isn't an int; it exceeds 32 bits.
int32_t token_id(nb::handle item) {
  const int64_t id = to_int(item, "prompt");
  if (id == static_cast<int32_t>(id)) return static_cast<int32_t>(id);
  throw Error(ErrorKind::index, "prompt", "token id out of range", fmt::format("{}", id));
}

/// Converts text, token ids or a conversation to token ids.
std::vector<int32_t> prompt_tokens(const serve::Engine& engine, nb::handle prompt) {
  if (nb::isinstance<nb::str>(prompt)) {
    const auto text = nb::cast<std::string>(prompt);
    return engine.tokenizer().encode(text);
  }
  if (PySequence_Check(prompt.ptr()) == 0 || PyBytes_Check(prompt.ptr())) {
    throw nb::type_error("a prompt is text, a sequence of token ids, or a conversation");
  }
  const std::vector<nb::object> items = items_of(prompt);
  if (items.empty() || is_int(items.front())) {
    std::vector<int32_t> ids;
    for (const nb::object& item : items) ids.push_back(token_id(item));
    return ids;
  }
  return engine.encode_chat(messages_of(items));
}

/// Runs feed and generate on this thread without the GIL; Ctrl-C ends it.
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

std::shared_ptr<PySession> make_session(const Model& model, int64_t context) {
  serve::SessionOptions options;
  options.context = context;
  const ReleasedGil released;
  return std::make_shared<PySession>(model.engine, options);
}

/// The positions that a prompt and its continuation need, at most the trained context.
int64_t context_for(const Model& model, size_t prompt, int64_t max_tokens) {
  const int64_t trained = model.engine->model().context_length();
  if (max_tokens < 0 || max_tokens > trained) return trained;
  return std::min<int64_t>(trained, static_cast<int64_t>(prompt) + max_tokens + 1);
}

std::pair<std::shared_ptr<PySession>, serve::GenerateOptions> begin(const char* function,
                                                                    const Model& model,
                                                                    const nb::kwargs& named,
                                                                    std::vector<int32_t>& tokens) {
  int64_t context = 0;
  serve::GenerateOptions options = read_options(function, named, &context);
  tokens = model.engine->prompt_or_start(std::move(tokens));
  if (context == 0) context = context_for(model, tokens.size(), options.max_tokens);
  return {make_session(model, context), std::move(options)};
}

nb::object model_generate(const Model& model, nb::handle prompt, const nb::kwargs& named) {
  std::vector<int32_t> tokens = prompt_tokens(*model.engine, prompt);
  auto [session, options] = begin("generate", model, named, tokens);
  return to_text(generate_now(*session, tokens, options));
}

std::unique_ptr<TextStream> model_stream(const Model& model, nb::handle prompt,
                                         const nb::kwargs& named) {
  std::vector<int32_t> tokens = prompt_tokens(*model.engine, prompt);
  auto [session, options] = begin("stream", model, named, tokens);
  return std::make_unique<TextStream>(session, std::move(tokens), std::move(options));
}

Model load_model(nb::handle path, DeviceArg device, nb::object progress) {
  const std::string name = path_text(path, "load");
  models::LoadOptions options;
  options.device = device.get();
  warn_of_libraries(options.device);
  // Also checks for Ctrl-C; loading ends with the exception that Python raised.
  options.progress = [&](int64_t done, int64_t all) {
    const HeldGil held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(done, all);
  };
  const ReleasedGil released;
  return {serve::Engine::load(name, options)};
}

Tensor session_logits(PySession& session) {
  const ReleasedGil released;
  const PySession::Use use = session.use();
  const std::span<const float> logits = session.session.logits();
  return Tensor::from(logits, {static_cast<int64_t>(logits.size())});
}

/// The logits of every token, or of the last one.
Tensor model_logits(const Model& model, IdsArg ids, bool last) {
  const std::vector<int32_t> tokens = ids.get("logits");
  const ReleasedGil released;
  const models::CausalLm& lm = model.engine->model();
  if (tokens.empty()) throw Error("logits", "no tokens");
  nn::KvCache cache = lm.make_cache(static_cast<int64_t>(tokens.size()), DType::f16);
  return lm.forward(tokens, cache, last ? models::Logits::last : models::Logits::all);
}

void bind_tokenizer(nb::module_& m) {
  nb::class_<text::Tokenizer>(m, "Tokenizer", "Text to token ids and back.")
      .def(
          "encode",
          [](const text::Tokenizer& t, const std::string& text, std::optional<bool> add_bos,
             std::optional<bool> add_eos, bool parse_special) {
            const ReleasedGil released;
            return t.encode(text, {add_bos, add_eos, parse_special});
          },
          "text"_a, "add_bos"_a = nb::none(), "add_eos"_a = nb::none(), "parse_special"_a = true,
          "Encodes a text to token ids. add_bos, add_eos: the vocabulary's defaults if None. "
          "parse_special: control tokens in the text become control tokens, not plain text.")
      .def(
          "decode",
          [](const text::Tokenizer& t, IdsArg ids, bool skip_special) {
            return to_text(t.decode(ids.get("decode"), skip_special));
          },
          "ids"_a, "skip_special"_a = false,
          nb::sig(
              "def decode(self, ids: collections.abc.Sequence[int], skip_special: bool = False) "
              "-> str"),
          "Decodes ids to text; bytes that aren't UTF-8 become U+FFFD.")
      .def(
          "decode_bytes",
          [](const text::Tokenizer& t, IdsArg ids, bool skip_special) {
            const std::string bytes = t.decode(ids.get("decode_bytes"), skip_special);
            return nb::bytes(bytes.data(), bytes.size());
          },
          "ids"_a, "skip_special"_a = false, "Decodes ids to bytes.")
      .def("token_id", &text::Tokenizer::token_id, "text"_a,
           "The id of the token with this text, or None.")
      .def("is_end_of_generation", &text::Tokenizer::is_end_of_generation, "id"_a,
           "Whether the token ends a model's answer.")
      .def_prop_ro("vocab_size", &text::Tokenizer::vocab_size)
      .def_prop_ro("bos", &text::Tokenizer::bos)
      .def_prop_ro("eos", &text::Tokenizer::eos)
      .def("__len__", &text::Tokenizer::vocab_size);
}

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
            const std::vector<int32_t> tokens = prompt_tokens(*s.engine, prompt);
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
            s.session.truncate(length);
          },
          "length"_a, "Drops all tokens from `length` on.");
}

}  // namespace

void bind_models(nb::module_& m) {
  bind_tokenizer(m);
  bind_text_stream(m);
  bind_session(m);
  nb::class_<Model>(m, "Model", "A language model with its tokenizer, from a GGUF file.")
      .def_static(
          "load", &load_model, "path"_a, "device"_a = "cpu", "progress"_a = nb::none(),
          nb::sig("def load(path: str | os.PathLike[str], device: Device | str = 'cpu', "
                  "progress: collections.abc.Callable[[int, int], object] | None = None) -> "
                  "Model"),
          "Loads a GGUF file; device \"auto\" selects the best device. progress: called with the"
          " number of layers loaded so far and of all layers.\nErrors: any error in the file, by"
          " name.")
      .def("generate", &model_generate, "prompt"_a, "options"_a,
           nb::sig("def generate(self, prompt: " WICK_PROMPT ", *, context: int = 0, " WICK_SAMPLING
                   ") -> str"),
           "Continues a text, token ids, or a conversation: [{'role': 'user', 'content': …}]. "
           "temperature 0 always chooses the most likely token. max_tokens < 0: no limit. The "
           "same seed gives the same text.")
      .def("stream", &model_stream, "prompt"_a, "options"_a,
           nb::sig("def stream(self, prompt: " WICK_PROMPT ", *, context: int = 0, " WICK_SAMPLING
                   ") -> TextStream"),
           "Like generate, but returns an iterator over pieces of text as they are generated.")
      .def(
          "session",
          [](const Model& model, int64_t context) { return make_session(model, context); },
          "context"_a = 0,
          "Starts a conversation of at most `context` tokens; 0: the model's trained context.")
      .def(
          "render_chat",
          [](const Model& model, nb::handle messages, const nb::kwargs& named) {
            const auto list = messages_of(items_of(messages));
            return to_text(model.engine->chat().render(list, chat_options_of(named)).bytes);
          },
          "messages"_a, "variables"_a,
          nb::sig("def render_chat(self, messages: " WICK_CONVERSATION
                  ", *, add_generation_prompt: bool = True, **variables: object) -> str"),
          "Renders a conversation by the file's chat template. add_generation_prompt: whether the "
          "text ends with the start of an answer. variables: tools, documents and other variables "
          "of the template, made of dicts, lists, strings, numbers, bools and None.\nErrors: the "
          "template is malformed, or refuses the conversation.")
      .def(
          "encode_chat",
          [](const Model& model, nb::handle messages, const nb::kwargs& named) {
            const auto list = messages_of(items_of(messages));
            return model.engine->encode_chat(list, chat_options_of(named));
          },
          "messages"_a, "variables"_a,
          nb::sig("def encode_chat(self, messages: " WICK_CONVERSATION
                  ", *, add_generation_prompt: bool = True, **variables: object) -> list[int]"),
          "Encodes a conversation to token ids, as render_chat renders it. Control tokens that the "
          "messages or variables spell stay text.")
      .def("logits", &model_logits, "tokens"_a, "last"_a = false,
           "The logits after each token, or only after the last: float32 [n, vocabulary].")
      .def(
          "encode",
          [](const Model& model, nb::handle prompt) {
            return prompt_tokens(*model.engine, prompt);
          },
          "prompt"_a, nb::sig("def encode(self, prompt: " WICK_PROMPT ") -> list[int]"),
          "Encodes a text or a conversation to token ids.")
      .def(
          "decode",
          [](const Model& model, IdsArg ids) {
            return to_text(model.engine->tokenizer().decode(ids.get("decode")));
          },
          "ids"_a, nb::sig("def decode(self, ids: collections.abc.Sequence[int]) -> str"),
          "Decodes token ids to text.")
      .def_prop_ro("tokenizer", [](const Model& model) { return model.engine->tokenizer(); })
      .def_prop_ro("device", [](const Model& model) { return model.engine->model().device(); })
      .def_prop_ro("path", [](const Model& model) { return model.engine->path(); })
      .def_prop_ro("vocab_size",
                   [](const Model& model) { return model.engine->model().vocab_size(); })
      .def_prop_ro(
          "context_length",
          [](const Model& model) { return model.engine->model().context_length(); },
          "The number of positions that the model was trained for.")
      .def_prop_ro("parameters",
                   [](const Model& model) { return model.engine->model().parameters(); })
      .def("__repr__", [](const Model& model) {
        return fmt::format("<wick.Model {}: {} parameters on {}>", model.engine->path(),
                           model.engine->model().parameters(),
                           model.engine->model().device().str());
      });
}

}  // namespace wick::python
