// MIOpen: names of functions, values of constants, and the choice of solutions. Source: its API
// reference, 2.17 (ROCm 5.3) and later, of immediate mode.

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {
namespace {

enum Number : int {
  kF16 = 0,
  kF32 = 1,
  kBf16 = 5,
  kCrossCorrelation = 0,
  // Attributes of convolutions. The alternative multiplies f16 in bf16 on gfx90a.
  kF16Alternative = 0,
  kDeterministic = 1,
};

/// A result of the heuristics.
struct Solution {
  float milliseconds;
  size_t workspace_bytes;
  uint64_t id;
  int algorithm;
};
static_assert(sizeof(Solution) == 32);

/// Algorithms that multiply matrices or compute sums directly. The others are FFT and Winograd,
/// whose errors aren't bounded by the sum of the terms' magnitudes.
bool is_permitted(const ConvCall& call, int algorithm) {
  constexpr int kGemm = 0, kDirect = 1, kImplicitGemm = 5;
  // Gradients by GEMM add several products that were rounded to the operands' type: those of each
  // tap for x, those of each image for w.
  if (algorithm == kGemm) return call.dtype == DType::f32 || call.form == ConvForm::forward;
  return algorithm == kDirect || algorithm == kImplicitGemm;
}

/// The functions of a form of convolution. a and b are the operands, c is the result: for forward
/// w, x and y; for the gradient of x y, w and x; for the gradient of w y, x and w.
struct FormFunctions {
  int (*count)(void* handle, void* a, void* b, void* convolution, void* c, size_t* count);
  int (*choose)(void* handle, void* a, void* b, void* convolution, void* c, size_t most,
                size_t* found, Solution* solutions);
  int (*compile)(void* handle, void* a, void* b, void* convolution, void* c, uint64_t solution);
  int (*run)(void* handle, void* a, const void* a_data, void* b, const void* b_data,
             void* convolution, void* c, void* c_data, void* workspace, size_t bytes,
             uint64_t solution);
};

struct Functions {
  int (*version)(size_t* major, size_t* minor, size_t* patch);
  const char* (*status_text)(int status);
  int (*create)(void** handle, void* stream);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*tensor_create)(void** tensor);
  int (*tensor_destroy)(void* tensor);
  int (*tensor_set)(void* tensor, int type, int n, int c, int h, int w, int n_stride, int c_stride,
                    int h_stride, int w_stride);
  int (*convolution_create)(void** convolution);
  int (*convolution_destroy)(void* convolution);
  int (*convolution_set)(void* convolution, int mode, int pad_h, int pad_w, int stride_h,
                         int stride_w, int dilation_h, int dilation_w);
  int (*set_groups)(void* convolution, int groups);
  int (*set_attribute)(void* convolution, int attribute, int value);
  FormFunctions forms[3];
};

class Miopen final : public ConvolutionLibrary {
 public:
  /// rocblas: a function of the rocBLAS that the library uses; null if it uses none.
  Miopen(const Functions& functions, const void* rocblas, std::string file)
      : ConvolutionLibrary(DeviceKind::hip, "MIOpen", std::move(file)),
        api_(functions),
        rocblas_(rocblas) {}

  std::string version() const override {
    size_t major = 0, minor = 0, patch = 0;
    if (api_.version(&major, &minor, &patch) != 0) return "";
    return fmt::format("{}.{}.{}", major, minor, patch);
  }

 private:
  struct Descriptors {
    explicit Descriptors(const Functions& functions) : api(functions) {}
    ~Descriptors() {
      for (void* tensor : {x, w, y}) {
        if (tensor != nullptr) api.tensor_destroy(tensor);
      }
      if (convolution != nullptr) api.convolution_destroy(convolution);
    }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

    const Functions& api;
    void *x = nullptr, *w = nullptr, *y = nullptr, *convolution = nullptr;
  };
  struct SolutionPlan final : Plan {
    std::shared_ptr<const Descriptors> descriptors;
    uint64_t solution = 0;
  };

  /// The operands a, b and c of a form's functions.
  struct Operands {
    void *a, *b, *c;
    Operands(ConvForm form, void* x, void* w, void* y)
        : a(form == ConvForm::forward ? w : y),
          b(form == ConvForm::input ? w : x),
          c(form == ConvForm::forward ? y
            : form == ConvForm::input ? x
                                      : w) {}
  };

  class Handle final : public OnDevice {
   public:
    Handle(const Functions& functions, void* handle) : api_(functions), handle_(handle) {}
    ~Handle() override { api_.destroy(handle_); }

    std::unique_ptr<Algorithms> algorithms(const ConvCall& call) override {
      auto described = std::make_shared<Descriptors>(api_);
      if (!describe(call, *described)) return nullptr;
      return std::make_unique<Solutions>(*this, call, std::move(described));
    }

    int set_stream(void* stream) override { return api_.set_stream(handle_, stream); }

    int run(const Plan& plan, const ConvCall& call, void* workspace) override {
      const auto& of_shape = static_cast<const SolutionPlan&>(plan);
      const Descriptors& d = *of_shape.descriptors;
      const Operands of(call.form, d.x, d.w, d.y),
          data(call.form, call.x.data, call.w.data, call.y.data);
      return functions(call).run(handle_, of.a, data.a, of.b, data.b, d.convolution, of.c, data.c,
                                 workspace, plan.workspace_bytes, of_shape.solution);
    }

    std::string text(int status) const override {
      return status_text(api_.status_text(status), status);
    }

   private:
    class Solutions final : public Algorithms {
     public:
      Solutions(const Handle& handle, const ConvCall& call,
                std::shared_ptr<const Descriptors> descriptors)
          : handle_(handle),
            call_(call),
            descriptors_(std::move(descriptors)),
            solutions_(handle.solutions_of(call, *descriptors_)) {}

      std::unique_ptr<Plan> next() override {
        while (at_ < solutions_.size()) {
          if (auto plan = handle_.plan_of(call_, descriptors_, solutions_[at_++])) return plan;
        }
        return nullptr;
      }

     private:
      const Handle& handle_;
      const ConvCall call_;
      const std::shared_ptr<const Descriptors> descriptors_;
      const std::vector<Solution> solutions_;
      size_t at_ = 0;
    };

    const FormFunctions& functions(const ConvCall& call) const {
      return api_.forms[static_cast<size_t>(call.form)];
    }

    bool describe_tensor(void*& tensor, const Shape& s, int type, bool channels_last) const {
      const std::array<int64_t, 4> strides = dense_strides(s, channels_last);
      return api_.tensor_create(&tensor) == 0 &&
             api_.tensor_set(tensor, type, int_of(s[0]), int_of(s[1]), int_of(s[2]), int_of(s[3]),
                             int_of(strides[0]), int_of(strides[1]), int_of(strides[2]),
                             int_of(strides[3])) == 0;
    }

    bool describe(const ConvCall& call, Descriptors& d) const {
      const int type = call.dtype == DType::f32 ? kF32 : call.dtype == DType::f16 ? kF16 : kBf16;
      const ConvParams& p = call.params;
      return describe_tensor(d.x, call.x.shape, type, call.channels_last) &&
             describe_tensor(d.w, call.w.shape, type, call.channels_last) &&
             describe_tensor(d.y, call.y.shape, type, call.channels_last) &&
             api_.convolution_create(&d.convolution) == 0 &&
             api_.convolution_set(d.convolution, kCrossCorrelation, int_of(p.padding[0]),
                                  int_of(p.padding[1]), int_of(p.stride[0]), int_of(p.stride[1]),
                                  int_of(p.dilation[0]), int_of(p.dilation[1])) == 0 &&
             api_.set_groups(d.convolution, int_of(p.groups)) == 0 &&
             api_.set_attribute(d.convolution, kF16Alternative, 0) == 0 &&
             api_.set_attribute(d.convolution, kDeterministic, 1) == 0;
    }

    /// The library's solutions, ordered by their estimated time.
    std::vector<Solution> solutions_of(const ConvCall& call, const Descriptors& d) const {
      const FormFunctions& form = functions(call);
      const Operands of(call.form, d.x, d.w, d.y);
      size_t found = 0;
      if (form.count(handle_, of.a, of.b, d.convolution, of.c, &found) != 0 || found == 0) {
        return {};
      }
      std::vector<Solution> solutions(found);
      if (form.choose(handle_, of.a, of.b, d.convolution, of.c, solutions.size(), &found,
                      solutions.data()) != 0) {
        return {};
      }
      solutions.resize(std::min(found, solutions.size()));
      return solutions;
    }

    /// Compiles a solution. Null if it isn't permitted or can't be compiled.
    std::unique_ptr<Plan> plan_of(const ConvCall& call,
                                  const std::shared_ptr<const Descriptors>& descriptors,
                                  const Solution& solution) const {
      const Descriptors& d = *descriptors;
      const Operands of(call.form, d.x, d.w, d.y);
      if (!is_permitted(call, solution.algorithm) || solution.workspace_bytes > kMostWorkspace ||
          functions(call).compile(handle_, of.a, of.b, d.convolution, of.c, solution.id) != 0) {
        return nullptr;
      }
      auto plan = std::make_unique<SolutionPlan>();
      plan->descriptors = descriptors;
      plan->solution = solution.id;
      plan->workspace_bytes = solution.workspace_bytes;
      return plan;
    }

    const Functions& api_;
    void* const handle_;
  };

  std::unique_ptr<OnDevice> prepare(const Gpu& gpu, std::string& reason) override {
    // A handle contains one of rocBLAS, which ends the process on devices without kernels.
    if (rocblas_ != nullptr &&
        !has_kernel_files(rocblas_, "ROCBLAS_TENSILE_LIBPATH", "rocblas/library",
                          gpu.info.architecture, reason)) {
      return nullptr;
    }
    void* handle = nullptr;
    if (const int status = api_.create(&handle, gpu.main_stream()); status != 0) {
      reason = status_text(api_.status_text(status), status);
      return nullptr;
    }
    return std::make_unique<Handle>(api_, handle);
  }

  const Functions api_;
  const void* const rocblas_;
};

bool find_functions(const Library& library, Functions& api, std::string& trace) {
  const auto find = [&](auto& function, const std::string& name) {
    return find_function(library, name.c_str(), function, trace);
  };
  constexpr const char* kForms[] = {"Forward", "BackwardData", "BackwardWeights"};
  for (size_t i = 0; i < 3; ++i) {
    const std::string form = std::string("miopenConvolution") + kForms[i];
    FormFunctions& functions = api.forms[i];
    if (!find(functions.count, form + "GetSolutionCount") ||
        !find(functions.choose, form + "GetSolution") ||
        !find(functions.compile, form + "CompileSolution") ||
        !find(functions.run, form + "Immediate")) {
      return false;
    }
  }
  return find(api.version, "miopenGetVersion") && find(api.status_text, "miopenGetErrorString") &&
         find(api.create, "miopenCreateWithStream") && find(api.destroy, "miopenDestroy") &&
         find(api.set_stream, "miopenSetStream") &&
         find(api.tensor_create, "miopenCreateTensorDescriptor") &&
         find(api.tensor_destroy, "miopenDestroyTensorDescriptor") &&
         find(api.tensor_set, "miopenSet4dTensorDescriptorEx") &&
         find(api.convolution_create, "miopenCreateConvolutionDescriptor") &&
         find(api.convolution_destroy, "miopenDestroyConvolutionDescriptor") &&
         find(api.convolution_set, "miopenInitConvolutionDescriptor") &&
         find(api.set_groups, "miopenSetConvolutionGroupCount") &&
         find(api.set_attribute, "miopenSetConvolutionAttribute");
}

std::unique_ptr<ConvolutionLibrary> open_miopen(std::string& trace) {
  const auto library = Library::open_chosen("WICK_MIOPEN_LIBRARY", {"libMIOpen.so.1"}, trace);
  Functions api;
  if (library == nullptr || !find_functions(*library, api, trace)) return nullptr;
  // The search includes the libraries that MIOpen was linked with.
  const void* const rocblas = library->symbol("rocblas_create_handle");
  return std::make_unique<Miopen>(api, rocblas, library->file());
}

}  // namespace

KnownConvolutionLibrary hip_convolution_library() { return {"MIOpen", open_miopen}; }

}  // namespace wick::gpu
