#include "python/bindings/text_stream.h"

#include <chrono>
#include <utility>

#include "wick/base/error.h"

namespace wick::python {

std::unique_lock<std::mutex> PySession::lock() {
  std::unique_lock<std::mutex> held(mutex_, std::try_to_lock);
  if (!held.owns_lock()) {
    throw Error(ErrorKind::runtime, "session", "busy", "",
                "a stream or another thread uses it: end that first");
  }
  return held;
}

TextStream::TextStream(std::shared_ptr<PySession> session, std::vector<int32_t> prompt,
                       serve::GenerateOptions options)
    : session_(std::move(session)), held_(session_->lock()) {
  thread_ = std::thread(
      [this, prompt = std::move(prompt), options = std::move(options)] { run(prompt, options); });
}

TextStream::~TextStream() {
  const nb::gil_scoped_release released;
  close();
}

void TextStream::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    pieces_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (held_.owns_lock()) held_.unlock();
}

void TextStream::run(const std::vector<int32_t>& prompt, serve::GenerateOptions options) {
  const auto closed = [this] {
    const std::lock_guard lock(mutex_);
    return closed_;
  };
  options.cancelled = closed;
  options.on_text = [this](std::string_view piece) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;  // what a generation says at its end comes too late
      pieces_.emplace_back(piece);
    }
    changed_.notify_all();
  };
  std::exception_ptr failure;
  try {
    if (session_->session.feed(prompt, closed)) session_->session.generate(options);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  done_ = true;
  changed_.notify_all();
}

/// False: the end, or nothing yet for a while.
bool TextStream::wait_for_piece(std::string& piece) {
  const nb::gil_scoped_release released;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(50),
                    [this] { return done_ || closed_ || !pieces_.empty(); });
  if (pieces_.empty()) return false;
  piece = std::move(pieces_.front());
  pieces_.pop_front();
  return true;
}

nb::object TextStream::next() {
  std::string piece;
  while (!wait_for_piece(piece)) {
    bool ended = false;
    {
      const std::lock_guard lock(mutex_);
      ended = (done_ || closed_) && pieces_.empty();
    }
    const bool stopped = !ended && PyErr_CheckSignals() != 0;
    if (!ended && !stopped) continue;
    {
      const nb::gil_scoped_release released;
      close();
    }
    if (stopped) throw nb::python_error();
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    throw nb::stop_iteration();
  }
  return nb::steal(
      PyUnicode_DecodeUTF8(piece.data(), static_cast<Py_ssize_t>(piece.size()), "replace"));
}

void bind_text_stream(nb::module_& m) {
  nb::class_<TextStream>(m, "TextStream",
                         "Text piece by piece as a model makes it: an iterator. Forgetting or "
                         "closing it ends the generation.")
      .def(
          "__iter__", [](nb::handle self) { return nb::borrow(self); },
          nb::sig("def __iter__(self) -> TextStream"))
      .def("__next__", &TextStream::next, nb::sig("def __next__(self) -> str"))
      .def("close", &TextStream::close, nb::call_guard<nb::gil_scoped_release>(),
           "Ends the generation.");
}

}  // namespace wick::python
