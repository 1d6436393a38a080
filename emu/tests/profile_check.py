#!/usr/bin/env python3
"""Runs tests that launch known kernels with WICK_EMU_PROFILE and checks the counts of the profile. The
kernels add 1000 elements with 4 workgroups of 256 work-items, or are those of kernels/profile.hip.

  profile_check.py EMU_HIP_TEST
"""
import json
import os
import subprocess
import sys
import tempfile

WAVES = 4 * 256 // 32
USED_WAVES = 32  # work-items 0 to 999: 31 full waves and one with 8 lanes
TESTS = "--gtest_filter=HipLaunch.AddsVectors:HipLaunch.DynamicLds:HipProfile.*"
LINES_128 = 3 * USED_WAVES
LINES_64 = 3 * (31 * 2 + 1)


def check_add(add):
    expected = {"launches": 1, "groups": 4, "waves": WAVES, "wave": 32, "architecture": "gfx1100",
                "scratch_bytes": 0, "lds_bytes": 0, "items": 256}
    for name, value in expected.items():
        assert add[name] == value, (name, add[name], value)
    assert add["global"] == {"load_bytes": 8000, "store_bytes": 4000, "transactions_64": LINES_64,
                             "transactions_128": LINES_128, "touched_bytes": 64 * LINES_64}, add["global"]
    classes = {k: v for k, v in add["instructions"].items() if k != "total"}
    assert sum(classes.values()) == add["instructions"]["total"]
    assert classes["vmem"] == 3 * USED_WAVES, classes
    assert classes["matrix"] == classes["lds"] == classes["scratch"] == 0, classes
    assert classes["smem"] > 0 and classes["valu"] >= 4 * WAVES, classes
    assert 0 < add["lanes_off"] < 0.1, add["lanes_off"]
    assert add["occupancy"] == 1.0 and 0 < add["vgprs"] <= 32, add


def traffic(load_bytes, store_bytes, transactions_64, transactions_128, lines):
    return {"load_bytes": load_bytes, "store_bytes": store_bytes, "transactions_64": transactions_64,
            "transactions_128": transactions_128, "touched_bytes": 64 * lines}


def check_known(kernels):
    """Checks kernels that run one wave of 32 lanes each."""
    assert kernels["strided"]["global"] == traffic(128, 128, 64, 64, 64), kernels["strided"]
    assert kernels["uniform"]["global"] == traffic(128, 128, 1 + 2, 1 + 1, 1 + 2), kernels["uniform"]
    # The loads and the stores touch the same two lines.
    assert kernels["one_bank"]["global"] == traffic(128, 128, 2 + 2, 1 + 1, 2), kernels["one_bank"]
    # A store and a load take 32 cycles each instead of one.
    assert kernels["one_bank"]["lds"] == {"accesses": 2, "conflict_cycles": 2 * 31}
    assert kernels["padded"]["lds"] == {"accesses": 2, "conflict_cycles": 0}
    for name in ("strided", "uniform", "one_bank", "padded"):
        assert kernels[name]["lanes_off"] == 0, kernels[name]
    # Nearly all of its instructions run with 4 of 32 lanes.
    assert abs(kernels["four_lanes"]["lanes_off"] - 28 / 32) < 0.01, kernels["four_lanes"]
    matrix = kernels["matrix"]
    assert matrix["instructions"]["matrix"] == 3 and matrix["matrix_cycles"] == 2 * 32 + 16, matrix
    assert kernels["uniform"]["matrix_cycles"] == 0, kernels["uniform"]
    spills = kernels["spills"]
    assert spills["scratch_bytes"] >= 1200, spills
    assert spills["instructions"]["scratch"] == 301, spills


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "profile.json")
        env = dict(os.environ, WICK_EMU_PROFILE=file, WICK_EMU_PROFILE_TABLE="1")
        run = subprocess.run([sys.argv[1], TESTS],
                             env=env, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        with open(file, encoding="utf-8") as text:
            kernels = {k["name"]: k for k in json.load(text)["kernels"]}
    check_add(kernels["add"])
    check_known(kernels)
    reverse = kernels["reverse"]
    assert reverse["lds"]["accesses"] == 2 * 4 and reverse["lds_bytes"] == 512, reverse
    assert "add" in run.stderr and "instructions" in run.stderr, "no table on request"
    print("the profile counts what the kernels do")
    return 0


if __name__ == "__main__":
    sys.exit(main())
