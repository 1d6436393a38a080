#include "wick/models/hf/forms.h"

#include <algorithm>
#include <span>
#include <vector>

namespace wick::models::hf {
namespace {

FormView whole(const Layout& layout) { return {layout, layout.shape()}; }

/// Splits the first dim into `parts`, whose product must be its size, permutes the dims, and gives
/// the result a shape.
std::optional<FormView> reordered_rows(const Shape& source, std::vector<int64_t> parts,
                                       std::span<const int> order, const Shape& result) {
  for (int i = 1; i < source.rank(); ++i) parts.push_back(source[i]);
  const std::optional<Layout> split =
      Layout::contiguous(source).reshape(Shape(std::span<const int64_t>(parts)));
  if (!split) return std::nullopt;
  std::vector<int> all(order.begin(), order.end());
  while (all.size() < parts.size()) all.push_back(static_cast<int>(all.size()));
  return FormView{split->permute(all), result};
}

/// The rows of rotated heads.
std::optional<FormView> rotated_rows(const Shape& source, int64_t heads) {
  if (source.rank() < 1 || heads < 1 || source[0] % (2 * heads) != 0) return std::nullopt;
  constexpr int kOrder[] = {0, 2, 1};
  return reordered_rows(source, {heads, 2, source[0] / heads / 2}, kOrder, source);
}

std::optional<FormView> qkv_of_heads(const Shape& source, int64_t heads) {
  if (source.rank() < 1 || heads < 1 || source[0] % (3 * heads) != 0) return std::nullopt;
  constexpr int kOrder[] = {1, 0, 2};
  return reordered_rows(source, {heads, 3, source[0] / heads / 3}, kOrder, source);
}

/// One half of a dim.
std::optional<FormView> half(const Layout& layout, int dim, bool second) {
  const int64_t size = layout.shape()[dim];
  if (size % 2 != 0) return std::nullopt;
  return whole(layout.narrow(dim, second ? size / 2 : 0, size / 2));
}

/// Every second index of a dim.
std::optional<FormView> every_second(const Layout& layout, int dim, bool odd) {
  const int64_t size = layout.shape()[dim];
  if (size % 2 != 0) return std::nullopt;
  return whole(layout.slice(dim, odd ? 1 : 0, size, 2));
}

/// Rows [first, first + count) of each head of a matrix.
std::optional<Layout> rows_of_heads(const Shape& source, const Sizes& sizes, int64_t first,
                                    int64_t count) {
  const int64_t rows = sizes.latent_keys + sizes.latent_values;
  if (source.rank() != 2 || sizes.heads < 1 || count < 1 || source[0] != sizes.heads * rows) {
    return std::nullopt;
  }
  const std::optional<Layout> split =
      Layout::contiguous(source).reshape({sizes.heads, rows, source[1]});
  if (!split) return std::nullopt;
  return split->narrow(1, first, count);
}

/// The rows of linear attention's projection are, for each head, those of the query, the key, the
/// values and the gate. Nothing if the source isn't a matrix of such rows.
std::optional<FormView> linear_rows(const Shape& source, const Sizes& sizes, bool gate) {
  const int64_t keys = sizes.linear_keys, values = sizes.linear_values, heads = sizes.linear_heads;
  if (source.rank() != 2 || heads < 1 || keys < 1 || values < 1) return std::nullopt;
  const int64_t rows = 2 * keys + 2 * values;
  if (source[0] != heads * rows) return std::nullopt;
  const std::optional<Layout> split = Layout::contiguous(source).reshape({heads, rows, source[1]});
  if (!split) return std::nullopt;
  if (gate) {
    return FormView{split->narrow(1, 2 * keys + values, values), {heads * values, source[1]}};
  }
  return FormView{split->narrow(1, 0, keys),
                  {heads * (2 * keys + values), source[1]},
                  {split->narrow(1, keys, keys), split->narrow(1, 2 * keys, values)}};
}

/// A source of one dim in another shape.
std::optional<FormView> reshaped(const Layout& layout, const Shape& shape) {
  if (layout.shape().rank() != 1) return std::nullopt;
  const std::optional<Layout> result = layout.reshape(shape);
  if (!result) return std::nullopt;
  return whole(*result);
}

}  // namespace

bool moves_rows(Form form) {
  constexpr Form kForms[] = {Form::same,       Form::query_rows,  Form::key_rows,
                             Form::first_half, Form::second_half, Form::qkv_of_heads,
                             Form::linear_qkv, Form::linear_gate};
  return std::find(std::begin(kForms), std::end(kForms), form) != std::end(kForms);
}

std::optional<FormView> view_of(Form form, const Shape& source, const Sizes& sizes) {
  const Layout dense = Layout::contiguous(source);
  const int rank = source.rank();
  switch (form) {
    case Form::same:
      return whole(dense);
    case Form::query_rows:
      return rotated_rows(source, sizes.heads);
    case Form::key_rows:
      return rotated_rows(source, sizes.kv_heads);
    case Form::transposed:
      if (rank == 1) return whole(dense);  // a bias
      if (rank < 2) return std::nullopt;
      return whole(dense.transpose(rank - 2, rank - 1));
    case Form::first_half:
    case Form::second_half:
      if (rank < 1) return std::nullopt;
      return half(dense, std::max(rank - 2, 0), form == Form::second_half);
    case Form::transposed_first_half:
    case Form::transposed_second_half:
      if (rank < 2) return std::nullopt;
      return half(dense.transpose(rank - 2, rank - 1), rank - 2,
                  form == Form::transposed_second_half);
    case Form::even:
    case Form::odd:
      if (rank == 2) return every_second(dense, 1, form == Form::odd);
      if (rank != 3) return std::nullopt;
      return every_second(dense.transpose(1, 2), 1, form == Form::odd);
    case Form::qkv_of_heads:
      return qkv_of_heads(source, sizes.heads);
    case Form::latent_keys: {
      const auto rows = rows_of_heads(source, sizes, 0, sizes.latent_keys);
      if (!rows) return std::nullopt;
      return whole(rows->transpose(1, 2));
    }
    case Form::latent_values: {
      const auto rows = rows_of_heads(source, sizes, sizes.latent_keys, sizes.latent_values);
      if (!rows) return std::nullopt;
      return whole(*rows);
    }
    case Form::mxfp4:
    case Form::mxfp4_even:
    case Form::mxfp4_odd: {
      constexpr int64_t kBlockBytes = 16, kBlockElems = 32;
      if (rank != 4 || source[3] != kBlockBytes) return std::nullopt;
      const std::optional<FormView> rows =
          form == Form::mxfp4 ? whole(dense) : every_second(dense, 1, form == Form::mxfp4_odd);
      if (!rows) return std::nullopt;
      return FormView{rows->layout, {source[0], rows->shape[1], source[2] * kBlockElems}};
    }
    case Form::squeezed: {
      if (rank == 1) return whole(dense);  // a bias
      if (rank != 3 || source[1] != 1) return std::nullopt;
      const std::optional<Layout> matrix = dense.reshape({source[0], source[2]});
      if (!matrix) return std::nullopt;
      return whole(*matrix);
    }
    case Form::column:
      if (rank != 1) return std::nullopt;
      return reshaped(dense, {source[0], 1});
    case Form::state_groups: {
      const int64_t groups = sizes.state_groups;
      if (rank != 1 || groups < 1 || source[0] % groups != 0) return std::nullopt;
      return reshaped(dense, {groups, source[0] / groups});
    }
    case Form::linear_qkv:
    case Form::linear_gate:
      return linear_rows(source, sizes, form == Form::linear_gate);
  }
  return std::nullopt;
}

}  // namespace wick::models::hf
