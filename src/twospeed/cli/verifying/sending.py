"""One request of a trial: its prompt, its arm, and what the machine did meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Literal

from msgspec.structs import replace

from twospeed.cli.terminal.progress import Progress
from twospeed.cli.verifying.stage import Stage
from twospeed.cures.pair import Sample
from twospeed.findings.prompt_cache import REUSABLE_FRAC
from twospeed.records.request_record import Probe, RequestRecord
from twospeed.records.run import Conditions
from twospeed.sources.live.prompts import Prompt, PromptWriter

TICK_S = 0.5
Starts = Literal["auto", "each", "once"]
"""How often servers of ours are started: for each pair, once, or (auto) as the time allows."""
START_SHARE = 3.0
"""auto: for each pair as long as starting both takes at most so many times as long as measuring."""
PRIMING_TOKENS = 1


class Sending:
    """Sends probes to the arms of a stage.

    Prompts are new in every run, so that no server knows them from the one before. Both arms of a
    pair get the same text, so that it is the same work. Where both are one server, which may keep
    it, they get two texts of the same number of words.

    Args:
        stage: with its arms open.
        runner: event loop that all requests run in.
        progress: the live line.
        shared: both arms are one server.
        primed: most of each prompt is sent once before, so that it can be reused.
        starts: see `Starts`.
        kept: told of every record, with its arm.
    """

    def __init__(
        self,
        stage: Stage,
        runner: asyncio.Runner,
        progress: Progress,
        *,
        shared: bool,
        primed: bool,
        starts: Starts = "once",
        kept: Callable[[int, RequestRecord], None],
    ) -> None:
        self._stage = stage
        self._runner = runner
        self._progress = progress
        self._writer = PromptWriter()
        self._shared = shared
        self._primed = primed
        self._kept = kept
        self._prompts: tuple[int, tuple[Prompt, Prompt]] | None = None
        self._number = 0
        self._starts = starts
        self._pair_s = (0.0, 0.0)

    def measure(self, arm: int, probe: Probe, prompt_number: int) -> Sample:
        """Send one probe and record it; a failure is the record's `error`."""
        prompt = self._prompt(arm, probe, prompt_number)
        if not self._stage.is_open(arm):
            self._start_again(arm, probe)
        opened = self._stage.use(arm)
        self._number += 1
        label = f"[{self._number}] {probe.step}, {self._stage.arms[arm].name[:40]}"
        if self._primed and probe.step != "warmup":
            self._run(label, opened.endpoint.measure(priming(probe), 0, prompt=head_of(prompt)))
        opened.watch.start()
        began_s = time.monotonic()
        record = self._run(label, opened.endpoint.measure(probe, self._number, prompt=prompt.text))
        self._pair_s = self._pair_s[1], time.monotonic() - began_s
        # What runs here disturbs no server elsewhere.
        conditions = opened.watch.stop() if opened.source.local else Conditions()
        if record.counts.prompt_tokens and record.error is None:
            self._writer.learn(prompt.words, record.counts.prompt_tokens)
        self._kept(arm, record)
        return Sample(record=record, conditions=conditions)

    def renew(self, warmup: Probe, first: int) -> bool:
        """Start the servers of ours anew and warm them up, off the clock.

        Args:
            warmup: what each of them gets.
            first: the arm that is started first.

        Returns:
            Whether both arms are new.

        Raises:
            TwospeedError: one of them does not start again.
        """
        launched = [index for index in (first, 1 - first) if self._stage.arms[index].launched]
        if self._starts == "auto" and launched:
            self._starts = self._settled_starts()
        if self._starts != "each" or not launched:
            return False
        began_s = time.monotonic()
        self._stage.renew(launched)
        for index in launched if not self._stage.alternates else ():
            self._warm_up(index, warmup)
        self._stage.outside_s += time.monotonic() - began_s
        return len(launched) == len(self._stage.arms)

    def _settled_starts(self) -> Starts:
        """How it is done from now on, said once."""
        start_s, pair_s = sum(self._stage.start_s.values()), sum(self._pair_s)
        if start_s <= START_SHARE * pair_s:
            self._progress.note(
                "Servers are started anew for each pair, beside the budget "
                f"({start_s:.1f} s and a warm-up): two starts of the same settings differ too."
            )
            return "each"
        self._progress.note(
            f"Starting takes {start_s:.0f} s and a pair {pair_s:.0f} s: servers are started once. "
            "--starts each has them started for each pair."
        )
        return "once"

    def _start_again(self, arm: int, probe: Probe) -> None:
        """Start an arm that made room for the other one, and warm it up off the clock."""
        began_s = time.monotonic()
        self._warm_up(arm, replace(probe, step="warmup"))
        self._stage.outside_s += time.monotonic() - began_s

    def _warm_up(self, arm: int, warmup: Probe) -> None:
        endpoint = self._stage.use(arm).endpoint
        text = self._writer.write(warmup.prompt_tokens).text
        self._run(
            f"Warming up {self._stage.arms[arm].name[:40]}",
            endpoint.measure(warmup, 0, prompt=text),
        )

    def _prompt(self, arm: int, probe: Probe, number: int) -> Prompt:
        if self._prompts is None or self._prompts[0] != number:
            first = self._writer.write(probe.prompt_tokens)
            second = self._writer.write(probe.prompt_tokens) if self._shared else first
            self._prompts = number, (first, second)
        return self._prompts[1][arm]

    def _run(self, label: str, request: Coroutine[None, None, RequestRecord]) -> RequestRecord:
        async def watched() -> RequestRecord:
            ticker = asyncio.create_task(self._tick(label))
            try:
                return await request
            finally:
                ticker.cancel()

        return self._runner.run(watched())

    async def _tick(self, label: str) -> None:
        while True:
            self._progress.show(label, force=True)
            await asyncio.sleep(TICK_S)


def priming(probe: Probe) -> Probe:
    """The request before: it only leaves its prompt behind."""
    return replace(
        probe,
        step="warmup",
        prompt_tokens=round(REUSABLE_FRAC.likely * probe.prompt_tokens),
        output_tokens=PRIMING_TOKENS,
    )


def head_of(prompt: Prompt) -> str:
    """The part of a prompt that a turn before would already have held."""
    words = prompt.text.split(" ")
    return " ".join(words[: round(REUSABLE_FRAC.likely * len(words))])
