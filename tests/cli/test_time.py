"""`twospeed time`: rows as requests finish, one JSON object, a record file, and honest endings."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from importlib.resources import files

import jsonschema
import pytest
from fake_runtime import always, from_number, only

from twospeed.records.run_file import read_run

SCHEMA = json.loads((files("twospeed.report") / "schema" / "timing-1.json").read_text("utf-8"))
SMALL = ("--prompt-tokens", "100", "--output-tokens", "30")
UNSURE = {0, 4}
"""A busy host makes a good timing one that is not to be trusted."""


def valid(text: str):
    """The one JSON object that a text consists of, checked against the schema."""
    assert text.endswith("}\n")
    timing = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(timing)
    return timing


def timed(twospeed, url: str, *argv):
    said = twospeed("time", url, *argv, "--json")
    timing = valid(said.out)
    assert said.status == (0 if timing["conditions"]["trusted"] else 4), said.err
    assert said.err == ""
    return timing


def test_one_request_by_both_phases(fake, twospeed):
    runtime = fake(step_s=0.002, prefill_s_per_token=5e-4)
    timing = timed(twospeed, runtime.url, *SMALL)
    (row,) = timing["requests"]
    assert row["prompt_tokens"] == pytest.approx(100, abs=20)
    assert (row["output_tokens"], row["events"], row["error"]) == (30, 30, None)
    paced = runtime.paced[0]
    assert row["itl_s"] == pytest.approx(paced.token_s, rel=0.1)
    assert row["decode_tps"] == pytest.approx(1 / row["itl_s"])
    assert row["prefill_s"] == pytest.approx(paced.prefill_s, rel=0.01)
    assert row["prefill_origin"] == "server"
    assert row["ttft_s"] >= paced.prefill_s
    assert row["clock"] == ("kernel" if sys.platform == "linux" else "user")
    assert timing["summary"]["ttft_s"]["n"] == 1
    assert timing["own"]["cpu_s"] > 0
    assert timing["own"]["cpu_s_per_token"] == pytest.approx(timing["own"]["cpu_s"] / 30)
    assert timing["own"]["peak_bytes"] > 10_000_000
    assert timing["complete"]
    assert timing["source"]["runtime"] == "llama-server"


def test_many_requests_at_once(fake, twospeed):
    runtime = fake(llama=False)
    argv = ("--concurrency", 8, "--requests", 20, "--start", "spread")
    timing = timed(twospeed, runtime.url, *SMALL, *argv)
    assert sorted(row["number"] for row in timing["requests"]) == list(range(1, 21))
    summary = timing["summary"]
    assert summary["ttft_s"]["n"] + summary["ttft_s"]["left_out"] == 20
    assert summary["ttft_s"]["p90"] >= summary["ttft_s"]["p50"]
    assert summary["event_gap_s"]["n"] + summary["event_gap_s"]["left_out"] == 20 * 29
    assert summary["prefill_tps"]["n"] == 0, "our clock also counts the wait for others"
    assert len(runtime.generations) == 20


def test_a_line_for_each_request_and_a_summary(fake, twospeed):
    said = twospeed("time", fake().url, *SMALL, "--requests", 3)
    assert said.status in UNSURE
    lines = said.out.splitlines()
    assert lines[0].split() == ["#", "prompt", "cached", "output", "TTFT", "ITL", "tok/s"]
    assert [line.split()[0] for line in lines[1:4]] == ["1", "2", "3"]
    assert "event gap" in said.out
    assert "Source: heron-8b-q4_k_m, llama-server" in said.out
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in said.out


def test_the_report_goes_where_it_is_wanted(fake, twospeed, tmp_path):
    out = tmp_path / "timing.txt"
    said = twospeed("time", fake().url, *SMALL, "-o", out)
    assert said.out == ""
    assert said.status in UNSURE
    assert out.read_text().splitlines()[1].split()[0] == "1"
    assert out.stat().st_mode & 0o077 == 0
    assert twospeed("time", "h", "-o", tmp_path / "no" / "x").complaint.startswith(
        "twospeed: Cannot write"
    )


def test_our_own_stamps_can_be_asked_for(fake, twospeed):
    timing = timed(twospeed, fake().url, *SMALL, "--clock", "user")
    assert timing["requests"][0]["clock"] == "user"


def test_a_prompt_of_the_users_own(fake, twospeed, tmp_path, monkeypatch):
    runtime, prompt = fake(), tmp_path / "prompt.txt"
    prompt.write_text("Tell me\nof herons")
    argv = ("--output-tokens", 5, "--requests", 2)
    timing = timed(twospeed, runtime.url, "--prompt", prompt, *argv)
    assert [row["prompt_tokens"] for row in timing["requests"]] == [9, 9]
    assert runtime.last_prompt == "Tell me\nof herons"
    assert any("The same prompt was sent 2 times" in w for w in timing["conditions"]["warnings"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("Grüße".encode())))
    timed(twospeed, runtime.url, "--prompt", "-", "--output-tokens", 5)
    assert runtime.last_prompt == "Grüße"


@pytest.mark.parametrize(
    ("content", "words"),
    [(b" \n", "is empty"), (b"\xff\xfe\x00", "not UTF-8"), (None, "No such file")],
)
def test_prompts_that_cannot_be_sent(twospeed, tmp_path, content, words):
    prompt = tmp_path / "prompt.txt"
    if content is not None:
        prompt.write_bytes(content)
    said = twospeed("time", "http://127.0.0.1:9", "--prompt", prompt)
    assert said.status == 3
    assert words in said.complaint


def test_a_whole_answer_tells_no_first_token(fake, twospeed):
    choice = {"message": {"content": "Once upon"}, "finish_reason": "stop"}
    counts = {"prompt_tokens": 9, "completion_tokens": 2}
    body = json.dumps({"choices": [choice], "usage": counts}).encode()
    runtime = fake(page=body, page_type="application/json")
    timing = timed(twospeed, runtime.url, *SMALL, "--no-stream")
    (row,) = timing["requests"]
    assert (row["ttft_is_upper_bound"], row["itl_s"], row["prefill_tps"]) == (True, None, None)
    assert timing["summary"]["ttft_s"] == {
        **dict.fromkeys(("mean", "p50", "p90", "p99", "origin")),
        "n": 0,
        "left_out": 1,
    }


def test_the_usual_prompt_is_cut_to_the_context(fake, twospeed):
    runtime = fake(n_ctx=1024)
    timing = timed(twospeed, runtime.url, "--output-tokens", 20)
    assert 800 < timing["requests"][0]["prompt_tokens"] < 1004


def test_every_record_is_kept(fake, twospeed, tmp_path):
    kept = tmp_path / "run.jsonl"
    timed(twospeed, fake().url, *SMALL, "--requests", 4, "--save", kept)
    run = read_run(kept)
    assert run.complete
    assert [record.number for record in run.records] == [1, 2, 3, 4]
    assert run.workload.prompt_tokens == run.records[0].counts.prompt_tokens
    assert run.facts.n_ctx == 8192


def test_a_failed_request_has_its_line_and_the_others_count(fake, twospeed):
    runtime = fake(fault=only(2, "cut"))
    said = twospeed("time", runtime.url, *SMALL, "--requests", 4)
    assert said.status in UNSURE
    assert "    2  failed: http://" in said.out
    assert "1 of 4 requests failed" in said.out


def test_when_all_fail_the_servers_words_are_said(fake, twospeed):
    said = twospeed("time", fake(fault=always("refuse")).url, *SMALL, "--requests", 30, "--json")
    timing = valid(said.out)
    assert said.status == 3
    assert len(timing["requests"]) == 10
    assert not timing["complete"]
    assert any("failed in a row" in warning for warning in timing["conditions"]["warnings"])
    assert "CUDA error: out of memory" in said.err
    assert said.err.count("\n") == 1


def test_nobody_there(twospeed):
    said = twospeed("time", "http://127.0.0.1:9")
    assert said.status == 3
    assert "Nothing listens" in said.complaint


@pytest.mark.parametrize(
    "argv",
    [
        ("time",),
        ("time", "h", "--prompt", "x", "--prompt-tokens", "5"),
        ("time", "h", "--concurrency", "0"),
        ("time", "h", "--start", "sometimes"),
    ],
)
def test_options_that_make_no_sense(twospeed, argv):
    assert twospeed(*argv).status == 2


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_leaves_what_is_complete_and_says_so(fake, tmp_path, form):
    runtime, kept = fake(fault=from_number(4, "stall")), tmp_path / "run.jsonl"
    argv = ["time", runtime.url, *SMALL, "--requests", "9", "--save", str(kept), *form]
    with subprocess.Popen(
        [sys.executable, "-m", "twospeed", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert runtime.held.wait(30)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode in UNSURE
    assert "Traceback" not in err
    assert len(read_run(kept).records) == 3
    assert not read_run(kept).complete
    if form:
        timing = valid(out)
        assert (len(timing["requests"]), timing["complete"], err) == (3, False, "")
    else:
        assert "stopped early" in out
        assert err.splitlines()[-1] == "Stopped: what follows rests on the requests until then."


def test_its_help_fits_the_screen(twospeed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, twospeed("time", "--help").out.splitlines())) <= 80
