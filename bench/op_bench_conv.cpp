// Rows of convolutions, pools and resampling.

#include <fmt/format.h>

#include "bench/op_bench.h"

namespace wick::bench {
namespace {

struct Conv {
  const char* name;
  DType dtype;
  Shape x, w;  // rank 3 in one dimension
  int64_t stride, padding, groups;
};

/// Returns the text inside the brackets of [1x64x56x56,64x64x3x3].
std::string text(const Shape& a, const Shape& b) {
  const auto one = [](const Shape& s) {
    std::string result;
    for (int64_t size : s.dims()) result += fmt::format("{}{}", result.empty() ? "" : "x", size);
    return result;
  };
  return one(a) + "," + one(b);
}

Tensor as_image(const Tensor& t) { return t.rank() == 3 ? t.unsqueeze(2) : t; }

ConvParams params_of(const Conv& c) {
  ConvParams p{.stride = {c.stride, c.stride}, .padding = {c.padding, c.padding}};
  if (c.x.rank() == 3) p.stride[0] = 1, p.padding[0] = 0;
  p.groups = c.groups;
  return p;
}

enum class Form : uint8_t { forward, input, weight };

void add_conv(std::vector<OpRow>& rows, const Conv& c, Form form) {
  const ConvParams p = params_of(c);
  Shape out{c.x[0], c.w[0]};
  for (int d = 2; d < c.x.rank(); ++d) {
    out = out.with_inserted(d, (c.x[d] + 2 * c.padding - c.w[d]) / c.stride + 1);
  }
  const double products =
      static_cast<double>(out.elems()) * static_cast<double>(c.w.elems() / c.w[0]);
  const Limit limit = c.dtype == DType::bf16 ? Limit::dot : Limit::fma;
  const char* prefix = form == Form::forward ? "" : form == Form::input ? "input_" : "weight_";
  rows.push_back(
      {fmt::format("{}{}", prefix, c.name), c.dtype, text(c.x, c.w), limit, products, [=] {
         const Tensor x = as_image(random_tensor(c.x, c.dtype, 1));
         const Tensor w = as_image(random_tensor(c.w, c.dtype, 2));
         const Tensor y = as_image(random_tensor(out, c.dtype, 3));
         return [=] {
           Backend& cpu = backend(Device());
           if (form == Form::forward) {
             cpu.conv2d(y.mutable_view(), x.view(), w.view(), p);
           } else if (form == Form::input) {
             cpu.conv2d_input(x.mutable_view(), y.view(), w.view(), p);
           } else {
             cpu.conv2d_weight(w.mutable_view(), x.view(), y.view(), p);
           }
         };
       }});
}

void add_pool(std::vector<OpRow>& rows, Op op, DType dtype, int64_t kernel) {
  const Shape shape{1, 64, 112, 112};
  const PoolParams p{
      .kernel = {kernel, kernel}, .stride = {2, 2}, .padding = {kernel / 3, kernel / 3}};
  const auto bytes = static_cast<double>(bytes_of(dtype, shape.elems() * 5 / 4));
  rows.push_back(
      {fmt::format("{}_k{}", name(op), kernel), dtype, "1x64x112x112", Limit::copy, bytes, [=] {
         const Tensor x = random_tensor(shape, dtype);
         const Tensor y = Tensor::empty({1, 64, 56, 56}, dtype);
         return [=] { backend(Device()).pool2d(op, y.mutable_view(), x.view(), p); };
       }});
}

void add_upsample(std::vector<OpRow>& rows, Op op, DType dtype) {
  const Shape in{1, 64, 112, 112}, out{1, 64, 224, 224};
  const auto bytes = static_cast<double>(bytes_of(dtype, in.elems() + out.elems()));
  rows.push_back({std::string(name(op)), dtype, "1x64x112x112,x2", Limit::copy, bytes, [=] {
                    const Tensor x = random_tensor(in, dtype), y = Tensor::empty(out, dtype);
                    const ResampleParams p{.scale = {0.5, 0.5}};
                    return [=] { backend(Device()).resample(op, y.mutable_view(), x.view(), p); };
                  }});
}

/// One-dimensional functions. The memory of their results comes from the allocator's cache.
void add_lines(std::vector<OpRow>& rows) {
  const Shape in{1, 64, 12544};
  const auto add = [&](const char* name, int64_t out, Tensor (*function)(const Tensor&)) {
    const auto bytes = static_cast<double>(bytes_of(DType::f32, in.elems() + 64 * out));
    rows.push_back({name, DType::f32, "1x64x12544", Limit::copy, bytes, [=] {
                      const Tensor x = random_tensor(in, DType::f32);
                      return [=] { function(x); };
                    }});
  };
  add("max_pool1d_k2", 6272, [](const Tensor& x) { return max_pool1d(x, {.kernel = 2}); });
  add("avg_pool1d_k2", 6272, [](const Tensor& x) { return avg_pool1d(x, {.kernel = 2}); });
  add("upsample_nearest1d", 25088, [](const Tensor& x) { return upsample_nearest1d(x, 25088); });
}

}  // namespace

void add_conv(std::vector<OpRow>& rows) {
  const Conv forward[] = {
      {"conv2d", DType::f32, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {"conv2d_s2", DType::f32, {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3, 1},
      {"conv1d", DType::f32, {1, 512, 1500}, {512, 512, 3}, 1, 1, 1},
      {"conv2d", DType::f32, {1, 128, 28, 28}, {128, 128, 3, 3}, 1, 1, 1},
      {"conv2d", DType::f32, {1, 256, 14, 14}, {256, 256, 3, 3}, 1, 1, 1},
      {"conv2d", DType::f32, {1, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1},
      {"conv2d", DType::f32, {8, 512, 7, 7}, {512, 512, 3, 3}, 1, 1, 1},
      {"conv2d_s2", DType::f32, {1, 128, 56, 56}, {128, 128, 3, 3}, 2, 1, 1},
      {"conv2d", DType::f32, {1, 256, 56, 56}, {64, 256, 1, 1}, 1, 0, 1},
      {"conv2d", DType::f32, {1, 64, 128, 128}, {3, 64, 3, 3}, 1, 1, 1},
      {"conv2d_g32", DType::f32, {1, 256, 28, 28}, {256, 8, 3, 3}, 1, 1, 32},
      {"conv2d_depthwise", DType::f32, {1, 128, 56, 56}, {128, 1, 3, 3}, 1, 1, 128},
      {"conv2d_depthwise_s2", DType::f32, {1, 64, 112, 112}, {64, 1, 3, 3}, 2, 1, 64},
      {"conv2d", DType::bf16, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {"conv2d", DType::f16, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
      {"conv2d", DType::f64, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1, 1},
  };
  for (const Conv& c : forward) add_conv(rows, c, Form::forward);
  for (const Conv& c : {forward[0], forward[1], forward[2], forward[4], forward[7], forward[11]}) {
    add_conv(rows, c, Form::input);
    add_conv(rows, c, Form::weight);
  }
  for (Op op : {Op::max_pool2d, Op::avg_pool2d}) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      for (int64_t kernel : {2, 3}) add_pool(rows, op, dtype, kernel);
    }
  }
  for (DType dtype : {DType::f32, DType::bf16}) {
    add_upsample(rows, Op::upsample_nearest2d, dtype);
    add_upsample(rows, Op::upsample_bilinear2d, dtype);
  }
  add_lines(rows);
}

}  // namespace wick::bench
