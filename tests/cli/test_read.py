"""`twospeed read`: texts in, the same verdict out."""

# ruff: noqa: E501  (lines of logs)

from __future__ import annotations

import gzip
import os
import signal
import stat
import subprocess
import sys
import threading
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from twospeed.cli.reading.following import lines_for_ever

SLOW_PROMPT = """\
{clock} I slot launch_slot_: id  0 | task {task} | processing task, is_child = 0
{clock} I slot update_slots: id  0 | task {task} | new prompt, n_ctx_slot = 16384, n_keep = 0, task.n_tokens = 4000
{clock} I slot update_slots: id  0 | task {task} | cached n_tokens = 0, memory_seq_rm [0, end)
{clock} I slot print_timing: id  0 | task {task} | prompt eval time =   {ms}.00 ms /  4000 tokens (    5.00 ms per token,   200.00 tokens per second)
{clock} I slot print_timing: id  0 | task {task} |        eval time =    4000.00 ms /   201 tokens (   20.00 ms per token,    50.00 tokens per second)
{clock} I slot print_timing: id  0 | task {task} |       total time =   24000.00 ms /  4201 tokens
{clock} I slot      release: id  0 | task {task} | stop processing: n_tokens = 4200, truncated = 0
"""
NEWER = "engine: prefill 4000 tokens in 20.5 s, 195.1 tok/s\nengine: decode 50.0 tok/s\n"


def request(task: int = 1, ms: int = 20000) -> str:
    return SLOW_PROMPT.format(clock=f"0.{task % 60:02d}.100.200", task=task, ms=ms)


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "server.log"
    path.write_text("".join(request(task, 20000 + 10 * task) for task in range(1, 6)))
    return path


def test_a_log_gets_the_same_verdict_as_a_measurement(twospeed, log):
    said = twospeed("read", log, "--no-color")
    assert said.status == 0
    assert said.err == ""
    assert "THE WAIT" in said.out
    assert "THE STREAM" in said.out
    assert "llama-server" in said.out
    assert "20 s wait" in " ".join(said.out.split())


def test_json_is_valid_and_says_where_it_comes_from(twospeed, log):
    report = twospeed("read", log, "--json").report
    assert report["slow_phase"] == "prefill"
    assert report["source"]["kind"] == "log"
    assert report["source"]["where"] == str(log)
    assert report["source"]["runtime"] == "llama-server"
    assert report["workload"]["prompt_tokens"] == 4000
    assert report["workload"]["output_tokens"] == 201
    assert report["workload"]["from"] == "log"


def test_the_workload_and_the_goals_can_be_told(twospeed, log):
    report = twospeed("read", log, "--json", "--prompt-tokens", 40).report
    assert report["workload"]["prompt_tokens"] == 40
    assert report["workload"]["from"] == "flag"
    patient = twospeed("read", log, "--json", "--wait-goal", 60).report
    assert patient["slow_phase"] == "none"
    hasty = twospeed("read", log, "--json", "--wait-goal", 60, "--stream-goal", 90).report
    assert hasty["slow_phase"] == "decode"


def test_markdown(twospeed, log):
    said = twospeed("read", log, "--markdown")
    assert said.status == 0
    assert "|" in said.out
    assert "\x1b" not in said.out


def test_requests_are_lines_of_80_columns(twospeed, log):
    lines = twospeed("read", log, "--requests").out.splitlines()
    assert len(lines) == 6
    assert all(len(line) <= 80 for line in lines)
    assert "4,000" in lines[1]
    assert "201" in lines[1]


def test_the_last_request_alone(twospeed, log):
    lines = twospeed("read", log, "--requests", "--last").out.splitlines()
    assert len(lines) == 2
    assert lines[1].split()[0] == "29"


def test_words_choose_requests(twospeed, log):
    assert len(twospeed("read", log, "--requests", "--grep", "task 3 ").out.splitlines()) == 2
    assert "--grep (: " in twospeed("read", log, "--grep", "(").complaint
    assert twospeed("read", log, "--grep", "task 99 ").status == 4


def test_times_choose_requests(twospeed, tmp_path, log):
    path = tmp_path / "docker.log"
    path.write_text(
        "".join(
            f"2026-06-01T{10 + at // 7:02d}:00:00.000000001Z {line}\n"
            for at, line in enumerate(log.read_text().splitlines())
        )
    )
    said = twospeed("read", path, "--requests", "--since", "2026-06-01 13:00")
    assert len(said.out.splitlines()) == 3
    assert twospeed("read", path, "--since", "yesterday").status == 2
    undated = twospeed("read", log, "--since", "2026-06-01")
    assert undated.status == 2
    assert "carries a date" in undated.complaint


def test_several_texts_are_read_together(twospeed, tmp_path, log):
    other = tmp_path / "other.log"
    other.write_text(request(9))
    report = twospeed("read", log, other, "--json").report
    assert report["source"]["where"] == f"{log}, {other}"
    assert len(twospeed("read", log, other, "--requests").out.splitlines()) == 7


def test_stdin(twospeed, log, monkeypatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(log.read_bytes())))
    assert twospeed("read", "-", "--json").report["source"]["where"] == "stdin"


def test_packed_and_pipes(twospeed, tmp_path, log):
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert len(twospeed("read", packed, "--requests").out.splitlines()) == 6
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(log.read_bytes(),))
    writer.start()
    try:
        assert len(twospeed("read", pipe, "--requests").out.splitlines()) == 6
    finally:
        writer.join(10)


def test_our_own_record_file(twospeed, saved_run):
    report = twospeed("read", saved_run, "--json").report
    assert report["source"]["kind"] != "log"
    assert report["source"]["runtime"] == "llama-server"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("missing.log", None, "Cannot read"),
        ("damaged.gz", gzip.compress(os.urandom(4000))[:900], "damaged or cut"),
        ("short.gz", b"\x1f\x8b\x08", "damaged or cut"),
        ("a.zst", b"\x28\xb5\x2f\xfd1234", "zstd -dc"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(twospeed, tmp_path, name, data, words):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    said = twospeed("read", tmp_path / name)
    assert said.status == 3
    assert words in said.complaint


def test_a_folder_is_no_text(twospeed, tmp_path):
    said = twospeed("read", tmp_path)
    assert said.status == 3
    assert "Cannot read" in said.complaint


@pytest.mark.parametrize("text", ["", "Why is my model so slow?\n", "\0" * 500])
def test_nothing_recognised(twospeed, tmp_path, text):
    path = tmp_path / "prose.txt"
    path.write_text(text)
    said = twospeed("read", path)
    assert said.status == 4
    assert "Nothing was recognised" in said.complaint
    assert "docs/reading-logs.md" in said.complaint
    assert twospeed("read", path, "--json").report["slow_phase"] == "unknown"


def test_lines_that_no_option_chose_are_not_called_unknown(twospeed, log):
    said = twospeed("read", log, "--grep", "nobody")
    assert said.status == 4
    assert f"in the lines that --grep chose of {log}" in said.complaint


def test_a_table_without_single_requests_says_so(twospeed, tmp_path):
    path = tmp_path / "bench.md"
    path.write_text(
        "| model | size | params | backend | threads | test | t/s |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| llama 8B Q4_0 | 4.33 GiB | 8.03 B | CPU | 8 | tg128 | 12.10 ± 0.20 |\n"
    )
    said = twospeed("read", path, "--requests")
    assert said.status == 4
    assert f"No single request is told of in {path}" in said.err


def test_follow_of_a_missing_text_prints_no_heading(twospeed, tmp_path):
    said = twospeed("read", tmp_path / "none.log", "--follow")
    assert said.status == 3
    assert said.out == ""


def test_timings_of_a_newer_version_are_counted_and_never_healthy(twospeed, tmp_path, log):
    path = tmp_path / "new.log"
    path.write_text(NEWER * 3)
    said = twospeed("read", path)
    assert said.status == 4
    assert "6 lines look like timings" in said.err
    assert "othing is slow" not in said.out
    path.write_text(NEWER + request())
    report = twospeed("read", path, "--json").report
    assert any("2 lines look like timings" in one["what"] for one in report["unknown"])


def test_a_script_can_fail_on_a_finding(twospeed, log):
    assert twospeed("read", log, "--fail-on", "prefill").status == 1
    assert twospeed("read", log, "--fail-on", "decode").status == 0
    assert twospeed("read", log, "--fail-on", "nonsense").status == 2


@pytest.mark.parametrize("form", ["--json", "--requests", "--markdown"])
def test_a_written_result_is_for_its_owner_only(twospeed, tmp_path, log, form):
    out = tmp_path / "result"
    said = twospeed("read", log, form, "-o", out)
    assert (said.status, said.out) == (0, "")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert out.read_text()


def test_requests_that_tell_only_their_whole_time_are_not_split(twospeed, tmp_path):
    path = tmp_path / "gin.log"
    path.write_text(
        '[GIN] 2026/06/01 - 10:00:05 | 200 | 14.250125s | 127.0.0.1 | POST     "/api/chat"\n'
    )
    report = twospeed("read", path, "--json").report
    assert report["slow_phase"] == "unknown"
    assert any("only their whole time" in one["what"] for one in report["unknown"])
    assert any("/api/chat" in (one["needs"] or "") for one in report["unknown"])


def test_follow_takes_one_text(twospeed, log):
    assert "--follow takes one file" in twospeed("read", log, log, "--follow").complaint


def test_follow_reads_stdin_to_its_end(twospeed, log, monkeypatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(log.read_bytes())))
    said = twospeed("read", "-", "--follow", "--no-color")
    assert said.status == 0
    assert len([line for line in said.out.splitlines() if "4,000" in line]) >= 5
    assert "THE WAIT" in said.out


def test_follow_shows_requests_as_they_end_and_a_verdict_at_ctrl_c(tmp_path):
    path = tmp_path / "live.log"
    first, second = request(1), request(2)
    path.write_text(first + second[:500])
    child = subprocess.Popen(
        [sys.executable, "-m", "twospeed", "read", str(path), "--follow", "--no-color"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ended = threading.Timer(60, child.kill)
    ended.start()
    try:
        assert child.stdout is not None
        heading, one = child.stdout.readline(), child.stdout.readline()
        with path.open("a") as file:
            file.write(second[500:])
        two = child.stdout.readline()
        path.write_text("rotated\n")  # begun again, shorter than before
        child.send_signal(signal.SIGINT)
        rest, complaints = child.communicate(timeout=30)
    finally:
        ended.cancel()
        child.kill()
    assert "prompt" in heading
    assert one.split()[1:3] == ["4,000", "0"]
    assert two.split()[1:3] == ["4,000", "0"]
    assert "THE WAIT" in rest
    assert child.returncode == 0, complaints
    assert "Traceback" not in complaints


def test_a_text_that_is_given_twice_counts_once(twospeed, log, tmp_path):
    once = twospeed("read", log, "--json").report
    other = tmp_path / "other.log"
    other.symlink_to(log)
    said = twospeed("read", log, other, log, "--json")
    assert len(said.report["requests"]) == len(once["requests"]) > 0
    assert said.err.count("was given before: it counts once") == 2


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_a_device_is_no_text(twospeed):
    said = twospeed("read", "/dev/zero")
    assert said.status == 3
    assert "/dev/zero: it is a device" in said.complaint


def test_of_a_table_with_two_models_the_told_one_is_named(twospeed, tmp_path):
    head = "| model | size | params | backend | ngl | test | t/s |\n|---|---|---|---|---|---|---|\n"
    rows = [
        f"| {model} | 4.58 GiB | 8.03 B | CUDA | 99 | {test} | {speed}.00 ± 1.00 |"
        for model, test, speed in (
            ("heron 8B Q4_K", "pp512", 4000),
            ("heron 8B Q4_K", "tg128", 100),
            ("osprey 32B Q4_K", "pp512", 1000),
            ("osprey 32B Q4_K", "tg128", 12),
        )
    ]
    path = tmp_path / "bench.md"
    path.write_text(head + "\n".join(rows) + "\n", "utf-8")
    report = twospeed("read", path, "--json").report
    assert report["source"]["model"] == "osprey 32B Q4_K"
    assert any("rows of 2 models" in warning for warning in report["conditions"]["warnings"])
    path.write_text(head + "\n".join(rows[:2]) + "\n", "utf-8")
    report = twospeed("read", path, "--json").report
    assert report["source"]["model"] == "heron 8B Q4_K"
    assert report["conditions"]["warnings"] == []


def test_json_that_is_too_long_for_a_document_is_said(twospeed, tmp_path):
    path = tmp_path / "export.json"
    path.write_text('{"requests": "' + "x" * (9 << 20) + '"}', "utf-8")
    said = twospeed("read", path)
    assert said.status == 4
    assert "a document of JSON of more than 8 MiB" in said.err


class TestFollowing:
    """The lines of a file that somebody else writes."""

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "server.log"
        path.write_bytes(b"one\ntwo")
        return path

    def test_a_half_line_waits_for_its_rest(self, path):
        lines = lines_for_ever(path.open("rb"), str(path), look_s=0.0)
        assert next(lines) == b"one\n"
        with path.open("ab") as file:
            file.write(b" and a half\n")
        assert next(lines) == b"two and a half\n"

    def test_a_new_file_of_that_name_is_read_after_the_old_one(self, path, capsys):
        lines = lines_for_ever(path.open("rb"), str(path), look_s=0.0)
        assert next(lines) == b"one\n"
        with path.open("ab") as file:
            path.rename(path.with_name("server.log.1"))
            file.write(b", late\n")
        path.write_bytes(b"three\n")
        assert [next(lines), next(lines)] == [b"two, late\n", b"three\n"]
        assert "was made anew" in capsys.readouterr().err

    def test_an_emptied_file_is_begun_again(self, path):
        lines = lines_for_ever(path.open("rb"), str(path), look_s=0.0)
        assert next(lines) == b"one\n"
        path.write_bytes(b"1\n")
        assert next(lines) == b"1\n"
