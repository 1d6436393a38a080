// wick.Model and wick.Tokenizer: thin wrappers of wick/serve.
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/chat.h"
#include "python/bindings/generation.h"
#include "python/bindings/python.h"
#include "python/bindings/text_stream.h"
#include "wick/base/block_pages.h"
#include "wick/base/error.h"
#include "wick/serve/embed.h"
#include "wick/serve/engine.h"
#include "wick/text/chat.h"

namespace wick::python {
namespace {

using namespace nb::literals;

#define WICK_SCALES ", adapter_scales: collections.abc.Sequence[float] = ()"
constexpr const char* kNeedMessages = "messages: need a conversation";

/// A loaded model.
struct Model {
  std::shared_ptr<const serve::Engine> engine;
  DType cache_dtype = DType::f16;
};

std::shared_ptr<PySession> make_session(const Model& model, int64_t context,
                                        std::vector<float> scales) {
  serve::SessionOptions options;
  options.context = context;
  options.cache_dtype = model.cache_dtype;
  options.adapter_scales = std::move(scales);
  const ReleasedGil released;
  return std::make_shared<PySession>(model.engine, options);
}

/// The positions that a prompt and its continuation need, at most the trained context.
int64_t context_for(const Model& model, size_t prompt, int64_t max_tokens) {
  const int64_t trained = model.engine->model().context_length();
  if (max_tokens < 0 || max_tokens > trained) return trained;
  return std::min<int64_t>(trained, static_cast<int64_t>(prompt) + max_tokens + 1);
}

/// A session for a prompt, the prompt's tokens, and the options of the generation.
struct Start {
  std::shared_ptr<PySession> session;
  std::vector<int32_t> tokens;
  serve::GenerateOptions options;
};

Start begin(const char* function, const Model& model, nb::handle prompt, const nb::kwargs& named) {
  int64_t context = 0;
  std::vector<float> scales;
  serve::GenerateOptions options = read_options(function, named, &context, &scales);
  const int64_t most = context > 0 ? context : model.engine->model().context_length();
  std::vector<int32_t> tokens =
      model.engine->prompt_or_start(prompt_tokens(*model.engine, prompt, most));
  if (context == 0) context = context_for(model, tokens.size(), options.max_tokens);
  return {make_session(model, context, std::move(scales)), std::move(tokens), std::move(options)};
}

nb::object model_generate(const Model& model, nb::handle prompt, const nb::kwargs& named) {
  const auto [session, tokens, options] = begin("generate", model, prompt, named);
  return to_text(generate_now(*session, tokens, options));
}

std::unique_ptr<TextStream> model_stream(const Model& model, nb::handle prompt,
                                         const nb::kwargs& named) {
  auto [session, tokens, options] = begin("stream", model, prompt, named);
  return std::make_unique<TextStream>(session, std::move(tokens), std::move(options));
}

/// Warns of what a vocabulary's file doesn't tell.
void warn_of_vocabulary(const text::Tokenizer& tokenizer) {
  const std::string& warning = tokenizer.warning();
  if (!warning.empty() && PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 1) != 0) {
    throw nb::python_error();
  }
}

/// A number of layers, or one of the words "auto" and "all".
int64_t layers_of(const char* name, nb::handle given) {
  if (nb::isinstance<nb::str>(given)) {
    return models::parse_layers(fmt::format("load: {}", name),
                                utf8_of(given, fmt::format("load: {}", name)));
  }
  if (PyBool_Check(given.ptr()) || !PyLong_Check(given.ptr())) {
    throw nb::type_error(fmt::format("load: {}: need an int, 'auto' or 'all'", name).c_str());
  }
  int64_t count = 0;
  if (!nb::try_cast(given, count) || count < 0) {
    throw Error("load", fmt::format("{} is out of range", name),
                nb::cast<std::string>(nb::str(given)), "need at least 0, 'auto' or 'all'");
  }
  return count;
}

/// Errors: not a dtype of caches.
DType cache_dtype_of(const std::string& text) {
  const std::optional<DType> dtype = parse_dtype(text);
  if (dtype && dtypes::kCaches.contains(*dtype)) return *dtype;
  throw Error("load", "cache_type: not a cache type", fmt::format("'{}'", text),
              fmt::format("use {}", names(dtypes::kCaches)));
}

Model load_model(nb::handle path, DeviceArg device, nb::object progress, nb::handle adapters,
                 nb::handle gpu_layers, nb::handle cpu_experts, nb::handle more_devices,
                 int64_t context, const std::string& cache_type) {
  const std::string name = path_text(path, "load");
  const DType cache_dtype = cache_dtype_of(cache_type);
  models::LoadOptions options;
  const char* const what = "adapters: need a sequence of paths";
  for (const nb::object& adapter : items_of(adapters, "load", what)) {
    options.adapters.push_back(path_text(adapter, "load"));
  }
  options.device = device.get();
  options.split.gpu_layers = layers_of("gpu_layers", gpu_layers);
  options.split.cpu_experts = layers_of("cpu_experts", cpu_experts);
  options.split.context = context;
  options.split.cache_dtype = cache_dtype;
  std::vector<Device> devices = {options.device};
  for (const nb::object& more :
       items_of(more_devices, "load", "more_devices: need a sequence of devices")) {
    devices.push_back(DeviceArg{more}.get());
  }
  options.split.more_devices.assign(devices.begin() + 1, devices.end());
  if (options.split.gpu_layers != 0) warn_of_libraries(devices);
  // Also checks for Ctrl-C; loading ends with the exception that Python raised.
  options.progress = [&](int64_t done, int64_t all) {
    const HeldGil held;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!progress.is_none()) progress(done, all);
  };
  std::shared_ptr<const serve::Engine> engine;
  {
    const ReleasedGil released;
    engine = serve::Engine::load(name, options);
  }
  warn_of_vocabulary(engine->tokenizer());
  return {std::move(engine), cache_dtype};
}

/// The logits of every token, or of the last one.
Tensor model_logits(const Model& model, IdsArg ids, bool last) {
  const std::vector<int32_t> tokens = ids.get("logits");
  const ReleasedGil released;
  const models::CausalLm& lm = model.engine->model();
  if (tokens.empty()) throw Error("logits", "no tokens");
  nn::KvCache cache = lm.make_cache(static_cast<int64_t>(tokens.size()), model.cache_dtype);
  return lm.forward(tokens, cache, last ? models::Logits::last : models::Logits::all);
}

void bind_tokenizer(nb::module_& m) {
  nb::class_<text::Tokenizer>(m, "Tokenizer", "Text to token ids and back.")
      .def_static(
          "from_file",
          [](nb::handle path) {
            const std::string name = path_text(path, "from_file");
            std::optional<text::Tokenizer> tokenizer;
            {
              const ReleasedGil released;
              tokenizer.emplace(serve::open_tokenizer(name));
            }
            warn_of_vocabulary(*tokenizer);
            return *std::move(tokenizer);
          },
          "path"_a, "Reads a tokenizer.json, or the vocabulary of a GGUF file.")
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

Tensor model_embed(const Model& model, nb::handle given, int64_t size, bool normalize) {
  std::vector<std::string> texts;
  if (nb::isinstance<nb::str>(given)) {
    texts.push_back(utf8_of(given, "embed: texts"));
  } else {
    const char* const what = "texts: need a str or a sequence of them";
    for (const nb::object& item : items_of(given, "embed", what)) {
      texts.push_back(utf8_of(item, fmt::format("embed: texts[{}]", texts.size())));
    }
  }
  bool stopped = false;
  Tensor rows;
  {
    const ReleasedGil released;
    rows =
        serve::embed(*model.engine, texts, {.size = size, .normalize = normalize, .cancelled = [&] {
                                              stopped = interrupted();
                                              return stopped;
                                            }});
  }
  if (stopped) throw nb::python_error();
  return rows;
}

/// The options that the file recommends, by the names of generate()'s arguments.
nb::dict model_sampling(const Model& model) {
  const serve::SamplingDefaults& defaults = model.engine->sampling();
  nb::dict options;
  serve::for_each_recommended([&](const char* name, auto member, const char*) {
    if (!defaults.recommends(name)) return;
    const auto& value = defaults.options.*member;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::vector<SamplerStep>>) {
      nb::list steps;
      for (const SamplerStep step : value) steps.append(std::string(sampler_step_name(step)));
      options[name] = steps;
    } else {
      options[name] = value;
    }
  });
  return options;
}

}  // namespace

void bind_models(nb::module_& m) {
  bind_tokenizer(m);
  bind_text_stream(m);
  bind_session(m);
  nb::class_<Model>(m, "Model", "A language model with its tokenizer, from a GGUF file.")
      .def_static(
          "load", &load_model, "path"_a, "device"_a = "cpu", "progress"_a = nb::none(),
          "adapters"_a = nb::make_tuple(), "gpu_layers"_a = "all", "cpu_experts"_a = 0,
          "more_devices"_a = nb::make_tuple(), "context"_a = 0, "cache_type"_a = "f16",
          nb::sig(
              "def load(path: str | os.PathLike[str], device: Device | str = 'cpu', "
              "progress: collections.abc.Callable[[int, int], object] | None = None, adapters: "
              "collections.abc.Sequence[str | os.PathLike[str]] = (), gpu_layers: int | str = "
              "'all', cpu_experts: int | str = 0, more_devices: "
              "collections.abc.Sequence[Device | str] = (), context: int = 0, cache_type: str = "
              "'f16') -> Model"),
          "Loads a GGUF file, a Hugging Face folder, or a model in wick/models of the user's cache "
          "by its"
          " name; device \"auto\" selects the best device. progress: called with the"
          " number of layers loaded so far and of all layers. adapters: LoRA adapters beside"
          " the weights, as GGUF files or PEFT folders. gpu_layers: the number of layers on the "
          "GPU,"
          " from the last one on; the others are on the CPU. cpu_experts: the number of layers, "
          "from"
          " the first one on, whose experts are on the CPU. 'auto': as many layers, or as few"
          " layers' experts, as needed to fit the GPU's memory with a cache of `context` tokens; 0:"
          " the trained context. more_devices: further GPUs that share the layers. cache_type: the"
          " type of keys and values in the caches of sessions: f16, bf16, f32, q8_0 or q4_0.\n"
          "Errors: any error in the files, by name.")
      .def("generate", &model_generate, "prompt"_a, "options"_a,
           nb::sig("def generate(self, prompt: " WICK_PROMPT
                   ", *, context: int = 0, " WICK_SAMPLING WICK_SCALES ") -> str"),
           "Continues a text, token ids, or a conversation: [{'role': 'user', 'content': …}]. "
           "temperature 0 always chooses the most likely token. max_tokens < 0: no limit. The "
           "same seed gives the same text.")
      .def("stream", &model_stream, "prompt"_a, "options"_a,
           nb::sig("def stream(self, prompt: " WICK_PROMPT
                   ", *, context: int = 0, " WICK_SAMPLING WICK_SCALES ") -> TextStream"),
           "Like generate, but returns an iterator over pieces of text as they are generated.")
      .def(
          "session",
          [](const Model& model, int64_t context, std::vector<float> scales) {
            return make_session(model, context, std::move(scales));
          },
          "context"_a = 0, "adapter_scales"_a = std::vector<float>(),
          nb::sig("def session(self, context: int = 0, adapter_scales: "
                  "collections.abc.Sequence[float] = ()) -> Session"),
          "Starts a conversation of at most `context` tokens; 0: the model's trained context. "
          "adapter_scales: those of the model's adapters; missing ones are 1.")
      .def(
          "render_chat",
          [](const Model& model, nb::handle messages, const nb::kwargs& named) {
            const auto list = messages_of(items_of(messages, "render_chat", kNeedMessages));
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
            const auto list = messages_of(items_of(messages, "encode_chat", kNeedMessages));
            return model.engine->encode_chat(list, chat_options_of(named));
          },
          "messages"_a, "variables"_a,
          nb::sig("def encode_chat(self, messages: " WICK_CONVERSATION
                  ", *, add_generation_prompt: bool = True, **variables: object) -> list[int]"),
          "Encodes a conversation to token ids, as render_chat renders it. Control tokens that the "
          "messages or variables spell stay text.")
      .def("logits", &model_logits, "tokens"_a, "last"_a = false,
           "The logits after each token, or only after the last: float32 [n, vocabulary].")
      .def("embed", &model_embed, "texts"_a, "size"_a = 0, "normalize"_a = true,
           nb::sig("def embed(self, texts: str | collections.abc.Sequence[str], size: int = 0, "
                   "normalize: bool = True) -> Tensor"),
           "The embeddings of texts, float32 [n, size], pooled as the file says. size: keeps the "
           "first elements (Matryoshka models); 0: all. normalize: scales them to the norm 1.")
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
      .def_prop_ro(
          "sampling", &model_sampling, nb::sig("def sampling(self) -> dict[str, typing.Any]"),
          "The options of sampling that the file recommends, for generate(**model.sampling); "
          "they aren't used by default.")
      .def_prop_ro("tokenizer", [](const Model& model) { return model.engine->tokenizer(); })
      .def_prop_ro("device", [](const Model& model) { return model.engine->model().device(); })
      .def_prop_ro(
          "placement", [](const Model& model) { return model.engine->model().placement(); },
          "Where the layers are, in one line: 'cuda:0: 24 of 32 layers, 5.1 GiB; cpu: 8 layers, "
          "...'.")
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
