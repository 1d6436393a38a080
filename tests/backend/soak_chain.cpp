#include "tests/backend/soak_chain.h"

namespace wick::soak {
namespace {

Shape some_rows(Soak& s) {
  const int64_t k = 32 * s.size(8);
  return {s.size(std::clamp<int64_t>(s.options.elems / k / 4, 1, 60)), k};
}

}  // namespace

Chain::Chain(Soak& s)
    : input_(DType::f32, Place::contiguous, some_rows(s), 1),
      norm_(DType::f32, Place::contiguous, {input_.shape()[1]}, 2),
      weight_(s.pick({DType::q4_0, DType::q8_0}), Place::contiguous,
              {input_.shape()[1], input_.shape()[1]}, 3),
      out_(DType::f32, Place::contiguous, input_.shape(), 4, true) {
  const Shape shape = input_.shape();
  for (TestTensor* t : {&input_, &norm_, &weight_}) t->fill(Values::normal, s.random);
  what_ = fmt::format("a recording over {}:", shape.str());
  for (int64_t i = 2 + s.random.below(5); i > 0; --i) {
    steps_.push_back(static_cast<Step>(s.random.below(7)));
    what_ += fmt::format(" {}", static_cast<int>(steps_.back()));
    between_.emplace_back(DType::f32, Place::contiguous, shape, 5, true);
  }
  s.what = what_;
  input_there_ = std::make_unique<OnDevice>(s.gpu, input_.storage());
  norm_there_ = std::make_unique<OnDevice>(s.gpu, norm_.storage());
  out_there_ = std::make_unique<OnDevice>(s.gpu, out_.storage());
  const ConstView weight = std::as_const(weight_).view();
  weight_here_ = s.cpu.prepare(std::span(&weight, 1), false);

  // All of these are freed at the end of this scope.
  std::deque<OnDevice> memory;
  std::vector<View> between;
  for (size_t i = 0; i + 1 < steps_.size(); ++i) {
    memory.emplace_back(s.gpu, between_[i].storage());
    between.push_back(memory.back().view(between_[i].view()));
  }
  between.push_back(out_there_->view(out_.view()));
  const OnDevice weight_there(s.gpu, weight_.storage()), half(s.gpu, input_.storage());
  const ConstView packed = weight_there.view(weight);
  const auto prepared = s.gpu.prepare(std::span(&packed, 1), false);
  const auto work = [&] {
    compute(s.gpu, input_there_->view(std::as_const(input_).view()), between,
            norm_there_->view(std::as_const(norm_).view()), *prepared,
            half.view(input_.view()).data);
  };
  if (s.one_in(2)) work();
  recording_ = s.gpu.record(work);
}

void Chain::step(Backend& b, Step step, const View& out, const ConstView& in,
                 const ConstView& input, const ConstView& norm, const PreparedWeight& weight,
                 void* half) const {
  switch (step) {
    case Step::silu:
      return b.unary(Op::silu, out, in);
    case Step::add_input:
      return b.binary(Op::add, out, in, input);
    case Step::rms_norm:
      return b.rms_norm(out, in, norm, 1e-5f);
    case Step::softmax:
      return b.softmax(out, in, 1, false);
    case Step::linear:
      return b.linear(out, in, weight, {});
    case Step::through_half: {
      const View narrow{half, DType::f16, in.layout};
      b.cast(narrow, in);
      return b.cast(out, narrow);
    }
    case Step::copy:
      return b.copy(out, in);
  }
}

void Chain::compute(Backend& b, const ConstView& input, const std::vector<View>& between,
                    const ConstView& norm, const PreparedWeight& weight, void* half) const {
  ConstView in = input;
  for (size_t i = 0; i < steps_.size(); ++i) {
    step(b, steps_[i], between[i], in, input, norm, weight, half);
    in = between[i];
  }
}

void Chain::replay(Soak& s) {
  s.what = what_;
  input_.fill(Values::normal, s.random);
  std::vector<View> between;
  for (size_t i = 0; i < steps_.size(); ++i) between.push_back(between_[i].view());
  TestTensor half(DType::f32, Place::contiguous, input_.shape(), 6);
  compute(s.cpu, std::as_const(input_).view(), between, std::as_const(norm_).view(), *weight_here_,
          half.view().data);
  s.gpu.upload(input_there_->view(input_.view()).data, input_.storage().data(),
               input_.storage().size());
  for (int64_t i = s.random.below(3); i >= 0; --i) recording_->replay();
  out_there_->fetch(out_.storage());
  s.expect_same("the result", DType::f32, between_.back().bits(), out_.bits());
}

}  // namespace wick::soak
