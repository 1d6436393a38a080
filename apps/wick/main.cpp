#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "common.h"
#include "wick/base/error.h"
#include "wick/version.h"

namespace {

constexpr const char* kTeaching = R"(Examples:
  wick generate -m model.gguf -p "The capital of France is" -n 32
  wick chat -m model.gguf
  wick bench -m model.gguf -p 512 -n 128 -t 1 -t 2
  wick quantize model-f16.gguf model-q4_0.gguf q4_0
`wick COMMAND --help` explains a command. Reports take --json. Errors exit with 2, Ctrl-C with 130.)";

int fail(const std::string& message) {
  std::fprintf(stderr, "wick: %s\n", message.c_str());
  return wick::cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wick::cli;
  CLI::App app("Runs language models on any GPU, or just a CPU.", "wick");
  app.footer(kTeaching);
  app.set_version_flag("--version", fmt::format("wick {}", wick::version()));
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  for (auto add : {add_generate, add_chat, add_bench, add_perplexity, add_tokenize, add_inspect,
                   add_quantize, add_devices}) {
    add(app);
  }
  handle_interrupts();
  try {
    app.parse(argc, argv);
    return kOk;
  } catch (const CLI::RuntimeError& e) {
    return e.get_exit_code();
  } catch (const CLI::Success& e) {  // --help and --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return fail(fmt::format("{} (see wick --help)", e.what()));
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}
