// decode_blocks TYPE: reads blocks of a type from standard input and writes f32 to standard output.
#include <cstdio>
#include <string_view>

#include "wick/math/quants.h"

namespace {

template <class Block>
int decode() {
  Block block;
  while (std::fread(&block, sizeof block, 1, stdin) == 1) {
    float values[wick::math::kBlockValues<Block>];
    wick::math::dequantize(block, values);
    if (std::fwrite(values, sizeof values, 1, stdout) != 1) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view type = argc == 2 ? argv[1] : "";
#define WICK_QUANT(name, Type, ...) \
  if (type == #name) return decode<wick::math::Block##Type>();
#include "wick/math/quants.def"
  return 2;
}
