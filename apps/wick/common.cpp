#include "common.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "wick/backend/backend.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/backend/devices.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/open_model.h"

namespace wick::cli {
namespace {

/// Checks environment variables and warns about those that have no effect.
void check_variables(bool uses_device) {
  check_environment();
  cpu::isa();  // WICK_CPU_ISA
  for (const UnknownVariable& variable : unknown_environment_variables()) {
    const std::string hint =
        variable.nearest.empty() ? "" : fmt::format(": did you mean {}?", variable.nearest);
    warn(fmt::format("{}: unknown environment variable{}", printable(variable.name), hint));
  }
  if (!uses_device && !environment("WICK_TRACE").empty()) warn_untraced();
}

}  // namespace

void warn_untraced() {
  warn("WICK_TRACE: nothing is traced: traces show work on GPUs, and no GPU is used");
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& summary,
                      const std::string& teaching, Run run) {
  CLI::App* command = app.add_subcommand(name, summary);
  command->footer(teaching);
  // The callback runs after all options were parsed, so an unknown option is an error before any
  // work.
  command->callback([command, run = std::move(run)] {
    check_variables(command->get_option_no_throw("--device") != nullptr);
    const int code = run();
    if (code != kOk) throw CLI::RuntimeError(code);
  });
  return command;
}

void ModelOptions::add_to(CLI::App& command, bool with_context) {
  command.add_option("-m,--model", file, "Model file (GGUF) or folder (Hugging Face)")
      ->required()
      ->type_name("FILE");
  command.add_option("--device", device, "Where to run: auto, cpu, cuda:N or hip:N")
      ->type_name("DEVICE")
      ->capture_default_str();
  if (command.get_name() != "bench") {
    add_number(command, "-t,--threads", threads, kThreadsHelp)->type_name("T");
  }
  if (!with_context) return;
  add_number(command, "-c,--ctx", context,
             "Maximum tokens of prompt and answer together (default: the model's trained context)")
      ->type_name("N");
  command
      .add_option("--lora", adapters,
                  "Adapter (GGUF) beside the weights, with its scale; may be given several times")
      ->type_name("FILE[=N]")
      ->expected(1)
      ->take_all();
  command.add_option("--cache-type", cache, cache_types_help())
      ->type_name("TYPE")
      ->capture_default_str();
  add_number(command, "--batch", batch, "Prompt tokens per batch")
      ->type_name("N")
      ->capture_default_str();
}

std::string cache_types_help() {
  return fmt::format("Type of the KV cache: {}", names(dtypes::kCaches));
}

std::pair<std::string, float> ModelOptions::parse_adapter(const std::string& given) {
  const size_t equals = given.rfind('=');
  if (equals == std::string::npos) return {given, 1.0f};
  float scale = 0;
  const char* const end = given.data() + given.size();
  const auto number = std::from_chars(given.data() + equals + 1, end, scale);
  if (number.ec == std::errc{} && number.ptr == end && std::isfinite(scale)) {
    return {given.substr(0, equals), scale};
  }
  throw Error("--lora", "not a scale", fmt::format("'{}'", printable(given.substr(equals + 1))),
              "need FILE or FILE=NUMBER");
}

template <class Load>
auto ModelOptions::load_with(const Load& load) const {
  if (threads) cpu::set_threads(*threads);
  session();
  models::LoadOptions options;
  options.device = device == "auto" ? best_device() : Device::parse(device);
  backend(options.device);  // fails before the file is opened if the device doesn't exist
  if (device == "auto") {
    for (const std::string& line : unusable_drivers()) warn(line);
  }
  for (const std::string& line : unusable_libraries(options.device)) warn(line);
  if (options.device.kind == DeviceKind::cpu && !environment("WICK_TRACE").empty()) warn_untraced();
  for (const std::string& adapter : adapters) {
    options.adapters.push_back(parse_adapter(adapter).first);
  }
  Progress progress("loading");
  options.progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
  return load(options);
}

std::shared_ptr<const serve::Engine> ModelOptions::load() const {
  const auto engine =
      load_with([&](const models::LoadOptions& o) { return serve::Engine::load(file, o); });
  const std::string& warning = engine->tokenizer().warning();
  if (!warning.empty()) warn(fmt::format("{}: {}", file, warning));
  return engine;
}

std::unique_ptr<models::CausalLm> ModelOptions::load_model() const {
  return load_with([&](const models::LoadOptions& o) {
    return models::CausalLm::load(*models::open_model(file), o);
  });
}

serve::SessionOptions ModelOptions::session() const {
  const std::optional<DType> type = parse_dtype(cache);
  if (!type || !dtypes::kCaches.contains(*type)) {
    throw Error("--cache-type", "not a cache type", fmt::format("'{}'", cache),
                fmt::format("use {}", names(dtypes::kCaches)));
  }
  if (context && *context < 1)
    throw Error("--ctx", "out of range", fmt::format("{}", *context), "need at least 1");
  if (batch < 1)
    throw Error("--batch", "out of range", fmt::format("{}", batch), "need at least 1");
  std::vector<float> scales;
  for (const std::string& adapter : adapters) scales.push_back(parse_adapter(adapter).second);
  return {.context = context.value_or(0),
          .cache_dtype = *type,
          .batch = batch,
          .adapter_scales = std::move(scales)};
}

void ModelOptions::check_context(const models::CausalLm& model) const {
  if (!context || *context <= model.context_length()) return;
  warn(
      fmt::format("--ctx: {} is more than the {} tokens that the model was trained for: answers "
                  "degrade beyond that",
                  *context, model.context_length()));
}

void SamplingOptions::add_to(CLI::App& command) {
  text::SamplerOptions& s = sampler;
  auto option = [&](const char* name, auto& value, const char* help) {
    return add_number(command, name, value, help)->capture_default_str()->group("Sampling");
  };
  option("--temp", s.temperature, "Temperature; 0 always chooses the most likely token");
  option("--top-k", s.top_k, "Keep the k most likely tokens; 0 keeps all");
  option("--top-p", s.top_p, "Keep the most likely tokens that together reach this probability");
  option("--min-p", s.min_p, "Drop tokens less likely than this fraction of the most likely token");
  option("--repetition-penalty", s.repetition_penalty, "Divides logits of recent tokens; 1 is off");
  option("--presence-penalty", s.presence_penalty, "Subtracted from logits of recent tokens");
  option("--frequency-penalty", s.frequency_penalty, "Subtracted once per recent occurrence");
  option("--penalty-window", s.penalty_window, "Number of recent tokens; -1: all tokens");
  option("--seed", s.seed, "Random seed; the same seed gives the same text on every machine");
  option("--typical-p", s.typical_p,
         "Keep tokens of this probability with the most typical surprise");
  option("--top-n-sigma", s.top_n_sigma,
         "Keep logits within this many standard deviations of the largest; 0 is off");
  option("--xtc-probability", s.xtc_probability,
         "Probability of dropping all likely tokens except the least likely of them");
  option("--xtc-threshold", s.xtc_threshold, "Probability from which xtc sees a token as likely");
  option("--dynamic-range", s.dynamic_range, "Vary the temperature by +- this with the entropy");
  option("--dynamic-exponent", s.dynamic_exponent, "Exponent of the entropy's influence");
  option("--dry-multiplier", s.dry_multiplier, "Penalty of tokens that continue a repetition");
  option("--dry-base", s.dry_base, "Base of the growth of that penalty with the length");
  option("--dry-allowed-length", s.dry_allowed_length, "Length of repetitions without a penalty");
  option("--dry-window", s.dry_window, "Number of recent tokens for dry; -1: all tokens");
  option("--mirostat", s.mirostat, "Mirostat version 1 or 2, in place of top-k, top-p and min-p");
  option("--mirostat-tau", s.mirostat_tau, "Mirostat's target surprise in bits");
  option("--mirostat-eta", s.mirostat_eta, "Mirostat's learning rate");
  const auto texts = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group("Sampling");
  };
  texts("--dry-breaker", breakers, "Texts that end repetitions (default: newline : \" *)")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  texts("--logit-bias", biases, "Add to the logit of a token: ID=NUMBER; -inf excludes it")
      ->type_name("ID=N")
      ->expected(1)
      ->take_all();
  texts("--samplers", steps, "Steps and their order, separated by commas")->type_name("STEPS");
}

text::SamplerOptions SamplingOptions::with_steps() const {
  text::SamplerOptions options = sampler;
  if (!steps.empty()) {
    options.order.clear();
    for (size_t begin = 0; begin <= steps.size();) {
      const size_t end = std::min(steps.find(',', begin), steps.size());
      options.order.push_back(parse_sampler_step(steps.substr(begin, end - begin)));
      begin = end + 1;
    }
  }
  for (const std::string& bias : biases) {
    const size_t equals = bias.find('=');
    int32_t token = 0;
    float value = 0;
    const char* const end = bias.data() + bias.size();
    const bool split = equals != std::string::npos;
    const auto id = std::from_chars(bias.data(), bias.data() + (split ? equals : 0), token);
    const auto number = std::from_chars(split ? bias.data() + equals + 1 : end, end, value);
    if (!split || id.ec != std::errc{} || id.ptr != bias.data() + equals ||
        number.ec != std::errc{} || number.ptr != end) {
      throw Error("--logit-bias", "not a bias", fmt::format("'{}'", printable(bias)),
                  "need ID=NUMBER");
    }
    options.logit_bias.emplace_back(token, value);
  }
  return options;
}

text::SamplerOptions SamplingOptions::for_vocabulary(const text::Tokenizer& tokenizer) const {
  text::SamplerOptions options = with_steps();
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < tokenizer.vocab_size()) continue;
    throw Error(ErrorKind::index, "--logit-bias", "token id out of range", fmt::format("{}", token),
                fmt::format("the vocabulary has {}", tokenizer.vocab_size()));
  }
  if (options.dry_multiplier > 0) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const std::string_view piece = tokenizer.piece(id);
      const bool breaks = std::any_of(breakers.begin(), breakers.end(), [&](const auto& text) {
        return piece.find(text) != std::string_view::npos;
      });
      if (breaks) options.dry_breakers.push_back(id);
    }
  }
  return options;
}

void TextOptions::add_to(CLI::App& command, const std::string& help) {
  CLI::Option* prompt = command.add_option("-p,--prompt", prompt_, help)->type_name("TEXT");
  prompt_option_ = prompt;
  file_option_ = command.add_option("-f,--file", file_, "Read the text from a file (-: stdin)")
                     ->type_name("FILE")
                     ->excludes(prompt);
}

std::string TextOptions::read() const {
  if (file_option_->count() > 0) return read_text(file_);
  if (prompt_option_->count() == 0) throw Error("--prompt", "no text", "", "give -p or -f");
  return prompt_;
}

std::vector<int32_t> TextOptions::encode(const text::Tokenizer& tokenizer, const std::string& text,
                                         const text::EncodeOptions& options) const {
  return encode_text(tokenizer, text, file_option_->count() > 0 ? file_ : "--prompt", options);
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::string label)
    : label_(std::move(label)), terminal_(isatty(STDERR_FILENO) != 0), started_(now_seconds()) {}

void Progress::update(int64_t done, int64_t total) {
  if (!terminal_ || total <= 0) return;
  const double now = now_seconds();
  if (now - started_ < 0.3 || (now - drawn_ < 0.05 && done < total)) return;
  drawn_ = now;
  shown_ = true;
  progress_shown(true);
  constexpr int64_t kWidth = 30;
  const auto filled = static_cast<size_t>(kWidth * done / total);
  std::fprintf(stderr, "\r%s [%s%s] %3d%%", label_.c_str(), std::string(filled, '#').c_str(),
               std::string(kWidth - filled, ' ').c_str(), static_cast<int>(100 * done / total));
  std::fflush(stderr);
}

Progress::~Progress() {
  if (!shown_) return;
  progress_shown(false);
  std::fprintf(stderr, "\r\033[K");
}

void require_streams() {
  // Without this, a file opened later could become a standard stream.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY) != fd)
      _exit(2);
  }
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

std::string human_bytes(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (b >= 1e9) return fmt::format("{:.2f} GB", b / 1e9);
  if (b >= 1e6) return fmt::format("{:.0f} MB", b / 1e6);
  return fmt::format("{:.0f} kB", b / 1e3);
}

std::string read_text(const std::string& path) {
  const bool standard = path == "-";
  const int file = standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error(ErrorKind::file, path, "cannot read", std::strerror(errno));
  std::string text;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    text.reserve(static_cast<size_t>(status.st_size));
  }
  std::vector<char> part(size_t{1} << 18);
  ssize_t count = 0;
  do {
    count = ::read(file, part.data(), part.size());
    if (count > 0) text.append(part.data(), static_cast<size_t>(count));
  } while (count > 0 || (count < 0 && errno == EINTR));
  const int error = count < 0 ? errno : 0;
  if (!standard) close(file);
  if (error != 0) {
    throw Error(ErrorKind::file, standard ? "stdin" : path, "cannot read", std::strerror(error));
  }
  return text;
}

std::vector<int32_t> encode_text(const text::Tokenizer& tokenizer, const std::string& text,
                                 const std::string& source, const text::EncodeOptions& options) {
  try {
    return tokenizer.encode(text, options);
  } catch (const Error& e) {
    throw Error(e.kind(), source == "-" ? "stdin" : source, e.what());
  }
}

void check_token_limit(int64_t count) {
  if (count >= -1) return;
  throw Error("--tokens", "out of range", fmt::format("{}", count), "need -1 (no limit) or more");
}

}  // namespace wick::cli
