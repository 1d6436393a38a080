// Rows of ops that select, sort, draw, accumulate or move elements.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

Backend& cpu() { return backend(Device()); }

void add_chosen(std::vector<OpRow>& rows) {
  rows.push_back({"index_select", DType::f32, "32000x512,4096", Limit::copy,
                  2.0 * 4096 * 512 * sizeof(float), [] {
                    const Tensor x = random_tensor({32000, 512}, DType::f32),
                                 ids = random_ids({4096}, 32000, DType::i64),
                                 y = Tensor::empty({4096, 512}, DType::f32);
                    return [=] { cpu().index_select(y.mutable_view(), x.view(), ids.view(), 0); };
                  }});
  const Shape square{4096, 4096};
  const auto elems = static_cast<double>(square.elems());
  for (DType dtype : {DType::f32, DType::bf16}) {
    const auto size = static_cast<double>(info(dtype).block_bytes);
    for (int dim : {1, 0}) {
      rows.push_back({fmt::format("gather_dim{}", dim), dtype, "4096x4096", Limit::copy,
                      elems * (2 * size + 8), [=] {
                        const Tensor x = random_tensor(square, dtype),
                                     ids = random_ids(square, 4096, DType::i64),
                                     y = Tensor::empty(square, dtype);
                        return [=] { cpu().gather(y.mutable_view(), x.view(), ids.view(), dim); };
                      }});
      for (Op op : {Op::scatter, Op::scatter_add}) {
        rows.push_back({fmt::format("{}_dim{}", name(op), dim), dtype, "4096x4096", Limit::copy,
                        elems * (3 * size + 8), [=] {
                          const Tensor x = random_tensor(square, dtype),
                                       ids = random_ids(square, 4096, DType::i64),
                                       y = Tensor::zeros(square, dtype);
                          return [=] {
                            cpu().scatter(op, y.mutable_view(), x.view(), ids.view(), dim);
                          };
                        }});
      }
    }
    rows.push_back({"index_add_dim0", dtype, "4096x1024,16384", Limit::copy,
                    size * 1024 * (16384 + 2 * 4096), [=] {
                      const Tensor source = random_tensor({16384, 1024}, dtype),
                                   ids = random_ids({16384}, 4096, DType::i64),
                                   y = Tensor::zeros({4096, 1024}, dtype);
                      return
                          [=] { cpu().index_add(y.mutable_view(), source.view(), ids.view(), 0); };
                    }});
    rows.push_back({"index_add_dim1", dtype, "1024x4096,16384", Limit::copy,
                    size * 1024 * (16384 + 2 * 4096), [=] {
                      const Tensor source = random_tensor({1024, 16384}, dtype),
                                   ids = random_ids({16384}, 4096, DType::i64),
                                   y = Tensor::zeros({1024, 4096}, dtype);
                      return
                          [=] { cpu().index_add(y.mutable_view(), source.view(), ids.view(), 1); };
                    }});
  }
  rows.push_back({"one_hot", DType::i64, "4096,1000", Limit::none, 0, [] {
                    const Tensor ids = random_ids({4096}, 1000, DType::i64);
                    return [=] { one_hot(ids, 1000, DType::i64); };
                  }});
}

/// sort, argsort and topk write 4-byte indices here; PyTorch's have 8 bytes.
void add_sorted(std::vector<OpRow>& rows, const char* name, DType dtype, const Shape& shape,
                const char* shape_name, int dim, int64_t keep, bool values, bool descending) {
  rows.push_back({name, dtype, shape_name, Limit::none, 0, [=] {
                    const Shape kept = shape.with(dim, keep);
                    const Tensor x = random_tensor(shape, dtype),
                                 indices = Tensor::empty(kept, DType::u32),
                                 y = values ? Tensor::empty(kept, dtype) : Tensor();
                    return [=] {
                      const View to = values ? y.mutable_view() : View{nullptr, dtype, {}};
                      cpu().sort(to, indices.mutable_view(), x.view(), dim, descending);
                    };
                  }});
}

void add_ordered(std::vector<OpRow>& rows) {
  const Shape square{1024, 1024}, line{1 << 20}, words{64, 50257};
  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64}) {
    add_sorted(rows, "argsort", dtype, square, "1024x1024", 1, 1024, false, false);
    add_sorted(rows, "sort", dtype, square, "1024x1024", 1, 1024, true, false);
  }
  add_sorted(rows, "sort_dim0", DType::f32, square, "1024x1024", 0, 1024, true, false);
  add_sorted(rows, "sort", DType::f32, line, "1M", 0, 1 << 20, true, false);
  add_sorted(rows, "sort", DType::f32, {16384, 64}, "16384x64", 1, 64, true, false);
  add_sorted(rows, "topk8", DType::f32, square, "1024x1024", 1, 8, true, true);
  add_sorted(rows, "topk50", DType::f32, words, "64x50257", 1, 50, true, true);
  add_sorted(rows, "topk50", DType::bf16, words, "64x50257", 1, 50, true, true);

  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64}) {
    const auto bytes = static_cast<double>(2 * bytes_of(dtype, 1 << 24));
    for (Op op : {Op::cumsum, Op::cumprod}) {
      for (int dim : {1, 0}) {
        rows.push_back(
            {fmt::format("{}_dim{}", name(op), dim), dtype, "4096x4096", Limit::copy, bytes, [=] {
               const Tensor x = random_tensor({4096, 4096}, dtype),
                            y = Tensor::empty({4096, 4096}, dtype);
               return [=] { cpu().scan(op, y.mutable_view(), x.view(), dim); };
             }});
      }
      rows.push_back({std::string(name(op)), dtype, "16M", Limit::copy, bytes, [=] {
                        const Tensor x = random_tensor({1 << 24}, dtype),
                                     y = Tensor::empty({1 << 24}, dtype);
                        return [=] { cpu().scan(op, y.mutable_view(), x.view(), 0); };
                      }});
    }
  }
}

void add_drawn(std::vector<OpRow>& rows) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (Op op : {Op::uniform, Op::normal}) {
      rows.push_back({std::string(name(op)), dtype, "16M", Limit::none, 0, [=] {
                        const Tensor y = Tensor::empty({1 << 24}, dtype);
                        return [=] { cpu().random(op, y.mutable_view(), 1, 0, 0, 1); };
                      }});
    }
  }
}

/// Functions without an output argument. The memory of their results comes from the allocator's
/// cache.
void add_moved(std::vector<OpRow>& rows) {
  const Shape square{4096, 4096};
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(square.elems());
  const auto add = [&](const char* name, const Shape& shape, const char* shape_name,
                       Tensor (*function)(const Tensor&)) {
    rows.push_back({name, DType::f32, shape_name, Limit::copy, bytes, [=] {
                      const Tensor x = random_tensor(shape, DType::f32);
                      return [=] { function(x); };
                    }});
  };
  add("tril", square, "4096x4096", [](const Tensor& x) { return tril(x); });
  add("triu", square, "4096x4096", [](const Tensor& x) { return triu(x); });
  add("flip_dim1", square, "4096x4096", [](const Tensor& x) { return flip(x, 1).contiguous(); });
  add("flip_dim0", square, "4096x4096", [](const Tensor& x) { return flip(x, 0).contiguous(); });
  add("cat_dim1", {4096, 2048}, "4096x2048", [](const Tensor& x) {
    const Tensor both[] = {x, x};
    return cat(both, 1);
  });
  add("roll", square, "4096x4096", [](const Tensor& x) { return roll(x, 5, 1); });
  add("repeat_4_4", {1024, 1024}, "1024x1024", [](const Tensor& x) { return repeat(x, {4, 4}); });
  add("pad_constant", square, "4096x4096", [](const Tensor& x) {
    return pad(x, {{3, 3}, {3, 3}});
  });
  add("pad_reflect", {16, 1024, 1024}, "16x1024x1024", [](const Tensor& x) {
    return pad(x, {{3, 3}, {3, 3}}, PadMode::reflect);
  });
}

}  // namespace

void add_index(std::vector<OpRow>& rows) {
  add_chosen(rows);
  add_ordered(rows);
  add_drawn(rows);
  add_moved(rows);
}

}  // namespace wick::bench
