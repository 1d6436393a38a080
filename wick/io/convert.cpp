#include "wick/io/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "wick/backend/backend.h"
#include "wick/backend/cpu/search/search.h"
#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/quant.h"
#include "wick/io/gguf_writer.h"
#include "wick/io/split_file.h"

namespace wick::io {
namespace {

constexpr const char* kOp = "quantize";
/// The number of f32 values converted at a time; buffers of 4 MiB stay in the cache.
constexpr int64_t kChunkElems = int64_t{1} << 20;
/// Fewer for searches, so that the progress is shown and Ctrl-C is seen several times a second.
constexpr int64_t kSearchedElems = int64_t{1} << 18;
/// The smallest magnitude that rounds to infinity in f16, the type of most blocks' scales.
constexpr float kF16Overflow = 65520.0f;
/// The smallest magnitude that rounds to 480, which e4m3 doesn't have.
constexpr float kE4m3Overflow = 464.0f;

/// Magnitudes of at least this value can't be stored.
float limit_of(DType type) {
  if (type == DType::f16) return kF16Overflow;
  if (type == DType::bf16) return 0x1.ffp127f;  // larger ones round to infinity
  if (!is_block(type)) return INFINITY;
  const QuantInfo& info = quant(type);
  const float scale = info.scale == QuantScale::e8m0   ? 0x1p127f
                      : info.scale == QuantScale::e4m3 ? kE4m3Overflow
                                                       : kF16Overflow;
  return scale * static_cast<float>(info.reach);
}

/// Whether blocks of a type are searched even without an importance matrix.
bool always_searched(DType type) {
  return dtypes::kSearched.contains(type) &&
         (!dtypes::kWrittenBlocks.contains(type) || info(type).block_elems == 256);
}

/// Errors: wick can't write the dtype.
FileType require_file_type(DType type) {
  if (const std::optional<FileType> found = file_type_of(type)) return *found;
  throw Error(ErrorKind::type, kOp, "can't convert to this type", name(type),
              "use " + names(dtypes::kWeightFiles));
}

/// Errors: wick can't write one of the dtypes.
const QuantizeOptions& checked(const QuantizeOptions& options) {
  require_file_type(options.type.dtype);
  for (const TensorType& given : options.tensor_types) require_file_type(given.dtype);
  if (options.output_type) require_file_type(*options.output_type);
  if (options.embedding_type) require_file_type(*options.embedding_type);
  return options;
}

/// Whether a name contains a pattern, in which * stands for any characters.
bool contains_pattern(std::string_view name, std::string_view pattern) {
  for (;;) {
    const size_t star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    const size_t at = name.find(part);
    if (at == std::string_view::npos) return false;
    if (star == std::string_view::npos) return true;
    name.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
  }
}

/// Small tensors keep their type, because their precision matters and other programs expect them
/// unquantised.
bool keeps_type(std::string_view tensor) {
  if (!tensor.ends_with(".weight")) return true;
  constexpr std::array<std::string_view, 5> kKept = {"ffn_gate_inp", "position_embd", "token_types",
                                                     "ssm_conv1d", "attn_rel_b"};
  return std::any_of(kKept.begin(), kKept.end(), [&](std::string_view part) {
    return tensor.find(part) != std::string_view::npos;
  });
}

/// The type for rows that aren't a multiple of the block size: a smaller block and at least as many
/// bits.
DType fallback(DType type) {
  switch (type) {
    case DType::q2_k:
    case DType::q3_k:
    case DType::tq1_0:
    case DType::tq2_0:
    case DType::q1_0:
    case DType::q2_0:
      return DType::q4_0;
    case DType::q4_k:
      return DType::q5_0;
    case DType::q5_k:
      return DType::q5_1;
    case DType::q6_k:
      return DType::q8_0;
    case DType::iq1_s:
    case DType::iq1_m:
    case DType::iq2_xxs:
    case DType::iq2_xs:
    case DType::iq2_s:
    case DType::iq3_xxs:
    case DType::iq3_s:
    case DType::iq4_xs:
      return DType::iq4_nl;
    case DType::nvfp4:
      return DType::mxfp4;
    default:
      return DType::f16;
  }
}

/// Types that are useless for a model's layers if all columns count alike.
constexpr DTypeSet kNeedImportance = DTypeSet::of(DType::iq1_s, DType::iq1_m, DType::iq2_xxs,
                                                  DType::iq2_xs, DType::iq2_s, DType::iq3_xxs);

/// Tables and the output matrix, for which importance matrices usually have no data.
bool never_has_importance(std::string_view tensor) {
  return tensor == "output.weight" || tensor.find("token_embd") != std::string_view::npos;
}

uint64_t count_not_finite(std::span<const float> values) {
  uint64_t count = 0;
  for (const float v : values) {
    count += (std::bit_cast<uint32_t>(v) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return count;
}

/// The permission bits that all files have, without set-user-ID and similar bits.
uint32_t permissions_of(const std::vector<std::string>& paths) {
  auto bits = std::filesystem::perms::all;
  for (const std::string& path : paths) {
    std::error_code failed;
    const auto of_file = std::filesystem::status(path, failed).permissions();
    if (failed) return 0666;
    bits &= of_file;
  }
  return static_cast<uint32_t>(bits);
}

class Converter {
 public:
  Converter(const ModelFile& in, const std::string& out, const QuantizeOptions& options,
            const QuantizeProgressFn& progress)
      : options_(checked(options)),
        mixture_(in, options.type, options.importance != nullptr),
        progress_(progress),
        source_(&in) {
    std::vector<std::string> inputs = in.files();
    for (std::string& path : paths_of_model(in.path())) inputs.push_back(std::move(path));
    if (options.importance != nullptr) inputs.push_back(options.importance->path);
    require_not_input(kOp, out, inputs);
    require_model(in);
    require_whole(in);
    if (options.importance != nullptr) options.importance->require_fits(in);
    uses_.resize(options.tensor_types.size());
    for (const GgufTensor& tensor : source_->tensors()) {
      types_.push_back(choose(tensor));
      if (options.importance == nullptr) refuse_without_importance(tensor, types_.back());
      count_requantized(*tensor.dtype, types_.back());
      progress_state_.total_bytes += tensor.bytes;
    }
    progress_state_.count = source_->tensors().size();
    result_.bytes_in = source_->file_bytes();
    for (size_t i = 0; i < uses_.size(); ++i) {
      if (uses_[i] == 0) result_.unused_patterns.push_back(options.tensor_types[i].pattern);
    }
  }

  QuantizeResult run(const std::string& out, const EditMetadataFn& edit) {
    // Copies the permissions, so that users who can't read the source can't read the copy.
    GgufWriter writer(out, permissions_of(source_->files()));
    writer.copy_metadata(*source_);
    for (const GgufEntry& entry : source_->metadata()) {
      // These keys describe the source's files and quantisation, not the copy's.
      if (entry.key.starts_with("split.") || entry.key.starts_with("quantize.imatrix.")) {
        writer.remove(entry.key);
      }
    }
    if (edit) edit(writer);
    writer.set_u32("general.file_type", options_.type.number);
    writer.set_u32("general.quantization_version", 2);
    if (options_.importance != nullptr) describe_importance(writer);
    for (size_t i = 0; i < types_.size(); ++i) announce(writer, source_->tensors()[i], types_[i]);
    try {
      for (size_t i = 0; i < types_.size(); ++i) {
        progress_state_.index = i;
        convert(writer, source_->tensors()[i], types_[i]);
      }
    } catch (const Error&) {
      source_->require_unchanged(
          kOp);  // reports the change instead of an error in the changed contents
      throw;
    }
    source_->require_unchanged(kOp);
    writer.finish();
    result_.bytes_out = writer.file_bytes();
    return std::move(result_);
  }

 private:
  DType choose(const GgufTensor& tensor) {
    source_->require_readable(tensor);  // even if the tensor would be copied
    const DType from = *tensor.dtype;
    if (is_integer(from)) return from;
    const DType to = options_.type.dtype;
    const bool is_norm = tensor.name.find("_norm") != std::string_view::npos;
    if (tensor.shape.rank() <= 1 || is_norm) return DType::f32;
    if (keeps_type(tensor.name)) return to == DType::f32 ? to : from;
    for (size_t i = 0; i < options_.tensor_types.size(); ++i) {
      const TensorType& given = options_.tensor_types[i];
      if (!contains_pattern(tensor.name, given.pattern)) continue;
      ++uses_[i];
      return fit_rows(tensor, given.dtype);
    }
    const bool is_embedding = tensor.name == "token_embd.weight";
    if (is_embedding && options_.embedding_type) return fit_rows(tensor, *options_.embedding_type);
    const bool tied = source_->find_tensor("output.weight") == nullptr;
    const bool makes_logits = tied ? is_embedding : tensor.name == "output.weight";
    if (makes_logits && options_.output_type) return fit_rows(tensor, *options_.output_type);
    return fit_rows(tensor, mixture_.dtype_of(tensor));
  }

  /// Errors: the type of a weight needs an importance matrix.
  static void refuse_without_importance(const GgufTensor& tensor, DType to) {
    if (!kNeedImportance.contains(to) || *tensor.dtype == to) return;
    if (never_has_importance(tensor.name)) return;
    throw Error(kOp, fmt::format("{} needs an importance matrix", name(to)),
                fmt::format("{} {}", printable(tensor.name), tensor.str()),
                "make one with wick imatrix, and give it with --imatrix");
  }

  void describe_importance(GgufWriter& writer) {
    const Importance& importance = *options_.importance;
    writer.set_string("quantize.imatrix.file", importance.path);
    if (!importance.datasets.empty()) {
      writer.set_string("quantize.imatrix.dataset", importance.datasets.front());
    }
    writer.set_u32("quantize.imatrix.entries_count",
                   static_cast<uint32_t>(importance.entries.size()));
    writer.set_u32("quantize.imatrix.chunks_count", importance.chunk_count);
  }

  /// Sets columns_ to the weights' importance [matrices, k] for a type that uses it, or to nothing.
  void find_importance(const GgufTensor& tensor, DType to) {
    columns_.clear();
    if (options_.importance == nullptr || !is_block(to) || *tensor.dtype == to) return;
    if (!dtypes::kSearched.contains(to)) return;
    columns_ = options_.importance->mean_squares(tensor);
    const auto k = tensor.shape.back();
    int64_t matrices = 0, with_data = 0;
    for (auto row = columns_.begin(); row != columns_.end(); row += k, ++matrices) {
      if (std::any_of(row, row + k, [](float v) { return v > 0.0f; })) ++with_data;
    }
    if (with_data == 0) {
      columns_.clear();
      if (!never_has_importance(tensor.name)) {
        result_.without_importance.emplace_back(tensor.name);
      }
    } else if (with_data < matrices) {
      result_.partial_importance.emplace_back(tensor.name);
    }
  }

  /// Returns `wanted`, or its first fallback whose block size divides the tensor's rows.
  DType fit_rows(const GgufTensor& tensor, DType wanted) {
    const int64_t k = tensor.shape.back();
    DType type = wanted;
    while (k % info(type).block_elems != 0) type = fallback(type);
    if (type != wanted) {
      count_replaced(wanted, type);
      result_.notes.push_back(fmt::format(
          "{} {} becomes {}: its rows of {} are not a multiple of {}", printable(tensor.name),
          tensor.str(), name(type), k, info(wanted).block_elems));
    }
    return type;
  }

  void count_replaced(DType wanted, DType type) {
    auto& rows = result_.replaced;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const auto& r) { return r.wanted == wanted && r.type == type; });
    if (row == rows.end()) row = rows.insert(row, {wanted, type, 0});
    row->tensors += 1;
  }

  /// Counts a tensor converted from one quantised type to another.
  void count_requantized(DType from, DType to) {
    if (!is_block(from) || !is_block(to) || from == to) return;
    auto& rows = result_.requantized;
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const auto& r) { return r.from == from && r.to == to; });
    if (row == rows.end()) row = rows.insert(row, {from, to, 0});
    row->tensors += 1;
  }

  void announce(GgufWriter& writer, const GgufTensor& tensor, DType type) {
    writer.add_tensor(tensor.name, type, tensor.shape);
    auto& types = result_.types;
    auto row =
        std::find_if(types.begin(), types.end(), [&](const auto& t) { return t.dtype == type; });
    if (row == types.end()) row = types.insert(row, {type, 0, 0});
    row->tensors += 1;
    row->bytes += static_cast<uint64_t>(bytes_of(type, tensor.shape.elems()));
  }

  void convert(GgufWriter& writer, const GgufTensor& tensor, DType to) {
    find_importance(tensor, to);
    not_finite_ = 0;
    const int64_t parts = source_->parts(tensor);
    for (int64_t i = 0; i < parts; ++i) {
      const Tensor part = source_->part(tensor, i);
      const std::shared_ptr<const Bytes> file = source_->mapped(tensor, i);
      const auto* data = static_cast<const std::byte*>(part.storage()->data());
      convert_part(writer, tensor, to, {data, part.storage()->bytes()}, i, file.get());
    }
    if (not_finite_ > 0) result_.not_finite.push_back({std::string(tensor.name), not_finite_});
    report(tensor);
  }

  void convert_part(GgufWriter& writer, const GgufTensor& tensor, DType to,
                    std::span<const std::byte> bytes, int64_t index, const Bytes* file) {
    const DType from = *tensor.dtype;
    const int64_t k = tensor.shape.rank() > 0 ? tensor.shape.back() : 1;
    const int64_t rows = k > 0 ? tensor.shape.elems() / source_->parts(tensor) / k : 0;
    // Rows of one matrix have the same importance.
    const int64_t matrices = columns_.empty() ? 1 : static_cast<int64_t>(columns_.size()) / k;
    const int64_t of_matrix = rows * source_->parts(tensor) / matrices;
    const bool searched = !columns_.empty() || always_searched(to);
    const int64_t elems = searched ? kSearchedElems : kChunkElems;
    const int64_t step = std::max<int64_t>(1, elems / std::max<int64_t>(k, 1));
    for (int64_t row = 0; row < rows;) {
      const int64_t at = index * rows + row;  // of the whole tensor
      int64_t count = std::min(step, rows - row);
      if (matrices > 1) count = std::min(count, of_matrix - at % of_matrix);
      const auto begin = static_cast<size_t>(bytes_of(from, row * k));
      const auto part = bytes.subspan(begin, static_cast<size_t>(bytes_of(from, count * k)));
      report(tensor);
      const float* const columns =
          columns_.empty() ? nullptr : columns_.data() + (matrices > 1 ? at / of_matrix * k : 0);
      writer.write(tensor.name, convert_rows(tensor, part, Shape{count, k}, from, to, columns));
      if (file != nullptr) file->release(part);
      progress_state_.done_bytes += part.size();
      row += count;
    }
  }

  void report(const GgufTensor& tensor) {
    progress_state_.tensor = tensor.name;
    if (progress_ && !progress_(progress_state_)) throw Error(ErrorKind::runtime, kOp, "stopped");
  }

  /// Rows of a tensor as f32. Integers don't come here.
  std::span<const float> values_of(const ConstView& source) {
    const auto elems = static_cast<size_t>(source.layout.elems());
    if (source.dtype == DType::f32) return {static_cast<const float*>(source.data), elems};
    values_.resize(std::max(values_.size(), elems));
    const View f32{values_.data(), DType::f32, source.layout};
    is_block(source.dtype) ? backend_.dequantize(f32, source) : backend_.cast(f32, source);
    return std::span(values_).first(elems);
  }

  /// columns: the importance of each column, or null.
  std::span<const std::byte> convert_rows(const GgufTensor& tensor, std::span<const std::byte> in,
                                          const Shape& shape, DType from, DType to,
                                          const float* columns) {
    const Layout layout = Layout::contiguous(shape);
    if (is_integer(from)) return in;
    const std::span<const float> values = values_of({in.data(), from, layout});
    if (from == to || to == DType::f32) {
      not_finite_ += count_not_finite(values);
      return from == to ? in : std::as_bytes(values);
    }
    check_range(tensor, values, to);
    const auto bytes = static_cast<size_t>(bytes_of(to, shape.elems()));
    converted_.resize(std::max(converted_.size(), bytes));
    const View out{converted_.data(), to, layout};
    const ConstView f32{values.data(), DType::f32, layout};
    if (!is_block(to)) {
      backend_.cast(out, f32);
    } else if (columns != nullptr || always_searched(to)) {
      cpu::search_rows(to, values.data(), shape[0], shape[1], columns, converted_.data());
    } else {
      backend_.quantize(out, f32);
    }
    return std::span(converted_).first(bytes);
  }

  /// Errors: a value is NaN or exceeds the type's range. Such a value would corrupt its whole
  /// block.
  void check_range(const GgufTensor& tensor, std::span<const float> values, DType to) {
    // As integers, magnitudes order like their values, and NaN is above infinity.
    uint32_t largest = 0;
    for (const float v : values) {
      largest = std::max(largest, std::bit_cast<uint32_t>(v) & 0x7fffffffu);
    }
    const float limit = limit_of(to);
    if (largest < std::bit_cast<uint32_t>(limit)) return;
    throw Error(kOp, fmt::format("value doesn't fit in {}", name(to)),
                fmt::format("{} {}, {}", printable(tensor.name), tensor.str(),
                            std::bit_cast<float>(largest)),
                fmt::format("magnitudes must be below {}", limit));
  }

  const QuantizeOptions& options_;
  const Mixture mixture_;
  const QuantizeProgressFn& progress_;
  Backend& backend_ = backend(Device::cpu());
  const ModelFile* source_;
  std::vector<DType> types_;  // types of the new file's tensors
  std::vector<size_t> uses_;  // the number of weights that got each of tensor_types
  std::vector<float> values_;
  std::vector<std::byte> converted_;
  std::vector<float> columns_;  // the importance of the current tensor's columns, or empty
  uint64_t not_finite_ = 0;     // values of the current tensor
  QuantizeProgress progress_state_;
  QuantizeResult result_;
};

}  // namespace

QuantizeResult quantize_gguf(const ModelFile& in, const std::string& out,
                             const QuantizeOptions& options, const QuantizeProgressFn& progress,
                             const EditMetadataFn& edit) {
  return Converter(in, out, options, progress).run(out, edit);
}

QuantizeResult quantize_gguf(const ModelFile& in, const std::string& out, DType type,
                             const QuantizeProgressFn& progress) {
  return quantize_gguf(in, out, QuantizeOptions{.type = require_file_type(type)}, progress);
}

QuantizeResult quantize_gguf(const std::string& in, const std::string& out, DType type,
                             const QuantizeProgressFn& progress) {
  require_file_type(type);
  require_not_input(kOp, out, {&in, 1});
  return quantize_gguf(*open_gguf(in), out, type, progress);
}

}  // namespace wick::io
