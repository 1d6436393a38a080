// Elementwise ops, reductions, norms, rotary embeddings, slices and token sampling on the GPUs that
// WICK_TEST_DEVICES names, with operands of every layout. The result must have the bits of the CPU
// with dense operands.

#include "tests/backend/gpu_layouts.h"

namespace wick::gpu {
namespace {

// ---- Elements and rows ----

const Shape kShapes[] = {
    {33},    {7, 5},  {3, 16},  {4, 64},    {2, 3, 24}, {16, 3},
    {1, 40}, {40, 1}, {65, 33}, {2, 70, 8}, {24, 40},   {64, 16},
};
constexpr std::array kElements = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3,
                                  DType::u8,  DType::i16, DType::i64,  DType::f64};

TEST_F(GpuLayouts, Elements) {
  on_each([&](GpuBackend& gpu) {
    Rng random(7);
    uint64_t seed = 60'000;
    for (int i = 0; i < 900; ++i) {
      const Shape& shape = kShapes[static_cast<size_t>(i) % std::size(kShapes)];
      const DType dtype = kElements[random() % kElements.size()];
      const DType other = kElements[random() % kElements.size()];
      const auto input = [&](DType of) {
        return Placed(gpu, of, shape, some_way_of_rows(shape, false, random), seed++);
      };
      const auto output = [&](DType of) {
        return Placed(gpu, of, shape, some_way_of_rows(shape, true, random), seed++);
      };
      Placed a = input(dtype), b = input(dtype), c = input(DType::u8);
      Placed y = output(dtype), truth = output(DType::u8), z = output(other);
      c.set(gpu, [](int64_t j) { return static_cast<uint64_t>(j * 5 / 3 % 2); });
      switch (i % 6) {
        case 0:
          expect_cpu_bits(gpu, "add", y, {&a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.binary(Op::add, to, in[0], in[1]);
                          });
          break;
        case 1:
          expect_cpu_bits(gpu, "neg", y, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.unary(Op::neg, to, in[0]);
          });
          break;
        case 2:
          expect_cpu_bits(gpu, "copy", y, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.copy(to, in[0]);
          });
          break;
        case 3:
          expect_cpu_bits(gpu, "lt", truth, {&a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.compare(Op::lt, to, in[0], in[1]);
                          });
          break;
        case 4:
          expect_cpu_bits(gpu, "cast", z, {&a}, [](Backend& on, const View& to, const Inputs& in) {
            on.cast(to, in[0]);
          });
          break;
        default:
          expect_cpu_bits(gpu, "where", y, {&c, &a, &b},
                          [](Backend& on, const View& to, const Inputs& in) {
                            on.where(to, in[0], in[1], in[2]);
                          });
          expect_cpu_bits(gpu, "fill", y, {},
                          [](Backend& on, const View& to, const Inputs&) { on.fill(to, 3); });
          expect_cpu_bits(gpu, "iota", y, {},
                          [](Backend& on, const View& to, const Inputs&) { on.iota(to, 1, 1); });
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, Reductions) {
  const Shape shapes[] = {{9, 130}, {4, 512}, {130, 9}, {5, 6, 32}, {40, 128}, {3, 4, 5}, {2, 600}};
  on_each([&](GpuBackend& gpu) {
    Rng random(8);
    uint64_t seed = 70'000;
    for (int i = 0; i < 630; ++i) {
      const Shape& shape = shapes[static_cast<size_t>(i) % std::size(shapes)];
      const DType dtype = kElements[random() % kElements.size()];
      const int dim = static_cast<int>(random()) & 1;
      uint32_t dims = 1u << dim;
      if (shape.rank() == 3 && random() % 2 == 0) dims |= 4;
      Shape reduced = shape;
      for (int d = 0; d < shape.rank(); ++d) {
        if ((dims >> d & 1) != 0) reduced = reduced.with(d, 1);
      }
      Placed x(gpu, dtype, shape, some_way_of_rows(shape, false, random), seed++);
      Placed y(gpu, dtype, reduced, some_way(reduced, true, random), seed++);
      const Op op = i % 3 == 0 ? Op::sum : i % 3 == 1 ? Op::max : Op::min;
      expect_cpu_bits(gpu, name(op), y, {&x}, [&](Backend& on, const View& to, const Inputs& in) {
        on.reduce(op, to, in[0], dims);
      });
      const Shape one = shape.with(dim, 1);
      Placed places(gpu, DType::u32, one, some_way(one, true, random), seed++);
      expect_cpu_bits(gpu, "argmax", places, {&x},
                      [&](Backend& on, const View& to, const Inputs& in) {
                        on.arg_reduce(Op::argmax, to, in[0], dim);
                      });
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, RowsThatBecomeRows) {
  const Shape shapes[] = {{9, 130}, {3, 512}, {5, 4, 32}, {2, 288}, {24, 136}, {3, 8, 8}};
  on_each([&](GpuBackend& gpu) {
    Rng random(9);
    uint64_t seed = 80'000;
    for (int i = 0; i < 600; ++i) {
      const Shape& shape = shapes[random() % std::size(shapes)];
      const DType dtypes[] = {DType::f32, DType::f16, DType::bf16, DType::f64};
      const DType dtype = dtypes[random() % 4];
      const int last = shape.rank() - 1;
      const DType of_weight = random() % 2 == 0 && dtype != DType::f64 ? DType::f32 : dtype;
      const Shape row{shape[last]};
      Placed x(gpu, dtype, shape, some_way_of_rows(shape, false, random), seed++);
      Placed y(gpu, dtype, shape, some_way_of_rows(shape, true, random), seed++);
      Placed w(gpu, of_weight, row, some_way(row, false, random), seed++);
      Placed bias(gpu, of_weight, row, some_way(row, false, random), seed++);
      if (i % 4 < 2) {
        const int dim = static_cast<int>(random() % static_cast<size_t>(shape.rank()));
        expect_cpu_bits(gpu, fmt::format("softmax along {}", dim), y, {&x},
                        [&](Backend& on, const View& to, const Inputs& in) {
                          on.softmax(to, in[0], dim, i % 4 == 1);
                        });
      } else if (i % 4 == 2) {
        expect_cpu_bits(gpu, "rms_norm", y, {&x, &w},
                        [](Backend& on, const View& to, const Inputs& in) {
                          on.rms_norm(to, in[0], in[1], 1e-5f);
                        });
      } else {
        expect_cpu_bits(gpu, "layer_norm", y, {&x, &w, &bias},
                        [](Backend& on, const View& to, const Inputs& in) {
                          on.layer_norm(to, in[0], in[1], in[2], 1e-5f);
                        });
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, LogitsAndHistories) {
  on_each([&](GpuBackend& gpu) {
    Rng random(11);
    uint64_t seed = 95'000;
    for (int i = 0; i < 60; ++i) {
      const int64_t counts[] = {5, 128, 131, 2050}, count = counts[i % 4];
      constexpr int64_t kRows = 3;
      const auto way = [&](int64_t width) {
        const int64_t along[] = {1, -1, 2, 1, -3}, starts[] = {0, 0, 0, 1, 2};
        const size_t which = random() % 5;
        const int64_t row = 3 * width + 4;
        return Way{"", {random() % 2 == 0 ? row : -row, along[which]}, starts[which]};
      };
      const Way of_rows[] = {{"", {-7}}, {"", {1}, 1}};
      Placed logits(gpu, DType::f32, {kRows, count}, way(count), seed++);
      Placed history(gpu, DType::u32, {kRows, 6}, way(6), seed++);
      Placed state(gpu, DType::u32, {kRows, 3}, way(3), seed++);
      Placed chosen(gpu, DType::u32, {2, kRows}, way(kRows), seed++);
      Placed words(gpu, DType::u32, {kRows, kSamplerWords}, way(kSamplerWords), seed++);
      Placed token(gpu, DType::u32, {kRows}, of_rows[random() % 2], seed++);
      Placed position(gpu, DType::u32, {kRows}, of_rows[random() % 2], seed++);
      history.set(gpu, [](int64_t j) { return static_cast<uint64_t>(j % 3); });
      state.set(gpu, [](int64_t j) { return j % 3 == 0 ? 3u : 1u; });
      position.set(gpu, [](int64_t) { return 9u; });
      SamplerOptions options;
      options.temperature = i % 2 == 0 ? 0.0f : 0.8f;
      options.seed = seed;
      if (i % 3 == 0) options.repetition_penalty = 1.5f;
      const auto all = sampler_words(options);
      words.set(gpu, [&](int64_t j) { return all[static_cast<size_t>(j % kSamplerWords)]; });
      const std::string what =
          fmt::format("{}: history {} counts {}", i, history.str(), state.str());
      expect_cpu_bits(
          gpu, what, token, {&logits}, [&](Backend& on, const View& to, const Inputs& in) {
            const auto of = [&](Placed& x) { return &on == &gpu ? x.there() : x.dense(); };
            on.sample({to, of(position), of(history), of(state), of(chosen), of(words)}, in[0]);
          });
      for (Placed* changed : {&history, &state, &position, &chosen}) {
        const std::vector<uint64_t> got = changed->fetch(gpu);
        for (size_t j = 0; j < got.size(); ++j) {
          ASSERT_EQ(got[j], changed->dense_bits(static_cast<int64_t>(j))) << what << " " << j;
        }
      }
      if (HasFailure()) return;
    }
  });
}

TEST_F(GpuLayouts, RotationsAndSlices) {
  on_each([&](GpuBackend& gpu) {
    Rng random(10);
    uint64_t seed = 90'000;
    for (int i = 0; i < 450; ++i) {
      const DType dtype = std::array{DType::f32, DType::f16, DType::bf16, DType::f64}[random() % 4];
      const int64_t d = std::array<int64_t, 4>{16, 32, 6, 24}[random() % 4];
      const Shape shape{2, 5, d}, table{5, random() % 3 == 0 ? d / 2 - 1 : d / 2};
      Placed x(gpu, dtype, shape, some_way(shape, false, random), seed++);
      Placed y(gpu, dtype, shape, some_way(shape, true, random), seed++);
      Placed cos(gpu, DType::f32, table, some_way(table, false, random), seed++);
      Placed sin(gpu, DType::f32, table, some_way(table, false, random), seed++);
      expect_cpu_bits(gpu, i % 2 == 0 ? "rope" : "rope, interleaved", y, {&x, &cos, &sin},
                      [&](Backend& on, const View& to, const Inputs& in) {
                        on.rope(to, in[0], in[1], in[2], i % 2 == 1);
                      });
      // Slices along either dim.
      const DType element = kElements[random() % kElements.size()];
      const int dim = static_cast<int>(random() % 2);
      const Shape from{9, 16}, to = from.with(dim, 6);
      Placed source(gpu, element, from, some_way(from, false, random), seed++);
      Placed chosen(gpu, element, to, some_way(to, true, random), seed++);
      const Way ways[] = {{"", {1}}, {"", {-1}}, {"", {3}, 1}};
      Placed ids(gpu, DType::i64, {6}, ways[random() % 3], seed++);
      ids.set(gpu, [&](int64_t j) { return static_cast<uint64_t>(j * 5 % 9); });
      expect_cpu_bits(gpu, fmt::format("index_select along {}", dim), chosen, {&source, &ids},
                      [&](Backend& on, const View& out, const Inputs& in) {
                        on.index_select(out, in[0], in[1], dim);
                      });
      if (HasFailure()) return;
    }
  });
}

}  // namespace
}  // namespace wick::gpu
