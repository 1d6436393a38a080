// Reads lines from a terminal with libedit. This file reads and decodes characters itself, because
// libedit's reader gives up at the second signal and decodes by the locale.
#include "line_editor.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "interrupt.h"
#include "output.h"
#include "wick/base/utf8.h"

namespace wick::cli {
namespace {

constexpr int kHistoryLines = 1000;
constexpr wchar_t kReplacement = 0xfffd;

/// libedit displays characters by the locale. Sets a UTF-8 locale, whatever the environment says.
void use_utf8_locale() {
  if (std::setlocale(LC_CTYPE, "") != nullptr &&
      std::string_view(nl_langinfo(CODESET)) == "UTF-8") {
    return;
  }
  std::setlocale(LC_CTYPE, "C.UTF-8");
}

/// The number of bytes after the first byte of a UTF-8 sequence; -1: no sequence begins with this
/// byte.
int following_bytes(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xc2 && lead <= 0xdf) return 1;
  if (lead >= 0xe0 && lead <= 0xef) return 2;
  if (lead >= 0xf0 && lead <= 0xf4) return 3;
  return -1;
}

}  // namespace

struct LineEditor::Impl {
  explicit Impl(std::string text) : prompt(text.begin(), text.end()) {
    use_utf8_locale();
    // If stdout is a file, the line is edited on stderr.
    shown = isatty(STDOUT_FILENO) != 0 ? stdout : stderr;
    ignored = std::fopen("/dev/null", "we");  // discards libedit's warnings about unknown terminals
    editor = el_init("wick", stdin, shown, ignored != nullptr ? ignored : stderr);
    history = history_winit();
    if (editor == nullptr || history == nullptr) throw std::bad_alloc();
    // Keeps character-by-character input between lines. Otherwise libedit would enable the kernel's
    // line editing, which truncates long lines and intercepts Ctrl-D.
    el_wset(editor, EL_SETTY, L"-x", L"-icanon", L"-echo", nullptr);
    HistEventW event;
    history_w(history, &event, H_SETSIZE, kHistoryLines);
    history_w(history, &event, H_SETUNIQUE, 1);
    el_wset(editor, EL_CLIENTDATA, this);
    el_wset(editor, EL_PROMPT, &Impl::give_prompt);
    el_wset(editor, EL_GETCFN, &Impl::read_character);
    el_wset(editor, EL_EDITOR, L"emacs");
    el_wset(editor, EL_HIST, history_w, history);
    el_wset(editor, EL_BIND, L"^R", L"em-inc-search-prev", nullptr);
  }
  ~Impl() {
    if (history != nullptr) history_wend(history);
    if (editor != nullptr) el_end(editor);
    if (ignored != nullptr) std::fclose(ignored);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static Impl& of(EditLine* editor) {
    Impl* impl = nullptr;
    el_wget(editor, EL_CLIENTDATA, &impl);
    return *impl;
  }
  static wchar_t* give_prompt(EditLine* editor) { return of(editor).prompt.data(); }
  static int read_character(EditLine* editor, wchar_t* out) { return of(editor).character(out); }

  /// Reads a character. Returns 1 on success, 0 at the end of the input, -1 for Ctrl-C.
  int character(wchar_t* out) {
    const int first = next_byte();
    if (first < 0) return first + 1;
    int more = following_bytes(static_cast<unsigned char>(first));
    if (more < 0) {
      *out = kReplacement;
      return 1;
    }
    auto point = static_cast<uint32_t>(first);
    if (more > 0) point &= 0x3fu >> more;
    const int bytes = more + 1;
    for (; more > 0; --more) {
      const int next = next_byte();
      if (next < 0) return next + 1;
      if ((next & 0xc0) != 0x80) {
        pushed_back = next;
        *out = kReplacement;
        return 1;
      }
      point = point << 6 | static_cast<uint32_t>(next & 0x3f);
    }
    const bool overlong = (bytes == 3 && point < 0x800) || (bytes == 4 && point < 0x10000);
    *out = overlong || !is_character(point) ? kReplacement : static_cast<wchar_t>(point);
    return 1;
  }

  /// Reads a byte. Returns -1 at the end of the input, -2 for Ctrl-C.
  int next_byte() {
    if (pushed_back >= 0) return std::exchange(pushed_back, -1);
    for (;;) {
      const bool input = terminal.wait_for_input();
      if (interrupted()) {
        cancelled = true;
        return -2;
      }
      follow_terminal();
      if (!input) continue;
      unsigned char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count == 1) return byte;
      if (count == 0) return -1;
      if (errno != EINTR && errno != EAGAIN) return -1;
    }
  }

  void follow_terminal() {
    const TerminalEvents events = terminal.events();
    if (events.continued) {  // the shell changed the terminal's settings in between
      el_wset(editor, EL_PREP_TERM, 0);
      el_wset(editor, EL_PREP_TERM, 1);
    }
    if (events.resized) el_resize(editor);
    if (events.continued || events.resized) el_wset(editor, EL_REFRESH);
  }

  CharacterTerminal terminal;
  std::wstring prompt;
  FILE* shown = nullptr;
  FILE* ignored = nullptr;
  EditLine* editor = nullptr;
  HistoryW* history = nullptr;
  int pushed_back = -1;
  bool cancelled = false;
};

LineEditor::LineEditor(std::string prompt) : impl_(std::make_unique<Impl>(std::move(prompt))) {}
LineEditor::~LineEditor() = default;

LineEditor::Outcome LineEditor::read(std::string& line) {
  flush_output();
  Impl& impl = *impl_;
  impl.cancelled = false;
  if (impl.terminal.events().resized) el_resize(impl.editor);
  int count = 0;
  const wchar_t* const text = el_wgets(impl.editor, &count);
  if (impl.cancelled) {
    clear_interrupt();
    std::fputs("^C\n", impl.shown);
    return Outcome::cancelled;
  }
  if (text == nullptr || count <= 0) {
    std::fputs("\n", impl.shown);
    return Outcome::end;
  }
  line.clear();
  for (int i = 0; i < count; ++i) {
    if (text[i] != L'\n' && text[i] != L'\r') append_utf8(line, static_cast<char32_t>(text[i]));
  }
  if (line.find_first_not_of(' ') != std::string::npos) {
    HistEventW event;
    history_w(impl.history, &event, H_ENTER, text);
  }
  return Outcome::line;
}

}  // namespace wick::cli
