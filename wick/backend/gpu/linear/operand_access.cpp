// The operand layouts that gemm kernels, tensor copies and vendors' libraries take. Nothing here
// needs a device.

#include <utility>

#include "wick/backend/gpu/linear/gemm.h"
#include "wick/base/precision.h"

namespace wick::gpu {
namespace {

/// Operand 1 or 2 of the batch: rows by k, with their strides.
struct Matrix {
  DType dtype;
  const void* data;
  int64_t rows, row_stride, k, k_stride;

  Matrix(const GemmJob& job, size_t operand) {
    const Gemm& p = job.shape;
    const bool is_a = operand == 1;
    dtype = is_a ? job.a_dtype : job.b_dtype;
    data = is_a ? job.a : job.b;
    rows = is_a ? p.m : p.n;
    row_stride = is_a ? p.a_row : p.b_row;
    // Further terms of a lie behind the first term, in packed rows.
    k = is_a ? int64_t{p.k} * job.terms : p.k;
    k_stride = is_a ? p.a_k : p.b_k;
  }
};

/// The Access of all matrices of a batch. The caller adds rows and columns.
Access access_of_batch(const GemmJob& job, size_t operand, const void* data, DType dtype) {
  return access_of(job.batch, operand, data, info(dtype).block_bytes);
}
/// Runs along k.
Access along_k(const GemmJob& job, size_t operand) {
  const Matrix x(job, operand);
  return access_of_batch(job, operand, x.data, x.dtype)
      .run(x.k, x.k_stride)
      .dim(x.rows, x.row_stride);
}
/// Runs along neighbouring rows.
Access along_rows(const GemmJob& job, size_t operand) {
  const Matrix x(job, operand);
  return access_of_batch(job, operand, x.data, x.dtype)
      .run(x.rows, x.row_stride)
      .dim(x.k, x.k_stride);
}

/// A matrix [rows, cols] as libraries take it: dense rows or, transposed, dense columns.
struct Stored {
  bool transposed;
  int64_t ld;
};
std::optional<Stored> stored_as(int64_t rows, int64_t cols, int64_t row_stride,
                                int64_t col_stride) {
  if (const auto ld = pitch_of_rows(rows, cols, row_stride, col_stride)) return Stored{false, *ld};
  if (const auto ld = pitch_of_rows(cols, rows, col_stride, row_stride)) return Stored{true, *ld};
  return std::nullopt;
}

}  // namespace

RowLayout layout_of(const GemmJob& job, size_t operand) {
  if (job.shape.k % 8 == 0 && along_k(job, operand).vectors_of(8)) return kPiecesOfK;
  const uint32_t rows = operand == 1 ? job.shape.m : job.shape.n;
  if (rows % 2 == 0 && along_rows(job, operand).vectors_of(2)) return kPairsOfRows;
  return kScalar;
}

bool has_vector_rows(const GemmJob& job) {
  const int64_t vector = kMostVectorBytes / info(job.b_dtype).block_bytes;
  return (job.b_stays || job.shape.k % vector == 0) && along_k(job, 2).vectors_of(vector);
}

bool has_vector_columns(const GemmJob& job) {
  const int64_t vector = kMostVectorBytes / info(job.b_dtype).block_bytes;
  return job.shape.n % vector == 0 && along_rows(job, 2).vectors_of(vector);
}

bool has_near_rows(const GemmJob& job) {
  return along_k(job, 2).has_u32_distances(kMostVectorBytes);
}

std::optional<Lines> lines_of(const GemmJob& job, size_t operand) {
  constexpr int64_t kVector = 8;
  const Matrix x(job, operand);
  Lines lines;
  lines.data = advance(x.data, x.dtype, job.batch.start[operand]);
  if (!job.batch.dims.empty() && job.batch.dims[0].stride[operand] != 0) {
    lines.matrices = job.batch.dims[0].size;
    lines.matrix_stride = job.batch.dims[0].stride[operand];
    if (lines.matrix_stride < 0) return std::nullopt;
  }
  const auto take = [&](bool turned) {
    lines.turned = turned;
    lines.columns = turned ? x.rows : x.k;
    lines.lines = turned ? x.k : x.rows;
    const auto pitch = turned ? pitch_of_rows(x.k, x.rows, x.k_stride, x.row_stride)
                              : pitch_of_rows(x.rows, x.k, x.row_stride, x.k_stride);
    // The stride of a single line is meaningless, but the driver checks it.
    lines.line_stride =
        lines.lines == 1 ? (lines.columns + kVector - 1) / kVector * kVector : pitch.value_or(0);
    const Access access = turned ? along_rows(job, operand) : along_k(job, operand);
    return pitch.has_value() && lines.columns != 0 && access.vectors_of(kVector);
  };
  if (take(false) || take(true)) return lines;
  return std::nullopt;
}

std::optional<GemmCall> library_call(const GemmJob& job) {
  const Gemm& p = job.shape;
  const DType dtype = job.a_dtype;
  const bool floats = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  if (!floats || job.b_dtype != dtype || p.format != out_format(dtype) || job.out_dtype != dtype ||
      p.scale != nullptr || p.residual != nullptr || p.k == 0 || job.batch.dims.size() > 1) {
    return std::nullopt;
  }
  const auto a = stored_as(p.m, p.k, p.a_row, p.a_k), b = stored_as(p.k, p.n, p.b_k, p.b_row);
  const auto ldc = pitch_of_rows(p.m, p.n, p.out_row, p.out_col);
  if (!a || !b || !ldc) return std::nullopt;

  GemmCall call;
  call.dtype = dtype;
  call.fast = dtype == DType::f32 && precision() == Precision::fast;
  call.m = p.m, call.n = p.n, call.k = p.k;
  call.a = advance(job.a, dtype, job.batch.start[1]);
  call.b = advance(job.b, dtype, job.batch.start[2]);
  call.c = advance(job.out, dtype, job.batch.start[0]);
  call.a_transposed = a->transposed, call.b_transposed = b->transposed;
  call.lda = a->ld, call.ldb = b->ld, call.ldc = *ldc;
  if (!job.batch.dims.empty()) {
    const auto& [size, stride] = job.batch.dims[0];
    if (stride[1] < 0 || stride[2] < 0 || stride[0] < (call.m - 1) * call.ldc + call.n) {
      return std::nullopt;
    }
    call.batch = size;
    call.stride_c = stride[0], call.stride_a = stride[1], call.stride_b = stride[2];
  }
  return call;
}

void GemmJob::transpose() {
  std::swap(shape.m, shape.n);
  std::swap(shape.out_row, shape.out_col);
  std::swap(shape.a_row, shape.b_row);
  std::swap(shape.a_k, shape.b_k);
  std::swap(a, b);
  std::swap(a_dtype, b_dtype);
  std::swap(batch.start[1], batch.start[2]);
  for (auto& dim : batch.dims) std::swap(dim.stride[1], dim.stride[2]);
}

void GemmJob::store_to(DType dtype) {
  out_dtype = dtype;
  shape.format = out_format(dtype);
  const auto fours = [&](const void* data, DType type, size_t operand, int64_t row, int64_t col) {
    return access_of_batch(*this, operand, data, type)
        .run(shape.n, col)
        .dim(shape.m, row)
        .vectors_of(4);
  };
  const bool all = shape.n % 4 == 0 && fours(out, dtype, 0, shape.out_row, shape.out_col) &&
                   (shape.residual == nullptr ||
                    fours(shape.residual, DType::f32, 3, shape.residual_row, shape.residual_col));
  shape.fours = all ? 1 : 0;
}

}  // namespace wick::gpu
