#include "emu/tests/decode_support.h"

#include <gtest/gtest.h>

#include <bit>

#include "emu/tests/reference.h"

namespace emu::test {
namespace {

class Comparison : public testing::Test {
 public:
  explicit Comparison(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  const std::function<void()> body_;
};

void check_case(const DecodeCase& one) {
  Decoder decoder(one.arch, std::string_view(one.arch).starts_with("gfx9"));
  const std::span code(reinterpret_cast<const uint8_t*>(one.words.data()), 4 * one.words.size());
  try {
    const Inst inst = decoder.decode(code, 0).at(0);
    ASSERT_NE(one.text, nullptr) << to_text(inst);
    EXPECT_EQ(to_text(inst), one.text);
    EXPECT_EQ(inst.size, code.size());
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(one.text, nullptr) << error.what();
    EXPECT_NE(std::string_view(error.what()).find(one.says), std::string_view::npos)
        << error.what();
  }
}

/// A literal whose value is a constant of the instruction's type, which the text then names.
bool is_literal_of(const Operand& ours, double real) {
  const auto value = static_cast<float>(real);
  return std::bit_cast<u32>(value) == ours.bits ||
         to_bits(static_cast<half>(value)) == (ours.bits & 0xffff);
}

bool same_number(const Operand& ours, const Operand& text) {
  // LLVM prints 1 / (2 pi) with the digits of its type.
  if (ours.kind == Kind::real && text.real == 0.15915494) return ours.real == 0.15915494309189532;
  if (ours.kind == Kind::real) return ours.real == text.real;
  if (ours.kind != Kind::integer || ours.bits == text.bits) return true;
  // Of a literal, an instruction with 16-bit operands uses the lower half.
  return ours.literal && (static_cast<u32>(ours.bits) == static_cast<u32>(text.bits) ||
                          (ours.bits & 0xffff) == text.bits);
}

}  // namespace

bool same_operand(const Operand& ours, const Operand& text) {
  if (ours.kind == Kind::real && text.kind == Kind::integer) {  // an f16 constant, as its bits
    return to_bits(static_cast<half>(ours.real)) == text.bits;
  }
  if (ours.literal && text.kind == Kind::real) return is_literal_of(ours, text.real);
  if (ours.kind != text.kind || ours.dwords != text.dwords || ours.reg != text.reg) return false;
  // The text may omit halves, and signs where they have no meaning.
  if ((text.neg && !ours.neg) || (text.abs && !ours.abs) || (text.hi && !ours.hi)) return false;
  // Outside SDWA, the text calls the sign of an integer sext.
  if ((ours.sext || ours.neg) != (text.sext || text.neg) && text.sext) return false;
  return ours.name == text.name && same_number(ours, text);
}

std::span<const uint8_t> bytes_of(const std::vector<uint32_t>& words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), 4 * words.size()};
}

std::optional<Inst> decoded(Decoder& decoder, const std::vector<uint32_t>& words,
                            std::string& error) {
  try {
    return decoder.decode(bytes_of(words), 0).at(0);
  } catch (const std::runtime_error& caught) {
    error = caught.what();
    return std::nullopt;
  }
}

void register_comparisons(const std::string& prefix, const std::vector<Target>& targets,
                          std::function<void(const Target&)> compare) {
  for (const Target& target : targets) {
    const std::string name = prefix + target.arch + (target.wave64 ? "_wave64" : "");
    testing::RegisterTest(
        "Decode", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [=]() -> testing::Test* { return new Comparison([=] { compare(target); }); });
  }
}

void register_cases(const std::string& prefix, const std::vector<DecodeCase>& cases) {
  for (const DecodeCase& one : cases) {
    const std::string name = prefix + one.name + "_" + one.arch;
    testing::RegisterTest(
        "Decode", name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
        [&one]() -> testing::Test* { return new Comparison([&one] { check_case(one); }); });
  }
}

}  // namespace emu::test
