// conv2d and its gradients: within the bound of their class for every dtype and layout, equal to
// the specified accumulation chains in f32, and adjoint to each other.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "tests/parity/conv_reference.h"
#include "tests/parity/grid.h"
#include "wick/backend/cpu/thread_pool.h"

namespace wick::parity {
namespace {

ConvParams params(std::array<int64_t, 2> stride, std::array<int64_t, 2> padding,
                  std::array<int64_t, 2> dilation = {1, 1}, int64_t groups = 1) {
  return {.stride = {stride[0], stride[1]},
          .padding = {padding[0], padding[1]},
          .dilation = {dilation[0], dilation[1]},
          .groups = groups};
}

/// Cases for the kernels' special paths: a panel, a few or one row of weights, groups, pixels that
/// share panels, blocks and tasks, long rows, dilated kernels.
const std::vector<ConvCase>& cases() {
  static const std::vector<ConvCase> list = {
      {"plain", {2, 3, 7, 9}, {4, 3, 3, 3}, params({1, 1}, {1, 1})},
      {"uneven", {1, 5, 11, 13}, {9, 5, 3, 2}, params({2, 3}, {1, 2}, {2, 1})},
      {"pointwise", {2, 6, 12, 11}, {10, 6, 1, 1}, params({1, 1}, {0, 0})},
      {"pointwise_small", {3, 6, 4, 5}, {10, 6, 1, 1}, params({1, 1}, {0, 0})},
      {"pointwise_groups", {2, 6, 12, 11}, {9, 2, 1, 1}, params({1, 1}, {0, 0}, {1, 1}, 3)},
      {"pointwise_strided", {2, 6, 9, 11}, {10, 6, 1, 1}, params({2, 3}, {1, 0})},
      {"groups", {2, 6, 8, 8}, {20, 3, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 2)},
      {"groups_few_rows", {2, 6, 8, 8}, {12, 2, 3, 3}, params({2, 1}, {1, 1}, {1, 1}, 3)},
      {"groups_many", {1, 8, 6, 6}, {36, 2, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 4)},
      {"depthwise", {2, 5, 9, 10}, {5, 1, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 5)},
      {"depthwise_steps", {1, 2, 41, 37}, {2, 1, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 2)},
      {"depthwise_strided", {2, 5, 19, 20}, {10, 1, 5, 3}, params({2, 2}, {2, 1}, {1, 2}, 5)},
      {"whole_image", {3, 4, 5, 5}, {12, 4, 5, 5}, params({1, 1}, {0, 0})},
      {"long_rows", {2, 3, 1, 700}, {11, 3, 1, 5}, params({1, 1}, {0, 6}, {1, 3})},
      {"long_rows_few", {2, 2, 1, 5000}, {2, 2, 1, 3}, params({1, 2}, {0, 1})},
      {"columns", {2, 3, 300, 1}, {10, 3, 5, 1}, params({1, 1}, {2, 0})},
      {"holes", {1, 2, 9, 9}, {9, 2, 3, 3}, params({1, 1}, {7, 5}, {7, 4})},
      {"strides_over_kernel", {1, 3, 17, 17}, {10, 3, 2, 2}, params({5, 4}, {0, 0})},
      {"strides_and_dilation", {1, 3, 23, 20}, {10, 3, 3, 4}, params({4, 6}, {3, 2}, {2, 3})},
      {"small_images", {40, 5, 4, 3}, {9, 5, 3, 3}, params({1, 1}, {1, 1})},
      {"small_images_few", {40, 5, 4, 3}, {3, 5, 3, 3}, params({1, 1}, {1, 1})},
      {"long_sums", {1, 64, 6, 6}, {16, 64, 3, 3}, params({1, 1}, {1, 1})},
      {"long_sums_few", {1, 300, 9, 9}, {3, 300, 3, 3}, params({1, 1}, {1, 1})},
      {"long_sums_groups", {2, 80, 4, 5}, {24, 40, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 2)},
      {"few_pixels", {2, 33, 5, 4}, {70, 33, 3, 3}, params({1, 1}, {1, 1})},
      {"few_pixels_groups", {1, 8, 3, 3}, {48, 2, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 4)},
      // The limits of tiles, of packed channels and of tables of terms of GPU kernels.
      {"channels_strided", {2, 20, 13, 11}, {36, 20, 3, 4}, params({2, 3}, {1, 2}, {2, 1})},
      {"channels_groups", {1, 40, 9, 7}, {72, 20, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 2)},
      {"channels_phases", {1, 18, 19, 9}, {24, 18, 4, 4}, params({2, 2}, {1, 1})},
      {"few_channels", {1, 4, 40, 9}, {12, 2, 3, 3}, params({1, 1}, {1, 1}, {1, 1}, 2)},
      // Planes that share a thread block, tiles of planes, results in vectors.
      {"planes", {10, 9, 5, 8}, {9, 1, 5, 5}, params({1, 1}, {2, 2}, {1, 1}, 9)},
      {"planes_in_tiles", {1, 2, 11, 150}, {2, 1, 3, 3}, params({2, 2}, {1, 1}, {1, 1}, 2)},
      {"planes_shared", {1, 3, 19, 30}, {6, 1, 7, 7}, params({2, 2}, {3, 3}, {1, 1}, 3)},
      {"planes_padded", {1, 2, 3, 68}, {2, 1, 7, 7}, params({1, 1}, {5, 6}, {1, 1}, 2)},
      {"empty", {0, 3, 8, 8}, {10, 3, 3, 3}, params({1, 1}, {1, 1})},
      {"no_channels", {2, 0, 8, 8}, {10, 0, 3, 3}, params({1, 1}, {1, 1})},
      {"no_channels_wide", {2, 0, 8, 9}, {24, 0, 3, 3}, params({1, 1}, {1, 1})},
  };
  return list;
}

/// For some dtypes: several tasks, and sums that take more than one pass.
const std::vector<ConvCase>& large_cases() {
  static const std::vector<ConvCase> list = {
      {"tasks", {2, 16, 40, 40}, {24, 16, 3, 3}, params({1, 1}, {1, 1})},
      {"strided_tasks", {1, 3, 90, 94}, {16, 3, 7, 7}, params({2, 2}, {3, 3})},
      {"many_rows", {1, 8, 17, 19}, {132, 8, 2, 3}, params({1, 1}, {0, 1})},
      {"many_terms", {1, 232, 3, 4}, {17, 232, 3, 3}, params({1, 1}, {1, 1})},
      {"phases_together", {1, 72, 6, 16}, {24, 72, 4, 4}, params({2, 2}, {1, 1})},
      {"phases_apart", {1, 72, 5, 10}, {24, 72, 3, 3}, params({1, 2}, {1, 1})},
      {"patches", {2, 20, 40, 48}, {72, 20, 4, 4}, params({4, 4}, {0, 0})},
      {"slabs", {9, 9, 24, 25}, {10, 9, 3, 2}, params({1, 1}, {1, 1})},
      {"slabs_depthwise", {9, 3, 24, 25}, {6, 1, 3, 4}, params({1, 1}, {1, 1}, {1, 1}, 3)},
      {"passes", {1, 1024, 5, 5}, {9, 1024, 3, 3}, params({1, 1}, {1, 1})},
  };
  return list;
}

struct Operands {
  TestTensor x, w, out;
  Operands(DType dtype, const ConvCase& c, Place place, Form form)
      : x(dtype, place, c.x, 1, form == Form::input),
        w(dtype, place, c.w, 3, form == Form::weight),
        out(dtype, place, c.out(), 2, form == Form::forward) {}
  TestTensor& result(Form form) {
    return form == Form::forward ? out : form == Form::input ? x : w;
  }
  std::vector<const TestTensor*> inputs(Form form) const {
    if (form == Form::forward) return {&x, &w};
    if (form == Form::input) return {&out, &w};
    return {&x, &out};
  }
};

void run(Form form, Backend& backend, const View& result, std::span<const ConstView> in,
         const ConvParams& p) {
  if (form == Form::forward) return backend.conv2d(result, in[0], in[1], p);
  if (form == Form::input) return backend.conv2d_input(result, in[0], in[1], p);
  backend.conv2d_weight(result, in[0], in[1], p);
}

/// Runs a form on one target into its result. Returns false, after reporting it, if the call wrote
/// outside the result.
bool run_on(const Target& target, const std::string& what, Form form, const ConvCase& c,
            Operands& operands) {
  TestTensor& result = operands.result(form);
  result.wipe();
  std::deque<OnDevice> there;
  std::vector<ConstView> views;
  std::vector<std::vector<std::byte>> before;
  const OnDevice result_there(*target.backend, result.storage());
  for (const TestTensor* input : operands.inputs(form)) {
    there.emplace_back(*target.backend, input->storage());
    views.push_back(there.back().view(input->view()));
    before.emplace_back(input->storage().begin(), input->storage().end());
  }
  run(form, *target.backend, result_there.view(result.view()), views, c.params);
  result_there.fetch(result.storage());
  bool fine = result.surroundings_intact();
  if (!fine) ADD_FAILURE() << what << " wrote outside its output";
  const auto inputs = operands.inputs(form);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::equal(before[i].begin(), before[i].end(), inputs[i]->storage().begin())) continue;
    ADD_FAILURE() << what << " changed input " << i;
    fine = false;
  }
  return fine;
}

bool check_bound(const std::string& what, DType dtype, const TestTensor& result,
                 const std::vector<Truth>& truth, bool random) {
  const std::vector<uint64_t> bits = result.bits();
  for (size_t i = 0; i < bits.size(); ++i) {
    const long double got = decode(dtype, bits[i]);
    if (inside_bound(dtype, got, truth[i], random)) continue;
    ADD_FAILURE() << what
                  << fmt::format(": element {} of {} is {:.9g}, expected {:.9g} ± {:.3g}", i,
                                 result.shape().str(), static_cast<double>(got),
                                 static_cast<double>(truth[i].value),
                                 static_cast<double>(bound_of(dtype, got, truth[i], random)));
    return false;
  }
  return true;
}

constexpr Place kPlaces[] = {Place::contiguous, Place::transposed, Place::broadcast, Place::scalar,
                             Place::sliced,     Place::stepped,    Place::scattered};

void check_case(Form form, DType dtype, const ConvCase& c, Place place, Random& random) {
  Operands operands(dtype, c, place, form);
  for (TestTensor* t : {&operands.x, &operands.w, &operands.out}) t->fill(Values::normal, random);
  const std::vector<Truth> truth =
      truth_of(form, c, operands.out.doubles(), operands.x.doubles(), operands.w.doubles());
  const bool repeats = place == Place::broadcast || place == Place::scalar;
  const int before = cpu::ThreadPool::global().threads();
  for (const Target& target : targets()) {
    for (const int threads : {1, 2}) {
      cpu::ThreadPool::global().set_threads(threads);
      const std::string what = fmt::format("{}.{}.{}.{} on {} with {} threads", name(form),
                                           name(dtype), c.name, name(place), target.name, threads);
      const Blame blame(target, what);
      if (!run_on(target, what, form, c, operands) ||
          !check_bound(what, dtype, operands.result(form), truth, !repeats)) {
        cpu::ThreadPool::global().set_threads(before);
        return;
      }
    }
  }
  cpu::ThreadPool::global().set_threads(before);
}

void check_form(Form form, DType dtype) {
  Random random(71);
  for (const ConvCase& c : cases()) {
    for (Place place : kPlaces) {
      if (!here(place, c.x)) continue;
      check_case(form, dtype, c, place, random);
      if (failed()) return;
    }
  }
  if (dtype == DType::f16 || dtype == DType::f8e4m3) return;
  for (const ConvCase& c : large_cases()) {
    for (Place place : {Place::contiguous, Place::transposed}) {
      if (!here(place, c.x)) continue;
      check_case(form, dtype, c, place, random);
      if (failed()) return;
    }
  }
}

[[maybe_unused]] const bool added = [] {
  for (Form form : {Form::forward, Form::input, Form::weight}) {
    add_rows(name(form), info(Op::conv2d).dtypes, [=](DType dtype) { check_form(form, dtype); });
  }
  return true;
}();

// This is stronger than the class: on CPUs with fma, there is one accumulation chain in the order
// of the terms or pixels, whatever the layout, the threads and the code path.
TEST(Convolution, BitsAreThoseOfOneChain) {
  Random random(72);
  const int before = cpu::ThreadPool::global().threads();
  for (const ConvCase& c : cases()) {
    for (Form form : {Form::forward, Form::input, Form::weight}) {
      // The weights' gradients with few rows are dot products with sixteen lanes.
      const bool lanes = form == Form::weight && c.w[0] / c.params.groups <= 8;
      Operands operands(DType::f32, c, Place::contiguous, form);
      for (TestTensor* t : {&operands.x, &operands.w, &operands.out}) {
        t->fill(Values::normal, random);
      }
      const std::vector<double> x = operands.x.doubles(), w = operands.w.doubles(),
                                out = operands.out.doubles();
      std::vector<float> chain(static_cast<size_t>(operands.result(form).elems()));
      std::vector<std::array<float, 16>> lane(chain.size());
      const Shape images = c.out();
      for_each_product(c, [&](int64_t o, int64_t i, int64_t k) {
        const auto at_o = static_cast<size_t>(o), at_x = static_cast<size_t>(i),
                   at_w = static_cast<size_t>(k);
        if (i < 0) return;
        const auto add = [](float& sum, double a, double b) {
          sum = std::fma(static_cast<float>(a), static_cast<float>(b), sum);
        };
        if (form == Form::forward) add(chain[at_o], x[at_x], w[at_w]);
        if (form == Form::weight && !lanes) add(chain[at_w], x[at_x], out[at_o]);
        if (lanes) {
          const int64_t image = images[2] * images[3];
          const int64_t pixel = o / (image * images[1]) * image + o % image;
          const int64_t start = std::max(pixel - o % images[3], pixel / 1024 * 1024);
          add(lane[at_w][static_cast<size_t>((pixel - start) % 16)], x[at_x], out[at_o]);
        }
      });
      for (size_t i = 0; lanes && i < chain.size(); ++i) {
        for (size_t half = 8; half > 0; half /= 2) {
          for (size_t l = 0; l < half; ++l) lane[i][l] += lane[i][l + half];
        }
        chain[i] = lane[i][0];
      }
      if (form == Form::input) {
        // An input's products in the order of the weights that it is multiplied by: output channel,
        // row, column.
        std::vector<std::vector<std::array<int64_t, 2>>> terms(chain.size());
        for_each_product(c, [&](int64_t o, int64_t i, int64_t k) {
          if (i >= 0) terms[static_cast<size_t>(i)].push_back({k, o});
        });
        for (size_t i = 0; i < chain.size(); ++i) {
          std::sort(terms[i].begin(), terms[i].end());
          for (const auto& [k, o] : terms[i]) {
            chain[i] = std::fma(static_cast<float>(w[static_cast<size_t>(k)]),
                                static_cast<float>(out[static_cast<size_t>(o)]), chain[i]);
          }
        }
      }
      for (const Target& target : targets()) {
        if (target.backend->device().kind != DeviceKind::cpu || target.name == "cpu-v2") continue;
        for (const int threads : {1, 2}) {
          cpu::ThreadPool::global().set_threads(threads);
          const std::string what =
              fmt::format("{}.{} on {} with {}", name(form), c.name, target.name, threads);
          ASSERT_TRUE(run_on(target, what, form, c, operands));
          const std::vector<double> got = operands.result(form).doubles();
          for (size_t i = 0; i < got.size(); ++i) {
            ASSERT_EQ(got[i], static_cast<double>(chain[i])) << what << ", element " << i;
          }
        }
      }
    }
  }
  cpu::ThreadPool::global().set_threads(before);
}

// <conv(x, w), g> = <x, conv_input(g, w)> = <w, conv_weight(x, g)> holds exactly for small
// integers.
TEST(Convolution, GradientsAreAdjoint) {
  Random random(73);
  for (const ConvCase& c : cases()) {
    for (DType dtype : {DType::f32, DType::f64}) {
      for (const Target& target : targets()) {
        const auto integers = [&](TestTensor& t) {
          t.fill_with([&](int64_t) { return static_cast<long double>(random.below(7) - 3); });
        };
        const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
          double sum = 0;
          for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
          return sum;
        };
        Operands forward(dtype, c, Place::scattered, Form::forward);
        Operands input(dtype, c, Place::stepped, Form::input);
        Operands weight(dtype, c, Place::sliced, Form::weight);
        integers(forward.x), integers(forward.w), integers(input.out);
        const std::vector<double> x = forward.x.doubles(), w = forward.w.doubles(),
                                  g = input.out.doubles();
        const auto same = [](TestTensor& t, const std::vector<double>& values) {
          t.fill_with([&](int64_t i) { return values[static_cast<size_t>(i)]; });
        };
        same(input.w, w), same(weight.x, x), same(weight.out, g);
        ASSERT_TRUE(run_on(target, c.name, Form::forward, c, forward));
        ASSERT_TRUE(run_on(target, c.name, Form::input, c, input));
        ASSERT_TRUE(run_on(target, c.name, Form::weight, c, weight));
        const double want = product(forward.out.doubles(), g);
        EXPECT_EQ(product(x, input.x.doubles()), want) << c.name << " on " << target.name;
        EXPECT_EQ(product(w, weight.w.doubles()), want) << c.name << " on " << target.name;
      }
    }
  }
}

// Images whose channels are innermost are read in place. Integers are exact in every order.
TEST(Convolution, ChannelsInnermost) {
  const ConvCase c{"", {2, 16, 9, 10}, {24, 16, 3, 3}, params({1, 2}, {1, 1})};
  Random random(75);
  const auto innermost = [](const View& dense, bool turned) -> View {
    const Shape& s = dense.layout.shape();
    if (!turned) return {dense.data, dense.dtype, Layout::contiguous(s)};
    return {dense.data, dense.dtype, Layout(s, {s[2] * s[3] * s[1], 1, s[3] * s[1], s[1]}, 0)};
  };
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (const Form form : {Form::forward, Form::input}) {
      for (const Target& target : targets()) {
        std::vector<std::vector<double>> results;
        for (const bool turned : {false, true}) {
          Operands operands(dtype, c, Place::contiguous, form);
          TestTensor& image = form == Form::forward ? operands.x : operands.out;
          const Shape& s = image.shape();
          const int64_t channels = s[1], pixels = s[2] * s[3];
          image.fill_with([&](int64_t i) -> long double {
            // The element at memory position i.
            const int64_t channel = turned ? i % channels : i / pixels % channels,
                          pixel = turned ? i / channels % pixels : i % pixels,
                          batch = i / (channels * pixels);
            return static_cast<long double>((batch * 5 + channel * 3 + pixel * 7) % 5 - 2);
          });
          operands.w.fill_with([&](int64_t i) { return static_cast<long double>(i % 7 - 3); });
          TestTensor& result = operands.result(form);
          const OnDevice image_there(*target.backend, image.storage()),
              w_there(*target.backend, operands.w.storage()),
              result_there(*target.backend, result.storage());
          const View of_image = image_there.view(image.view());
          const ConstView in[] = {innermost(of_image, turned), w_there.view(operands.w.view())};
          run(form, *target.backend, result_there.view(result.view()), in, c.params);
          result_there.fetch(result.storage());
          results.push_back(result.doubles());
        }
        EXPECT_EQ(results[0], results[1]) << name(form) << ' ' << name(dtype) << target.name;
      }
    }
  }
}

TEST(Convolution, NanAndInfinityPropagate) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const int64_t rows : {2, 10}) {
    const ConvCase c{"", {1, 2, 5, 20}, {rows, 2, 3, 3}, params({1, 1}, {1, 1})};
    for (DType dtype : {DType::f32, DType::f16, DType::f64}) {
      for (const Target& target : targets()) {
        Operands operands(dtype, c, Place::contiguous, Form::forward);
        operands.w.fill_with([](int64_t) { return 1; });
        operands.x.fill_with([&](int64_t i) -> long double {
          return i == 0 ? kInf : i == 19 ? std::numeric_limits<double>::quiet_NaN() : 1;
        });
        ASSERT_TRUE(run_on(target, "inf", Form::forward, c, operands));
        const std::vector<double> out = operands.out.doubles();
        for (size_t i = 0; i < out.size(); ++i) {
          const size_t x = i % 20, y = i / 20 % 5;
          const bool near_inf = x <= 1 && y <= 1, near_nan = x >= 18 && y <= 1;
          EXPECT_EQ(std::isnan(out[i]), near_nan) << target.name << ' ' << i;
          EXPECT_EQ(std::isinf(out[i]), near_inf) << target.name << ' ' << i;
        }
      }
    }
  }
}

// The checker must distinguish f32 accumulation from f16 accumulation.
TEST(Convolution, BoundRejectsAnF16Accumulator) {
  const ConvCase c{"", {1, 64, 6, 6}, {4, 64, 3, 3}, params({1, 1}, {1, 1})};
  Random random(74);
  Operands operands(DType::f16, c, Place::contiguous, Form::forward);
  operands.x.fill(Values::normal, random);
  operands.w.fill(Values::normal, random);
  const std::vector<double> x = operands.x.doubles(), w = operands.w.doubles();
  const std::vector<Truth> truth = truth_of(Form::forward, c, {}, x, w);
  std::vector<long double> half(truth.size());
  std::vector<float> single(truth.size());
  for_each_product(c, [&](int64_t o, int64_t i, int64_t k) {
    if (i < 0) return;
    const auto at = static_cast<size_t>(o);
    const double a = x[static_cast<size_t>(i)], b = w[static_cast<size_t>(k)];
    half[at] = round_to(DType::f16, half[at] + static_cast<long double>(a) * b);
    single[at] = std::fma(static_cast<float>(a), static_cast<float>(b), single[at]);
  });
  size_t rejected = 0, accepted = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    rejected += inside_bound(DType::f16, half[i], truth[i]) ? 0 : 1;
    accepted += inside_bound(DType::f16, round_to(DType::f16, single[i]), truth[i]) ? 1 : 0;
  }
  EXPECT_GE(rejected, truth.size() * 3 / 4);
  EXPECT_EQ(accepted, truth.size());
}

}  // namespace
}  // namespace wick::parity
