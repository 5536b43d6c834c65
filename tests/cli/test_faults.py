"""Servers that refuse, break, stall or are none: one line, the right status, in time."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from fake_runtime import HTML, always, from_number, only

from twospeed.records.run_file import read_run

TIMEOUT_S = 0.4
MARGIN_S = 2.0
"""For two requests beyond their own limit; without the handling each would last a minute."""


def test_connection_refused(twospeed):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    said = twospeed("diagnose", f"http://127.0.0.1:{port}", "--json")
    assert said.status == 3
    assert said.complaint == (
        f"twospeed: Nothing listens at http://127.0.0.1:{port}. "
        "Start the server or give another URL."
    )
    assert said.err.count("\n") == 1


def test_unauthorised(twospeed, fake):
    locked = fake(key="sesame")
    said = twospeed("diagnose", locked.url)
    assert said.status == 3
    assert "HTTP 401" in said.complaint
    assert "--api-key" in said.complaint
    assert said.err.count("\n") == 1
    assert locked.generations == []


def test_key_by_option_and_by_environment(twospeed, fake, monkeypatch):
    for argv, variable in ((("--api-key", "sesame"), "wrong"), ((), "sesame")):
        locked = fake(key="sesame")
        monkeypatch.setenv("OPENAI_API_KEY", variable)
        said = twospeed.diagnose(locked.url, "--json", *argv)
        assert said.report["stream"]["verdict"] == "fine"
        assert locked.keys == {"Bearer sesame"}
        assert "sesame" not in said.out + said.err


def test_a_key_of_the_environment_is_not_given_to_whatever_is_found(twospeed, fake, monkeypatch):
    found = fake()
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
    said = twospeed("--json", "--no-probe", "--prompt-tokens", "100", "--budget", "0.5")
    assert said.report["source"]["where"] == found.url
    assert found.generations
    assert found.keys == {None}


def test_unknown_model_lists_the_known_ones(twospeed, fake):
    runtime = fake(models=("heron-8b", "stork-70b"))
    said = twospeed("diagnose", runtime.url, "--model", "penguin", "--json")
    assert said.status == 3
    assert "'penguin'" in said.complaint
    assert "heron-8b, stork-70b" in said.complaint
    assert runtime.generations == []


def test_loading_then_ready(twospeed, fake):
    runtime = fake(loading_answers=12)
    said = twospeed.diagnose(runtime.url, "--json")
    report = said.report
    assert runtime.loading_answers <= 0
    assert 0.2 < report["time_budget"]["load_s"] < 10
    assert report["prefill"]["tps"] > 0


def test_loading_for_ever(twospeed, fake):
    runtime = fake(loading_answers=10**9)
    started_s = time.monotonic()
    said = twospeed("diagnose", runtime.url, "--timeout", TIMEOUT_S)
    assert time.monotonic() - started_s < TIMEOUT_S + MARGIN_S
    assert said.status == 3
    assert "still loading" in said.complaint
    assert runtime.generations == []


def test_web_page(twospeed, fake):
    said = twospeed("diagnose", fake(page=HTML).url)
    assert said.status == 3
    assert "web pages, not with an API" in said.complaint
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("page", [b"{broken", b"\xff\xfe\x00", b""])
def test_garbage_instead_of_json(twospeed, fake, page):
    said = twospeed("diagnose", fake(page=page, page_type="application/json").url)
    assert said.status == 3
    assert "answers like no model server" in said.complaint


def test_no_http_at_all(twospeed):
    with socket.create_server(("127.0.0.1", 0)) as banner:
        port = banner.getsockname()[1]
        banner.settimeout(10)

        def greet():
            talk, _ = banner.accept()
            with talk:
                talk.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")
                talk.recv(65536)

        greeter = threading.Thread(target=greet)
        greeter.start()
        said = twospeed("diagnose", f":{port}")
        greeter.join()
    assert said.status == 3
    assert "does not answer in HTTP" in said.complaint


FAULTS = {
    "refuse": "(HTTP 500): CUDA error: out of memory",
    "page": "a web page titled 'Router login'",
    "not json": "1 of 1 events are not JSON objects",
    "silence": f"did not answer within {TIMEOUT_S:g}",
    "drop": "closed the connection without an answer",
    "error": "CUDA error: out of memory",
    "garbage": "events are not JSON objects",
    "cut": "closed the connection in mid-answer",
    "abort": "broke off the connection",
    "stall": f"stalled: no text for {TIMEOUT_S:g}",
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.items())
def test_fault_from_the_first_request_on(twospeed, fake, fault, words):
    runtime = fake(fault=always(fault))
    started_s = time.monotonic()
    said = twospeed.diagnose(runtime.url, "--json", "--timeout", TIMEOUT_S)
    assert time.monotonic() - started_s < TIMEOUT_S + MARGIN_S
    assert said.status == 3
    assert words in said.complaint
    assert said.err.count("\n") == 1
    # A dropped connection may have been stale, so that request is sent once more.
    assert len(runtime.generations) == (2 if fault == "drop" else 1)


@pytest.mark.parametrize(("fault", "words"), FAULTS.items())
def test_fault_after_the_warm_up(twospeed, fake, tmp_path, fault, words):
    """Nothing to report, yet what there was is kept."""
    runtime, kept = fake(fault=from_number(2, fault)), tmp_path / "run.jsonl"
    started_s = time.monotonic()
    said = twospeed.diagnose(runtime.url, "--timeout", TIMEOUT_S, "--save", kept)
    assert time.monotonic() - started_s < 2 * TIMEOUT_S + MARGIN_S
    assert said.status == 3
    assert words in said.complaint
    run = read_run(kept)
    assert [record.error is None for record in run.records] == [True, False, False]
    assert words in run.records[1].error.message
    assert bool(run.records[1].arrivals) == (fault in {"error", "garbage", "cut", "abort", "stall"})
    assert not run.complete


@pytest.mark.parametrize("fault", ["refuse", "drop", "error", "cut", "stall"])
def test_one_fault_in_mid_run(twospeed, fake, fault):
    """The report is made from the other requests, and says so."""
    runtime, words = fake(fault=only(5, fault)), FAULTS[fault]
    said = twospeed.diagnose(runtime.url, "--json", "--timeout", TIMEOUT_S)
    report = said.report
    if fault == "drop":  # taken for a stale connection and sent again
        assert not any("failed" in warning for warning in report["conditions"]["warnings"])
    else:
        said_so = [w for w in report["conditions"]["warnings"] if words in w]
        assert len(said_so) == 1
        assert said_so[0].startswith(f"1 of {len(report['requests'])} requests failed")
    assert report["prefill"]["tps"] > 0
    assert report["stream"]["verdict"] == "fine"


def test_prompt_longer_than_an_unknown_context(twospeed, fake):
    runtime = fake(n_ctx=250, tells_n_ctx=False)
    report = twospeed.diagnose(runtime.url, "--json").report
    asked = [blind["what"] for blind in report["unknown"]]
    assert any("the server does not answer them" in what for what in asked)
    assert any("300 is extrapolated" in what for what in asked)
    assert max(point["prompt_tokens"] for point in report["prefill"]["points"]) < 250
    assert report["wait"]["seconds"] > 0


def test_prompt_longer_than_a_known_context_is_not_sent(twospeed, fake):
    runtime = fake(n_ctx=250)
    report = twospeed.diagnose(runtime.url, "--json").report
    assert all(one.prompt_tokens < 250 for one in runtime.generations)
    blind = next(b for b in report["unknown"] if "context of 250 tokens" in b["what"])
    assert blind["needs"] == "a larger context"


def test_context_too_small_for_any_request(twospeed, fake):
    said = twospeed.diagnose(fake(n_ctx=40, tells_n_ctx=False).url, "--json")
    assert said.status == 3
    assert "context size of 40 tokens" in said.complaint
    assert "Use a shorter prompt" in said.complaint
