#pragma once

// Releasing and acquiring the GIL. Before Python 3.14, a thread that requests the GIL while the
// interpreter is finalised is ended by pthread_exit, which unwinds its stack; if that reaches a C++
// function that is noexcept or catches everything, the process terminates. These classes let such a
// thread wait until the process ends, as later Python versions do.

#include <Python.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>

namespace wick::python {

/// The destructor blocks forever if pass() hasn't been called.
class WaitsForEver {
 public:
  ~WaitsForEver() {
    while (!passed_) ::pause();
  }
  void pass() { passed_ = true; }

 private:
  bool passed_ = false;
};

/// The number of threads that run wick's code without the GIL. It is read and written with the GIL.
inline int64_t threads_without_gil = 0;

/// Releases the GIL during its lifetime. The thread must hold the GIL before.
class ReleasedGil {
 public:
  ReleasedGil() {
    ++threads_without_gil;
    state_ = PyEval_SaveThread();
  }
  ~ReleasedGil() noexcept(false) {  // forced unwinding may start here and stops in `otherwise`
    WaitsForEver otherwise;
    PyEval_RestoreThread(state_);
    otherwise.pass();
    --threads_without_gil;
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Whether the interpreter is being finalised by another thread, which is the main one. It then may
/// have deleted the states of all threads, and PyGILState_Ensure would crash.
inline bool is_ended_elsewhere() {
  // By name: the stable ABI has the function from Python 3.13 on, and before it had an underscore.
  static const auto is_finalizing = [] {
    void* const found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    return reinterpret_cast<int (*)()>(found != nullptr ? found
                                                        : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
  }();
  return is_finalizing() != 0 && ::gettid() != ::getpid();
}

/// Acquires the GIL on any thread during its lifetime.
class HeldGil {
 public:
  HeldGil() {
    while (is_ended_elsewhere()) ::pause();
    WaitsForEver otherwise;
    state_ = PyGILState_Ensure();
    otherwise.pass();
  }
  ~HeldGil() { PyGILState_Release(state_); }
  HeldGil(const HeldGil&) = delete;
  HeldGil& operator=(const HeldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace wick::python
