"""Ctrl-C, a kill, and a terminal: the command line as a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest
from fake_runtime import from_number
from twospeed_here import QUICK, expected_status, valid

from twospeed.records.run_file import read_run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and terminals of POSIX")


@contextlib.contextmanager
def held_in_request(runtime, *argv: object):
    """A running diagnosis whose present request is never answered to the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "twospeed", "diagnose", runtime.url, *QUICK, *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert runtime.held.wait(30)
            yield process
        finally:
            process.kill()


def test_ctrl_c_reports_what_there_is(fake, tmp_path):
    runtime, kept = fake(fault=from_number(9, "stall")), tmp_path / "run.jsonl"
    with held_in_request(runtime, "--json", "--save", kept) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    report = valid(out)
    assert err == ""
    assert process.returncode == expected_status(report)
    assert len(report["requests"]) == 8
    assert report["prefill"]["tps"] > 0
    assert any("stopped early" in warning for warning in report["conditions"]["warnings"])
    run = read_run(kept)
    assert len(run.records) == 8
    assert not run.complete


def test_ctrl_c_says_so_to_a_person(fake):
    with held_in_request(fake(fault=from_number(9, "stall"))) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert err.splitlines()[-1] == "Stopped: what follows rests on the requests until then."
    assert "stopped early" in out
    assert "Traceback" not in err


def test_ctrl_c_before_the_first_answer(fake, tmp_path):
    kept = tmp_path / "run.jsonl"
    with held_in_request(fake(fault=from_number(1, "silence")), "--save", kept) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "twospeed: stopped before anything was measured."
    assert read_run(kept).records == ()


def test_kill_leaves_a_readable_file(fake, twospeed, tmp_path):
    runtime, kept = fake(fault=from_number(9, "stall")), tmp_path / "run.jsonl"
    with held_in_request(runtime, "--save", kept) as process:
        process.kill()
        process.communicate(timeout=20)
    assert process.returncode == -signal.SIGKILL
    run = read_run(kept)
    assert len(run.records) == 8
    assert not run.complete
    report = twospeed("diagnose", "--from", kept, "--json").report
    assert report["prefill"]["tps"] > 0
    assert any("stopped early" in warning for warning in report["conditions"]["warnings"])


def on_a_terminal(*argv: object, **environment: str) -> str:
    """What a person sees of a run: both streams on one terminal of 80 columns."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "twospeed", *map(str, argv)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment},
    ) as process:
        os.close(theirs)
        seen = b""
        # Linux ends a terminal whose other side has gone by an error, not by an empty read.
        with contextlib.suppress(OSError):
            while data := os.read(ours, 65536):
                seen += data
        assert process.wait(30) in {0, 4}
    os.close(ours)
    return seen.decode("utf-8")


COLOUR = re.compile(r"\x1b\[[\d;]*m")
ERASE = "\r\x1b[K"


def test_live_line_and_colour_on_a_terminal(fake):
    seen = on_a_terminal("diagnose", fake().url, *QUICK)
    live = [line for line in seen.split(ERASE) if line.startswith("[")]
    assert re.fullmatch(r"\[1\] warmup: 64 tokens in · 0 s", live[0])
    assert re.search(r"tokens in · wait ≈ [\d.]+ s · stream ≈ \d+ tok/s · \d+ s", live[-1])
    # Each of them is removed, the last one before the report begins.
    assert all(len(line) < 80 and "\n" not in line for line in live)
    assert "THE WAIT" in seen
    assert COLOUR.search(seen)


@pytest.mark.parametrize(
    ("argv", "environment"),
    [((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"}), (("--no-color",), {})],
)
def test_no_colour_where_it_is_not_wanted(saved_run, argv, environment):
    seen = on_a_terminal("diagnose", "--from", saved_run, *argv, **environment)
    assert "THE WAIT" in seen
    assert "\x1b" not in seen


def test_no_live_line_beside_json_on_a_terminal(fake):
    seen = on_a_terminal("diagnose", fake().url, *QUICK, "--json")
    assert valid(seen.replace("\r\n", "\n"))
