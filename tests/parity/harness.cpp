#include "tests/parity/harness.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <stdexcept>

#include "tests/backend/block_reference.h"
#include "tests/test_devices.h"
#include "wick/backend/cpu/cpu_backend.h"

namespace wick::parity {

std::string_view name(Place place) {
  constexpr std::string_view kNames[] = {"contiguous", "transposed", "broadcast", "scalar",
                                         "sliced",     "stepped",    "scattered"};
  return kNames[static_cast<size_t>(place)];
}

std::string_view name(Values values) {
  constexpr std::string_view kNames[] = {"normal", "special", "bits"};
  return kNames[static_cast<size_t>(values)];
}

std::span<const Geometry> geometries() {
  static const std::vector<Geometry> list = {
      {"contiguous", Place::contiguous, {3, 5, 37}},
      {"transposed", Place::transposed, {37, 2, 69}},
      {"broadcast", Place::broadcast, {6, 5, 33}},
      {"scalar", Place::scalar, {7, 45}},
      {"sliced", Place::sliced, {7, 3, 29}},
      {"stepped", Place::stepped, {5, 4, 41}},
      {"empty", Place::sliced, {3, 0, 5}},
      {"rank0", Place::sliced, {}},
      {"rank8", Place::scattered, {2, 1, 3, 2, 1, 2, 3, 5}},
      {"large", Place::contiguous, {257, 263}},
      {"large_transposed", Place::transposed, {2, 131, 301}},
  };
  return list;
}

// ---- Layouts ----

namespace {

/// Returns strides for dims stored in `order` (outermost first), with `room` elements for each dim.
Layout::Strides strides_in_order(std::span<const int> order, std::span<const int64_t> room,
                                 int64_t* total) {
  Layout::Strides strides{};
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[static_cast<size_t>(order[i])] = step;
    step *= std::max<int64_t>(room[static_cast<size_t>(order[i])], 1);
  }
  *total = step;
  return strides;
}

}  // namespace

Placement place(Place kind, const Shape& shape, DType dtype, int operand, bool writable) {
  const int rank = shape.rank();
  const int block = info(dtype).block_elems;
  if (writable && (kind == Place::broadcast || kind == Place::scalar)) kind = Place::contiguous;
  std::vector<int64_t> room(shape.dims().begin(), shape.dims().end()), start(room.size(), 0),
      step(room.size(), 1);
  std::vector<int> order(room.size());
  std::iota(order.begin(), order.end(), 0);
  const bool dense_last = is_block(dtype);
  const size_t free_dims = dense_last && rank > 0 ? room.size() - 1 : room.size();

  if (kind == Place::transposed) {
    std::reverse(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(free_dims));
  }
  if (kind == Place::scattered) {
    // A fixed shuffle that differs between operands. Odd dims get a gap.
    Random random(static_cast<uint64_t>(7 + operand));
    for (size_t i = free_dims; i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
    for (size_t d = 0; d < free_dims; ++d) room[d] += static_cast<int64_t>(d + operand) % 2;
  }
  if (kind == Place::sliced) {
    for (size_t d = 0; d < free_dims; ++d) {
      start[d] = 1 + static_cast<int64_t>(d + operand) % 2;
      room[d] += start[d] + 1;
    }
    if (dense_last) start.back() = block, room.back() += 2 * block;
  }
  if (kind == Place::stepped) {
    for (size_t d = 0; d < free_dims; ++d) {
      step[d] = static_cast<int64_t>(2 + (d + static_cast<size_t>(operand)) % 2);
      room[d] = room[d] * step[d] + 1;
      if ((static_cast<int>(d) + operand) % 2 == 0) {
        start[d] = std::max<int64_t>(shape[static_cast<int>(d)] - 1, 0) * step[d] + 1;
        step[d] = -step[d];
      }
    }
  }
  if (kind == Place::broadcast || kind == Place::scalar) {
    for (size_t d = 0; d < free_dims; ++d) {
      if (kind == Place::scalar || (static_cast<int>(d) + operand) % 2 == 0) room[d] = 1;
    }
  }

  Placement result;
  Layout::Strides strides = strides_in_order(order, room, &result.storage_elems);
  int64_t offset = 0;
  for (size_t d = 0; d < room.size(); ++d) {
    offset += start[d] * strides[d];
    strides[d] *= step[d];
    if ((kind == Place::broadcast || kind == Place::scalar) && room[d] == 1) strides[d] = 0;
  }
  if (rank == 0 && kind != Place::contiguous) {
    offset = 2 * block;
    result.storage_elems = 4 * block;
  }
  result.layout = Layout(shape, strides, offset);
  return result;
}

// ---- Values ----

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::normal() {
  // The sum of four has a third of the variance of a normal number and nearly its shape.
  double sum = -2;
  for (int i = 0; i < 4; ++i) sum += uniform();
  return std::sqrt(3.0) * sum;
}

namespace {

/// Returns the bits of a float dtype's positive edge cases: what Values::special consists of.
std::span<const uint64_t> edges_of(DType dtype) {
  constexpr size_t kEdges = 16;
  static const auto tables = [] {
    std::array<std::array<uint64_t, kEdges>, kRealDTypeCount> all{};
    for (int d = 0; d < kRealDTypeCount; ++d) {
      const auto each = static_cast<DType>(d);
      if (!is_float(each)) continue;
      const FloatFormat f = format_of(each);
      const long double smallest = std::ldexp(1.0L, f.min_exponent),
                        tiny = std::ldexp(1.0L, f.min_exponent - f.precision + 1);
      const long double edges[kEdges] = {0,
                                         std::numeric_limits<long double>::infinity(),
                                         std::numeric_limits<long double>::quiet_NaN(),
                                         tiny,
                                         smallest - tiny,
                                         3 * tiny,
                                         smallest,
                                         f.max,
                                         f.max / 2,
                                         1,
                                         1 + std::ldexp(1.0L, 1 - f.precision),
                                         0.5L,
                                         88.7L,
                                         709.5L,
                                         104.0L,
                                         17.0L};
      for (size_t i = 0; i < kEdges; ++i) all[static_cast<size_t>(d)][i] = encode(each, edges[i]);
    }
    return all;
  }();
  return tables[static_cast<size_t>(dtype)];
}

}  // namespace

uint64_t random_bits(DType dtype, Values values, Random& random, int64_t index) {
  const int width = info(dtype).block_bytes * 8;
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  if (values == Values::bits) {
    return (width <= 16 ? static_cast<uint64_t>(index) : random.next()) & mask;
  }
  const uint64_t dice = random.next();
  const bool special = values == Values::special && dice % 4 != 0;
  if (!is_float(dtype)) {
    const uint64_t top = mask ^ (mask >> 1);
    const uint64_t edges[] = {0, 1, 2, mask, mask - 1, top, top - 1, top + 1, 7, mask - 6};
    if (special) return edges[(dice >> 8) % std::size(edges)];
    return (values == Values::normal ? (dice >> 8) % 23 - 11 : dice >> (64 - width)) & mask;
  }
  if (!special) {
    const double normal = 2 * random.normal();
    // As encode() rounds, which takes longer than the rest.
    if (dtype == DType::f32) return std::bit_cast<uint32_t>(static_cast<float>(normal));
    if (dtype == DType::f64) return std::bit_cast<uint64_t>(normal);
    return encode(dtype, static_cast<long double>(normal));
  }
  const std::span<const uint64_t> edges = edges_of(dtype);
  const uint64_t sign = dice >> 32 & 1;
  return edges[(dice >> 8) % edges.size()] | sign << (width - 1);
}

// ---- Guarded tensors ----

namespace {
constexpr auto kCanary = std::byte{0xa5};
}

struct TestTensor::Pages {
  explicit Pages(size_t bytes) {
    page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    size = (bytes + page_ - 1) / page_ * page_;
    if (size == 0) size = page_;
    void* all = mmap(nullptr, size + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("mmap failed");
    data = static_cast<std::byte*>(all) + page_;
    if (mprotect(data, size, PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error("mprotect failed");
    }
  }
  ~Pages() { munmap(data - page_, size + 2 * page_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data = nullptr;
  size_t size = 0;

 private:
  size_t page_ = 0;
};

TestTensor::TestTensor(DType dtype, Place kind, const Shape& shape, int operand, bool writable)
    : dtype_(dtype) {
  const Placement placement = place(kind, shape, dtype, operand, writable);
  layout_ = placement.layout;
  allocate(placement.storage_elems, operand % 2 == 0);
}

TestTensor::TestTensor(DType dtype, const Shape& shape, std::span<const double> values)
    : TestTensor(dtype, Place::contiguous, shape) {
  fill_with([&](int64_t i) { return values[static_cast<size_t>(i)]; });
}

TestTensor::TestTensor(TestTensor&&) noexcept = default;
TestTensor& TestTensor::operator=(TestTensor&&) noexcept = default;
TestTensor::~TestTensor() = default;

void TestTensor::allocate(int64_t storage_elems, bool flush_end) {
  storage_bytes_ = bytes_of(dtype_, storage_elems);
  pages_ = std::make_unique<Pages>(static_cast<size_t>(storage_bytes_));
  storage_ = flush_end ? pages_->data + pages_->size - storage_bytes_ : pages_->data;
  wipe();
}

void TestTensor::wipe() { std::fill_n(pages_->data, pages_->size, kCanary); }

bool TestTensor::surroundings_intact() const {
  std::vector<std::byte> copy(pages_->data, pages_->data + pages_->size);
  const int64_t start = storage_ - pages_->data, block = info(dtype_).block_elems,
                bytes = info(dtype_).block_bytes;
  for_each_element(layout_, [&](int64_t, int64_t at) {
    if (at % block == 0) std::fill_n(copy.begin() + start + at / block * bytes, bytes, kCanary);
  });
  // Each byte equals the one before: memcmp is faster than a loop over bytes.
  return copy.empty() ||
         (copy[0] == kCanary && std::memcmp(copy.data(), copy.data() + 1, copy.size() - 1) == 0);
}

namespace {

/// Calls `use` with an unsigned integer of as many bytes as an element has.
template <class Use>
void with_width(int bytes, const Use& use) {
  switch (bytes) {
    case 1:
      return use(uint8_t{});
    case 2:
      return use(uint16_t{});
    case 4:
      return use(uint32_t{});
    default:
      return use(uint64_t{});
  }
}

/// Sets every element of a layout to value(row-major index).
template <class Value>
void write_elements(std::byte* storage, DType dtype, const Layout& layout, const Value& value) {
  with_width(info(dtype).block_bytes, [&](auto width) {
    for_each_element(layout, [&](int64_t i, int64_t at) {
      const auto element = static_cast<decltype(width)>(value(i));
      std::memcpy(storage + at * static_cast<int64_t>(sizeof element), &element, sizeof element);
    });
  });
}

}  // namespace

void TestTensor::fill_bits(const std::function<uint64_t(int64_t)>& value) {
  write_elements(storage_, dtype_, layout_, value);
}

void TestTensor::fill_with(const std::function<long double(int64_t)>& value) {
  write_elements(storage_, dtype_, layout_, [&](int64_t i) {
    return is_float(dtype_) ? encode(dtype_, value(i))
                            : static_cast<uint64_t>(static_cast<int64_t>(value(i)));
  });
}

void TestTensor::fill(Values values, Random& random) {
  if (!is_block(dtype_)) {
    write_elements(storage_, dtype_, layout_,
                   [&](int64_t i) { return random_bits(dtype_, values, random, i); });
    return;
  }
  // Random quants with finite scales.
  const int64_t block = info(dtype_).block_elems, bytes = info(dtype_).block_bytes;
  for_each_element(layout_, [&](int64_t, int64_t at) {
    if (at % block != 0) return;
    std::byte* b = storage_ + at / block * bytes;
    for (int64_t i = 0; i < bytes; ++i) b[i] = static_cast<std::byte>(random.next() >> 56);
    const auto half = [&] {
      return static_cast<uint16_t>(
          encode(DType::f16, static_cast<long double>(random.normal()) / 8));
    };
    const uint16_t d = half(), m = half();
    reference::write_scales(dtype_, reinterpret_cast<uint8_t*>(b), d, m);
  });
}

std::vector<uint64_t> TestTensor::bits() const {
  std::vector<uint64_t> result(static_cast<size_t>(elems()));
  with_width(info(dtype_).block_bytes, [&](auto element) {
    for_each_element(layout_, [&](int64_t i, int64_t at) {
      std::memcpy(&element, storage_ + at * static_cast<int64_t>(sizeof element), sizeof element);
      result[static_cast<size_t>(i)] = element;
    });
  });
  return result;
}

std::vector<double> TestTensor::doubles() const {
  const std::vector<uint64_t> raw = bits();
  std::vector<double> result(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) result[i] = static_cast<double>(decode(dtype_, raw[i]));
  return result;
}

std::vector<int64_t> TestTensor::ints() const {
  const std::vector<uint64_t> raw = bits();
  std::vector<int64_t> result(raw.size());
  for (size_t i = 0; i < raw.size(); ++i) result[i] = decode_int(dtype_, raw[i]);
  return result;
}

// ---- Running and comparing ----

namespace {

std::vector<Target> cpu_targets() {
  static std::deque<cpu::CpuBackend> backends;
  const auto here = cpu::available_isas();
  std::vector<Target> all;
  for (cpu::Isa isa : cpu::kIsas) {
    if (isa == cpu::Isa::amx) continue;  // only linear has kernels of its own for AMX
    Target target{fmt::format("cpu-{}", cpu::name(isa)), nullptr, ""};
    if (std::find(here.begin(), here.end(), isa) == here.end()) {
      target.missing = fmt::format("this machine has no {}", cpu::name(isa));
    } else {
      target.backend = &backends.emplace_back(isa);
    }
    all.push_back(target);
  }
  return all;
}

Target device_target(const std::string& word) {
  try {
    return {word, &wick::backend(Device::parse(word)), ""};
  } catch (const std::exception& error) {
    return {word, nullptr, error.what()};
  }
}

std::vector<Target>& limited_targets() {
  static std::vector<Target> list;
  return list;
}

std::string_view blamed, blamed_for;  // views of strings that outlive the Blame

}  // namespace

std::span<const Target> all_targets() {
  static const std::vector<Target> list = [] {
    std::vector<Target> all = cpu_targets();
    const std::vector<std::string> devices = test::device_names();
    if (devices.empty()) return all;
    gpu::count_work();  // before the first use of a device
    std::erase_if(all, [](const Target& t) { return t.backend == nullptr; });
    all.erase(all.begin(), all.end() - 1);
    for (const std::string& name : devices) all.push_back(device_target(name));
    return all;
  }();
  return list;
}

std::span<const Target> targets() {
  static const std::vector<Target> present = [] {
    std::vector<Target> list(all_targets().begin(), all_targets().end());
    std::erase_if(list, [](const Target& t) { return t.backend == nullptr; });
    return list;
  }();
  return limited_targets().empty() ? present : limited_targets();
}

void limit_targets(std::vector<Target> to) { limited_targets() = std::move(to); }

Blame::Blame(const Target& target, std::string_view what) {
  blamed = target.name;
  blamed_for = what;
}
Blame::~Blame() { blamed = blamed_for = {}; }
std::string_view Blame::target() { return blamed; }
std::string_view Blame::what() { return blamed_for; }

bool same_bits(DType dtype, uint64_t a, uint64_t b) {
  return a == b ||
         (is_float(dtype) && std::isnan(decode(dtype, a)) && std::isnan(decode(dtype, b)));
}

namespace {

/// Compares equally many bytes. std::equal would compare one at a time.
bool equal_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

bool run_everywhere(std::string_view what, TestTensor& out,
                    std::span<const TestTensor* const> inputs, const Call& call) {
  std::vector<ConstView> views;
  std::vector<std::vector<std::byte>> before;
  for (const TestTensor* input : inputs) {
    views.push_back(input->view());
    before.emplace_back(input->storage().begin(), input->storage().end());
  }
  std::vector<std::byte> first_storage;
  std::vector<uint64_t> first;
  for (const Target& target : targets()) {
    const Blame blame(target, what);
    out.wipe();
    try {
      const OnDevice out_there(*target.backend, out.storage());
      std::deque<OnDevice> there;
      std::vector<ConstView> views_there;
      for (size_t i = 0; i < inputs.size(); ++i) {
        there.emplace_back(*target.backend, inputs[i]->storage());
        views_there.push_back(there.back().view(views[i]));
      }
      const test::DeviceWork work(target.backend->device());
      call(*target.backend, out_there.view(out.view()), views_there);
      if (const std::string fault = work.fault(out.elems() > 0); !fault.empty()) {
        ADD_FAILURE() << what << ": " << fault;
        return false;
      }
      out_there.fetch(out.storage());
    } catch (const std::exception& error) {
      ADD_FAILURE() << what << " on " << target.name << " threw: " << error.what();
      return false;
    }
    if (!out.surroundings_intact()) {
      ADD_FAILURE() << what << " on " << target.name << " wrote outside its output";
      return false;
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!equal_bytes(before[i], inputs[i]->storage())) {
        ADD_FAILURE() << what << " on " << target.name << " changed input " << i;
        return false;
      }
    }
    const bool blocks = is_block(out.dtype());
    if (first_storage.empty()) {
      first_storage.assign(out.storage().begin(), out.storage().end());
      if (!blocks) first = out.bits();
      continue;
    }
    if (equal_bytes(first_storage, out.storage())) continue;
    if (blocks) {
      ADD_FAILURE() << what << ": " << target.name << " differs from " << targets()[0].name;
      return false;
    }
    const std::vector<uint64_t> here = out.bits();
    for (size_t i = 0; i < here.size(); ++i) {
      if (same_bits(out.dtype(), first[i], here[i])) continue;
      ADD_FAILURE() << what << ": element " << i << " is "
                    << fmt::format("{:#x} on {}, {:#x} on {}", here[i], target.name, first[i],
                                   targets()[0].name);
      return false;
    }
  }
  std::copy(first_storage.begin(), first_storage.end(), out.storage().begin());
  return true;
}

namespace {

void report(std::string_view what, const TestTensor& out, size_t element, size_t wrong,
            uint64_t got, long double expected) {
  ADD_FAILURE() << fmt::format(
      "{}: element {} of {} is {:.17g} ({:#x}), expected {:.17g}; {} of {} elements differ", what,
      element, out.shape().str(), static_cast<double>(decode(out.dtype(), got)), got,
      static_cast<double>(expected), wrong, out.elems());
}

}  // namespace

void expect_close(std::string_view what, const TestTensor& out, std::span<const long double> exact,
                  long double ulps) {
  const std::vector<uint64_t> got = out.bits();
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (close(out.dtype(), decode(out.dtype(), got[i]), exact[i], ulps)) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0) report(what, out, first, wrong, got[first], exact[first]);
}

void expect_within(std::string_view what, const TestTensor& out, std::span<const long double> exact,
                   std::span<const long double> tolerance) {
  const std::vector<uint64_t> got = out.bits();
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const long double value = decode(out.dtype(), got[i]);
    const bool fine = std::isnan(exact[i])
                          ? std::isnan(value)
                          : value == exact[i] || std::fabs(value - exact[i]) <= tolerance[i];
    if (!fine && wrong++ == 0) first = i;
  }
  if (wrong > 0) report(what, out, first, wrong, got[first], exact[first]);
}

void expect_bits(std::string_view what, const TestTensor& out, std::span<const uint64_t> expected) {
  const std::vector<uint64_t> got = out.bits();
  size_t wrong = 0, first = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (same_bits(out.dtype(), got[i], expected[i])) continue;
    if (wrong++ == 0) first = i;
  }
  if (wrong > 0) {
    report(what, out, first, wrong, got[first], decode(out.dtype(), expected[first]));
  }
}

}  // namespace wick::parity
