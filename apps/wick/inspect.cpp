#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "common.h"
#include "wick/base/printable.h"
#include "wick/io/ggml_type.h"
#include "wick/io/gguf.h"
#include "wick/io/split_file.h"
#include "wick/models/find_model.h"
#include "wick/models/open_model.h"

namespace wick::cli {
namespace {

struct InspectOptions {
  std::string file;
  bool json = false;
};

/// Vocabularies have a hundred thousand entries, so only the first elements of long arrays are
/// shown.
constexpr uint64_t kMostShown = 8;

Json value_json(const io::GgufValue& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const io::GgufValue& item : value.elements(kMostShown)) list.push_back(value_json(item));
    if (value.count() <= kMostShown) return list;
    return {{"count", value.count()}, {"first", list}};
  }
  if (auto b = value.as_bool()) return *b;
  if (auto i = value.as_i64()) return *i;
  if (auto u = value.as_u64()) return *u;
  if (auto s = value.as_string()) return *s;
  return value.as_f64().value_or(0);
}

/// A part of a split model whose name doesn't tell the others' can be shown alone.
std::shared_ptr<const io::ModelFile> open_inspected(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || io::is_part_name(path)) {
    return models::open_model(path);
  }
  return io::Gguf::open(path);
}

int run_inspect(const InspectOptions& o) {
  const std::shared_ptr<const io::ModelFile> file = open_inspected(models::find_model(o.file));
  uint64_t parameters = 0;  // unreadable types may claim any size, so the sum wraps
  for (const io::GgufTensor& t : file->tensors()) {
    parameters += static_cast<uint64_t>(t.shape.elems());
  }
  if (o.json) {
    Json metadata = Json::object(), tensors = Json::array();
    for (const io::GgufEntry& e : file->metadata())
      metadata[std::string(e.key)] = value_json(e.value);
    for (const io::GgufTensor& t : file->tensors()) {
      tensors.push_back({{"name", t.name},
                         {"type", io::ggml_type_name(t.type)},
                         {"shape", t.shape.dims()},
                         {"offset", t.offset},
                         {"bytes", t.bytes}});
    }
    Json json = Json::object();
    if (const auto* gguf = dynamic_cast<const io::Gguf*>(file.get())) {
      json["version"] = gguf->version();
    }
    json.update({{"format", file->format()},
                 {"files", file->files()},
                 {"file_bytes", file->file_bytes()},
                 {"parameters", parameters},
                 {"metadata", metadata},
                 {"tensors", tensors}});
    print_json(json);
    return kOk;
  }
  print(fmt::format("{}: {}, {}, {} keys, {} tensors, {:.1f} M parameters\n\n", printable(o.file),
                    file->format(), human_bytes(static_cast<int64_t>(file->file_bytes())),
                    file->metadata().size(), file->tensors().size(),
                    static_cast<double>(parameters) / 1e6));
  for (const io::GgufEntry& e : file->metadata()) {
    print(fmt::format("{:<44} {}\n", printable(e.key), e.value.str(4)));
  }
  print("\n");
  for (const io::GgufTensor& t : file->tensors()) {
    print(fmt::format("{:<40} {:<24} {:>10}\n", printable(t.name), t.str(),
                      human_bytes(static_cast<int64_t>(t.bytes))));
  }
  return kOk;
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* command =
      add_command(app, "inspect", "Show the metadata and tensors of a model file",
                  "Example: wick inspect model.gguf", [o] { return run_inspect(*o); });
  command->add_option("FILE", o->file, kModelHelp)->required();
  command->add_flag("--json", o->json, "Print JSON");
}

}  // namespace wick::cli
