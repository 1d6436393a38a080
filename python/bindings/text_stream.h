#pragma once

// Text as it is generated: a thread of its own runs the model, an iterator hands the pieces over.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/binding.h"
#include "wick/serve/engine.h"

namespace wick::python {

/// A session, which one stream or one call at a time may use.
class PySession {
 public:
  PySession(std::shared_ptr<const serve::Engine> of, const serve::SessionOptions& options)
      : engine(std::move(of)), session(engine, options) {}

  /// The use of a session until it is destroyed, on whatever thread.
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
  /// Errors: a stream or another thread uses it.
  Use use();

  std::shared_ptr<const serve::Engine> engine;
  serve::Session session;

 private:
  std::atomic<bool> in_use_{false};
};

/// The pieces of one generation, in order. Ends with it, or when it is closed or forgotten. Several
/// threads may ask for pieces, each of which goes to one of them, and close it.
class TextStream {
 public:
  TextStream(std::shared_ptr<PySession> session, std::vector<int32_t> prompt,
             serve::GenerateOptions options);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The next piece; StopIteration at the end. Waits without the GIL; Ctrl-C ends the stream.
  /// Errors: what the generation threw, to one of the threads that wait; a child process after
  /// fork, where the generation doesn't run.
  nanobind::object next();
  /// Ends the generation and waits for its thread, which may take as long as one token. Takes the
  /// GIL to be free.
  void close();
  /// Closes all streams there are: the interpreter ends. Takes the GIL to be free.
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
