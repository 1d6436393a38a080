#include "tests/fuzz/gguf_walk.h"

#include <string>
#include <vector>

#include "wick/base/error.h"

namespace wick::io::test {
namespace {

class Digest {
 public:
  uint64_t value() const { return value_; }
  void add(uint64_t word) { value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u; }
  void add(std::span<const std::byte> bytes) {
    for (std::byte b : bytes) add(static_cast<uint64_t>(b));
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }

  /// Records a getter's result, or the message of its error.
  template <class F>
  void ask(F&& getter) {
    try {
      getter();
    } catch (const Error& error) {
      add(error.what());
    }
  }

  void value_of(const GgufValue& value) {
    add(value.payload());
    add(value.str());
    add(value.type_str());
    add(value.as_u64().value_or(1));
    add(static_cast<uint64_t>(value.as_i64().value_or(1)));
    add(value.as_f64().has_value());
    add(value.as_bool().value_or(false));
    add(value.as_string().value_or(""));
    if (const auto strings = value.as_strings()) {
      for (std::string_view s : *strings) add(s);
    }
    if (!value.is_array()) return;
    for (const GgufValue& element : value.elements()) value_of(element);
    ask([&] { value_of(value.at(value.count() / 2)); });
  }

  void typed(const Gguf& f, std::string_view key) {
    ask([&] { add(f.get_u32(key)); });
    ask([&] { add(static_cast<uint64_t>(f.get_i32(key, 1))); });
    ask([&] { add(f.get_u64(key)); });
    ask([&] { add(static_cast<uint64_t>(f.get_i64(key, 1))); });
    ask([&] { add(f.get_f32(key) == 1.0f); });
    ask([&] { add(f.get_bool(key, false)); });
    ask([&] { add(f.get_string(key)); });
    ask([&] { add(f.get_u32s(key).size()); });
    ask([&] { add(f.get_i32s(key).size()); });
    ask([&] { add(f.get_f32s(key).size()); });
    ask([&] { add(f.get_bools(key).size()); });
    ask([&] {
      for (std::string_view s : f.get_strings(key)) add(s);
    });
  }

 private:
  uint64_t value_ = 0;
};

}  // namespace

[[gnu::noinline]] uint64_t walk(const Gguf& file) {
  Digest digest;
  for (const GgufEntry& entry : file.metadata()) {
    digest.add(entry.key);
    digest.value_of(entry.value);
    digest.typed(file, entry.key);
  }
  digest.typed(file, "a.key.that.is.missing");
  for (const GgufTensor& tensor : file.tensors()) {
    digest.add(tensor.str());
    digest.ask([&] { digest.add(file.data(file.require_tensor(tensor.name))); });
    digest.ask([&] {
      const Tensor t = file.tensor(tensor.name);
      digest.add({static_cast<const std::byte*>(t.storage()->data()), t.storage()->bytes()});
      digest.add(static_cast<uint64_t>(t.elems()));
    });
  }
  digest.ask([&] { file.tensor("a.tensor.that.is.missing"); });
  return digest.value();
}

bool walk_if_valid(std::span<const std::byte> bytes) {
  std::shared_ptr<const Gguf> file;
  try {
    file = Gguf::parse(Bytes::copy_of(bytes), "fuzz.gguf");
  } catch (const Error&) {
    return false;
  }
  walk(*file);
  return true;
}

}  // namespace wick::io::test
