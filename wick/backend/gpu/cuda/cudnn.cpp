// cuDNN: names of functions, values of constants, and the choice of algorithms. Source: cuDNN's
// documentation, 9.0 and later, of the calls with descriptors.

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {
namespace {

enum Number : int {
  kF32 = 0,
  kF16 = 2,
  kBf16 = 9,
  kChannelsOuter = 0,
  kChannelsInner = 1,
  kCrossCorrelation = 1,
  kTensorOpMath = 1,
  kDefaultMath = 0,  // f32 may be TF32
  kFmaMath = 3,      // f32 without TF32
  kDeterministic = 1,
};

/// A result of the heuristics.
struct Performance {
  int algorithm;
  int status;
  float milliseconds;
  size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};
static_assert(sizeof(Performance) == 48);

/// The functions of a form of convolution. a and b are the operands, c is the result: for forward
/// x, w and y; for the gradient of x w, y and x; for the gradient of w x, y and w.
struct FormFunctions {
  int (*choose)(void* handle, void* a, void* b, void* convolution, void* c, int wanted, int* found,
                Performance* results);
  int (*workspace)(void* handle, void* a, void* b, void* convolution, void* c, int algorithm,
                   size_t* bytes);
  int (*run)(void* handle, const void* alpha, void* a, const void* a_data, void* b,
             const void* b_data, void* convolution, int algorithm, void* workspace, size_t bytes,
             const void* beta, void* c, void* c_data);
};

struct Functions {
  size_t (*version)();
  const char* (*status_text)(int status);
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*image_create)(void** image);
  int (*image_destroy)(void* image);
  int (*image_set)(void* image, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                   int h_stride, int w_stride);
  int (*filters_create)(void** filters);
  int (*filters_destroy)(void* filters);
  int (*filters_set)(void* filters, int type, int format, int o, int c, int h, int w);
  int (*convolution_create)(void** convolution);
  int (*convolution_destroy)(void* convolution);
  int (*convolution_set)(void* convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                         int dilation_h, int dilation_w, int mode, int compute_type);
  int (*set_groups)(void* convolution, int groups);
  int (*set_math)(void* convolution, int math);
  FormFunctions forms[3];
};

/// Whether an algorithm multiplies matrices. The others are FFT and Winograd, whose errors aren't
/// bounded by the sum of the terms' magnitudes, and algorithms that add with atomics.
bool is_gemm(ConvForm form, int algorithm) {
  if (form == ConvForm::forward) return algorithm >= 0 && algorithm <= 2;
  return algorithm == 1;
}

class Cudnn final : public ConvolutionLibrary {
 public:
  Cudnn(const Functions& functions, std::string file)
      : ConvolutionLibrary(DeviceKind::cuda, "cuDNN", std::move(file)), api_(functions) {}

  std::string version() const override {
    const size_t number = api_.version();
    return fmt::format("{}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
  }

 private:
  struct Descriptors final : Plan {
    explicit Descriptors(const Functions& functions) : api(functions) {}
    ~Descriptors() override {
      if (x != nullptr) api.image_destroy(x);
      if (y != nullptr) api.image_destroy(y);
      if (w != nullptr) api.filters_destroy(w);
      if (convolution != nullptr) api.convolution_destroy(convolution);
    }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

    const Functions& api;
    void *x = nullptr, *w = nullptr, *y = nullptr, *convolution = nullptr;
    int algorithm = 0;
  };

  /// The operands a, b and c of a form's functions.
  template <class T>
  struct Operands {
    T a, b, c;
    Operands(ConvForm form, T x, T w, T y)
        : a(form == ConvForm::input ? w : x),
          b(form == ConvForm::forward ? w : y),
          c(form == ConvForm::forward ? y
            : form == ConvForm::input ? x
                                      : w) {}
  };

  class Handle final : public OnDevice {
   public:
    Handle(const Functions& functions, void* handle) : api_(functions), handle_(handle) {}
    ~Handle() override { api_.destroy(handle_); }

    std::unique_ptr<Plan> make_plan(const ConvCall& call) override {
      auto plan = std::make_unique<Descriptors>(api_);
      if (!describe(call, *plan) || !choose(call, *plan)) return nullptr;
      return plan;
    }

    int set_stream(void* stream) override { return api_.set_stream(handle_, stream); }

    int run(const Plan& plan, const ConvCall& call, void* workspace) override {
      const auto& d = static_cast<const Descriptors&>(plan);
      const Operands<void*> of(call.form, d.x, d.w, d.y),
          data(call.form, call.x.data, call.w.data, call.y.data);
      const float one = 1, zero = 0;
      return functions(call).run(handle_, &one, of.a, data.a, of.b, data.b, d.convolution,
                                 d.algorithm, workspace, plan.workspace_bytes, &zero, of.c, data.c);
    }

    std::string text(int status) const override {
      return status_text(api_.status_text(status), status);
    }

   private:
    const FormFunctions& functions(const ConvCall& call) const {
      return api_.forms[static_cast<size_t>(call.form)];
    }

    bool describe_image(void*& image, const Shape& s, int type, bool channels_last) const {
      const std::array<int64_t, 4> strides = dense_strides(s, channels_last);
      return api_.image_create(&image) == 0 &&
             api_.image_set(image, type, int_of(s[0]), int_of(s[1]), int_of(s[2]), int_of(s[3]),
                            int_of(strides[0]), int_of(strides[1]), int_of(strides[2]),
                            int_of(strides[3])) == 0;
    }

    bool describe(const ConvCall& call, Descriptors& d) const {
      const int type = call.dtype == DType::f32 ? kF32 : call.dtype == DType::f16 ? kF16 : kBf16;
      const Shape& w = call.w.shape;
      const ConvParams& p = call.params;
      return describe_image(d.x, call.x.shape, type, call.channels_last) &&
             describe_image(d.y, call.y.shape, type, call.channels_last) &&
             api_.filters_create(&d.w) == 0 &&
             api_.filters_set(d.w, type, call.channels_last ? kChannelsInner : kChannelsOuter,
                              int_of(w[0]), int_of(w[1]), int_of(w[2]), int_of(w[3])) == 0 &&
             api_.convolution_create(&d.convolution) == 0 &&
             api_.convolution_set(d.convolution, int_of(p.padding[0]), int_of(p.padding[1]),
                                  int_of(p.stride[0]), int_of(p.stride[1]), int_of(p.dilation[0]),
                                  int_of(p.dilation[1]), kCrossCorrelation, kF32) == 0 &&
             api_.set_groups(d.convolution, int_of(p.groups)) == 0 &&
             api_.set_math(d.convolution, call.dtype != DType::f32 ? kTensorOpMath
                                          : call.fast              ? kDefaultMath
                                                                   : kFmaMath) == 0;
    }

    /// Takes the first of the heuristics' results, which are ordered by their estimated time, that
    /// is permitted.
    bool choose(const ConvCall& call, Descriptors& d) const {
      const FormFunctions& form = functions(call);
      const Operands<void*> of(call.form, d.x, d.w, d.y);
      Performance results[16] = {};
      int found = 0;
      if (form.choose(handle_, of.a, of.b, d.convolution, of.c,
                      static_cast<int>(std::size(results)), &found, results) != 0) {
        return false;
      }
      for (int i = 0; i < found; ++i) {
        const Performance& result = results[i];
        if (result.status != 0 || result.determinism != kDeterministic ||
            !is_gemm(call.form, result.algorithm)) {
          continue;
        }
        d.algorithm = result.algorithm;
        if (form.workspace(handle_, of.a, of.b, d.convolution, of.c, d.algorithm,
                           &d.workspace_bytes) == 0 &&
            d.workspace_bytes <= kMostWorkspace) {
          return true;
        }
      }
      return false;
    }

    const Functions& api_;
    void* const handle_;
  };

  std::unique_ptr<OnDevice> prepare(const Gpu& gpu, std::string& reason) override {
    void* handle = nullptr;
    int status = api_.create(&handle);
    if (status == 0) {
      auto made = std::make_unique<Handle>(api_, handle);
      status = made->set_stream(gpu.main_stream());
      if (status == 0) return made;
    }
    reason = status_text(api_.status_text(status), status);
    return nullptr;
  }

  const Functions api_;
};

bool find_functions(const Library& library, Functions& api, std::string& trace) {
  const auto find = [&](auto& function, const char* name) {
    return find_function(library, name, function, trace);
  };
  const auto find_form = [&](FormFunctions& form, const char* choose, const char* workspace,
                             const char* run) {
    return find(form.choose, choose) && find(form.workspace, workspace) && find(form.run, run);
  };
  return find(api.version, "cudnnGetVersion") && find(api.status_text, "cudnnGetErrorString") &&
         find(api.create, "cudnnCreate") && find(api.destroy, "cudnnDestroy") &&
         find(api.set_stream, "cudnnSetStream") &&
         find(api.image_create, "cudnnCreateTensorDescriptor") &&
         find(api.image_destroy, "cudnnDestroyTensorDescriptor") &&
         find(api.image_set, "cudnnSetTensor4dDescriptorEx") &&
         find(api.filters_create, "cudnnCreateFilterDescriptor") &&
         find(api.filters_destroy, "cudnnDestroyFilterDescriptor") &&
         find(api.filters_set, "cudnnSetFilter4dDescriptor") &&
         find(api.convolution_create, "cudnnCreateConvolutionDescriptor") &&
         find(api.convolution_destroy, "cudnnDestroyConvolutionDescriptor") &&
         find(api.convolution_set, "cudnnSetConvolution2dDescriptor") &&
         find(api.set_groups, "cudnnSetConvolutionGroupCount") &&
         find(api.set_math, "cudnnSetConvolutionMathType") &&
         find_form(api.forms[0], "cudnnGetConvolutionForwardAlgorithm_v7",
                   "cudnnGetConvolutionForwardWorkspaceSize", "cudnnConvolutionForward") &&
         find_form(api.forms[1], "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                   "cudnnGetConvolutionBackwardDataWorkspaceSize",
                   "cudnnConvolutionBackwardData") &&
         find_form(api.forms[2], "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                   "cudnnGetConvolutionBackwardFilterWorkspaceSize",
                   "cudnnConvolutionBackwardFilter");
}

/// Opens the library that contains cuDNN's convolutions. libcudnn.so.9 only opens other libraries,
/// and ends the process if one is missing.
bool has_convolutions(const Library& library, std::string& trace) {
  std::vector<std::string> names = {"libcudnn_cnn.so.9"};
  Dl_info where;
  if (dladdr(library.symbol("cudnnCreate"), &where) != 0 && where.dli_fname != nullptr) {
    std::error_code failed;
    const auto file = std::filesystem::canonical(where.dli_fname, failed);
    if (!failed) names.insert(names.begin(), (file.parent_path() / names.back()).string());
  }
  return Library::open(names, trace) != nullptr;
}

std::unique_ptr<ConvolutionLibrary> open_cudnn(std::string& trace) {
  const auto library = Library::open_chosen("WICK_CUDNN_LIBRARY", {"libcudnn.so.9"}, trace);
  Functions api;
  if (library == nullptr || !find_functions(*library, api, trace) ||
      !has_convolutions(*library, trace)) {
    return nullptr;
  }
  return std::make_unique<Cudnn>(api, library->file());
}

}  // namespace

KnownConvolutionLibrary cuda_convolution_library() { return {"cuDNN", open_cudnn}; }

}  // namespace wick::gpu
