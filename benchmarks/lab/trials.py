"""One trial: a command of twospeed, and what it named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec.structs import replace as replaced

from twospeed.records.run import Run
from twospeed.records.run_file import read_run, write_run
from twospeed.report.build import build_report
from twospeed.report.document import to_json

BUDGET_S = 12
LONGEST_S = 240


@dataclass(frozen=True, slots=True)
class Seen:
    """What one trial said.

    Attributes:
        causes: worst first.
        certainty: of the first.
        slow_phase: as the report names it.
        trusted: whether the report trusts its own conditions.
        load: processors in other programs' use (0 to 1), where known.
        error: why there is no report.
        hidden: what the same requests say with the server's process out of sight, where tried.
    """

    causes: tuple[str, ...]
    certainty: str | None
    slow_phase: str
    trusted: bool
    load: float | None
    error: str | None = None
    hidden: Self | None = None

    def as_json(self) -> dict[str, Any]:
        """As a line of the file keeps it."""
        return asdict(replace(self, hidden=None))


def report_of(*words: str) -> dict[str, Any]:
    """The report that a command prints; of a failure its last words."""
    done = subprocess.run(
        [sys.executable, "-m", "twospeed", *words, "--json"],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()[-200:] or f"exit status {done.returncode}"}
    return found


def seen(report: dict[str, Any]) -> Seen:
    """What matters of a report."""
    if "error" in report:
        return Seen((), None, "unknown", trusted=False, load=None, error=report["error"])
    findings = report["findings"]
    return Seen(
        causes=tuple(finding["cause"] for finding in findings),
        certainty=findings[0]["certainty"] if findings else None,
        slow_phase=report["slow_phase"],
        trusted=report["conditions"]["trusted"],
        load=report["conditions"]["host_load"],
    )


def diagnosed(*words: str, seed: int) -> Seen:  # noqa: ARG001  (each run draws its own prompts)
    """Diagnose with a short budget, and read the same requests again with the process hidden."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        words = ("--budget", str(BUDGET_S), *words, "--save", str(path))
        found = seen(report_of("diagnose", *words))
        if found.error is not None:
            return found
        return replace(found, hidden=read_here(without_process(read_run(path))))


def filed(run: Run) -> Run:
    """The run as a file keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        write_run(path, run)
        return read_run(path)


def read_here(run: Run) -> Seen:
    """What is said of a saved file, without starting a program."""
    return seen(msgspec.json.decode(to_json(build_report(filed(run)))))


def read_saved(run: Run) -> Seen:
    """What `twospeed diagnose --from FILE` says of a saved file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        write_run(path, run)
        return seen(report_of("diagnose", "--from", str(path)))


def without_process(run: Run) -> Run:
    """What a server would show whose process, command line and machine cannot be looked at."""
    facts = replaced(
        run.facts,
        threads=None,
        threads_hw=None,
        n_batch=None,
        n_ubatch=None,
        flash_attn=None,
        kv_type_k=None,
        kv_type_v=None,
        prefix_cache_enabled=None,
    )
    source = replaced(run.source, kind="live")
    return replaced(run, source=source, facts=facts, machine=None)


def read_log(text: str, *words: str) -> Seen:
    """Read a log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        path.write_text(text, "utf-8")
        return seen(report_of("read", str(path), *words))
