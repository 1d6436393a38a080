// Which kernel takes a product with quantised weights.

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/kernels/product_out.h"
#include "wick/backend/gpu/linear/quantized_weight.h"
#include "wick/backend/gpu/space.h"

namespace wick::gpu {
namespace {

ProductOut product_out(const View& out, const ConstView* residual) {
  const Layout& other = residual != nullptr ? residual->layout : out.layout;
  const int last = out.layout.rank() - 1;
  ProductOut to;
  space_of<2>({&out.layout, &other}, ~(1u << last))
      .for_each_piece([&](const Nest<2>& columns, const std::array<int64_t, 2>& start) {
        to.columns = columns;
        to.data = advance(out.data, out.dtype, start[0]);
        if (residual != nullptr) {
          to.residual = static_cast<const float*>(residual->data) + start[1];
        }
      });
  to.row[0] = out.layout.stride(last);
  to.row[1] = other.stride(last);
  to.stored = out.dtype == DType::f32   ? Stored::f32
              : out.dtype == DType::f16 ? Stored::f16
                                        : Stored::bf16;
  return to;
}

struct Product {
  const ProductOut& out;
  const QuantizedRows& x;
  const QuantizedWeight& weight;
  uint32_t chunks = weight.chunks();
  uint32_t rows = static_cast<uint32_t>(weight.n);

  template <class... More>
  void launch(std::string_view file, const std::string& kernel, const Grid& grid,
              More... more) const {
    weight.gpu.launch(file, kernel, grid, out, weight.units, x.values(), x.scales(), chunks, rows,
                      more...);
  }
};

/// Shared memory that groups take without asking, at every vendor.
constexpr uint32_t kSharedBytes = 48 << 10;

/// One column. False where the activations don't fit into shared memory.
bool matvec(const Product& p) {
  // Short rows leave groups with too little to do.
  const uint32_t row_groups = p.chunks < 16 && p.weight.row_groups() % 2 == 0 ? 2 : 1;
  Grid grid{{p.weight.row_groups() / row_groups, 1, 1}};
  grid.shared_bytes = p.chunks * 320 + row_groups * (p.chunks * 64 + 64);
  if (grid.shared_bytes > kSharedBytes) return false;
  grid.early = true;
  p.launch("matvec", fmt::format("matvec_{}", name(p.weight.dtype)), grid, row_groups);
  return true;
}

/// Any number of columns.
void matvec_columns(const Product& p) {
  constexpr uint32_t kColumns = 4, kHalves = 16;
  uint32_t segment = p.chunks;
  if (segment * kColumns * 384 > kSharedBytes) {
    segment = kSharedBytes / (kColumns * 384) / kHalves * kHalves;
  }
  const std::string kernel = fmt::format("matvec_columns_{}", name(p.weight.dtype));
  Grid grid{{p.weight.row_groups(), (p.x.rows() + kColumns - 1) / kColumns, 1}};
  grid.shared_bytes = segment * kColumns * 384;
  grid.early = true;
  p.launch("matvec", kernel, grid, p.x.rows(), segment);
}

}  // namespace

std::vector<std::string_view> product_paths(const Gpu&, DType) { return {"dot"}; }

void multiply(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
              const ConstView* residual) {
  if (out.layout.elems() == 0) return;
  const ProductOut to = product_out(out, residual);
  const Product product{to, x, weight};
  if (x.rows() == 1 && matvec(product)) return;
  matvec_columns(product);
}

}  // namespace wick::gpu
