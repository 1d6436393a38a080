// Custom ops: bodies, rules, gradients, compiled functions, in-place ops, threads and errors. Runs
// on the CPU, or on the devices that WICK_TEST_DEVICES names.

#include "wick/tensor/custom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "examples/custom_ops/quantised_bias.h"
#include "examples/custom_ops/rotary.h"
#include "examples/custom_ops/softmax.h"
#include "examples/custom_ops/swiglu.h"
#include "tests/expect_error.h"
#include "tests/graph/graph_tests.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/recording.h"

namespace wick {
namespace {

using examples::QuantisedBias;
using examples::Rotary;
using examples::Softmax;
using examples::Swiglu;
using test::error_of;
using test::expect_same;
using test::numbers;
using testing::AllOf;
using testing::HasSubstr;

/// An op whose members are lambdas, for tests of single parts.
struct Op1 : CustomOp1 {
  explicit Op1(std::string name = "op1") : CustomOp1(std::move(name)) {}
  ResultSpec shape(const Tensor& x) const override { return rule ? rule(x) : like(x); }
  void cpu(const CustomOutput& y, const CustomInput& x) const override {
    if (!body) return CustomOp1::cpu(y, x);
    body(y, x);
  }
  bool takes_strides() const override { return strides; }
  std::function<ResultSpec(const Tensor&)> rule;
  std::function<void(const CustomOutput&, const CustomInput&)> body;
  bool strides = false;
};

Op1 op_with(std::function<void(const CustomOutput&, const CustomInput&)> body) {
  Op1 op;
  op.body = std::move(body);
  return op;
}

/// Adds 1 to each element.
struct Increment : InplaceOp1 {
  Increment() : InplaceOp1("increment") {}
  void check(const Tensor& x) const override {
    if (x.dtype() != DType::f32) throw Error(ErrorKind::type, name(), "need f32", x.str());
  }
  void cpu(const CustomOutput& x) const override {
    for (int64_t i = 0; i < x.elems(); ++i) x.data<float>()[i * x.stride(0)] += 1;
  }
  void gpu(GpuContext& gpu, const CustomOutput& x) const override {
    gpu.launch({.body = R"(
      if (global_index() < x_elems) x[offset_of(global_index(), x_shape, x_strides)] += 1;
    )"},
               KernelGrid::over(x.elems()), {{"x", x}});
  }
};

/// Adds a to x in place.
struct AddInto : InplaceOp2 {
  AddInto() : InplaceOp2("add_into") {}
  void check(const Tensor&, const Tensor&) const override {}
  void cpu(const CustomOutput& x, const CustomInput& a) const override {
    for (size_t i = 0; i < x.values<float>().size(); ++i) {
      x.values<float>()[i] += a.values<float>()[i];
    }
  }
  void gpu(GpuContext& gpu, const CustomOutput& x, const CustomInput& a) const override {
    gpu.launch({.body = "if (global_index() < x_elems) x[global_index()] += a[global_index()];"},
               KernelGrid::over(x.elems()), {{"x", x}, {"a", a}});
  }
};

class Custom : public test::OnDevices {
 protected:
  static constexpr DType f32 = DType::f32;
  static Tensor on_cpu(const Tensor& x) { return x.to(Device::cpu()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Custom, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

/// The CPU's bodies have the bits of wick's own ops where they compute in the same order.
TEST_P(Custom, ExamplesGiveTheValuesOfWicksOps) {
  const Tensor x = this->x({3, 5, 70}), up = this->x({3, 5, 70}, 2);
  const Tensor soft = apply_op1(x, Softmax());
  EXPECT_TRUE(allclose(on_cpu(soft), softmax(on_cpu(x)), 1e-5, 1e-7));
  expect_same({on_cpu(soft)}, {apply_op1(on_cpu(x), Softmax())}, "softmax");
  const Tensor gated = apply_op2(x, up, Swiglu());
  expect_same({gated}, {silu(x) * up}, "swiglu");

  std::vector<uint8_t> codes(70);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37);
  const Tensor c = Tensor::from(codes, {70}, GetParam()), s = this->x({3}, 3);
  const Tensor biased = apply_op3(x, c, s, QuantisedBias());
  const Tensor bias =
      affine(c.to(f32), 1, -128) * repeat(s.unsqueeze(1), {1, 32}).reshape({96}).narrow(0, 0, 70);
  expect_same({biased}, {x + bias}, "quantised bias");

  const Tensor cos = this->x({5, 35}, 4), sin = this->x({5, 35}, 5);
  const Tensor turned = x.clone();
  inplace_op3(turned, cos, sin, Rotary());
  EXPECT_TRUE(allclose(on_cpu(turned), on_cpu(rope_interleaved(x, cos, sin)), 1e-5, 1e-6));
}

TEST_P(Custom, OperandsOfAnyLayout) {
  const Tensor base = x({7, 6, 9}), up = x({7, 6, 9}, 2);
  for (const Tensor& v : {base.transpose(0, 2), base.slice(1, -1, INT64_MIN, -2),
                          base.narrow(2, 1, 3), base.narrow(0, 0, 1).broadcast_to({4, 6, 9})}) {
    expect_same({apply_op1(v, Softmax())}, {apply_op1(v.clone(), Softmax())}, v.str());
  }
  expect_same({apply_op2(base.t(), up.t(), Swiglu())}, {silu(base.t()) * up.t()}, "transposed");
  EXPECT_EQ(apply_op1(x({0, 4}), Softmax()).shape(), Shape({0, 4})) << "no body is called";
}

/// A target that isn't dense, under a copy of the other operands.
TEST_P(Custom, InPlaceOnStridedTargets) {
  const Tensor cos = x({6, 4}, 4), sin = x({6, 4}, 5), all = x({6, 3, 8});
  Tensor heads = all.clone().permute({1, 0, 2});
  const Tensor expected = rope_interleaved(heads.contiguous(), cos, sin);
  inplace_op3(heads, cos.t().contiguous().t(), sin, Rotary());
  EXPECT_TRUE(allclose(on_cpu(heads), on_cpu(expected), 1e-5, 1e-6));

  Tensor reversed = Tensor::arange(0, 5, 1, f32, GetParam());
  reversed = reversed.slice(0, -1, INT64_MIN, -1);
  inplace_op1(reversed, Increment());
  EXPECT_EQ(reversed.to_vector<float>(), (std::vector<float>{5, 4, 3, 2, 1}));
}

TEST_P(Custom, Gradients) {
  const Tensor x = this->x({4, 6}).requires_grad(), seed = this->x({4, 6}, 9);
  const Tensor both[] = {x};
  const Tensor own = gradients(softmax(x), both, seed)[0];
  const Tensor given = gradients(apply_op1(x, Softmax()), both, seed)[0];
  EXPECT_TRUE(allclose(on_cpu(given), on_cpu(own), 1e-4, 1e-6));
  EXPECT_FALSE(apply_op1_no_grad(x, Softmax()).needs_grad());
  EXPECT_FALSE(apply_op1(x.detach(), Softmax()).needs_grad());

  const Tensor up = this->x({4, 6}, 2).requires_grad();
  const Tensor pair[] = {x, up};
  const auto expected = gradients(silu(x) * up, pair, seed);
  const auto found = gradients(apply_op2(x, up, Swiglu()), pair, seed);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(allclose(on_cpu(found[i]), on_cpu(expected[i]), 1e-4, 1e-5)) << i;
  }
  // An operand without a gradient stays without one.
  const Tensor codes = Tensor::full({6}, 130, DType::u8, GetParam());
  const Tensor scales = this->x({1}, 3).requires_grad();
  const Tensor three[] = {x, scales};
  const auto biased = gradients(apply_op3(x, codes, scales, QuantisedBias()), three, seed);
  EXPECT_EQ(biased[0].to_vector<float>(), seed.to_vector<float>());
  EXPECT_FALSE(biased[1].defined());
}

TEST_P(Custom, GradientsOfGradients) {
  const Tensor x = this->x({3, 5}).requires_grad(), seed = this->x({3, 5}, 9);
  const Tensor at[] = {x};
  const auto second = [&](const Tensor& y) {
    const Tensor first = gradients(y, at, seed, true)[0];
    return gradients(sum(sqr(first)), at)[0];
  };
  EXPECT_TRUE(
      allclose(on_cpu(second(apply_op1(x, Softmax()))), on_cpu(second(softmax(x))), 1e-3, 1e-5));
}

TEST_P(Custom, CompiledFunctionsHaveTheSameBits) {
  const auto op = std::make_shared<const Softmax>();
  const Compiled f = compile([&](std::span<const Tensor> a) -> std::vector<Tensor> {
    const Tensor y = apply_op2(a[0] * a[1], a[1].t().contiguous().t(), Swiglu());
    (void)apply_op1(y, op);  // a result that isn't read is dropped
    return {apply_op1(y, op), y + a[0]};
  });
  for (int round = 0; round < 4; ++round) {
    const auto seed = static_cast<uint64_t>(round);
    const Tensor a = x({4, 10}, seed + 1), b = x({4, 10}, seed + 20);
    const Tensor y = apply_op2(a * b, b, Swiglu());
    expect_same(f({a, b}), {apply_op1(y, op), y + a}, "round " + std::to_string(round));
  }
  EXPECT_EQ(f.executables(), 1u);
}

TEST_P(Custom, InPlaceInCompiledFunctions) {
  // Writes to a temporary, whose later readers see the written values, and to an argument.
  const Compiled f = compile([&](std::span<const Tensor> a) -> std::vector<Tensor> {
    const Tensor t = a[0] * a[0];
    const Tensor before = t + t;
    inplace_op1(t, Increment());
    return {before, t + t};
  });
  const Compiled g = compile([&](std::span<const Tensor> a) -> std::vector<Tensor> {
    inplace_op2(a[0], a[1], AddInto());
    return {a[0] * 2.0f};
  });
  const Tensor target = Tensor::zeros({6}, f32, GetParam());
  for (int round = 0; round < 4; ++round) {
    const Tensor a = x({6}, static_cast<uint64_t>(round + 1)), s = a * a;
    expect_same(f({a}), {s + s, (s + 1) + (s + 1)}, "temporary");
    const Tensor ones = Tensor::ones({6}, f32, GetParam());
    EXPECT_EQ(g({target, ones})[0].to_vector<float>()[5], 2.0f * static_cast<float>(round + 1));
    EXPECT_EQ(target.to_vector<float>()[0], static_cast<float>(round + 1));
  }
}

TEST_P(Custom, GradientsInCompiledFunctions) {
  const Compiled f = compile([](std::span<const Tensor> a) -> std::vector<Tensor> {
    return {apply_op1(a[0], Softmax())};
  });
  const Tensor x = this->x({2, 5}), leaf = x.requires_grad();
  f({x});
  const Tensor y = f({leaf})[0];
  ASSERT_TRUE(y.needs_grad());
  backward(y, Tensor::ones({2, 5}, f32, GetParam()));
  EXPECT_TRUE(leaf.grad().defined());
}

TEST_P(Custom, InPlaceOpsRefuseSharedStorage) {
  const Tensor x = this->x({6});
  const Tensor view = x.narrow(0, 0, 3);
  EXPECT_THAT(error_of([&] { inplace_op1(x, Increment()); }),
              AllOf(HasSubstr("increment: target's storage is shared"), HasSubstr("clone it")));
  const Tensor leaf = this->x({6}).requires_grad();
  EXPECT_THAT(error_of([&] { inplace_op1(leaf, Increment()); }),
              HasSubstr("increment: target needs a gradient"));
  const Tensor alone = this->x({6});
  EXPECT_THAT(error_of([&] { inplace_op2(alone, leaf, AddInto()); }),
              HasSubstr("add_into: not differentiable"));
  EXPECT_THAT(error_of([&] { inplace_op2(alone, alone, AddInto()); }),
              HasSubstr("add_into: an operand shares the target's storage"));
  const Tensor spread = this->x({1}).broadcast_to({6});
  EXPECT_THAT(error_of([&] { inplace_op1(spread, Increment()); }),
              HasSubstr("increment: target's elements overlap"));
  {
    const NoGrad off;
    inplace_op1(leaf, Increment());  // a leaf may be written to
  }
  const Tensor whole = Tensor::zeros({6}, DType::i32, GetParam());
  EXPECT_THAT(error_of([&] { inplace_op1(whole, Increment()); }), HasSubstr("increment: need f32"));
}

TEST_P(Custom, BackwardSeesWritesToOperands) {
  const Tensor leaf = this->x({6}).requires_grad();
  const Tensor y = apply_op1(leaf, Softmax());
  {
    const NoGrad off;
    inplace_op1(leaf, Increment());
  }
  EXPECT_THAT(error_of([&] { backward(y, Tensor::ones({6}, f32, GetParam())); }),
              HasSubstr("written to since the call: my_softmax"));
}

TEST_P(Custom, Threads) {
  const Tensor x = this->x({16, 33});
  const std::vector<float> expected = apply_op1(x, Softmax()).to_vector<float>();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        if (apply_op1(x, Softmax()).to_vector<float>() != expected) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// ---- The CPU alone ----

TEST(CustomOps, OperandsAreDenseUnlessTheOpTakesStrides) {
  const Tensor x = Tensor::arange(0, 6).reshape({2, 3}).t();
  bool dense = false;
  Op1 op = op_with([&](const CustomOutput& y, const CustomInput& in) {
    dense = in.layout().is_contiguous();
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        y.values<float>()[static_cast<size_t>(i * 2 + j)] =
            in.data<float>()[i * in.stride(0) + j * in.stride(-1)];
      }
    }
  });
  EXPECT_EQ(apply_op1(x, op).to_vector<float>(), x.to_vector<float>());
  EXPECT_TRUE(dense);
  op.strides = true;
  EXPECT_EQ(apply_op1(x, op).to_vector<float>(), x.to_vector<float>());
  EXPECT_FALSE(dense);
  op.body = [](const CustomOutput&, const CustomInput& in) { (void)in.values<float>(); };
  EXPECT_THAT(error_of([&] { apply_op1(x, op); }),
              HasSubstr("op1: a body takes elements as dense that aren't: f32[3,2]"));
}

TEST(CustomOps, TypesOfElements) {
  const auto read = [](DType dtype, auto as) {
    using T = decltype(as);
    return error_of([&] {
      apply_op1(Tensor::zeros({2}, dtype),
                op_with([](const CustomOutput&, const CustomInput& x) { (void)x.data<T>(); }));
    });
  };
  EXPECT_EQ(read(DType::f32, float{}), "no error");
  EXPECT_EQ(read(DType::f64, double{}), "no error");
  EXPECT_EQ(read(DType::f16, uint16_t{}), "no error");
  EXPECT_EQ(read(DType::bf16, uint16_t{}), "no error");
  EXPECT_EQ(read(DType::f8e4m3, uint8_t{}), "no error");
  EXPECT_EQ(read(DType::boolean, uint8_t{}), "no error");
  EXPECT_EQ(read(DType::i64, int64_t{}), "no error");
  const std::string wrong = read(DType::f64, float{});
  EXPECT_THAT(wrong, HasSubstr("op1: a body accesses elements as another type: f64[2]"));
  EXPECT_THAT(read(DType::f32, int32_t{}), HasSubstr("another type"));
  EXPECT_THAT(read(DType::f32, uint16_t{}), HasSubstr("another type"));
}

TEST(CustomOps, TheRuleGivesShapeAndDtype) {
  Op1 op = op_with(
      [](const CustomOutput& y, const CustomInput& x) { y.data<int64_t>()[0] = x.elems(); });
  op.rule = [](const Tensor&) { return dense(DType::i64, {}); };
  EXPECT_EQ(apply_op1(Tensor::zeros({3, 4}, DType::f16), op).item<int64_t>(), 12);
  // A rule that returns a layout with strides gets a dense result of its shape.
  op.rule = [](const Tensor& x) { return ResultSpec{DType::i64, x.layout()}; };
  EXPECT_TRUE(apply_op1(Tensor::zeros({3, 4}, DType::i64).t(), op).layout().is_contiguous());
  op.rule = [](const Tensor&) { return dense(DType::q8_0, {32}); };
  EXPECT_THAT(error_of([&] { apply_op1(Tensor::zeros({3}, DType::f32), op); }),
              HasSubstr("op1: a result with a block dtype: q8_0"));
  op.rule = [](const Tensor& x) -> ResultSpec { throw Error("op1", "not this", x.str()); };
  EXPECT_EQ(error_of([&] { apply_op1(Tensor::zeros({3}, DType::f32), op); }),
            "op1: not this: f32[3]@cpu");
}

TEST(CustomOps, RulesCantReadValuesWhileTheyAreTraced) {
  Op1 op = op_with([](const CustomOutput&, const CustomInput&) {});
  op.rule = [](const Tensor& x) { return dense(DType::f32, {x.narrow(0, 0, 1).item<int64_t>()}); };
  const Compiled f = compile(
      [&](std::span<const Tensor> a) -> std::vector<Tensor> { return {apply_op1(a[0], op)}; });
  const Tensor x = Tensor::from<int64_t>({3}, {1});
  EXPECT_EQ(apply_op1(x, op).shape(), Shape({3}));
  EXPECT_THAT(error_of([&] { f({x}); }), HasSubstr("item"));
}

TEST(CustomOps, MissingBodiesAreNamed) {
  EXPECT_EQ(error_of([] { apply_op1(Tensor::zeros({2}, DType::f32), Op1("half_done")); }),
            "half_done: no body for the CPU: f32[2]@cpu: implement cpu");
  struct Nothing : InplaceOp1 {
    Nothing() : InplaceOp1("nothing") {}
    void check(const Tensor&) const override {}
  };
  const Tensor x = Tensor::zeros({2}, DType::f32);
  EXPECT_THAT(error_of([&] { inplace_op1(x, Nothing()); }),
              HasSubstr("nothing: no body for the CPU"));
}

TEST(CustomOps, MissingGradientsAreErrorsOfBackward) {
  const Tensor leaf = Tensor::ones({2}, DType::f32).requires_grad();
  const Op1 op = op_with([](const CustomOutput& y, const CustomInput& x) {
    std::copy_n(x.data<float>(), 2, y.data<float>());
  });
  const Tensor y = sum(apply_op1(leaf, op));
  EXPECT_THAT(error_of([&] { backward(y); }),
              AllOf(HasSubstr("op1: not differentiable"), HasSubstr("implement backward")));
}

TEST(CustomOps, WrongGradientsAreErrors) {
  struct Wrong : Op1 {
    Tensor backward(const Tensor&, const Tensor&, const Tensor&) const override { return given; }
    Tensor given;
  };
  const Tensor leaf = Tensor::ones({2}, DType::f32).requires_grad();
  Wrong op;
  op.body = [](const CustomOutput& y, const CustomInput&) { y.data<float>()[0] = 1; };
  const auto error = [&](const Tensor& given) {
    op.given = given;
    return error_of([&] { backward(sum(apply_op1(leaf, op))); });
  };
  EXPECT_THAT(error(Tensor::ones({3}, DType::f32)),
              HasSubstr("op1: a gradient doesn't fit its operand: operand 0 f32[2]@cpu, gradient"));
  EXPECT_THAT(error(Tensor::ones({2}, DType::f64)), HasSubstr("a gradient doesn't fit"));
  EXPECT_EQ(error({}), "no error");
  struct TooMany : CustomOp2 {
    TooMany() : CustomOp2("too_many") {}
    ResultSpec shape(const Tensor& a, const Tensor&) const override { return like(a); }
    void cpu(const CustomOutput&, const CustomInput&, const CustomInput&) const override {}
    std::vector<Tensor> backward(const Tensor&, const Tensor&, const Tensor&,
                                 const Tensor& grad) const override {
      return {grad};
    }
  };
  EXPECT_THAT(error_of([&] { backward(sum(apply_op2(leaf, leaf, TooMany()))); }),
              HasSubstr("too_many: a wrong number of gradients: 1: need 2"));
}

TEST(CustomOps, BodiesThatThrowLeaveNothingBehind) {
  const Tensor x = Tensor::ones({1 << 20}, DType::f32);
  apply_op1(x, op_with([](const CustomOutput&, const CustomInput&) {}));
  const size_t before = memory_stats(Device::cpu()).in_use_bytes;
  for (int i = 0; i < 10; ++i) {
    EXPECT_THROW(apply_op1(x, op_with([](const CustomOutput&, const CustomInput&) {
                             throw std::runtime_error("of the user");
                           })),
                 std::runtime_error);
  }
  EXPECT_EQ(memory_stats(Device::cpu()).in_use_bytes, before);
}

TEST(CustomOps, BadCallsAreErrors) {
  for (const std::string& name : {std::string(), std::string("two words"), std::string("a:b"),
                                  std::string("line\n"), std::string(65, 'x')}) {
    EXPECT_THAT(error_of([&] { Op1 op(name); }), HasSubstr("custom op: not a name for an op"));
  }
  const Op1 op = op_with([](const CustomOutput&, const CustomInput&) {});
  EXPECT_THAT(error_of([&] { apply_op1(Tensor(), op); }), HasSubstr("op1: undefined tensor"));
  const std::shared_ptr<const CustomOp> none;
  const Tensor x = Tensor::zeros({1}, DType::f32);
  EXPECT_THAT(error_of([&] { apply_op(none, {&x}); }), HasSubstr("custom op: no op"));
  const auto shared = std::make_shared<const Op1>(op);
  EXPECT_THAT(error_of([&] { apply_op(shared, {}); }), HasSubstr("op1: no operands"));
}

/// The op outlives the caller's reference in a record and in a compiled function.
TEST(CustomOps, CallsKeepTheirOps) {
  auto op = std::make_shared<const Softmax>();
  const std::weak_ptr<const Softmax> watch = op;
  const Tensor leaf = Tensor::ones({2, 2}, DType::f32).requires_grad();
  {
    const Tensor y = apply_op1(leaf, op);
    op.reset();
    EXPECT_FALSE(watch.expired());
    backward(y, Tensor::ones({2, 2}, DType::f32));
  }
  EXPECT_TRUE(watch.expired());
}

/// Any number of operands, in the generic form.
TEST(CustomOps, ManyOperands) {
  struct Sum : CustomOp {
    Sum() : CustomOp("sum_of_many") {}
    ResultSpec infer(const Operands& o) const override { return like(o[0]); }
    void run_cpu(const CustomArguments& a) const override {
      a.out.data<float>()[0] = 0;
      for (const CustomInput& x : a.in) a.out.data<float>()[0] += x.data<float>()[0];
    }
    std::vector<Tensor> vjp(std::span<const Tensor> o, const Tensor&,
                            const Tensor& grad) const override {
      return std::vector<Tensor>(o.size(), grad);
    }
  };
  std::vector<Tensor> all;
  for (int i = 0; i < 20; ++i) all.push_back(Tensor::full({1}, i, DType::f32));
  all.back() = all.back().requires_grad();
  std::vector<const Tensor*> pointers;
  for (const Tensor& x : all) pointers.push_back(&x);
  const auto op = std::make_shared<const Sum>();
  const Tensor y = apply_op(op, Operands(pointers));
  EXPECT_EQ(y.detach().item<float>(), 190);
  backward(y);
  EXPECT_EQ(all.back().grad().item<float>(), 1);
}

}  // namespace
}  // namespace wick
