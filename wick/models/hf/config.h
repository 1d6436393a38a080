#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wick::models::hf {

/// The members of a JSON object in a model's folder. Several names may be given for a member: the
/// first that exists and isn't null is read. Errors of all getters: the member has another type or
/// is out of range; a member without a default is missing. Messages name the file and the member.
class Config {
 public:
  using Json = nlohmann::json;
  using Names = std::initializer_list<const char*>;

  /// `place` is the object's place in the file: "rope_parameters.", or empty. Errors: `members`
  /// isn't an object.
  Config(Json members, std::string path, std::string place = {});
  /// Reads a file. Infinity, which Python writes, counts as null. Errors: those of io::read_json;
  /// it isn't an object.
  static Config read(const std::string& path, size_t most_bytes);

  const std::string& path() const { return path_; }
  const Json& json() const { return members_; }
  bool has(Names names) const { return find(names) != nullptr; }
  /// Errors: there is no such member.
  void require(Names names) const {
    if (!has(names)) missing(names);
  }
  void set(const char* name, Json value) { members_[name] = std::move(value); }
  /// Adds the members that this object lacks or that are null.
  void add_missing(const Json& members);
  /// Adds the members that this object lacks.
  void add_absent(const Json& members);
  /// Adds the members of an object, which replace those of the same names.
  void merge(const Json& members);

  /// An integer from 0 to 2^31 - 1.
  std::optional<int64_t> integer(Names names) const;
  int64_t require_integer(Names names) const;
  /// A number of f32's range.
  std::optional<double> number(Names names) const;
  double require_number(Names names) const;
  bool flag(const char* name, bool or_else) const;
  std::optional<std::string> text(Names names) const;
  /// An integer, or the first of an array of equal integers.
  std::optional<int64_t> same_integers(const char* name) const;
  std::vector<int64_t> integers(const char* name) const;
  std::vector<double> numbers(const char* name) const;
  std::vector<std::string> texts(const char* name) const;
  /// An object; an empty one if it is missing.
  Config object(const char* name) const;

  /// Throws "PATH: value out of range: NAME = VALUE: need RULE".
  [[noreturn]] void invalid(const char* name, std::string_view rule) const;
  /// Throws that this version doesn't support a value.
  [[noreturn]] void unsupported(const char* name, std::string_view rule) const;

 private:
  const Json* find(Names names, const char** name = nullptr) const;
  [[noreturn]] void missing(Names names) const;
  std::string shown(const char* name) const;

  Json members_;
  std::string path_, place_;
};

}  // namespace wick::models::hf
