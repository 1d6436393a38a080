#pragma once

#include "wick/io/gguf_metadata.h"
#include "wick/models/hf/config.h"
#include "wick/models/hf/families.h"
#include "wick/models/hf/forms.h"
#include "wick/models/hf/int4.h"
#include "wick/models/hf/packed.h"

namespace wick::models::hf {

/// What a config.json says of a model.
struct Description {
  Config config;  ///< of the language model, with the family's defaults
  const Family* family;
  ScaleBlock scale_block;  ///< of f8 weights
  Int4Config int4;         ///< of weights of GPTQ and AWQ
  int64_t layers;
  bool tied;  ///< the embeddings are the output matrix, too
  Sizes sizes;
};

/// Errors: those of Config; the model_type, the activation or the quantisation isn't supported.
Description describe(Config config);

/// Sets the keys of a GGUF file, except those of text_keys(). Errors: those of Config.
void set_keys(const Description& description, io::GgufMetadata& metadata);

}  // namespace wick::models::hf
