"""What is written, where, in which form; and the same run reported again."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fake_runtime import FakeRuntime, always
from twospeed_here import expected_status, valid

from twospeed.records.run_file import read_run

HOSTILE = "\x1b[31mred\x1b]0;title\x07\r\n\u202e\x9b2J`|<b>模型" + "x" * 200
ESCAPE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def child(*argv: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The command line in a process of its own."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONUTF8"}
    return subprocess.run(
        [sys.executable, "-m", "twospeed", *map(str, argv)],
        env={**kept, **environment},
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_json_is_all_of_stdout(twospeed, fake):
    said = twospeed.diagnose(fake().url, "--json")
    report = said.report
    assert said.err == ""
    assert said.status == expected_status(report)
    assert report["schema"] == "twospeed.report/1"
    assert report["source"]["runtime"] == "llama-server"
    assert report["source"]["model"] == "heron-8b-q4_k_m"
    assert report["workload"] == {
        "prompt_tokens": 300,
        "cached_prompt_tokens": 0,
        "output_tokens": 60,
        "from": "flag",
    }


def test_cost_is_announced_on_stderr_and_kept(twospeed, fake):
    runtime = fake()
    said = twospeed.diagnose(runtime.url)
    requests, tokens = re.search(
        r"Sending at most (\d+) made-up prompts \(([\d,]+) tokens\)", said.err
    ).groups()
    assert 0 < len(runtime.generations) <= int(requests)
    assert sum(g.prompt_tokens for g in runtime.generations) <= int(tokens.replace(",", ""))
    assert "THE WAIT" in said.out
    assert "THE STREAM" in said.out


def test_text_fits_one_screen(twospeed, saved_run):
    said = twospeed("diagnose", "--from", saved_run)
    lines = said.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert said.out.index("Nothing is slow here") < said.out.index("THE WAIT")


def test_markdown(twospeed, saved_run):
    said = twospeed("diagnose", "--from", saved_run, "--markdown")
    assert "| the wait |" in said.out
    assert "**Nothing is slow here" in said.out
    assert "\x1b" not in said.out


@pytest.mark.skipif(os.name != "posix", reason="modes are a custom of POSIX")
@pytest.mark.parametrize("form", [(), ("--json",), ("--markdown",)])
def test_out_is_private_and_the_same(twospeed, saved_run, tmp_path, form):
    path = tmp_path / "report"
    written = twospeed("diagnose", "--from", saved_run, *form, "--out", path)
    assert written.out == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    printed = twospeed("diagnose", "--from", saved_run, *form)
    assert path.read_text(encoding="utf-8") == printed.out
    assert written.status == printed.status


def test_saved_and_read_again_says_the_same(twospeed, fake, tmp_path):
    kept = tmp_path / "run.jsonl"
    first = twospeed.diagnose(fake().url, "--json", "--save", kept)
    again = twospeed("diagnose", "--from", kept, "--json")
    assert first.report == again.report
    assert first.status == again.status
    if os.name == "posix":
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_other_goals_give_another_verdict(twospeed, saved_run):
    def phase(*goals: object) -> str:
        return twospeed("diagnose", "--from", saved_run, "--json", *goals).report["slow_phase"]

    assert phase() == "none"
    assert phase("--stream-goal", 1e6) == "decode"
    assert phase("--wait-goal", 1e-6) == "prefill"
    assert phase("--wait-goal", 1e-6, "--stream-goal", 1e6) == "both"


def test_another_workload_gives_other_seconds(twospeed, saved_run):
    def wait_s(*shape: object) -> float:
        report = twospeed("diagnose", "--from", saved_run, "--json", *shape).report
        return report["time_budget"]["prefill_s"]

    assert wait_s("--prompt-tokens", 600) > 1.5 * wait_s()


def test_fail_on(twospeed, saved_run):
    slow_stream = ("diagnose", "--from", saved_run, "--json", "--stream-goal", 1e6)
    report = twospeed(*slow_stream).report
    assert report["slow_phase"] == "decode"
    cause = report["findings"][0]["cause"]
    for words, status in (
        (["decode"], 1),
        (["prefill"], expected_status(report)),
        (["prefill", "decode"], 1),
        ([cause], 1),
        (["network.latency"], expected_status(report)),
        (["any"], 1),
    ):
        said = twospeed(*slow_stream, *(w for word in words for w in ("--fail-on", word)))
        assert said.status == status
        assert said.report == report


def test_file_cut_at_any_byte_is_still_read(twospeed, saved_run, tmp_path):
    whole = saved_run.read_bytes()
    cut = tmp_path / "cut.jsonl"
    first_line = whole.index(b"\n") + 1
    statuses = set()
    for share in (0.0, 0.3, 0.6, 0.9, 0.999):
        cut.write_bytes(whole[: first_line + int(share * (len(whole) - first_line))])
        said = twospeed("diagnose", "--from", cut, "--json")
        assert not read_run(cut).complete
        assert any("stopped early" in w for w in said.report["conditions"]["warnings"])
        assert any("the rest of this run" in b["what"] for b in said.report["unknown"])
        statuses.add(said.status)
    assert 4 in statuses
    text = twospeed("diagnose", "--from", cut).out
    assert "stopped early" in text
    assert "Nothing is slow here" in text


def test_hostile_names_reach_no_terminal(twospeed, fake, tmp_path):
    runtime, kept = fake(models=(HOSTILE, "other")), tmp_path / "run.jsonl"
    said = twospeed.diagnose(runtime.url, "--save", kept)
    texts = [said.out, said.err, twospeed("diagnose", runtime.url, "--model", "penguin").err]
    texts += [twospeed("diagnose", "--from", kept, "--markdown").out]
    for text in texts:
        assert "red" in text or "made-up" in text
        assert not ESCAPE.search(text), ESCAPE.search(text)
    assert len(said.out.splitlines()) <= 40
    report = twospeed("diagnose", "--from", kept, "--json").report
    assert report["source"]["model"] == HOSTILE


def test_hostile_error_reaches_no_terminal(twospeed, fake):
    page = json.dumps({"error": {"message": HOSTILE}}).encode()
    runtime = fake(fault=always("refuse"), error_message=HOSTILE)
    for said in (
        twospeed.diagnose(runtime.url),
        twospeed.diagnose(fake(page=page, page_type="application/json").url),
    ):
        assert said.status == 3
        assert not ESCAPE.search(said.err)


def test_bytes_are_utf8_whatever_the_locale(saved_run, tmp_path):
    kept = tmp_path / "run.jsonl"
    name = "模型-ü"
    kept.write_text(saved_run.read_text("utf-8").replace("heron-8b-q4_k_m", name), encoding="utf-8")
    done = child("diagnose", "--from", kept, "--json", PYTHONIOENCODING="ascii")
    assert done.stderr == b""
    assert valid(done.stdout.decode("utf-8"))["source"]["model"] == name
    done = child("diagnose", "--from", kept, "--markdown", PYTHONIOENCODING="latin-1")
    assert name in done.stdout.decode("utf-8")
    done = child("diagnose", "--from", kept, PYTHONIOENCODING="ascii")
    assert done.stderr == b""
    assert "THE WAIT" in done.stdout.decode("ascii")


def test_reader_that_has_gone_is_no_fault(saved_run):
    with subprocess.Popen(
        [sys.executable, "-m", "twospeed", "diagnose", "--from", saved_run],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_runtime_is_recognised_or_taken_on_trust(twospeed, fake):
    runtime: FakeRuntime = fake(llama=False)
    report = twospeed.diagnose(runtime.url, "--json").report
    assert report["source"]["runtime"] == "openai"
    report = twospeed.diagnose(runtime.url, "--json", "--runtime", "vllm").report
    assert report["source"]["runtime"] == "vllm"


def test_full_or_closed_stdout_is_told_and_no_fault(saved_run):
    command = [sys.executable, "-m", "twospeed", "diagnose", "--from", str(saved_run)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith(b"twospeed: Cannot write the result")
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command],
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    assert closed.returncode == 3
    assert closed.stderr.startswith(b"twospeed: Cannot write the result: stdout is closed")


def test_the_report_never_replaces_the_records(twospeed, saved_run):
    before = saved_run.read_bytes()
    said = twospeed("diagnose", "--from", saved_run, "--out", saved_run)
    assert said.status == 2
    assert "--from" in said.complaint
    assert saved_run.read_bytes() == before


@pytest.mark.parametrize("count", ["0", "-3", "many", str(10**12), "9" * 400, ""])
def test_counts_beyond_reason_are_refused_in_words(twospeed, count):
    said = twospeed("diagnose", ":1", f"--prompt-tokens={count}")
    assert said.status == 2
    assert "is not a whole number from 1 to 1,000,000,000" in said.err
