// GoogleTest's main with rows' tests, and a word about which one crashed: operands lie between
// pages that may not be touched.

#include <signal.h>
#include <unistd.h>

#include "tests/parity/grid.h"

namespace {

void say(std::string_view text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

[[maybe_unused]] void on_crash(int signal) {
  say("\ncrashed on ");
  say(wick::parity::Blame::target());
  say(" in ");
  say(wick::parity::Blame::what());
  say("\n");
  raise(signal);  // with the handler gone: the default's
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
#endif
  wick::parity::register_tests();
  return RUN_ALL_TESTS();
}
