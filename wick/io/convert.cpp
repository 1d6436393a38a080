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
/// The smallest magnitude that rounds to infinity in f16, the type of blocks' scales.
constexpr float kF16Overflow = 65520.0f;

/// A type that files can be converted to.
struct Target {
  DType dtype;
  uint32_t file_type;  // general.file_type
  float limit;         // magnitudes of at least this value can't be stored
};
std::optional<Target> find_target(DType type) {
  if (type == DType::f32) return Target{type, 0, INFINITY};
  if (type == DType::f16) return Target{type, 1, kF16Overflow};
  if (type == DType::bf16) return Target{type, 32, 0x1.ffp127f};  // larger ones round to infinity
  if (!dtypes::kWrittenBlocks.contains(type)) return std::nullopt;
  const QuantInfo::Written& written = *quant(type).written;
  return Target{type, written.file_type, kF16Overflow * static_cast<float>(written.reach)};
}

Target require_target(DType type) {
  if (const std::optional<Target> target = find_target(type)) return *target;
  throw Error(ErrorKind::type, kOp, "can't convert to this type", name(type),
              "use " + names(dtypes::kWritten));
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

/// The type of the output matrix. It has more bits, because its errors affect the logits directly.
DType type_for_logits(DType type) {
  return type == DType::q4_k || type == DType::q6_k ? DType::q6_k : DType::q8_0;
}

/// The type for rows that aren't a multiple of the block size: a smaller block and at least as many
/// bits.
DType fallback(DType type) {
  return type == DType::q4_k ? DType::q5_0 : type == DType::q6_k ? DType::q8_0 : DType::f16;
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

/// Errors: the paths are those of one file.
void require_other(const std::string& in, const std::string& out) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(in, out, ignored)) return;
  throw Error(kOp, "input and output are the same file", printable(in));
}

class Converter {
 public:
  Converter(const ModelFile& in, const std::string& out, DType type,
            const QuantizeProgressFn& progress)
      : target_(require_target(type)), progress_(progress), source_(&in) {
    for (const std::string& path : in.files()) require_other(path, out);
    require_whole(in);
    for (const GgufTensor& tensor : source_->tensors()) {
      types_.push_back(choose(tensor));
      count_requantized(*tensor.dtype, types_.back());
      progress_state_.total_bytes += tensor.bytes;
    }
    progress_state_.count = source_->tensors().size();
    result_.bytes_in = source_->file_bytes();
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
    writer.set_u32("general.file_type", target_.file_type);
    writer.set_u32("general.quantization_version", 2);
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
    const DType to = target_.dtype;
    const bool is_norm = tensor.name.find("_norm") != std::string_view::npos;
    if (to == DType::f32 || tensor.shape.rank() <= 1 || is_norm) return DType::f32;
    if (keeps_type(tensor.name)) return from;
    if (!is_block(to)) return to;
    const bool tied = source_->find_tensor("output.weight") == nullptr;
    const bool makes_logits = tensor.name == (tied ? "token_embd.weight" : "output.weight");
    return fit_rows(tensor, makes_logits ? type_for_logits(to) : to);
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
    const int64_t parts = source_->parts(tensor);
    for (int64_t i = 0; i < parts; ++i) {
      const Tensor part = source_->part(tensor, i);
      const std::shared_ptr<const Bytes> file = source_->mapped(tensor, i);
      const auto* data = static_cast<const std::byte*>(part.storage()->data());
      convert_part(writer, tensor, to, {data, part.storage()->bytes()}, file.get());
    }
    report(tensor);
  }

  void convert_part(GgufWriter& writer, const GgufTensor& tensor, DType to,
                    std::span<const std::byte> bytes, const Bytes* file) {
    const DType from = *tensor.dtype;
    const int64_t k = tensor.shape.rank() > 0 ? tensor.shape.back() : 1;
    const int64_t rows = k > 0 ? tensor.shape.elems() / source_->parts(tensor) / k : 0;
    const int64_t step = std::max<int64_t>(1, kChunkElems / std::max<int64_t>(k, 1));
    for (int64_t row = 0; row < rows; row += step) {
      const int64_t count = std::min(step, rows - row);
      const auto begin = static_cast<size_t>(bytes_of(from, row * k));
      const auto part = bytes.subspan(begin, static_cast<size_t>(bytes_of(from, count * k)));
      report(tensor);
      writer.write(tensor.name,
                   from == to ? part : convert_rows(tensor, part, Shape{count, k}, from, to));
      if (file != nullptr) file->release(part);
      progress_state_.done_bytes += part.size();
    }
  }

  void report(const GgufTensor& tensor) {
    progress_state_.tensor = tensor.name;
    if (progress_ && !progress_(progress_state_)) throw Error(ErrorKind::runtime, kOp, "stopped");
  }

  std::span<const std::byte> convert_rows(const GgufTensor& tensor, std::span<const std::byte> in,
                                          const Shape& shape, DType from, DType to) {
    const Layout layout = Layout::contiguous(shape);
    const auto elems = static_cast<size_t>(shape.elems());
    const ConstView source{in.data(), from, layout};
    ConstView values = source;
    if (from != DType::f32) {
      values_.resize(std::max(values_.size(), elems));
      const View f32{values_.data(), DType::f32, layout};
      is_block(from) ? backend_.dequantize(f32, source) : backend_.cast(f32, source);
      values = f32;
    }
    check_range(tensor, {static_cast<const float*>(values.data), elems}, to);
    const auto bytes = static_cast<size_t>(bytes_of(to, shape.elems()));
    if (to == DType::f32) return std::as_bytes(std::span(values_).first(elems));
    converted_.resize(std::max(converted_.size(), bytes));
    const View out{converted_.data(), to, layout};
    is_block(to) ? backend_.quantize(out, values) : backend_.cast(out, values);
    return std::span(converted_).first(bytes);
  }

  /// Errors: a value is NaN or exceeds the type's range. Such a value would corrupt its whole
  /// block.
  void check_range(const GgufTensor& tensor, std::span<const float> values, DType to) {
    if (to == DType::f32) return;
    // As integers, magnitudes order like their values, and NaN is above infinity.
    uint32_t largest = 0;
    for (const float v : values) {
      largest = std::max(largest, std::bit_cast<uint32_t>(v) & 0x7fffffffu);
    }
    const float limit = find_target(to)->limit;
    if (largest < std::bit_cast<uint32_t>(limit)) return;
    throw Error(kOp, fmt::format("value doesn't fit in {}", name(to)),
                fmt::format("{} {}, {}", printable(tensor.name), tensor.str(),
                            std::bit_cast<float>(largest)),
                fmt::format("magnitudes must be below {}", limit));
  }

  const Target target_;
  const QuantizeProgressFn& progress_;
  Backend& backend_ = backend(Device::cpu());
  const ModelFile* source_;
  std::vector<DType> types_;  // types of the new file's tensors
  std::vector<float> values_;
  std::vector<std::byte> converted_;
  QuantizeProgress progress_state_;
  QuantizeResult result_;
};

}  // namespace

QuantizeResult quantize_gguf(const ModelFile& in, const std::string& out, DType type,
                             const QuantizeProgressFn& progress, const EditMetadataFn& edit) {
  return Converter(in, out, type, progress).run(out, edit);
}

QuantizeResult quantize_gguf(const std::string& in, const std::string& out, DType type,
                             const QuantizeProgressFn& progress) {
  require_target(type);
  require_other(in, out);
  return quantize_gguf(*open_gguf(in), out, type, progress);
}

}  // namespace wick::io
