// write_tiny_llama FOLDER: writes tiny-TYPE.gguf for every weight type.
// write_tiny_llama --families FOLDER: writes the models that data/ describes.
// write_tiny_llama --files FOLDER: writes a model of several files in each form: tiny.gguf, its
// parts tiny-00001-of-00003.gguf and so on, and a Hugging Face directory, qwen3.
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/io/split_writer.h"
#include "tests/models/tiny_llama.h"
#include "tests/models/tiny_model.h"
#include "wick/base/error.h"

int main(int argc, char** argv) {
  using wick::DType;
  const bool families = argc == 3 && std::string_view(argv[1]) == "--families";
  const bool files = argc == 3 && std::string_view(argv[1]) == "--files";
  if (argc != 2 && !families && !files) return 2;
  try {
    if (files) {
      const std::string folder = argv[2];
      wick::test::TinyLlama model = wick::test::TinyLlama::of_type(DType::q8_0);
      model.context = 256;
      model.write(folder + "/tiny.gguf");
      wick::io::test::split(*wick::io::Gguf::open(folder + "/tiny.gguf"), folder + "/tiny", 3);
      wick::test::TinyModel::read("qwen3").write_directory(folder + "/qwen3");
      return 0;
    }
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
