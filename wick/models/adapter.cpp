#include "wick/models/adapter.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/models/hf/peft.h"
#include "wick/tensor/ops.h"

namespace wick::models {
namespace {

constexpr std::string_view kA = ".lora_a", kB = ".lora_b";
constexpr std::string_view kTable = "token_embd.weight";

void require_lora(const io::Gguf& file, std::string_view architecture) {
  const auto fail = [&](std::string_view what, std::string_view detail, std::string_view hint) {
    throw Error(file.path(), what, detail, hint);
  };
  const std::string_view type = file.get_string("general.type", "model");
  if (type != "adapter") {
    fail("not an adapter", fmt::format("general.type = '{}'", printable(type)), "need 'adapter'");
  }
  const std::string_view kind = file.get_string("adapter.type", "");
  if (kind != "lora") {
    throw Error(ErrorKind::not_implemented, file.path(), "unsupported kind of adapter",
                fmt::format("'{}'", printable(kind)), "this version supports lora");
  }
  const std::string_view of = file.get_string("general.architecture");
  if (of != architecture) {
    fail("adapter of another architecture", fmt::format("'{}'", printable(of)),
         fmt::format("the model's is '{}'", architecture));
  }
}

Tensor factor(const io::Gguf& file, const std::string& name) {
  const io::GgufTensor& entry = file.require_tensor(name);
  const Tensor t = file.tensor(entry);
  const bool floats = is_float(t.dtype()) || is_block(t.dtype());
  if (!floats || (t.rank() != 2 && t.rank() != 3)) {
    throw Error(file.path(), "factor isn't a matrix of floats",
                fmt::format("{} {}", entry.name, t.str()),
                "need two dims, or three for a stack of matrices");
  }
  return is_block(t.dtype()) ? dequantize(t) : t.to(DType::f32);
}

/// The rank of two factors, or 0 if they don't fit. Those of the embedding table are [vocabulary,
/// rank] and [hidden, rank], because the table is read by row.
int64_t rank_of(const std::string& name, const Tensor& a, const Tensor& b) {
  const bool is_table = name == kTable;
  if (a.rank() != b.rank() || (is_table && a.rank() != 2)) return 0;
  if (a.rank() == 3 && a.size(0) != b.size(0)) return 0;
  const int64_t rank = a.size(is_table ? -1 : -2);
  return b.size(-1) == rank ? rank : 0;
}

bool has_shape(const Tensor& x, const Shape& shape) { return !x.defined() || x.shape() == shape; }

}  // namespace

Adapter Adapter::open(const std::string& path, std::string_view architecture,
                      const io::ModelFile& model) {
  Adapter adapter;
  adapter.path_ = path;
  adapter.entries_ = std::make_shared<std::map<std::string, Entry>>();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    adapter.read_folder(architecture, model);
  } else {
    adapter.read_gguf(architecture);
  }
  if (adapter.entries_->empty()) throw Error(printable(path), "adapter has no factors");
  return adapter;
}

void Adapter::read_folder(std::string_view architecture, const io::ModelFile& model) {
  for (hf::PeftChange& change : hf::read_peft(path_, architecture, model)) {
    entries_->emplace(std::move(change.name), Entry{std::move(change.change)});
  }
}

void Adapter::read_gguf(std::string_view architecture) {
  const std::string& path = path_;
  const auto file = io::Gguf::open(path);
  require_lora(*file, architecture);
  const float alpha = file->get_f32("adapter.lora.alpha", 0.0f);
  if (!std::isfinite(alpha)) {
    throw Error(path, "value out of range", fmt::format("adapter.lora.alpha = {}", alpha),
                "need a finite number");
  }
  for (const io::GgufTensor& t : file->tensors()) {
    if (t.name.ends_with(kB)) {
      const std::string of(t.name.substr(0, t.name.size() - kB.size()));
      file->require_tensor(of + std::string(kA));
      continue;
    }
    if (!t.name.ends_with(kA)) {
      throw Error(path, "tensor that isn't a factor", fmt::format("{} {}", t.name, t.str()),
                  "need names that end in .lora_a or .lora_b");
    }
    const std::string of(t.name.substr(0, t.name.size() - kA.size()));
    MatrixChange change;
    change.a = factor(*file, of + std::string(kA));
    change.b = factor(*file, of + std::string(kB));
    const int64_t rank = rank_of(of, change.a, change.b);
    if (rank < 1) {
      throw Error(path, "factors don't fit",
                  fmt::format("{}: {} and {}", of, change.a.str(), change.b.str()),
                  of == kTable ? "need [vocabulary, rank] and [hidden, rank]"
                               : "need [rank, k] and [n, rank], or [count, rank, k] and [count, "
                                 "n, rank] for a stack of matrices");
    }
    // Without alpha, the factors are used as they are.
    if (alpha != 0.0f) change.b = change.b * (alpha / static_cast<float>(rank));
    entries_->emplace(of, Entry{std::move(change)});
  }
  file->require_unchanged("load");
}

const MatrixChange* Adapter::take(const std::string& name) const {
  const auto it = entries_->find(name);
  if (it == entries_->end()) return nullptr;
  it->second.used = true;
  return &it->second.change;
}

void Adapter::wrong_sizes(const std::string& name, const MatrixChange& change,
                          const Shape& matrix) const {
  std::string sizes;
  for (const Tensor* t :
       {&change.a, &change.b, &change.magnitude, &change.whole, &change.shift, &change.bias}) {
    if (t->defined()) sizes += (sizes.empty() ? "" : " and ") + t->str();
  }
  throw Error(path_, "factors don't fit the model", fmt::format("{}: {}", name, sizes),
              fmt::format("the matrix is {}", matrix.str()));
}

const MatrixChange* Adapter::find(const std::string& name, int64_t n, int64_t k) const {
  const MatrixChange* const change = take(name);
  if (change == nullptr) return nullptr;
  const auto& [a, b, magnitude, whole, shift, bias] = *change;
  const bool factors = !a.defined() || (a.rank() == 2 && a.size(1) == k && b.size(0) == n);
  const bool vectors = has_shape(magnitude, {n}) && has_shape(shift, {n}) && has_shape(bias, {n});
  if (!factors || !vectors || !has_shape(whole, {n, k})) wrong_sizes(name, *change, {n, k});
  return change;
}

const MatrixChange* Adapter::find_table(const std::string& name, int64_t rows, int64_t size) const {
  const MatrixChange* const change = take(name);
  if (change == nullptr) return nullptr;
  const auto& [a, b, magnitude, whole, shift, bias] = *change;
  const bool factors = !a.defined() || (a.rank() == 2 && a.size(0) == rows && b.size(0) == size);
  const bool none = !magnitude.defined() && !shift.defined() && !bias.defined();
  if (!factors || !none || !has_shape(whole, {rows, size})) {
    wrong_sizes(name, *change, {rows, size});
  }
  return change;
}

const MatrixChange* Adapter::find_stack(const std::string& name, int64_t count, int64_t n,
                                        int64_t k) const {
  const MatrixChange* const change = take(name);
  if (change == nullptr) return nullptr;
  const auto& [a, b, magnitude, whole, shift, bias] = *change;
  const bool only_factors =
      a.defined() && a.rank() == 3 && !magnitude.defined() && !shift.defined() && !bias.defined();
  if (!only_factors || a.size(0) != count || a.size(2) != k || b.size(1) != n) {
    wrong_sizes(name, *change, {count, n, k});
  }
  return change;
}

void Adapter::require_all_used() const {
  for (const auto& [name, entry] : *entries_) {
    if (entry.used) continue;
    throw Error(ErrorKind::not_implemented, path_, "factors that this version doesn't use", name,
                "the model has no such matrix, or adapters of it aren't supported");
  }
}

}  // namespace wick::models
