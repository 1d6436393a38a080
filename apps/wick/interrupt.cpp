// Handles Ctrl-C, SIGTERM, SIGHUP and terminal signals. Handlers only call async-signal-safe
// functions: write, tcsetattr, sigaction, raise, alarm and _exit.
#include "interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "common.h"

namespace wick::cli {
namespace {

constexpr int kAtOnce = -1;  // no StopInOrder exists; otherwise `mode` is its Stop

std::atomic<int> mode{kAtOnce};
std::atomic<bool> stop_asked{false}, bar_shown{false};
std::atomic<int> stop_signal{SIGINT};  // the last of SIGINT, SIGTERM and SIGHUP
std::atomic<bool> terminal_held{false}, resized{false}, continued{false};
termios terminal_before, terminal_during;
int wake_pipe[2] = {-1, -1};  // one byte per signal, so that poll() can't miss a signal

void wake() {
  const int saved = errno;
  const char byte = 0;
  if (wake_pipe[1] >= 0 && write(wake_pipe[1], &byte, 1) < 0) {
    // If the pipe is full, poll() returns anyway.
  }
  errno = saved;
}

/// Changes the terminal's settings, unless another process group owns the terminal.
void set_terminal(const termios& settings) {
  if (tcgetpgrp(STDIN_FILENO) == getpgrp()) tcsetattr(STDIN_FILENO, TCSANOW, &settings);
}

[[noreturn]] void end_at_once() {
  if (terminal_held.load()) set_terminal(terminal_before);
  constexpr std::string_view kWipe = "\r\033[K";
  if (bar_shown.load() && write(STDERR_FILENO, kWipe.data(), kWipe.size()) < 0) {
    // There is nobody to tell.
  }
  _exit(interrupted_code());
}

void on_stop(int signal) {
  if (signal != SIGALRM) stop_signal.store(signal);
  const int how = mode.load();
  const bool noted =
      signal != SIGALRM && (how == static_cast<int>(Stop::answer) ? signal == SIGINT : how >= 0);
  if (!noted || stop_asked.exchange(true)) end_at_once();
  if (how == static_cast<int>(Stop::soon)) alarm(1);
  wake();
}

void on_resize(int) {
  resized.store(true);
  wake();
}

void set_handler(int signal, void (*handler)(int), int flags = SA_RESTART) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Restores the terminal's settings for the shell, and sets them again when the process continues.
void on_suspend(int) {
  const int saved = errno;
  set_terminal(terminal_before);
  set_handler(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);  // returns when the process continues, because of SA_NODEFER
  set_handler(SIGTSTP, on_suspend, SA_RESTART | SA_NODEFER);
  set_terminal(terminal_during);
  continued.store(true);
  wake();
  errno = saved;
}

}  // namespace

void handle_interrupts() {
  // SA_RESTART prevents calls from failing with EINTR when a signal was recorded.
  // Shells start background commands with SIGINT ignored, and nohup with SIGHUP ignored.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(signal)) set_handler(signal, on_stop);
  }
  set_handler(SIGALRM, on_stop);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

StopInOrder::StopInOrder(Stop how) : before_(mode.exchange(static_cast<int>(how))) {}

StopInOrder::~StopInOrder() {
  mode.store(before_);
  alarm(0);
}

bool interrupted() { return stop_asked.load(); }

int interrupted_code() { return 128 + stop_signal.load(); }

void clear_interrupt() { stop_asked.store(false); }

void progress_shown(bool shown) { bar_shown.store(shown); }

bool is_progress_shown() { return bar_shown.load(); }

CharacterTerminal::CharacterTerminal() {
  if (wake_pipe[0] < 0 && pipe2(wake_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::runtime, "chat", "cannot make a pipe");
  }
  tcgetattr(STDIN_FILENO, &terminal_before);
  terminal_during = terminal_before;
  terminal_during.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  terminal_during.c_cc[VMIN] = 1;
  terminal_during.c_cc[VTIME] = 0;
  terminal_held.store(true);
  set_terminal(terminal_during);
  set_handler(SIGWINCH, on_resize);
  if (!is_ignored(SIGTSTP)) set_handler(SIGTSTP, on_suspend, SA_RESTART | SA_NODEFER);
}

CharacterTerminal::~CharacterTerminal() {
  if (!is_ignored(SIGTSTP)) set_handler(SIGTSTP, SIG_DFL);
  set_handler(SIGWINCH, SIG_DFL);
  set_terminal(terminal_before);
  terminal_held.store(false);
}

bool CharacterTerminal::wait_for_input() {
  for (;;) {
    pollfd files[] = {{STDIN_FILENO, POLLIN, 0}, {wake_pipe[0], POLLIN, 0}};
    const int ready = poll(files, 2, -1);
    if (ready < 0 && errno != EINTR) return true;  // the read reports the error
    if (ready <= 0) continue;
    if (files[1].revents != 0) {
      char bytes[64];
      while (read(wake_pipe[0], bytes, sizeof bytes) > 0) {
      }
      return false;
    }
    if (files[0].revents != 0) return true;
  }
}

TerminalEvents CharacterTerminal::events() {
  return {.resized = resized.exchange(false), .continued = continued.exchange(false)};
}

}  // namespace wick::cli
