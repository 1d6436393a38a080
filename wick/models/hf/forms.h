#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "wick/base/layout.h"

namespace wick::models::hf {

/// How a GGUF file's tensor is made of a tensor of a Hugging Face directory.
enum class Form : uint8_t {
  same,
  query_rows,  ///< rows of rotated heads: 0, h/2, 1, h/2 + 1, .. of each head's h rows
  key_rows,    ///< the same for the heads of keys
  transposed,  ///< of the last two dims
  first_half,  ///< of the second-last dim, or of the only one
  second_half,
  transposed_first_half,  ///< of the second-last dim after transposition
  transposed_second_half,
  even,  ///< rows 0, 2, .. of the second-last dim after transposition; of a matrix: columns
  odd,
  qkv_of_heads,   ///< rows in the order head, part, row become part, head, row; 3 parts
  latent_keys,    ///< of each head the rows of the keys, transposed
  latent_values,  ///< of each head the rows of the values
  mxfp4,          ///< blocks [e, n, k/32, 16] and scales [e, n, k/32] become blocks of MXFP4
  mxfp4_even,     ///< the same of rows 0, 2, ..
  mxfp4_odd,
  squeezed,      ///< [n, 1, k] becomes [n, k]
  column,        ///< [n] becomes [n, 1]
  state_groups,  ///< [n] becomes [groups, n / groups]
  linear_qkv,    ///< rows in the order head, part (q, k, v, z), row: q, k and v of all heads
  linear_gate,   ///< the same: z of all heads
};

/// The sizes that forms need.
struct Sizes {
  int64_t heads = 0, kv_heads = 0;
  int64_t latent_keys = 0;    ///< elements of a head's key that aren't rotated
  int64_t latent_values = 0;  ///< elements of a head's value
  int64_t state_groups = 0;   ///< of the norm after a scan of states
  int64_t linear_heads = 0;   ///< of keys in linear attention
  int64_t linear_keys = 0;    ///< elements of such a key
  int64_t linear_values = 0;  ///< elements of the values of such a head
};

/// The elements of a source in the order of the result, and the result's shape.
struct FormView {
  Layout layout;
  Shape shape;
  std::vector<Layout> more = {};  ///< views whose elements follow those of `layout`
};

/// The result of a form for a source of a shape, as a view of the dense source; the view's dims may
/// be finer than those of the result. Nothing if the source hasn't the rank or sizes that the form
/// needs. MXFP4's forms are applied to the blocks.
std::optional<FormView> view_of(Form form, const Shape& source, const Sizes& sizes);

/// Whether a form only chooses and orders the rows of a matrix.
bool moves_rows(Form form);

/// Whether a form makes blocks of MXFP4.
inline bool is_mxfp4(Form form) {
  return form == Form::mxfp4 || form == Form::mxfp4_even || form == Form::mxfp4_odd;
}

}  // namespace wick::models::hf
