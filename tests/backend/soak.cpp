#include "tests/backend/soak.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tests/backend/soak_chain.h"
#include "wick/base/error.h"

namespace wick::soak {

Held::Held(Backend& backend, size_t bytes, Random& random) : backend_(backend), bytes_(bytes) {
  for (std::byte& b : bytes_) b = static_cast<std::byte>(random.next() >> 56);
  data_ = backend_.alloc(bytes);
  backend_.upload(data_, bytes_.data(), bytes);
}

void Held::check() const {
  std::vector<std::byte> now(bytes_.size());
  backend_.download(now.data(), data_, now.size());
  if (now != bytes_) throw Wrong(fmt::format("{} bytes that nobody uses have changed", now.size()));
}

Soak::Soak(const Options& o)
    : cpu(backend(Device::cpu())), gpu(backend(o.device)), options(o), reproducible([] {
        const char* value = std::getenv("WICK_REPRODUCIBLE");
        return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
      }()) {}
Soak::~Soak() = default;

DType Soak::dtype(DTypeSet set) {
  for (;;) {
    const auto choice = static_cast<DType>(random.below(kRealDTypeCount));
    if (set.contains(choice)) return choice;
  }
}

Place Soak::place() {
  return pick({Place::contiguous, Place::contiguous, Place::contiguous, Place::transposed,
               Place::broadcast, Place::scalar, Place::sliced, Place::stepped, Place::scattered});
}

int64_t Soak::size(int64_t most) {
  const double x = std::exp(random.uniform() * std::log(static_cast<double>(most) + 1));
  return std::clamp<int64_t>(static_cast<int64_t>(x), 1, most);
}

Shape Soak::shape(int least_rank, int most_rank, bool may_be_empty) {
  std::vector<int64_t> dims(
      static_cast<size_t>(least_rank + random.below(most_rank - least_rank + 1)));
  int64_t left = options.elems;
  for (int64_t& n : dims) {
    n = size(left);
    left = std::max<int64_t>(left / n, 1);
  }
  for (size_t i = dims.size(); i > 1; --i) {
    std::swap(dims[i - 1], dims[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  if (may_be_empty && !dims.empty() && one_in(24)) {
    dims[static_cast<size_t>(random.below(static_cast<int64_t>(dims.size())))] = 0;
  }
  return Shape(std::span<const int64_t>(dims));
}

void Soak::compare(TestTensor& out, std::initializer_list<const TestTensor*> inputs,
                   const Call& call) {
  std::vector<ConstView> views;
  for (const TestTensor* t : inputs) views.push_back(t->view());
  out.wipe();
  call(cpu, out.view(), views);
  const std::vector<std::byte> storage(out.storage().begin(), out.storage().end());
  std::vector<uint64_t> expected;
  if (!is_block(out.dtype())) expected = out.bits();
  run(out, inputs, call);
  if (std::equal(storage.begin(), storage.end(), out.storage().begin())) return;
  if (is_block(out.dtype())) fail("the blocks differ");
  expect_same("the result", out.dtype(), expected, out.bits());
}

void Soak::run(TestTensor& out, std::initializer_list<const TestTensor*> inputs, const Call& call) {
  out.wipe();
  const OnDevice out_there(gpu, out.storage());
  std::deque<OnDevice> there;
  std::vector<ConstView> views;
  for (const TestTensor* t : inputs) {
    there.emplace_back(gpu, t->storage());
    views.push_back(there.back().view(t->view()));
  }
  call(gpu, out_there.view(out.view()), views);
  out_there.fetch(out.storage());
  if (!out.surroundings_intact()) fail("wrote outside its output");
  if (!one_in(4)) return;
  size_t i = 0;
  for (const TestTensor* t : inputs) {
    std::vector<std::byte> now(t->storage().size());
    there[i].fetch(now);
    if (!std::equal(now.begin(), now.end(), t->storage().begin())) {
      fail(fmt::format("changed input {}", i));
    }
    ++i;
  }
}

void Soak::expect_within(const TestTensor& out, const std::vector<double>& exact,
                         const std::vector<double>& tolerance) const {
  const std::vector<double> got = out.doubles();
  for (size_t i = 0; i < got.size(); ++i) {
    const double value = exact[i], most = static_cast<double>(parity::format_of(out.dtype()).max);
    // The dtype can't represent these values.
    if (std::abs(value) + tolerance[i] >= most && std::abs(got[i]) >= most * 0.99) continue;
    if (std::abs(got[i] - value) <= tolerance[i]) continue;
    fail(fmt::format("element {} is {:.9g}, not {:.9g}, off by more than {:.3g}", i, got[i], value,
                     tolerance[i]));
  }
}

void Soak::expect_same(std::string_view which, DType dtype, const std::vector<uint64_t>& expected,
                       const std::vector<uint64_t>& got) const {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (parity::same_bits(dtype, expected[i], got[i])) continue;
    fail(fmt::format("{}: element {} is {:#x}, not {:#x}", which, i, got[i], expected[i]));
  }
}

void Soak::expect_error(std::string_view op, const std::function<void()>& work) {
  std::string told = "none";
  try {
    work();
    gpu.synchronize();
  } catch (const Error& error) {
    told.clear();
    if (!op.empty() && error.op() != op) told = error.what();
  }
  if (!told.empty()) fail("the error is " + told);
  gpu.synchronize();
}

}  // namespace wick::soak
