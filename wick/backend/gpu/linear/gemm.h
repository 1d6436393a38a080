#pragma once

// Gemms: the description of one, and the selection of its kernel.

#include <cstdint>
#include <optional>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/grouped.h"
#include "wick/backend/gpu/linear/matrix_library.h"
#include "wick/backend/view.h"

namespace wick::gpu {

/// A gemm, or a batch of gemms: out [.., m, n] = a [.., m, k] · b [.., n, k]ᵀ.
struct GemmJob {
  Gemm shape;              ///< everything except the batch
  CollapsedDims<4> batch;  ///< dims of out, a, b and the residual
  void* out = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  DType a_dtype = DType::f32, b_dtype = DType::f32;
  DType out_dtype = DType::f32;
  /// Whether the order of sums may depend on the sizes and on the device.
  bool any_order = false;
  bool b_stays = false;  ///< no kernel that may still run when the gemm starts writes to b
  /// Rows of a are dense, have a multiple of 64 elements and zeros behind k. Each further term has
  /// as many elements again, and is multiplied with the same b: see split_rows.gpu.
  bool packed = false;
  uint32_t terms = 1;
  /// Lets wgmma take few rows of a: reading b, not multiplying, limits the speed.
  bool few_rows_by_wgmma = false;
  /// If not 0, a consists of matrices of `each` rows, and each matrix gets the bits that it has
  /// alone.
  uint32_t each = 0;

  /// Returns the number of rows by which a main loop is chosen if its order of sums depends on the
  /// choice.
  int64_t rows_of_order() const { return each != 0 ? each : shape.m; }
  /// Exchanges a and b, and rows and columns of the result. The job must have neither a scale nor a
  /// residual.
  void transpose();
  /// Sets how results are stored. All other members must be set before.
  void store_to(DType dtype);
};

/// The most thread blocks of one launch of kernels with kLoopThreads threads: 2^31 threads.
inline constexpr int64_t kMostBlocks = 1 << 23;

/// Main loops. WICK_GPU_GEMM=plain, mma or wgmma forces one for tests, where it can run.
enum class MainLoop : uint8_t { best, plain, mma, wgmma };
MainLoop forced_main_loop();
/// Whether f16 and bf16 are multiplied by a matrix unit. Only such gemms take several terms.
bool has_matrix_unit(const Gpu& gpu);

/// The OutFormat of a float dtype.
OutFormat out_format(DType dtype);
// The layouts that kernels take: operand_access.cpp.

/// The layout of the rows of operand 1 or 2 of the batch, which has 16-bit elements.
RowLayout layout_of(const GemmJob& job, size_t operand);
/// Whether b's rows are aligned to 16 bytes. Weights have zeros behind k, up to a whole vector.
bool has_vector_rows(const GemmJob& job);
/// Whether 16 bytes of b's columns, which are rows of the job's b, are contiguous and aligned for
/// each k.
bool has_vector_columns(const GemmJob& job);
/// Whether gemv_stream.gpu, which counts vectors in u32 from b's first one, can take these rows.
/// gemv_float.gpu takes any.
bool has_near_rows(const GemmJob& job);
/// An operand of a batch of at most one dim, as tensor copies (TMA) take it: lines are its rows or,
/// turned, its k.
struct Lines {
  const void* data = nullptr;
  int64_t columns = 0, lines = 0, line_stride = 0;
  int64_t matrices = 1, matrix_stride = 0;
  bool turned = false;
};
/// Operand 1 or 2 of a job with 16-bit elements, without a copy; nothing if tensor copies can't
/// take it.
std::optional<Lines> lines_of(const GemmJob& job, size_t operand);
/// Makes the map of tensor copies in boxes of `tile_rows` rows by 64 of k; turned, of 64 k by 64
/// rows. False if the driver can't.
bool make_map(const Gpu& gpu, CopyMap& map, const Lines& lines, int64_t tile_rows);
/// The job as a call of a vendor's library; nothing if libraries can't take it.
std::optional<GemmCall> library_call(const GemmJob& job);

// Functions that return false for jobs that they don't take: gemm_small_m.cpp, gemm_wgmma.cpp.

/// For a few rows of a, of f32, f16 or bf16; b has the layout of linear's weights: gemv_stream.gpu,
/// gemv_float.gpu.
bool multiply_gemv(Gpu& gpu, const GemmJob& job);
/// Whether gemms of these sizes take wgmma: it can, nothing forces another main loop, and tiles
/// aren't mostly empty. rows: of a.
bool takes_wgmma(const Gpu& gpu, int64_t rows, int64_t columns, int64_t k);
/// The columns of tiles of wgmma, 128 or 256, for the tiles' rows and the columns of the result.
/// The larger tile reads a less often, but the last round of tiles may leave more of the device
/// idle. few_rows: most tiles have at most half of their rows.
int64_t wgmma_columns(const Gpu& gpu, int64_t row_tiles, int64_t columns, bool few_rows);
/// The most rows for which multiply_gemv is the fastest. Matrices (`each`) of at most so many rows
/// always use it, whatever their number, because other kernels have other orders of sums. `a` may
/// have the dtype that linear was given.
int64_t most_gemv_rows(const Gpu& gpu, DType b);
/// Multiplies one row of a by one of several weights for each pair of a row and an expert, with the
/// bits of multiply_gemv. job.b is one of the weights; job is that of one row. out: the result of
/// all pairs.
void multiply_grouped(Gpu& gpu, const View& out, const GemmJob& job,
                      const ExpertLaunches& launches);
/// For a few rows of a, f16 or bf16, by mma: gemm_skinny.gpu.
bool multiply_skinny(Gpu& gpu, const GemmJob& job);
/// For a few rows of a, of f32, f16 or bf16; the columns of b are contiguous: gemm_few_rows.gpu.
bool multiply_few_rows(Gpu& gpu, const GemmJob& job);
/// For a few rows of a, of any dtype: gemm_small_m.gpu.
bool multiply_small_m(Gpu& gpu, const GemmJob& job);
/// For f16 or bf16, by Hopper's wgmma: gemm_wgmma.gpu.
bool multiply_wgmma(Gpu& gpu, const GemmJob& job);
/// Whether multiply() may divide a gemm of f32 along k. It must have no residual then.
bool takes_parts(const Gpu& gpu, const GemmJob& job);
/// Multiplies with the fastest kernel that takes the operands, which have one dtype, or are f32 and
/// f16.
void multiply(Gpu& gpu, const GemmJob& job);

}  // namespace wick::gpu
