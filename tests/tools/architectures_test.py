#!/usr/bin/env python3
"""architectures_test.py SOURCE: counts the files that a GPU architecture takes. A chip's name may occur where
the list of compiled architectures is, and where features are defined that its compiler doesn't report. All other
code reads the feature word of an image. A chip therefore takes one file, and one with new instructions takes two."""
import pathlib
import re
import sys
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
                                                "gfx902", "gfx904", "gfx906", "gfx909"}}


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


if __name__ == "__main__":
    unittest.main()
