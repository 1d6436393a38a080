#include "emu/tests/writer.h"

#include <vector>

#include "emu/tests/harness.h"

namespace emu::test {
namespace {

enum class T { i32, u32, i64, f32, f64, f16, count };

/// Writes one kernel whose behaviour is defined for every input: divisors aren't zero, shifts are
/// in range, conversions to integers don't overflow, and loops end.
class Writer {
 public:
  explicit Writer(uint64_t seed) : random_(seed * 7919 + 13), seed_(seed) {}

  std::string write() {
    line("KERNEL random_" + std::to_string(seed_) + "(ARGUMENTS) {");
    line("ENTER;");
    line("LDS u32 shared[64];");
    for (int t = 0; t < static_cast<int>(T::count); ++t) {
      for (int k = 0; k < 3; ++k) {
        line(std::string(type(static_cast<T>(t))) + " " + name(static_cast<T>(t), k) + " = " +
             input(static_cast<T>(t)) + ";");
      }
    }
    const int statements = 3 + static_cast<int>(random_.below(6));
    for (int i = 0; i < statements; ++i) uniform_statement();
    for (int t = 0; t < static_cast<int>(T::count); ++t) {
      for (int k = 0; k < 3; ++k) line("out.put(" + name(static_cast<T>(t), k) + ");");
    }
    line("}");
    return text_;
  }

 private:
  static const char* type(T t) {
    static const char* const kNames[] = {"i32", "u32", "i64", "float", "double", "half"};
    return kNames[static_cast<int>(t)];
  }
  static std::string name(T t, int k) {
    static const char* const kPrefix[] = {"a", "b", "c", "x", "y", "z"};
    return kPrefix[static_cast<int>(t)] + std::to_string(k);
  }
  T any_type() { return static_cast<T>(random_.below(static_cast<uint32_t>(T::count))); }
  std::string variable(T t) { return name(t, static_cast<int>(random_.below(3))); }
  std::string number(uint32_t below) { return std::to_string(random_.below(below)); }

  std::string input(T t) {
    switch (t) {
      case T::i32:
        return "static_cast<i32>(in.i[" + number(8) + "])";
      case T::u32:
        return "in.i[" + number(8) + "]";
      case T::i64:
        return "in.l[" + number(4) + "]";
      case T::f32:
        return "in.f[" + number(8) + "]";
      case T::f64:
        return "in.d[" + number(4) + "]";
      default:
        return "in.h[" + number(8) + "]";
    }
  }

  void line(const std::string& text) { text_ += text + "\n"; }

  std::string cast(T t, const std::string& inner) {
    return std::string("static_cast<") + type(t) + ">(" + inner + ")";
  }

  std::string condition(int depth) {
    static const char* const kRelations[] = {"<", "<=", "==", "!=", ">", ">="};
    const T t = any_type();
    std::string text = "(" + expression(t, depth) + " " + kRelations[random_.below(6)] + " " +
                       expression(t, depth) + ")";
    if (random_.chance(5))
      text = "(" + text + (random_.chance(2) ? " && " : " || ") + condition(0) + ")";
    return text;
  }

  std::string leaf(T t) {
    if (!random_.chance(4)) return variable(t);
    switch (t) {
      case T::i32:
        return "i32{" + std::to_string(static_cast<int>(random_.below(4001)) - 2000) + "}";
      case T::u32:
        return std::to_string(static_cast<uint32_t>(random_.next())) + "u";
      case T::i64:
        return "i64{" + std::to_string(static_cast<int64_t>(random_.next()) >> random_.below(60)) +
               "}";
      case T::f32:
        return std::to_string(static_cast<int>(random_.below(2001)) - 1000) + ".25f";
      case T::f64:
        return std::to_string(static_cast<int>(random_.below(2001)) - 1000) + ".125";
      default:
        return "static_cast<half>(" + number(64) + ".5f)";
    }
  }

  std::string expression(T t, int depth) {
    if (depth <= 0) return leaf(t);
    if (random_.chance(7)) {
      return "(" + condition(depth - 1) + " ? " + expression(t, depth - 1) + " : " +
             expression(t, depth - 1) + ")";
    }
    if (random_.chance(5)) return conversion(t, depth - 1);
    const bool is_float = t == T::f32 || t == T::f64 || t == T::f16;
    return is_float ? float_expression(t, depth - 1) : integer_expression(t, depth - 1);
  }

  std::string conversion(T to, int depth) {
    switch (to) {
      case T::i32:
        if (random_.chance(3))
          return "static_cast<i32>(static_cast<float>(" + expression(T::u32, depth) + ") * 0.25f)";
        return cast(to, expression(random_.chance(2) ? T::u32 : T::i64, depth));
      case T::u32:
        if (random_.chance(3)) return "bits(" + expression(T::f32, depth) + ")";
        return cast(to, expression(random_.chance(2) ? T::i32 : T::i64, depth));
      case T::i64:
        return cast(to, expression(random_.chance(2) ? T::i32 : T::u32, depth));
      case T::f32: {
        static const T kFrom[] = {T::i32, T::u32, T::i64, T::f64, T::f16};
        return cast(to, expression(kFrom[random_.below(5)], depth));
      }
      case T::f64: {
        static const T kFrom[] = {T::i32, T::u32, T::i64, T::f32};
        return cast(to, expression(kFrom[random_.below(4)], depth));
      }
      default:
        return "narrow(" + expression(T::f32, depth) + ")";
    }
  }

  std::string float_expression(T t, int depth) {
    const std::string a = expression(t, depth), b = expression(t, depth);
    const uint32_t kind = random_.below(t == T::f16 ? 5 : 10);
    const std::string end = t == T::f32 ? "f(" : "(";
    switch (kind) {
      case 0:
        return cast(t, a + " + " + b);
      case 1:
        if (t == T::f16) return "minus(" + a + ", " + b + ")";
        return cast(t, a + " - " + b);
      case 2:
        return cast(t, a + " * " + b);
      case 3:
        return cast(t, "-(" + a + ")");
      case 4:
        return cast(t, a + " / " + b);
      case 5:
        return "__builtin_fma" + end + a + ", " + b + ", " + expression(t, depth) + ")";
      case 6:
        return "__builtin_floor" + end + a + ")";
      case 7:
        return "__builtin_rint" + end + a + ")";
      case 8:
        return "__builtin_fabs" + end + a + ")";
      default:
        return "__builtin_sqrt" + end + "__builtin_fabs" + end + a + "))";
    }
  }

  std::string integer_expression(T t, int depth) {
    static const char* const kOps[] = {"+", "-", "*", "&", "|", "^"};
    constexpr uint32_t kOr = 4;
    // Signed sums could overflow, so they are computed unsigned and cast back.
    const char* wide = t == T::i64 ? "u64" : "u32";
    const auto u = [&](const std::string& x) {
      return std::string("static_cast<") + wide + ">(" + x + ")";
    };
    const std::string a = expression(t, depth), b = expression(t, depth);
    const uint32_t kind = random_.below(14);
    const std::string shift = std::to_string(random_.below(t == T::i64 ? 64 : 32));
    if (kind == kOr && t == T::i64) return cast(t, full(t, u(a)) + " | " + full(t, u(b)));
    if (kind < 6) return cast(t, u(a) + " " + kOps[kind] + " " + u(b));
    switch (kind) {
      case 6:
        return cast(t, u(a) + " << " + shift);
      case 7:
        return cast(t, "(" + a + ") >> " + shift);
      case 8:
        return cast(t, u(a) + " << (" + u(b) + " & 31)");
      case 9:
        return cast(t, full(t, u(a)) + " / (" + full(t, u(b)) + " | 1)");
      case 10:
        return cast(t, full(t, u(a)) + " % (" + full(t, u(b)) + " | 1)");
      case 11:
        return cast(t, "~" + u(a));
      case 12:
        return cast(t,
                    std::string("__builtin_popcount") + (t == T::i64 ? "ll(" : "(") + u(a) + ")");
      default:
        return cast(t, "__builtin_elementwise_" + std::string(random_.chance(2) ? "max(" : "min(") +
                           cast(t, a) + ", " + cast(t, b) + ")");
    }
  }

  /// Returns an unsigned number of which the compiler can't infer that its upper bits are copies of
  /// a sign. clang 19 divides such numbers as if they were as short as signed ones; and if it knows
  /// that the upper half of one operand of a 64-bit | is all ones in some lanes, it may put a lane
  /// mask there.
  static std::string full(T t, const std::string& x) {
    return "(" + x + (t == T::i64 ? " ^ static_cast<u64>(in.l[3]))" : " ^ in.i[7])");
  }

  void assign() {
    const T t = any_type();
    line(variable(t) + " = " + expression(t, 1 + static_cast<int>(random_.below(3))) + ";");
  }

  /// Writes statements that some work-items may not execute.
  void statement(int depth) {
    const uint32_t kind = random_.below(depth > 0 ? 8 : 4);
    if (kind < 4) return assign();
    if (kind < 6) {
      line("if " + condition(1) + " {");
      block(depth - 1);
      if (random_.chance(2)) {
        line("} else {");
        block(depth - 1);
      }
      return line("}");
    }
    if (kind == 6) {
      const std::string i = "i" + std::to_string(loops_++);
      line("for (u32 " + i + " = 0; " + i + " < (" + variable(T::u32) + " & 7) + 1; ++" + i +
           ") {");
      block(depth - 1);
      if (random_.chance(3)) line("if " + condition(1) + " break;");
      // The body may change the bound, so this exit doesn't depend on it.
      line("if (" + i + " > 9) break;");
      return line("}");
    }
    line("switch (" + expression(T::u32, 1) + " % 6) {");
    for (int k = 0; k < 5; ++k) {
      line("case " + std::to_string(k) + ": {");
      assign();
      line(random_.chance(4) ? "}" : "} break;");
    }
    line("default: break;");
    line("}");
  }

  void block(int depth) {
    const int count = 1 + static_cast<int>(random_.below(3));
    for (int i = 0; i < count; ++i) statement(depth);
  }

  /// Writes top-level statements, which all work-items execute: LDS with barriers, and cross-lane
  /// operations.
  void uniform_statement() {
    const uint32_t kind = random_.below(8);
    if (kind < 5) return statement(2);
    const std::string to = variable(T::u32), from = variable(T::u32);
    if (kind == 5) {
      line("barrier();");
      line("shared[item()] = " + expression(T::u32, 2) + ";");
      line("barrier();");
      return line(to + " ^= shared[(item() + " + number(64) + ") & 63];");
    }
    if (kind == 6) {
      static const char* const kControls[] = {"0x1b",  "0xb1",  "0x4e",  "0x101", "0x113",
                                              "0x125", "0x140", "0x141", "0x153", "0x165"};
      return line(to + " += DPP(" + from + ", " + variable(T::u32) + ", " +
                  kControls[random_.below(10)] + ", 15, 15, " +
                  (random_.chance(2) ? "true" : "false") + ");");
    }
    switch (random_.below(4)) {
      case 0:
        return line(to + " -= SWIZZLE(" + from + ", 0x041f);");
      case 1:
        return line(to + " = read_lane(" + from + ", " + number(32) + ") + " + variable(T::u32) +
                    ";");
      case 2:
        return line(to + " += static_cast<u32>(ballot((" + from + " & 4) != 0));");
      default:
        return line("{ const u32 moved = bpermute(" + from + " & 31, " + variable(T::u32) +
                    "); if (lanes() == 32) " + to + " ^= moved; }");
    }
  }

  Random random_;
  uint64_t seed_;
  std::string text_;
  int loops_ = 0;
};

}  // namespace

std::string random_kernel(uint64_t seed) { return Writer(seed).write(); }

}  // namespace emu::test
