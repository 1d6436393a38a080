#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wick/backend/custom_kernel.h"
#include "wick/backend/view.h"
#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/base/sampling/sampler.h"
#include "wick/op/op.h"

namespace wick {

/// A weight matrix [n, k] that Backend::prepare packed for one device. Opaque outside the backend.
class WICK_API PreparedWeight {
 public:
  virtual ~PreparedWeight();
  DType dtype = DType::f32;
  int64_t n = 0, k = 0;
  size_t bytes = 0;
  /// The most rows of x for which linear gives each row the bits that it has alone. For more rows,
  /// the order of sums may depend on the number of rows: see LinearFusion::each.
  int64_t rows_alike = INT64_MAX;
};

/// Parameters of `attention`: scale, soft cap, and the keys that a query attends to.
struct AttentionParams {
  float scale = 1.0f;     ///< factor of q·k
  bool causal = true;     ///< query i sees only keys j <= i + (keys - queries)
  int64_t window = 0;     ///< > 0: only keys j > i + (keys - queries) - window
  float soft_cap = 0.0f;  ///< > 0: score = cap * tanh(score / cap), before masks
};

/// Terms that `attention` adds to the capped scores, and the sinks of its softmax. A term, or the
/// sinks, are absent if their data is null.
struct AttentionBias {
  /// [b, h, m, n]: f32, f16 and bf16 are added to the scores; u8 hides the keys where it is 0.
  ConstView mask;
  ConstView slopes;  ///< [h] f32: slope · (j - i - (keys - queries)) is added for key j and query i
  /// [h] f32: a score without a key for each head, which only enlarges the sum of exponentials.
  ConstView sinks;
};

/// Page tables for `attention_of_pages`. A page holds `size` positions; position p of sequence i is
/// at index p % size of page tables[i][p / size].
struct PagedSequences {
  ConstView tables;   ///< [b, n] u32 page numbers, on the device
  ConstView lengths;  ///< [b] u32: length of each sequence, on the device
};

/// The states of sequences that recurrences advance in place.
struct Recurrence {
  View state;       ///< f32 [s, ..], dense
  ConstView slots;  ///< [b] u32 on the device: each sequence's row of state
};

/// The operands of `ssm_scan`, f32. For each row: S = fma(S, exp(dt · a), (dt · x) · b), and y is a
/// chain of fma(S, c, y) over m, plus d · x.
struct SsmScan {
  ConstView x;     ///< [t, h, p]
  ConstView dt;    ///< [t, h]
  ConstView a;     ///< [h]
  ConstView b, c;  ///< [t, g, m]; h is a multiple of g
  ConstView d;     ///< [h], or absent
};

/// The operands of `gated_delta_scan`, f32. For each row: S = S · exp(g), S = fma(k, (v − S·k) ·
/// beta, S) and y = S·q, where S·k and S·q are chains of fma over m.
struct GatedDeltaScan {
  ConstView q, k;     ///< [t, r, m]
  ConstView v;        ///< [t, h, e]; h is a multiple of r
  ConstView g, beta;  ///< [t, h]
};

/// The operands of `cached_attention` besides qkv. It writes to keys and values. The t rows belong
/// to b sequences of t / b rows each.
struct CachedAttention {
  ConstView cos, sin;      ///< [positions, r/2] f32
  ConstView positions;     ///< [t] u32 on the device, ascending by one within a sequence
  View keys;               ///< [pages, g, size, d]
  View values;             ///< [pages, g, size, e], of keys' dtype
  ConstView tables;        ///< [b, n] u32 on the device: page numbers of each sequence
  AttentionParams params;  ///< causal; each row attends to its sequence up to its own position
  ConstView sinks = {};    ///< [h] f32, as in AttentionBias, or absent
};

/// The norm whose gradient norm_grad computes.
struct NormKind {
  int64_t groups = 0;   ///< 0: rows along the last dim; otherwise rows are groups of channels
  bool centred = true;  ///< whether the norm subtracts the mean
  float eps = 0;
};

/// Stride, padding, dilation and groups of 2D convolutions, along h and w.
struct ConvParams {
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};   ///< zeros at either side
  int64_t dilation[2] = {1, 1};  ///< input elements between adjacent kernel taps
  int64_t groups = 1;
};

/// Window, stride and padding of max_pool2d and avg_pool2d, along h and w.
struct PoolParams {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {0, 0};     ///< 0: the kernel's size (resolved before the backend is called)
  int64_t padding[2] = {0, 0};    ///< at either side
  bool count_include_pad = true;  ///< avg_pool2d: padding counts as elements that are zero
};

/// The input positions of the outputs of upsample_nearest2d and upsample_bilinear2d, along h and w.
struct ResampleParams {
  double scale[2] = {1, 1};    ///< input elements per output element
  bool align_corners = false;  ///< bilinear: output 0 is at input 0, else half a step before it
};

/// Steps that `linear` fuses before and after its gemm. The result has the bits of the separate ops
/// in f32.
struct LinearFusion {
  enum class Input : uint8_t {
    plain,
    rms_norm,   ///< rms_norm of x's rows with `norm` and `eps`
    silu_mul,   ///< x is [.., 2k]: silu of the first half of each row times the second half
    gelu_mul,   ///< the same with gelu
    attention,  ///< cached_attention with qkv = x and `attention`
  };
  Input input = Input::plain;
  ConstView norm;  ///< [k] f32
  float eps = 0;
  const CachedAttention* attention = nullptr;
  bool add = false;    ///< whether `residual` is added
  ConstView residual;  ///< [.., n] of x's dtype, added to the result
  /// If not 0, x [t, k] consists of matrices of `each` rows, and each matrix gets the bits that it
  /// has alone.
  int64_t each = 0;
};

/// How grouped_linear takes the rows of x.
struct GroupedRows {
  bool silu_mul = false;  ///< as in LinearFusion; x is [t, 2k] and f32
  /// If not 0, x consists of sequences of `each` rows, and each sequence gets the bits that it has
  /// alone.
  int64_t each = 0;
  int64_t of_token = 1;  ///< rows of x that belong to one token of a sequence
};

/// The operands of one of several norms.
struct NormOperands {
  View out;
  ConstView in, weight;
};

/// How route_experts makes the weights of chosen experts from a router's logits: the scores are the
/// logits, or their softmax or sigmoid; the `used` experts of the largest scores are chosen, with
/// the bias added if there is one; their weights are their scores, after softmax_of_chosen or
/// normalize (division by their sum), times `scale` if `scaled`.
struct ExpertRouting {
  enum class Scores : uint8_t { logits, softmax, sigmoid };
  Scores scores = Scores::softmax;
  int64_t used = 1;
  bool softmax_of_chosen = false, normalize = false, scaled = false;
  double scale = 1;
};

/// A bias for each expert: bias [experts, k] f32, dense; ids u32 [t · n], dense, on the device. Its
/// data is null if there is none.
struct ExpertBias {
  ConstView bias, ids;
};

/// The device state that `sample` reads and updates, with a row for each of b sequences.
struct SampleState {
  View tokens;        ///< u32 [b]: receives the chosen tokens
  View positions;     ///< u32 [b]: incremented
  View history;       ///< u32 [b, n]: tokens so far, oldest first; the chosen token is appended
  View counts;        ///< u32 [b, 3]: tokens in the history, random draws, tokens chosen
  View chosen;        ///< u32 [n, b]: the i-th chosen token is also written to row i % n
  ConstView options;  ///< u32 [b, kSamplerWords], see sampler_words()
};

/// A captured graph of work that can be replayed.
class WICK_API DeviceGraph {
 public:
  virtual ~DeviceGraph();
  /// Queues the work after all work queued on the device so far.
  virtual void replay() = 0;
};

/// A copy from the device to the host that is in progress.
class WICK_API Readback {
 public:
  virtual ~Readback();
  /// Waits for the copy and writes the bytes to `to_host`. May be called once. Errors: those of the
  /// work before the copy.
  virtual void finish(void* to_host) = 0;
};

/// Memory statistics of a device's allocator.
struct MemoryInfo {
  size_t in_use_bytes = 0;  ///< bytes of live storages
  size_t cached_bytes = 0;  ///< bytes freed and kept for reuse
  size_t peak_bytes = 0;    ///< largest in_use_bytes so far
  size_t total_bytes = 0;   ///< device memory that the process may use
  size_t limit_bytes = 0;   ///< limit of in_use_bytes + cached_bytes; total_bytes if not set
};

/// A device. All methods are pure virtual, so a backend that lacks an operation doesn't compile.
///
/// The tensor layer checks shapes, dtypes and devices before it calls. A backend accepts every
/// layout and every dtype of the op's row. Outputs never share memory with inputs unless a method
/// says so. Outputs may be empty.
class WICK_API Backend {
 public:
  virtual ~Backend();

  // Memory.
  virtual Device device() const = 0;
  /// One line for users: name, instruction set or architecture, memory.
  virtual std::string description() const = 0;
  /// Allocates `bytes` of uninitialised memory, aligned to at least 64 bytes. Errors: out of
  /// memory.
  virtual void* alloc(size_t bytes) = 0;
  virtual void free(void* data, size_t bytes) noexcept = 0;
  virtual void upload(void* to_device, const void* from_host, size_t bytes) = 0;
  virtual void download(void* to_host, const void* from_device, size_t bytes) = 0;
  /// Starts a copy of device memory as the work queued so far leaves it. The copy runs concurrently
  /// with later work, which must not write to these bytes until the copy has finished.
  virtual std::unique_ptr<Readback> start_readback(const void* from_device, size_t bytes) = 0;
  /// Copies from another device's memory, after all work queued on both devices. Errors: one of the
  /// devices is capturing.
  virtual void copy_from(void* to, Backend& there, const void* from, size_t bytes) = 0;
  /// Waits for all queued work. Errors: errors of that work, with the op's name.
  virtual void synchronize() = 0;
  /// Waits until the device is idle, including work of other libraries. While any thread captures a
  /// graph, it waits only for wick's own work, because a wait for the device would end the capture.
  /// The next synchronize() reports errors of the work.
  virtual void quiesce() noexcept = 0;
  /// The stream that work is queued on, as the driver's handle; null on the CPU. Errors: the
  /// calling thread is capturing a graph.
  virtual void* native_stream() = 0;
  /// Captures the calls that `work` makes on this backend as a graph. They must write to tensors
  /// made before; memory that they allocate lives as long as the graph. They must not copy to or
  /// from the host.
  virtual std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) = 0;
  virtual MemoryInfo memory_info() const = 0;
  /// Memory that the system can still give to this or another process. It may change at any time.
  virtual size_t free_memory() const = 0;
  /// Limits the memory, in use and cached, that the process may hold; 0 removes the limit. Memory
  /// in use isn't freed.
  virtual void set_memory_limit(size_t bytes) = 0;
  /// Sets peak_bytes to the memory in use.
  virtual void reset_peak_memory() = 0;
  /// The number of activation rows of a layer that fit in the device's caches. Longer prompts run
  /// faster if each slice of this many rows goes through a whole layer at a time. 0: slices have no
  /// benefit.
  virtual int64_t rows_in_cache() const = 0;
  /// Whether work runs asynchronously to the caller. If so, callers should queue the next work
  /// before they wait for results.
  virtual bool runs_ahead() const = 0;
  /// Returns cached memory to the system.
  virtual void trim() = 0;

  // Data movement.
  virtual void fill(const View& out, Scalar value) = 0;
  virtual void iota(const View& out, Scalar start, Scalar step) = 0;
  virtual void copy(const View& out, const ConstView& in) = 0;
  virtual void cast(const View& out, const ConstView& in) = 0;
  /// out[.., i, ..] = in[.., ids[i], ..]. If `in` has a block dtype, it has rank 2, dim is 0, and
  /// out is a float.
  virtual void index_select(const View& out, const ConstView& in, const ConstView& ids,
                            int dim) = 0;

  // Indexing. `ids` is u8, u32, i32 or i64; the largest value of an unsigned dtype is padding.
  // Errors: any other id that is out of range; the message names the id. The CPU checks all ids of
  // scatter and index_add before it writes anything. A GPU ignores elements with such ids and
  // reports the error at the next synchronisation; gather gives zeros for them.
  /// out[.., i, ..] = in[.., ids[.., i, ..], ..] along `dim`, 0 for padding. ids has out's shape;
  /// `in` is at least as large in the other dims. After an error, out's contents are unspecified.
  virtual void gather(const View& out, const ConstView& in, const ConstView& ids, int dim) = 0;
  /// out[.., ids[.., i, ..], ..] = source[.., i, ..] along `dim`, in the order of i; padding is
  /// ignored. ids has source's shape; out is at least as large in the other dims. scatter_add adds
  /// to out. `op` is scatter, scatter_add or one_hot (which runs as scatter).
  virtual void scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
                       int dim) = 0;
  /// out[.., ids[i], ..] += source[.., i, ..] in the order of i; padding is ignored. ids [n].
  virtual void index_add(const View& out, const ConstView& source, const ConstView& ids,
                         int dim) = 0;
  /// Sorts along a dim and returns the elements and their u32 indices. Stable; NaN comes last in
  /// both orders, -0 < +0. Either output may be absent (null data). Outputs shorter than the input
  /// along `dim` receive the first elements.
  virtual void sort(const View& values, const View& indices, const ConstView& in, int dim,
                    bool descending) = 0;
  /// cumsum, cumprod: out[.., i, ..] is the sum or product of in[.., 0 to i, ..] along `dim`.
  virtual void scan(Op op, const View& out, const ConstView& in, int dim) = 0;
  /// uniform over [a, b), or normal with mean a and deviation b. Element i, in row-major order,
  /// depends only on the seed, i and the counter `first`; see docs/design/numerics/random.md.
  virtual void random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a,
                      Scalar b) = 0;

  // Elementwise.
  virtual void unary(Op op, const View& out, const ConstView& in) = 0;
  /// f(x; p, q); a row with one number uses p. Numbers are converted to the compute type by the
  /// rules of cast.
  virtual void unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) = 0;
  /// out is u8.
  virtual void test(Op op, const View& out, const ConstView& in) = 0;
  /// Operands are broadcast to out's shape by strides of 0.
  virtual void binary(Op op, const View& out, const ConstView& a, const ConstView& b) = 0;
  /// Operands are broadcast to out's shape by strides of 0. out is u8.
  virtual void compare(Op op, const View& out, const ConstView& a, const ConstView& b) = 0;
  /// condition is u8, u32 or i64. Operands are broadcast to out's shape by strides of 0.
  virtual void where(const View& out, const ConstView& condition, const ConstView& a,
                     const ConstView& b) = 0;

  // Reductions. `out` has the rank of `in`; reduced dims (bit d of dims) have size 1.
  virtual void reduce(Op op, const View& out, const ConstView& in, uint32_t dims) = 0;
  virtual void arg_reduce(Op op, const View& out, const ConstView& in, int dim) = 0;

  // Gemm and quantisation.
  /// a [.., m, k] @ b [.., k, n] → out [.., m, n]; batch dims are equal (broadcast by strides of
  /// 0).
  virtual void matmul(const View& out, const ConstView& a, const ConstView& b) = 0;
  /// Packs matrices [n_i, k] of one dtype, stacked along n. `release`: the sources are mapped from
  /// files, and their pages are returned to the system during packing. It must be false for other
  /// memory, whose contents would be lost.
  virtual std::unique_ptr<PreparedWeight> prepare(std::span<const ConstView> parts,
                                                  bool release) = 0;
  /// x [.., k] → out [.., n], both of one float dtype; with a fusion both are f32.
  virtual void linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                      const LinearFusion& fusion) = 0;
  /// out [t, n, width]; out[i, j] = row i of x [t, k] times the weight experts[ids[i, j]]. Each row
  /// has the bits that linear gives it alone, except with f16 and bf16 weights on GPUs: there the
  /// order of sums depends on the rows of a sequence, the numbers of ids and experts, and the sizes
  /// (docs/design/numerics/matmul.md). Experts have one dtype and size; x and out have one float
  /// dtype; out is dense; ids u32 [t, n] on the device. Errors: an id is out of range; on a GPU the
  /// error is raised at the next synchronisation, and the row of out is zeros.
  virtual void grouped_linear(const View& out, const ConstView& x,
                              std::span<const PreparedWeight* const> experts, const ConstView& ids,
                              const GroupedRows& rows) = 0;
  /// logits [t, experts] f32 → ids u32 [t, used] and their weights f32 [t, used], both dense, with
  /// the bits of the separate ops. bias [experts] f32 may be absent. See ExpertRouting.
  virtual void route_experts(const View& ids, const View& weights, const ConstView& logits,
                             const ConstView& bias, const ExpertRouting& routing) = 0;
  /// y [t, n, 2k] → out [t, n, k], f32 and dense: the clamped SwiGLU of gpt-oss, with the bits of
  /// the separate ops. With a = y + the bias of each row's expert, g = the first half of a's last
  /// dim, clamped to at most `limit`, and u = the second half, clamped to ±limit:
  /// out = g · sigmoid(g · alpha) · (u + 1). Errors: those of index_select for the bias's ids.
  virtual void gate_experts(const View& out, const ConstView& y, const ExpertBias& bias,
                            double alpha, double limit) = 0;
  /// y [t, n, k], weights [t, n, 1] → out [t, k] = residual + sum((y + bias) * weights) over n, all
  /// f32, with the bits of the separate ops. residual has out's shape (strides may be 0) and may be
  /// absent. Errors: those of index_select for the bias's ids.
  virtual void combine_experts(const View& out, const ConstView& y, const ConstView& weights,
                               const ConstView& residual, const ExpertBias& bias) = 0;
  /// in f32 [.., k] → a block dtype; k is a multiple of the block size.
  virtual void quantize(const View& out, const ConstView& in) = 0;
  virtual void dequantize(const View& out, const ConstView& in) = 0;

  // Convolutions, pools and resampling. x is [b, c, h, w], w is [o, c/groups, kh, kw]; 1D operands
  // have h = kh = 1.
  virtual void conv2d(const View& out, const ConstView& x, const ConstView& w,
                      const ConvParams& params) = 0;
  /// The gradient of conv2d with respect to x [b, c, h, w], from the output's gradient [b, o, oh,
  /// ow]. It is also the forward pass of a transposed convolution.
  virtual void conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                            const ConvParams& params) = 0;
  /// The gradient of conv2d with respect to w.
  virtual void conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                             const ConvParams& params) = 0;
  /// max_pool2d, avg_pool2d: in [b, c, h, w] → out [b, c, oh, ow].
  virtual void pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) = 0;
  /// The gradient of pool2d for float dtypes. max_pool2d passes grad_out to the first largest
  /// element of each window; avg_pool2d shares it evenly among the window's elements.
  virtual void pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out,
                           const ConstView& in, const PoolParams& params) = 0;
  /// upsample_nearest2d, upsample_bilinear2d: in [b, c, h, w] → out [b, c, oh, ow].
  virtual void resample(Op op, const View& out, const ConstView& in,
                        const ResampleParams& params) = 0;
  /// The gradient of resample for float dtypes.
  virtual void resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                             const ResampleParams& params) = 0;

  // Fused ops.
  virtual void softmax(const View& out, const ConstView& in, int dim, bool log) = 0;
  /// out may be the same memory as in.
  virtual void rms_norm(const View& out, const ConstView& in, const ConstView& weight,
                        float eps) = 0;
  /// rms_norm of two tensors, neither of which overlaps the other's result.
  virtual void rms_norm_pair(const NormOperands& a, const NormOperands& b, float eps) {
    rms_norm(a.out, a.in, a.weight, eps);
    rms_norm(b.out, b.in, b.weight, eps);
  }
  /// rms_norm plus `residual`, which has the result's shape. The result overlaps no operand.
  virtual void rms_norm_add(const NormOperands& x, const ConstView& residual, float eps) {
    rms_norm(x.out, x.in, x.weight, eps);
    binary(Op::add, x.out, residual, x.out);
  }
  /// weight and bias [d] have in's dtype or f32; either may be absent (null data).
  virtual void layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                          const ConstView& bias, float eps) = 0;
  /// in [b, c, ..]. Normalises each group of channels with all their elements, then scales and
  /// shifts per channel. weight and bias [c] have in's dtype or f32 and may be absent; groups
  /// divides c.
  virtual void group_norm(const View& out, const ConstView& in, int64_t groups,
                          const ConstView& weight, const ConstView& bias, float eps) = 0;
  /// in [b, c, ..]; mean, variance, weight and bias [c] have in's dtype or f32; weight and bias may
  /// be absent.
  virtual void batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                          const ConstView& variance, const ConstView& weight, const ConstView& bias,
                          float eps) = 0;
  /// The gradient of softmax, or of log_softmax, from its result y and the result's gradient.
  virtual void softmax_grad(const View& out, const ConstView& y, const ConstView& grad, int dim,
                            bool log) = 0;
  /// The gradient of a norm with respect to x (NormKind). x and grad have out's shape and dtype;
  /// weight has that dtype or f32, or is absent. statistics [2, rows ..] is dense and of the
  /// compute type: the rows' means and scales. With groups it is [2, b, c], and the channels of a
  /// group have equal numbers.
  virtual void norm_grad(const View& out, const View& statistics, const ConstView& x,
                         const ConstView& grad, const ConstView& weight, const NormKind& kind) = 0;
  /// Σ grad · ((x − mean) · scale) and Σ grad over the dims of x in the bit mask `dims`. mean and
  /// scale have x's shape (strides may be 0) and the compute type; mean may be absent, and the
  /// terms then are (grad · x) · scale. out [2, kept dims ..] is dense and of the compute type.
  virtual void norm_sums(const View& out, const ConstView& x, const ConstView& grad,
                         const ConstView& mean, const ConstView& scale, uint32_t dims) = 0;
  /// in [.., t, d]; cos and sin are f32 [t, r/2], optionally with in's leading dims (strides may be
  /// 0). r <= d elements are rotated, the others are copied.
  virtual void rope(const View& out, const ConstView& in, const ConstView& cos,
                    const ConstView& sin, bool interleaved) = 0;
  /// q [b, h, m, d], k [b, g, n, d], v [b, g, n, e] → out [b, h, m, e]; h is a multiple of g. k and
  /// v share a dtype, which may be narrower than q's; out has q's dtype.
  virtual void attention(const View& out, const ConstView& q, const ConstView& k,
                         const ConstView& v, const AttentionParams& params,
                         const AttentionBias& bias) = 0;
  /// The gradients of attention's q, k and v from that of its result, and each query's part of the
  /// sinks' gradient: d_sinks [b, h, m] f32. grad [b, h, m, e]; all operands and the other results
  /// have one dtype. dq, both of dk and dv, and d_sinks may be absent (null data). Class bound:
  /// docs/design/numerics/attention.md. Keys that no query sees and queries that see no key get 0.
  /// No memory of the size of queries by keys is used.
  virtual void attention_gradient(const View& dq, const View& dk, const View& dv,
                                  const View& d_sinks, const ConstView& grad, const ConstView& q,
                                  const ConstView& k, const ConstView& v,
                                  const AttentionParams& params, const AttentionBias& bias) = 0;
  /// Attention over keys in pages: q [b, h, m, d], k [pages, g, size, d], v [pages, g, size, e] →
  /// out [b, h, m, e]. bias has no mask. The queries are the last positions of each sequence. Pages
  /// are read in place. Errors: a page number or a length is out of range (a GPU reports it at the
  /// next synchronisation).
  virtual void attention_of_pages(const View& out, const ConstView& q, const ConstView& k,
                                  const ConstView& v, const PagedSequences& sequences,
                                  const AttentionParams& params, const AttentionBias& bias) = 0;
  /// Writes rows [t, g, d] to pages [p, g, size, d], converted as by cast. Row i belongs to
  /// sequence i / (t / b) and goes to position positions[i]; tables [b, n] give the page. Positions
  /// ascend by one within a sequence. tables and positions are u32, on the device. Errors: a
  /// position has no page or doesn't follow the previous one; a page number is out of range; two
  /// sequences write to one page. A GPU reports these at the next synchronisation and skips rows
  /// without a valid place.
  virtual void store_in_pages(const View& pages, const ConstView& rows, const ConstView& tables,
                              const ConstView& positions) = 0;
  /// qkv [t, h·d + g·d + g·e] f32 holds h query heads, g key heads and g value heads per row.
  /// Rotates queries and keys (rope_interleaved) by their positions, stores keys and values in the
  /// caches, and computes attention. out [t, h·e] f32.
  virtual void cached_attention(const View& out, const ConstView& qkv,
                                const CachedAttention& where) = 0;
  /// The recurrences below advance sequences whose state lies in rows of a dense tensor; slots [b]
  /// u32, on the device, name each sequence's row. The t rows of the operands belong to b sequences
  /// of t / b rows each. All operands are f32. The order of operations is in
  /// docs/design/numerics/recurrence.md. Errors: a slot is out of range, or two sequences have one
  /// slot; nothing is written. A GPU reports these at the next synchronisation, and sequences
  /// without a valid slot get zeros.
  ///
  /// out [t, c] = bias + Σ weight[c, j] · x[i − k + 1 + j, c], with x [t, c], bias [c] or absent
  /// and state [s, k − 1, c], which holds the inputs before the first row, oldest first, and then
  /// the last ones.
  virtual void causal_conv(const View& out, const ConstView& x, const ConstView& weight,
                           const ConstView& bias, const Recurrence& where) = 0;
  /// out [t, h, p] of Mamba-2's recurrence: see SsmScan. state [s, h, m, p].
  virtual void ssm_scan(const View& out, const SsmScan& operands, const Recurrence& where) = 0;
  /// out [t, h, e] of the gated delta rule: see GatedDeltaScan. state [s, h, m, e].
  virtual void gated_delta_scan(const View& out, const GatedDeltaScan& operands,
                                const Recurrence& where) = 0;
  /// Draws the next token of each sequence, as Sampler does, from its logits [b, vocabulary] f32,
  /// its history and its count of draws; all state stays on the device. A history of size 0 records
  /// nothing and requires that no penalty is set. Errors: those of Sampler::sample; the history is
  /// full. A GPU reports these at the next synchronisation and leaves the sequence's state
  /// unchanged.
  virtual void sample(const SampleState& state, const ConstView& logits) = 0;

  // Kernels of custom ops.
  /// The stream of the calling thread's work, as the driver's handle: while the thread captures a
  /// graph, the stream of the capture. Null on the CPU. Makes the device the thread's current one.
  virtual void* work_stream() = 0;
  /// The limits that launch() checks. Errors: the device is the CPU.
  virtual LaunchLimits launch_limits() = 0;
  /// Compiles or loads a user's kernel, unless that has been done, and launches it on
  /// work_stream(). Errors: the device is the CPU, has no run-time compiler, or doesn't take the
  /// code; the text doesn't compile; those of check_grid.
  virtual void launch(const KernelLaunch& launch) = 0;
};

/// Returns the backend of a device. Errors: the device doesn't exist, or wick has no kernels for
/// it.
WICK_API Backend& backend(Device device);

}  // namespace wick
