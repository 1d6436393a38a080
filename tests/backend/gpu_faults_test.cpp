// Errors that kernels find in their input are reported once, at the next synchronization, and the
// device remains usable. Runs on the GPUs that WICK_TEST_DEVICES names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/expect_error.h"
#include "tests/test_devices.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/recording.h"
#include "wick/tensor/recurrent_ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

class GpuFaults : public testing::TestWithParam<std::string> {
 protected:
  template <class T>
  Tensor tensor(const std::vector<T>& values) const {
    return Tensor::from(values, {static_cast<int64_t>(values.size())}, device_);
  }
  Tensor table() const { return Tensor::arange(0, 50, 1, DType::f32, device_).reshape({50, 1}); }
  /// Returns the message of the next synchronization, and checks that the one after it reports
  /// nothing.
  std::string said(const std::function<void()>& wait) const {
    const std::string text = error_of(wait);
    EXPECT_EQ(error_of([&] { synchronize(device_); }), "no error");
    EXPECT_EQ(add(tensor<float>({1}), tensor<float>({2})).item<float>(), 3) << "it goes on";
    return text;
  }
  std::string said() const {
    return said([&] { synchronize(device_); });
  }
  const Device device_ = Device::parse(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuFaults);

TEST_P(GpuFaults, IdsOutOfRange) {
  const std::string at = std::string("@") + device_.str();
  index_select(table(), tensor<int32_t>({3, 50}), 0);
  EXPECT_EQ(said(), "index_select: id out of range: id 50, x f32[50,1]" + at + ", ids i32[2]" + at +
                        ": need 0 <= id < 50");
  index_select(table(), tensor<int64_t>({-1}), 0);
  EXPECT_THAT(said(), HasSubstr("id out of range: id -1, "));
  index_select(table(), tensor<int64_t>({INT64_MAX}), 0);
  EXPECT_THAT(said(), HasSubstr("id 9223372036854775807, "));
  index_select(table(), tensor<int64_t>({INT64_MIN, 3}), 0);
  EXPECT_THAT(said(), HasSubstr("id -9223372036854775808, "));
  index_select(table(), tensor<uint32_t>({0xfffffffe}), 0);
  EXPECT_THAT(said(), HasSubstr("id 4294967294, "));
  index_select(table(), tensor<uint8_t>({200, 1}), 0);
  EXPECT_THAT(said(), AllOf(HasSubstr("id 200, "), HasSubstr("ids u8[2]")));
  // The other rows of the same call are correct.
  const Tensor y = index_select(table(), tensor<int32_t>({7, 1000, 9}), 0);
  EXPECT_THAT(said(), HasSubstr("id 1000, "));
  const std::vector<float> got = y.to_vector<float>();
  EXPECT_EQ(got[0], 7);
  EXPECT_EQ(got[2], 9);
  // As on the CPU, the largest value of an unsigned type selects a row of zeros.
  EXPECT_EQ(index_select(table(), tensor<uint8_t>({255, 4}), 0).to_vector<float>(),
            (std::vector<float>{0, 4}));
}

TEST_P(GpuFaults, IdsOutOfRangeOfQuantisedRows) {
  std::vector<float> values(8 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17);
  const Tensor rows = quantize(Tensor::from(values, {8, 64}), DType::q8_0).to(device_);
  index_select(rows, tensor<uint32_t>({1, 8}), 0);
  EXPECT_THAT(said(), AllOf(HasSubstr("id 8, x q8_0[8,64]"), HasSubstr("need 0 <= id < 8")));
}

/// Functions that are made of index_select give their own names, also when a graph is replayed.
TEST_P(GpuFaults, IdsOutOfRangeNameTheFunction) {
  const std::string at = std::string("@") + device_.str();
  embedding(tensor<int32_t>({3, 50}), table());
  EXPECT_EQ(said(), "embedding: id out of range: id 50, x f32[50,1]" + at + ", ids i32[2]" + at +
                        ": need 0 <= id < 50");
  const Tensor blocks = quantize(Tensor::ones({8, 64}, DType::f32), DType::q8_0).to(device_);
  embedding(tensor<int64_t>({-1}), blocks);
  EXPECT_THAT(said(), HasSubstr("embedding: id out of range: id -1, x q8_0[8,64]"));
  embedding(tensor<uint32_t>({9}), Tensor::zeros({4, 0}, DType::f32, device_));
  EXPECT_THAT(said(), HasSubstr("embedding: id out of range: id 9, x f32[4,0]"));
  embedding(tensor<uint32_t>({50}), table().requires_grad());
  EXPECT_THAT(said(), HasSubstr("embedding: id out of range: id 50"));

  const Tensor x = table(), ids = tensor<uint32_t>({4});
  embedding(ids, x);
  Tensor y;
  const auto recording = record(device_, [&] { y = embedding(ids, x); });
  overwrite(ids, std::vector<uint32_t>{50});
  recording->replay();
  EXPECT_THAT(said(), HasSubstr("embedding: id out of range: id 50"));

  // With a gradient, the state's rows are selected; without one, the kernel reads them.
  for (const bool with_gradient : {false, true}) {
    Tensor rows = Tensor::ones({2, 3}, DType::f32, device_);
    if (with_gradient) rows = rows.requires_grad();
    causal_conv(rows, Tensor::ones({3, 4}, DType::f32, device_),
                Tensor::zeros({5, 3, 3}, DType::f32, device_), tensor<uint32_t>({5}));
    EXPECT_THAT(said(), HasSubstr("causal_conv: id out of range: id 5")) << with_gradient;
  }
  // The names end with their calls.
  index_select(table(), tensor<int32_t>({51}), 0);
  EXPECT_THAT(said(), HasSubstr("index_select: id out of range: id 51"));
}

TEST_P(GpuFaults, DivisionByZero) {
  div(tensor<int32_t>({1, 2, 3}), tensor<int32_t>({1, 0, 3}));
  EXPECT_EQ(said(), "div: integer division by zero: i32[3]@" + device_.str() + " / i32[3]@" +
                        device_.str());
  div(tensor<int64_t>({1}), tensor<int64_t>({0}));
  EXPECT_THAT(said(), HasSubstr("div: integer division by zero: i64[1]"));
  const Tensor floats = div(tensor<float>({1}), tensor<float>({0}));
  EXPECT_EQ(said(), "no error");
  EXPECT_TRUE(std::isinf(floats.item<float>()));
}

TEST_P(GpuFaults, AnyWaitSaysIt) {
  const Tensor other = tensor<float>({1, 2});
  const auto mistake = [&] { return index_select(table(), tensor<int32_t>({77}), 0); };
  const auto says = HasSubstr("id out of range: id 77");
  Tensor y = mistake();
  EXPECT_THAT(said([&] { y.to_vector<float>(); }), says);
  y = mistake();
  EXPECT_THAT(said([&] { other.to_vector<float>(); }), says);
  y = mistake();
  EXPECT_THAT(said([&] { y.item<float>(); }), says);
  y = mistake();
  EXPECT_THAT(said([&] { (void)other.to(Device::cpu()); }), says);
}

TEST_P(GpuFaults, OnlyTheFirstOfMany) {
  index_select(table(), tensor<int32_t>({60}), 0);
  div(tensor<int32_t>({1}), tensor<int32_t>({0}));
  index_select(table(), tensor<int32_t>({61, 62, 63}), 0);
  EXPECT_THAT(said(), HasSubstr("id out of range: id 60"));
  const std::vector<int32_t> all(10'000, 99);
  index_select(table(), tensor(all), 0);
  EXPECT_THAT(said(), HasSubstr("id out of range: id 99"));
}

TEST_P(GpuFaults, LongAgo) {
  index_select(table(), tensor<int32_t>({60}), 0);
  const Tensor x = table(), ids = tensor<int32_t>({1});
  for (int i = 0; i < 1000; ++i) index_select(x, ids, 0);
  EXPECT_THAT(said(), HasSubstr("index_select: id out of range: id 60"));
  index_select(table(), tensor<int32_t>({61}), 0);
  for (int i = 0; i < 1100; ++i) index_select(x, ids, 0);
  EXPECT_EQ(said(),
            device_.str() +
                ": an op was given what it can't take: value 61: 1024 others followed: wait "
                "more often to see which");
}

TEST_P(GpuFaults, EachReplayOfARecording) {
  const Tensor x = table(), ids = tensor<uint32_t>({4});
  index_select(x, ids, 0);
  Tensor y;
  const auto recording = record(device_, [&] { y = index_select(x, ids, 0); });
  recording->replay();
  EXPECT_EQ(y.item<float>(), 4);
  for (int i = 0; i < 2; ++i) {
    overwrite(ids, std::vector<uint32_t>{50});
    recording->replay();
    EXPECT_THAT(said(), HasSubstr("id out of range: id 50"));
    overwrite(ids, std::vector<uint32_t>{5});
    recording->replay();
    EXPECT_EQ(y.item<float>(), 5);
  }
}

INSTANTIATE_TEST_SUITE_P(, GpuFaults, testing::ValuesIn(test::gpu_names()), [](const auto& which) {
  std::string name = which.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

}  // namespace
}  // namespace wick
