#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "command_line.h"
#include "common.h"
#include "wick/version.h"

namespace {

constexpr const char* kTeaching = R"(Examples:
  wick generate -m model.gguf -p "The capital of France is" -n 32
  wick chat -m model.gguf
  wick bench -m model.gguf -p 512 -n 128 -t 1 -t 2
  wick quantize model-f16.gguf model-q4_0.gguf q4_0
`wick COMMAND --help` explains a command. Reports take --json. Errors exit with 2, Ctrl-C with 130.)";

int fail(std::string message) {
  // One line, whatever file names and texts it quotes.
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  std::fprintf(stderr, "wick: %s\n", message.c_str());
  return wick::cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace wick::cli;
  CommandLine line("wick", "Runs language models from GGUF files.", kTeaching,
                   fmt::format("wick {}", wick::version()));
  for (auto add : {add_generate, add_chat, add_bench, add_perplexity, add_tokenize, add_inspect,
                   add_quantize, add_devices}) {
    add(line);
  }
  require_streams();
  handle_interrupts();
  try {
    return line.run(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& e) {
    return fail(e.what());
  }
}
