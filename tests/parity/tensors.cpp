#include "tests/parity/tensors.h"

#include <fmt/format.h>

#include "tests/parity/grid.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/tensor/storage.h"

namespace wick::parity {
namespace {

cpu::CpuBackend& own_cpu() { return dynamic_cast<cpu::CpuBackend&>(wick::backend(Device::cpu())); }

}  // namespace

TensorsOn::TensorsOn(const Target& target) : target_(target) {
  if (const auto* cpu = dynamic_cast<const cpu::CpuBackend*>(target.backend)) {
    own_cpu().set_isa(cpu->isa());
  }
}
TensorsOn::~TensorsOn() { own_cpu().set_isa(cpu::selected_isa()); }

Tensor tensor_of(const TestTensor& t, Device device) {
  const auto bytes = t.storage();
  const auto storage = Storage::allocate(device, bytes.size());
  wick::backend(device).upload(storage->data(), bytes.data(), bytes.size());
  return Tensor(storage, t.dtype(), t.layout());
}

std::vector<uint64_t> bits_of(const Tensor& t) {
  const test::OwnCopies own(t.device());
  const Tensor host = t.to(Device::cpu());
  std::vector<uint64_t> bits(static_cast<size_t>(host.elems()));
  const ConstView view = host.view();
  const auto* data = static_cast<const std::byte*>(view.data);
  for_each_element(view.layout, [&](int64_t i, int64_t at) {
    bits[static_cast<size_t>(i)] =
        load_bits(host.dtype(), data + at * info(host.dtype()).block_bytes);
  });
  return bits;
}

void expect_same(std::string_view what, DType dtype, const std::vector<uint64_t>& got,
                 const std::vector<uint64_t>& expected) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (same_bits(dtype, got[i], expected[i])) continue;
    ADD_FAILURE() << fmt::format("{}: element {} is {} ({:#x}), expected {} ({:#x})", what, i,
                                 static_cast<double>(decode(dtype, got[i])), got[i],
                                 static_cast<double>(decode(dtype, expected[i])), expected[i]);
    return;
  }
}

bool run_tensors(std::string_view what, std::span<const TestTensor* const> inputs, DType dtype,
                 const Shape& shape, const TensorCall& call,
                 const std::function<void(const std::vector<uint64_t>& bits)>& check) {
  for (const Target& target : targets()) {
    const Blame blame(target, what);
    const TensorsOn on(target);
    try {
      std::vector<Tensor> tensors;
      for (const TestTensor* input : inputs) tensors.push_back(tensor_of(*input, on.device()));
      const Tensor result = call(tensors);
      EXPECT_EQ(result.shape().str(), shape.str()) << what << " on " << target.name;
      EXPECT_EQ(name(result.dtype()), name(dtype)) << what << " on " << target.name;
      if (failed()) return false;
      check(bits_of(result));
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " on " << target.name << " threw: " << error.what();
    }
    if (failed()) return false;
  }
  return true;
}

}  // namespace wick::parity
