// Ops composed of other ops. Their gradients and orders of operations follow from those.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

/// The number of elements that a reduction over `dims` reduces to one. Errors: a dim is out of
/// range or given twice.
int64_t reduced_elems(const char* op, const Tensor& x, std::span<const int> dims) {
  if (dims.empty()) return x.elems();
  const uint32_t reduced = resolve_dims(op, dims, x.rank());
  int64_t n = 1;
  for (int d = 0; d < x.rank(); ++d) n *= ((reduced >> d) & 1u) != 0 ? x.shape()[d] : 1;
  return n;
}

Tensor number(double value, const Tensor& like) {
  return Tensor::full({}, value, like.dtype(), like.device());
}

}  // namespace

Tensor var(const Tensor& x, std::span<const int> dims, bool keepdim, int64_t correction) {
  check_operand(Op::var, x);
  const int64_t n = std::max<int64_t>(reduced_elems("var", x, dims) - correction, 0);
  // Squares of f16 numbers overflow in f16, so only the result is rounded to x's dtype. Assigning
  // to t frees the previous tensor, so at most two are alive.
  Tensor t = x.to(tape::wide(x.dtype()));
  t = t - mean(t, dims, true);
  t = sqr(t);
  t = sum(t, dims, keepdim);
  return (t / number(static_cast<double>(n), t)).to(x.dtype());
}

Tensor logsumexp(const Tensor& x, std::span<const int> dims, bool keepdim) {
  check_operand(Op::logsumexp, x);
  if (reduced_elems("logsumexp", x, dims) == 0 && sum(x.detach(), dims, true).elems() > 0) {
    throw Error("logsumexp", "nothing to reduce", x.str(), "the reduced range must not be empty");
  }
  // In narrow floats, the sum would overflow and each step would round, so only the result is
  // rounded. Assigning to t frees the previous tensor, so at most two are alive.
  Tensor t = x.to(tape::wide(x.dtype()));
  const Tensor top = max(t.detach(), dims, true);
  // If all elements are −inf, 0 is subtracted, so that log(Σ exp(−inf)) is −inf and not NaN.
  const Tensor finite = where(isinf(top), Tensor::zeros(top.shape(), t.dtype(), t.device()), top);
  t = t - finite;
  t = exp(t);
  const Tensor result = (log(sum(t, dims, true)) + finite).to(x.dtype());
  return keepdim ? result : result.reshape(max(top, dims, false).shape());
}

Tensor any(const Tensor& x, std::span<const int> dims, bool keepdim) {
  check_operand(Op::any, x);
  const Tensor set = x.to(DType::boolean);
  if (reduced_elems("any", x, dims) == 0) return sum(set, dims, keepdim).to(DType::boolean);
  return max(set, dims, keepdim);
}

Tensor all(const Tensor& x, std::span<const int> dims, bool keepdim) {
  check_operand(Op::all, x);
  const Tensor set = x.to(DType::boolean);
  if (reduced_elems("all", x, dims) == 0) return logical_not(any(set, dims, keepdim));
  return min(set, dims, keepdim);
}

namespace {

/// One operand of einsum, with a distinct letter for each dim.
struct Term {
  std::string letters;
  Tensor x;
};

[[noreturn]] void fail_einsum(std::string_view what, std::string_view equation,
                              std::string_view rule) {
  throw Error("einsum", what, std::string(equation), std::string(rule));
}

/// Sums x over the letters that aren't in `kept`.
Term reduced_to(Term t, const std::string& kept) {
  std::vector<int> dims;
  std::string left;
  for (size_t i = 0; i < t.letters.size(); ++i) {
    if (kept.find(t.letters[i]) == std::string::npos) {
      dims.push_back(static_cast<int>(i));
    } else {
      left += t.letters[i];
    }
  }
  if (dims.empty()) return t;
  return {left, sum(t.x, dims, false)};
}

/// Permutes the dims of t to the order of `letters`; letters that t lacks get size 1.
Tensor arranged(const Term& t, const std::string& letters) {
  std::vector<int> order;
  for (char c : letters) {
    const size_t at = t.letters.find(c);
    if (at != std::string::npos) order.push_back(static_cast<int>(at));
  }
  Tensor y = t.x.permute(order);
  for (size_t i = 0; i < letters.size(); ++i) {
    if (t.letters.find(letters[i]) == std::string::npos) y = y.unsqueeze(static_cast<int>(i));
  }
  return y;
}

/// The product of two terms, summed over their shared letters that aren't in `wanted`.
Term multiply(const Term& a, const Term& b, const std::string& wanted) {
  std::string batch, rows, columns, inner;
  for (char c : a.letters) {
    const bool shared = b.letters.find(c) != std::string::npos;
    const bool stays = wanted.find(c) != std::string::npos;
    (shared ? (stays ? batch : inner) : rows) += c;
  }
  for (char c : b.letters) {
    if (a.letters.find(c) == std::string::npos) columns += c;
  }
  const auto size = [&](const std::string& letters) {
    int64_t n = 1;
    for (char c : letters) {
      const Term& t = a.letters.find(c) != std::string::npos ? a : b;
      n *= t.x.size(static_cast<int>(t.letters.find(c)));
    }
    return n;
  };
  const Shape left{size(batch), size(rows), size(inner)},
      right{size(batch), size(inner), size(columns)};
  const Tensor product = matmul(arranged(a, batch + rows + inner).reshape(left),
                                arranged(b, batch + inner + columns).reshape(right));
  const std::string letters = batch + rows + columns;
  std::vector<int64_t> dims;
  for (char c : letters) dims.push_back(size(std::string(1, c)));
  return {letters, product.reshape(Shape(dims))};
}

/// Splits "ij,jk->ik" into the letters of each operand and of the result.
std::vector<std::string> parse_equation(std::string_view equation, size_t operands) {
  std::vector<std::string> parts(1);
  const size_t arrow = equation.find("->");
  if (arrow == std::string_view::npos) {
    fail_einsum("no result given", equation, "write it as in ij,jk->ik");
  }
  for (size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ' ') continue;
    if (i == arrow || c == ',') {
      parts.emplace_back();
      i += i == arrow ? 1 : 0;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      if (parts.back().find(c) != std::string::npos) {
        fail_einsum("a letter twice in one operand", equation, "take the diagonal first");
      }
      parts.back() += c;
    } else {
      fail_einsum("neither a letter nor a comma", equation, "write it as in ij,jk->ik");
    }
  }
  if (parts.size() != operands + 1) {
    fail_einsum("wrong number of operands", equation, fmt::format("{} were given", operands));
  }
  return parts;
}

/// Whether an equation takes several sums or gemms: it has more than two operands, or two operands
/// and a letter that is in only one of them and not in the result.
bool has_many_steps(const std::vector<std::string>& parts) {
  const size_t operands = parts.size() - 1;
  if (operands > 2) return true;
  for (size_t i = 0; i < operands && operands == 2; ++i) {
    for (const char c : parts[i]) {
      const bool elsewhere =
          parts[1 - i].find(c) != std::string::npos || parts[2].find(c) != std::string::npos;
      if (!elsewhere) return true;
    }
  }
  return false;
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  if (operands.empty()) throw Error("einsum", "no operands", std::string(equation));
  const std::vector<std::string> parts = parse_equation(equation, operands.size());
  const std::string& result = parts.back();
  std::vector<Term> terms;
  std::array<int64_t, 128> sizes;
  sizes.fill(-1);
  for (size_t i = 0; i < operands.size(); ++i) {
    check_operand(Op::einsum, operands[i]);
    check_same(Op::einsum, operands[0], operands[i]);
    if (static_cast<size_t>(operands[i].rank()) != parts[i].size()) {
      fail_einsum("letters don't match a rank", equation, operands[i].str());
    }
    for (size_t d = 0; d < parts[i].size(); ++d) {
      int64_t& size = sizes[static_cast<size_t>(parts[i][d])];
      const int64_t here = operands[i].size(static_cast<int>(d));
      if (size >= 0 && size != here) {
        fail_einsum("sizes of a letter differ", equation,
                    fmt::format("{} is {} and {}", parts[i][d], size, here));
      }
      size = here;
    }
    terms.push_back({parts[i], operands[i]});
  }
  for (char c : result) {
    if (sizes[static_cast<size_t>(c)] < 0) {
      fail_einsum("a letter that no operand has", equation, std::string(1, c));
    }
  }
  // A single sum or gemm rounds once. Several would also round their intermediate results, which
  // might overflow, so narrow floats are computed in f32.
  const DType dtype = operands[0].dtype(), wide = tape::wide(dtype);
  if (is_float(dtype) && wide != dtype && has_many_steps(parts)) {
    for (Term& t : terms) t.x = t.x.to(wide);
  }
  // Contracts from left to right; each step sums over letters that neither the result nor a later
  // operand has.
  Term all = terms.front();
  for (size_t i = 0; i < terms.size(); ++i) {
    std::string wanted = result;
    for (size_t later = i + 1; later < terms.size(); ++later) wanted += terms[later].letters;
    if (i == 0) {
      all = reduced_to(all, wanted);
    } else {
      const Term next = reduced_to(terms[i], wanted + all.letters);
      all = reduced_to(multiply(all, next, wanted), wanted);
    }
  }
  return arranged(all, result).to(dtype);
}

Tensor rope_of_tokens(const Tensor& x, const Tensor& cos, const Tensor& sin, bool interleaved) {
  const char* const op = "rope_of_tokens";
  check_operand(Op::rope, x, op);
  if (x.rank() < 3) throw Error(op, "rank below 3", x.str(), "need x [.., t, h, d]");
  const Tensor heads = x.transpose(-3, -2);
  return (interleaved ? rope_interleaved(heads, cos, sin) : rope(heads, cos, sin))
      .transpose(-3, -2);
}

Tensor grouped_linear(const Tensor& x, std::span<const Weight> experts, const Tensor& chosen) {
  const char* const op = "grouped_linear";
  check_device(op, x, chosen);
  chosen.require_values(op);
  if (experts.empty()) throw Error(op, "no weights");
  if (x.rank() != 2 || chosen.rank() != 2 || chosen.size(0) != x.size(0) ||
      chosen.dtype() != DType::u32) {
    throw Error(op, "operands don't fit", fmt::format("x {}, chosen {}", x.str(), chosen.str()),
                "need x [t, k] and chosen u32 [t, n]");
  }
  const int64_t t = x.size(0), n = chosen.size(1), width = experts.front().n();
  for (const Weight& w : experts) {
    if (w.n() != width || w.k() != x.size(1)) {
      throw Error(op, "weights differ in size",
                  fmt::format("[{},{}] and [{},{}]", width, x.size(1), w.n(), w.k()));
    }
  }
  // Groups rows by expert, runs each expert once, and puts the results back in order.
  const std::vector<uint32_t> ids = chosen.to_vector<uint32_t>();
  std::vector<std::vector<uint32_t>> rows(experts.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= experts.size()) {
      throw Error(ErrorKind::index, op, "index of a weight out of range",
                  fmt::format("{} of {}", ids[i], experts.size()));
    }
    rows[ids[i]].push_back(static_cast<uint32_t>(i));
  }
  std::vector<Tensor> parts;
  std::vector<uint32_t> places(ids.size());
  uint32_t place = 0;
  for (size_t e = 0; e < experts.size(); ++e) {
    if (rows[e].empty()) continue;
    std::vector<uint32_t> tokens;
    for (uint32_t i : rows[e]) {
      tokens.push_back(i / static_cast<uint32_t>(n));
      places[i] = place++;
    }
    const Shape count{static_cast<int64_t>(tokens.size())};
    parts.push_back(
        linear(index_select(x, Tensor::from(tokens, count, x.device()), 0), experts[e]));
  }
  if (parts.empty()) return Tensor::zeros({t, n, width}, x.dtype(), x.device());
  return index_select(cat(parts, 0), Tensor::from(places, Shape{t * n}, x.device()), 0)
      .reshape({t, n, width});
}

}  // namespace wick
