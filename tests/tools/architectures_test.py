#!/usr/bin/env python3
"""architectures_test.py SOURCE: counts the files that a GPU architecture takes. A chip's name may occur where
the list of compiled architectures is, and where features are defined that its compiler doesn't report. All other
code reads the feature word of an image. A chip therefore takes one file, and one with new instructions takes two."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
CHIP = re.compile(r"gfx\d+[a-f]?\b|sm_\d+a?\b|__gfx\w+__|__CUDA_ARCH\w*")
GPU = "wick/backend/gpu"
WHERE = {
    f"{GPU}/kernels/CMakeLists.txt",  # which architectures are compiled
    f"{GPU}/kernels/device/features.h",  # what units they have
}
# The image for a generation's chips. A new chip of an existing generation isn't named.
OF_GENERATIONS = {f"{GPU}/compile/images.cpp": {"gfx9", "gfx10", "gfx11", "gfx12", "gfx103", "gfx101", "gfx900",
                                                "gfx902", "gfx904", "gfx906", "gfx909"},
                  f"{GPU}/kernels/amd_cards.cmake": {"gfx9", "gfx10", "gfx90"}}


def names(text: str) -> set[str]:
    """Returns the chips that code names, apart from comments and builtins."""
    text = re.sub(r"//.*|/\*.*?\*/", "", text)
    text = re.sub(r"__builtin_\w+", "", text)
    return {name for name in CHIP.findall(text) if not re.fullmatch(r"__CUDA_ARCH__", name)}


def files_with_chips() -> dict[str, set[str]]:
    found = {}
    for path in sorted((SOURCE / "wick").rglob("*")):
        if path.suffix in {".cpp", ".h", ".gpu", ".def", ".txt", ".cmake"}:
            place = str(path.relative_to(SOURCE))
            chips = names(path.read_text()) - OF_GENERATIONS.get(place, set())
            if chips:
                found[place] = chips
    return found


class Architectures(unittest.TestCase):
    def test_a_chip_is_one_file_or_two(self):
        self.assertEqual(set(files_with_chips()), WHERE)

    def test_names_are_seen(self):
        self.assertEqual(names('if (a == "gfx1152" || b.starts_with("sm_100"))  // gfx90a'), {"gfx1152", "sm_100"})
        self.assertEqual(names("#if defined(__gfx950__) && x(__builtin_amdgcn_wmma_gfx12)"), {"__gfx950__"})
        self.assertEqual(names("// sm_90"), set())

    def test_cards_of_a_machine(self):
        """amd_cards.cmake names the images for cards that Linux lists, here a CPU, six cards and one without an image."""
        versions = [0, 90010, 120001, 100306, 110003, 110003, 90402, 80003]
        with tempfile.TemporaryDirectory() as folder:
            for number, version in enumerate(versions):
                node = pathlib.Path(folder) / "nodes" / str(number)
                node.mkdir(parents=True)
                (node / "properties").write_text(f"simd_count 1\ngfx_target_version {version}\nvendor_id 4098\n")
            script = pathlib.Path(folder) / "script.cmake"
            script.write_text(f"""cmake_minimum_required(VERSION 3.20)
include({SOURCE}/{GPU}/kernels/amd_cards.cmake)
wick_amd_cards(found {folder}/nodes "gfx90a;gfx1201;gfx1103")
message("${{found}}")
wick_amd_cards(found {folder}/none "gfx90a")
message("none: ${{found}}")
""")
            done = subprocess.run(["cmake", "-P", script], check=True, capture_output=True, text=True)
            self.assertEqual(done.stderr.split("\n")[:2], ["gfx90a;gfx1201;gfx10-3-generic;gfx1103", "none: "])


if __name__ == "__main__":
    unittest.main()
