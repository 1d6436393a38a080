// Every row of ops.def, and the gradients of every row that has one, captured into a graph on the
// GPUs that WICK_TEST_DEVICES names. A capture fails if the op reads a value on the host, waits, or
// allocates memory outside of the pool. The graph is replayed with other values of the operands,
// and its results must have the bits of eager calls on the device and, unless a call is of class
// bound, those of the CPU. The operands are those of the soak cases, of which no row lacks one.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/expect_error.h"
#include "tests/soak/replayed_case.h"
#include "tests/test_devices.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/trace/counts.h"
#include "wick/base/error.h"
#include "wick/graph/compile.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/random.h"

namespace wick::soak {
namespace {

using testing::StartsWith;

constexpr int kCases = 6;            // for each row
constexpr uint64_t kMostSeeds = 80;  // cases may have no result, or no gradient

/// The rows of ops.def and the functions beside them, except for invalid calls.
const std::vector<Row>& rows() {
  static const std::vector<Row> list = [] {
    std::vector<Row> all = all_rows();
    std::erase_if(all, [](const Row& row) { return row.name == "wrong_calls"; });
    return all;
  }();
  return list;
}

const OpInfo* info_of(const Row& row) {
  for (const OpInfo& info : kOps) {
    if (info.name == row.name) return &info;
  }
  return nullptr;
}

bool has_gradient(const Row& row) {
  const OpInfo* const info = info_of(row);
  return info != nullptr &&
         (info->gradient == Gradient::rule || info->gradient == Gradient::composed);
}

bool is_random(const Row& row) { return row.name == "uniform" || row.name == "normal"; }

/// Runs one case in all ways. Returns false if it has no result, or no gradient.
bool check(const Row& row, Device device, uint64_t seed, bool gradients) {
  ReplayedCase there(row, device, seed, gradients), here(row, Device::cpu(), seed, gradients);
  const auto where = [&] { return fmt::format("seed {}: {}", seed, there.what()); };
  try {
    there.run_eagerly(ValueSet::first);
    if (there.elems() == 0 || (gradients && there.gradients() == 0)) return false;
    there.run_eagerly(ValueSet::second);
    if (is_random(row) || there.has_equal_bits()) {
      for (const ValueSet values : {ValueSet::first, ValueSet::second}) {
        here.run_eagerly(values);
        EXPECT_EQ(there.results(values).size(), here.results(values).size()) << where();
        for (size_t i = 0; i < here.results(values).size(); ++i) {
          EXPECT_EQ(difference(there.results(values)[i], here.results(values)[i]), "")
              << where() << ", result " << i << ": the CPU gives other bits";
        }
      }
    }
    EXPECT_EQ(there.check_captured(), "") << where();
    // A graph of wick::compile has no gradients and no random numbers.
    if (!gradients && !is_random(row)) {
      EXPECT_EQ(there.check_compiled(), "") << where();
    }
  } catch (const std::exception& error) {
    ADD_FAILURE() << where() << ": " << error.what();
  }
  return true;
}

class CapturedRows : public testing::TestWithParam<std::string> {
 protected:
  static Device device() { return Device::parse(GetParam()); }

  static void check_all(bool gradients, const std::function<bool(const Row&)>& wanted) {
    for (const Row& row : rows()) {
      if (!wanted(row)) continue;
      SCOPED_TRACE(row.name);
      int checked = 0;
      for (uint64_t seed = 1; seed <= kMostSeeds && checked < kCases; ++seed) {
        checked += check(row, device(), seed, gradients) ? 1 : 0;
      }
      EXPECT_EQ(checked, kCases) << "too few cases have a result";
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CapturedRows);

TEST_P(CapturedRows, Results) {
  check_all(false, [](const Row&) { return true; });
}

TEST_P(CapturedRows, Gradients) {
  int rows = 0;
  check_all(true, [&](const Row& row) {
    rows += has_gradient(row) ? 1 : 0;
    return has_gradient(row);
  });
  EXPECT_GT(rows, 50);
}

/// Functions whose results depend on values that the host reads. They have no row.
struct HostFunction {
  const char* name;
  std::function<void(const Tensor& x, const Tensor& whole)> call;
};
const std::vector<HostFunction>& host_functions() {
  static const std::vector<HostFunction> list = {
      {"nonzero", [](const Tensor& x, const Tensor&) { nonzero(x); }},
      {"masked_select", [](const Tensor& x, const Tensor&) { masked_select(x, gt(x, x)); }},
      {"unique", [](const Tensor& x, const Tensor&) { unique(x); }},
      {"unique_all", [](const Tensor& x, const Tensor&) { unique_all(x); }},
      {"repeat_interleave",
       [](const Tensor& x, const Tensor& whole) { repeat_interleave(x, whole, 0); }},
      {"equal", [](const Tensor& x, const Tensor&) { equal(x, x); }},
      {"allclose", [](const Tensor& x, const Tensor&) { allclose(x, x); }},
      {"item", [](const Tensor& x, const Tensor&) { x.narrow(0, 0, 1).item<float>(); }},
      {"to_vector", [](const Tensor& x, const Tensor&) { x.to_vector<float>(); }},
  };
  return list;
}

TEST_P(CapturedRows, ReadsOfValuesAreErrors) {
  const Tensor x = Tensor::arange(int64_t{0}, 5, int64_t{1}, DType::f32, device());
  const Tensor whole = Tensor::ones({5}, DType::i64, device());
  for (const HostFunction& function : host_functions()) {
    SCOPED_TRACE(function.name);
    function.call(x, whole);  // permitted outside of graphs
    const Compiled compiled = compile([&](std::span<const Tensor> in) {
      function.call(in[0], in[1]);
      return std::vector<Tensor>{in[0]};
    });
    EXPECT_THAT(
        test::error_of([&] {
          compiled({x, whole});
        }),
        StartsWith(std::string(function.name) + ": values are read while a function is traced: "));
    EXPECT_THAT(test::error_of([&] { backend(device()).record([&] { function.call(x, whole); }); }),
                StartsWith("record: a copy to or from the host can't be recorded: "));
    EXPECT_EQ(sum(x).item<float>(), 10) << "the device works afterwards";
  }
  const Compiled random = compile([&](std::span<const Tensor> in) {
    return std::vector<Tensor>{add(in[0], uniform({5}, 0, 1, DType::f32, device()))};
  });
  EXPECT_THAT(test::error_of([&] { random({x}); }),
              StartsWith("uniform: random numbers in a traced function: "));
}

// The checks of a capture notice what they look for.
TEST_P(CapturedRows, ForbiddenWorkIsFound) {
  const Tensor x = Tensor::ones({1000}, DType::f32, device());
  EXPECT_EQ(forbidden_work(device(), [&] { exp(x); }), "");
  EXPECT_EQ(forbidden_work(device(), [&] { exp(Tensor::zeros({1 << 20}, DType::f32, device())); }),
            "");
  EXPECT_EQ(forbidden_work(device(), [&] { x.to_vector<float>(); }).substr(0, 24),
            "it copies 4000 bytes to ");
  EXPECT_EQ(forbidden_work(device(),
                           [&] {
                             Tensor::from<float>({1, 2}, {2}, device());
                           })
                .substr(0, 23),
            "it copies 8 bytes from ");
  EXPECT_EQ(forbidden_work(device(), [&] { synchronize(device()); }), "it waits 1 times");
  gpu::Gpu& gpu = gpu::backend_of(device()).gpu();
  void* data = nullptr;
  EXPECT_EQ(forbidden_work(device(),
                           [&] {
                             gpu.enter();
                             gpu.check(gpu.driver.api.mem_alloc(&data, 4096), "allocating memory");
                           }),
            "the driver allocates 4096 bytes, of which 0 are in the pool");
  gpu.driver.api.mem_free(data);
}

// A graph that holds a value instead of reading its operand is found.
TEST_P(CapturedRows, StaleValuesAreFound) {
  const Row constant{"constant", [kept = std::optional<Tensor>()](Case& c) mutable {
                       const Operand x = c.operand(DType::f32, {40});
                       // The first eager run makes the tensor that later runs reuse.
                       if (c.stage->computes() || !kept) kept = x.x.clone();
                       c.result(add(x.x, *kept));
                     }};
  ReplayedCase it(constant, device(), 1, false);
  it.run_eagerly(ValueSet::first);
  it.run_eagerly(ValueSet::second);
  EXPECT_NE(it.check_captured().find("result 0 for the first values: element"), std::string::npos);
  EXPECT_NE(it.check_compiled().find("result 0 for the first values: element"), std::string::npos);
}

std::vector<std::string> counted_gpus() {
  gpu::count_work();  // before the first use of a device
  return test::gpu_names();
}

INSTANTIATE_TEST_SUITE_P(, CapturedRows, testing::ValuesIn(counted_gpus()), [](const auto& which) {
  std::string name = which.param;
  std::erase(name, ':');
  return name;
});

}  // namespace
}  // namespace wick::soak
