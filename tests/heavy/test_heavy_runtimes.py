"""A right verdict from vLLM, transformers serve and mlx_lm.server, each really running.

What is compared: the curves that `twospeed diagnose --json` reports against requests that this
file times itself, with nothing of twospeed, at lengths drawn afterwards.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.runtimes, pytest.mark.timeout(600)]

HOME = Path(__file__).parents[2] / ".runtimes"
MODEL = HOME / "tiny"
MOST_TRIES = 4

COMMANDS = {
    "mlx_lm": ["-m", "mlx_lm.server", "--model", "./tiny", "--port", "{port}"],
    "transformers": [
        "-c",
        "import sys; from transformers.cli.transformers import main; sys.exit(main())",
        "serve",
        "./tiny",
        "--device",
        "cpu",
        "--port",
        "{port}",
    ],
    "vllm": [
        *("-m", "vllm.entrypoints.openai.api_server", "--model", "./tiny", "--port", "{port}"),
        *("--enforce-eager", "--max-model-len", "2048", "--dtype", "bfloat16"),
        *("--host", "127.0.0.1"),
    ],
}
RUNTIME_IDS = {"mlx_lm": "mlx_lm", "transformers": "transformers", "vllm": "vllm"}
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server:
    """One runtime as a child process, ready to answer."""

    def __init__(self, runtime: str, log: Path) -> None:
        self.port = free_port()
        words = [word.format(port=self.port) for word in COMMANDS[runtime]]
        self.log = log
        with log.open("wb") as sink:
            self.process = subprocess.Popen(
                [HOME / runtime / "bin" / "python", *words],
                cwd=HOME,
                env={**os.environ, **ENVIRONMENT},
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        for _ in range(240):
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/v1/models")
                if connection.getresponse().status == 200:
                    connection.close()
                    return
            connection.close()
            time.sleep(0.5)
        pytest.fail(self.log.read_text()[-2000:])

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(15)

    def timed(self, words: int, output_tokens: int) -> tuple[int, int, float, float]:
        """Prompt tokens, output tokens, seconds to first text, seconds from first to last text."""
        rng = random.Random(time.monotonic_ns())
        prompt = " ".join(
            rng.choice(("river", "clock", "box", "wall", "rain")) for _ in range(words)
        )
        body = {
            "model": "./tiny",
            "messages": [{"role": "user", "content": f"{rng.random()} {prompt}"}],
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.connect()
        start = time.perf_counter()
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
        )
        stamps, usage = [], {}
        for line in connection.getresponse():
            now = time.perf_counter() - start
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                usage = event.get("usage") or usage
                if any(c.get("delta", {}).get("content") for c in event.get("choices", [])):
                    stamps.append(now)
        connection.close()
        return usage["prompt_tokens"], usage["completion_tokens"], stamps[0], stamps[-1] - stamps[0]


@pytest.fixture(scope="module", params=sorted(COMMANDS))
def server(request, tmp_path_factory):
    if not (HOME / request.param / ".installed").exists():
        pytest.skip(f"{request.param} is not installed; run make test-runtimes")
    running = Server(request.param, tmp_path_factory.mktemp("log") / f"{request.param}.log")
    running.runtime = request.param
    yield running
    running.stop()


def diagnose(server: Server, *words: str) -> dict:
    command = [sys.executable, "-m", "twospeed", "diagnose", f"http://127.0.0.1:{server.port}"]
    done = subprocess.run(
        [*command, "--json", "--no-probe", "--prompt-tokens", "1200", *words],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in {0, 4}, done.stderr.decode()
    return json.loads(done.stdout)


def parted(server: Server, words: int) -> tuple[int, int, float, float]:
    """A request whose text came token by token.

    vLLM on two cores now and then sends a whole answer at its end: its worker and its engine spin
    on one core, and the thread that sends waits for them.
    """
    for _ in range(MOST_TRIES):
        n, output, wait, stream = server.timed(words, 64)
        if stream > wait / 20:
            break
    return n, output, wait, stream


def stopwatch(server: Server) -> list[tuple[int, int, float, float]]:
    return [parted(server, words) for words in (150, 220, 300, 180, 260)]


def is_steady(before: list, after: list) -> bool:
    """Whether a stopwatch without kernel stamps can be believed: it agrees with itself."""
    return all(
        statistics.median(one[phase] for one in before)
        == pytest.approx(statistics.median(one[phase] for one in after), rel=0.25)
        for phase in (2, 3)
    )


def measured(server: Server) -> tuple[dict, list]:
    """A report, and what a stopwatch says before and after it; on a busy machine in a later try."""
    for _ in range(MOST_TRIES):
        before, report, after = stopwatch(server), diagnose(server), stopwatch(server)
        if is_steady(before, after):
            return report, [*before, *after]
        print(f"unsteady: {before} {after} {report['conditions']}")
    pytest.skip("the machine is too busy for a stopwatch: it does not agree with itself")


def test_the_runtime_is_recognised_and_both_phases_agree_with_a_stopwatch(server):
    report, timed = measured(server)
    shown = ("verdict", "slow_phase", "wait", "stream", "facts", "conditions")
    print(json.dumps({k: report[k] for k in shown}))
    assert report["source"]["runtime"] == RUNTIME_IDS[server.runtime]
    prefill, decode = report["prefill"]["curve"], report["decode"]["curve"]
    waits, steps = [], []
    for n, output, wait, stream in timed:
        seconds = prefill["overhead_s"] + prefill["per_token_s"] * n
        waits.append((seconds + (prefill["per_token2_s"] or 0) * n * n) / wait)
        step = decode["per_token_s"] + (decode["per_depth_token_s"] or 0) * (n + output / 2)
        steps.append(step * (output - 1) / stream)
    print(f"foretold / timed: prefill {waits}, decode {steps}")
    assert statistics.median(waits) == pytest.approx(1, abs=0.3)
    assert statistics.median(steps) == pytest.approx(1, abs=0.3)


def test_the_verdict_follows_the_goals(server):
    fine = diagnose(server, "--wait-goal", "60", "--stream-goal", "1")
    assert fine["slow_phase"] == "none"
    wait = diagnose(server, "--wait-goal", "0.0001", "--stream-goal", "1")
    assert wait["slow_phase"] in {"prefill", "network"}
    stream = diagnose(server, "--wait-goal", "60", "--stream-goal", "100000")
    assert stream["slow_phase"] == "decode"
