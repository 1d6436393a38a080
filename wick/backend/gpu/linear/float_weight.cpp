#include "wick/backend/gpu/linear/float_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/gemm.h"
#include "wick/backend/gpu/linear/pack_rows.h"
#include "wick/math/half.h"

namespace wick::gpu {
namespace {

const KernelFamily<FindNonfiniteArgs> kFindNonfinite("pack_rows", "find_nonfinite");

/// A row takes whole cache lines, which are also whole slabs of main loops.
int64_t pitch_of(DType dtype, int64_t k) {
  const int64_t line = 128 / info(dtype).block_bytes;
  return (k + line - 1) / line * line;
}

/// Whether `elems` f16, a multiple of 64, have neither infinities nor NaN.
bool all_finite(Gpu& gpu, const void* data, int64_t elems) {
  const Scratch flag(gpu, sizeof(uint32_t));
  uint32_t found = 0;
  gpu.check(gpu.driver.api.set_bytes(flag.data(), 0, sizeof found, gpu.stream()),
            "clearing a flag");
  const int64_t packs = elems / 8;
  const auto thread_blocks =
      std::clamp<int64_t>(packs / kPackThreads, 1, gpu.info.multiprocessors * 8);
  kFindNonfinite().launch(
      gpu, Grid{.blocks = {static_cast<unsigned>(thread_blocks), 1, 1}, .threads = kPackThreads},
      {flag.data<uint32_t>(), data, static_cast<uint64_t>(packs)});
  gpu.staging.download(&found, flag.data(), sizeof found, gpu.stream());
  return found == 0;
}

/// The dtype as which x [.., k] is multiplied: see docs/design/numerics/matmul.md.
DType gemm_dtype(DType x, DType weight) {
  if (x == weight || weight != DType::f16) return weight;
  return DType::f32;
}

/// A layout of the same shape whose rows are `pitch` elements apart.
Layout rows_of_pitch(const Layout& layout, int64_t pitch) {
  Layout::Strides strides = {};
  const int last = layout.rank() - 1;
  strides[static_cast<size_t>(last)] = 1;
  for (int d = last - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = pitch;
    pitch *= layout.shape()[d];
  }
  return Layout(layout.shape(), strides, 0);
}

/// The gemm. The innermost dim of rows becomes m, the others a batch.
GemmJob job_of(const View& out, const ConstView& x, const FloatWeight& weight,
               const ConstView* residual, int64_t each) {
  const int last = out.layout.rank() - 1;
  GemmJob job;
  job.out = out.data;
  job.a = x.data;
  job.b = weight.memory.data();
  job.a_dtype = x.dtype;
  job.b_dtype = weight.dtype;
  job.b_stays = true;
  job.any_order = true;
  job.each = static_cast<uint32_t>(each);
  const Layout none(out.layout.shape(), {}, 0);
  const Layout& added = residual != nullptr ? residual->layout : none;
  job.batch = collapse<4>({&out.layout, &x.layout, &none, &added}, (1u << last) - 1);
  Gemm& p = job.shape;
  p.m = 1;
  p.n = static_cast<uint32_t>(weight.n);
  p.k = static_cast<uint32_t>(weight.k);
  p.b_row = weight.pitch;
  p.b_k = 1;
  p.a_k = x.layout.stride(last);
  p.out_col = out.layout.stride(last);
  if (!job.batch.dims.empty()) {
    const auto [size, stride] = job.batch.dims.back();
    job.batch.dims.pop_back();
    job.batch.elems /= size;
    p.m = static_cast<uint32_t>(size);
    p.out_row = stride[0];
    p.a_row = stride[1];
    p.residual_row = stride[3];
  }
  if (residual != nullptr) {
    p.residual = static_cast<const float*>(residual->data);
    p.residual_col = added.stride(last);
  }
  job.store_to(out.dtype);
  return job;
}

}  // namespace

size_t float_bytes(DType dtype, int64_t n, int64_t k) {
  return static_cast<size_t>(n * pitch_of(dtype, k)) * info(dtype).block_bytes;
}

std::unique_ptr<PreparedWeight> prepare_float(Gpu& gpu, std::span<const ConstView> parts) {
  const DType dtype = parts.front().dtype;
  const int64_t k = parts.front().layout.shape()[1], pitch = pitch_of(dtype, k);
  int64_t n = 0;
  for (const ConstView& part : parts) n += part.layout.shape()[0];
  const size_t bytes = float_bytes(dtype, n, k);
  auto weight = std::make_unique<FloatWeight>(gpu, std::max<size_t>(bytes, 1));
  weight->dtype = dtype;
  weight->n = n;
  weight->k = k;
  weight->bytes = bytes;
  weight->pitch = pitch;
  weight->rows_alike = most_gemv_rows(gpu, dtype);
  gpu.enter();
  void* to = weight->memory.data();
  for (const ConstView& part : parts) {
    pack_rows(gpu, to, dtype, pitch, part);
    to = advance(to, dtype, part.layout.shape()[0] * pitch);
  }
  make_expert_maps(gpu, *weight);
  if (dtype == DType::f16) {
    weight->finite = all_finite(gpu, weight->memory.data(), n * pitch);
  } else {
    // With programmatic dependent launch, kernels read weights before they wait for the kernels in
    // front.
    gpu.synchronize();
  }
  return weight;
}

namespace {

/// Multiplies x with f16 weights by the matrix unit. x is scaled by a power of two for each row and
/// split into one f16 term, or two for f32; both terms are multiplied with the same weights.
void multiply_split(Gpu& gpu, const View& out, const ConstView& x, const FloatWeight& w,
                    const ConstView* residual, int64_t each) {
  const int64_t rows = out.layout.elems() / w.n;
  const int64_t terms = x.dtype == DType::f32 ? 2 : 1, pitch = terms * w.pitch;
  const Scratch split(gpu, static_cast<size_t>(rows * pitch) * 2 + 1);
  const Scratch scale(gpu, static_cast<size_t>(rows) * sizeof(float));
  split_rows(gpu, {split.data(), scale.data<float>(), terms, w.pitch}, x);
  GemmJob job =
      job_of(out, {split.data(), DType::f16, rows_of_pitch(x.layout, pitch)}, w, residual, each);
  job.shape.scale = scale.data<float>();
  job.shape.k = static_cast<uint32_t>(w.pitch);
  job.packed = true;
  job.terms = static_cast<uint32_t>(terms);
  multiply(gpu, job);
}

}  // namespace

bool adds_residual_apart(Gpu& gpu, const View& out, const ConstView& x,
                         const PreparedWeight& weight, int64_t each) {
  const auto& w = static_cast<const FloatWeight&>(weight);
  return x.dtype == DType::f32 && w.dtype == DType::f32 &&
         takes_parts(gpu, job_of(out, x, w, nullptr, each));
}

bool linear_gemv(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                 const ConstView* residual, int64_t each) {
  const auto& w = static_cast<const FloatWeight&>(weight);
  const int64_t rows = out.layout.elems() / w.n;
  return (each > 0 ? each : rows) <= most_gemv_rows(gpu, w.dtype) &&
         multiply_gemv(gpu, job_of(out, x, w, residual, each));
}

void linear_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                  const ConstView* residual, int64_t each) {
  const auto& w = static_cast<const FloatWeight&>(weight);
  const int64_t rows = out.layout.elems() / w.n;
  if (has_matrix_unit(gpu) && w.dtype == DType::f16 && x.dtype != DType::f16 && w.finite) {
    return multiply_split(gpu, out, x, w, residual, each);
  }

  const DType wanted = gemm_dtype(x.dtype, w.dtype);
  // Rows that main loops can load directly aren't copied.
  if (x.dtype == wanted && (wanted == DType::f32 || w.k % 8 == 0)) {
    return multiply(gpu, job_of(out, x, w, residual, each));
  }
  const int64_t pitch = pitch_of(wanted, w.k);
  const Scratch packed(gpu, static_cast<size_t>(rows * pitch) * info(wanted).block_bytes + 1);
  pack_rows(gpu, packed.data(), wanted, pitch, x);
  GemmJob job =
      job_of(out, {packed.data(), wanted, rows_of_pitch(x.layout, pitch)}, w, residual, each);
  job.packed = pitch == w.pitch;
  if (job.packed) job.shape.k = static_cast<uint32_t>(pitch);
  multiply(gpu, job);
}

const void* float_weight_data(const PreparedWeight& weight) {
  return static_cast<const FloatWeight&>(weight).memory.data();
}

void grouped_float(Gpu& gpu, const View& out, const ConstView& x,
                   std::span<const PreparedWeight* const> experts, const ExpertLaunches& launches,
                   const GroupedRows& rows) {
  if (grouped_by_matrix_unit(gpu, out, x, experts, launches, rows)) return;
  const auto& w = static_cast<const FloatWeight&>(*experts.front());
  const Layout row = x.layout.narrow(0, 0, 1);
  const View result{out.data, out.dtype, Layout::contiguous({1, w.n}, out.layout.offset())};
  GemmJob job = job_of(result, {x.data, x.dtype, row}, w, nullptr, 1);
  job.out = advance(job.out, out.dtype, job.batch.start[0]);
  job.a = advance(job.a, x.dtype, job.batch.start[1]);
  job.batch.start = {};
  job.shape.a_row = x.layout.stride(0);
  job.shape.out_row = w.n;
  multiply_grouped(gpu, out, job, launches);
}

}  // namespace wick::gpu
