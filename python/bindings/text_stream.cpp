#include "python/bindings/text_stream.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "wick/base/error.h"

namespace wick::python {

PySession::Use PySession::use() {
  if (in_use_.exchange(true)) {
    throw Error(ErrorKind::runtime, "session", "busy", "",
                "a stream or another thread uses it: end that first");
  }
  return Use(*this);
}

/// State that a stream and its thread share. After fork(), the child has a copy without the thread,
/// in which locks may be held forever, so the child must not touch it.
struct TextStream::State {
  explicit State(std::shared_ptr<PySession> of) : session(std::move(of)), held(session->use()) {}

  std::shared_ptr<PySession> session;
  const pid_t process = ::getpid();
  std::mutex end_mutex;  // guards `thread` and `held`
  std::thread thread;
  PySession::Use held;  // held while the thread runs

  std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  std::deque<std::string> pieces;
  std::exception_ptr failure;
  bool done = false, closed = false;

  bool is_elsewhere() const { return ::getpid() != process; }

  /// Any number of threads may call this at the same time.
  void close() {
    {
      const std::lock_guard lock(mutex);
      closed = true;
      pieces.clear();
    }
    changed.notify_all();
    const std::lock_guard lock(end_mutex);
    if (thread.joinable()) thread.join();
    held.end();
  }
};

namespace {

/// All live streams, which must end before the interpreter does. Never destroyed; locked during
/// fork().
struct Streams {
  std::mutex mutex;
  std::vector<std::weak_ptr<void>> all;
  bool ended = false;
};

Streams& streams() {
  static Streams& made = *new Streams;
  static const int at_fork [[maybe_unused]] = pthread_atfork(
      [] { made.mutex.lock(); }, [] { made.mutex.unlock(); }, [] { made.mutex.unlock(); });
  return made;
}

}  // namespace

TextStream::TextStream(std::shared_ptr<PySession> session, std::vector<int32_t> prompt,
                       serve::GenerateOptions options)
    : state_(std::make_shared<State>(std::move(session))) {
  State& state = *state_;
  Streams& known = streams();
  const std::lock_guard lock(known.mutex);
  if (known.ended) throw Error(ErrorKind::runtime, "stream", "the interpreter ends");
  std::erase_if(known.all, [](const auto& stream) { return stream.expired(); });
  known.all.push_back(state_);
  state.thread = std::thread([&state, prompt = std::move(prompt), options = std::move(options)] {
    run(state, prompt, options);
  });
}

TextStream::~TextStream() {
  if (state_->is_elsewhere()) {
    state_->session.reset();
    new std::shared_ptr<State>(std::move(state_));  // never freed: its thread can't be joined
    return;
  }
  const ReleasedGil released;
  close();
}

void TextStream::close() {
  if (!state_->is_elsewhere()) state_->close();
}

void TextStream::close_all() {
  std::vector<std::weak_ptr<void>> all;
  {
    Streams& known = streams();
    const std::lock_guard lock(known.mutex);
    known.ended = true;
    all.swap(known.all);
  }
  for (const std::weak_ptr<void>& stream : all) {
    const auto state = std::static_pointer_cast<State>(stream.lock());
    if (state != nullptr && !state->is_elsewhere()) state->close();
  }
}

void TextStream::run(State& state, const std::vector<int32_t>& prompt,
                     serve::GenerateOptions options) {
  const auto closed = [&state] {
    const std::lock_guard lock(state.mutex);
    return state.closed;
  };
  options.cancelled = closed;
  options.on_text = [&state](std::string_view piece) {
    {
      const std::lock_guard lock(state.mutex);
      if (state.closed) return;  // the stream was closed before the generation ended
      state.pieces.emplace_back(piece);
    }
    state.changed.notify_all();
  };
  std::exception_ptr failure;
  try {
    serve::Session& session = state.session->session;
    if (session.feed(prompt, closed)) session.generate(options);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(state.mutex);
  state.failure = failure;
  state.done = true;
  state.changed.notify_all();
}

TextStream::Step TextStream::wait_for_piece(std::string& piece) {
  const ReleasedGil released;
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto ended = [&state] { return state.done || state.closed; };
  state.changed.wait_for(lock, std::chrono::milliseconds(50),
                         [&] { return ended() || !state.pieces.empty(); });
  if (state.pieces.empty()) return ended() ? Step::end : Step::none_yet;
  piece = std::move(state.pieces.front());
  state.pieces.pop_front();
  return Step::piece;
}

nb::object TextStream::next() {
  if (state_->is_elsewhere()) {
    throw Error(ErrorKind::runtime, "stream", "belongs to another process", "",
                "streams don't outlive a fork: start one in each process");
  }
  std::string piece;
  Step step = Step::none_yet;
  bool stopped = false;
  while (step == Step::none_yet && !stopped) {
    step = wait_for_piece(piece);
    stopped = step == Step::none_yet && PyErr_CheckSignals() != 0;
  }
  if (step == Step::piece) return to_text(piece);
  std::optional<nb::python_error> interrupt;
  if (stopped) interrupt.emplace();  // takes over the raised exception
  std::exception_ptr failure;
  {
    const ReleasedGil released;
    close();
    const std::lock_guard lock(state_->mutex);
    failure = std::exchange(state_->failure, nullptr);
  }
  if (interrupt) throw nb::python_error(*interrupt);
  if (failure != nullptr) std::rethrow_exception(failure);
  throw nb::stop_iteration();
}

void bind_text_stream(nb::module_& m) {
  nb::class_<TextStream>(m, "TextStream",
                         "An iterator over pieces of text as a model generates them. Closing it,"
                         " or dropping the last reference, ends the generation.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> TextStream"))
      .def("__next__", &TextStream::next, nb::sig("def __next__(self) -> str"))
      .def("close", &TextStream::close, nb::call_guard<ReleasedGil>(),
           "Ends the generation and waits until it has ended. Any thread may call it, even while"
           " others wait for a piece.");
  // Runs before the interpreter is finalised, while the streams' threads can still use it.
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    // Daemon threads keep their references forever, which nanobind would report as leaks.
    const nb::object count = nb::getattr(nb::module_::import_("_thread"), "_count", nb::none());
    if (!count.is_none() && nb::cast<int>(count()) > 0) nb::set_leak_warnings(false);
    const ReleasedGil released;
    TextStream::close_all();
  }));
}

}  // namespace wick::python
