import os
import pathlib
import subprocess

import pytest


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with small models of every weight type; WICK_TINY_WRITER makes them."""
    writer = os.environ.get("WICK_TINY_WRITER")
    if not writer:
        pytest.skip("WICK_TINY_WRITER names no program that writes small models")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([writer, str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tiny_models: pathlib.Path) -> pathlib.Path:
    return tiny_models / "tiny-q8_0.gguf"
