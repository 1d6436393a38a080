#include "wick/models/open_model.h"

#include "wick/io/split_file.h"

namespace wick::models {

std::shared_ptr<const io::ModelFile> open_model(const std::string& path) {
  return io::open_gguf(path);
}

}  // namespace wick::models
