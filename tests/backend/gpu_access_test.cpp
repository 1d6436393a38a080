// Host code analyses layouts before it chooses a kernel that uses vectors, computes distances in
// u32 or needs a pitch. These tests compare each answer with all elements of the layout. They need
// no device, so they cover the kernels of every vendor.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "wick/backend/gpu/attention/attention_access.h"
#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {
namespace {

struct Dim {
  int64_t size, stride;
};

/// Returns the byte offsets of all elements of some dims, the last one fastest.
std::vector<int64_t> places(const std::vector<Dim>& dims, int64_t bytes) {
  std::vector<int64_t> all = {0};
  for (const Dim& d : dims) {
    std::vector<int64_t> next;
    for (const int64_t from : all) {
      for (int64_t i = 0; i < d.size; ++i) next.push_back(from + i * d.stride * bytes);
    }
    all = next;
  }
  return all;
}

/// Returns a random dim. A dim of size 1 gets a stride that would be wrong elsewhere; other dims
/// get strides that views produce.
Dim some_dim(std::mt19937& random, int64_t most) {
  const int64_t sizes[] = {1, 1, 2, 3, 4, 8, 9, 16};
  Dim d{std::min(sizes[random() % 8], most), 0};
  const int64_t strides[] = {0, 1, 1, 1, 2, 3, 4, 8, 16, 24, 40, 17};
  d.stride = strides[random() % 12] * (random() % 3 == 0 ? -1 : 1);
  if (d.size == 1) d.stride = (int64_t{1} << 40) * (random() % 2 == 0 ? -1 : 1) + 3;
  return d;
}

/// Returns whether vectors of n can be read along a run: adjacent elements ascend, and each vector
/// is aligned to the unit of a kernel's memory access.
bool are_vectors(uintptr_t first, const std::vector<Dim>& outer, const Dim& run, int64_t bytes,
                 int64_t n) {
  const auto unit = static_cast<uintptr_t>(std::min(n * bytes, int64_t{16}));
  if (run.size > 1 && run.stride != 1) return false;
  for (const int64_t begin : places(outer, bytes)) {
    for (int64_t i = 0; i < run.size; i += n) {
      if ((first + static_cast<uintptr_t>(begin + i * bytes)) % unit != 0) return false;
    }
  }
  return true;
}

TEST(Access, VectorsAreWhereEveryPlaceLetsThem) {
  std::mt19937 random(1);
  int yes = 0, no = 0;
  for (int i = 0; i < 60'000; ++i) {
    const int64_t bytes = int64_t{1} << random() % 4;
    const uintptr_t data = 0x10000 + random() % 3 * 8 * static_cast<uintptr_t>(bytes);
    const auto start = static_cast<int64_t>(random() % 3 == 0 ? random() % 17 : random() % 3 * 16);
    std::vector<Dim> outer(random() % 4);
    for (Dim& d : outer) d = some_dim(random, 4);
    const Dim run = some_dim(random, 16);
    Access access(reinterpret_cast<const void*>(data), bytes, start);
    for (const Dim& d : outer) access.dim(d.size, d.stride);
    access.run(run.size, run.stride);
    const uintptr_t first = data + static_cast<uintptr_t>(start * bytes);
    for (const int64_t n : {2, 4, 8, 16}) {
      const bool want = are_vectors(first, outer, run, bytes, n);
      ASSERT_EQ(access.vectors_of(n), want) << i << ": " << n << " of " << bytes;
      ++(want ? yes : no);
    }
    for (int64_t unit = 16; unit > 1; unit /= 2) {
      bool all = true;
      for (const int64_t at : places(outer, bytes)) {
        all = all && (first + static_cast<uintptr_t>(at)) % static_cast<uintptr_t>(unit) == 0;
      }
      ASSERT_EQ(access.begins_at(unit), all) << i;
      ASSERT_EQ(access.alignment(16) >= unit, all) << i;
    }
    std::vector<Dim> all = outer;
    all.push_back(run);
    const std::vector<int64_t> at = places(all, bytes);
    ASSERT_EQ(access.ascends(), *std::min_element(at.begin(), at.end()) == 0) << i;
  }
  EXPECT_GT(yes, 20'000);
  EXPECT_GT(no, 20'000);
}

TEST(Access, DistancesAreCountedInU32OnlyWhereTheyFit) {
  const int64_t limit = int64_t{1} << 32;  // in units
  const auto near = [](int64_t bytes, int64_t unit, std::initializer_list<Dim> dims) {
    Access access(nullptr, bytes, 0);
    for (const Dim& d : dims) access.dim(d.size, d.stride);
    return access.has_u32_distances(unit);
  };
  EXPECT_TRUE(near(4, 4, {{2, limit - 1}}));
  EXPECT_FALSE(near(4, 4, {{2, limit}}));
  EXPECT_TRUE(near(2, 16, {{5, 2 * limit - 8}}));
  EXPECT_FALSE(near(2, 16, {{5, 2 * limit}}));
  EXPECT_FALSE(near(4, 4, {{2, limit - 1}, {2, 1}}));
  EXPECT_FALSE(near(4, 4, {{2, -1}}));
  EXPECT_FALSE(near(4, 4, {{2, -1}, {2, 1}}));
  EXPECT_TRUE(near(4, 4, {{1, -limit}, {2, 1}}));
  EXPECT_TRUE(near(4, 4, {{1, 3 * limit}, {0, -limit}}));
  EXPECT_TRUE(near(4, 4, {{9, 0}}));
}

TEST(Access, RowsOfAPitchDontOverlap) {
  EXPECT_EQ(pitch_of_rows(3, 4, 4, 1), 4);
  EXPECT_EQ(pitch_of_rows(3, 4, 7, 1), 7);
  EXPECT_EQ(pitch_of_rows(3, 4, 3, 1), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, 1, 1), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, 0, 1), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, -4, 1), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, 4, -1), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, 8, 2), std::nullopt);
  EXPECT_EQ(pitch_of_rows(3, 4, 1, 3), std::nullopt);
  EXPECT_EQ(pitch_of_rows(1, 4, -100, 1), 4);
  EXPECT_EQ(pitch_of_rows(3, 1, 2, -100), 2);
  EXPECT_EQ(pitch_of_rows(1, 1, -100, -100), 1);
}

// ---- GEMMs ----

constexpr uintptr_t kA = 0x100000, kB = 0x200000, kOut = 0x300000, kResidual = 0x400000;

/// Returns a job with strides of any kind, and the meaning of each dim of each operand.
GemmJob some_job(std::mt19937& random) {
  const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
  const uint32_t sizes[] = {1, 2, 3, 4, 8, 9, 16, 24};
  GemmJob job;
  Gemm& p = job.shape;
  p.m = sizes[random() % 8], p.n = sizes[random() % 8], p.k = sizes[random() % 8];
  job.a_dtype = job.b_dtype = dtypes[random() % 3];
  job.b_stays = random() % 4 == 0;
  const auto at = [&](uintptr_t base) {
    return reinterpret_cast<void*>(base + (random() % 3 == 0 ? 4 * (random() % 4) : 0));
  };
  job.a = at(kA), job.b = at(kB), job.out = at(kOut);
  const auto stride = [&](int64_t other) {
    const int64_t some[] = {1, 1, 1, other, other, (other + 7) / 8 * 8, 8, 24, 2, 0, 17};
    return some[random() % 11] * (random() % 4 == 0 ? -1 : 1);
  };
  const auto matrix = [&](int64_t rows, int64_t cols, int64_t& row, int64_t& col) {
    row = rows == 1 && random() % 2 == 0 ? -(int64_t{1} << 41) - 1 : stride(cols);
    col = cols == 1 && random() % 2 == 0 ? (int64_t{1} << 41) + 1 : stride(rows);
  };
  matrix(p.m, p.k, p.a_row, p.a_k);
  matrix(p.n, p.k, p.b_row, p.b_k);
  matrix(p.m, p.n, p.out_row, p.out_col);
  if (random() % 2 == 0) {
    p.residual = static_cast<const float*>(at(kResidual));
    matrix(p.m, p.n, p.residual_row, p.residual_col);
  }
  for (size_t k = 0; k < 4; ++k) job.batch.start[k] = random() % 4 == 0 ? 4 * (random() % 5) : 0;
  if (random() % 3 == 0) {
    const int64_t some[] = {0, 64, 8, -64, 1, 1024, 4};
    job.batch.add(3, {1024, some[random() % 7], some[random() % 7], some[random() % 7]});
  }
  job.store_to(job.a_dtype);
  return job;
}

uintptr_t address(const void* data, DType dtype, int64_t start) {
  return reinterpret_cast<uintptr_t>(data) +
         static_cast<uintptr_t>(start * info(dtype).block_bytes);
}
std::vector<Dim> batch_of(const GemmJob& job, size_t operand) {
  std::vector<Dim> dims;
  for (const auto& d : job.batch.dims) dims.push_back({d.size, d.stride[operand]});
  return dims;
}
std::vector<Dim> with(std::vector<Dim> dims, const Dim& last) {
  dims.push_back(last);
  return dims;
}

TEST(ProductAccess, KernelsGetOnlyVectorsThatThereAre) {
  std::mt19937 random(2);
  int pieces = 0, pairs = 0, vectors = 0, columns = 0, far = 0, fours = 0;
  for (int i = 0; i < 60'000; ++i) {
    const GemmJob job = some_job(random);
    const Gemm& p = job.shape;
    const int64_t bytes = info(job.a_dtype).block_bytes;
    SCOPED_TRACE(fmt::format("{}: {}x{}x{} a {} {} b {} {}", i, p.m, p.k, p.n, p.a_row, p.a_k,
                             p.b_row, p.b_k));
    for (const size_t operand : {1, 2}) {
      const bool is_a = operand == 1;
      const Dim rows{is_a ? p.m : p.n, is_a ? p.a_row : p.b_row};
      const Dim k{p.k, is_a ? p.a_k : p.b_k};
      const std::vector<Dim> batch = batch_of(job, operand);
      const uintptr_t first = address(is_a ? job.a : job.b, job.a_dtype, job.batch.start[operand]);
      const bool along_k = p.k % 8 == 0 && are_vectors(first, with(batch, rows), k, bytes, 8);
      const bool along_rows =
          rows.size % 2 == 0 && are_vectors(first, with(batch, k), rows, bytes, 2);
      ASSERT_EQ(layout_of(job, operand), along_k      ? kPiecesOfK
                                         : along_rows ? kPairsOfRows
                                                      : kScalar);
      pieces += along_k, pairs += !along_k && along_rows;
      if (is_a) continue;
      const int64_t vector = 16 / bytes;
      const bool packs = (job.b_stays || p.k % vector == 0) &&
                         are_vectors(first, with(batch, rows), k, bytes, vector);
      ASSERT_EQ(has_vector_rows(job), packs);
      vectors += packs;
      const bool across =
          p.n % vector == 0 && are_vectors(first, with(batch, k), rows, bytes, vector);
      ASSERT_EQ(has_vector_columns(job), across);
      columns += across;
      // gemv_stream.gpu computes ascending distances from b's first vector.
      bool up = true;
      for (const int64_t at : places(with(with(batch, rows), k), bytes)) up = up && at >= 0;
      ASSERT_EQ(has_near_rows(job), up);
      far += packs && !up;
    }
    const auto by_fours = [&](const void* data, DType dtype, size_t operand, int64_t row,
                              int64_t col) {
      return are_vectors(address(data, dtype, job.batch.start[operand]),
                         with(batch_of(job, operand), {p.m, row}), {p.n, col},
                         info(dtype).block_bytes, 4);
    };
    const bool want = p.n % 4 == 0 && by_fours(job.out, job.out_dtype, 0, p.out_row, p.out_col) &&
                      (p.residual == nullptr ||
                       by_fours(p.residual, DType::f32, 3, p.residual_row, p.residual_col));
    ASSERT_EQ(p.fours != 0, want);
    fours += want;
  }
  for (const int met : {pieces, pairs, vectors, columns, far, fours}) EXPECT_GT(met, 300);
}

TEST(ProductAccess, BoxesAndLibrariesGetRowsOfAPitch) {
  std::mt19937 random(3);
  int lines_met = 0, turned_met = 0, calls = 0;
  for (int i = 0; i < 60'000; ++i) {
    const GemmJob job = some_job(random);
    const Gemm& p = job.shape;
    SCOPED_TRACE(fmt::format("{}: {}x{}x{} a {} {} b {} {}", i, p.m, p.k, p.n, p.a_row, p.a_k,
                             p.b_row, p.b_k));
    /// Compares with element (r, c) of a matrix at `data` whose rows are `ld` apart.
    const auto same = [&](const void* data, bool transposed, int64_t ld, int64_t matrix_stride,
                          size_t operand, const void* base, DType dtype, const Dim& rows,
                          const Dim& cols) {
      const int64_t matrices = job.batch.dims.empty() ? 1 : job.batch.dims[0].size;
      const int64_t step = job.batch.dims.empty() ? 0 : job.batch.dims[0].stride[operand];
      EXPECT_GE(ld, transposed ? rows.size : cols.size);
      for (int64_t z = 0; z < matrices; ++z) {
        for (int64_t r = 0; r < rows.size; ++r) {
          for (int64_t c = 0; c < cols.size; ++c) {
            const int64_t there = z * matrix_stride + (transposed ? c * ld + r : r * ld + c);
            const int64_t here =
                job.batch.start[operand] + z * step + r * rows.stride + c * cols.stride;
            ASSERT_EQ(address(data, dtype, there), address(base, dtype, here));
          }
        }
      }
    };
    const Dim m_of_a{p.m, p.a_row}, k_of_a{p.k, p.a_k}, n_of_b{p.n, p.b_row}, k_of_b{p.k, p.b_k};
    if (job.a_dtype != DType::f32) {
      for (const size_t operand : {1, 2}) {
        const auto lines = lines_of(job, operand);
        if (!lines) continue;
        ++(lines->turned ? turned_met : lines_met);
        // The requirements of TMA box copies.
        ASSERT_EQ(reinterpret_cast<uintptr_t>(lines->data) % 16, 0u);
        ASSERT_EQ(lines->line_stride % 8, 0);
        ASSERT_EQ(lines->matrix_stride % 8, 0);
        ASSERT_GE(lines->line_stride, lines->columns);
        ASSERT_GE(lines->matrix_stride, 0);
        const bool is_a = operand == 1;
        same(lines->data, lines->turned, lines->line_stride, lines->matrix_stride, operand,
             is_a ? job.a : job.b, job.a_dtype, is_a ? m_of_a : n_of_b, is_a ? k_of_a : k_of_b);
      }
    }
    const auto call = library_call(job);
    if (HasFatalFailure()) return;
    if (!call) continue;
    ++calls;
    ASSERT_EQ(p.residual, nullptr);
    ASSERT_GE(call->stride_a, 0);
    ASSERT_GE(call->stride_b, 0);
    same(call->a, call->a_transposed, call->lda, call->stride_a, 1, job.a, job.a_dtype, m_of_a,
         k_of_a);
    same(call->b, call->b_transposed, call->ldb, call->stride_b, 2, job.b, job.a_dtype, k_of_b,
         n_of_b);
    same(call->c, false, call->ldc, call->stride_c, 0, job.out, job.a_dtype, {p.m, p.out_row},
         {p.n, p.out_col});
    if (call->batch > 1) {
      ASSERT_GE(call->stride_c, (call->m - 1) * call->ldc + call->n);
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(lines_met, 300);
  EXPECT_GT(turned_met, 300);
  EXPECT_GT(calls, 300);
}

/// Plainly laid out operands must keep the fast kernels.
TEST(ProductAccess, PlainOperandsKeepTheirKernels) {
  GemmJob job;
  job.a = reinterpret_cast<void*>(kA), job.b = reinterpret_cast<void*>(kB);
  job.out = reinterpret_cast<void*>(kOut);
  job.a_dtype = job.b_dtype = DType::f16;
  Gemm& p = job.shape;
  p.m = 1, p.n = 4096, p.k = 4096;
  p.a_row = p.b_row = 4096, p.a_k = p.b_k = 1, p.out_row = 4096, p.out_col = 1;
  job.store_to(DType::f16);
  EXPECT_EQ(p.fours, 1u);
  EXPECT_TRUE(has_vector_rows(job));
  EXPECT_TRUE(has_near_rows(job));
  EXPECT_EQ(layout_of(job, 1), kPiecesOfK);
  EXPECT_EQ(layout_of(job, 2), kPiecesOfK);
  EXPECT_TRUE(lines_of(job, 2).has_value());
  EXPECT_TRUE(library_call(job).has_value());
  std::swap(p.b_row, p.b_k);
  EXPECT_EQ(layout_of(job, 2), kPairsOfRows);
  EXPECT_TRUE(has_vector_columns(job));
  EXPECT_TRUE(lines_of(job, 2)->turned);
  EXPECT_TRUE(library_call(job)->b_transposed == false);
  // Vectors of 16 bytes are counted in u32, which covers 64 GiB.
  std::swap(p.b_row, p.b_k);
  p.b_row = int64_t{1} << 23;
  EXPECT_TRUE(has_near_rows(job));
  p.b_row = int64_t{1} << 24;
  EXPECT_FALSE(has_near_rows(job));
}

// ---- Attention ----

AttentionCall some_call(std::mt19937& random) {
  const uint32_t sizes[] = {1, 2, 3, 4, 8, 16};
  AttentionCall c{};
  const auto at = [&](uintptr_t base) {
    return reinterpret_cast<void*>(base + (random() % 4 == 0 ? 4 * (random() % 8) : 0));
  };
  c.k = at(kA), c.v = at(kB);
  c.batch = 1 + random() % 2, c.group = 1 + random() % 2,
  c.heads = c.group * (1 + static_cast<uint32_t>(random() % 2));
  c.queries = 1, c.keys = sizes[random() % 6], c.d = sizes[random() % 6], c.e = sizes[random() % 6];
  const auto stride = [&](int64_t size) {
    const int64_t some[] = {1, 8, 16, 64, 256, 2, 4, 0, 3};
    if (size == 1 && random() % 2 == 0) return (int64_t{1} << 40) + 1;
    return some[random() % 9] * (random() % 4 == 0 ? -1 : 1);
  };
  const auto run = [&](int64_t size) { return random() % 4 == 0 ? stride(size) : int64_t{1}; };
  c.k_batch = stride(c.batch), c.k_head = stride(c.heads / c.group);
  c.v_batch = stride(c.batch), c.v_head = stride(c.heads / c.group);
  c.k_key = run(c.keys), c.k_step = stride(c.d);
  if (random() % 3 == 0) std::swap(c.k_key, c.k_step);
  c.v_key = stride(c.keys), c.v_step = run(c.e);
  return c;
}

TEST(AttentionAccess, KernelsGetOnlyVectorsThatThereAre) {
  std::mt19937 random(4);
  int decode = 0, staged = 0, rows = 0, flash = 0, backwards = 0;
  for (int i = 0; i < 200'000; ++i) {
    const AttentionCall c = some_call(random);
    const DType dtypes[] = {DType::f32, DType::f16, DType::bf16};
    const DType cache = dtypes[random() % 3];
    const int64_t bytes = info(cache).block_bytes;
    const std::vector<Dim> k_heads = {{c.batch, c.k_batch}, {c.heads / c.group, c.k_head}};
    const std::vector<Dim> v_heads = {{c.batch, c.v_batch}, {c.heads / c.group, c.v_head}};
    const Dim keys{c.keys, c.k_key}, steps{c.d, c.k_step};
    const Dim values{c.keys, c.v_key}, elements{c.e, c.v_step};
    const auto k = reinterpret_cast<uintptr_t>(c.k), v = reinterpret_cast<uintptr_t>(c.v);
    const auto along_keys = [&](int64_t n) {
      return are_vectors(k, with(k_heads, steps), keys, bytes, n);
    };
    const auto along_values = [&](int64_t n) {
      return c.e % n == 0 && are_vectors(v, with(v_heads, values), elements, bytes, n);
    };
    const auto up = [&](std::vector<Dim> dims) {
      for (const int64_t at : places(dims, bytes)) {
        if (at < 0) return false;
      }
      return true;
    };
    const bool ascends = up({steps, keys}) && up({values, elements});
    const bool two = along_keys(2) && along_values(2);
    SCOPED_TRACE(fmt::format("{}: keys {} d {} e {} k {} {} v {} {}", i, c.keys, c.d, c.e, c.k_key,
                             c.k_step, c.v_key, c.v_step));
    ASSERT_EQ(takes_decode_layout(c, cache), two && ascends);
    ASSERT_EQ(takes_staged_layout(c, cache), along_keys(16 / bytes) && along_values(16 / bytes));
    decode += two && ascends, backwards += two && !ascends;
    staged += takes_staged_layout(c, cache);
    const auto along_key_elements = [&](int64_t n) {
      return c.d % n == 0 && are_vectors(k, with(k_heads, keys), steps, bytes, n);
    };
    const bool by_rows = along_key_elements(16 / bytes) && along_values(16 / bytes);
    ASSERT_EQ(takes_rows_layout(c, cache), by_rows);
    rows += by_rows;
    if (cache == DType::f32) continue;
    const bool key_rows = c.k_key == 1 ? along_keys(8) : along_key_elements(8);
    const bool want = c.d % 8 == 0 && c.e % 8 == 0 && key_rows && along_values(8);
    ASSERT_EQ(takes_flash_layout(c, cache), want);
    flash += want;
  }
  for (const int met : {decode, staged, rows, flash, backwards}) EXPECT_GT(met, 200);
}

}  // namespace
}  // namespace wick::gpu
