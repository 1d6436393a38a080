// Compiled functions give the bits of the uncompiled functions, at the first and at later calls,
// and reject what a graph can't hold.

#include <atomic>
#include <functional>
#include <thread>

#include "tests/graph/graph_tests.h"
#include "wick/base/error.h"
#include "wick/graph/executable.h"
#include "wick/graph/fuse.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/recording.h"

namespace wick {
namespace {

using test::expect_same;
using test::OnDevices;
using Tensors = std::vector<Tensor>;
using Arguments = std::span<const Tensor>;

class Compile : public OnDevices {};
INSTANTIATE_TEST_SUITE_P(Devices, Compile, testing::ValuesIn(test::graph_devices()),
                         test::device_test_name);

struct Case {
  const char* name;
  graph::Function function;
};

/// Returns functions of x [4, 6, 32] and y [4, 6, 32] that together call every kind of op.
std::vector<Case> cases(Device device) {
  const Tensor matrix = test::numbers({48, 32}, 7, device);
  const auto weight = std::make_shared<Weight>(matrix);
  const auto blocks = std::make_shared<Weight>(quantize(matrix, DType::q4_0));
  const Tensor scale = test::numbers({32}, 8, device), shift = test::numbers({32}, 9, device);
  const Tensor ids = Tensor::from<uint32_t>({3, 0, 2, 2}, {4}, device);
  std::vector<uint32_t> all(4 * 6 * 32);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i * 7 % 29);
  const Tensor places = Tensor::from(all, {4, 6, 32}, device);
  const Tensor angles = test::numbers({6, 16}, 3, device);
  const auto positive = [](const Tensor& x) { return affine(sqr(x), 1, 0.5); };
  return {
      {"elementwise",
       [=](Arguments a) -> Tensors {
         return {exp(clamp(a[0], -2, 2)) * a[1] - affine(a[0], 2, 1), gelu(a[1])};
       }},
      {"compare",
       [](Arguments a) -> Tensors {
         const Tensor less = a[0] < a[1];
         return {where(less, a[0], a[1]), less, logical_not(less).to(DType::i64),
                 masked_fill(a[0], less, 3)};
       }},
      {"views",
       [](Arguments a) -> Tensors {
         const Tensor part = a[0].transpose(0, 2).narrow(0, 3, 8);
         return {part, flip(part, 1) + part, part.reshape({8, 24}), a[1].slice(2, 1, 30, 3)};
       }},
      {"copies",
       [](Arguments a) -> Tensors {
         const Tensor both[] = {a[0], a[1].slice(1, -1, INT64_MIN, -1)};
         return {cat(both, 1),
                 stack(both, 0),
                 pad(a[0], {{1, 2}, {0, 3}}, PadMode::reflect),
                 roll(a[1], 3, 2),
                 repeat(a[0], {2, 1, 2}),
                 tril(a[0]),
                 a[0].to(DType::f16)};
       }},
      {"made",
       [=](Arguments a) -> Tensors {
         return {a[0] + Tensor::full({}, 2, DType::f32, device),
                 Tensor::arange(0, 5, 2, DType::i64, device), eye(4, DType::f32, device),
                 a[1] * Tensor::from<float>({1, 2, 3, 4}, {4, 1, 1}, device)};
       }},
      {"reduce",
       [=](Arguments a) -> Tensors {
         const int dims[] = {0, 2}, last[] = {2}, first[] = {0};
         return {sum(a[0], dims), max(a[1], 1, true),     mean(a[0]),
                 argmax(a[1], 2), var(a[0], last),        logsumexp(a[1], first),
                 prod(a[0], 1),   any(a[0] > a[1], last), sum(a[0] > a[1], 1)};
       }},
      {"softmax and norms",
       [=](Arguments a) -> Tensors {
         const int dims[] = {0, 2};
         return {softmax(a[0], 2),
                 log_softmax(a[1], 1),
                 rms_norm(a[0], scale, 1e-5f),
                 layer_norm(a[1], scale, shift),
                 group_norm(a[0], 3, {}, {}),
                 batch_norm(a[0], mean(a[0], dims), positive(mean(a[1], dims)))};
       }},
      {"index",
       [=](Arguments a) -> Tensors {
         const Sorted order = sort(a[0], 2), top = topk(a[1], 3, 1);
         return {index_select(a[0], ids, 0),
                 order.values,
                 order.indices,
                 top.values,
                 gather(a[1], order.indices, 2),
                 argsort(a[1], 0),
                 cumsum(a[0], 1),
                 cumprod(a[0], 1),
                 index_add(a[0], ids, a[1], 0),
                 scatter_add(a[0], order.indices, a[1], 2),
                 one_hot(ids, 5)};
       }},
      {"gather and scatter",
       [=](Arguments a) -> Tensors {
         const Tensor columns = places.reshape({32, 24}), rows = places.reshape({24, 32});
         return {gather(a[0], places, 2),
                 scatter(a[0], places, a[1], 2),
                 scatter_add(a[0], places, a[1], 2),
                 scatter_add(a[0].reshape({32, 24}), columns, a[1].reshape({32, 24}), 0),
                 index_add(a[0].reshape({32, 24}), rows.narrow(1, 0, 1).reshape({24}),
                           a[1].reshape({32, 24}).narrow(0, 0, 24), 0),
                 one_hot(ids, 5)};
       }},
      {"products",
       [=](Arguments a) -> Tensors {
         return {matmul(a[0], a[1].t()), linear(a[0], *weight), linear(a[1], *blocks),
                 einsum("bij,bkj->bik", a)};
       }},
      {"images",
       [=](Arguments a) -> Tensors {
         const Tensor image = a[0].reshape({1, 4, 6, 32});
         const Tensor kernel =
             a[1].narrow(0, 0, 1).reshape({1, 6, 32}).narrow(2, 0, 3).reshape({1, 1, 6, 3});
         const Tensor kernels = repeat(kernel.narrow(2, 0, 3), {2, 4, 1, 1});
         return {
             conv2d(image, kernels, {}, {.stride = {1, 2}, .padding = {1, 1}}),
             max_pool2d(image, {.kernel = {2, 2}}),
             avg_pool2d(image, {.kernel = {3, 2}}),
             upsample_nearest2d(image, {.size = {12, 40}}),
             upsample_bilinear2d(image, {.size = {9, 20}}),
             max_pool2d_grad(image, image.narrow(2, 0, 3).narrow(3, 0, 16), {.kernel = {2, 2}})};
       }},
      {"attention",
       [=](Arguments a) -> Tensors {
         const Tensor q = a[0].reshape({1, 4, 6, 32}), k = a[1].reshape({1, 4, 6, 32});
         return {attention(q, k, k, {.scale = 0.2f, .causal = true}),
                 attention(rope(q, cos(angles), sin(angles)), k, q,
                           {.scale = 0.1f, .causal = true, .window = 3}),
                 attention(q, k, q, {.causal = true}, {}, {},
                           a[1].narrow(1, 0, 1).narrow(2, 5, 1).reshape({4}))};
       }},
      {"arguments as results",
       [](Arguments a) -> Tensors {
         return {a[1], a[0].t(), a[0]};
       }},
  };
}

TEST_P(Compile, GivesTheBitsOfTheFunction) {
  for (const Case& c : cases(GetParam())) {
    const Compiled compiled(c.function);
    for (uint64_t call = 1; call <= 4; ++call) {
      const Tensors arguments = {x({4, 6, 32}, 2 * call), x({4, 6, 32}, 2 * call + 1)};
      expect_same(compiled(arguments), c.function(arguments), c.name);
    }
    EXPECT_EQ(1u, compiled.executables()) << c.name;
  }
}

TEST_P(Compile, TakesArgumentsOfEveryLayout) {
  const auto function = [](Arguments a) -> Tensors { return {sqr(a[0]) + a[1]}; };
  const Compiled compiled(function);
  for (int call = 0; call < 3; ++call) {
    const Tensor base = x({10, 9, 8}, static_cast<uint64_t>(call));
    const Tensor stepped = base.slice(0, 1, 9, 2).transpose(1, 2);
    const Tensor arguments[] = {stepped, base.narrow(0, 5, 4).transpose(1, 2)};
    expect_same(compiled(arguments), function(arguments), "strided");
    const Tensor repeated[] = {base.narrow(0, 2, 1).broadcast_to({4, 9, 8}).transpose(1, 2),
                               stepped};
    expect_same(compiled(repeated), function(repeated), "broadcast");
    const Tensor twice[] = {stepped, stepped};
    expect_same(compiled(twice), function(twice), "one argument twice");
  }
  EXPECT_EQ(1u, compiled.executables());
}

TEST_P(Compile, ResultsAreTensorsOfTheirOwn) {
  const Compiled compiled([](Arguments a) -> Tensors { return {affine(a[0], 2, 0)}; });
  Tensors results;
  for (int i = 0; i < 5; ++i) {
    results.push_back(compiled({Tensor::full({3}, i, DType::f32, GetParam())})[0]);
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(std::vector<float>(3, 2.0f * static_cast<float>(i)),
              results[static_cast<size_t>(i)].to_vector<float>());
  }
}

TEST_P(Compile, KeepsOneExecutableForShapesAndDtypes) {
  const Compiled compiled([](Arguments a) -> Tensors { return {a[0] + a[0]}; },
                          {.most_executables = 3});
  for (int round = 0; round < 2; ++round) {
    for (int64_t size = 0; size < 5; ++size) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        const Tensor y = x({size, 2}, 1, dtype);
        expect_same(compiled({y}), {y + y}, y.str());
      }
    }
  }
  EXPECT_EQ(3u, compiled.executables());
}

TEST_P(Compile, WritesToTensorsThatTheFunctionRefersTo) {
  Tensor cache = Tensor::zeros({8, 4}, DType::f32, GetParam());
  const Compiled append([&cache](Arguments a) -> Tensors {
    slice_set(cache, a[0], 0, 2);
    return {sum(cache, 0)};
  });
  for (int i = 1; i <= 4; ++i) {
    for (const int64_t rows : {1, 3}) {  // two executables write to one tensor
      const Tensor row = Tensor::full({rows, 4}, i, DType::f32, GetParam());
      const Tensor sums = append({row})[0];
      EXPECT_EQ(sum(cache, 0).to_vector<float>(), sums.to_vector<float>());
      EXPECT_EQ(std::vector<float>(4, static_cast<float>(i)),
                cache.narrow(0, 2, 1).to_vector<float>());
    }
  }
  // The owner may continue to write to it.
  slice_set(cache, Tensor::full({1, 4}, 9, DType::f32, GetParam()), 0, 0);
  EXPECT_EQ(9.0f + 3 * 4.0f, sum(cache, 0).to_vector<float>()[0]);
  cache = {};
  EXPECT_THROW(append({Tensor::ones({1, 4}, DType::f32, GetParam())}), Error);
}

TEST_P(Compile, RecurrencesAdvanceStatesThatTheFunctionRefersToAndArguments) {
  const Device device = GetParam();
  const Tensor slots = Tensor::from<uint32_t>({1, 0}, {2}, device);
  const Tensor weight = test::numbers({6, 3}, 21, device);
  const Tensor start = test::numbers({2, 2, 6}, 22, device), x = test::numbers({8, 6}, 23, device);
  const Tensor own = start.clone(), eager = start.clone();
  const Compiled refers([&](Arguments a) -> Tensors {
    const Tensor once = causal_conv(a[0], weight, own, slots);
    return {causal_conv(once, weight, own, slots)};  // reads what the first call wrote
  });
  const Compiled takes([&](Arguments a) -> Tensors {
    return {causal_conv(causal_conv(a[0], weight, a[1], slots), weight, a[1], slots)};
  });
  Tensor given = start.clone();
  for (int run = 0; run < 4; ++run) {
    const Tensor want = causal_conv(causal_conv(x, weight, eager, slots), weight, eager, slots);
    const Tensor one[] = {x}, both[] = {x, given};
    expect_same({refers(one)[0], own, takes(both)[0], given}, {want, eager, want, eager},
                "run " + std::to_string(run));
  }
}

TEST_P(Compile, RefusesToReadValues) {
  const Tensor argument = x({4});
  const auto error_of = [&](const graph::Function& function) -> std::string {
    try {
      compile(function)({argument});
    } catch (const Error& error) {
      // Calls run normally again.
      EXPECT_EQ(8.0f, sum(Tensor::full({4}, 2, DType::f32, GetParam())).item<float>());
      return error.what();
    }
    return "";
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != text.npos;
  };
  EXPECT_TRUE(
      has(error_of([](Arguments a) -> Tensors { return {a[0].item<float>() > 0 ? a[0] : -a[0]}; }),
          "item: "));
  EXPECT_TRUE(has(
      error_of([](Arguments a) -> Tensors { return {sum(a[0]).item<float>() > 0 ? a[0] : -a[0]}; }),
      "values are read while a function is traced"));
  EXPECT_TRUE(has(error_of([](Arguments a) -> Tensors {
                    a[0].to_vector<float>();
                    return {a[0]};
                  }),
                  "to_vector: values are read"));
  EXPECT_TRUE(has(error_of([](Arguments a) -> Tensors {
                    return {a[0] + uniform({4}, 0, 1, DType::f32, a[0].device())};
                  }),
                  "uniform: random numbers in a traced function"));
  EXPECT_TRUE(has(error_of([](Arguments a) -> Tensors {
                    return {linear(a[0], Weight(a[0].reshape({1, 4})))};
                  }),
                  "while a function is traced"));
  EXPECT_TRUE(has(error_of([](Arguments) -> Tensors { return {Tensor()}; }), "undefined result"));
  EXPECT_TRUE(has(error_of([](Arguments a) -> Tensors { return {a[0] + a[0].to(DType::f64)}; }),
                  "add: dtypes differ"));
}

/// The error of a traced tensor names the function that needs its values.
TEST_P(Compile, NamesWhatReadsValues) {
  const Device device = GetParam();
  const Tensor argument = x({4});
  struct Reader {
    const char* name;
    std::function<void(const Tensor&)> read;
  };
  const Reader readers[] = {
      {"item", [](const Tensor& t) { (void)sum(t).item<float>(); }},
      {"item", [](const Tensor& t) { (void)t[0].to(DType::f16).item<float>(); }},
      {"to_vector", [](const Tensor& t) { (void)t.to_vector<float>(); }},
      {"to_vector", [](const Tensor& t) { (void)(t < 1).to_vector<bool>(); }},
      {"equal", [](const Tensor& t) { (void)equal(t, t); }},
      {"allclose", [](const Tensor& t) { (void)allclose(t, t); }},
      {"nonzero", [](const Tensor& t) { (void)nonzero(t); }},
      {"masked_select", [](const Tensor& t) { (void)masked_select(t, t > 0); }},
      {"unique", [](const Tensor& t) { (void)unique(t); }},
      {"unique_all", [](const Tensor& t) { (void)unique_all(t); }},
      {"repeat_interleave",
       [](const Tensor& t) { (void)repeat_interleave(t, t.to(DType::i64), 0); }},
      {"weight",
       [](const Tensor& t) {
         (void)Weight(t.reshape({1, 4}));
       }},
  };
  for (const Reader& reader : readers) {
    const std::string begin = std::string(reader.name) + ": values are read";
    try {
      (void)compile([&](Arguments a) -> Tensors {
        reader.read(a[0]);
        return {a[0]};
      })({argument});
      ADD_FAILURE() << reader.name << ": no error";
    } catch (const Error& error) {
      EXPECT_EQ(begin, std::string(error.what()).substr(0, begin.size())) << error.what();
    }
    reader.read(Tensor::full({4}, 0, DType::f32, device));  // succeeds outside of a trace
  }
}

/// While a thread captures a graph, another thread may wait for the whole device, as it must before
/// it gives memory back to another library. The graph stays valid.
TEST_P(Compile, RecordsWhileAnotherThreadWaitsForTheDevice) {
  const Tensor argument = x({16});
  Tensor result;
  const auto work = [&] { result = argument * 2.0 + 1; };
  work();  // loads the kernels before the capture
  const Tensor expected = result;
  std::atomic<bool> done = false;
  std::thread waiting([&] {
    while (!done) quiesce(GetParam());
  });
  for (int i = 0; i < 50; ++i) {
    try {
      record(GetParam(), work)->replay();
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      break;
    }
    expect_same({expected}, {result}, std::to_string(i));
  }
  done = true;
  waiting.join();
}

/// Printing a traced tensor doesn't read values: it shows dtype, shape and device.
TEST_P(Compile, PrintsWhatIsTracedWithoutValues) {
  std::string shown;
  (void)compile([&](Arguments a) -> Tensors {
    shown = to_string(a[0]);
    return {a[0]};
  })({x({2, 3})});
  EXPECT_EQ("f32[2,3]@" + GetParam().str(), shown);
}

/// Invalid calls throw the same errors in a trace as outside of one.
TEST_P(Compile, HasTheErrorsOfItsCalls) {
  using Call = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, Call> calls[] = {
      {"add", [](const Tensor& t) { return t + t.t(); }},
      {"add", [](const Tensor& t) { return t + t.to(DType::f16); }},
      {"matmul", [](const Tensor& t) { return matmul(t, t); }},
      {"reshape", [](const Tensor& t) { return t.reshape({5}); }},
      {"softmax", [](const Tensor& t) { return softmax(t, 2); }},
      {"sum", [](const Tensor& t) { return sum(t, 2); }},
      {"cat",
       [](const Tensor& t) {
         return cat(std::vector<Tensor>{t, t.t()});
       }},
      {"where", [](const Tensor& t) { return where(t, t, t); }},
      {"bitwise_and", [](const Tensor& t) { return t & t; }},
      {"index_select", [](const Tensor& t) { return index_select(t, t, 0); }},
      {"gather", [](const Tensor& t) { return gather(t, t.to(DType::i64), 3); }},
      {"conv2d", [](const Tensor& t) { return conv2d(t, t); }},
      {"attention", [](const Tensor& t) { return attention(t, t, t); }},
      {"rms_norm", [](const Tensor& t) { return rms_norm(t, t); }},
      {"cumprod", [](const Tensor& t) { return cumprod(t, 5); }},
      {"narrow", [](const Tensor& t) { return t.narrow(0, 1, 9); }},
      {"broadcast_to",
       [](const Tensor& t) {
         return t.broadcast_to({7, 7});
       }},
      {"broadcast_to",
       [](const Tensor& t) {
         return sqr(t).broadcast_to({7, 7});
       }},
  };
  const Tensor argument = x({2, 3});
  const auto error_of = [&](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  for (const auto& [name, call] : calls) {
    const std::string plain = error_of([&, &call = call] { (void)call(argument); });
    const std::string traced = error_of([&, &call = call] {
      (void)compile([&](Arguments a) -> Tensors { return {call(a[0])}; })({argument});
    });
    EXPECT_EQ(plain, traced);
    EXPECT_EQ(std::string(name) + ":", plain.substr(0, std::string(name).size() + 1)) << plain;
  }
}

TEST_P(Compile, RefusesArgumentsThatItCannotTake) {
  const Compiled compiled([](Arguments a) -> Tensors { return {a[0]}; });
  EXPECT_THROW(compiled(Tensors{}), Error);
  EXPECT_THROW(compiled({Tensor()}), Error);
  EXPECT_THROW(Compiled(graph::Function{}), Error);
  if (GetParam().kind != DeviceKind::cpu) {
    EXPECT_THROW(compiled({x({2}), Tensor::zeros({2}, DType::f32)}), Error);
  }
}

TEST_P(Compile, LeavesGradientsToTheFunction) {
  const Tensor leaf = x({3, 3}, 5).requires_grad();
  const auto function = [&](Arguments a) -> Tensors { return {sum(sqr(a[0]) * leaf)}; };
  const Compiled compiled(function);
  const Tensor argument = x({3, 3}, 6);
  const Tensor leaves[] = {leaf};
  for (int call = 0; call < 3; ++call) {
    expect_same(gradients(compiled({argument})[0], leaves), {sqr(argument)}, "of a leaf");
    const NoGrad off;
    EXPECT_FALSE(compiled({argument})[0].needs_grad());
  }
  const Tensor wanted = argument.requires_grad();
  const Tensor inputs[] = {wanted};
  const Compiled square([](Arguments a) -> Tensors { return {sum(sqr(a[0]))}; });
  expect_same(gradients(square({wanted})[0], inputs), {affine(argument, 2, 0)}, "of an argument");
}

TEST_P(Compile, OneInsideAnotherIsPartOfIt) {
  const Compiled inner([](Arguments a) -> Tensors { return {sqr(a[0])}; });
  const Compiled outer([&](Arguments a) -> Tensors { return {inner(a)[0] + a[0]}; });
  const Tensor argument = x({5});
  for (int i = 0; i < 3; ++i) {
    expect_same(outer({argument}), {sqr(argument) + argument}, "nested");
  }
  EXPECT_EQ(0u, inner.executables());
}

TEST_P(Compile, ThreadsTakeTurns) {
  const Compiled compiled([](Arguments a) -> Tensors {
    Tensor y = a[0];
    for (int i = 0; i < 8; ++i) y = affine(y, 1, 1);
    return {y};
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const int64_t size = 4 + i % 3;
        const Tensor y = compiled({Tensor::full({size}, 100 * t + i, DType::f32, GetParam())})[0];
        const auto expected = static_cast<float>(100 * t + i + 8);
        wrong +=
            y.to_vector<float>() == std::vector<float>(static_cast<size_t>(size), expected) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, wrong);
}

TEST_P(Compile, TemporariesShareMemory) {
  const auto chain = [](Arguments a) -> Tensors {
    Tensor y = a[0];
    for (int i = 0; i < 40; ++i) y = sqr(y) - a[0];
    return {y};
  };
  const Tensor argument = x({1024});
  const Tensor arguments[] = {argument};
  const graph::Executable executable(graph::trace(chain, arguments).graph);
  EXPECT_EQ(80u, executable.graph().nodes.size());
  EXPECT_LE(executable.temporary_bytes(), 3 * 4096u);
}

/// Temporaries that are too large to be kept are allocated and freed by each run without
/// synchronization: a driver ends a capture when its thread waits for the device.
TEST_P(Compile, LargeTemporariesCanBeRecorded) {
  const Device device = GetParam();
  if (device.kind == DeviceKind::cpu) return;  // the CPU has no capture
  const auto function = [](Arguments a) -> Tensors { return {tanh(sqr(a[0]) - a[0]) + a[0]}; };
  const Tensor argument = x({1 << 20});
  const Tensors expected = function(std::span(&argument, 1));
  const auto compiled = compile(function, {.capture = false});
  Tensors results = compiled({argument});
  expect_same(results, expected, "a run");
  const std::unique_ptr<DeviceGraph> recording =
      record(device, [&] { results = compiled({argument}); });
  recording->replay();
  expect_same(results, expected, "a replay");
}

/// Sorts and scans, also of rows that take several passes, read nothing on the host.
TEST_P(Compile, SortsAndScansCanBeRecorded) {
  const Device device = GetParam();
  if (device.kind == DeviceKind::cpu) return;  // the CPU has no capture
  const Tensor rows = x({2, 9000}), columns = x({300, 12}), images = x({3, 5, 17});
  const auto work = [&]() -> Tensors {
    const Sorted sorted = sort(rows, 1, true), few = topk(rows, 7, 1), short_ones = sort(images, 0);
    return {sorted.values,    sorted.indices,      few.values,
            few.indices,      short_ones.values,   short_ones.indices,
            argsort(rows, 0), argsort(columns, 0), topk(rows, 1100, 1).values,
            cumsum(rows, 1),  cumsum(columns, 0),  cumprod(images, 2)};
  };
  const Tensors expected = work();
  Tensors results;
  const std::unique_ptr<DeviceGraph> recording = record(device, [&] { results = work(); });
  for (int replay = 0; replay < 2; ++replay) {
    recording->replay();
    expect_same(results, expected, "a replay");
  }
}

/// Random graphs: each step reads two earlier values, and all values are returned eventually. A
/// temporary that is overwritten too early changes a result.
// Block dtypes as results, also as views of rows, and as arguments of captured graphs.
TEST_P(Compile, TakesAndReturnsBlocks) {
  const Compiled pack = compile([](Arguments a) -> Tensors {
    const Tensor blocks = quantize(a[0], DType::q5_0);
    return {blocks, blocks.narrow(0, 2, 3), blocks.slice(0, 0, 6, 2)};
  });
  const Compiled unpack = compile([](Arguments a) -> Tensors { return {dequantize(a[0])}; });
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Tensor blocks = quantize(x({6, 64}, seed), DType::q5_0);
    const Tensors packed = pack({x({6, 64}, seed)});
    const Tensor all = dequantize(blocks);
    const Tensor rows[] = {all, all.narrow(0, 2, 3), all.slice(0, 0, 6, 2)};
    for (size_t i = 0; i < packed.size(); ++i) {
      expect_same({dequantize(packed[i])}, {rows[i]}, "quantized");
    }
    expect_same(unpack({blocks}), {all}, "dequantized");
  }
}

TEST_P(Compile, TemporariesDontOverwriteEachOther) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto function = [seed](Arguments a) -> Tensors {
      uint64_t state = seed * 0x9e3779b97f4a7c15u;
      const auto below = [&](size_t n) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<size_t>((state >> 33) % n);
      };
      Tensors values(a.begin(), a.end());
      for (int i = 0; i < 30; ++i) {
        const Tensor &p = values[below(values.size())], &q = values[below(values.size())];
        const int64_t rows = std::min(p.size(0), q.size(0));
        const Tensor parts[] = {p, q.narrow(0, 0, rows)};
        switch (below(4)) {
          case 0:
            values.push_back(p.narrow(0, 0, rows) + q.narrow(0, 0, rows));
            break;
          case 1:
            values.push_back(affine(p, 0.5, 1));
            break;
          case 2:
            values.push_back(tanh(q));
            break;
          default:
            values.push_back(p.size(0) < 64 ? cat(parts, 0) : abs(p));
            break;
        }
      }
      return {values[below(values.size())], values.back(), values[values.size() / 2]};
    };
    const Compiled compiled(function);
    for (uint64_t call = 0; call < 3; ++call) {
      const Tensors arguments = {x({5, 33}, call + 1), x({8, 33}, call + 2)};
      expect_same(compiled(arguments), function(arguments), "seed " + std::to_string(seed));
    }
  }
}

}  // namespace
}  // namespace wick
