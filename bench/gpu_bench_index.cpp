// Rows of gpu_bench: gather, scatter, scatter_add and index_add with random ids. The last three
// include the copy of x that the op makes.

#include <fmt/format.h>

#include <random>

#include "bench/gpu_bench.h"

namespace wick::bench {
namespace {

double bytes(DType dtype, int64_t elems) { return static_cast<double>(bytes_of(dtype, elems)); }

/// Random ids of 64 bits below `size` on the device.
class RandomIds {
 public:
  RandomIds(gpu::GpuBackend& backend, const Shape& shape, int64_t size)
      : backend_(backend), layout_(Layout::contiguous(shape)) {
    std::vector<int64_t> ids(static_cast<size_t>(shape.elems()));
    std::mt19937_64 random(5);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
    bytes_ = ids.size() * sizeof(int64_t);
    data_ = backend.alloc(bytes_);
    backend.upload(data_, ids.data(), bytes_);
  }
  ~RandomIds() { backend_.free(data_, bytes_); }
  RandomIds(const RandomIds&) = delete;
  RandomIds& operator=(const RandomIds&) = delete;
  ConstView view() const { return {data_, DType::i64, layout_}; }

 private:
  gpu::GpuBackend& backend_;
  Layout layout_;
  size_t bytes_;
  void* data_;
};

/// Measures ops with an id for each element of a square matrix.
void by_elements(GpuBench& bench, Op op, DType dtype, int64_t side, int dim) {
  const Shape square{side, side};
  const std::string row = fmt::format("{}.{}{} dim {}", name(op), name(dtype), square.str(), dim);
  if (!bench.wants(row)) return;
  gpu::GpuBackend& backend = bench.backend();
  const Layout layout = Layout::contiguous(square);
  const int64_t elems = square.elems();
  const RandomIds ids(backend, square, side);
  const auto x = bench.arrays(dtype, elems), y = bench.arrays(dtype, elems);
  if (op == Op::gather) {
    return bench.row(row, bytes(DType::i64, elems) + 2 * bytes(dtype, elems), [&](int i) {
      backend.gather(y->view(i, layout), x->view(i, layout), ids.view(), dim);
    });
  }
  const auto source = bench.arrays(dtype, elems);
  bench.row(row, bytes(DType::i64, elems) + 5 * bytes(dtype, elems), [&](int i) {
    backend.copy(y->view(i, layout), x->view(i, layout));
    backend.scatter(op, y->view(i, layout), source->view(i, layout), ids.view(), dim);
  });
}

/// Measures index_add with an id for each row, or for each column.
void by_slices(GpuBench& bench, DType dtype, const Shape& shape, int64_t n, int dim) {
  const std::string row =
      fmt::format("index_add.{}{} dim {}, {} ids", name(dtype), shape.str(), dim, n);
  if (!bench.wants(row)) return;
  gpu::GpuBackend& backend = bench.backend();
  const Layout layout = Layout::contiguous(shape), added = Layout::contiguous(shape.with(dim, n));
  const RandomIds ids(backend, {n}, shape[dim]);
  const auto x = bench.arrays(dtype, layout.elems()), y = bench.arrays(dtype, layout.elems());
  const auto source = bench.arrays(dtype, added.elems());
  bench.row(row, bytes(dtype, added.elems()) + 4 * bytes(dtype, layout.elems()), [&](int i) {
    backend.copy(y->view(i, layout), x->view(i, layout));
    backend.index_add(y->view(i, layout), source->view(i, added), ids.view(), dim);
  });
}

const bool added = add_rows([](GpuBench& bench) {
  for (const int64_t side : {2048, 8192}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const int64_t here = bench.size(side, side / 32);
      for (const Op op : {Op::gather, Op::scatter, Op::scatter_add}) {
        for (const int dim : {1, 0}) by_elements(bench, op, dtype, here, dim);
      }
      for (const int dim : {0, 1}) by_slices(bench, dtype, {here, here}, here, dim);
    }
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const int64_t n = bench.size(1 << 20, 20'000), places = bench.size(1 << 17, 2000);
    by_slices(bench, dtype, {places, 16}, n, 0);
    by_slices(bench, dtype, {places}, n, 0);
  }
});

}  // namespace
}  // namespace wick::bench
