// Pools, resampling, norms of channels and random numbers on the GPUs that WICK_TEST_DEVICES names,
// with operands of every layout. The result must have the bits of the CPU with dense operands,
// whether a call runs at once or as a captured graph.

#include "tests/backend/gpu_layouts.h"

namespace wick::gpu {
namespace {

/// Output size of a pool.
Shape pooled(const Shape& x, const PoolParams& p) {
  const auto size = [&](int i) {
    return (x[2 + i] + 2 * p.padding[i] - p.kernel[i]) / p.stride[i] + 1;
  };
  return {x[0], x[1], size(0), size(1)};
}

PoolParams some_pool(const Shape& x, Rng& random) {
  PoolParams p;
  for (int i = 0; i < 2; ++i) {
    const int64_t kernels[] = {1, 2, 3, 5, x[2 + i]};
    p.kernel[i] = std::min(kernels[random() % 5], x[2 + i]);
    p.stride[i] = 1 + static_cast<int64_t>(random() % 4);
    p.padding[i] = static_cast<int64_t>(random() % static_cast<size_t>(p.kernel[i] / 2 + 1));
  }
  p.count_include_pad = random() % 2 == 0;
  return p;
}

class GpuLayoutsOfImages : public GpuLayouts {
 protected:
  static constexpr std::array kFloats = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                         DType::f64};
  static constexpr std::array kReals = {DType::f32, DType::bf16, DType::u8, DType::i16, DType::i64};
  static inline const Shape kShapes[] = {{2, 3, 6, 10}, {1, 2, 9, 33},  {3, 2, 1, 70},
                                         {2, 4, 12, 1}, {1, 1, 20, 24}, {2, 2, 3, 8}};

  /// expect_cpu_bits, where the device's call is captured and replayed every second time.
  void expect(GpuBackend& gpu, std::string_view what, Placed& out,
              std::initializer_list<Placed*> inputs, const Call& call) {
    const bool captured = calls_++ % 2 == 1;
    expect_cpu_bits(gpu, fmt::format("{}{}", what, captured ? ", captured," : ""), out, inputs,
                    [&](Backend& on, const View& to, const Inputs& in) {
                      if (&on != &gpu || !captured) return call(on, to, in);
                      call(on, to, in);  // loads the kernels, which a capture can't
                      gpu.record([&] { call(on, to, in); })->replay();
                    });
  }

 private:
  int calls_ = 0;
};

/// A pool or a resampling, or its gradient, of a backend. A pool's gradient reads the pool's input
/// as its second operand.
struct ImageCall {
  Op op;
  bool is_grad;
  PoolParams pool;
  ResampleParams resampling;

  std::string str(const Shape& image) const {
    return fmt::format("{}{} kernel {} {} stride {} {} padding {} {} of {}", name(op),
                       is_grad ? " gradient" : "", pool.kernel[0], pool.kernel[1], pool.stride[0],
                       pool.stride[1], pool.padding[0], pool.padding[1], image.str());
  }
  void operator()(Backend& on, const View& out, const std::vector<ConstView>& in) const {
    const bool is_pool = op == Op::max_pool2d || op == Op::avg_pool2d;
    if (is_pool && is_grad) return on.pool2d_grad(op, out, in[0], in[1], pool);
    if (is_pool) return on.pool2d(op, out, in[0], pool);
    if (is_grad) return on.resample_grad(op, out, in[0], resampling);
    on.resample(op, out, in[0], resampling);
  }
};

TEST_F(GpuLayoutsOfImages, PoolsAndResampling) {
  on_each([&](GpuBackend& gpu) {
    Rng random(21);
    uint64_t seed = 300'000;
    for (int i = 0; i < 400; ++i) {
      const Shape& image = kShapes[random() % std::size(kShapes)];
      const bool is_grad = i % 4 >= 2, first = random() % 2 == 0, is_pool = i % 2 == 0;
      const Op op = is_pool ? (first ? Op::max_pool2d : Op::avg_pool2d)
                            : (first ? Op::upsample_nearest2d : Op::upsample_bilinear2d);
      const bool any_dtype = !is_grad && op != Op::upsample_bilinear2d;
      const DType dtype = any_dtype ? kReals[random() % 5] : kFloats[random() % 5];
      const auto pool = some_pool(image, random);
      Shape result = pooled(image, pool);
      ResampleParams resampling;
      if (!is_pool) {
        result = {image[0], image[1], 1 + static_cast<int64_t>(random() % 20),
                  1 + static_cast<int64_t>(random() % 50)};
        resampling.align_corners = op == Op::upsample_bilinear2d && random() % 2 == 0;
        for (int d = 0; d < 2; ++d) {
          const auto in = static_cast<double>(image[2 + d]), out = double(result[2 + d]);
          resampling.scale[d] = !resampling.align_corners ? in / out
                                : out > 1                 ? (in - 1) / (out - 1)
                                                          : 0;
        }
      }
      const Shape& from = is_grad ? result : image;
      const Shape& to = is_grad ? image : result;
      Placed x(gpu, dtype, from, some_way(from, false, random), seed++);
      Placed pools(gpu, dtype, image, some_way(image, false, random), seed++);
      Placed y(gpu, dtype, to, some_way(to, true, random), seed++);
      const ImageCall call = {op, is_grad, pool, resampling};
      expect(gpu, call.str(image), y, {&x, &pools}, call);
      if (HasFailure()) return;
    }
  });
}

/// Contiguous images, of which AMD's kernels copy tiles through shared memory: parts of a plane, a
/// plane, or several of them. Rows end anywhere in 16 bytes.
TEST_F(GpuLayoutsOfImages, TilesOfContiguousImages) {
  on_each([&](GpuBackend& gpu) {
    Rng random(24);
    uint64_t seed = 340'000;
    const Shape shapes[] = {{1, 1, 40, 100}, {1, 3, 57, 113}, {70, 4, 7, 7},  {1, 2, 150, 33},
                            {150, 2, 5, 3},  {1, 1, 3, 1500}, {2, 3, 13, 16}, {600, 1, 2, 2},
                            {1, 1, 64, 31},  {3, 1, 1, 300},  {1, 2, 90, 1},  {5, 1, 33, 18}};
    for (int i = 0; i < 160; ++i) {
      const Shape& image = shapes[random() % std::size(shapes)];
      const bool is_pool = i % 2 == 0;
      const Op op = !is_pool            ? Op::upsample_nearest2d
                    : random() % 2 == 0 ? Op::max_pool2d
                                        : Op::avg_pool2d;
      const bool is_grad = op == Op::max_pool2d && random() % 3 == 0;
      const DType dtype = is_pool ? kFloats[random() % 5] : kReals[random() % 5];
      PoolParams pool;
      ResampleParams resampling;
      Shape result;
      if (is_pool) {
        for (int d = 0; d < 2; ++d) {
          pool.kernel[d] = std::min<int64_t>(1 + static_cast<int64_t>(random() % 3), image[2 + d]);
          pool.stride[d] = 1 + static_cast<int64_t>(random() % static_cast<size_t>(pool.kernel[d]));
          pool.padding[d] =
              static_cast<int64_t>(random() % static_cast<size_t>(pool.kernel[d] / 2 + 1));
        }
        pool.count_include_pad = random() % 2 == 0;
        result = pooled(image, pool);
      } else {
        const int64_t times[] = {1, 2, 2, 3}, more[] = {0, 0, 1, 5};
        result = {image[0], image[1], image[2] * times[random() % 4] + more[random() % 4],
                  image[3] * times[random() % 4] + more[random() % 4]};
        for (int d = 0; d < 2; ++d) {
          resampling.scale[d] =
              static_cast<double>(image[2 + d]) / static_cast<double>(result[2 + d]);
        }
      }
      const auto dense = [&](const Shape& shape) {
        const int64_t planes = shape[2] * shape[3], starts[] = {0, 0, 0, 16, 1};
        return Way{"", {shape[1] * planes, planes, shape[3], 1}, starts[random() % 5]};
      };
      Placed x(gpu, dtype, is_grad ? result : image, dense(is_grad ? result : image), seed++);
      Placed pools(gpu, dtype, image, dense(image), seed++);
      Placed y(gpu, dtype, is_grad ? image : result, dense(is_grad ? image : result), seed++);
      const ImageCall call = {op, is_grad, pool, resampling};
      expect(gpu, call.str(image), y, {&x, &pools}, call);
      if (HasFailure()) return;
    }
  });
}

/// Contiguous images whose channels are longer than a wave's vectors, and groups of up to 8 chunks
/// and more.
TEST_F(GpuLayoutsOfImages, NormsOfContiguousImages) {
  on_each([&](GpuBackend& gpu) {
    Rng random(25);
    uint64_t seed = 350'000;
    const Shape shapes[] = {{2, 8, 28, 28},  {1, 4, 56, 100}, {3, 4, 31, 32},   {1, 8, 64, 64},
                            {2, 64, 2, 2},   {1, 96, 16, 16}, {1, 2, 128, 128}, {5, 6, 20, 20},
                            {1, 4, 111, 73}, {2, 32, 1, 64},  {1, 6, 91, 60}};
    for (int i = 0; i < 88; ++i) {
      const Shape& image = shapes[static_cast<size_t>(i) / 2 % std::size(shapes)];
      const DType dtype = kFloats[random() % 3];
      const auto dense = [&](const Shape& shape) {
        const int64_t planes = shape[2] * shape[3];
        return Way{"", {shape[1] * planes, planes, shape[3], 1}, 0};
      };
      const auto some_vector = [&] {
        const Shape channels{image[1]};
        const DType of = random() % 2 == 0 ? DType::f32 : dtype;
        return Placed(gpu, of, channels, some_way(channels, false, random), seed++);
      };
      Placed x(gpu, dtype, image, dense(image), seed++);
      Placed y(gpu, dtype, image, dense(image), seed++);
      Placed w = some_vector(), b = some_vector(), mean = some_vector(), variance = some_vector();
      const int64_t groups = random() % 2 == 0 ? 2 : 1, bare = random() % 4;
      expect(gpu, i % 2 == 0 ? "group_norm" : "batch_norm", y, {&x, &w, &b, &mean, &variance},
             [&](Backend& on, const View& out, const Inputs& in) {
               const ConstView weight = bare == 0 ? ConstView{} : in[1];
               const ConstView bias = bare == 1 ? ConstView{} : in[2];
               if (i % 2 == 0) return on.group_norm(out, in[0], groups, weight, bias, 1e-5f);
               on.batch_norm(out, in[0], in[3], in[4], weight, bias, 1e-5f);
             });
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayoutsOfImages, NormsOfChannels) {
  on_each([&](GpuBackend& gpu) {
    Rng random(22);
    uint64_t seed = 310'000;
    for (int i = 0; i < 200; ++i) {
      const Shape& image = kShapes[random() % std::size(kShapes)];
      const DType dtype = kFloats[random() % 5];
      const auto some_vector = [&] {
        const DType of = random() % 2 == 0 && dtype != DType::f64 ? DType::f32 : dtype;
        const Shape channels{image[1]};
        return Placed(gpu, of, channels, some_way(channels, false, random), seed++);
      };
      Placed x(gpu, dtype, image, some_way(image, false, random), seed++);
      Placed y(gpu, dtype, image, some_way(image, true, random), seed++);
      Placed w = some_vector(), b = some_vector(), mean = some_vector(), variance = some_vector();
      const int64_t groups = image[1] % 2 == 0 && random() % 2 == 0 ? 2 : 1;
      const bool bare = random() % 4 == 0;
      expect(gpu, i % 2 == 0 ? "group_norm" : "batch_norm", y, {&x, &w, &b, &mean, &variance},
             [&](Backend& on, const View& out, const Inputs& in) {
               const ConstView weight = bare ? ConstView{} : in[1];
               if (i % 2 == 0) return on.group_norm(out, in[0], groups, weight, in[2], 1e-5f);
               on.batch_norm(out, in[0], in[3], in[4], weight, in[2], 1e-5f);
             });
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayoutsOfImages, RandomNumbers) {
  on_each([&](GpuBackend& gpu) {
    Rng random(23);
    uint64_t seed = 320'000;
    for (int i = 0; i < 150; ++i) {
      const Shape shapes[] = {{33}, {4, 48}, {3, 5, 16}, {2, 7, 9}, {1000}};
      const Shape& shape = shapes[random() % std::size(shapes)];
      Placed y(gpu, kFloats[random() % 5], shape, some_way(shape, true, random), seed++);
      const Op op = i % 2 == 0 ? Op::uniform : Op::normal;
      expect(gpu, name(op), y, {}, [&](Backend& on, const View& out, const Inputs&) {
        on.random(op, out, 77 + seed, 0xfffffff0u, -1.5, 2.0);
      });
      if (HasFailure()) return;
    }
  });
}

/// The sums of a row are stored by so many thread blocks that a thread combines several of them.
TEST_F(GpuLayoutsOfImages, LongRows) {
  on_each([&](GpuBackend& gpu) {
    const Shape row{1, (int64_t{100} << 13) + 5};
    Placed x(gpu, DType::f8e4m3, row, {"", {row[1], 1}}, 330'000);
    Placed y(gpu, DType::f8e4m3, row, {"", {row[1], 1}}, 330'001);
    x.set(gpu, [](int64_t i) { return static_cast<uint64_t>(i * 2654435761 >> 7 & 0xbf); });
    expect(gpu, "layer_norm", y, {&x}, [](Backend& on, const View& out, const Inputs& in) {
      on.layer_norm(out, in[0], {}, {}, 1e-5f);
    });
  });
}

}  // namespace
}  // namespace wick::gpu
