// Recurrences over sequences: kernels/recurrent/.

#include <algorithm>
#include <string_view>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/recurrent/recurrent_abi.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

// The number is the taps, or the m, that kernels hold in registers; 0: any.
const KernelFamily<CausalConvArgs, OneOf<0, 2, 3, 4>> kCausalConv("causal_conv", "causal_conv_{}");
const KernelFamily<CausalConvArgs> kCausalConvState("causal_conv", "causal_conv_state");
const KernelFamily<ScanArgs, OneOf<0, 16, 64, 128>> kSsmScan("ssm_scan", "ssm_scan_{}");
const KernelFamily<ScanArgs, OneOf<0, 16, 64, 128>> kDeltaScan("gated_delta_scan",
                                                               "gated_delta_scan_{}");

const float* floats(const ConstView& x) {
  return x.data == nullptr ? nullptr : static_cast<const float*>(x.data) + x.layout.offset();
}
float* floats(const View& x) { return static_cast<float*>(x.data) + x.layout.offset(); }

/// A count that kernels take as 32 bits. Errors: it is larger.
uint32_t word(std::string_view op, int64_t count) {
  if (count <= INT32_MAX) return static_cast<uint32_t>(count);
  throw Error(ErrorKind::not_implemented, op, "too many rows, heads or columns");
}

Slots slots_of(Gpu& gpu, std::string_view op, const Recurrence& where) {
  const int64_t held = where.state.layout.shape()[0];
  return {static_cast<const uint32_t*>(where.slots.data) + where.slots.layout.offset(),
          where.slots.layout.stride(0),
          word(op, where.slots.layout.shape()[0]),
          word(op, held),
          gpu.note(op, ConstView(where.state), where.slots, held),
          gpu.fault_line()};
}

int64_t blocks_for(int64_t count, uint32_t each) { return (count + each - 1) / each; }

/// The arguments that both scans have: x or v [t, h, p], b or k and c or q [t, g, m].
ScanArgs scan_args(Gpu& gpu, std::string_view op, const View& out, const ConstView& x,
                   const ConstView& b, const ConstView& c, const ConstView& step,
                   const ConstView& decay, const Recurrence& where) {
  const Layout &xl = x.layout, &bl = b.layout, &cl = c.layout, &yl = out.layout;
  const Layout& state = where.state.layout;
  ScanArgs args{};
  args.y = floats(out), args.x = floats(x), args.b = floats(b), args.c = floats(c);
  args.step = floats(step), args.decay = floats(decay), args.state = floats(where.state);
  args.slots = slots_of(gpu, op, where);
  args.y_row = yl.stride(0), args.y_head = yl.stride(1);
  args.x_row = xl.stride(0), args.x_head = xl.stride(1), args.x_step = xl.stride(2);
  args.b_row = bl.stride(0), args.b_group = bl.stride(1), args.b_step = bl.stride(2);
  args.c_row = cl.stride(0), args.c_group = cl.stride(1), args.c_step = cl.stride(2);
  args.step_row = step.layout.stride(0), args.step_head = step.layout.stride(1);
  args.decay_row = decay.layout.stride(0), args.decay_head = decay.layout.stride(1);
  args.state_sequence = state.stride(0), args.state_head = state.stride(1);
  args.each = word(op, xl.shape()[0] / args.slots.count);
  args.heads = word(op, xl.shape()[1]), args.columns = word(op, xl.shape()[2]);
  args.m = word(op, bl.shape()[2]);
  args.of_group = word(op, xl.shape()[1] / bl.shape()[1]);
  args.tiles = word(op, blocks_for(xl.shape()[2], kScanColumns));
  return args;
}

template <class Family>
void launch_scan(Gpu& gpu, std::string_view op, const Family& family, const ScanArgs& args) {
  const bool held = args.m == 16 || args.m == 64 || args.m == 128;
  const uint32_t blocks = word(op, int64_t{args.slots.count} * args.heads * args.tiles);
  family(held ? args.m : 0)
      .launch(gpu, {.blocks = {blocks, 1, 1}, .threads = kScanColumns, .pdl = true}, args);
}

}  // namespace

void GpuBackend::causal_conv(const View& out, const ConstView& x, const ConstView& weight,
                             const ConstView& bias, const Recurrence& where) {
  constexpr const char* kOp = "causal_conv";
  if (out.layout.elems() == 0) return;
  const Layout &wl = weight.layout, &state = where.state.layout;
  CausalConvArgs args{};
  args.y = floats(out), args.x = floats(x), args.weight = floats(weight), args.bias = floats(bias);
  args.state = floats(where.state);
  args.slots = slots_of(gpu_, kOp, where);
  args.y_row = out.layout.stride(0);
  args.x_row = x.layout.stride(0), args.x_step = x.layout.stride(1);
  args.weight_row = wl.stride(0), args.weight_step = wl.stride(1);
  args.bias_step = bias.data != nullptr ? bias.layout.stride(0) : 0;
  args.state_sequence = state.stride(0), args.state_row = state.stride(1);
  args.each = word(kOp, x.layout.shape()[0] / args.slots.count);
  args.channels = word(kOp, wl.shape()[0]), args.taps = word(kOp, wl.shape()[1]);
  args.tiles = word(kOp, blocks_for(args.channels, kConvThreads));
  args.parts = word(kOp, blocks_for(args.each, kConvRows));
  const int64_t of_state = int64_t{args.slots.count} * args.tiles;
  Grid grid{
      .blocks = {word(kOp, of_state * args.parts), 1, 1}, .threads = kConvThreads, .pdl = true};
  kCausalConv(args.taps >= 2 && args.taps <= 4 ? args.taps : 0).launch(gpu_, grid, args);
  if (args.parts == 1 || args.taps == 1) return;
  grid.blocks[0] = word(kOp, of_state);
  kCausalConvState().launch(gpu_, grid, args);
}

void GpuBackend::ssm_scan(const View& out, const SsmScan& of, const Recurrence& where) {
  if (out.layout.elems() == 0) return;
  ScanArgs args = scan_args(gpu_, "ssm_scan", out, of.x, of.b, of.c, of.dt, of.dt, where);
  args.a = floats(of.a), args.d = floats(of.d);
  args.a_step = of.a.layout.stride(0);
  args.d_step = of.d.data != nullptr ? of.d.layout.stride(0) : 0;
  launch_scan(gpu_, "ssm_scan", kSsmScan, args);
}

void GpuBackend::gated_delta_scan(const View& out, const GatedDeltaScan& of,
                                  const Recurrence& where) {
  if (out.layout.elems() == 0) return;
  launch_scan(gpu_, "gated_delta_scan", kDeltaScan,
              scan_args(gpu_, "gated_delta_scan", out, of.v, of.k, of.q, of.beta, of.g, where));
}

}  // namespace wick::gpu
