"""The ledger: kept, private, forgiving about a cut line."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from twospeed.records.errors import InputError
from twospeed.records.ledger import Outcome, append_outcome, ledger_path, read_outcomes


def outcome(cure: str = "larger batch", **changes) -> Outcome:
    return Outcome(
        made_at="2026-11-30T12:00:00Z",
        twospeed_version="0.1.0",
        cure=cure,
        predicted_low_s=1.0,
        predicted_likely_s=2.0,
        predicted_high_s=3.0,
        **{"held": "yes", **changes},
    )


def test_outcomes_come_back_in_order(tmp_path: Path):
    path = tmp_path / "new" / "ledger.jsonl"
    assert read_outcomes(path) == ()
    first, second = outcome(measured_likely_s=1.5), outcome("shorter prompt", held="no")
    append_outcome(path, first)
    append_outcome(path, second)
    assert read_outcomes(path) == (first, second)
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_cut_or_foreign_line_is_passed_over(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    append_outcome(path, outcome())
    with path.open("ab") as file:
        file.write(b'{"cure": 3}\nnonsense\n{"made_at": "20')
    assert read_outcomes(path) == (outcome(),)


def test_what_cannot_be_written_or_read_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Cannot write"):
        append_outcome(tmp_path / "file" / "ledger.jsonl", outcome())
    with pytest.raises(InputError, match="Cannot read"):
        read_outcomes(tmp_path)


def test_each_system_has_its_place():
    assert ledger_path({"XDG_DATA_HOME": "/d"}, "linux") == Path("/d/twospeed/ledger.jsonl")
    assert ledger_path({}, "linux") == Path.home() / ".local/share/twospeed/ledger.jsonl"
    assert "Application Support" in str(ledger_path({}, "darwin"))
    assert ledger_path({"LOCALAPPDATA": "/l"}, "win32") == Path("/l/twospeed/ledger.jsonl")
