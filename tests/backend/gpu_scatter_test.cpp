// gather, scatter, scatter_add and index_add on the GPUs that WICK_TEST_DEVICES names: errors for
// ids out of range, and captured graphs whose ids change. Each case runs on other kernels.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "tests/test_devices.h"
#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/recording.h"

namespace wick {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPadding = ~uint32_t{0};

/// A call whose shapes select particular kernels.
struct Case {
  const char* kernels;
  Op op;
  Shape x, ids, source;
  int dim;
};

const Case kCases[] = {
    {"gather, vectors", Op::gather, {6, 40}, {6, 64}, {}, 1},
    {"gather, elements", Op::gather, {40, 5}, {7, 5}, {}, 0},
    {"scatter, few", Op::scatter, {3, 40}, {3, 9}, {3, 9}, 1},
    {"scatter, rows", Op::scatter, {3, 40}, {3, 70}, {3, 70}, 1},
    {"scatter, columns", Op::scatter, {40, 11}, {70, 11}, {70, 11}, 0},
    {"scatter, sorted ids", Op::scatter, {2, 9000}, {2, 50}, {2, 50}, 1},
    {"scatter_add, few", Op::scatter_add, {3, 40}, {3, 9}, {3, 9}, 1},
    {"scatter_add, rows", Op::scatter_add, {3, 40}, {3, 70}, {3, 70}, 1},
    {"scatter_add, columns", Op::scatter_add, {40, 11}, {70, 11}, {70, 11}, 0},
    {"scatter_add, sorted ids", Op::scatter_add, {2, 9000}, {2, 50}, {2, 50}, 1},
    {"scatter_add, many sorted ids", Op::scatter_add, {1, 900}, {1, 17000}, {1, 17000}, 1},
    {"index_add, few", Op::index_add, {40, 12}, {9}, {9, 12}, 0},
    {"index_add, vectors", Op::index_add, {40, 12}, {70}, {70, 12}, 0},
    {"index_add, elements", Op::index_add, {40, 11}, {70}, {70, 11}, 0},
    {"index_add, rows", Op::index_add, {11, 40}, {70}, {11, 70}, 1},
};

Tensor run(const Case& c, const Tensor& x, const Tensor& ids, const Tensor& source) {
  switch (c.op) {
    case Op::gather:
      return gather(x, ids, c.dim);
    case Op::scatter:
      return scatter(x, ids, source, c.dim);
    case Op::scatter_add:
      return scatter_add(x, ids, source, c.dim);
    default:
      return index_add(x, ids, source, c.dim);
  }
}

class GpuScatter : public testing::Test {
 protected:
  void SetUp() override {
    if (test::devices().empty()) GTEST_SKIP() << "WICK_TEST_DEVICES names none";
  }

  std::vector<float> numbers(const Shape& shape) {
    std::vector<float> all(static_cast<size_t>(shape.elems()));
    for (float& number : all) number = std::normal_distribution<float>()(random_);
    return all;
  }
  std::vector<uint32_t> ids(const Case& c) {
    std::vector<uint32_t> all(static_cast<size_t>(c.ids.elems()));
    const auto size = static_cast<uint32_t>(c.x[c.dim]);
    for (uint32_t& id : all)
      id = random_() % 7 == 0 ? kPadding : static_cast<uint32_t>(random_() % size);
    return all;
  }
  /// Calls body(case, x, source) on each device.
  void for_each(
      const std::function<void(const Case&, const Tensor& x, const Tensor& source)>& body) {
    for (const Device& device : test::devices()) {
      for (const Case& c : kCases) {
        SCOPED_TRACE(fmt::format("{} on {}", c.kernels, device.str()));
        body(c, Tensor::from(numbers(c.x), c.x, device),
             Tensor::from(numbers(c.source), c.source, device));
      }
    }
  }
  /// The CPU's result.
  static std::vector<float> expected(const Case& c, const Tensor& x, const Tensor& source,
                                     const std::vector<uint32_t>& ids) {
    return run(c, x.to(Device::cpu()), Tensor::from(ids, c.ids), source.to(Device::cpu()))
        .to_vector<float>();
  }

  std::mt19937 random_{77};
};

/// A fault is reported at the next synchronisation, and its element is ignored as padding is.
TEST_F(GpuScatter, IdsOutOfRangeAreNamedAndIgnored) {
  for_each([&](const Case& c, const Tensor& x, const Tensor& source) {
    const Device device = x.device();
    const auto size = static_cast<uint32_t>(c.x[c.dim]);
    std::vector<uint32_t> right = ids(c);
    for (const uint32_t bad : {size, kPadding - 1}) {
      const size_t at = random_() % right.size();
      std::vector<uint32_t> wrong = right;
      right[at] = kPadding, wrong[at] = bad;
      const Tensor result = run(c, x, Tensor::from(wrong, c.ids, device), source);
      try {
        backend(device).synchronize();
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::index);
        EXPECT_EQ(error.what(), fmt::format("{}: id out of range: id {}, x f32{}@{}, ids u32{}@{}: "
                                            "need 0 <= id < {}",
                                            name(c.op), bad, c.x.str(), device.str(), c.ids.str(),
                                            device.str(), size));
      }
      EXPECT_EQ(result.to_vector<float>(), expected(c, x, source, right));
    }
    // Signed ids have no padding.
    std::vector<int64_t> negative(right.size(), 0);
    negative.back() = -1;
    (void)run(c, x, Tensor::from(negative, c.ids, device), source);
    try {
      backend(device).synchronize();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("id -1, x f32"));
    }
    EXPECT_NO_THROW(backend(device).synchronize());
  });
}

/// A captured graph reads ids when it is replayed, and reports those that are out of range then.
TEST_F(GpuScatter, CapturedGraphsFollowTheIds) {
  for_each([&](const Case& c, const Tensor& x, const Tensor& source) {
    Backend& gpu = backend(x.device());
    const auto size = static_cast<uint32_t>(c.x[c.dim]);
    Tensor chosen = Tensor::from(ids(c), c.ids, x.device()), result;
    const auto work = [&] { result = run(c, x, chosen, source); };
    work();  // loads the kernels
    const auto graph = record(x.device(), work);
    for (int turn = 0; turn < 4; ++turn) {
      std::vector<uint32_t> now = ids(c);
      if (turn == 2) now.front() = size + 5;
      gpu.upload(chosen.mutable_view().data, now.data(), now.size() * sizeof(uint32_t));
      graph->replay();
      if (turn == 2) {
        try {
          gpu.synchronize();
          ADD_FAILURE() << "no error";
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr(fmt::format("id {}, x f32", size + 5)));
        }
        now.front() = kPadding;
      }
      EXPECT_EQ(result.to_vector<float>(), expected(c, x, source, now)) << turn;
    }
  });
}

}  // namespace
}  // namespace wick
