// Conversion of tensors to text.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "wick/tensor/ops.h"
#include "wick/tensor/tensor.h"

namespace wick {
namespace {

constexpr int64_t kMost = 1000;  // limit; larger tensors print only the ends of each dim
constexpr int64_t kEdge = 3;

/// The elements as text, in row-major order.
std::vector<std::string> texts(const Tensor& x) {
  std::vector<std::string> all;
  if (x.dtype() == DType::boolean) {
    for (const uint8_t v : x.to_vector<uint8_t>()) all.emplace_back(v != 0 ? "true" : "false");
  } else if (x.dtype() == DType::f64) {
    for (const double v : x.to_vector<double>()) all.push_back(fmt::format("{:.6g}", v));
  } else if (is_float(x.dtype())) {
    for (const float v : x.to_vector<float>()) all.push_back(fmt::format("{:.5g}", v));
  } else {
    for (const int64_t v : x.to(DType::i64).to_vector<int64_t>())
      all.push_back(fmt::format("{}", v));
  }
  return all;
}

/// Writes nested brackets around the elements of dims `dim` and higher, starting with element `at`.
class Printer {
 public:
  Printer(const Tensor& x, const std::vector<std::string>& cells, const Shape& shown)
      : x_(x), cells_(cells), shown_(shown) {
    for (const std::string& cell : cells) width_ = std::max(width_, cell.size());
  }

  std::string text(int dim = 0) {
    if (dim == x_.rank()) return fmt::format("{:>{}}", cells_[at_++], width_);
    const bool cut = shown_[dim] < x_.size(dim), inner = dim + 1 == x_.rank();
    const std::string apart =
        inner ? ", " : fmt::format(",{:\n>{}}{:>{}}", "", x_.rank() - 1 - dim, "", dim + 1);
    std::string all = "[";
    for (int64_t i = 0; i < shown_[dim]; ++i) {
      if (i > 0) all += apart;
      if (cut && i == kEdge) all += "..." + apart;
      all += text(dim + 1);
    }
    return all + "]";
  }

 private:
  const Tensor& x_;
  const std::vector<std::string>& cells_;
  const Shape& shown_;
  size_t width_ = 0, at_ = 0;
};

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined() || is_block(x.dtype()) || x.storage()->is_traced()) return x.str();
  Tensor shown = x.detach();
  if (x.elems() > kMost) {
    for (int d = 0; d < x.rank(); ++d) {
      if (x.size(d) <= 2 * kEdge) continue;
      const Tensor ends[] = {shown.narrow(d, 0, kEdge), shown.narrow(d, x.size(d) - kEdge, kEdge)};
      shown = cat(ends, d);
    }
  }
  return Printer(x, texts(shown), shown.shape()).text() + " " + x.str();
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace wick
