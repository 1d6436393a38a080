// Launches of users' kernels.

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/compile/compiler.h"
#include "wick/backend/gpu/custom/custom_text.h"
#include "wick/backend/gpu/custom/object_file.h"
#include "wick/backend/gpu/custom/user_modules.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

/// Kernels have arguments of at most this size on both vendors' GPUs, without extensions.
constexpr size_t kMostArgumentBytes = 4096;

std::shared_ptr<UserModule> load(Gpu& gpu, std::string image, std::string_view op,
                                 const std::string& what) {
  // Zeros behind the image limit what a driver reads beyond the end of a damaged one.
  constexpr size_t kPadding = 4096;
  image.append(kPadding, '\0');
  return std::make_shared<UserModule>(gpu, image, op, what);
}

std::shared_ptr<UserModule> module_of_text(Gpu& gpu, UserModules& modules,
                                           const KernelLaunch& launch) {
  return modules.find(key_of(launch), [&] {
    const std::string source = source_of(launch);
    const Compiler* const compiler = Compiler::of(gpu.device.kind);
    if (compiler == nullptr) {
      throw Error(
          ErrorKind::runtime, launch.op, "no run-time compiler for the kernel's source",
          gpu.device.str(),
          fmt::format("{}: install it, or pass a code object", Compiler::missing(gpu.device.kind)));
    }
    bool compiled = false;
    const std::string name = kernel_name(launch.op);
    return load(gpu,
                compiler->compile_cached({name + ".gpu", source, &kernel_sources()},
                                         compiler->target(gpu.info.architecture), compiled),
                launch.op, "compiled source");
  });
}

std::shared_ptr<UserModule> module_of_code(Gpu& gpu, UserModules& modules,
                                           const KernelLaunch& launch) {
  const KernelCode& code = *launch.code;
  return modules.find("code " + code.digest(), [&] {
    check_code(launch.op, gpu.device.kind, code.bytes());
    return load(gpu, code.bytes(), launch.op, fmt::format("{} bytes", code.bytes().size()));
  });
}

/// Errors: the arguments, `count` bytes, aren't those of the kernel, if its driver or its code
/// object says how many it has. HIP doesn't check their size.
void check_argument_bytes(const KernelLaunch& launch, const std::string& name,
                          const UserFunction& function, size_t count) {
  const int64_t need = function.argument_bytes;
  if (need < 0 || static_cast<int64_t>(count) == need) return;
  throw Error(launch.op, "the arguments have another size than the kernel's",
              fmt::format("{}, {} arguments of {} bytes", name, launch.arguments.size(), count),
              fmt::format("need {} bytes", need));
}

}  // namespace

void* GpuBackend::work_stream() {
  gpu_.enter();
  return gpu_.stream();
}

LaunchLimits GpuBackend::launch_limits() { return user_modules_.limits; }

void GpuBackend::launch(const KernelLaunch& launch) {
  gpu_.enter();
  const LaunchLimits& limits = user_modules_.limits;
  check_grid(launch.op, launch.grid, limits, 0, 0);  // before the source is compiled
  const bool is_text = launch.text != nullptr;
  const std::shared_ptr<UserModule> module = is_text ? module_of_text(gpu_, user_modules_, launch)
                                                     : module_of_code(gpu_, user_modules_, launch);
  const std::string name = is_text ? kernel_name(launch.op) : std::string(launch.function);
  const UserFunction function = module->function(name, launch.op);
  check_grid(launch.op, launch.grid, limits, function.most_threads, function.static_shared_bytes);
  if (launch.grid.shared_bytes > 0) module->allow_shared(name, launch.grid.shared_bytes);
  gpu_.keep(module);

  const auto size = [](int64_t n) { return static_cast<unsigned>(n); };  // checked by check_grid
  const auto& [blocks, threads, shared_bytes] = launch.grid;
  const auto run = [&](void** arguments, void** extra) {
    return gpu_.driver.api.launch(
        function.handle, size(blocks[0]), size(blocks[1]), size(blocks[2]), size(threads[0]),
        size(threads[1]), size(threads[2]), size(shared_bytes), gpu_.stream(), arguments, extra);
  };
  int code = 0;
  if (is_text) {
    std::vector<uint64_t> words = argument_words(launch);
    void* arguments[] = {words.data()};
    code = run(arguments, nullptr);
  } else {
    // The arguments are passed as one buffer with its size. From a list of addresses, a driver
    // would read one for each parameter of the kernel, even beyond the end of a shorter list. Zeros
    // pad the buffer, because some drivers don't check its size.
    std::vector<std::byte> bytes = packed_arguments(launch.arguments);
    size_t count = bytes.size();
    check_argument_bytes(launch, name, function, count);
    bytes.resize(std::max<size_t>(count, kMostArgumentBytes));
    const auto key = [](uintptr_t number) { return reinterpret_cast<void*>(number); };
    constexpr uintptr_t kPointer = 1, kSize = 2;
    void* extra[] = {key(kPointer), bytes.data(), key(kSize), &count,
                     gpu_.driver.end_of_launch_parameters()};
    code = run(nullptr, extra);
  }
  if (code == 0) return;
  gpu_.check(code, fmt::format("launching {} of {} ({}x{}x{} blocks of {}x{}x{}, {} arguments)",
                               name, launch.op, blocks[0], blocks[1], blocks[2], threads[0],
                               threads[1], threads[2], launch.arguments.size()));
}

}  // namespace wick::gpu
