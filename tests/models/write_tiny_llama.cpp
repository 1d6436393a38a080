// write_tiny_llama FOLDER: writes tiny-TYPE.gguf for every weight type.
// write_tiny_llama --families FOLDER: writes the models that data/ describes.
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/base/error.h"

int main(int argc, char** argv) {
  using wick::DType;
  const bool families = argc == 3 && std::string_view(argv[1]) == "--families";
  if (argc != 2 && !families) return 2;
  try {
    if (families) {
      for (const auto& model : wick::test::TinyModel::all()) {
        model.write(std::string(argv[2]) + "/" + model.name + ".gguf");
      }
      return 0;
    }
    for (int d = 0; d < wick::kDTypeCount; ++d) {
      const auto type = static_cast<DType>(d);
      if (!wick::dtypes::kWeights.contains(type)) continue;
      wick::test::TinyLlama model = wick::test::TinyLlama::of_type(type);
      model.context = 256;
      model.write(std::string(argv[1]) + "/tiny-" + std::string(wick::name(type)) + ".gguf");
    }
    return 0;
  } catch (const wick::Error& e) {
    std::fprintf(stderr, "write_tiny_llama: %s\n", e.what());
    return 2;
  }
}
