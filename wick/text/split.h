#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace wick::text {

/// How one family of byte-level BPE vocabularies cuts text into words before merging.
struct PreTokenizer {
  std::string_view name;  // the family: smollm, gpt-2, llama-bpe or qwen2
  const char* pattern;    // PCRE2 syntax; every position of any text matches
  bool whole_word_first;  // a word that is itself a token isn't built by merges
};

/// The family of a GGUF `tokenizer.ggml.pre` name. Errors: an unknown name; the message lists the
/// families.
PreTokenizer find_pre_tokenizer(std::string_view name);

/// A compiled split pattern; const methods may run on several threads at once.
class Splitter {
 public:
  explicit Splitter(const PreTokenizer& pre);

  /// One pass over one text, with PCRE2's match data.
  class Cursor {
   public:
    Cursor(const Splitter& splitter, std::string_view text);
    /// The next word, empty at the end. Every byte of `text`, well-formed UTF-8, is in one word.
    std::string_view next();

   private:
    struct FreeMatch {
      void operator()(void* match) const;
    };
    const void* code_;
    bool jit_;
    std::string_view text_;
    size_t pos_ = 0;
    std::unique_ptr<void, FreeMatch> match_;
  };

 private:
  struct FreeCode {
    void operator()(void* code) const;
  };
  std::unique_ptr<void, FreeCode> code_;
  bool jit_ = false;
};

}  // namespace wick::text
