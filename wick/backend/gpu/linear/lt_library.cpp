#include "wick/backend/gpu/linear/lt_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace wick::gpu {
namespace {

/// The workspace that both vendors recommend for their largest devices.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;
/// The most plans that are kept. A model has some tens of shapes.
constexpr size_t kMostPlans = 1024;

/// The largest power of two up to 16 that divides an address. The library chooses its algorithm by
/// the alignment; with a larger limit, a matrix's bits would depend on its address in a batch.
/// Loads are at most 16 bytes wide.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 16;
  return static_cast<uint32_t>(address & (~address + 1));
}

/// Identifies a gemm's shape and layout, independent of its operands' addresses beyond their
/// alignment.
using Key = std::array<int64_t, 15>;
Key key_of(const GemmCall& c) {
  const int64_t alignments = int64_t{alignment_of(c.a)} << 20 | int64_t{alignment_of(c.b)} << 10 |
                             int64_t{alignment_of(c.c)};
  return {static_cast<int64_t>(c.dtype),
          c.m,
          c.n,
          c.k,
          c.batch,
          c.a_transposed,
          c.b_transposed,
          c.lda,
          c.ldb,
          c.ldc,
          c.stride_a,
          c.stride_b,
          c.stride_c,
          alignments,
          c.fast};
}

}  // namespace

/// A handle, a workspace, and a plan for each shape.
class LtLibrary::Device final : public OnDevice {
 public:
  Device(const LtLibrary& of, void* handle)
      : api_(of.api_), numbers_(of.numbers_), driver_(of.driver()), handle_(handle) {}
  ~Device() override {
    plans_.clear();
    if (workspace_ != nullptr) driver_.api.mem_free(workspace_);
    api_.destroy(handle_);
  }

  bool gemm(const GemmCall& call, void* stream) override {
    const Plan* plan = find_plan(call);
    if (plan == nullptr || !has_workspace()) return false;
    const ColumnMajorGemm g(call);
    const float one = 1, zero = 0;
    return api_.multiply(handle_, plan->gemm, &one, g.first.data, plan->first, g.second.data,
                         plan->second, &zero, g.out, plan->out, g.out, plan->out,
                         plan->algorithm.data(), workspace_, kWorkspaceBytes, stream) == 0;
  }

 private:
  /// How a shape is computed. `algorithm` receives the library's heuristic result, which begins
  /// with the algorithm. Its size differs between releases, and is far below this array's.
  struct Plan {
    explicit Plan(const LtApi& functions) : api(functions) {}
    ~Plan() {
      if (gemm != nullptr) api.gemm_destroy(gemm);
      for (void* layout : {first, second, out}) {
        if (layout != nullptr) api.layout_destroy(layout);
      }
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    const LtApi& api;
    void *gemm = nullptr, *first = nullptr, *second = nullptr, *out = nullptr;
    bool usable = false;
    alignas(16) std::array<char, 1024> algorithm = {};
  };

  template <class T>
  static bool set(int (*function)(void*, int, const void*, size_t), void* object, int attribute,
                  T value) {
    return function(object, attribute, &value, sizeof value) == 0;
  }

  int type_of(DType dtype) const {
    return dtype == DType::f32 ? numbers_.f32 : dtype == DType::f16 ? numbers_.f16 : numbers_.bf16;
  }

  bool make_layout(void*& layout, int type, int64_t rows, int64_t cols, int64_t ld, int64_t batch,
                   int64_t stride) const {
    return api_.layout_create(&layout, type, static_cast<uint64_t>(rows),
                              static_cast<uint64_t>(cols), ld) == 0 &&
           set(api_.layout_set, layout, numbers_.batch_count, static_cast<int32_t>(batch)) &&
           set(api_.layout_set, layout, numbers_.batch_stride, stride);
  }

  bool describe(const GemmCall& call, Plan& plan) const {
    const ColumnMajorGemm g(call);
    const int type = type_of(call.dtype);
    const auto operation = [&](bool transposed) -> int32_t {
      return transposed ? numbers_.transpose : numbers_.no_transpose;
    };
    const int compute = call.fast ? numbers_.compute_fast : numbers_.compute_f32;
    return api_.gemm_create(&plan.gemm, compute, numbers_.f32) == 0 &&
           set(api_.gemm_set, plan.gemm, numbers_.transpose_first, operation(g.first.transposed)) &&
           set(api_.gemm_set, plan.gemm, numbers_.transpose_second,
               operation(g.second.transposed)) &&
           make_layout(plan.first, type, g.first.rows, g.first.cols, g.first.ld, g.batch,
                       g.first.stride) &&
           make_layout(plan.second, type, g.second.rows, g.second.cols, g.second.ld, g.batch,
                       g.second.stride) &&
           make_layout(plan.out, type, g.rows, g.cols, g.ld, g.batch, g.stride);
  }

  bool set_preferences(const GemmCall& call, void* preference) const {
    if (!set(api_.preference_set, preference, numbers_.workspace_bytes,
             uint64_t{kWorkspaceBytes})) {
      return false;
    }
    if (numbers_.alignments < 0) return true;
    const void* const data[] = {call.b, call.a, call.c, call.c};
    for (int i = 0; i < 4; ++i) {
      if (!set(api_.preference_set, preference, numbers_.alignments + i, alignment_of(data[i]))) {
        return false;
      }
    }
    return true;
  }

  bool choose(const GemmCall& call, Plan& plan) const {
    void* preference = nullptr;
    if (api_.preference_create(&preference) != 0) return false;
    int found = 0;
    const bool chosen = set_preferences(call, preference) &&
                        api_.choose(handle_, plan.gemm, plan.first, plan.second, plan.out, plan.out,
                                    preference, 1, plan.algorithm.data(), &found) == 0;
    api_.preference_destroy(preference);
    return chosen && found == 1;
  }

  /// The plan of a call; null if the library can't compute it.
  const Plan* find_plan(const GemmCall& call) {
    const Key key = key_of(call);
    auto at = plans_.find(key);
    if (at == plans_.end()) {
      if (plans_.size() >= kMostPlans) plans_.clear();
      at = plans_.emplace(key, std::make_unique<Plan>(api_)).first;
      at->second->usable = describe(call, *at->second) && choose(call, *at->second);
    }
    return at->second->usable ? at->second.get() : nullptr;
  }

  /// Allocates the workspace. One is enough, because a device's gemms run one after another.
  bool has_workspace() {
    if (workspace_ != nullptr) return true;
    if (driver_.api.mem_alloc(&workspace_, kWorkspaceBytes) != 0) workspace_ = nullptr;
    return workspace_ != nullptr;
  }

  const LtApi& api_;
  const LtNumbers& numbers_;
  Driver& driver_;
  void* const handle_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  void* workspace_ = nullptr;
};

std::unique_ptr<MatrixLibrary::OnDevice> LtLibrary::prepare(wick::Device device,
                                                            std::string& reason) {
  if (!usable(device, reason)) return nullptr;
  void* handle = nullptr;
  if (const int code = api_.create(&handle); code != 0) {
    reason = fmt::format("status {} when it is started", code);
    return nullptr;
  }
  return std::make_unique<Device>(*this, handle);
}

bool find_functions(const Library& library, const LtApiNames& names, LtApi& api,
                    std::string& trace) {
#define WICK_LT_FN(role, arguments) \
  if (!find_function(library, names.role, api.role, trace)) return false;
#include "wick/backend/gpu/linear/lt_library.def"
  return true;
}

}  // namespace wick::gpu
