// wick.Device and statistics of devices.
#include "wick/backend/devices.h"

#include <fmt/format.h>

#include "python/bindings/arguments.h"
#include "python/bindings/binding.h"
#include "python/bindings/python.h"
#include "wick/backend/cpu/cpu.h"
#include "wick/base/error.h"
#include "wick/base/precision.h"
#include "wick/base/printable.h"
#include "wick/tensor/memory.h"

namespace wick::python {
namespace {

using namespace nb::literals;

std::string kind_of(Device device) {
  const std::string text = device.str();
  return text.substr(0, text.find(':'));
}

std::string name_of(Device device) {
  if (device.kind == DeviceKind::cpu) return fmt::format("CPU ({})", cpu::isa());
  for (const GpuDescription& gpu : gpus()) {
    if (gpu.device == device) return gpu.name;
  }
  throw Error(ErrorKind::runtime, "device", "no such device here", device.str());
}

void warn_of(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (PyErr_WarnEx(PyExc_RuntimeWarning, line.c_str(), 1) != 0) throw nb::python_error();
  }
}

/// Returns the best device for models. Warns about unusable drivers that the environment names.
Device best_with_warnings() {
  std::vector<std::string> unusable;
  Device best;
  {
    const ReleasedGil released;
    best = best_device();
    unusable = unusable_drivers();
  }
  warn_of(unusable);
  return best;
}

/// The CPU, and every GPU for which there are kernels or a run-time compiler.
std::vector<Device> devices() {
  std::vector<Device> all{Device::cpu()};
  for (const GpuDescription& gpu : gpus()) {
    if (!gpu.kernels.empty() || !gpu.compiler.empty()) all.push_back(gpu.device);
  }
  return all;
}

void bind_memory(nb::module_& m) {
  nb::class_<MemoryStats>(m, "MemoryStats", "Memory statistics of a device, in bytes.")
      .def_ro("in_use", &MemoryStats::in_use_bytes, "Held by tensors and packed weights.")
      .def_ro("cached", &MemoryStats::cached_bytes, "Freed and kept for later tensors.")
      .def_ro("peak", &MemoryStats::peak_bytes, "Largest in_use so far.")
      .def_ro("limit", &MemoryStats::limit_bytes, "Maximum of in_use + cached.")
      .def_ro("total", &MemoryStats::total_bytes, "Memory of the device.")
      .def_ro("free", &MemoryStats::free_bytes,
              "Memory that the system can still give to any "
              "process.")
      .def("__repr__", [](const MemoryStats& s) {
        return fmt::format(
            "MemoryStats(in_use={}, cached={}, peak={}, limit={}, total={}, free={})",
            s.in_use_bytes, s.cached_bytes, s.peak_bytes, s.limit_bytes, s.total_bytes,
            s.free_bytes);
      });
  m.def(
      "memory_stats", [](DeviceArg d) { return memory_stats(d.get()); }, "device"_a = "cpu",
      "Returns the memory statistics of a device.");
  m.def(
      "set_memory_limit", [](DeviceArg d, size_t bytes) { set_memory_limit(d.get(), bytes); },
      "device"_a, "bytes"_a,
      "Limits the bytes of a device's memory that this process may hold; 0 removes the limit.");
  m.def(
      "trim_memory", [](DeviceArg d) { trim_memory(d.get()); }, "device"_a = "cpu",
      "Returns cached memory to the system.");
  m.def(
      "reset_peak_memory", [](DeviceArg d) { reset_peak_memory(d.get()); }, "device"_a = "cpu",
      "Sets the peak to the memory in use.");
  m.def(
      "synchronize",
      [](DeviceArg d) {
        const Device device = d.get();
        const ReleasedGil released;
        synchronize(device);
      },
      "device"_a, "Waits for all work queued on a device.");
}

}  // namespace

void warn_of_libraries(std::span<const Device> devices) {
  std::vector<std::string> unusable;
  {
    const ReleasedGil released;
    unusable = unusable_libraries(devices);
  }
  warn_of(unusable);
}

Device DeviceArg::get() const {
  if (nb::isinstance<Device>(object)) return nb::cast<const Device&>(object);
  if (!nb::isinstance<nb::str>(object)) {
    throw nb::type_error(
        fmt::format("device: need a wick.Device or a name such as \"cuda:0\": not {}",
                    nb::cast<std::string>(nb::repr(object)))
            .c_str());
  }
  const std::string text = utf8_of(object, "device");
  if (text == "auto") return best_with_warnings();
  return Device::parse(text);
}

void bind_devices(nb::module_& m) {
  nb::class_<Device>(m, "Device", "A device: \"cpu\", \"cuda:0\", \"hip:0\".")
      .def(
          "__init__",
          [](Device* self, const std::string& text) { new (self) Device(Device::parse(text)); },
          "name"_a)
      .def_prop_ro("kind", &kind_of, "\"cpu\", \"cuda\" or \"hip\"")
      .def_ro("index", &Device::index, "The number of the device among those of its kind.")
      .def_prop_ro("name", &name_of, "The device's name according to its driver.")
      .def("__str__", &Device::str)
      .def("__repr__", [](Device d) { return fmt::format("wick.Device(\"{}\")", d.str()); })
      .def(
          "__eq__",
          [](Device a, nb::handle other) {
            if (nb::isinstance<nb::str>(other)) return nb::str(a.str().c_str()).equal(other);
            return nb::isinstance<Device>(other) && a == nb::cast<const Device&>(other);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](Device d) { return nb::hash(nb::str(d.str().c_str())); })
      .def(
          "__reduce__",
          [](Device d) { return nb::make_tuple(nb::type<Device>(), nb::make_tuple(d.str())); },
          nb::sig("def __reduce__(self) -> typing.Any"));
  m.def(
      "devices",
      [] {
        std::vector<std::string> unusable;
        std::vector<Device> all;
        {
          const ReleasedGil released;
          all = devices();
          unusable = unusable_drivers();
        }
        warn_of(unusable);
        return all;
      },
      "The available devices: the CPU and the GPUs that were found.");
  m.def("best_device", &best_with_warnings,
        "The best device for models; the device name \"auto\" selects it.");
  m.def("num_threads", &cpu::threads, "The number of threads that CPU work may use.");
  m.def("set_num_threads", &cpu::set_threads, "count"_a,
        "Sets the number of threads that CPU work may use.");
  m.def(
      "set_precision",
      [](std::string_view name) {
        if (name != "full" && name != "fast") {
          throw Error(ErrorKind::value, "set_precision", "no such precision",
                      fmt::format("'{}'", printable(name)), "use full or fast");
        }
        set_precision(name == "fast" ? Precision::fast : Precision::full);
      },
      "precision"_a,
      "Sets what GPUs may round inside an op, for all threads. \"full\", the default, computes in "
      "f32. With \"fast\", attention of more than 8 queries, and its gradients, round intermediate "
      "results to the operands' 16-bit dtype, as PyTorch does, and vendors' libraries may round "
      "f32 operands to TF32.");
  m.def(
      "precision", [] { return precision() == Precision::fast ? "fast" : "full"; },
      "The setting of set_precision, or else of WICK_PRECISION: \"full\" or \"fast\".");
  bind_memory(m);
}

}  // namespace wick::python
