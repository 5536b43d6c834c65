"""Texts as each program prints them; every number and name in them is invented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.registry import read_document

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def samples() -> dict[str, str]:
    """Every sample by the name of its file."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(SAMPLES.iterdir())}


@pytest.fixture(scope="session")
def told(samples: dict[str, str]) -> Callable[[str], Content]:
    """What a sample tells; fails where nothing is recognised."""

    def read(name: str) -> Content:
        content = read_document(samples[name])
        assert content is not None, name
        return content

    return read
