"""What the server's command line asks for, where the server itself does not tell.

Options of llama.cpp and of what is built on it; those of vLLM and SGLang for reuse.
Source: llama.cpp common/arg.cpp; vLLM and SGLang, server arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from twospeed.records.run import Run

THREADS = ("-t", "--threads")
BATCH = ("-b", "--batch-size")
STEP = ("-ub", "--ubatch-size")
REUSE_OFF = ("--no-cache-prompt", "--no-enable-prefix-caching", "--disable-radix-cache")


def number_asked(run: Run, options: Sequence[str]) -> int | None:
    """The whole number behind the last of these options; None without one."""
    words = [part for word in command_of(run) for part in word.split("=", 1)]
    found = [value for option, value in pairwise(words) if option in options]
    return int(found[-1]) if found and found[-1].isdecimal() else None


def is_asked(run: Run, flags: Sequence[str]) -> bool:
    """Whether one of these flags was given."""
    return any(word in flags for word in command_of(run))


def command_of(run: Run) -> tuple[str, ...]:
    """The words of the command line; none where the process was not seen."""
    server = run.machine.server if run.machine else None
    return server.command if server else ()
