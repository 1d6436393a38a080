#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "wick/backend/view.h"
#include "wick/base/device.h"
#include "wick/base/export.h"
#include "wick/base/sampler.h"
#include "wick/op/op.h"

namespace wick {

/// A weight matrix [n, k] packed for one device by Backend::prepare; opaque to everyone else.
class WICK_API PreparedWeight {
 public:
  virtual ~PreparedWeight();
  DType dtype = DType::f32;
  int64_t n = 0, k = 0;
  size_t bytes = 0;
};

/// Which key a query may see, and how scores are shaped, in `attention`.
struct AttentionParams {
  float scale = 1.0f;     ///< multiplies q·k
  bool causal = true;     ///< query i sees keys j <= i + (keys - queries)
  int64_t window = 0;     ///< > 0: and j > i + (keys - queries) - window
  float soft_cap = 0.0f;  ///< > 0: score = cap * tanh(score / cap), before masks
};

/// What `attention` adds to scores, behind their cap: absent where data is null.
struct AttentionBias {
  ConstView mask;    ///< [b, h, m, n]: f32, added; or u8, a key whose element is 0 isn't seen
  ConstView slopes;  ///< [h] f32: times (j - i - (keys - queries)) is added, for key j and query i
};

/// Which keys of a cache belong to which sequence, in `attention_of_pages`: position p of sequence i
/// lies in page tables[i][p / size], at place p % size, where a page holds `size` positions.
struct PagedSequences {
  ConstView tables;   ///< [b, n] u32: pages, on the device
  ConstView lengths;  ///< [b] u32: how many positions each sequence has, on the device
};

/// Where new positions and what they attend to lie, in `cached_attention`. The caches are written.
/// The t rows belong to b sequences of t / b rows each.
struct CachedAttention {
  ConstView cos, sin;      ///< [positions, r/2] f32
  ConstView positions;     ///< [t] u32: of the rows, ascending by one in a sequence, on the device
  View keys;               ///< [pages, g, size, d]
  View values;             ///< [pages, g, size, e], of keys' dtype
  ConstView tables;        ///< [b, n] u32: the pages of each sequence, on the device
  AttentionParams params;  ///< causal; a row sees its sequence's positions up to its own
};

/// How the kernel of a convolution moves over its input, along h and w.
struct ConvParams {
  int64_t stride[2] = {1, 1};
  int64_t padding[2] = {0, 0};   ///< zeros at either side
  int64_t dilation[2] = {1, 1};  ///< inputs from one tap of the kernel to the next
  int64_t groups = 1;
};

/// How a window of max_pool2d and avg_pool2d moves over its input, along h and w.
struct PoolParams {
  int64_t kernel[2] = {1, 1};
  int64_t stride[2] = {0, 0};     ///< 0: the kernel's size (a backend gets the size itself)
  int64_t padding[2] = {0, 0};    ///< at either side
  bool count_include_pad = true;  ///< avg: padding counts as elements that are 0
};

/// Which inputs an output of upsample_nearest2d or upsample_bilinear2d lies at, along h and w.
struct ResampleParams {
  double scale[2] = {1, 1};    ///< inputs from one output to the next
  bool align_corners = false;  ///< bilinear: output 0 lies at input 0, not half a step before it
};

/// What `linear` computes of its input before the product, and adds to it afterwards. The result
/// has the bits of the ops it stands for, one after another, in f32.
struct LinearFusion {
  enum class Input : uint8_t {
    plain,
    rms_norm,   ///< of x's rows, with `norm` and `eps`
    silu_mul,   ///< silu of the first half of x's rows times their second half: x is [.., 2k]
    attention,  ///< cached_attention of x, its qkv, with `attention`
  };
  Input input = Input::plain;
  ConstView norm;  ///< [k] f32
  float eps = 0;
  const CachedAttention* attention = nullptr;
  bool add = false;    ///< whether there is a residual
  ConstView residual;  ///< [.., n] of x's dtype, added to the product
};

/// What choosing tokens reads and changes on the device, in `sample`: a row for each of b sequences.
struct SampleState {
  View tokens;        ///< u32 [b]: those chosen
  View positions;     ///< u32 [b]: go up by one
  View history;       ///< u32 [b, n]: the tokens so far, oldest first; the chosen one is added
  View counts;        ///< u32 [b, 3]: tokens of the history, tokens drawn at random, tokens chosen
  View chosen;        ///< u32 [n, b]: the i-th token chosen goes to row i % n, too
  ConstView options;  ///< u32 [b, kSamplerWords], see sampler_words()
};

/// Work that was recorded once, to be done again and again.
class WICK_API DeviceGraph {
 public:
  virtual ~DeviceGraph();
  /// Does the work, behind what was given to the device so far.
  virtual void replay() = 0;
};

/// A copy to the host that was started.
class WICK_API Readback {
 public:
  virtual ~Readback();
  /// Waits for it and gives the bytes, once. Errors: what went wrong in the work in front of it.
  virtual void finish(void* to_host) = 0;
};

/// Memory of a device as its allocator sees it.
struct MemoryInfo {
  size_t in_use_bytes = 0;  ///< held by live storages
  size_t cached_bytes = 0;  ///< free, kept for reuse
  size_t peak_bytes = 0;    ///< largest in_use_bytes so far
  size_t total_bytes = 0;   ///< what the process may use of the device in all
  size_t limit_bytes = 0;   ///< most that may be held; total_bytes where no limit was set
};

/// One device. Pure virtual and without defaults: a backend that lacks an operation doesn't
/// compile.
///
/// Callers (the tensor layer) have checked shapes, dtypes and devices; a backend takes every
/// layout and dtype of the op's row and never throws because a layout isn't contiguous. Outputs
/// never share memory with inputs unless a method says so. Empty outputs are fine.
class WICK_API Backend {
 public:
  virtual ~Backend();

  // Memory.
  virtual Device device() const = 0;
  /// One line for people: name, ISA or architecture, memory.
  virtual std::string description() const = 0;
  /// `bytes` of uninitialised memory, aligned to at least 64. Errors: out of memory.
  virtual void* alloc(size_t bytes) = 0;
  virtual void free(void* data, size_t bytes) noexcept = 0;
  virtual void upload(void* to_device, const void* from_host, size_t bytes) = 0;
  virtual void download(void* to_host, const void* from_device, size_t bytes) = 0;
  /// Starts to copy what the device's work so far leaves there, beside the work that follows, which
  /// must leave these bytes alone until the copy is finished.
  virtual std::unique_ptr<Readback> start_readback(const void* from_device, size_t bytes) = 0;
  /// Copies from another device's memory, behind the work of both so far. Errors: one of them
  /// records.
  virtual void copy_from(void* to, Backend& there, const void* from, size_t bytes) = 0;
  /// Waits for all work. Errors: what went wrong in it, with the op's name.
  virtual void synchronize() = 0;
  /// Waits until the device does nothing, whoever gave it work. What went wrong in it is left for
  /// synchronize to say.
  virtual void quiesce() noexcept = 0;
  /// The stream that work goes to, as the vendor's driver knows it; null on the CPU. Errors: the
  /// calling thread makes a recording.
  virtual void* native_stream() = 0;
  /// Does `work`, whose calls of this backend become a recording. They write to tensors made
  /// before; what they allocate lives as long as the recording. They don't copy to or from the
  /// host.
  virtual std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) = 0;
  virtual MemoryInfo memory_info() const = 0;
  /// What the system would still hand out, to this process or to others: changes at any time.
  virtual size_t free_memory() const = 0;
  /// Most that may be held, in use and cached; 0: what the device has. What is in use stays.
  virtual void set_memory_limit(size_t bytes) = 0;
  /// Lets peak_bytes count from what is in use now.
  virtual void reset_peak_memory() = 0;
  /// Rows of activations of a layer that caches hold at once: longer prompts gain from going
  /// through a layer in slices of so many. 0: slices gain nothing.
  virtual int64_t rows_in_cache() const = 0;
  /// Whether work is done behind the caller's back: then it pays to give it the next before the
  /// last one's results are awaited.
  virtual bool runs_ahead() const = 0;
  /// Gives cached memory back to the system.
  virtual void trim() = 0;

  // Move.
  virtual void fill(const View& out, Scalar value) = 0;
  virtual void iota(const View& out, Scalar start, Scalar step) = 0;
  virtual void copy(const View& out, const ConstView& in) = 0;
  virtual void cast(const View& out, const ConstView& in) = 0;
  /// out[.., i, ..] = in[.., ids[i], ..]; a block dtype `in` has rank 2, dim 0, and a float out.
  virtual void index_select(const View& out, const ConstView& in, const ConstView& ids,
                            int dim) = 0;

  // Index. `ids` is u8, u32, i32 or i64; the maximum of an unsigned type is padding. Errors: any
  // other id outside the dim, which names it.
  /// out[.., i, ..] = in[.., ids[.., i, ..], ..] along `dim`, 0 for padding. ids has out's shape;
  /// in's other sizes are at least those. What out holds after an error is unspecified.
  virtual void gather(const View& out, const ConstView& in, const ConstView& ids, int dim) = 0;
  /// out[.., ids[.., i, ..], ..] = source[.., i, ..] along `dim`, in the order of i, padding left
  /// out. ids has source's shape; out's other sizes are at least those. scatter_add adds to what
  /// out holds. `op` is scatter, scatter_add or one_hot, a scatter by another name. Ids are checked
  /// before anything is written.
  virtual void scatter(Op op, const View& out, const ConstView& source, const ConstView& ids,
                       int dim) = 0;
  /// out[.., ids[i], ..] += source[.., i, ..] in the order of i, padding left out; ids [n]. Ids are
  /// checked before anything is written.
  virtual void index_add(const View& out, const ConstView& source, const ConstView& ids,
                         int dim) = 0;
  /// The elements along a dim in order, and their u32 places in it. Stable; NaN last in both
  /// directions, -0 < +0. Either output may be absent (no data); outputs may be shorter along `dim`
  /// than the input: the first so many.
  virtual void sort(const View& values, const View& indices, const ConstView& in, int dim,
                    bool descending) = 0;
  /// cumsum: out[.., i, ..] is the sum of in[.., 0 to i, ..] along `dim`.
  virtual void scan(Op op, const View& out, const ConstView& in, int dim) = 0;
  /// uniform in [a, b), or normal of mean a and deviation b: element i, row-major, is a function of
  /// the seed, i and the counter `first` alone; see docs/design/numerics/random.md.
  virtual void random(Op op, const View& out, uint64_t seed, uint64_t first, Scalar a,
                      Scalar b) = 0;

  // Map.
  virtual void unary(Op op, const View& out, const ConstView& in) = 0;
  /// f(x; p, q); a row of one number takes p. They become numbers of the type that computes, by the
  /// rules of cast.
  virtual void unary_with(Op op, const View& out, const ConstView& in, Scalar p, Scalar q) = 0;
  /// out is u8.
  virtual void test(Op op, const View& out, const ConstView& in) = 0;
  /// Operands are already broadcast to out's shape (strides of 0).
  virtual void binary(Op op, const View& out, const ConstView& a, const ConstView& b) = 0;
  /// Likewise; out is u8.
  virtual void compare(Op op, const View& out, const ConstView& a, const ConstView& b) = 0;
  /// condition u8, u32 or i64; broadcast as those of binary.
  virtual void where(const View& out, const ConstView& condition, const ConstView& a,
                     const ConstView& b) = 0;

  // Reduce. `out` has size 1 where a dim is reduced (bit d of dims), rank as `in`.
  virtual void reduce(Op op, const View& out, const ConstView& in, uint32_t dims) = 0;
  virtual void arg_reduce(Op op, const View& out, const ConstView& in, int dim) = 0;

  // Linear.
  /// a [.., m, k] @ b [.., k, n] → out [.., m, n], batch dims equal (broadcast by strides of 0).
  virtual void matmul(const View& out, const ConstView& a, const ConstView& b) = 0;
  /// Packs matrices [n_i, k] of one dtype, stacked along n. `release` says that the sources are
  /// mapped from files and won't be read again soon: their pages are given back as packing
  /// proceeds. Memory of another kind would lose its contents.
  virtual std::unique_ptr<PreparedWeight> prepare(std::span<const ConstView> parts,
                                                  bool release) = 0;
  /// x [.., k] → out [.., n], same float dtype. A fusion has x and out in f32.
  virtual void linear(const View& out, const ConstView& x, const PreparedWeight& weight,
                      const LinearFusion& fusion) = 0;
  /// f32 [.., k] → block dtype, k a multiple of its block.
  virtual void quantize(const View& out, const ConstView& in) = 0;
  virtual void dequantize(const View& out, const ConstView& in) = 0;

  // Spatial: x [b, c, h, w], w [o, c/groups, kh, kw], pixels of one dimension have h = kh = 1.
  virtual void conv2d(const View& out, const ConstView& x, const ConstView& w,
                      const ConvParams& params) = 0;
  /// The gradient of conv2d's x [b, c, h, w] by its output's [b, o, oh, ow]; a transposed
  /// convolution's forward.
  virtual void conv2d_input(const View& grad_x, const ConstView& grad_out, const ConstView& w,
                            const ConvParams& params) = 0;
  /// The gradient of conv2d's w.
  virtual void conv2d_weight(const View& grad_w, const ConstView& x, const ConstView& grad_out,
                             const ConvParams& params) = 0;
  /// max_pool2d, avg_pool2d: in [b, c, h, w] → out [b, c, oh, ow].
  virtual void pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) = 0;
  /// Their gradient, of floats: grad_out goes to the first largest element of its window, or is
  /// shared among the window's elements.
  virtual void pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out,
                           const ConstView& in, const PoolParams& params) = 0;
  /// upsample_nearest2d, upsample_bilinear2d: in [b, c, h, w] → out [b, c, oh, ow].
  virtual void resample(Op op, const View& out, const ConstView& in,
                        const ResampleParams& params) = 0;
  /// Their gradient, of floats.
  virtual void resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                             const ResampleParams& params) = 0;

  // Fused.
  virtual void softmax(const View& out, const ConstView& in, int dim, bool log) = 0;
  virtual void rms_norm(const View& out, const ConstView& in, const ConstView& weight,
                        float eps) = 0;
  /// weight and bias [d], of in's dtype or f32; either may be absent (data null).
  virtual void layer_norm(const View& out, const ConstView& in, const ConstView& weight,
                          const ConstView& bias, float eps) = 0;
  /// in [b, c, ..]: layer_norm of each group of channels with all that lies under them, scaled and
  /// shifted by channel. weight and bias [c] as layer_norm's; groups divide c.
  virtual void group_norm(const View& out, const ConstView& in, int64_t groups,
                          const ConstView& weight, const ConstView& bias, float eps) = 0;
  /// in [b, c, ..]; mean, variance, weight and bias [c], of in's dtype or f32; the last two may be
  /// absent.
  virtual void batch_norm(const View& out, const ConstView& in, const ConstView& mean,
                          const ConstView& variance, const ConstView& weight, const ConstView& bias,
                          float eps) = 0;
  /// in [.., t, d]; cos and sin f32, [t, r/2] or with the dims that in has in front of those (views
  /// may repeat), r <= d rotated elements, the rest are copied.
  virtual void rope(const View& out, const ConstView& in, const ConstView& cos,
                    const ConstView& sin, bool interleaved) = 0;
  /// q [b, h, m, d], k [b, g, n, d], v [b, g, n, e] → out [b, h, m, e]; h a multiple of g. k and v
  /// share a dtype, which may be narrower than q's; out has q's.
  virtual void attention(const View& out, const ConstView& q, const ConstView& k,
                         const ConstView& v, const AttentionParams& params,
                         const AttentionBias& bias) = 0;
  /// attention of keys in pages: q [b, h, m, d], k [pages, g, size, d], v [pages, g, size, e] → out
  /// [b, h, m, e]; slopes as in AttentionBias or absent. The queries are a sequence's last
  /// positions. Pages are read where they lie. Errors: a page or a length out of range (on a GPU at
  /// the next synchronisation).
  virtual void attention_of_pages(const View& out, const ConstView& q, const ConstView& k,
                                  const ConstView& v, const PagedSequences& sequences,
                                  const AttentionParams& params, const ConstView& slopes) = 0;
  /// rows [t, g, d] to pages [p, g, size, d], converted as by cast: row i of sequence i / (t / b)
  /// goes to position positions[i], which tables [b, n] finds the page of. Positions ascend by one
  /// in a sequence. u32 tables and positions, on the device. Errors: a position that its table has
  /// no page for or that doesn't follow, a page out of range, a page that two sequences write to (on
  /// a GPU at the next synchronisation; what has no place is left out).
  virtual void store_in_pages(const View& pages, const ConstView& rows, const ConstView& tables,
                              const ConstView& positions) = 0;
  /// qkv [t, h·d + g·d + g·e] f32, h query heads, g key heads and g value heads a row: rotates
  /// queries and keys (rope_interleaved) by their positions, stores keys and values in the caches,
  /// and attends. out [t, h·e] f32.
  virtual void cached_attention(const View& out, const ConstView& qkv,
                                const CachedAttention& where) = 0;
  /// The next token of each sequence as Sampler chooses it from its logits [b, vocabulary] f32, its
  /// history and the draws so far; all of that stays on the device. A history of no room takes none,
  /// where nothing is penalised. Errors: those of Sampler::sample, a full history (on a GPU at the
  /// next synchronisation; the sequence's state then stays as it was).
  virtual void sample(const SampleState& state, const ConstView& logits) = 0;
};

/// The backend of a device. Errors: no such device here, no kernels for it.
WICK_API Backend& backend(Device device);

}  // namespace wick
