// A stand-in for cuDNN, for tests with the stand-in for NVIDIA's driver. It rejects what the
// documentation forbids and prints a complaint; everything else is computed by plain loops. Written
// from cuDNN's documentation. The number of output channels chooses what tests need: 13 has no
// algorithm, and 11 fails.

#include <set>

#include "tests/backend/stand_in_conv.h"

const stand_in::RuntimeNames stand_in::kRuntime = {"WICK_CUDA_LIBRARY", "cuStreamSynchronize",
                                                   "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                                                   nullptr};

namespace {

using namespace stand_in;

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1001,
  kBadParameter = 2000,
  kNotSupported = 3000,
  kExecutionFailed = 5000,
};
constexpr int kDefaultMath = 0, kTensorOpMath = 1, kFmaMath = 3;
enum Setting : size_t { kMath = 0 };

struct Performance {
  int algorithm;
  int status;
  float milliseconds;
  size_t workspace_bytes;
  int deterministic;
  int math;
  int reserved[3];
};

struct Handle {
  bool has_stream = false;
  void* stream = nullptr;
  std::set<std::pair<ProblemKey, int>> offered;
};
std::map<void*, Handle> handles;

/// The results of the heuristics, the fastest first: Winograd, one that fails, one that isn't
/// deterministic, one with a workspace that is too large, and two gemms.
std::vector<Performance> results_of(const Problem& p) {
  if (p.w.size[0] == 13) return {};
  const int math = p.convolution.settings[kMath];
  const auto row = [&](int algorithm, int status, size_t bytes, int deterministic) {
    return Performance{algorithm, status, 0.1f, bytes, deterministic, math, {}};
  };
  if (p.form == Form::forward) {
    return {row(6, 0, 0, 1), row(3, kNotSupported, 0, 1), row(2, 0, size_t{1} << 40, 1),
            row(1, 0, 10'001, 1), row(0, 0, 0, 1)};
  }
  return {row(p.form == Form::input ? 4 : 5, 0, 0, 1), row(0, 0, 0, 0), row(1, 0, 10'001, 1)};
}

bool find(void* handle, Form form, void* a, void* b, void* convolution, void* c, Handle*& h,
          Problem& p, const char* function) {
  const auto at = handles.find(handle);
  if (at == handles.end()) {
    complain(0, function, "a handle that isn't there or was destroyed");
    return false;
  }
  h = &at->second;
  void* const x = form == Form::input ? c : a;
  void* const w = form == Form::forward ? b : form == Form::input ? a : c;
  void* const y = form == Form::forward ? c : b;
  return find_problem(form, x, w, y, convolution, p, function);
}

int choose(void* handle, Form form, void* a, void* b, void* convolution, void* c, int wanted,
           int* number, Performance* results) {
  constexpr const char* kName = "GetAlgorithm_v7";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (wanted < 1 || number == nullptr || results == nullptr ||
      !find(handle, form, a, b, convolution, c, h, p, kName)) {
    return kBadParameter;
  }
  ++asked;
  const std::vector<Performance> all = results_of(p);
  *number = std::min(wanted, static_cast<int>(all.size()));
  for (int i = 0; i < *number; ++i) {
    results[i] = all[static_cast<size_t>(i)];
    if (results[i].status == 0) h->offered.insert({p.key(), results[i].algorithm});
  }
  return all.empty() ? kNotSupported : kSuccess;
}

size_t workspace_of(const Problem& p, int algorithm) {
  for (const Performance& result : results_of(p)) {
    if (result.algorithm == algorithm && result.status == 0) return result.workspace_bytes;
  }
  return 0;
}

int workspace(void* handle, Form form, void* a, void* b, void* convolution, void* c, int algorithm,
              size_t* bytes) {
  constexpr const char* kName = "GetWorkspaceSize";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (bytes == nullptr || !find(handle, form, a, b, convolution, c, h, p, kName)) {
    return kBadParameter;
  }
  *bytes = workspace_of(p, algorithm);
  return kSuccess;
}

int run(void* handle, Form form, const void* alpha, void* a, const void* a_data, void* b,
        const void* b_data, void* convolution, int algorithm, void* workspace, size_t bytes,
        const void* beta, void* c, void* c_data) {
  constexpr const char* kName = "Convolution";
  std::lock_guard lock(conv_mutex);
  Handle* h = nullptr;
  Problem p;
  if (!find(handle, form, a, b, convolution, c, h, p, kName)) return kBadParameter;
  if (!h->has_stream) return complain(kBadParameter, kName, "no stream was set");
  if (!h->offered.contains({p.key(), algorithm})) {
    return complain(kBadParameter, kName, "an algorithm that wasn't offered");
  }
  if (alpha == nullptr || beta == nullptr || a_data == nullptr || b_data == nullptr ||
      c_data == nullptr) {
    return complain(kBadParameter, kName, "a pointer is null");
  }
  if (!are_aligned(a_data, b_data, c_data)) {
    return complain(kBadParameter, kName, "an operand isn't aligned to 16 bytes");
  }
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
    return complain(kBadParameter, kName, "the stand-in wants alpha = 1 and beta = 0");
  }
  if (bytes < workspace_of(p, algorithm) || (workspace == nullptr && bytes != 0)) {
    return complain(kBadParameter, kName, "the workspace is too small");
  }
  if (bytes != 0 && !use_workspace(workspace, bytes, h->stream)) {
    return complain(kBadParameter, kName, "the workspace isn't on the device");
  }
  if (p.w.size[0] == 11) return kExecutionFailed;
  // TF32, Winograd and sums by atomics have larger errors than the class permits.
  const bool tf32 = p.x.type == Type::f32 && p.convolution.settings[kMath] != kFmaMath;
  const bool is_gemm = form == Form::forward ? algorithm <= 2 : algorithm == 1;
  const int cut = tf32 ? 13 : is_gemm ? 0 : 15;
  void *const first = const_cast<void*>(a_data), *const second = const_cast<void*>(b_data);
  void* const x = form == Form::input ? c_data : first;
  void* const w = form == Form::forward ? second : form == Form::input ? first : c_data;
  void* const y = form == Form::forward ? c_data : second;
  const bool done = convolve(p, x, w, y, h->stream, [&](double value) {
    return cut == 0 ? value : shortened(value, cut);
  });
  if (!done) return complain(kBadParameter, kName, "not all of a tensor is on the device");
  ++computed;
  return kSuccess;
}

bool type_of(int number, Type& type) {
  type = number == 0 ? Type::f32 : number == 2 ? Type::f16 : Type::bf16;
  return number == 0 || number == 2 || number == 9;
}

}  // namespace

WICK_STAND_IN size_t cudnnGetVersion() { return 91'002; }
WICK_STAND_IN const char* cudnnGetErrorString(int status) {
  return status == kExecutionFailed ? "CUDNN_STATUS_EXECUTION_FAILED" : "another error";
}

WICK_STAND_IN int cudnnCreate(void** handle) {
  return make_object(handles, handle, kBadParameter, "Create");
}
WICK_STAND_IN int cudnnDestroy(void* handle) {
  if (const int code = destroy_object(handles, handle, kNotInitialized, "Destroy")) return code;
  std::lock_guard lock(conv_mutex);
  if (handles.empty() && tensors.size() + convolutions.size() != 0) {
    return complain(kBadParameter, "Destroy", "descriptors are left");
  }
  return kSuccess;
}
WICK_STAND_IN int cudnnSetStream(void* handle, void* stream) {
  return set_object(handles, handle, kNotInitialized, "SetStream", [&](Handle& h) {
    h.has_stream = true;
    h.stream = stream;
    return stream != nullptr;
  });
}

WICK_STAND_IN int cudnnCreateTensorDescriptor(void** tensor) {
  return make_object(tensors, tensor, kBadParameter, "CreateTensorDescriptor");
}
WICK_STAND_IN int cudnnDestroyTensorDescriptor(void* tensor) {
  return destroy_object(tensors, tensor, kBadParameter, "DestroyTensorDescriptor");
}
WICK_STAND_IN int cudnnSetTensor4dDescriptorEx(void* tensor, int type, int n, int c, int h, int w,
                                               int n_stride, int c_stride, int h_stride,
                                               int w_stride) {
  return set_object(tensors, tensor, kBadParameter, "SetTensor4dDescriptorEx", [&](Tensor& t) {
    t = {true, Type::f32, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride}};
    return type_of(type, t.type);
  });
}
WICK_STAND_IN int cudnnCreateFilterDescriptor(void** filters) {
  return make_object(tensors, filters, kBadParameter, "CreateFilterDescriptor");
}
WICK_STAND_IN int cudnnDestroyFilterDescriptor(void* filters) {
  return destroy_object(tensors, filters, kBadParameter, "DestroyFilterDescriptor");
}
WICK_STAND_IN int cudnnSetFilter4dDescriptor(void* filters, int type, int format, int o, int c,
                                             int h, int w) {
  return set_object(tensors, filters, kBadParameter, "SetFilter4dDescriptor", [&](Tensor& t) {
    t = {true, Type::f32, {o, c, h, w}, {}};
    const int64_t area = int64_t{h} * w;
    if (format == 0) t.stride = {c * area, area, w, 1};
    if (format == 1) t.stride = {c * area, 1, int64_t{w} * c, c};
    return type_of(type, t.type) && (format == 0 || format == 1);
  });
}

WICK_STAND_IN int cudnnCreateConvolutionDescriptor(void** convolution) {
  return make_object(convolutions, convolution, kBadParameter, "CreateConvolutionDescriptor");
}
WICK_STAND_IN int cudnnDestroyConvolutionDescriptor(void* convolution) {
  return destroy_object(convolutions, convolution, kBadParameter, "DestroyConvolutionDescriptor");
}
WICK_STAND_IN int cudnnSetConvolution2dDescriptor(void* convolution, int pad_h, int pad_w,
                                                  int stride_h, int stride_w, int dilation_h,
                                                  int dilation_w, int mode, int compute_type) {
  return set_object(convolutions, convolution, kBadParameter, "SetConvolution2dDescriptor",
                    [&](Convolution& c) {
                      c = {true, {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w},
                           1,    {kDefaultMath}};
                      return mode == 1 && compute_type == 0;
                    });
}
WICK_STAND_IN int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  return set_object(convolutions, convolution, kBadParameter, "SetConvolutionGroupCount",
                    [&](Convolution& c) {
                      c.groups = groups;
                      return c.set && groups >= 1;
                    });
}
WICK_STAND_IN int cudnnSetConvolutionMathType(void* convolution, int math) {
  return set_object(convolutions, convolution, kBadParameter, "SetConvolutionMathType",
                    [&](Convolution& c) {
                      c.settings[kMath] = math;
                      return c.set && math >= kDefaultMath && math <= kFmaMath && math != 2;
                    });
}

#define WICK_STAND_IN_FORM(name, form)                                                            \
  WICK_STAND_IN int cudnnGetConvolution##name##Algorithm_v7(                                      \
      void* handle, void* a, void* b, void* convolution, void* c, int wanted, int* number,        \
      Performance* results) {                                                                     \
    return choose(handle, form, a, b, convolution, c, wanted, number, results);                   \
  }                                                                                               \
  WICK_STAND_IN int cudnnGetConvolution##name##WorkspaceSize(                                     \
      void* handle, void* a, void* b, void* convolution, void* c, int algorithm, size_t* bytes) { \
    return workspace(handle, form, a, b, convolution, c, algorithm, bytes);                       \
  }                                                                                               \
  WICK_STAND_IN int cudnnConvolution##name(                                                       \
      void* handle, const void* alpha, void* a, const void* a_data, void* b, const void* b_data,  \
      void* convolution, int algorithm, void* memory, size_t bytes, const void* beta, void* c,    \
      void* c_data) {                                                                             \
    return run(handle, form, alpha, a, a_data, b, b_data, convolution, algorithm, memory, bytes,  \
               beta, c, c_data);                                                                  \
  }
WICK_STAND_IN_FORM(Forward, Form::forward)
WICK_STAND_IN_FORM(BackwardData, Form::input)
WICK_STAND_IN_FORM(BackwardFilter, Form::weight)
