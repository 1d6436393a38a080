#include "wick/models/open_model.h"

#include <filesystem>
#include <system_error>

#include "wick/io/split_file.h"
#include "wick/models/find_model.h"
#include "wick/models/hf/directory.h"

namespace wick::models {

std::shared_ptr<const io::ModelFile> open_model(const std::string& name) {
  const std::string path = find_model(name);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_shared<hf::Directory>(path);
  return io::open_gguf(path);
}

}  // namespace wick::models
