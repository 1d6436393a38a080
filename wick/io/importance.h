#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"
#include "wick/io/model_file.h"

namespace wick::io {

/// How much the error of each column of a model's weights matters: the squares of the inputs that
/// the columns were multiplied by, summed over a text ("importance matrix"). A file of it is a GGUF
/// file with the tensors NAME.in_sum2 [matrices, k] and NAME.counts [matrices, 1] for each weight
/// NAME, as llama.cpp's imatrix tool writes it.
class WICK_API Importance {
 public:
  /// The sums of one weight. A tensor of experts has several matrices. The functions below check
  /// entries: the counts divide the sums, and no value is negative or not finite.
  struct Entry {
    std::vector<float> sums;    ///< [matrices, k]
    std::vector<float> counts;  ///< the rows that were added: one count for each matrix, or for all
  };

  /// Reads a file in GGUF or in llama.cpp's older binary format. Errors: the file can't be read; it
  /// isn't an importance matrix; sizes don't fit together; a value is negative or not finite.
  static Importance load(const std::string& path);
  /// Writes a GGUF file, which appears only when it is complete. Errors: those of GgufWriter; a
  /// wrong entry.
  void save(const std::string& path) const;

  /// The mean squares of the inputs of each matrix of a weight [.., n, k], [matrices, k]: 0 for
  /// matrices that got no input. Empty if there is no entry for the weight, or one that doesn't
  /// fit. Errors: a wrong entry.
  std::vector<float> mean_squares(const GgufTensor& weight) const;
  /// Errors: a wrong entry; an entry doesn't fit the weight of its name; no entry has the name of a
  /// weight. The message says that the file belongs to another model.
  void require_fits(const ModelFile& model) const;

  std::map<std::string, Entry, std::less<>> entries;
  std::vector<std::string> datasets;  ///< the texts that the sums are of
  uint32_t chunk_count = 0;           ///< the number of chunks of the texts
  uint32_t chunk_size = 0;            ///< tokens in a chunk
  std::string path;                   ///< the file that was read
};

}  // namespace wick::io
