// Custom ops on the CPU or the device that is given as argument: custom_ops cuda:0. Compares each
// op with the same computation by wick's own ops.
#include <cstdio>
#include <numeric>
#include <string>

#include "quantised_bias.h"
#include "rotary.h"
#include "softmax.h"
#include "swiglu.h"
#include "wick/graph/compile.h"
#include "wick/tensor/autograd.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/random.h"

namespace {

using namespace wick;

/// Prints the first values; throws if the results differ.
void compare(const char* what, const Tensor& given, const Tensor& expected) {
  std::printf("%-24s", what);
  for (const float value : given.flatten().narrow(0, 0, 4).to_vector<float>()) {
    std::printf(" %9.5f", static_cast<double>(value));
  }
  std::printf("\n");
  if (!allclose(given, expected, 1e-4, 1e-5)) throw Error(what, "the results differ");
}

void run(Device device) {
  const auto numbers = [&](const Shape& shape) { return normal(shape).to(device); };
  const Tensor x = numbers({4, 70}), up = numbers({4, 70});

  // An op with a gradient.
  const Tensor leaf = x.requires_grad(), own = x.requires_grad(), seed = numbers({4, 70});
  const Tensor soft = apply_op1(leaf, examples::Softmax());
  compare("softmax", soft.detach(), softmax(x));
  backward(soft, seed);
  backward(softmax(own), seed);
  compare("its gradient", leaf.grad(), own.grad());

  // Several operands.
  compare("swiglu", apply_op2(x, up, examples::Swiglu()), silu(x) * up);
  std::vector<uint8_t> codes(70);
  std::iota(codes.begin(), codes.end(), uint8_t{100});
  const Tensor code = Tensor::from(codes, {70}, device), scales = numbers({3});
  const Tensor steps = index_select(scales, Tensor::arange(0, 70, 1, DType::i64, device) / 32, 0);
  compare("quantised bias", apply_op3(x, code, scales, examples::QuantisedBias()),
          x + steps * affine(code.to(DType::f32), 1, -128));

  // In place.
  const Tensor heads = numbers({2, 5, 8}), cos = numbers({5, 4}), sin = numbers({5, 4});
  const Tensor turned = rope_interleaved(heads, cos, sin);
  inplace_op3(heads, cos, sin, examples::Rotary());
  compare("rotary", heads, turned);

  // In a compiled function, which captures the kernels of a GPU as a graph.
  const Compiled layer = compile([](std::span<const Tensor> a) -> std::vector<Tensor> {
    return {apply_op1(apply_op2(a[0], a[1], examples::Swiglu()), examples::Softmax())};
  });
  for (int i = 0; i < 3; ++i) {
    compare("compiled", layer({x, up})[0], softmax(silu(x) * up));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(Device::parse(argc > 1 ? argv[1] : "cpu"));
    return 0;
  } catch (const Error& e) {
    std::fprintf(stderr, "custom_ops: %s\n", e.what());
    return 1;
  }
}
