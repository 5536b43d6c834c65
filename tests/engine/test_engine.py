"""Starting and ending the engine: with small stand-ins for the child, and once for real."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from twospeed.records.errors import EngineError
from twospeed.sources.engine.engine import Engine, why_it_failed
from twospeed.sources.engine.model import cached_model
from twospeed.sources.engine.settings import parse_settings, with_defaults

READY = """print('{"address": "http://127.0.0.1:1", "gpus": []}', flush=True)"""
WAIT = "sys.stdin.read()"


def child(*lines: str) -> Engine:
    """An engine whose process runs these lines instead of llama.cpp."""
    code = "\n".join(["import json, sys", "order = json.loads(sys.stdin.readline())", *lines])
    return Engine({"threads": 1}, command=(sys.executable, "-c", code))


def test_ready_engine_has_an_address_and_ends_with_the_block():
    engine = child("print('loading', file=sys.stderr)", READY, WAIT)
    with engine:
        assert engine.start() is engine
        assert engine.url == "http://127.0.0.1:1"
        assert engine.runs_on_processor
        process, log = psutil.Process(engine.pid), engine.log_path
        if os.name == "posix":
            assert stat.S_IMODE(log.stat().st_mode) == 0o600
        engine.check()
        assert engine.start().pid == process.pid
    assert not process.is_running()
    assert not log.exists()
    assert engine.url is None
    engine.stop()


def test_settings_reach_the_child():
    echo = (
        "print(json.dumps({'address': str(order['settings']['threads']), 'gpus': ['A card']}),"
        " flush=True)"
    )
    with child(echo, WAIT).start() as engine:
        assert engine.url == "1"
        assert not engine.runs_on_processor


def test_waiting_is_told():
    waited = []
    engine = child(READY, WAIT)
    try:
        engine.start(waiting=waited.append)
    finally:
        engine.stop()
    assert waited
    assert waited == sorted(waited)


def test_crash_gives_the_reason_from_the_log_and_keeps_it():
    line = "0.00.024.118 E llama_model_load: error loading model: tensor is not within the file"
    engine = child(f"sys.exit({line!r})")
    with pytest.raises(EngineError, match="tensor is not within the file") as caught:
        engine.start()
    assert str(engine.log_path) in caught.value.hint
    assert engine.log_path.read_text(encoding="utf-8").startswith(line)
    engine.log_path.unlink()


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["sys.exit(3)"], "exit code 3"),
        (["print(json.dumps({'error': 'ImportError: no libc'}))"], "ImportError: no libc"),
        (["print('nonsense')"], "nonsense"),
    ],
)
def test_failures_without_a_log_line_are_told(lines, reason):
    engine = child(*lines)
    with pytest.raises(EngineError, match=reason):
        engine.start()
    engine.log_path.unlink()


def test_a_child_that_never_answers_is_ended():
    engine = child("import threading", "threading.Event().wait(60)")
    with pytest.raises(EngineError, match=r"not ready after 0\.5 s"):
        engine.start(timeout_s=0.5)
    assert engine.pid is None
    engine.log_path.unlink()


def test_death_while_running_is_noticed():
    engine = child(READY, WAIT)
    engine.start()
    process = psutil.Process(engine.pid)
    process.kill()
    psutil.wait_procs([process], timeout=10)
    with pytest.raises(EngineError, match="exit code"):
        engine.check()
    engine.stop()
    engine.log_path.unlink()


def test_missing_engine_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(EngineError, match="not installed") as caught:
        Engine({}).start()
    assert "twospeed[engine]" in caught.value.hint


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("", None),
        ("0.00.004.222 I srv init: loading model\n", None),
        (
            (
                "0.00.1 E gguf_init_from_reader: invalid magic characters: 'garb'\n"
                "0.00.2 E llama_model_load: error loading model: failed to load model from g\n"
                "0.00.3 E srv init: exiting due to model loading error\n"
            ),
            "gguf_init_from_reader: invalid magic characters: 'garb'",
        ),
        (
            (
                "0.00.1 E llama_init_from_model: quantized V cache requires flash_attn.\n"
                "0.00.3 E srv init: exiting due to model loading error\n"
            ),
            "llama_init_from_model: quantized V cache requires flash_attn",
        ),
        ("0.00.1 E first\n0.00.2 W other\n0.00.3 E second\n", "second"),
        (
            "0.00.1 E first\n/b/ggml.c:1: GGML_ASSERT(n > 0) failed\n",
            "GGML_ASSERT(n > 0) failed",
        ),
    ],
)
def test_reason_is_found_in_the_log(log, reason):
    assert why_it_failed(log) == reason


def real_settings():
    pytest.importorskip("xllamacpp")
    path = os.environ.get("TWOSPEED_TEST_GGUF") or cached_model()
    if path is None:
        pytest.skip("the model is not in the cache")
    asked = ["threads=1", "ctx-size=512", "parallel=2", "cache-type-k=q8_0", "no-warmup"]
    return with_defaults(parse_settings(asked), Path(path))


def get(url: str):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


@pytest.mark.engine
def test_real_engine_serves_with_its_settings_and_stops():
    with Engine(real_settings()).start() as engine:
        assert get(f"{engine.url}/health") == {"status": "ok"}
        props = get(f"{engine.url}/props")
        assert props["total_slots"] == 2
        assert props["default_generation_settings"]["n_ctx"] == 256
        assert props["model_alias"] == engine.settings["alias"]
        assert "listening on" in engine.log_path.read_text(encoding="utf-8")
        process = psutil.Process(engine.pid)
    assert not process.is_running()


@pytest.mark.engine
def test_real_engine_refuses_a_damaged_model(tmp_path):
    settings = real_settings()
    damaged = tmp_path / "cut.gguf"
    with Path(str(settings["model"])).open("rb") as file:
        damaged.write_bytes(file.read(8_000_000))
    engine = Engine({**settings, "model": str(damaged)})
    with pytest.raises(EngineError, match="corrupted or incomplete"):
        engine.start()
    engine.log_path.unlink()


@pytest.mark.engine
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is a custom of POSIX")
def test_real_engine_does_not_outlive_a_killed_parent(tmp_path):
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(real_settings()), encoding="utf-8")
    code = (
        "import json, pathlib, sys\n"
        "from twospeed.sources.engine.engine import Engine\n"
        f"settings = json.loads(pathlib.Path({str(settings)!r}).read_text())\n"
        "engine = Engine(settings).start()\n"
        "loaded = 'xllamacpp' in sys.modules\n"
        "print(json.dumps([engine.pid, engine.url, str(engine.log_path), loaded]), flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        (sys.executable, "-c", code), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        pid, url, log, loaded = json.loads(parent.stdout.readline())
        assert not loaded, "llama.cpp belongs into the child"
        engine = psutil.Process(pid)
        assert get(f"{url}/health") == {"status": "ok"}
        # Ctrl-C in the terminal reaches the parent's process group, never the engine's.
        assert os.getpgid(pid) != os.getpgid(parent.pid)
        os.kill(pid, signal.SIGINT)
        assert get(f"{url}/health") == {"status": "ok"}
        parent.kill()
        gone, alive = psutil.wait_procs([engine], timeout=10)
        for each in alive:
            each.kill()
    Path(log).unlink(missing_ok=True)
    assert gone
    assert not alive
