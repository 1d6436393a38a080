"""The machine that AMD's runtime sees: the topology folder of a chip, and the environment and command of a program."""

import collections
import os
import pathlib
import tempfile

from rocm.errors import RocmError

# version: gfx_target_version, decimal digits of major, minor and stepping.
Chip = collections.namedtuple("Chip", "version wave units family device product")
CHIPS = {
    "gfx1100": Chip(110000, 32, 96, 145, 0x744c, "AMD Radeon RX 7900 XTX (emulated)"),
    "gfx90a": Chip(90010, 64, 104, 141, 0x7408, "AMD Instinct MI250X (emulated)"),
}
GIB = 1 << 30
CPU_MEMORY, GPU_MEMORY = 16 * GIB, 8 * GIB


def write(path, pairs):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{name} {value}\n" for name, value in pairs.items()), encoding="ascii")


def link(source, target):
    return {"type": 2, "version_major": 0, "version_minor": 0, "node_from": source, "node_to": target, "weight": 20,
            "min_latency": 0, "max_latency": 0, "min_bandwidth": 312, "max_bandwidth": 64000,
            "recommended_transfer_size": 0, "recommended_sdma_engine_id_mask": 0, "flags": 1}


def gpu_properties(chip, number):
    simds = 2 if chip.wave == 32 else 4
    # Bit 30 of the capabilities stays 0: it would make ROCr ask for a debugger's runtime, which its hook lacks. Without
    # SDMA engines, kernels copy.
    return {"cpu_cores_count": 0, "simd_count": chip.units * simds, "mem_banks_count": 1, "caches_count": 2,
            "io_links_count": 1, "p2p_links_count": 0, "cpu_core_id_base": 0, "simd_id_base": 2147487744,
            "capability": 0x2002, "capability2": 0, "debug_prop": 0, "max_waves_per_simd": 16 if chip.wave == 32 else 8,
            "lds_size_in_kb": 64, "gds_size_in_kb": 0, "num_gws": 0, "wave_front_size": chip.wave, "array_count": 12,
            "simd_arrays_per_engine": 2, "cu_per_simd_array": 8, "simd_per_cu": simds, "max_slots_scratch_cu": 32,
            "gfx_target_version": chip.version, "vendor_id": 0x1002, "device_id": chip.device,
            "location_id": 0x300 + 0x100 * number, "domain": 0, "drm_render_minor": 128 + number, "hive_id": 0,
            "num_sdma_engines": 0, "num_sdma_xgmi_engines": 0, "num_sdma_queues_per_engine": 0, "num_cp_queues": 8,
            "max_engine_clk_fcompute": 2482, "local_mem_size": 0, "fw_version": 592, "sdma_fw_version": 24,
            "unique_id": 1234567 + number, "num_xcc": 1, "family_id": chip.family, "max_engine_clk_ccompute": 3000}


def write_topology(folder, chips):
    """Writes what the kernel would show below /sys/class/kfd/kfd/topology for a machine with these chips."""
    write(folder / "system_properties", {"platform_oem": 0, "platform_id": 0, "platform_rev": 0})
    (folder / "generation_id").write_text("1\n")
    node = folder / "nodes" / "0"
    write(node / "properties", {"cpu_cores_count": 2, "simd_count": 0, "mem_banks_count": 1, "caches_count": 0,
                                "io_links_count": len(chips), "p2p_links_count": 0, "cpu_core_id_base": 0,
                                "simd_id_base": 0, "capability": 0, "max_waves_per_simd": 0, "lds_size_in_kb": 0,
                                "wave_front_size": 0, "max_engine_clk_ccompute": 3000})
    write(node / "mem_banks/0/properties", {"heap_type": 0, "size_in_bytes": CPU_MEMORY, "flags": 0, "width": 64,
                                            "mem_clk_max": 3200})
    (node / "gpu_id").write_text("0\n")
    (node / "name").write_text("\n")
    for number, chip in enumerate(chips):
        write(node / f"io_links/{number}/properties", link(0, number + 1))
        write_gpu(folder / "nodes" / str(number + 1), chip, number)


def write_gpu(node, chip, number):
    write(node / "properties", gpu_properties(chip, number))
    (node / "gpu_id").write_text(f"{number + 2}\n")  # the hook asks for the node's number plus one
    (node / "name").write_text("emulated\n")
    (node / "product").write_text(chip.product + "\n")
    write(node / "mem_banks/0/properties", {"heap_type": 1, "size_in_bytes": GPU_MEMORY, "flags": 0, "width": 384,
                                            "mem_clk_max": 1249})
    write(node / "io_links/0/properties", link(number + 1, 0))
    for level, kib in ((1, 32), (2, 6144)):
        write(node / f"caches/{level - 1}/properties", {
            "processor_id_low": 2147487744, "level": level, "size": kib, "cache_line_size": 128,
            "cache_lines_per_tag": 1, "association": 16, "latency": 0, "type": 9, "sibling_map": 1})


class Machine:
    """Runs programs with the libraries of a release and emulated chips. A context manager: it owns the topology folder."""

    def __init__(self, libraries, emulator, chips, more_libraries=()):
        self.libraries = [pathlib.Path(folder).resolve() for folder in libraries]
        self.model = pathlib.Path(emulator).resolve() / "lib" / "model"
        self.chips = chips
        self.more_libraries = [str(pathlib.Path(folder).resolve()) for folder in more_libraries]
        self.folder = None

    def __enter__(self):
        hip = self.library("libamdhip64.so")
        self.folder = tempfile.TemporaryDirectory(prefix="wick-rocm-")
        write_topology(pathlib.Path(self.folder.name), [CHIPS[chip] for chip in self.chips])
        # hiprtc opens this name, which only Debian's packages for developers have, to find the chip to compile for.
        self.links().mkdir()
        (self.links() / "libamdhip64.so").symlink_to(hip)
        return self

    def links(self):
        return pathlib.Path(self.folder.name) / "lib"

    def __exit__(self, *_):
        self.folder.cleanup()

    def library(self, name):
        """The file of a library of the release: its name ends with a digit."""
        found = sorted(self.libraries[0].glob(f"{name}.?"))
        if not found:
            raise RocmError(f"there is no {name} in {self.libraries[0]}")
        return str(found[0])

    def environment(self, more=None):
        """The environment of a program. more: other variables; None removes one."""
        env = dict(os.environ)
        for name in ("WICK_EMU_DEVICES", "WICK_EMU_CHECK", "LD_LIBRARY_PATH", "LD_PRELOAD", "ROCM_PATH", "HIP_PATH"):
            env.pop(name, None)
        env.update({"HSA_MODEL_TOPOLOGY": self.folder.name, "HSA_MODEL_LIB": str(self.model / "libwick_emu_model.so"),
                    # Kernels copy, and threads poll signals: the hook has neither copy queues nor reliable events.
                    "HSA_ENABLE_SDMA": "0", "HSA_ENABLE_INTERRUPT": "0",
                    # In MB. Smaller copies go through staging buffers; the hook can't map a program's own memory.
                    "GPU_PINNED_XFER_SIZE": "4096", "GPU_PINNED_MIN_XFER_SIZE": "4096",
                    "WICK_HIP_LIBRARY": self.library("libamdhip64.so"),
                    "WICK_HIPRTC_LIBRARY": self.library("libhiprtc.so")})
        env.update(more or {})
        return {name: value for name, value in env.items() if value is not None}

    def command(self, program, arguments=()):
        """The program under the loader and the C library of the packages, which are newer than this machine's."""
        folders = [str(self.model), *(str(folder) for folder in self.libraries), *self.more_libraries, str(self.links())]
        loader = self.libraries[-1] / "ld-linux-x86-64.so.2"
        return [str(loader), "--library-path", ":".join(folders), str(program), *map(str, arguments)]
