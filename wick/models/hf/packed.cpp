#include "wick/models/hf/packed.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "wick/tensor/ops.h"

namespace wick::models::hf {
namespace {

/// How scales are laid out over a matrix.
struct Grid {
  int64_t rows = 1, columns = 1;              // scales
  int64_t block_rows = 1, block_columns = 1;  // elements of a scale
};

int64_t blocks_of(int64_t size, int64_t block) { return (size + block - 1) / block; }

std::optional<Grid> grid_of(const Shape& weight, const Shape& scale, const ScaleBlock& block) {
  if (weight.rank() < 2 || block.rows < 1 || block.columns < 1) return std::nullopt;
  const int64_t n = weight.back(1), k = weight.back(0),
                matrices = weight.elems() / std::max<int64_t>(1, n * k);
  if (n < 1 || k < 1) return std::nullopt;
  if (scale.elems() == 1) return Grid{1, 1, n, k};
  if (scale.elems() == matrices * n && scale.rank() >= 1 &&
      (scale.back() == 1 || scale.back() == n)) {
    return Grid{n, 1, 1, k};
  }
  const int64_t rows = blocks_of(n, block.rows), columns = blocks_of(k, block.columns);
  if (scale.rank() < 2 || scale.back(1) != rows || scale.back(0) != columns ||
      scale.elems() != matrices * rows * columns) {
    return std::nullopt;
  }
  return Grid{rows, columns, block.rows, block.columns};
}

}  // namespace

bool scales_fit(const Shape& weight, const Shape& scale, const ScaleBlock& block) {
  return grid_of(weight, scale, block).has_value();
}

Tensor f8_to_bf16(const Tensor& weight, const Tensor& scale, const ScaleBlock& block) {
  if (!scale.defined()) return weight.to(DType::bf16);
  const Grid grid = grid_of(weight.shape(), scale.shape(), block).value();
  const std::vector<float> scales = scale.to(DType::f32).to_vector<float>();
  const int64_t k = weight.shape().back(), n = weight.shape().back(1);
  const int64_t rows = weight.elems() / k;
  const Tensor matrix = weight.reshape({rows, k});
  Tensor result = Tensor::empty(weight.shape(), DType::bf16);
  auto* out = static_cast<std::byte*>(result.mutable_view().data);
  // A few rows at a time, so that their f32 values stay in the cache.
  const int64_t step = std::max<int64_t>(1, (int64_t{1} << 16) / k);
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    Tensor values = matrix.narrow(0, first, count).to(DType::f32).contiguous();
    auto* f = static_cast<float*>(values.mutable_view().data);
    for (int64_t row = first; row < first + count; ++row) {
      const bool shared = scales.size() == 1;
      const int64_t of_row =
          shared ? 0 : (row / n * grid.rows + row % n / grid.block_rows) * grid.columns;
      for (int64_t begin = 0; begin < k; begin += grid.block_columns) {
        const float by = scales[static_cast<size_t>(of_row + begin / grid.block_columns)];
        const int64_t end = std::min(k, begin + grid.block_columns);
        for (int64_t i = begin; i < end; ++i) f[i] *= by;
      }
      f += k;
    }
    const Tensor rounded = values.to(DType::bf16);
    const auto bytes = static_cast<size_t>(bytes_of(DType::bf16, count * k));
    std::memcpy(out, rounded.view().data, bytes);
    out += bytes;
  }
  return result;
}

bool is_e5m2(const io::SafeTensor& tensor) { return tensor.type == "F8_E5M2"; }

// A byte is the upper half of an f16.
Tensor e5m2_to_f16(const Stored& stored) {
  const io::SafeTensor& tensor = *stored.tensor;
  const std::byte* from = stored.file->bytes()->data() + tensor.offset;
  Tensor result = Tensor::empty(tensor.shape, DType::f16);
  auto* to = static_cast<std::byte*>(result.mutable_view().data);
  for (int64_t i = 0; i < tensor.shape.elems(); ++i) {
    to[2 * i] = std::byte{0};
    to[2 * i + 1] = from[i];
  }
  return result;
}

Tensor mxfp4_of(Form form, const Tensor& blocks, const Tensor& scales) {
  constexpr int64_t kCodes = 16, kElems = 32;
  const Shape& shape = blocks.shape();  // [e, n, k/32, 16]
  const int64_t step = form == Form::mxfp4 ? 1 : 2, first = form == Form::mxfp4_odd ? 1 : 0;
  const int64_t rows = shape[1] / step, row_blocks = shape[2];
  const auto* codes = static_cast<const uint8_t*>(blocks.view().data) + blocks.layout().offset();
  const auto* exponents =
      static_cast<const uint8_t*>(scales.view().data) + scales.layout().offset();
  Tensor result = Tensor::empty({shape[0], rows, row_blocks * kElems}, DType::mxfp4);
  auto* out = static_cast<uint8_t*>(result.mutable_view().data);
  for (int64_t e = 0; e < shape[0]; ++e) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t from = (e * shape[1] + first + row * step) * row_blocks;
      for (int64_t block = from; block < from + row_blocks; ++block) {
        const uint8_t* in = codes + block * kCodes;
        *out++ = exponents[block];
        const auto element = [&](int64_t i) {
          return static_cast<uint8_t>(i % 2 == 0 ? in[i / 2] & 0xf : in[i / 2] >> 4);
        };
        for (int64_t j = 0; j < kCodes; ++j) {
          *out++ = static_cast<uint8_t>(element(j) | element(j + kCodes) << 4);
        }
      }
    }
  }
  return result;
}

}  // namespace wick::models::hf
