#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/export.h"

namespace wick::io {

/// Progress of quantize_gguf.
struct QuantizeProgress {
  std::string_view tensor;  ///< the one being converted
  size_t index = 0;         ///< its place in the file
  size_t count = 0;         ///< tensors in all
  uint64_t done_bytes = 0;  ///< of the source
  uint64_t total_bytes = 0;
};

/// Called many times a second; false stops the work.
using QuantizeProgressFn = std::function<bool(const QuantizeProgress&)>;

/// What quantize_gguf wrote.
struct QuantizeResult {
  struct PerType {
    DType dtype;
    size_t tensors = 0;
    uint64_t bytes = 0;
  };
  /// Tensors of another type than `wanted`, since their rows aren't whole blocks of that.
  struct Replaced {
    DType wanted, type;
    size_t tensors = 0;
  };
  /// Tensors converted from one quantised type to another, which loses precision a second time.
  struct Requantized {
    DType from, to;
    size_t tensors = 0;
  };
  std::vector<PerType> types;      ///< of the new file, in the order they first appear
  std::vector<std::string> notes;  ///< one line for each tensor that couldn't have its type
  std::vector<Replaced> replaced;  ///< the tensors of `notes`, counted by types
  std::vector<Requantized> requantized;
  uint64_t bytes_in = 0;           ///< size of the source file
  uint64_t bytes_out = 0;          ///< size of the new file
};

/// Writes a copy of a GGUF model with its weights in another type, one of dtypes::kWritten,
/// from any block dtype or f32, f16, bf16 and f64 (by way of f32; tensors that have
/// their type already are copied as they are).
///
/// One-dimensional tensors and norms become f32; integers, routers of experts and tables of
/// positions stay as they are. The output matrix, or a tied embedding, becomes q8_0 for q4_0, q4_1
/// and q5_0, and q6_k for q4_k. A weight whose rows are no multiple of the type's block becomes,
/// with a note, q5_0 in place of q4_k, q8_0 in place of q6_k, else f16.
/// The new file has the permission bits of the source, less those of the umask.
/// Errors: `out` is `in`, one part of a split model, a source type that can't be converted, values
/// that are not finite or past the type's range, disk full, stopped. `out` is then not written.
WICK_API QuantizeResult quantize_gguf(const std::string& in, const std::string& out, DType type,
                                      const QuantizeProgressFn& progress = {});

}  // namespace wick::io
