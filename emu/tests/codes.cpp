// Prints the error codes that a HIP runtime gives for calls that can't succeed, or only seem to:
//   emu_codes libamdhip64.so.6
//   emu_codes libamdhip64.so.7 7    also of functions that HIP 6.4 lacks
// emu/tests/codes.txt and codes7.txt have what AMD's runtimes give. tools/real_rocm.py runs the
// program on them, and tests on the emulator.

#include "emu/tests/codes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

void* library;

namespace {

void destroyed_streams() {
  hipStream_t stream;
  HIP(hipStreamCreate)(&stream);
  HIP(hipStreamDestroy)(stream);
  say("hipStreamSynchronize of a destroyed stream", HIP(hipStreamSynchronize)(stream));
  say("hipStreamQuery of a destroyed stream", HIP(hipStreamQuery)(stream));
  say("hipStreamDestroy of a destroyed stream", HIP(hipStreamDestroy)(stream));
  unsigned flags = 0;
  say("hipStreamGetFlags of a destroyed stream", HIP(hipStreamGetFlags)(stream, &flags));
}

/// Events of kernels that the stream hasn't ended. A host function holds it up.
void not_ready() {
  static volatile bool go = false;
  hipStream_t stream;
  hipEvent_t event;
  HIP(hipStreamCreate)(&stream);
  HIP(hipEventCreate)(&event);
  HIP(hipLaunchHostFunc)
  (
      stream,
      [](void*) {
        while (!go) {
        }
      },
      nullptr);
  HIP(hipEventRecord)(event, stream);
  say_both("hipEventQuery of an event that hasn't happened", HIP(hipEventQuery)(event));
  say_both("hipStreamQuery of a stream with work", HIP(hipStreamQuery)(stream));
  go = true;
  HIP(hipStreamSynchronize)(stream);
  HIP(hipEventDestroy)(event);
  HIP(hipStreamDestroy)(stream);
}

void captures() {
  hipStream_t stream;
  hipEvent_t event;
  hipGraph_t graph = nullptr;
  void* memory = nullptr;
  HIP(hipStreamCreate)(&stream);
  HIP(hipEventCreate)(&event);
  HIP(hipMalloc)(&memory, 4096);
  const auto end = [&](const char* what, hipStream_t of) {
    say(what, HIP(hipStreamEndCapture)(of, &graph));
    if (graph != nullptr) HIP(hipGraphDestroy)(graph);
    graph = nullptr;
    (void)HIP(hipGetLastError)();
  };
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeGlobal);
  say("hipStreamSynchronize in a capture", HIP(hipStreamSynchronize)(stream));
  end("hipStreamEndCapture after it", stream);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeGlobal);
  say("hipStreamQuery in a capture", HIP(hipStreamQuery)(stream));
  end("hipStreamEndCapture after it", stream);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeGlobal);
  say("hipFree in a global capture", HIP(hipFree)(memory));
  end("hipStreamEndCapture after it", stream);
  HIP(hipMalloc)(&memory, 4096);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeGlobal);
  void* more = nullptr;
  say("hipMalloc in a global capture", HIP(hipMalloc)(&more, 4096));
  end("hipStreamEndCapture after it", stream);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeRelaxed);
  say("hipMalloc in a relaxed capture", HIP(hipMalloc)(&more, 4096));
  say("hipFree in a relaxed capture", HIP(hipFree)(more));
  end("hipStreamEndCapture after it", stream);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeRelaxed);
  HIP(hipEventRecord)(event, stream);
  say("hipEventQuery of a captured event", HIP(hipEventQuery)(event));
  end("hipStreamEndCapture after it", stream);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeRelaxed);
  HIP(hipEventRecord)(event, stream);
  say("hipEventSynchronize of a captured event", HIP(hipEventSynchronize)(event));
  end("hipStreamEndCapture after it", stream);
}

/// Events of one capture in another one, and streams that don't join their capture.
void captures_across() {
  hipStream_t stream, other;
  hipEvent_t event;
  hipGraph_t graph = nullptr;
  HIP(hipStreamCreate)(&stream);
  HIP(hipStreamCreate)(&other);
  HIP(hipEventCreate)(&event);
  HIP(hipStreamBeginCapture)(stream, hipStreamCaptureModeRelaxed);
  HIP(hipEventRecord)(event, stream);
  HIP(hipStreamBeginCapture)(other, hipStreamCaptureModeRelaxed);
  say("hipStreamWaitEvent across captures", HIP(hipStreamWaitEvent)(other, event, 0));
  say("hipStreamEndCapture of the waiting stream", HIP(hipStreamEndCapture)(other, &graph));
  say("hipStreamEndCapture of the other stream", HIP(hipStreamEndCapture)(stream, &graph));
}

void contexts() {
  hipCtx_t context = nullptr;
  say("hipCtxCreate", HIP(hipCtxCreate)(&context, 0, 0));
  int version = 0;
  say("hipCtxGetApiVersion", HIP(hipCtxGetApiVersion)(context, &version));
  hipFuncCache_t cache;
  say("hipCtxGetCacheConfig", HIP(hipCtxGetCacheConfig)(&cache));
  say("hipCtxSetCacheConfig", HIP(hipCtxSetCacheConfig)(hipFuncCache_t{}));
  hipSharedMemConfig config;
  say("hipCtxGetSharedMemConfig", HIP(hipCtxGetSharedMemConfig)(&config));
  say("hipCtxSetSharedMemConfig", HIP(hipCtxSetSharedMemConfig)(hipSharedMemConfig{}));
  say("hipCtxSynchronize", HIP(hipCtxSynchronize)());
  unsigned flags = 0;
  say("hipCtxGetFlags", HIP(hipCtxGetFlags)(&flags));
  say("hipCtxEnablePeerAccess", HIP(hipCtxEnablePeerAccess)(context, 0));
  say("hipCtxDisablePeerAccess", HIP(hipCtxDisablePeerAccess)(context));
  say("hipCtxDestroy", HIP(hipCtxDestroy)(context));
}

void memory() {
  void* none = nullptr;
  int on_host = 0;
  say("hipMalloc of 0 bytes", HIP(hipMalloc)(&none, 0));
  say("hipMalloc without a pointer", HIP(hipMalloc)(nullptr, 16));
  say("hipFree of null", HIP(hipFree)(nullptr));
  say("hipFree of host memory", HIP(hipFree)(&on_host));
  say("hipHostFree of host memory", HIP(hipHostFree)(&on_host));
  hipPointerAttribute_t attributes;
  say("hipPointerGetAttributes of host memory",
      HIP(hipPointerGetAttributes)(&attributes, &on_host));
  std::printf("  its type: %d\n", static_cast<int>(attributes.type));
  say("hipPointerGetAttributes of null", HIP(hipPointerGetAttributes)(&attributes, nullptr));
  void* device = nullptr;
  HIP(hipMalloc)(&device, 4096);
  say("hipMemcpy of 0 bytes", HIP(hipMemcpy)(device, &on_host, 0, hipMemcpyHostToDevice));
  say("hipMemcpy in no direction",
      HIP(hipMemcpy)(device, &on_host, 4, static_cast<hipMemcpyKind>(77)));
  say("hipMemset of null", HIP(hipMemset)(nullptr, 0, 16));
  HIP(hipFree)(device);
  say("hipFree of freed memory", HIP(hipFree)(device));
}

void events() {
  hipEvent_t event;
  HIP(hipEventCreate)(&event);
  say_both("hipEventQuery of an event that wasn't recorded", HIP(hipEventQuery)(event));
  float ms = 0;
  say("hipEventElapsedTime of such events", HIP(hipEventElapsedTime)(&ms, event, event));
  HIP(hipEventDestroy)(event);
  say("hipEventDestroy of null", HIP(hipEventDestroy)(nullptr));
}

void others() {
  int device = 0;
  say("hipSetDevice of no device", HIP(hipSetDevice)(99));
  say("hipGetDevice without a pointer", HIP(hipGetDevice)(nullptr));
  say("hipDeviceGetAttribute of no attribute",
      HIP(hipDeviceGetAttribute)(&device, static_cast<hipDeviceAttribute_t>(9999), 0));
  hipModule_t module = nullptr;
  say("hipModuleLoadData of no code",
      HIP(hipModuleLoadData)(&module, "no code at all, but long enough to look at"));
  say("hipModuleLoad of no file", HIP(hipModuleLoad)(&module, "/none/at/all"));
  say("hipModuleUnload of null", HIP(hipModuleUnload)(nullptr));
  say("hipLaunchKernel of an unknown function",
      HIP(hipLaunchKernel)(&device, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr));
}

/// Runs a section in a process of its own, since some runtimes crash in some of them.
void run(const char* file, void (*section)()) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    library = dlopen(file, RTLD_NOW);
    if (library == nullptr) {
      std::printf("%s\n", dlerror());
    } else {
      HIP(hipInit)(0);
      section();
    }
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("signal %d ended the process\n", WTERMSIG(status));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2 || count > 3 || (count == 3 && std::strcmp(arguments[2], "7") != 0)) {
    std::fprintf(stderr, "emu_codes LIBRARY [7]\n");
    return 2;
  }
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const bool seven = count == 3;
  std::vector<void (*)()> sections = {not_ready, captures, captures_across,
                                      contexts,  memory,   events};
  if (!seven) {  // HIP 7.2.4 crashes in these
    sections.insert(sections.begin(), destroyed_streams);
    sections.push_back(others);
  }
  for (void (*section)() : sections_of_6()) sections.push_back(section);
  if (seven) {
    for (void (*section)() : sections_of_7()) sections.push_back(section);
  }
  for (void (*section)() : sections) run(arguments[1], section);
  return 0;
}
