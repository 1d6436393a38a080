"""Kernels that are wrong on purpose. tests/python/run.sh requires that the emulated GPU reports them; in runs of the
other tests, each report is a failure."""

import os
from typing import Any

import pytest

import wick

GPUS = [name for name in os.environ.get("WICK_TEST_DEVICES", "").split(",") if name not in ("", "cpu")]


class Reverse(wick.CustomOp1):
    """Reverses 256 elements. It lacks a sync() between the write to shared memory and the read of it."""

    name = "reverse_without_sync"
    gpu_source = """
        WICK_SHARED float tile[256];
        tile[thread_index()] = x[thread_index()];
        out[thread_index()] = tile[255 - thread_index()];
    """

    def shape(self, x: wick.Tensor) -> Any:
        return x


@pytest.mark.parametrize("device", GPUS)
def test_missing_barrier(device: str) -> None:
    y = Reverse()(wick.arange(256.0).to(device))
    assert y.shape == (256,) and len(y.tolist()) == 256
