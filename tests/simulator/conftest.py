"""Servers with and without sockets, and recorded answers of the real ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from live_server import LiveServer
from telling import Server


@pytest.fixture
def server():
    return Server


@pytest.fixture
def live():
    """Starts simulators on loopback, in threads, and ends them with the test."""
    started: list[LiveServer] = []

    def start(speak: str = "openai", **settings) -> LiveServer:
        started.append(LiveServer(speak, **settings))
        return started[-1]

    yield start
    for each in started:
        each.stop()
