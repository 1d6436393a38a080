#include "wick/backend/gpu/compile/code.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/environment.h"
#include "wick/base/error.h"
#include "wick/base/log.h"

namespace wick::gpu {

bool images_allowed() { return environment_choice("WICK_GPU_IMAGES") != "off"; }

Code::Code(Device device, const GpuInfo& info) : device_(device) {
  const bool allowed = images_allowed();
  if (allowed && has_images(info.architecture, architecture_)) {
    unpacking_ = std::async(std::launch::async, [name = architecture_] {
      std::string chosen;
      return find_images(name, chosen);
    });
    return;
  }
  compiler_ = Compiler::of(device.kind);
  if (compiler_ != nullptr) {
    target_ = compiler_->target(info.architecture);
    architecture_ = target_.architecture;
    return;
  }
  const std::vector<std::string> others = image_architectures();
  throw Error(ErrorKind::runtime, "device", "no kernels for its architecture",
              fmt::format("{} {} ({})", device.str(), info.name, info.architecture),
              fmt::format("{}; and no compiler: {}",
                          !allowed ? "WICK_GPU_IMAGES=off leaves out those in this binary"
                          : others.empty()
                              ? "this binary has none"
                              : fmt::format("this binary has them for {}", fmt::join(others, " ")),
                          Compiler::missing(device.kind)));
}

std::string Code::image(std::string_view file) {
  if (compiler_ == nullptr) {
    if (unpacking_.valid()) images_ = unpacking_.get().value();
    if (const auto at = images_.find(file); at != images_.end()) {
      if (logging()) {
        log_line(
            fmt::format("{}: loaded kernels of {} for {}", device_.str(), file, architecture_));
      }
      return at->second;
    }
  } else {
    const std::string name = fmt::format("/{}.gpu", file);
    const auto at = std::find_if(kernel_sources().begin(), kernel_sources().end(),
                                 [&](const auto& source) { return source.first.ends_with(name); });
    if (at != kernel_sources().end()) {
      bool compiled = false;
      std::string image =
          compiler_->compile_cached({at->first, at->second, &kernel_sources()}, target_, compiled);
      ++(compiled ? compiled_ : cached_);
      if (logging()) {
        log_line(fmt::format("{}: {} kernels of {} for {}", device_.str(),
                             compiled ? "compiled" : "loaded compiled", file, architecture_));
      }
      return image;
    }
  }
  throw Error(ErrorKind::runtime, device_.str(), "no such kernels", fmt::format("{}.gpu", file),
              architecture_);
}

}  // namespace wick::gpu
