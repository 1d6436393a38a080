#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"
#include "wick/op/op.h"

namespace wick::cpu {

// gemm on packed panels: C[m, n] = A[m, k] · B[k, n].
//
// A is packed as panels of `tile_rows` rows, [panel][k][row_panel] with the rows padded to a power
// of two; B as panels of 64 bytes of columns, [panel][k][col_panel]. Every output is one chain of
// fused multiply-adds over k in index order, resumed from memory between blocks of k, so its bits
// depend neither on blocking and threads nor on the instruction set, as long as that has fma.

/// The compute type of a gemm. `bf16_dot` and `bf16_tiles` multiply pairs of bf16 (an element is a
/// pair) and add in f32, the latter on the tiles of AMX.
enum class Compute : uint8_t { f32, f64, u32, u64, bf16_dot, bf16_tiles };

/// The compute type for a dtype.
constexpr Compute compute_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::i16:
    case DType::u32:
    case DType::i32:
      return Compute::u32;
    case DType::i64:
      return Compute::u64;
    case DType::f64:
      return Compute::f64;
    default:
      return Compute::f32;
  }
}
constexpr int elem_bytes(Compute type) {
  return type == Compute::f64 || type == Compute::u64 ? 8 : 4;
}

/// Rows of an operand to pack into panels. Strides and offsets count elements.
struct PackArgs {
  const void* data;            ///< element (0, 0)
  const int64_t* row_offsets;  ///< where each row starts; null: row i starts at i * row_stride
  int64_t row_stride, k_stride;
  int64_t rows, k;
  void* panels;
  int64_t panel_stride;  ///< elements of the compute type
};

/// C = panels of A · panels of B, all in elements of the compute type.
struct MultiplyArgs {
  int64_t rows, cols, k;
  const void* a;
  int64_t a_panel_stride;
  const void* b;
  int64_t b_panel_stride;
  void* c;
  int64_t c_row_stride;
  bool resume;  ///< continue the sums in C; else start from 0
};

/// out[c][j] = Σ_p x[c][p] · b[p][j] for few rows c. b is read in place.
struct StripArgs {
  int64_t rows, cols, k;
  const void* x;  ///< [rows][k] of the compute type; of bf16 for pair_dots
  const void* b;
  int64_t b_stride;  ///< elements from one k of b to the next (`strip`), or from one column to the
                     ///< next (others)
  void* out;         ///< [rows][cols] of the compute type
  int64_t out_row_stride;
};

struct GemmType {
  int tile_rows = 0;    ///< rows of a panel of A
  int row_panel = 0;    ///< elements between two k of a panel of A
  int col_panel = 0;    ///< columns of a panel of B: 64 bytes
  int tile_panels = 0;  ///< panels of B that one tile spans
  int k_step = 1;       ///< panels of A are padded with zeros to a multiple of it along k
  void (*multiply)(const MultiplyArgs&) = nullptr;
  /// Like multiply, but computes all of k, starts from 0 and rounds c to bf16. Null except for
  /// bf16_dot.
  void (*multiply_to_bf16)(const MultiplyArgs&) = nullptr;
};

/// The kernels of one instruction set.
struct GemmKernels {
  std::array<GemmType, 6> types;  ///< by Compute; bf16_dot is empty without AVX-512, bf16_tiles
                                  ///< without AMX
  using Pack = void (*)(const PackArgs&);
  using Strip = void (*)(const StripArgs&);
  /// to[i] = from[i * stride] in the compute type of the dtype.
  using Load = void (*)(const void* from, int64_t stride, int64_t n, void* to);
  /// to[i * stride] = from[i] in the dtype, rounded once.
  using Store = void (*)(const void* from, void* to, int64_t stride, int64_t n);
  std::array<Pack, kRealDTypeCount> pack_rows, pack_cols;
  /// Pack rows of bf16 (strides and k count elements) into panels of pairs; with bf16_dot only.
  Pack pack_pair_rows, pack_pair_cols;
  /// Pack rows of A into the panels of bf16_tiles: words that are pairs, dense along k, and
  /// elements as pack_pair_rows.
  Pack pack_tile_words, pack_tile_rows;
  std::array<Strip, kRealDTypeCount> strip, dots;
  std::array<Strip, kRealDTypeCount> columns;  ///< as dots, for many columns; null for most dtypes
  Strip pair_dots;  ///< as dots, of bf16 in pairs of k; with bf16_dot only
  std::array<Load, kRealDTypeCount> load;
  std::array<Store, kRealDTypeCount> store;
  /// store of dense sums of bf16_dot, which are never denormal, to bf16.
  Store store_dots;

  constexpr const GemmType& type(Compute compute) const {
    return types[static_cast<size_t>(compute)];
  }
};

/// True when there are kernels for every dtype of matmul's row and every compute type; bf16_dot may
/// be missing.
constexpr bool complete(const GemmKernels& table) {
  for (size_t d = 0; d < kRealDTypeCount; ++d) {
    const bool wanted = info(Op::matmul).dtypes.contains(static_cast<DType>(d));
    if (wanted != (table.pack_rows[d] != nullptr) || wanted != (table.pack_cols[d] != nullptr) ||
        wanted != (table.strip[d] != nullptr) || wanted != (table.dots[d] != nullptr) ||
        wanted != (table.load[d] != nullptr) || wanted != (table.store[d] != nullptr)) {
      return false;
    }
  }
  for (const Compute compute : {Compute::f32, Compute::f64, Compute::u32, Compute::u64}) {
    if (table.type(compute).multiply == nullptr) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(GemmKernels, gemm_kernels)

/// With bf16_tiles from v4_vnni on, if the processor has them and the system permits their use.
const GemmKernels& gemm_kernels(Isa isa);
/// How many rows of bf16 are multiplied: by bf16_tiles, bf16_dot or, without either, f32.
Compute bf16_compute(const GemmKernels& kernels);

/// A left operand without a common stride along k.
class GemmRowSource {
 public:
  /// Packs rows [row, row + rows) for k in [k0, k0 + k), as GemmKernels::pack_rows does.
  virtual void pack(int64_t row, int64_t rows, int64_t k0, int64_t k, void* panels,
                    int64_t panel_stride) const = 0;

 protected:
  ~GemmRowSource() = default;
};

/// The left operand: rows in memory.
struct GemmRows {
  const void* data = nullptr;
  DType dtype = DType::f32;  ///< u32 for pairs of bf16
  int64_t row_stride = 0, k_stride = 0;
  const int64_t* row_offsets = nullptr;
  const GemmRowSource* source = nullptr;  ///< if not null, replaces all other members
};

/// The right operand: provides blocks of packed panels.
class GemmColumns {
 public:
  struct Block {
    const void* panels;
    int64_t panel_stride;
  };
  /// The panels of columns [col, col + cols) for k in [k0, k0 + k); col is a multiple of the type's
  /// panel. `scratch` has room for panels of k + 1 steps, so that the cache lines of panels don't
  /// share a set of L1. Packed weights may return a pointer into themselves.
  virtual Block block(int64_t col, int64_t cols, int64_t k0, int64_t k, void* scratch) const = 0;

 protected:
  ~GemmColumns() = default;
};

/// A destination without a common stride of columns.
class GemmSink {
 public:
  /// Stores finished elements of the compute type, rows `c_stride` apart.
  virtual void store(int64_t row, int64_t rows, int64_t col, int64_t cols, const void* c,
                     int64_t c_stride) const = 0;

 protected:
  ~GemmSink() = default;
};

/// The destination of a gemm; strides count elements of `dtype`.
struct GemmResult {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t row_stride = 0, col_stride = 0;
  const int64_t* row_offsets = nullptr;
  const GemmSink* sink = nullptr;  ///< if not null, replaces all other members
};

/// How a gemm is cut into blocks, and its scratch memory.
struct GemmPlan {
  Compute compute;
  int64_t m, n, k;
  int parts;             ///< threads
  bool direct;           ///< tiles go straight into the result
  bool whole_c;          ///< a block of C stays in the compute type until the last k
  int64_t row_block;     ///< rows of A packed at a time
  int64_t col_block;     ///< columns that C's blocks have: n, unless whole_c
  int64_t k_super;       ///< k packed at a time
  int64_t k_block;       ///< k of one B block
  int64_t col_tasks;     ///< how the columns are divided among threads
  int64_t row_tasks;     ///< and the rows of a row block
  int64_t task_cols;     ///< most columns of a task
  size_t a_bytes;        ///< scratch: A's panels
  size_t whole_c_bytes;  ///< scratch: a block of C, when whole_c
  size_t b_bytes;        ///< scratch of each thread: a B block
  size_t c_bytes;        ///< scratch of each thread: a task's C, or a tile's rows of it where one
                         ///< block of k finishes them, unless direct or whole_c
  size_t workspace_bytes() const {
    return a_bytes + whole_c_bytes + (b_bytes + c_bytes) * static_cast<size_t>(parts);
  }
};

/// Plans a gemm on at most `threads` threads.
GemmPlan plan_gemm(const GemmKernels& kernels, Compute compute, int64_t m, int64_t n, int64_t k,
                   const GemmResult& out, int threads);

/// Runs a plan. `workspace` has the plan's bytes, aligned to 64. With one part everything runs on
/// this thread.
void run_gemm(const GemmKernels& kernels, const GemmPlan& plan, const GemmRows& a,
              const GemmColumns& b, const GemmResult& out, void* workspace);

}  // namespace wick::cpu
