// What files say of weights of GPTQ and AWQ: configuration and shapes.
#include <algorithm>
#include <string>

#include "wick/models/hf/int4.h"
#include "wick/models/hf/naming.h"

namespace wick::models::hf {
int64_t int4_groups(const Int4Config& config, int64_t inputs) {
  return config.group == 0 ? 1 : inputs / config.group;
}

Int4Config int4_config(const Config& config) {
  const Config of = config.object("quantization_config");
  Int4Config result;
  const std::string method = of.text({"quant_method"}).value_or("");
  if (method != "gptq" && method != "awq") return result;
  const int64_t bits = of.integer({"bits", "w_bit"}).value_or(4);
  if (bits != 4) of.unsupported("bits", "this version supports 4");
  const bool gptq = method == "gptq";
  result.method = gptq ? Int4Config::Method::gptq : Int4Config::Method::awq;
  const char* const name = of.has({"group_size"}) ? "group_size" : "q_group_size";
  const bool whole = of.has({name}) && of.json().at(name) == -1;
  if (!whole) {
    result.group = of.integer({name}).value_or(128);
    if (result.group < 1) of.invalid(name, "at least 1, or -1");
  }
  if (!gptq) {
    std::string version = of.text({"version"}).value_or("gemm");
    std::transform(version.begin(), version.end(), version.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (version != "gemm") of.unsupported("version", "this version supports gemm");
    if (!of.flag("zero_point", true)) of.unsupported("zero_point", "need true");
    return result;
  }
  const std::string format = of.text({"checkpoint_format"}).value_or("gptq");
  if (format != "gptq" && format != "gptq_v2") {
    of.unsupported("checkpoint_format", "this version supports gptq and gptq_v2");
  }
  result.adds_one = format == "gptq";
  result.symmetric = of.flag("sym", false) && !of.flag("desc_act", false);
  return result;
}

Shape int4_shape(const Int4Config& config, const Int4Tensors& tensors) {
  const bool gptq = config.method == Int4Config::Method::gptq;
  const auto missing = [&](const char* name) {
    wrong_tensor(tensors.codes, "a tensor beside this one is missing", name);
  };
  if (tensors.zeros.tensor == nullptr) missing("qzeros");
  if (tensors.scales.tensor == nullptr) missing("scales");
  const Shape& packed = tensors.codes.tensor->shape;
  const auto need = [](const Stored& stored, bool fits, const char* rule) {
    if (!fits) wrong_tensor(stored, "tensor has the wrong type or shape", rule);
  };
  need(tensors.codes, packed.rank() == 2 && tensors.codes.tensor->dtype == DType::i32,
       "need a matrix of I32");
  const int64_t n = gptq ? packed[1] : packed[1] * kInt4PerWord;
  const int64_t k = gptq ? packed[0] * kInt4PerWord : packed[0];
  need(tensors.codes, n % kInt4PerWord == 0 && (config.group == 0 || k % config.group == 0),
       "need whole words and whole groups of group_size");
  const int64_t groups = int4_groups(config, k);
  need(tensors.zeros,
       tensors.zeros.tensor->dtype == DType::i32 &&
           tensors.zeros.tensor->shape == Shape{groups, n / kInt4PerWord},
       "need I32[groups, n/8]");
  const std::optional<DType> scale = tensors.scales.tensor->dtype;
  need(tensors.scales,
       scale && is_float(*scale) && tensors.scales.tensor->shape == Shape{groups, n},
       "need floats [groups, n]");
  if (tensors.order.tensor != nullptr) {
    need(tensors.order,
         tensors.order.tensor->dtype == DType::i32 && tensors.order.tensor->shape == Shape{k},
         "need I32[k]");
  }
  return {n, k};
}

DType int4_dtype(const Int4Config& config, const Int4Tensors& tensors, const Shape& shape,
                 Form form) {
  const bool whole_blocks =
      shape[1] % kInt4Block == 0 && (config.group == 0 || config.group % kInt4Block == 0);
  const bool exact = config.symmetric && tensors.scales.tensor->dtype == DType::f16;
  return exact && whole_blocks && moves_rows(form) ? DType::q4_0 : DType::f16;
}

}  // namespace wick::models::hf
