#pragma once

// Products of matrices on their way to kernels.

#include <cstdint>
#include <optional>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// One product, or a batch of them: a [.., m, k] times b [.., n, k] to out [.., m, n].
struct GemmJob {
  Gemm shape;              ///< all but the batch
  CollapsedDims<4> batch;  ///< of out, a, b and the residual
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  DType a_dtype = DType::f32, b_dtype = DType::f32;
  DType out_dtype = DType::f32;
  bool b_stays = false;  ///< b isn't written to by what may still run when the product starts
  /// Rows of a are dense, have a multiple of 64 elements, zeros behind k, and as many again for
  /// each further part, which meets the same b: see split_rows.gpu.
  bool packed = false;
  uint32_t terms = 1;

  /// Says how sums are stored; when everything else is known.
  void store_to(DType dtype);
};

/// Main loops, for tests: WICK_GPU_GEMM=plain, mma or wgmma asks for one wherever it can be had.
enum class MainLoop : uint8_t { best, plain, mma, wgmma };
MainLoop forced_main_loop();
/// Whether f16 and bf16 are multiplied by a matrix unit. Only such products take parts.
bool has_matrix_unit(const Gpu& gpu);

/// How floats of a dtype lie in memory.
OutFormat out_format(DType dtype);
// What the layouts of a job let kernels do: operand_access.cpp.

/// How the rows of an operand of 16-bit elements lie: operand 1 or 2 of the batch.
RowLayout layout_of(const GemmJob& job, size_t operand);
/// Whether b's rows are vectors of 16 bytes. Behind k, up to a whole vector, weights have zeros.
bool has_vector_rows(const GemmJob& job);
/// Whether gemv_stream.gpu, which counts vectors in u32 from b's first one on, can take rows that
/// are vectors. gemv_float.gpu takes any.
bool has_near_rows(const GemmJob& job);
/// An operand of all matrices of a batch of at most one dim as copies of boxes take it: its rows
/// or, turned, its k are lines.
struct Lines {
  const void* data = nullptr;
  int64_t columns = 0, lines = 0, line_stride = 0;
  int64_t matrices = 1, matrix_stride = 0;
  bool turned = false;
};
/// Operand 1 or 2 of a job of 16-bit elements as it lies; nothing where boxes can't be copied.
std::optional<Lines> lines_of(const GemmJob& job, size_t operand);
/// The job in a vendor's library's terms; nothing where it can't be said in them.
std::optional<GemmCall> library_call(const GemmJob& job);

// Ways to multiply that don't take everything: false where they don't. few.cpp, wgmma.cpp.

/// Few rows of a, of any of f32, f16 and bf16, by rows of b as linear has them: gemv_stream.gpu.
bool multiply_gemv(Gpu& gpu, const GemmJob& job);
/// Up to so many rows, the fastest way. a may be what linear was given.
int64_t most_gemv_rows(const Gpu& gpu, DType b);
/// Few rows of a, f16 or bf16, by the matrix unit: gemm_skinny.gpu.
bool multiply_skinny(Gpu& gpu, const GemmJob& job);
/// Few rows of a, of any dtype: gemm_small_m.gpu.
bool multiply_small_m(Gpu& gpu, const GemmJob& job);
/// f16 or bf16 by Hopper's matrix unit: gemm_wgmma.gpu.
bool multiply_wgmma(Gpu& gpu, const GemmJob& job);
/// Multiplies with the fastest main loop that takes the operands: two of one dtype, or f32 and f16.
void multiply(Gpu& gpu, const GemmJob& job);

}  // namespace wick::gpu
