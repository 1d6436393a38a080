#include "wick/models/metadata.h"

#include <fmt/format.h>

#include <cmath>

#include "wick/base/error.h"

namespace wick::models {

Metadata::Metadata(const io::ModelFile& file)
    : file_(file), architecture_(file.get_string("general.architecture")) {}

std::string Metadata::key(std::string_view name) const {
  return fmt::format("{}.{}", architecture_, name);
}

void Metadata::out_of_range(std::string_view name, std::string_view value,
                            std::string_view rule) const {
  throw Error(file_.path(), "value out of range", fmt::format("{} = {}", key(name), value),
              fmt::format("need {}", rule));
}

int64_t Metadata::in_range(std::string_view name, int64_t value, int64_t least,
                           int64_t most) const {
  if (value >= least && value <= most) return value;
  out_of_range(name, fmt::format("{}", value), fmt::format("{} to {}", least, most));
}

int64_t Metadata::count(std::string_view name, int64_t most) const {
  return in_range(name, file_.get_i64(key(name)), 1, most);
}

int64_t Metadata::count(std::string_view name, int64_t most, int64_t or_else) const {
  return contains(name) ? count(name, most) : or_else;
}

int64_t Metadata::integer(std::string_view name, int64_t least, int64_t most,
                          int64_t or_else) const {
  return contains(name) ? in_range(name, file_.get_i64(key(name)), least, most) : or_else;
}

double Metadata::number_above(std::string_view name, float least, float or_else) const {
  const float value = file_.get_f32(key(name), or_else);
  if (value > least && std::isfinite(value)) return static_cast<double>(value);
  out_of_range(name, fmt::format("{}", value), fmt::format("a finite number above {}", least));
}

float Metadata::number(std::string_view name) const {
  const float value = file_.get_f32(key(name));
  if (value >= 0.0f && std::isfinite(value)) return value;
  out_of_range(name, fmt::format("{}", value), "a finite number of at least 0");
}

float Metadata::number(std::string_view name, float or_else) const {
  return contains(name) ? number(name) : or_else;
}

std::string_view Metadata::string(std::string_view name, std::string_view or_else) const {
  return file_.get_string(key(name), or_else);
}

bool Metadata::flag(std::string_view name, bool or_else) const {
  return file_.get_bool(key(name), or_else);
}

std::vector<int64_t> Metadata::counts(std::string_view name, int64_t layers, int64_t most,
                                      int64_t least) const {
  const io::GgufValue* value = file_.find(key(name));
  if (value == nullptr || !value->is_array()) {
    return std::vector<int64_t>(static_cast<size_t>(layers),
                                in_range(name, file_.get_i64(key(name)), least, most));
  }
  std::vector<int64_t> result;
  for (const int32_t n : file_.get_i32s(key(name))) {
    result.push_back(in_range(name, n, least, most));
  }
  if (static_cast<int64_t>(result.size()) == layers) return result;
  out_of_range(name, fmt::format("{} values", result.size()), fmt::format("{}", layers));
}

std::vector<bool> Metadata::bools(std::string_view name, int64_t count) const {
  std::vector<bool> values = file_.get_bools(key(name));
  if (static_cast<int64_t>(values.size()) == count) return values;
  out_of_range(name, fmt::format("{} values", values.size()), fmt::format("{}", count));
}

}  // namespace wick::models
