#pragma once

// Text as it is generated: a thread of its own runs the model, an iterator hands the pieces over.

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "python/bindings/binding.h"
#include "wick/serve/engine.h"

namespace wick::python {

/// A session, which one at a time may use.
struct PySession {
  PySession(std::shared_ptr<const serve::Engine> of, const serve::SessionOptions& options)
      : engine(std::move(of)), session(engine, options) {}
  /// Errors: a stream or another thread is at it.
  std::unique_lock<std::mutex> lock();

  std::shared_ptr<const serve::Engine> engine;
  serve::Session session;

 private:
  std::mutex mutex_;
};

/// The pieces of one generation, in order. Ends with it, or when it is closed or forgotten.
class TextStream {
 public:
  TextStream(std::shared_ptr<PySession> session, std::vector<int32_t> prompt,
             serve::GenerateOptions options);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The next piece; StopIteration at the end. Waits without the GIL; Ctrl-C ends the stream.
  nanobind::object next();
  /// Ends the generation and waits for its thread.
  void close();

 private:
  void run(const std::vector<int32_t>& prompt, serve::GenerateOptions options);
  bool wait_for_piece(std::string& piece);

  std::shared_ptr<PySession> session_;
  std::unique_lock<std::mutex> held_;  // the session, as long as the thread runs
  std::mutex mutex_;                   // of what follows
  std::condition_variable changed_;
  std::deque<std::string> pieces_;
  std::exception_ptr failure_;
  bool done_ = false, closed_ = false;
  std::thread thread_;
};

void bind_text_stream(nanobind::module_& m);

}  // namespace wick::python
