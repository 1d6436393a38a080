// A stand-in for MIOpen, for tests on the software AMD GPU. It rejects what the documentation
// forbids and prints a complaint; everything else is computed by plain loops. Written from MIOpen's
// API reference. The number of output channels chooses what tests need: 13 has no solution, 11
// fails, and 17 is slow.

#include <chrono>
#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "tests/backend/stand_in_conv.h"

const stand_in::RuntimeNames stand_in::kRuntime = {"WICK_HIP_LIBRARY", "hipStreamSynchronize",
                                                   "hipMemcpyDtoHAsync", "hipMemcpyHtoDAsync",
                                                   "hipGetDevice"};

namespace {

using namespace stand_in;

enum Status : int { kSuccess = 0, kNotInitialized = 1, kBadParameter = 3, kInternalError = 5 };
enum Setting : size_t { kF16Alternative = 0, kDeterministic = 1 };
constexpr int kUnset = -1;

struct Solution {
  float milliseconds;
  size_t workspace_bytes;
  uint64_t id;
  int algorithm;
};
enum Algorithm : int { kGemm = 0, kDirect = 1, kWinograd = 3 };
/// Solutions in the order of their estimated time. The first isn't deterministic.
constexpr Solution kSolutions[] = {{0.01f, 0, 3, kDirect},
                                   {0.02f, 0, 7, kWinograd},
                                   {0.03f, size_t{1} << 40, 11, kGemm},
                                   {0.04f, 10'001, 13, kGemm},
                                   {0.05f, 0, 17, kDirect}};

struct Handle {
  int device = -1;
  void* stream = nullptr;
  std::set<ProblemKey> counted;
  std::set<std::pair<ProblemKey, uint64_t>> offered, compiled;
};
std::map<void*, Handle> handles;

/// A function of the runtime that only this stand-in needs.
template <class F>
F* runtime_function(const char* name) {
  void* const library = dlopen(std::getenv(kRuntime.variable), RTLD_NOW);
  return reinterpret_cast<F*>(dlsym(library, name));
}

bool is_capturing(void* stream) {
  static auto* const function = runtime_function<int(void*, int*)>("hipStreamIsCapturing");
  int status = 0;
  return function(stream, &status) == 0 && status != 0;
}

/// Adds work to the graph that a stream captures.
bool add_to_graph(void* stream, std::function<void()> work) {
  static auto* const function =
      runtime_function<int(void*, void (*)(void*), void*)>("hipLaunchHostFunc");
  static std::deque<std::function<void()>> all;  // graphs may run at any time
  all.push_back(std::move(work));
  const auto call = [](void* data) {
    std::lock_guard lock(conv_mutex);
    in_graph = true;
    (*static_cast<std::function<void()>*>(data))();
    in_graph = false;
  };
  return function(stream, call, &all.back()) == 0;
}

/// Finds the handle and the problem of a call. a, b and c are the arguments' descriptors in their
/// order.
bool find(void* handle, Form form, void* a, void* b, void* convolution, void* c, Handle*& h,
          Problem& p, const char* function) {
  const auto at = handles.find(handle);
  if (at == handles.end()) {
    complain(0, function, "a handle that isn't there or was destroyed");
    return false;
  }
  h = &at->second;
  if (h->device != current_device()) {
    complain(0, function, "the handle is another device's");
    return false;
  }
  is_capturing(h->stream);  // the runtime complains if the stream was destroyed
  void* const x = form == Form::input ? c : b;
  void* const w = form == Form::forward ? a : form == Form::input ? b : c;
  void* const y = form == Form::forward ? c : a;
  return find_problem(form, x, w, y, convolution, p, function);
}

std::vector<Solution> solutions_of(const Problem& p) {
  if (p.w.size[0] == 13) return {};
  std::vector<Solution> all(std::begin(kSolutions), std::end(kSolutions));
  if (p.convolution.settings[kDeterministic] == 1) all.erase(all.begin());
  return all;
}

int count(void* handle, Form form, void* a, void* b, void* convolution, void* c, size_t* number) {
  constexpr const char* kName = "GetSolutionCount";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (number == nullptr || !find(handle, form, a, b, convolution, c, h, p, kName)) {
    return kBadParameter;
  }
  h->counted.insert(p.key());
  *number = solutions_of(p).size();
  return kSuccess;
}

int choose(void* handle, Form form, void* a, void* b, void* convolution, void* c, size_t most,
           size_t* number, Solution* solutions) {
  constexpr const char* kName = "GetSolution";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (number == nullptr || solutions == nullptr ||
      !find(handle, form, a, b, convolution, c, h, p, kName)) {
    return kBadParameter;
  }
  if (!h->counted.contains(p.key())) {
    return complain(kBadParameter, kName, "solutions weren't counted before");
  }
  ++asked;
  const std::vector<Solution> all = solutions_of(p);
  *number = std::min(most, all.size());
  for (size_t i = 0; i < *number; ++i) {
    solutions[i] = all[i];
    h->offered.insert({p.key(), all[i].id});
  }
  return kSuccess;
}

int compile(void* handle, Form form, void* a, void* b, void* convolution, void* c, uint64_t id) {
  constexpr const char* kName = "CompileSolution";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (!find(handle, form, a, b, convolution, c, h, p, kName)) return kBadParameter;
  if (!h->offered.contains({p.key(), id})) {
    return complain(kBadParameter, kName, "a solution that wasn't offered");
  }
  h->compiled.insert({p.key(), id});
  return kSuccess;
}

int run(void* handle, Form form, void* a, const void* a_data, void* b, const void* b_data,
        void* convolution, void* c, void* c_data, void* workspace, size_t bytes, uint64_t id) {
  constexpr const char* kName = "Immediate";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (!find(handle, form, a, b, convolution, c, h, p, kName)) return kBadParameter;
  if (!h->compiled.contains({p.key(), id})) {
    return complain(kBadParameter, kName, "a solution that wasn't compiled");
  }
  if (a_data == nullptr || b_data == nullptr || c_data == nullptr) {
    return complain(kBadParameter, kName, "a pointer is null");
  }
  if (!are_aligned(a_data, b_data, c_data)) {
    return complain(kBadParameter, kName, "an operand isn't aligned to 16 bytes");
  }
  size_t wanted = 0;
  for (const Solution& solution : kSolutions) {
    if (solution.id == id) wanted = solution.workspace_bytes;
  }
  if (bytes < wanted || (workspace == nullptr && bytes != 0)) {
    return complain(kBadParameter, kName, "the workspace is too small");
  }
  const bool capturing = is_capturing(h->stream);
  if (bytes != 0 && !capturing && !use_workspace(workspace, bytes, h->stream)) {
    return complain(kBadParameter, kName, "the workspace isn't on the device");
  }
  if (p.w.size[0] == 11) return kInternalError;
  if (p.w.size[0] == 17) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  // Winograd and the f16 of gfx90a's alternative have larger errors than the class permits.
  const bool f16_in_bf16 = p.x.type == Type::f16 && p.convolution.settings[kF16Alternative] != 0 &&
                           form != Form::forward;
  // Gradients by GEMM round what they add to the operands' type.
  const bool rounds_sums = id == 13 && p.x.type != Type::f32 && form != Form::forward;
  const int cut = rounds_sums ? 17 : f16_in_bf16 ? 16 : id == 7 || id == 3 ? 14 : 0;
  void *const first = const_cast<void*>(a_data), *const second = const_cast<void*>(b_data);
  void* const x = form == Form::input ? c_data : second;
  void* const w = form == Form::forward ? first : form == Form::input ? second : c_data;
  void* const y = form == Form::forward ? c_data : first;
  const auto compute = [=, stream = h->stream] {
    ++computed;
    return convolve(p, x, w, y, stream,
                    [=](double value) { return cut == 0 ? value : shortened(value, cut); });
  };
  const bool done = capturing ? add_to_graph(h->stream, compute) : compute();
  if (!done) return complain(kBadParameter, kName, "not all of a tensor is on the device");
  return kSuccess;
}

}  // namespace

WICK_STAND_IN int miopenGetVersion(size_t* major, size_t* minor, size_t* patch) {
  *major = 3, *minor = 4, *patch = 1;
  return kSuccess;
}
WICK_STAND_IN const char* miopenGetErrorString(int status) {
  return status == kInternalError ? "miopenStatusInternalError" : "another error";
}
/// MIOpen is linked with rocBLAS, which exports this function.
WICK_STAND_IN int rocblas_create_handle(void**) {
  return complain(1, "rocblas_create_handle", "isn't for callers of MIOpen");
}

WICK_STAND_IN int miopenCreateWithStream(void** handle, void* stream) {
  if (stream == nullptr) return complain(kBadParameter, "CreateWithStream", "the stream is null");
  if (const int code = make_object(handles, handle, kBadParameter, "CreateWithStream")) return code;
  std::lock_guard lock(conv_mutex);
  handles[*handle].device = current_device();
  handles[*handle].stream = stream;
  return kSuccess;
}
WICK_STAND_IN int miopenDestroy(void* handle) {
  if (const int code = destroy_object(handles, handle, kNotInitialized, "Destroy")) return code;
  std::lock_guard lock(conv_mutex);
  if (handles.empty() && tensors.size() + convolutions.size() != 0) {
    return complain(kBadParameter, "Destroy", "descriptors are left");
  }
  return kSuccess;
}
WICK_STAND_IN int miopenSetStream(void* handle, void* stream) {
  return set_object(handles, handle, kNotInitialized, "SetStream", [&](Handle& h) {
    is_capturing(h.stream);
    h.stream = stream;
    return stream != nullptr;
  });
}

WICK_STAND_IN int miopenCreateTensorDescriptor(void** tensor) {
  return make_object(tensors, tensor, kBadParameter, "CreateTensorDescriptor");
}
WICK_STAND_IN int miopenDestroyTensorDescriptor(void* tensor) {
  return destroy_object(tensors, tensor, kBadParameter, "DestroyTensorDescriptor");
}
WICK_STAND_IN int miopenSet4dTensorDescriptorEx(void* tensor, int type, int n, int c, int h, int w,
                                                int n_stride, int c_stride, int h_stride,
                                                int w_stride) {
  return set_object(tensors, tensor, kBadParameter, "Set4dTensorDescriptorEx", [&](Tensor& t) {
    t = {true,
         type == 1   ? Type::f32
         : type == 0 ? Type::f16
                     : Type::bf16,
         {n, c, h, w},
         {n_stride, c_stride, h_stride, w_stride}};
    return type == 0 || type == 1 || type == 5;
  });
}

WICK_STAND_IN int miopenCreateConvolutionDescriptor(void** convolution) {
  return make_object(convolutions, convolution, kBadParameter, "CreateConvolutionDescriptor");
}
WICK_STAND_IN int miopenDestroyConvolutionDescriptor(void* convolution) {
  return destroy_object(convolutions, convolution, kBadParameter, "DestroyConvolutionDescriptor");
}
WICK_STAND_IN int miopenInitConvolutionDescriptor(void* convolution, int mode, int pad_h, int pad_w,
                                                  int stride_h, int stride_w, int dilation_h,
                                                  int dilation_w) {
  return set_object(convolutions, convolution, kBadParameter, "InitConvolutionDescriptor",
                    [&](Convolution& c) {
                      c = {true, {pad_h, pad_w},  {stride_h, stride_w}, {dilation_h, dilation_w},
                           1,    {kUnset, kUnset}};
                      return mode == 0;
                    });
}
WICK_STAND_IN int miopenSetConvolutionGroupCount(void* convolution, int groups) {
  return set_object(convolutions, convolution, kBadParameter, "SetConvolutionGroupCount",
                    [&](Convolution& c) {
                      c.groups = groups;
                      return c.set && groups >= 1;
                    });
}
WICK_STAND_IN int miopenSetConvolutionAttribute(void* convolution, int attribute, int value) {
  return set_object(convolutions, convolution, kBadParameter, "SetConvolutionAttribute",
                    [&](Convolution& c) {
                      if (!c.set || attribute < 0 || attribute > 1) return false;
                      c.settings[static_cast<size_t>(attribute)] = value;
                      return value >= -1 && value <= 1;
                    });
}

#define WICK_STAND_IN_FORM(name, form)                                                            \
  WICK_STAND_IN int miopenConvolution##name##GetSolutionCount(                                    \
      void* handle, void* a, void* b, void* convolution, void* c, size_t* number) {               \
    return count(handle, form, a, b, convolution, c, number);                                     \
  }                                                                                               \
  WICK_STAND_IN int miopenConvolution##name##GetSolution(void* handle, void* a, void* b,          \
                                                         void* convolution, void* c, size_t most, \
                                                         size_t* number, Solution* solutions) {   \
    return choose(handle, form, a, b, convolution, c, most, number, solutions);                   \
  }                                                                                               \
  WICK_STAND_IN int miopenConvolution##name##CompileSolution(                                     \
      void* handle, void* a, void* b, void* convolution, void* c, uint64_t id) {                  \
    return compile(handle, form, a, b, convolution, c, id);                                       \
  }                                                                                               \
  WICK_STAND_IN int miopenConvolution##name##Immediate(                                           \
      void* handle, void* a, const void* a_data, void* b, const void* b_data, void* convolution,  \
      void* c, void* c_data, void* workspace, size_t bytes, uint64_t id) {                        \
    return run(handle, form, a, a_data, b, b_data, convolution, c, c_data, workspace, bytes, id); \
  }
WICK_STAND_IN_FORM(Forward, Form::forward)
WICK_STAND_IN_FORM(BackwardData, Form::input)
WICK_STAND_IN_FORM(BackwardWeights, Form::weight)
