#pragma once

#include <span>
#include <string>
#include <string_view>

#include "wick/base/export.h"
#include "wick/models/decoder_config.h"

namespace wick::models {

/// A family of decoders.
struct Architecture {
  std::string_view name;    ///< general.architecture in the files
  std::string_view models;  ///< names of supported models, for error messages
  /// Makes the configuration from a file's metadata. Errors: those of Metadata; the sizes
  /// contradict each other.
  DecoderConfig (*configure)(const Metadata& metadata);
};

/// All supported architectures.
WICK_API std::span<const Architecture> architectures();

/// Returns the architecture of a file. Errors: the file is one part of a split model; it doesn't
/// name an architecture; the architecture isn't supported (the message lists the supported ones).
WICK_API const Architecture& find_architecture(const io::ModelFile& file);

}  // namespace wick::models
