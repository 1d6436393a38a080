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
      const std::string what =
          fmt::format("{}{} kernel {} {} stride {} {} padding {} {}", name(op),
                      is_grad ? " gradient" : "", pool.kernel[0], pool.kernel[1], pool.stride[0],
                      pool.stride[1], pool.padding[0], pool.padding[1]);
      expect(gpu, what, y, {&x, &pools}, [&](Backend& on, const View& out, const Inputs& in) {
        if (is_pool && is_grad) return on.pool2d_grad(op, out, in[0], in[1], pool);
        if (is_pool) return on.pool2d(op, out, in[0], pool);
        if (is_grad) return on.resample_grad(op, out, in[0], resampling);
        on.resample(op, out, in[0], resampling);
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
