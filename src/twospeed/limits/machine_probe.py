"""One short look at this machine's memory and processor, in a helper process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import msgspec

from twospeed.records.run import MachineProbe

COMMAND = (sys.executable, "-P", "-m", "twospeed.limits.probe_child")
# The child brings its own threads; a matrix library that brings more would have them compete.
ONE_THREAD = dict.fromkeys(
    (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


def measure(
    timeout_s: float = 20.0, command: Sequence[str] = COMMAND, *, threads: int | None = None
) -> MachineProbe | None:
    """Memory bandwidth and matrix speed of this machine's processor.

    Takes about 1.5 s of all cores and up to 512 MB for that time: run it while no request is
    being measured.

    Args:
        timeout_s: the helper is ended after so long.
        command: the helper, replaceable in tests.
        threads: most threads to use, those of the server where they are known: a server that was
            given one of eight cores cannot reach what eight can. None for all cores.

    Returns:
        The measurement, or None where the helper could not be run or had too little free memory.
    """
    environment: Mapping[str, str] = {**os.environ, **ONE_THREAD}
    try:
        done = subprocess.run(
            [*command, *([] if threads is None else [str(threads)])],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=True,
        )
        probe = msgspec.json.decode(done.stdout, type=MachineProbe)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return None
    return probe if probe.memory_bandwidth_bytes_per_s else None
