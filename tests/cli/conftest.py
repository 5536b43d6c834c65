"""A quick runtime for the command line to measure, and the command line run in this process."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_runtime import FakeRuntime
from twospeed_here import QUICK, Twospeed

from twospeed.cli.main import main


@pytest.fixture
def fake():
    """Starts runtimes of the wanted kind, and ends them with the test."""
    started: list[FakeRuntime] = []

    def start(**ways) -> FakeRuntime:
        started.append(FakeRuntime(**ways).start())
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(autouse=True)
def data_home(monkeypatch, tmp_path) -> Path:
    """No test reads or writes the tester's own ledger."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def twospeed(capfd, monkeypatch) -> Twospeed:
    """The command line in this process, free of the tester's own environment."""
    for name in ("OPENAI_API_KEY", "NO_COLOR", "OLLAMA_HOST", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    return Twospeed(capfd)


@pytest.fixture(scope="session")
def saved_run(tmp_path_factory) -> Path:
    """A record file of one whole run against a healthy runtime."""
    path = tmp_path_factory.mktemp("saved") / "run.jsonl"
    runtime = FakeRuntime().start()
    try:
        out = path.with_name("report.txt")
        status = main(["diagnose", runtime.url, *QUICK, "--save", str(path), "--out", str(out)])
    finally:
        runtime.stop()
    assert status in {0, 4}
    return path
