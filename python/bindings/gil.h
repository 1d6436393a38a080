#pragma once

// Letting the GIL go and taking it. Before Python 3.14 a thread that asks for the GIL while the
// interpreter ends is ended by pthread_exit, which unwinds its stack; C++ functions that are
// noexcept or catch everything then end the whole process. What stands here lets such a thread wait
// for the process to end, as later versions of Python do.

#include <Python.h>
#include <unistd.h>

namespace wick::python {

/// Never returns if it is destroyed before pass().
class WaitsForEver {
 public:
  ~WaitsForEver() {
    while (!passed_) ::pause();
  }
  void pass() { passed_ = true; }

 private:
  bool passed_ = false;
};

/// Other threads of Python run while it lives. The thread has the GIL before and after.
class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ~ReleasedGil() noexcept(false) {  // a forced unwinding may begin here, and gets no further
    WaitsForEver otherwise;
    PyEval_RestoreThread(state_);
    otherwise.pass();
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* state_;
};

/// The thread, whichever it is, has the GIL while it lives.
class HeldGil {
 public:
  HeldGil() {
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
