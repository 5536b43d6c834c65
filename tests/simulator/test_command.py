"""`twospeed simulate` as a process of its own, and its options."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import pytest
from live_server import Client
from telling import CHAT, user

from twospeed.cli.main import main
from twospeed.cli.simulate import SPEAK
from twospeed.simulator.simulation import dialect_names

SPEEDS = ["--prefill-tps", "2000", "--decode-tps", "200"]


class Process:
    def __init__(self, *words: str):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "twospeed", "simulate", *SPEEDS, "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.announced = self.process.stdout.readline()

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@pytest.fixture
def process():
    started: list[Process] = []

    def start(*words: str) -> Process:
        started.append(Process(*words))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def ask(simulator: Process, path: str, body=None):
    url = json.loads(simulator.announced)["url"]
    client = Client(int(url.rpartition(":")[2]))
    try:
        return client.ask(path, body)
    finally:
        client.close()


def test_it_says_where_it_is_and_ends_cleanly(process):
    simulator = process()
    assert simulator.announced.startswith("Simulating openai at http://127.0.0.1:")
    assert "2000 tok/s prefill, 200 tok/s decode" in simulator.announced
    assert "Ctrl-C ends." in simulator.announced
    status, out, err = simulator.end()
    assert (status, out, err) == (0, "", "")


def test_json_is_one_object_and_sigterm_ends_it_too(process):
    simulator = process("--json", "--speak", "ollama")
    told = json.loads(simulator.announced)
    assert told["schema"] == "twospeed.simulator/1"
    assert told["pid"] == simulator.process.pid
    assert ask(simulator, "/").body == b"Ollama is running"
    status, out, _ = simulator.end(signal.SIGTERM)
    assert (status, out) == (0, "")


def test_truth_is_complete_once_it_has_ended(process, tmp_path):
    truth = tmp_path / "truth.jsonl"
    simulator = process("--json", "--truth", str(truth), "--max-requests", "2")
    for _ in range(2):
        ask(simulator, CHAT, user("Hello there", stream=True, max_tokens=3))
    assert simulator.wait()[0] == 0
    lines = [json.loads(line) for line in truth.read_text().splitlines()]
    assert [line["request"] for line in lines] == [1, 2]
    assert [line["ended"] for line in lines] == ["complete", "complete"]
    assert [write["tokens"] for write in lines[0]["writes"]] == [0, 1, 1, 1, 0]
    assert truth.stat().st_mode & 0o077 == 0


def test_it_ends_by_itself_after_its_duration(process):
    assert process("--duration", "0.05").wait()[0] == 0


def test_it_says_that_it_fell_behind(process):
    # A prompt that costs nothing would have to be answered before it can have been read.
    simulator = process("--json", "--prefill-tps", "1e12", "--context", "9000000")
    ask(simulator, CHAT, user("word " * 200_000, max_tokens=1))
    status, _, err = simulator.end()
    assert status == 0
    assert "fell behind: 1 writes were more than 1 ms late" in err


@pytest.mark.parametrize(
    "words",
    [
        ["--decode-tps", "5"],
        [*SPEEDS, "--decode-tps", "0"],
        [*SPEEDS, "--decode-tps", "nan"],
        [*SPEEDS, "--prefill-tps", "-3"],
        [*SPEEDS, "--slots", "0"],
        [*SPEEDS, "--jitter", "1"],
        [*SPEEDS, "--port", "70000"],
        [*SPEEDS, "--speak", "klingon"],
        [*SPEEDS, "--cache", "maybe"],
        [*SPEEDS, "--fault", "nonsense", "--port", "0"],
        [*SPEEDS, "--fault", "stall:x", "--port", "0"],
        [*SPEEDS, "--fault", "split-utf8", "--speak", "mlx", "--port", "0"],
        [*SPEEDS, "--host", "0.0.0.0", "--port", "0"],
    ],
    ids=" ".join,
)
def test_impossible_options_are_refused(words, capsys):
    assert main(["simulate", *words]) == 2
    assert capsys.readouterr().out == ""


def test_a_truth_file_that_cannot_be_written_is_told(tmp_path, capsys):
    words = ["--truth", str(tmp_path / "no" / "such" / "folder"), "--port", "0"]
    assert main(["simulate", *SPEEDS, *words]) == 3
    assert "Cannot write" in capsys.readouterr().err


def test_a_taken_port_is_refused(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = ["--port", str(taken.getsockname()[1])]
        assert main(["simulate", *SPEEDS, *words]) == 2
    assert "--port" in capsys.readouterr().err


def test_every_dialect_can_be_chosen():
    assert set(SPEAK) == set(dialect_names())


def test_help_has_examples_and_faults(capsys):
    assert main(["simulate", "--help"]) == 0
    said = capsys.readouterr().out
    assert "twospeed simulate --prefill-tps 500 --decode-tps 20" in said
    assert "503-then-ready" in said
