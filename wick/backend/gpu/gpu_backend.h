#pragma once

#include <memory>
#include <string>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/custom/user_modules.h"
#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// A GPU of either vendor. All work goes to the device's only stream, in the order of the calls;
/// methods return before it completes. Faults are reported at the next synchronisation.
class GpuBackend final : public Backend {
 public:
  /// Errors: no such device, no kernels for it.
  explicit GpuBackend(Device device) : gpu_(device) {}
  ~GpuBackend() override;
  Gpu& gpu() { return gpu_; }

  // memory.cpp
  Device device() const override { return gpu_.device; }
  std::string description() const override;
  void* alloc(size_t bytes) override;
  void free(void* data, size_t bytes) noexcept override;
  void upload(void* to_device, const void* from_host, size_t bytes) override;
  void download(void* to_host, const void* from_device, size_t bytes) override;
  std::unique_ptr<Readback> start_readback(const void* from_device, size_t bytes) override;
  void copy_from(void* to, Backend& there, const void* from, size_t bytes) override;
  void synchronize() override;
  void quiesce() noexcept override { gpu_.quiesce(); }
  void* native_stream() override;
  std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) override;
  MemoryInfo memory_info() const override;
  size_t free_memory() const override;
  void set_memory_limit(size_t bytes) override;
  void reset_peak_memory() override;
  int64_t rows_in_cache() const override { return 0; }
  bool runs_ahead() const override { return true; }
  void trim() override;

  // move.cpp
  void fill(const View& out, Scalar value) override;
  void iota(const View& out, Scalar start, Scalar step) override;
  void copy(const View& out, const ConstView& in) override;
  void cast(const View& out, const ConstView& in) override;
  void index_select(const View& out, const ConstView& in, const ConstView& ids, int dim) override;

  // index/
  void gather(const View& out, const ConstView& in, const ConstView& ids, int dim) override;
  void scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
               int dim) override;
  void index_add(const View& out, const ConstView& source, const ConstView& ids, int dim) override;
  void sort(const View& values, const View& indices, const ConstView& in, int dim,
            bool descending) override;

  // map/random.cpp
  void random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a, Scalar b) override;

  // map.cpp
  void unary(Op op, const View& out, const ConstView& in) override;
  void unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) override;
  void test(Op op, const View& out, const ConstView& in) override;
  void binary(Op op, const View& out, const ConstView& a, const ConstView& b) override;
  void compare(Op op, const View& out, const ConstView& a, const ConstView& b) override;
  void where(const View& out, const ConstView& condition, const ConstView& a,
             const ConstView& b) override;

  // reduce.cpp
  void reduce(Op op, const View& out, const ConstView& in, uint32_t dims) override;
  void arg_reduce(Op op, const View& out, const ConstView& in, int dim) override;

  // reduce/scan.cpp
  void scan(Op op, const View& out, const ConstView& in, int dim) override;

  // linear/
  void matmul(const View& out, const ConstView& a, const ConstView& b) override;
  std::unique_ptr<PreparedWeight> prepare(std::span<const ConstView> parts, bool release) override;
  void linear(const View& out, const ConstView& x, const PreparedWeight& weight,
              const LinearFusion& fusion) override;
  void grouped_linear(const View& out, const ConstView& x,
                      std::span<const PreparedWeight* const> experts, const ConstView& ids,
                      const GroupedRows& rows) override;
  void route_experts(const View& ids, const View& weights, const ConstView& logits,
                     const ConstView& bias, const ExpertRouting& routing) override;
  void combine_experts(const View& out, const ConstView& y, const ConstView& weights,
                       const ConstView& residual, const ExpertBias& bias) override;
  void gate_experts(const View& out, const ConstView& y, const ExpertBias& bias, double alpha,
                    double limit) override;
  void quantize(const View& out, const ConstView& in) override;
  void dequantize(const View& out, const ConstView& in) override;

  // conv.cpp
  void conv2d(const View& out, const ConstView& x, const ConstView& w,
              const ConvParams& params) override;
  void conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                    const ConvParams& params) override;
  void conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                     const ConvParams& params) override;

  // spatial/pool.cpp
  void pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) override;
  void pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out, const ConstView& in,
                   const PoolParams& params) override;

  // spatial/resample.cpp
  void resample(Op op, const View& out, const ConstView& in, const ResampleParams& params) override;
  void resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                     const ResampleParams& params) override;

  // norm.cpp
  void softmax(const View& out, const ConstView& in, int dim, bool log) override;
  void rms_norm(const View& out, const ConstView& in, const ConstView& weight, float eps) override;
  void rms_norm_pair(const NormOperands& a, const NormOperands& b, float eps) override;
  void rms_norm_add(const NormOperands& x, const ConstView& residual, float eps) override;
  void rope(const View& out, const ConstView& in, const ConstView& cos, const ConstView& sin,
            bool interleaved) override;

  // norm/mean_norm.cpp, norm/batch_norm.cpp
  void layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                  const ConstView& bias, float eps) override;
  void group_norm(const View& out, const ConstView& in, int64_t groups, const ConstView& weight,
                  const ConstView& bias, float eps) override;
  void batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                  const ConstView& variance, const ConstView& weight, const ConstView& bias,
                  float eps) override;
  // norm/norm_grad.cpp, norm/norm_sums.cpp
  void softmax_grad(const View& out, const ConstView& y, const ConstView& grad, int dim,
                    bool log) override;
  void norm_grad(const View& out, const View& statistics, const ConstView& x, const ConstView& grad,
                 const ConstView& weight, const NormKind& kind) override;
  void norm_sums(const View& out, const ConstView& x, const ConstView& grad, const ConstView& mean,
                 const ConstView& scale, uint32_t dims) override;

  // attention.cpp
  void attention(const View& out, const ConstView& q, const ConstView& k, const ConstView& v,
                 const AttentionParams& params, const AttentionBias& bias) override;
  void attention_gradient(const View& dq, const View& dk, const View& dv, const View& d_sinks,
                          const ConstView& grad, const ConstView& q, const ConstView& k,
                          const ConstView& v, const AttentionParams& params,
                          const AttentionBias& bias) override;
  void attention_of_pages(const View& out, const ConstView& q, const ConstView& k,
                          const ConstView& v, const PagedSequences& sequences,
                          const AttentionParams& params, const AttentionBias& bias) override;
  void store_in_pages(const View& pages, const ConstView& rows, const ConstView& tables,
                      const ConstView& positions) override;
  void cached_attention(const View& out, const ConstView& qkv,
                        const CachedAttention& where) override;
  void causal_conv(const View& out, const ConstView& x, const ConstView& weight,
                   const ConstView& bias, const Recurrence& where) override;
  void ssm_scan(const View& out, const SsmScan& operands, const Recurrence& where) override;
  void gated_delta_scan(const View& out, const GatedDeltaScan& operands,
                        const Recurrence& where) override;
  void sample(const SampleState& state, const ConstView& logits) override;

  // custom/custom_launch.cpp
  void* work_stream() override;
  LaunchLimits launch_limits() override;
  void launch(const KernelLaunch& launch) override;
  /// The modules of users' kernels that are loaded.
  UserModules& user_modules() { return user_modules_; }

 private:
  Gpu gpu_;
  UserModules user_modules_{gpu_};
};

/// The backend of a GPU. The first call makes it. Errors: no such device, no kernels for it.
GpuBackend& backend_of(Device device);

/// Device memory that is freed at the end of a scope.
class Scratch {
 public:
  Scratch(Gpu& gpu, size_t bytes) : gpu_(gpu), data_(gpu.pool.take(bytes)) {}
  ~Scratch() { gpu_.pool.give(data_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T = void>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  Gpu& gpu_;
  void* data_;
};

}  // namespace wick::gpu
