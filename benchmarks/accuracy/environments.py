"""Environments of the other tools, and the tokenizer that they want."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from machine import NotRun, run_bounded

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twospeed" / "peers"
LONGEST_INSTALL_S = 580
CONTROL_TOKEN = 3
"""The kind of such a token in a GGUF."""
REQUIREMENTS = {
    "servebench": "servebench==1.1.*",
    "aiperf": "aiperf==0.13.*",
    "guidellm": "guidellm==0.8.*",
}


def why_not_installed(tool: str | None) -> str | None:
    """Install a tool unless it is there; says why that failed."""
    if tool is None or program(tool).exists():
        return None
    print(f"installing {tool} into {CACHE}", file=sys.stderr, flush=True)
    place = CACHE / tool
    place.mkdir(parents=True, exist_ok=True)
    try:
        for words in installation(place, REQUIREMENTS[tool]):
            run_bounded(words, place / "install.log", LONGEST_INSTALL_S)
    except (NotRun, OSError) as error:
        return f"not installed: {error}"
    return None if program(tool).exists() else "not installed: it brought no program"


def installation(place: Path, requirement: str) -> list[list[str]]:
    """The commands that make an environment with a package."""
    python = str(place / "bin" / "python")
    if uv := shutil.which("uv"):
        return [
            [uv, "venv", "--allow-existing", "--python", sys.executable, str(place)],
            [uv, "pip", "install", "--python", python, requirement],
        ]
    return [
        [sys.executable, "-m", "venv", str(place)],
        [python, "-m", "pip", "install", "--no-input", requirement],
    ]


def program(tool: str) -> Path:
    return CACHE / tool / "bin" / tool


def versions() -> dict[str, str]:
    """Of the tools that are installed."""
    found = {}
    for tool in REQUIREMENTS:
        for info in CACHE.glob(f"{tool}/lib/python*/site-packages/{tool}-*.dist-info"):
            found[tool] = info.name.removeprefix(f"{tool}-").removesuffix(".dist-info")
    return found


def tokenizer() -> str:
    """A directory with the tokenizer of the embedded engine's model, made from its GGUF.

    Raises:
        NotRun: the model is not there, or the package gguf.
    """
    place = CACHE / "tokenizer"
    if (place / "config.json").exists():
        return str(place)
    try:
        from gguf import GGUFReader  # noqa: PLC0415  (only here, and only once)

        from twospeed.sources.engine.model import fetch_model  # noqa: PLC0415

        fields = GGUFReader(str(fetch_model())).fields
    except (ImportError, RuntimeError, OSError) as error:
        raise NotRun(f"no tokenizer: {error}") from error
    told = {name: field.contents() for name, field in fields.items() if "tokenizer." in name}
    place.mkdir(parents=True, exist_ok=True)
    for name, value in tokenizer_files(told).items():
        (place / name).write_text(json.dumps(value))
    return str(place)


def tokenizer_files(told: dict[str, Any]) -> dict[str, Any]:
    """What tokenizer libraries read; the last file marks the directory as complete."""
    tokens, kinds = told["tokenizer.ggml.tokens"], told["tokenizer.ggml.token_type"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    control = [
        {"id": number, "content": token, **plain, "special": True}
        for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == CONTROL_TOKEN
    ]
    by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    by_bytes["trim_offsets"] = True
    digits = {"type": "Digits", "individual_digits": True}
    vocabulary = {token: number for number, token in enumerate(tokens)}
    return {
        "tokenizer.json": {
            "version": "1.0",
            "added_tokens": control,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [digits, by_bytes]},
            "decoder": by_bytes,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": told["tokenizer.ggml.merges"]},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": tokens[told["tokenizer.ggml.bos_token_id"]],
            "eos_token": tokens[told["tokenizer.ggml.eos_token_id"]],
            "chat_template": told["tokenizer.chat_template"],
        },
        "config.json": {"model_type": "llama"},
    }
