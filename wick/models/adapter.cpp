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
  if (!floats || t.rank() != 2) {
    throw Error(file.path(), "factor isn't a matrix of floats",
                fmt::format("{} {}", entry.name, t.str()));
  }
  return is_block(t.dtype()) ? dequantize(t) : t.to(DType::f32);
}

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
  for (hf::PeftFactors& f : hf::read_peft(path_, architecture, model)) {
    const bool added = entries_->emplace(f.name, Entry{{std::move(f.a), f.b * f.scale}}).second;
    if (!added) {
      throw Error(path_, "two modules have the same meaning", printable(f.module), f.name);
    }
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
    Factors factors{factor(*file, of + std::string(kA)), factor(*file, of + std::string(kB))};
    const int64_t rank = factors.a.size(0);
    if (rank < 1 || factors.b.size(1) != rank) {
      throw Error(path, "factors don't fit",
                  fmt::format("{}: {} and {}", of, factors.a.str(), factors.b.str()),
                  "need [rank, k] and [n, rank]");
    }
    // Without alpha, the factors are used as they are.
    if (alpha != 0.0f) factors.b = factors.b * (alpha / static_cast<float>(rank));
    entries_->emplace(of, Entry{std::move(factors)});
  }
  file->require_unchanged("load");
}

const Adapter::Factors* Adapter::find(const std::string& name, int64_t n, int64_t k) const {
  const auto it = entries_->find(name);
  if (it == entries_->end()) return nullptr;
  it->second.used = true;
  const Factors& f = it->second.factors;
  if (f.a.size(1) == k && f.b.size(0) == n) return &f;
  throw Error(path_, "factors don't fit the model",
              fmt::format("{}: {} and {}", name, f.a.str(), f.b.str()),
              fmt::format("the matrix is [{},{}]", n, k));
}

void Adapter::require_all_used() const {
  for (const auto& [name, entry] : *entries_) {
    if (entry.used) continue;
    throw Error(ErrorKind::not_implemented, path_, "factors that this version doesn't use", name,
                "the model has no such matrix, or adapters of it aren't supported");
  }
}

}  // namespace wick::models
