// A stand-in for cuDNN's graph interface, for tests with the stand-in for NVIDIA's driver. It
// rejects what the documentation forbids and prints a complaint; convolutions are computed by plain
// loops. Written from cuDNN's documentation. The number of output channels chooses what tests need:
// 13 has no engine, and 11 fails.

#include <algorithm>
#include <memory>

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
enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kWeightGradient = 11,
  kInputGradient = 12,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
};
enum ValueType : int {
  kHandleType = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloat = 4,
  kAddress = 6,
  kModeType = 7,
  kHeuristicsMode = 8,
  kNote = 11,
  kDescriptor = 15,
};
size_t bytes_of(int type) {
  return type == kDataType || type == kFloat || type == kModeType || type == kHeuristicsMode ||
                 type == kNote
             ? 4
             : 8;
}

/// An attribute that callers set. `count` 0: any number.
struct Known {
  int kind, attribute, type;
  int64_t count;
};
constexpr Known kKnown[] = {
    {kConvolution, 100, kDataType, 1},  {kConvolution, 101, kModeType, 1},
    {kConvolution, 102, kInt64, 2},     {kConvolution, 103, kInt64, 2},
    {kConvolution, 104, kInt64, 2},     {kConvolution, 105, kInt64, 2},
    {kConvolution, 106, kInt64, 1},     {kHeuristics, 200, kHeuristicsMode, 1},
    {kHeuristics, 201, kDescriptor, 1}, {kPlan, 400, kHandleType, 1},
    {kPlan, 401, kDescriptor, 1},       {kGraph, 800, kHandleType, 1},
    {kGraph, 801, kDescriptor, 1},      {kTensor, 900, kInt64, 1},
    {kTensor, 901, kDataType, 1},       {kTensor, 902, kInt64, 4},
    {kTensor, 903, kInt64, 4},          {kTensor, 906, kInt64, 1},
    {kPack, 1000, kInt64, 3},           {kPack, 1001, kAddress, 3},
    {kPack, 1003, kAddress, 1},
};
/// The first attribute of a form's operation; alpha, beta and the convolution come first, then x, w
/// and y in the form's order.
struct FormNumbers {
  int kind, first;
  Form form;
  int x, w, y;
};
constexpr FormNumbers kForms[] = {{kForward, 700, Form::forward, 704, 703, 705},
                                  {kInputGradient, 706, Form::input, 710, 709, 711},
                                  {kWeightGradient, 712, Form::weight, 716, 715, 717}};
const FormNumbers* form_of(int kind) {
  const auto* const at =
      std::find_if(std::begin(kForms), std::end(kForms), [&](auto& f) { return f.kind == kind; });
  return at == std::end(kForms) ? nullptr : at;
}

/// An engine for a problem.
struct Engine {
  std::vector<int> notes;
  int64_t workspace = 0;
  int cut = 0;  ///< bits of a float's significand that are lost
  bool supported = true;
};

struct Descriptor;
using DescriptorPtr = std::shared_ptr<const Descriptor>;
struct Descriptor {
  int kind = 0;
  bool finalized = false;
  std::map<int, std::vector<char>> values;
  std::map<int, DescriptorPtr> parts;  ///< attributes that are descriptors, as they were when set
  Engine engine;                       ///< of engines and what contains one
  Problem problem;                     ///< of graphs and what contains one

  template <class T>
  std::vector<T> all(int attribute) const {
    const std::vector<char>& bytes = values.at(attribute);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  template <class T>
  T one(int attribute) const {
    return all<T>(attribute).at(0);
  }
};

struct Handle {
  bool has_stream = false;
  void* stream = nullptr;
};
std::map<void*, Handle> handles;
std::map<void*, Descriptor> descriptors;

/// The engines of the heuristics, the fastest first. Those that a test must not use have wrong
/// results, except for the one without a plan and the one whose workspace is too large.
std::vector<Engine> engines_of(const Problem& p, bool fallback) {
  if (p.w.size[0] == 13) return {};
  if (fallback) return {{}};
  const int tf32 = p.x.type == Type::f32 ? 13 : 0;
  return {{{5, 6}, 0, 15}, {{0}, 0, tf32},    {{1}, 0, 15},           {{2}, 0, 15}, {{3}, 0, 15},
          {{4}, 0, 15},    {{}, 0, 0, false}, {{}, int64_t{1} << 40}, {{}, 10'001}, {{9}, 0}};
}

bool type_of(int number, Type& type) {
  type = number == 0 ? Type::f32 : number == 2 ? Type::f16 : Type::bf16;
  return number == 0 || number == 2 || number == 9;
}

bool has(const Descriptor& d, std::initializer_list<int> attributes) {
  return std::all_of(attributes.begin(), attributes.end(),
                     [&](int a) { return d.values.contains(a) || d.parts.contains(a); });
}

bool tensor_of(const Descriptor& d, Tensor& t) {
  t.set = true;
  const auto size = d.all<int64_t>(902), stride = d.all<int64_t>(903);
  std::copy_n(size.begin(), 4, t.size.begin());
  std::copy_n(stride.begin(), 4, t.stride.begin());
  return type_of(d.one<int>(901), t.type);
}

/// The problem of a graph's operation. Complains if its parts don't fit.
bool problem_of(const Descriptor& operation, Problem& p) {
  const FormNumbers& form = *form_of(operation.kind);
  const Descriptor& c = *operation.parts.at(form.first + 2);
  p.form = form.form;
  const std::pair<int, Tensor*> tensors[] = {{form.x, &p.x}, {form.w, &p.w}, {form.y, &p.y}};
  for (const auto& [attribute, tensor] : tensors) {
    if (!tensor_of(*operation.parts.at(attribute), *tensor)) {
      complain(0, "BackendFinalize", "a tensor's type");
      return false;
    }
  }
  const auto pair = [&](int attribute) {
    const auto values = c.all<int64_t>(attribute);
    return std::array<int64_t, 2>{values[0], values[1]};
  };
  p.convolution = {true, pair(105), pair(103), pair(102), 1, {}};
  if (p.w.size[1] < 1 || p.x.size[1] % p.w.size[1] != 0) {
    complain(0, "BackendFinalize", "channels of x aren't a multiple of those of w");
    return false;
  }
  p.convolution.groups = p.x.size[1] / p.w.size[1];
  return is_consistent(p, "BackendFinalize");
}

int finalize(Descriptor& d) {
  const auto bad = [](const char* what) {
    return complain(kBadParameter, "BackendFinalize", what);
  };
  if (d.finalized) return bad("a descriptor twice");
  if (const FormNumbers* form = form_of(d.kind)) {
    const int first = form->first;
    if (!has(d, {first, first + 1, first + 2, first + 3, first + 4, first + 5})) {
      return bad("an operation without all attributes");
    }
    if (d.one<float>(first) != 1 || d.one<float>(first + 1) != 0) {
      return bad("the stand-in wants alpha = 1 and beta = 0");
    }
    d.finalized = true;
    return kSuccess;
  }
  switch (d.kind) {
    case kConvolution:
      if (!has(d, {100, 101, 102, 103, 104, 105, 106})) return bad("a convolution's attributes");
      if (d.one<int>(100) != 0 || d.one<int>(101) != 1 || d.one<int64_t>(106) != 2) {
        return bad("a convolution in f32, as a correlation, over two dims is expected");
      }
      if (d.values.at(104) != d.values.at(105)) return bad("pads that differ");
      break;
    case kTensor:
      if (!has(d, {900, 901, 902, 903, 906})) return bad("a tensor's attributes");
      if (d.one<int64_t>(900) % 16 != 0) return bad("a tensor isn't aligned to 16 bytes");
      break;
    case kGraph:
      if (!has(d, {800, 801})) return bad("a graph's attributes");
      if (!handles.contains(d.one<void*>(800))) return bad("a graph's handle");
      if (!problem_of(*d.parts.at(801), d.problem)) return kBadParameter;
      break;
    case kHeuristics:
      if (!has(d, {200, 201})) return bad("heuristics' attributes");
      if (d.one<int>(200) != 2 && d.one<int>(200) != 3) return bad("a mode of heuristics");
      d.problem = d.parts.at(201)->problem;
      ++asked;
      if (engines_of(d.problem, false).empty()) return kNotSupported;
      break;
    case kPlan:
      if (!has(d, {400, 401})) return bad("a plan's attributes");
      if (!handles.contains(d.one<void*>(400))) return bad("a plan's handle");
      d.engine = d.parts.at(401)->engine;
      d.problem = d.parts.at(401)->problem;
      if (!d.engine.supported) return kNotSupported;
      break;
    case kPack:
      if (!has(d, {1000, 1001, 1003})) return bad("a variant pack's attributes");
      break;
    default:
      return bad("a descriptor that the library fills");
  }
  d.finalized = true;
  return kSuccess;
}

/// Fills descriptors with the engines that the heuristics propose.
int get_configs(const Descriptor& d, int64_t room, int64_t* count, void** out) {
  const auto engines = engines_of(d.problem, d.one<int>(200) == 2);
  *count = std::min(room, static_cast<int64_t>(engines.size()));
  for (int64_t i = 0; i < *count; ++i) {
    const auto at = descriptors.find(out[i]);
    if (at == descriptors.end() || at->second.kind != kConfig || at->second.finalized) {
      return complain(kBadParameter, "BackendGetAttribute", "results need new descriptors");
    }
    at->second.engine = engines[static_cast<size_t>(i)];
    at->second.problem = d.problem;
    at->second.finalized = true;
  }
  return kSuccess;
}

int get(const Descriptor& d, int attribute, int type, int64_t room, int64_t* count, void* out) {
  const auto bad = [](const char* what) {
    return complain(kBadParameter, "BackendGetAttribute", what);
  };
  if (!d.finalized) return bad("a descriptor that isn't final");
  if (count == nullptr || out == nullptr || room < 1) return bad("no room");
  if (d.kind == kHeuristics && attribute == 202 && type == kDescriptor) {
    return get_configs(d, room, count, static_cast<void**>(out));
  }
  if (d.kind == kConfig && attribute == 300 && type == kDescriptor) {
    const auto at = descriptors.find(*static_cast<void**>(out));
    if (at == descriptors.end() || at->second.kind != kEngine || at->second.finalized) {
      return bad("an engine needs a new descriptor");
    }
    at->second.engine = d.engine;
    at->second.finalized = true;
    *count = 1;
    return kSuccess;
  }
  if (d.kind == kEngine && attribute == 1303 && type == kNote) {
    *count = std::min(room, static_cast<int64_t>(d.engine.notes.size()));
    std::copy_n(d.engine.notes.begin(), *count, static_cast<int*>(out));
    return kSuccess;
  }
  if (d.kind == kPlan && attribute == 402 && type == kInt64) {
    *static_cast<int64_t*>(out) = d.engine.workspace;
    *count = 1;
    return kSuccess;
  }
  return bad("an attribute that the stand-in doesn't know");
}

bool is_settable(const Descriptor& d, int attribute, int type, int64_t count) {
  if (const FormNumbers* form = form_of(d.kind)) {
    const int at = attribute - form->first;
    return at >= 0 && at < 6 && type == (at < 2 ? kFloat : kDescriptor) && count == 1;
  }
  return std::any_of(std::begin(kKnown), std::end(kKnown), [&](const Known& k) {
    return k.kind == d.kind && k.attribute == attribute && k.type == type && k.count == count;
  });
}

int set(Descriptor& d, int attribute, int type, int64_t count, const void* values) {
  const auto bad = [](const char* what) {
    return complain(kBadParameter, "BackendSetAttribute", what);
  };
  if (d.finalized) return bad("a descriptor that is final");
  if (values == nullptr || !is_settable(d, attribute, type, count)) return bad("arguments");
  if (type == kDescriptor) {
    const auto at = descriptors.find(*static_cast<void* const*>(values));
    if (at == descriptors.end() || !at->second.finalized) {
      return bad("a part that isn't there or isn't final");
    }
    d.parts[attribute] = std::make_shared<Descriptor>(at->second);
    return kSuccess;
  }
  const char* const bytes = static_cast<const char*>(values);
  d.values[attribute].assign(bytes, bytes + static_cast<size_t>(count) * bytes_of(type));
  return kSuccess;
}

int execute(const Handle& handle, const Descriptor& plan, const Descriptor& pack) {
  const auto bad = [](const char* what) { return complain(kBadParameter, "BackendExecute", what); };
  if (!handle.has_stream) return bad("no stream was set");
  if (plan.kind != kPlan || pack.kind != kPack || !plan.finalized || !pack.finalized) {
    return bad("descriptors");
  }
  const Problem& p = plan.problem;
  const auto ids = pack.all<int64_t>(1000);
  const auto addresses = pack.all<void*>(1001);
  void* data[3] = {};
  for (size_t i = 0; i < 3; ++i) {
    const auto at = std::find(ids.begin(), ids.end(), "xwy"[i]);
    if (at == ids.end()) return bad("an id that no tensor has");
    data[i] = addresses[static_cast<size_t>(at - ids.begin())];
    if (data[i] == nullptr) return bad("a pointer is null");
  }
  if (!are_aligned(data[0], data[1], data[2])) return bad("an operand isn't aligned to 16 bytes");
  void* const workspace = pack.one<void*>(1003);
  const auto bytes = static_cast<size_t>(plan.engine.workspace);
  if (bytes != 0 && (workspace == nullptr || !use_workspace(workspace, bytes, handle.stream))) {
    return bad("the workspace isn't on the device");
  }
  if (p.w.size[0] == 11) return kExecutionFailed;
  const bool done = convolve(p, data[0], data[1], data[2], handle.stream, [&](double value) {
    return plan.engine.cut == 0 ? value : shortened(value, plan.engine.cut);
  });
  if (!done) return bad("not all of a tensor is on the device");
  ++computed;
  return kSuccess;
}

/// Calls act(descriptor) for a descriptor that exists.
template <class Act>
int with(void* descriptor, const char* function, const Act& act) {
  std::lock_guard lock(conv_mutex);
  const auto at = descriptors.find(descriptor);
  if (at == descriptors.end()) {
    return complain(kBadParameter, function, "a descriptor that isn't there or was destroyed");
  }
  return act(at->second);
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
  if (handles.empty() && !descriptors.empty()) {
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

WICK_STAND_IN int cudnnBackendCreateDescriptor(int kind, void** descriptor) {
  const bool known = form_of(kind) != nullptr || (kind >= kConvolution && kind <= kPlan) ||
                     (kind >= kGraph && kind <= kTensor);
  if (!known) return complain(kBadParameter, "BackendCreateDescriptor", "a kind");
  if (const int code = make_object(descriptors, descriptor, kBadParameter, "CreateDescriptor")) {
    return code;
  }
  return with(*descriptor, "BackendCreateDescriptor", [&](Descriptor& d) {
    d.kind = kind;
    return 0;
  });
}
WICK_STAND_IN int cudnnBackendDestroyDescriptor(void* descriptor) {
  return destroy_object(descriptors, descriptor, kBadParameter, "BackendDestroyDescriptor");
}
WICK_STAND_IN int cudnnBackendFinalize(void* descriptor) {
  return with(descriptor, "BackendFinalize", [](Descriptor& d) { return finalize(d); });
}
WICK_STAND_IN int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, int64_t count,
                                           const void* values) {
  return with(descriptor, "BackendSetAttribute",
              [&](Descriptor& d) { return set(d, attribute, type, count, values); });
}
WICK_STAND_IN int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, int64_t room,
                                           int64_t* count, void* out) {
  return with(descriptor, "BackendGetAttribute",
              [&](Descriptor& d) { return get(d, attribute, type, room, count, out); });
}
WICK_STAND_IN int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  std::lock_guard lock(conv_mutex);
  const auto h = handles.find(handle);
  const auto p = descriptors.find(plan), v = descriptors.find(pack);
  if (h == handles.end() || p == descriptors.end() || v == descriptors.end()) {
    return complain(kBadParameter, "BackendExecute", "what isn't there or was destroyed");
  }
  return execute(h->second, p->second, v->second);
}
