// Shows tensors, and with a model file as argument generates a few words.
#include <cstdio>
#include <iostream>
#include <span>

#include "wick/serve/engine.h"
#include "wick/tensor/ops.h"
#include "wick/version.h"

int main(int argc, char** argv) {
  try {
    std::printf("wick %s\n", wick::version());
    const wick::Tensor x = wick::Tensor::arange(0, 6).reshape({2, 3});
    const wick::Tensor y = wick::matmul(x, x.t());
    std::printf("%s:", y.str().c_str());
    for (float value : y.to_vector<float>()) std::printf(" %g", static_cast<double>(value));
    std::printf("\n");
    if (argc < 2) return 0;

    wick::serve::Session session(wick::serve::Engine::load(argv[1]));
    wick::serve::GenerateOptions options;
    options.max_tokens = 16;
    options.sampler.temperature = 0;
    options.on_text = [](std::string_view text) { std::cout << text << std::flush; };
    const auto tokens = wick::serve::load_tokenizer(*wick::io::Gguf::open(argv[1])).encode("Hello");
    session.feed(tokens);
    session.generate(options);
    std::cout << "\n";
    return 0;
  } catch (const wick::Error& e) {
    std::fprintf(stderr, "hello: %s\n", e.what());
    return 2;
  }
}
