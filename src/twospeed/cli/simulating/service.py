"""Runs the simulator: settings from options, the announcement, the account at the end."""

from __future__ import annotations

import gc
import json
import math
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import CLOCK_REALTIME, clock_gettime, monotonic_ns

from twospeed.records.errors import UsageError
from twospeed.simulator.connection import Cipher
from twospeed.simulator.faults import Fault
from twospeed.simulator.listening import allow_many_connections, listening, shown
from twospeed.simulator.loop import Loop
from twospeed.simulator.machine import Machine
from twospeed.simulator.simulation import Settings, Simulation, dialect_type
from twospeed.simulator.truth import TruthFile


def serve(args: Namespace) -> None:
    """Serve until told to end.

    Raises:
        UsageError: the options contradict each other, or the address cannot be had.
        InputError: certificate or truth file cannot be used.
    """
    settings = _settings(args)
    new_cipher = _cipher_maker(args.tls)
    allow_many_connections()
    with listening(args.host, args.port) as listener:
        truth = TruthFile(args.truth) if args.truth else None
        loop = Loop(
            Simulation(settings, started_ns=monotonic_ns(), wall_s=_wall_s),
            listener,
            new_cipher=new_cipher,
            on_truth=truth.add if truth else None,
            max_requests=args.max_requests,
            duration_s=args.duration,
        )
        url = f"{'https' if args.tls else 'http'}://{shown(listener)}"
        with _undisturbed(loop):
            _announce(url, settings, as_json=args.json)
            loop.run()
        if truth:
            truth.close()
    _account_for(loop)


@contextmanager
def _undisturbed(loop: Loop) -> Iterator[None]:
    """Signals end the loop in good order, and garbage is collected only while it rests."""
    before = {
        number: signal.signal(number, lambda *_: loop.stop())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
        for number, handler in before.items():
            signal.signal(number, handler)


def _settings(args: Namespace) -> Settings:
    try:
        faults = tuple(Fault.parsed(written) for written in args.fault)
    except ValueError as error:
        raise UsageError(f"--fault: {error}.", hint="See twospeed simulate --help.") from error
    if dialect_type(args.speak).ascii_only and any(f.name == "split-utf8" for f in faults):
        raise UsageError(
            f"--fault split-utf8: {args.speak} escapes all such characters.",
            hint="Choose another dialect with --speak.",
        )
    machine = Machine(
        prefill_tps=args.prefill_tps,
        decode_tps=args.decode_tps,
        attention_half_depth=args.attention_half_depth or math.inf,
        decode_half_depth=args.decode_half_depth or math.inf,
        shared_batch_frac=args.shared_batch,
        jitter_frac=args.jitter,
        draft_tokens=args.draft_tokens,
        accepted_frac=args.draft_accepted,
    )
    return Settings(
        machine=machine,
        speak=args.speak,
        slots=args.slots,
        cache=args.cache,
        load_s=args.load_s,
        unload_after_s=args.unload_after_s,
        n_ctx=args.context,
        answer_tokens=args.answer_tokens,
        reasoning_tokens=args.reasoning_tokens,
        report_cached=args.report_cached,
        report_times=args.report_times,
        gpu_frac=args.gpu_part,
        tokens_per_chunk=args.tokens_per_chunk,
        seed=args.seed,
        faults=faults,
        stall_s=args.stall_s,
        allowed_hosts=frozenset(name.lower() for name in args.allow_host),
    )


def _cipher_maker(tls: list[Path] | None) -> Callable[[], Cipher] | None:
    if tls is None:
        return None
    # Here and not above: loading TLS takes longer than everything else together.
    from twospeed.simulator.tls import Tls, context_of  # noqa: PLC0415

    return partial(Tls, context_of(*tls))


def _announce(url: str, settings: Settings, *, as_json: bool) -> None:
    """Say where it is; the first line of output, so that scripts can wait for it."""
    machine = settings.machine
    if as_json:
        print(json.dumps({"schema": "twospeed.simulator/1", "url": url, "pid": os.getpid()}))
    else:
        base = url if settings.speak == "ollama" else f"{url}/v1"
        print(
            f"Simulating {settings.speak} at {base} "
            f"({machine.prefill_tps:g} tok/s prefill, {machine.decode_tps:g} tok/s decode): "
            f"point a chat program or `twospeed diagnose {url}` at it; Ctrl-C ends."
        )
    sys.stdout.flush()


def _account_for(loop: Loop) -> None:
    """Say at the end whether the pace was kept."""
    if loop.late_writes:
        print(
            f"twospeed: fell behind: {loop.late_writes} writes were more than 1 ms late, the worst "
            f"by {loop.worst_late_ns / 1e6:.1f} ms; this machine was too busy for exact times.",
            file=sys.stderr,
        )


def _wall_s() -> int:
    return int(clock_gettime(CLOCK_REALTIME))
