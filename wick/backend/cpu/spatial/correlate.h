#pragma once

// What the implementations of correlations and their gradients share.

#include <cstdint>

#include "wick/backend/cpu/spatial/conv.h"

namespace wick::cpu {

/// What all tasks of a Correlation or a FilterGradient share.
template <class Job>
struct SetupOf {
  const Job& job;
  const GemmKernels& gemm;
  const ConvKernels& conv;
  Compute compute;
  int64_t bytes;     // of an element of the compute type
  int64_t in_bytes;  // of the dtype
  int64_t terms;

  SetupOf(Isa isa, const Job& j)
      : job(j),
        gemm(gemm_kernels(isa)),
        conv(conv_kernels(isa)),
        compute(compute_of(j.shape.dtype)),
        bytes(elem_bytes(compute)),
        in_bytes(info(j.shape.dtype).block_bytes),
        terms(j.shape.terms()) {}

  size_t kind() const { return static_cast<size_t>(compute); }
  size_t dtype() const { return static_cast<size_t>(job.shape.dtype); }
  DType compute_dtype() const { return compute == Compute::f64 ? DType::f64 : DType::f32; }
  double products() const {
    return static_cast<double>(job.groups * job.rows) * static_cast<double>(terms) *
           static_cast<double>(job.shape.pixels());
  }
  const char* input(int64_t group) const { return job.in + group * job.in_group_stride * in_bytes; }
};

struct CorrelationSetup : SetupOf<Correlation> {
  using SetupOf::SetupOf;
  char* output(int64_t group) const {
    return job.out.data + group * job.out.group_stride * in_bytes;
  }
};

/// The common stride of a group's terms, or 0 if there is none.
int64_t term_stride(const Correlation& job);
/// Copies the weights in the compute type to to[group · row][term].
void gather_filters(const CorrelationSetup& s, char* to);
/// Copies the weights in their dtype, to rows of `row_terms` terms with zeros behind the last term.
void gather_raw_filters(const CorrelationSetup& s, int64_t row_terms, char* to);

/// Where pixels lie in the output.
class PixelPlaces {
 public:
  explicit PixelPlaces(const CorrelationSetup& s)
      : target_(s.job.out),
        nx_(s.job.shape.out_size[1]),
        image_(s.job.shape.out_size[0] * nx_),
        bytes_(s.in_bytes),
        store_(s.gemm.store[static_cast<size_t>(s.job.out.dtype)]),
        stride_(nx_ == 1 ? target_.stride[0] : target_.stride[1]),
        merged_(nx_ == image_ || nx_ == 1 || target_.stride[0] == stride_ * nx_) {}

  /// Whether all `pixels` are contiguous.
  bool is_one_run(int64_t pixels) const {
    return stride_ == 1 && (merged_ ? image_ : nx_) == pixels;
  }
  /// Calls visit(first, count, offset) for runs of pixels of [pixel, pixel + pixels) with one
  /// stride.
  template <class F>
  void for_each_run(int64_t pixel, int64_t pixels, F&& visit) const {
    int64_t batch = pixel / image_, y = pixel % image_ / nx_, x = pixel % nx_;
    for (int64_t done = 0; done < pixels;) {
      const int64_t rest = (merged_ ? image_ - y * nx_ : nx_) - x;
      const int64_t count = std::min(rest, pixels - done);
      visit(done, count,
            batch * target_.batch_stride + y * target_.stride[0] + x * target_.stride[1]);
      done += count;
      x = 0;
      if (merged_ || ++y * nx_ == image_) {
        y = 0;
        ++batch;
      }
    }
  }
  /// Stores neighbouring pixels of one row.
  void store(char* out, int64_t row, int64_t offset, int64_t count, const char* from) const {
    store_(from, out + (row * target_.row_stride + offset) * bytes_, stride_, count);
  }
  /// Stores neighbouring rows of one pixel, `step` pixels from the one at the offset.
  void store_rows(char* out, int64_t row, int64_t rows, int64_t offset, int64_t step,
                  const char* from) const {
    store_(from, out + (row * target_.row_stride + offset + step * stride_) * bytes_,
           target_.row_stride, rows);
  }

 private:
  const PixelTarget& target_;
  int64_t nx_, image_, bytes_;
  GemmKernels::Store store_;
  int64_t stride_;
  bool merged_;
};

/// Computes a correlation as gemm on packed panels (gemm.h), whose columns, or rows, are the pixels
/// of the whole batch.
void correlate_as_gemm(Isa isa, const CorrelationSetup& s);

}  // namespace wick::cpu
