#pragma once

#include <memory>
#include <string>
#include <vector>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::io {

/// Opens a model that is one GGUF file or was split into several. The parts of a split model are
/// named NAME-00001-of-00003.gguf and lie in one folder; `path` may be any of them. The result has
/// the metadata of the first part without the keys that describe the split, and the tensors of all
/// parts in their order. Errors: those of Gguf::open; a part is missing, has another number than
/// its name says, or belongs to another model.
WICK_API std::shared_ptr<const ModelFile> open_gguf(const std::string& path);

/// Whether a path ends like that of a part.
WICK_API bool is_part_name(const std::string& path);

/// The files of a model at a path, which isn't opened: all parts of a split model; the files of a
/// folder that are JSON, templates, texts or safetensors; otherwise the path itself.
WICK_API std::vector<std::string> paths_of_model(const std::string& path);

/// Errors: the file is one part of a model that was split into several (split.count > 1); the
/// message says which part, and how the parts must be named.
WICK_API void require_whole(const ModelFile& file);

}  // namespace wick::io
