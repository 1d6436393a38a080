#include "common.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "wick/backend/backend.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/backend/devices.h"
#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/log.h"
#include "wick/base/printable.h"
#include "wick/io/output_file.h"
#include "wick/io/split_file.h"
#include "wick/models/find_model.h"
#include "wick/models/open_model.h"
#include "wick/tensor/memory.h"

namespace wick::cli {
namespace {

const double kStarted = now_seconds();

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

CLI::Option* require_value(CLI::Option* option) {
  const auto check = [](const std::string& text) {
    return text.empty() ? std::string("the value is empty") : std::string();
  };
  return option->check(CLI::Validator(check, ""));
}

void ModelOptions::add_to(CLI::App& command, bool with_context) {
  require_value(command.add_option("-m,--model", file, kModelHelp))->required()->type_name("FILE");
  command
      .add_option("--device", device,
                  "Where to run: auto, cpu, cuda:N or hip:N; or GPUs that share the layers: "
                  "cuda:0,cuda:1")
      ->type_name("DEVICE")
      ->capture_default_str();
  gpu_layers_option_ =
      command
          .add_option(
              "--gpu-layers", gpu_layers,
              "Layers on the GPU: a number, all, or auto for as many as fit; the others are on "
              "the CPU")
          ->type_name("N")
          ->capture_default_str();
  cpu_experts_option_ =
      command
          .add_option(
              "--cpu-experts", cpu_experts,
              "First layers whose experts are on the CPU: a number, all, or auto for as few as "
              "needed")
          ->type_name("N")
          ->capture_default_str();
  if (command.get_name() != "bench") {
    add_number(command, "-t,--threads", threads, kThreadsHelp)->type_name("T");
  }
  command.add_flag("-v,--verbose", verbose, "Tell on stderr what is done, with the time");
  if (!with_context) return;
  add_number(command, "-c,--ctx", context,
             "Maximum tokens of prompt and answer together (default: the model's trained context)")
      ->type_name("N");
  require_value(command.add_option(
                    "--lora", adapters,
                    "Adapter beside the weights (GGUF file or PEFT folder), with its scale: the "
                    "number behind the last =, unless a file has the whole name; may be given "
                    "several times"))
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
  const auto exists = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  };
  if (equals == std::string::npos || exists(given)) return {given, 1.0f};
  float scale = 0;
  const char* const end = given.data() + given.size();
  const auto number = std::from_chars(given.data() + equals + 1, end, scale);
  if (number.ec == std::errc{} && number.ptr == end && std::isfinite(scale)) {
    return {given.substr(0, equals), scale};
  }
  if (!exists(given.substr(0, equals))) return {given, 1.0f};  // opening it is the error
  throw Error("--lora", "not a scale", fmt::format("'{}'", printable(given.substr(equals + 1))),
              "need FILE or FILE=NUMBER");
}

namespace {

/// The devices of a list such as "cuda:0,cuda:1", or the best one. Errors: one isn't a device.
std::vector<Device> parse_devices(const std::string& text) {
  if (text == "auto") return {best_device()};
  std::vector<Device> devices;
  for (const std::string_view name : split(text, ',')) devices.push_back(Device::parse(name));
  return devices;
}

}  // namespace

models::LoadOptions ModelOptions::load_options() const {
  const serve::SessionOptions sizes = session();
  models::LoadOptions options;
  options.split.gpu_layers = models::parse_layers("--gpu-layers", gpu_layers);
  options.split.cpu_experts = models::parse_layers("--cpu-experts", cpu_experts);
  options.split.context = sizes.context;
  options.split.cache_dtype = sizes.cache_dtype;
  options.split.batch = sizes.batch;
  options.split.sequences = sequences;
  const std::vector<Device> devices = parse_devices(device);
  options.device = devices.front();
  options.split.more_devices.assign(devices.begin() + 1, devices.end());
  for (const Device of : devices)
    backend(of);  // fails before the file is opened if it doesn't exist
  if (device == "auto") {
    for (const std::string& line : unusable_drivers()) warn(line);
  }
  if (options.split.gpu_layers != 0) {
    for (const std::string& line : unusable_libraries(devices)) warn(line);
  }
  if (options.device.kind == DeviceKind::cpu) {
    if (!environment("WICK_TRACE").empty()) warn_untraced();
    if (gpu_layers != "auto" && options.split.gpu_layers > 0) {
      warn("--gpu-layers: ignored: no GPU is used, so all layers are on the CPU");
    }
    if (cpu_experts != "auto") {
      warn("--cpu-experts: ignored: no GPU is used, so all layers are on the CPU");
    }
  }
  for (const std::string& adapter : adapters) {
    options.adapters.push_back(parse_adapter(adapter).first);
  }
  note(fmt::format("device {}; CPU kernels of {}, {} threads", options.device.str(), cpu::isa(),
                   cpu::threads()));
  return options;
}

void ModelOptions::report_placement(const models::CausalLm& model, Device asked) const {
  const bool is_whole = model.pieces() == 1 && model.device() == asked;
  if (asked.kind == DeviceKind::cpu || (is_whole && !places_layers())) return;
  const bool asks_experts = models::parse_layers("--cpu-experts", cpu_experts) > 0;
  if (asks_experts && !model.has_experts()) {
    warn("--cpu-experts: ignored: the model has no experts");
  }
  std::fprintf(stderr, "%s\n", model.placement().c_str());
}

template <class Load>
auto ModelOptions::load_with(const Load& load) const {
  if (verbose) show_notes();
  if (threads) cpu::set_threads(*threads);
  models::LoadOptions options = load_options();
  Progress progress("loading");
  options.progress = [&](int64_t done, int64_t total) { progress.update(done, total); };
  return std::pair(load(options), options.device);
}

std::shared_ptr<const serve::Engine> ModelOptions::load() const {
  const auto [engine, asked] =
      load_with([&](const models::LoadOptions& o) { return serve::Engine::load(file, o); });
  report_placement(engine->model(), asked);
  const std::string& warning = engine->tokenizer().warning();
  if (!warning.empty()) warn(fmt::format("{}: {}", file, warning));
  return engine;
}

std::unique_ptr<models::CausalLm> ModelOptions::load_model() const {
  auto [model, asked] = load_with([&](const models::LoadOptions& o) {
    return models::CausalLm::load(*models::open_model(file), o);
  });
  report_placement(*model, asked);
  return std::move(model);
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

std::vector<std::string> ModelOptions::input_paths() const {
  std::vector<std::string> paths = {path_of_model(file)};
  for (const std::string& adapter : adapters) paths.push_back(parse_adapter(adapter).first);
  return paths;
}

void TextOptions::add_to(CLI::App& command, const std::string& help) {
  CLI::Option* prompt = command.add_option("-p,--prompt", prompt_, help)->type_name("TEXT");
  prompt_option_ = prompt;
  file_option_ =
      require_value(command.add_option("-f,--file", file_, "Read the text from a file (-: stdin)"))
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

void show_notes() {
  // Text and notes go to one place if both are a terminal, or the same pipe or file.
  struct stat out {
  }, err{};
  const bool same = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
                    out.st_dev == err.st_dev && out.st_ino == err.st_ino;
  const bool one_place = same || (isatty(STDERR_FILENO) != 0 && isatty(STDOUT_FILENO) != 0);
  set_log([one_place](std::string_view line) {
    if (one_place) flush_output_before_error();
    // A progress bar is erased, and drawn again by its next update. Text stays.
    const char* const before = is_progress_shown()         ? "\r\033[K"
                               : one_place && leave_line() ? "\n"
                                                           : "";
    std::fprintf(stderr, "%s[%8.3f s] %s\n", before, now_seconds() - kStarted,
                 one_line(std::string(line)).c_str());
  });
}

void note(const std::string& line) { log_line(line); }

void note_memory(Device device) {
  if (!logging()) return;
  const MemoryStats stats = memory_stats(device);
  note(fmt::format("memory: at most {} resident; {}: {} in use, at most {}",
                   human_bytes(peak_resident_bytes()), device.str(),
                   human_bytes(static_cast<int64_t>(stats.in_use_bytes)),
                   human_bytes(static_cast<int64_t>(stats.peak_bytes))));
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

void Progress::erase() {
  if (!std::exchange(shown_, false)) return;
  progress_shown(false);
  std::fprintf(stderr, "\r\033[K");
}

Progress::~Progress() { erase(); }

void require_streams() {
  // Without this, a file opened later could become a standard stream.
  for (int fd = 0; fd <= 2; ++fd) {
    // Reads from stdin and writes to stdout fail.
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 1 ? O_RDONLY : O_WRONLY) != fd)
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

std::string path_of_model(const std::string& name) {
  try {
    return models::find_model(name);
  } catch (const Error&) {
    return name;  // opening it is the error
  }
}

void require_no_input(const std::string& option, const std::string& path,
                      const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    if (input.empty()) continue;
    const std::vector<std::string> of = io::paths_of_model(input == "-" ? "/dev/stdin" : input);
    files.insert(files.end(), of.begin(), of.end());
  }
  io::require_not_input(option, path, files);
}

void check_output(const std::string& option, const std::string& path,
                  const std::vector<std::string>& inputs) {
  require_no_input(option, path, inputs);
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorKind::file, printable(path), "cannot write", "no such folder");
  }
  io::require_writable(option, path);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
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
  if (error != 0 && standard) cannot_read_stdin(error);
  if (error != 0) throw Error(ErrorKind::file, path, "cannot read", std::strerror(error));
  return text;
}

void cannot_read_stdin(int error) {
  throw Error(ErrorKind::file, "stdin", "cannot read",
              error == EBADF ? "it is closed" : std::strerror(error));
}

std::vector<int32_t> encode_text(const text::Tokenizer& tokenizer, const std::string& text,
                                 const std::string& source, const text::EncodeOptions& options) {
  return with_source(source, [&] { return tokenizer.encode(text, options); });
}

void check_token_limit(int64_t count) {
  if (count >= -1) return;
  throw Error("--tokens", "out of range", fmt::format("{}", count), "need -1 (no limit) or more");
}

}  // namespace wick::cli
