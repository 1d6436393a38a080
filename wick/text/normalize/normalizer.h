#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/normalize/charsmap.h"
#include "wick/text/normalize/unicode.h"

namespace wick::text {

/// One step of a normalizer: changes a text, which is and stays well-formed UTF-8.
using NormalizeStep = std::function<void(std::string& text)>;

/// What a vocabulary changes in a text before it is split into words. Several threads may use one
/// normalizer at once.
class Normalizer {
 public:
  /// `shrinkage`: the bytes of a text are at most this multiple of those that the step makes of it;
  /// 0: there is no such bound.
  void add(NormalizeStep step, size_t shrinkage = 0) {
    steps_.push_back(std::move(step));
    shrinkage_ *= shrinkage;
  }
  /// As the argument of add(), of all steps together.
  size_t shrinkage() const { return shrinkage_; }
  bool empty() const { return steps_.empty(); }
  /// Errors: the text grows to more than 64 times its length; those of the steps.
  void apply(std::string& text) const;

 private:
  std::vector<NormalizeStep> steps_;
  size_t shrinkage_ = 1;
};

/// Options of BERT's normalizer.
struct BertOptions {
  bool clean = true;          ///< drops control characters and makes white space a space
  bool ideographs = true;     ///< puts spaces around Chinese characters
  bool strip_accents = true;  ///< decomposes characters and drops nonspacing marks
  bool lower = true;
};

/// Options of SentencePiece's normalizer.
struct SentencePieceOptions {
  std::shared_ptr<const Charsmap> map;
  bool remove_extra_spaces = false;  ///< spaces at the ends, and all but one of each run
  bool add_space_prefix = false;     ///< a space before text that isn't empty
};

NormalizeStep unicode_step(NormalForm form);
NormalizeStep lower_step();
NormalizeStep strip_accents_step();
/// Removes white space at the beginning and at the end.
NormalizeStep strip_step(bool left, bool right);
/// Puts `prefix` before a text that isn't empty.
NormalizeStep prepend_step(std::string prefix);
NormalizeStep bert_step(BertOptions options);
/// Drops control characters and makes other white space a space, as SentencePiece's rule "nmt".
NormalizeStep nmt_step();
/// Applies a map to grapheme clusters of less than 6 bytes, and to the characters of longer ones.
NormalizeStep charsmap_step(std::shared_ptr<const Charsmap> map);
NormalizeStep sentence_piece_step(SentencePieceOptions options);

}  // namespace wick::text
