#pragma once

// Streams of generated text: a separate thread runs the model, and an iterator returns the pieces.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/binding.h"
#include "wick/serve/engine.h"

namespace wick::python {

/// A session that only one stream or call may use at a time.
class PySession {
 public:
  PySession(std::shared_ptr<const serve::Engine> of, const serve::SessionOptions& options)
      : engine(std::move(of)), session(engine, options) {}

  /// Marks the session as used until it is destroyed, on any thread.
  class Use {
   public:
    explicit Use(PySession& session) : in_use_(&session.in_use_) {}
    Use(Use&& other) noexcept : in_use_(std::exchange(other.in_use_, nullptr)) {}
    ~Use() { end(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    void end() {
      if (in_use_ != nullptr) std::exchange(in_use_, nullptr)->store(false);
    }

   private:
    std::atomic<bool>* in_use_;
  };
  /// Errors: a stream or another thread uses the session.
  Use use();

  std::shared_ptr<const serve::Engine> engine;
  serve::Session session;

 private:
  std::atomic<bool> in_use_{false};
};

/// The pieces of one generation, in order. The generation ends when it is complete, or when the
/// stream is closed or destroyed. Several threads may request pieces, each of which goes to one
/// thread, and may close the stream.
class TextStream {
 public:
  TextStream(std::shared_ptr<PySession> session, std::vector<int32_t> prompt,
             serve::GenerateOptions options);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// Returns the next piece; StopIteration at the end. Waits without the GIL; Ctrl-C ends the
  /// stream. Errors: the generation's exception, in one of the waiting threads; the call is made in
  /// a child process after fork(), where the generation doesn't run.
  nanobind::object next();
  /// Ends the generation and waits for its thread, which may take as long as one token. The caller
  /// must not hold the GIL.
  void close();
  /// Closes all streams before the interpreter ends. The caller must not hold the GIL.
  static void close_all();

 private:
  enum class Step : uint8_t { piece, none_yet, end };
  struct State;

  static void run(State& state, const std::vector<int32_t>& prompt, serve::GenerateOptions options);
  Step wait_for_piece(std::string& piece);

  std::shared_ptr<State> state_;
};

void bind_text_stream(nanobind::module_& m);

}  // namespace wick::python
