// cuDNN: names of functions, values of constants, and the choice of engines. Source: cuDNN's
// documentation, 9.0 and later, of the graph interface ("backend").

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {
namespace {

enum Number : int {
  kF32 = 0,
  kF16 = 2,
  kBf16 = 9,
  kCrossCorrelation = 1,
};

/// Kinds of descriptors.
enum class Kind : int {
  convolution = 1,
  engine = 2,
  engine_config = 3,
  heuristics = 4,
  plan = 5,
  forward = 10,
  weight_gradient = 11,
  input_gradient = 12,
  graph = 15,
  variant_pack = 16,
  tensor = 17,
};

/// Types of attributes' values.
enum class ValueType : int {
  handle = 0,
  data_type = 1,
  int64 = 3,
  float32 = 4,
  address = 6,
  convolution_mode = 7,
  heuristics_mode = 8,
  numerical_note = 11,
  descriptor = 15,
};

enum class Attribute : int {
  convolution_compute_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_pads_after = 104,
  convolution_pads_before = 105,
  convolution_spatial_dims = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_sizes = 902,
  tensor_strides = 903,
  tensor_id = 906,
  pack_ids = 1000,
  pack_addresses = 1001,
  pack_workspace = 1003,
  engine_notes = 1303,
};

/// What an engine's results differ by from sums in f32.
enum class Note : int {
  tensor_core = 0,  // with operands of f32: TF32
  down_converts_inputs = 1,
  reduces_precision_of_sums = 2,
  fft = 3,
  nondeterministic = 4,
  winograd = 5,
  winograd_4x4 = 6,
  winograd_6x6 = 7,
  winograd_13x13 = 8,
};

enum class HeuristicsMode : int { fallback = 2, a = 3 };

/// The attributes of a form's operation.
struct FormAttributes {
  Kind kind;
  int alpha, beta, convolution, x, w, y;
};
constexpr FormAttributes kForms[] = {{Kind::forward, 700, 701, 702, 704, 703, 705},
                                     {Kind::input_gradient, 706, 707, 708, 710, 709, 711},
                                     {Kind::weight_gradient, 712, 713, 714, 716, 715, 717}};

struct Functions {
  size_t (*version)();
  const char* (*status_text)(int status);
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*descriptor_create)(int kind, void** descriptor);
  int (*descriptor_destroy)(void* descriptor);
  int (*descriptor_finalize)(void* descriptor);
  int (*set)(void* descriptor, int attribute, int type, int64_t count, const void* values);
  int (*get)(void* descriptor, int attribute, int type, int64_t room, int64_t* count, void* values);
  int (*execute)(void* handle, void* plan, void* variant_pack);
};

/// A descriptor. After a call that fails, the others do nothing.
class Descriptor {
 public:
  Descriptor(const Functions& functions, Kind kind) : api_(functions) {
    status_ = api_.descriptor_create(static_cast<int>(kind), &descriptor_);
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) api_.descriptor_destroy(descriptor_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void set(int attribute, ValueType type, int64_t count, const void* values) {
    if (status_ == 0) {
      status_ = api_.set(descriptor_, attribute, static_cast<int>(type), count, values);
    }
  }
  template <class T>
  void set(Attribute attribute, ValueType type, const T& value) {
    set(static_cast<int>(attribute), type, 1, &value);
  }
  void set(Attribute attribute, const std::vector<int64_t>& values) {
    set(static_cast<int>(attribute), ValueType::int64, std::ssize(values), values.data());
  }
  /// Sets an attribute to another descriptor, which must exist.
  void set(int attribute, const Descriptor& value) {
    if (status_ == 0) status_ = value.status_;
    set(attribute, ValueType::descriptor, 1, &value.descriptor_);
  }
  void set(Attribute attribute, const Descriptor& value) {
    set(static_cast<int>(attribute), value);
  }
  /// Returns the number of values that were read into `values`.
  int64_t get(Attribute attribute, ValueType type, int64_t room, void* values) const {
    int64_t count = 0;
    const int status = status_ != 0 ? status_
                                    : api_.get(descriptor_, static_cast<int>(attribute),
                                               static_cast<int>(type), room, &count, values);
    return status == 0 ? std::min(count, room) : 0;
  }
  /// After this, attributes can be read, and others can refer to the descriptor.
  void finalize() {
    if (status_ == 0) status_ = api_.descriptor_finalize(descriptor_);
  }
  int status() const { return status_; }
  void* get() const { return descriptor_; }

 private:
  const Functions& api_;
  void* descriptor_ = nullptr;
  int status_ = 0;
};
using DescriptorPtr = std::unique_ptr<Descriptor>;

constexpr int64_t kIds[] = {'x', 'w', 'y'};

class Cudnn final : public ConvolutionLibrary {
 public:
  Cudnn(const Functions& functions, std::string file)
      : ConvolutionLibrary(DeviceKind::cuda, "cuDNN", std::move(file)), api_(functions) {}

  std::string version() const override {
    const size_t number = api_.version();
    return fmt::format("{}.{}.{}", number / 10'000, number / 100 % 100, number % 100);
  }

 private:
  struct ExecutionPlan final : Plan {
    DescriptorPtr plan;
  };

  class Handle final : public OnDevice {
   public:
    Handle(const Functions& functions, void* handle) : api_(functions), handle_(handle) {}
    ~Handle() override { api_.destroy(handle_); }

    std::unique_ptr<Algorithms> algorithms(const ConvCall& call) override {
      return std::make_unique<Engines>(*this, call);
    }

    int set_stream(void* stream) override { return api_.set_stream(handle_, stream); }

    int run(const Plan& plan, const ConvCall& call, void* workspace) override {
      const void* const addresses[] = {call.x.data, call.w.data, call.y.data};
      Descriptor pack(api_, Kind::variant_pack);
      pack.set(static_cast<int>(Attribute::pack_ids), ValueType::int64, 3, kIds);
      pack.set(static_cast<int>(Attribute::pack_addresses), ValueType::address, 3, addresses);
      pack.set(Attribute::pack_workspace, ValueType::address, workspace);
      pack.finalize();
      if (pack.status() != 0) return pack.status();
      return api_.execute(handle_, static_cast<const ExecutionPlan&>(plan).plan->get(), pack.get());
    }

    std::string text(int status) const override {
      return status_text(api_.status_text(status), status);
    }

   private:
    /// The permitted engines of mode a, then those of the fallback.
    class Engines final : public Algorithms {
     public:
      Engines(const Handle& handle, const ConvCall& call)
          : handle_(handle), call_(call), graph_(handle.describe(call)) {}

      std::unique_ptr<Plan> next() override {
        for (;;) {
          for (; at_ < configs_.size(); ++at_) {
            if (!handle_.is_permitted(call_, *configs_[at_])) continue;
            if (auto plan = handle_.plan_of(*configs_[at_])) {
              ++at_;
              return plan;
            }
          }
          if (modes_.empty()) return nullptr;
          configs_ = handle_.configs_of(*graph_, modes_.front());
          modes_ = modes_.subspan(1);
          at_ = 0;
        }
      }

     private:
      static constexpr HeuristicsMode kModes[] = {HeuristicsMode::a, HeuristicsMode::fallback};
      const Handle& handle_;
      const ConvCall call_;
      const DescriptorPtr graph_;
      std::span<const HeuristicsMode> modes_ = kModes;
      std::vector<DescriptorPtr> configs_;
      size_t at_ = 0;
    };

    DescriptorPtr make(Kind kind) const { return std::make_unique<Descriptor>(api_, kind); }

    DescriptorPtr describe_tensor(const Shape& s, int type, bool channels_last, int64_t id) const {
      constexpr int64_t kAlignment = 16;
      const std::array<int64_t, 4> strides = dense_strides(s, channels_last);
      DescriptorPtr tensor = make(Kind::tensor);
      tensor->set(Attribute::tensor_type, ValueType::data_type, type);
      tensor->set(Attribute::tensor_sizes, {s[0], s[1], s[2], s[3]});
      tensor->set(Attribute::tensor_strides, {strides.begin(), strides.end()});
      tensor->set(Attribute::tensor_id, ValueType::int64, id);
      tensor->set(Attribute::tensor_alignment, ValueType::int64, kAlignment);
      tensor->finalize();
      return tensor;
    }

    DescriptorPtr describe_convolution(const ConvParams& p) const {
      const std::vector<int64_t> pads = {p.padding[0], p.padding[1]};
      DescriptorPtr convolution = make(Kind::convolution);
      convolution->set(Attribute::convolution_spatial_dims, ValueType::int64, int64_t{2});
      convolution->set(Attribute::convolution_compute_type, ValueType::data_type, int{kF32});
      convolution->set(Attribute::convolution_mode, ValueType::convolution_mode,
                       int{kCrossCorrelation});
      convolution->set(Attribute::convolution_pads_before, pads);
      convolution->set(Attribute::convolution_pads_after, pads);
      convolution->set(Attribute::convolution_dilations, {p.dilation[0], p.dilation[1]});
      convolution->set(Attribute::convolution_strides, {p.stride[0], p.stride[1]});
      convolution->finalize();
      return convolution;
    }

    /// The graph of one operation. The number of groups follows from the channels of x and w.
    DescriptorPtr describe(const ConvCall& call) const {
      const int type = call.dtype == DType::f32 ? kF32 : call.dtype == DType::f16 ? kF16 : kBf16;
      const FormAttributes& form = kForms[static_cast<size_t>(call.form)];
      const float one = 1, zero = 0;
      const DescriptorPtr convolution = describe_convolution(call.params);
      const DescriptorPtr operation = make(form.kind);
      operation->set(form.convolution, *convolution);
      const ConvOperand* const operands[] = {&call.x, &call.w, &call.y};
      const int attributes[] = {form.x, form.w, form.y};
      for (size_t i = 0; i < 3; ++i) {
        operation->set(attributes[i],
                       *describe_tensor(operands[i]->shape, type, call.channels_last, kIds[i]));
      }
      operation->set(form.alpha, ValueType::float32, 1, &one);
      operation->set(form.beta, ValueType::float32, 1, &zero);
      operation->finalize();
      DescriptorPtr graph = make(Kind::graph);
      graph->set(Attribute::graph_handle, ValueType::handle, handle_);
      graph->set(Attribute::graph_operations, *operation);
      graph->finalize();
      return graph;
    }

    /// The engines that the heuristics propose, ordered by their estimated time.
    std::vector<DescriptorPtr> configs_of(const Descriptor& graph, HeuristicsMode mode) const {
      constexpr size_t kMost = 32;
      const DescriptorPtr heuristics = make(Kind::heuristics);
      heuristics->set(Attribute::heuristics_graph, graph);
      heuristics->set(Attribute::heuristics_mode, ValueType::heuristics_mode, mode);
      heuristics->finalize();
      std::vector<DescriptorPtr> configs;
      std::vector<void*> addresses;
      for (size_t i = 0; i < kMost; ++i) {
        configs.push_back(make(Kind::engine_config));
        if (configs.back()->status() != 0) return {};
        addresses.push_back(configs.back()->get());
      }
      // Descriptors are filled in place.
      const int64_t found = heuristics->get(Attribute::heuristics_results, ValueType::descriptor,
                                            std::ssize(addresses), addresses.data());
      configs.resize(static_cast<size_t>(found));
      return configs;
    }

    /// Whether an engine gives the same bits each time, with errors of the class of convolutions.
    bool is_permitted(const ConvCall& call, const Descriptor& config) const {
      const DescriptorPtr engine = make(Kind::engine);
      void* address = engine->get();
      if (engine->status() != 0 ||
          config.get(Attribute::config_engine, ValueType::descriptor, 1, &address) != 1) {
        return false;
      }
      Note notes[16];
      const int64_t count =
          engine->get(Attribute::engine_notes, ValueType::numerical_note, std::ssize(notes), notes);
      return std::all_of(notes, notes + count, [&](Note note) {
        switch (note) {
          case Note::tensor_core:
            return call.dtype != DType::f32 || call.fast;
          case Note::down_converts_inputs:
            return call.fast;
          case Note::reduces_precision_of_sums:
          case Note::fft:
          case Note::nondeterministic:
          case Note::winograd:
          case Note::winograd_4x4:
          case Note::winograd_6x6:
          case Note::winograd_13x13:
            return false;
        }
        return true;
      });
    }

    /// Null if the engine can't run on the device, or needs too large a workspace.
    std::unique_ptr<Plan> plan_of(const Descriptor& config) const {
      auto made = std::make_unique<ExecutionPlan>();
      made->plan = make(Kind::plan);
      made->plan->set(Attribute::plan_handle, ValueType::handle, handle_);
      made->plan->set(Attribute::plan_config, config);
      made->plan->finalize();
      int64_t bytes = 0;
      if (made->plan->get(Attribute::plan_workspace, ValueType::int64, 1, &bytes) != 1 ||
          bytes < 0 || static_cast<size_t>(bytes) > kMostWorkspace) {
        return nullptr;
      }
      made->workspace_bytes = static_cast<size_t>(bytes);
      return made;
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
  return find(api.version, "cudnnGetVersion") && find(api.status_text, "cudnnGetErrorString") &&
         find(api.create, "cudnnCreate") && find(api.destroy, "cudnnDestroy") &&
         find(api.set_stream, "cudnnSetStream") &&
         find(api.descriptor_create, "cudnnBackendCreateDescriptor") &&
         find(api.descriptor_destroy, "cudnnBackendDestroyDescriptor") &&
         find(api.descriptor_finalize, "cudnnBackendFinalize") &&
         find(api.set, "cudnnBackendSetAttribute") && find(api.get, "cudnnBackendGetAttribute") &&
         find(api.execute, "cudnnBackendExecute");
}

/// Opens the libraries that contain cuDNN's graphs and engines. libcudnn.so.9 only opens other
/// libraries, and ends the process if one is missing.
bool has_engines(const Library& library, std::string& trace) {
  Dl_info where;
  std::filesystem::path folder;
  if (dladdr(library.symbol("cudnnCreate"), &where) != 0 && where.dli_fname != nullptr) {
    std::error_code failed;
    const auto file = std::filesystem::canonical(where.dli_fname, failed);
    if (!failed) folder = file.parent_path();
  }
  for (const char* part :
       {"graph", "heuristic", "engines_precompiled", "engines_runtime_compiled"}) {
    const std::string name = fmt::format("libcudnn_{}.so.9", part);
    std::vector<std::string> names = {name};
    if (!folder.empty()) names.insert(names.begin(), (folder / name).string());
    if (Library::open(names, trace) == nullptr) return false;
  }
  return true;
}

std::unique_ptr<ConvolutionLibrary> open_cudnn(std::string& trace) {
  const auto library = Library::open_chosen("WICK_CUDNN_LIBRARY", {"libcudnn.so.9"}, trace);
  Functions api;
  if (library == nullptr || !find_functions(*library, api, trace) ||
      !has_engines(*library, trace)) {
    return nullptr;
  }
  return std::make_unique<Cudnn>(api, library->file());
}

}  // namespace

KnownConvolutionLibrary cuda_convolution_library() { return {"cuDNN", open_cudnn}; }

}  // namespace wick::gpu
