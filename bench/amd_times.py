#!/usr/bin/env python3
"""Estimates the times of kernels on AMD GPUs from a profile of the emulator: amd_times.py PROFILE.json.

Nothing here is measured. For each kernel, the table has the launches of the profile (WICK_EMU_PROFILE) and, in microseconds for all
of its launches, the times below, of the chip that the kernel's architecture stands for (CHIPS, with published figures).

Lower bounds, each for one part of the chip that does nothing else:
  issue     instructions of vector ALUs, and the cycles of matrix units, spread evenly over the SIMDs that have waves
  lds       LDS accesses, a cycle each, and conflicts, over the compute units that have thread blocks
  l1, l2    64-byte transactions at the width of the first cache, over these compute units, and at that of the second
  memory    the bytes that a launch touches, each once, at the memory's peak; if they fit the last cache, at that cache's
at least    the largest of them

Estimate:
  rounds    waves come in rounds of what is resident; a last round that isn't full takes as long as a full one
  latency   in a round, a wave waits for LATENCY each time that it has issued IN_FLIGHT loads
  estimate  the sum of a launch's START and the largest of: issue and lds, rounded up to whole rounds; l1, l2 and memory at
            REACHED of their widths; rounds times latency

It knows no dependencies between instructions, no order of accesses, no clocks below the published peak, and no overlap of
kernels. amd_times_check.py compares the order of estimates with that of published times and prints Kendall's tau.
"""
import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

START = 4e-6  # seconds between kernels of one stream: the order of what is published for HIP's graphs and streams
LATENCY = 5e-7  # seconds of a load from memory; published tests give 0.3 to 0.8 microseconds
IN_FLIGHT = 8  # an assumption: loads that compilers issue before they wait for the first
REACHED = 0.8  # of a peak, by published copies


@dataclass(frozen=True)
class Chip:
    """Published figures. Widths are bytes a clock: of the first cache and the LDS of a compute unit, and of the second cache of
    the chip; bandwidths are bytes a second."""
    name: str
    clock: float
    units: int
    simds: int  # of a unit
    valu_cycles: int  # for which an instruction of a wave occupies a SIMD
    l1_width: int
    l2_width: int
    memory: float
    last_cache: int
    last_cache_speed: float


CHIPS = {
    # AMD, "RDNA 3" and the product's page: 96 units of two SIMDs for waves of 32, 2.5 GHz boost, 960 GB/s, 96 MB at 3.5 TB/s.
    "gfx1100": Chip("Radeon RX 7900 XTX", 2.5e9, 96, 2, 1, 64, 2048, 960e9, 96 << 20, 3.5e12),
    # AMD, "CDNA 2": one die of MI250X has 110 units of four SIMDs, which take waves of 64 in four cycles, 1.7 GHz, 1.6 TB/s; the
    # second cache has 8 MB and 32 channels of 128 bytes.
    "gfx90a": Chip("Instinct MI250X, one die", 1.7e9, 110, 4, 4, 64, 4096, 1.6384e12, 8 << 20, 6.96e12),
    # AMD, "CDNA 3": MI300X has 304 units, 2.1 GHz, 5.3 TB/s, eight second caches of 2 KB a clock, and 256 MB at 17.2 TB/s.
    "gfx942": Chip("Instinct MI300X", 2.1e9, 304, 4, 4, 64, 16384, 5.3e12, 256 << 20, 17.2e12),
}


def up(a, b):
    return -(-a // b)


def times(kernel, chip):
    """Returns the bounds and the estimate, in seconds, for all launches of a kernel's entry in a profile."""
    launches, counts, memory = kernel["launches"], kernel["instructions"], kernel["global"]
    waves, groups = kernel["waves"] / launches, kernel["groups"] / launches  # of one launch
    busy_units = min(chip.units, max(groups, 1))
    busy_simds = min(chip.units * chip.simds, max(waves, 1))
    vector = counts["valu"] * chip.valu_cycles + kernel["matrix_cycles"]
    touched = memory["touched_bytes"]
    in_cache = touched / launches <= chip.last_cache
    bounds = {
        "issue": vector / busy_simds / chip.clock,
        "lds": (kernel["lds"]["accesses"] + kernel["lds"]["conflict_cycles"]) / busy_units / chip.clock,
        "l1": memory["transactions_64"] * 64 / (chip.l1_width * busy_units) / chip.clock,
        "l2": memory["transactions_64"] * 64 / chip.l2_width / chip.clock,
        "memory": touched / (chip.last_cache_speed if in_cache else chip.memory),
    }
    resident = chip.units * chip.simds * max(kernel["waves_per_simd"], 1)
    per_round = min(resident, max(waves, 1))
    rounds = up(waves, resident)
    waits = up((counts["vmem"] + counts["smem"]) / max(kernel["waves"], 1), IN_FLIGHT)  # of one wave
    whole = rounds * per_round / max(waves, 1)
    # Weights, which most kernels read, don't fit a cache.
    from_memory = touched / chip.memory
    estimate = launches * START + max(bounds["issue"] * whole, bounds["lds"] * whole, bounds["l1"] / REACHED,
                                      bounds["l2"] / REACHED, from_memory / REACHED, launches * rounds * waits * LATENCY)
    return bounds | {"at least": max(bounds.values()), "estimate": estimate}


def total(profile, architecture=None):
    """Returns the sums of the lower bounds and of the estimates over a profile's kernels."""
    made = [times(k, CHIPS[k["architecture"]]) for k in profile["kernels"] if architecture in (None, k["architecture"])]
    return {key: sum(row[key] for row in made) for key in ("at least", "estimate")}


def table(profile):
    yield "| kernel | GPU | launches | issue | lds | l1 | l2 | memory | at least | estimate |"
    yield "|" + "---|" * 10
    for kernel in sorted(profile["kernels"], key=lambda k: -k["instructions"]["total"]):
        if kernel["architecture"] not in CHIPS:
            raise ValueError(f"no figures for {kernel['architecture']}: known are {', '.join(CHIPS)}")
        row = times(kernel, CHIPS[kernel["architecture"]])
        cells = " | ".join(f"{1e6 * row[key]:.1f}" for key in ("issue", "lds", "l1", "l2", "memory", "at least", "estimate"))
        yield f"| {kernel['name']} | {kernel['architecture']} | {kernel['launches']} | {cells} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path)
    args = parser.parse_args()
    try:
        profile = json.loads(args.profile.read_text())
        lines, sums = list(table(profile)), total(profile)
        print("\n".join(lines))
        print(f"\nEstimates, not measurements: all kernels at least {1e3 * sums['at least']:.3f} ms, "
              f"about {1e3 * sums['estimate']:.3f} ms.")
    except OSError as error:
        print(f"amd_times: {error}", file=sys.stderr)
        return 2
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        print(f"amd_times: {args.profile} isn't a profile of the emulator: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
