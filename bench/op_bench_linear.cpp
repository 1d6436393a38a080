// Rows of matmul and linear.

#include <fmt/format.h>

#include <array>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

Backend& cpu() { return backend(Device()); }

/// Returns the limit of a dtype's GEMMs: bf16 has its own dot-product instructions.
Limit limit_of(DType dtype) { return dtype == DType::bf16 ? Limit::dot : Limit::fma; }

double products(int64_t m, int64_t k, int64_t n) {
  return static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
}

/// Measures [m, k] @ [k, n]. A letter t in `turned` means that the operand is stored transposed.
void add_product(std::vector<OpRow>& rows, DType dtype, int64_t m, int64_t k, int64_t n,
                 const std::string& turned = "nn") {
  const std::string name = turned == "nn" ? "matmul" : "matmul_" + turned;
  rows.push_back(
      {name, dtype, fmt::format("{}x{}x{}", m, k, n), limit_of(dtype), products(m, k, n), [=] {
         const auto operand = [&](int64_t r, int64_t c, char how, uint64_t seed) {
           return how == 't' ? random_tensor({c, r}, dtype, seed).t()
                             : random_tensor({r, c}, dtype, seed);
         };
         const Tensor a = operand(m, k, turned[0], 1), b = operand(k, n, turned[1], 2),
                      y = Tensor::empty({m, n}, dtype);
         return [=] { cpu().matmul(y.mutable_view(), a.view(), b.view()); };
       }});
}

void add_batch(std::vector<OpRow>& rows, DType dtype, int64_t count, int64_t m, int64_t k,
               int64_t n) {
  rows.push_back({"bmm", dtype, fmt::format("{}x{}x{}x{}", count, m, k, n), limit_of(dtype),
                  static_cast<double>(count) * products(m, k, n), [=] {
                    const Tensor a = random_tensor({count, m, k}, dtype, 1),
                                 b = random_tensor({count, k, n}, dtype, 2),
                                 y = Tensor::empty({count, m, n}, dtype);
                    return [=] { cpu().matmul(y.mutable_view(), a.view(), b.view()); };
                  }});
}

/// One row times a matrix, which is limited by reading the matrix.
void add_vector(std::vector<OpRow>& rows, DType dtype, int64_t k, int64_t n,
                const std::string& turned = "nn") {
  add_product(rows, dtype, 1, k, n, turned);
  rows.back().limit = Limit::read;
  rows.back().work = static_cast<double>(bytes_of(dtype, k * n));
}

/// x [m, k] times prepared weights [n, k].
void add_weights(std::vector<OpRow>& rows, DType weights, DType dtype, int64_t m, int64_t k,
                 int64_t n) {
  const Limit limit = is_block(weights) ? Limit::none : limit_of(weights);
  rows.push_back(
      {fmt::format("linear_{}", wick::name(weights)), dtype, fmt::format("{}x{}x{}", m, k, n),
       limit, products(m, k, n), [=] {
         const Tensor w32 = random_tensor({n, k}, DType::f32, 2);
         const Tensor w = is_block(weights) ? quantize(w32, weights) : w32.to(weights);
         const ConstView view = w.view();
         const std::shared_ptr<PreparedWeight> packed = cpu().prepare({&view, 1}, false);
         const Tensor x = random_tensor({m, k}, dtype, 1), y = Tensor::empty({m, n}, dtype);
         return [=] { cpu().linear(y.mutable_view(), x.view(), *packed, {}); };
       }});
}

void add_einsum(std::vector<OpRow>& rows) {
  rows.push_back({"einsum_bij_bkj", DType::f32, "8x512x64x512", Limit::fma,
                  8 * products(512, 64, 512), [] {
                    const Tensor a = random_tensor({8, 512, 64}, DType::f32, 1),
                                 b = random_tensor({8, 512, 64}, DType::f32, 2);
                    return [=] { einsum("bij,bkj->bik", std::array{a, b}); };
                  }});
}

void add_blocks(std::vector<OpRow>& rows, DType blocks) {
  const Shape shape{4096, 4096};
  const auto bytes = static_cast<double>(bytes_of(DType::f32, shape.elems()) +
                                         bytes_of(blocks, shape.elems()));
  rows.push_back({fmt::format("quantize_{}", wick::name(blocks)), DType::f32, "4096x4096",
                  Limit::copy, bytes, [=] {
                    const Tensor x = random_tensor(shape, DType::f32),
                                 y = Tensor::empty(shape, blocks);
                    return [=] { cpu().quantize(y.mutable_view(), x.view()); };
                  }});
  rows.push_back({fmt::format("dequantize_{}", wick::name(blocks)), DType::f32, "4096x4096",
                  Limit::copy, bytes, [=] {
                    const Tensor x = quantize(random_tensor(shape, DType::f32), blocks),
                                 y = Tensor::empty(shape, DType::f32);
                    return [=] { cpu().dequantize(y.mutable_view(), x.view()); };
                  }});
}

}  // namespace

void add_linear(std::vector<OpRow>& rows) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    add_product(rows, dtype, 1024, 1024, 1024);
  }
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_product(rows, dtype, 2048, 2048, 2048);
    add_product(rows, dtype, 1023, 1025, 1021);
    for (const char* turned : {"nt", "tn", "tt"}) {
      add_product(rows, dtype, 1024, 1024, 1024, turned);
    }
    add_product(rows, dtype, 128, 384, 1536);
    add_batch(rows, dtype, 8, 512, 64, 512);
    add_batch(rows, dtype, 8, 512, 512, 64);
    add_vector(rows, dtype, 4096, 4096);
    add_vector(rows, dtype, 4096, 4096, "nt");
  }
  add_product(rows, DType::f32, 777, 333, 555);
  add_product(rows, DType::f32, 64, 64, 64);
  add_product(rows, DType::f32, 16, 2048, 2048);
  add_batch(rows, DType::f32, 256, 32, 32, 32);
  add_product(rows, DType::f64, 1024, 1024, 1024);
  rows.back().work *= 2;  // f64 has half the lanes
  add_product(rows, DType::i32, 512, 512, 512);
  rows.back().limit = Limit::none;
  add_weights(rows, DType::f32, DType::f32, 128, 384, 1536);
  add_weights(rows, DType::bf16, DType::bf16, 1024, 1024, 1024);
  add_weights(rows, DType::q8_0, DType::f32, 1024, 1024, 1024);
  add_einsum(rows);
  for (DType blocks : {DType::q4_0, DType::q8_0, DType::q4_k}) add_blocks(rows, blocks);
}

}  // namespace wick::bench
