"""A machine made of small files, as Linux would show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[dict[str, object]], Path]:
    """Writes files below a root of their own: path without the first slash → content."""

    def write(files: dict[str, object]) -> Path:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content}\n", encoding="utf-8")
        return tmp_path

    return write
