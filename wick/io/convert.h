#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/dtype.h"
#include "wick/base/export.h"
#include "wick/io/file_type.h"
#include "wick/io/gguf_metadata.h"
#include "wick/io/importance.h"
#include "wick/io/model_file.h"

namespace wick::io {

/// Progress of quantize_gguf.
struct QuantizeProgress {
  std::string_view tensor;  ///< name of the tensor being converted
  size_t index = 0;         ///< its index in the file
  size_t count = 0;         ///< number of all tensors
  uint64_t done_bytes = 0;  ///< bytes of the source converted so far
  uint64_t total_bytes = 0;
};

/// Called many times per second; the conversion stops if it returns false.
using QuantizeProgressFn = std::function<bool(const QuantizeProgress&)>;

/// Changes the keys of the new file, which are those of the source so far.
using EditMetadataFn = std::function<void(GgufMetadata&)>;

/// A dtype for weights whose names contain `pattern`, in which * stands for any characters.
struct TensorType {
  std::string pattern;
  DType dtype;
};

/// What quantize_gguf writes.
struct QuantizeOptions {
  FileType type;
  std::vector<TensorType> tensor_types = {};  ///< the first that fits a name counts
  std::optional<DType> output_type = {};      ///< of the output matrix, or of a tied embedding
  std::optional<DType> embedding_type = {};   ///< of the embedding table
  const Importance* importance = nullptr;     ///< weights the errors of quants; null: all equally
};

/// A summary of what quantize_gguf wrote.
struct QuantizeResult {
  struct PerType {
    DType dtype;
    size_t tensors = 0;
    uint64_t bytes = 0;
  };
  /// Tensors that got another type than `wanted`, because their rows aren't a multiple of its block
  /// size.
  struct Replaced {
    DType wanted, type;
    size_t tensors = 0;
  };
  /// Tensors converted from one quantised type to another, which rounds them twice.
  struct Requantized {
    DType from, to;
    size_t tensors = 0;
  };
  std::vector<PerType> types;      ///< types in the new file, in order of first appearance
  std::vector<std::string> notes;  ///< one line for each tensor that got another type than wanted
  std::vector<Replaced> replaced;  ///< the tensors of `notes`, counted by type
  std::vector<Requantized> requantized;
  /// Tensors with values that are NaN or infinite.
  struct NotFinite {
    std::string tensor;
    uint64_t values = 0;
  };
  std::vector<NotFinite> not_finite;
  /// Quantised weights without data in the importance matrix, except tables and the output matrix,
  /// and weights of experts of which some have none. Empty if none was given.
  std::vector<std::string> without_importance, partial_importance;
  std::vector<std::string>
      unused_patterns;     ///< of QuantizeOptions::tensor_types: no weight got them
  uint64_t bytes_in = 0;   ///< size of the source file
  uint64_t bytes_out = 0;  ///< size of the new file
};

/// Writes a copy of a model as one GGUF file with its weights converted to the dtypes of a file
/// type. Source tensors may have any block dtype, f32, f16, bf16 or f64; they are converted by way
/// of f32, and tensors that already have the type are copied unchanged.
///
/// One-dimensional tensors and norms become f32. Integers are copied, and so are routers of experts
/// and position tables, which become f32 if the type is f32. The output matrix, or a tied
/// embedding, becomes q8_0 for q4_0, q4_1, q5_0, q5_1, q8_0 and mxfp4, q5_k for the mixtures of
/// iq1, iq2 and iq3_xxs, q6_k for other block dtypes, and f16, bf16 or f32 for these. A weight
/// whose rows aren't a multiple of the block size becomes q4_0 instead of q2_k, q3_k, tq1_0, tq2_0,
/// q1_0 and q2_0, q5_0 instead of q4_k, q5_1 instead of q5_k, q8_0 instead of q6_k, iq4_nl instead
/// of other types that begin with iq, mxfp4 instead of nvfp4, else f16, and is listed in `notes`.
///
/// Blocks of q4_0, q4_1, q5_0, q5_1 and q8_0 are those of the op `quantize` unless there is data in
/// an importance matrix. Blocks of other types, and with such data all but q8_0, have the least
/// squared error that a search finds (backend/cpu/search), weighted by the mean squares of the
/// data.
///
/// The new file gets the permission bits that all files of the source have, restricted by the
/// umask. Errors: `out` is one of these files or that of the importance matrix; the source is a
/// saved session or an importance matrix; a source type can't be converted; a value that is to be
/// rounded isn't finite or exceeds the type's range; the importance matrix is that of another
/// model; there is none, and a weight other than tables and the output matrix is to become iq1_s,
/// iq1_m, iq2_xxs, iq2_xs, iq2_s or iq3_xxs; a dtype of `options` isn't one of
/// dtypes::kWeightFiles; the disk is full; the conversion was stopped. After an error `out` isn't
/// written.
WICK_API QuantizeResult quantize_gguf(const ModelFile& in, const std::string& out,
                                      const QuantizeOptions& options,
                                      const QuantizeProgressFn& progress = {},
                                      const EditMetadataFn& edit = {});
/// The same for one dtype, without a mixture.
WICK_API QuantizeResult quantize_gguf(const ModelFile& in, const std::string& out, DType type,
                                      const QuantizeProgressFn& progress = {});
/// The same for a GGUF file or a split one. Errors: also those of open_gguf().
WICK_API QuantizeResult quantize_gguf(const std::string& in, const std::string& out, DType type,
                                      const QuantizeProgressFn& progress = {});

}  // namespace wick::io
