"""`--what-if`: any combination of changes, priced with the same functions as the cures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from msgspec import Struct

from twospeed import cures
from twospeed.cures.knob import Knob
from twospeed.cures.pace import Change, Pace, constant, interval, pace_of, stretch
from twospeed.findings.observed import Observed
from twospeed.fits.curve import Floats
from twospeed.fits.interval import Interval
from twospeed.records.errors import UsageError

LONGEST_TEXT = 200
LONGEST_SHOWN = 40


class Wanted(Struct, frozen=True, kw_only=True):
    """One word of a scenario, read."""

    key: str
    text: str
    """As it was written."""
    value: Any


class Scenario(Struct, frozen=True, kw_only=True):
    """Changes that are made together."""

    settings: tuple[Wanted, ...]

    @property
    def text(self) -> str:
        """The scenario as it was asked for: `prompt=0.5,cache=on`."""
        return ",".join(f"{setting.key}={setting.text}" for setting in self.settings)


class Priced(Struct, frozen=True, kw_only=True):
    """What a request takes under a scenario; None where its phase was not measured."""

    change: str
    """The scenario, or empty for the request as it is."""
    wait_s: Interval | None
    """Seconds until the first answer token."""
    stream_tps: Interval | None
    """Tokens per second in the middle of the output."""
    total_s: Interval | None
    """Seconds of the whole request."""
    needs: str | None = None
    """What the run does not show, so that the scenario has no price."""


@cache
def knobs() -> dict[str, Knob]:
    """What can be asked for, by key: every module of this room with a `KNOB`."""
    names = [f"{cures.__name__}.{module.name}" for module in iter_modules(cures.__path__)]
    found = [getattr(import_module(name), "KNOB", None) for name in names]
    return {knob.key: knob for knob in found if isinstance(knob, Knob)}


def read_scenario(text: str) -> Scenario:
    """The changes that one `--what-if` asks for.

    Args:
        text: `KEY=VALUE`, several with commas between them.

    Raises:
        UsageError: an unknown or repeated key, or a value of another form.
    """
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"--what-if is longer than {LONGEST_TEXT} characters.")
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError("--what-if is empty.", hint=_keys())
    settings = tuple(_read(word) for word in words)
    if len({setting.key for setting in settings}) < len(settings):
        raise UsageError(f"--what-if {_shown(text)} sets something twice.")
    return Scenario(settings=settings)


def read_scenarios(texts: Sequence[str]) -> tuple[Scenario, ...]:
    """Every `--what-if` of a command line."""
    return tuple(read_scenario(text) for text in texts)


def price(observed: Observed, scenario: Scenario) -> Priced:
    """What the workload's request takes with the changes of a scenario.

    What tokens cost is changed before how many there are, whatever the order of the words.
    """
    changes: list[Change] = []
    for setting in sorted(scenario.settings, key=lambda each: (knobs()[each.key].rank, each.key)):
        knob = knobs()[setting.key]
        change = knob.change(observed, setting.value)
        if change is None:
            return Priced(
                change=scenario.text,
                wait_s=None,
                stream_tps=None,
                total_s=None,
                needs=f"{setting.key}: {knob.needs}",
            )
        changes.append(change)
    then = pace_of(observed)
    for change in changes:
        then = change(then)
    return _told(observed, then, scenario.text)


def price_now(observed: Observed) -> Priced:
    """What the workload's request takes as it is, as the report says it."""
    return _told(observed, pace_of(observed), "")


def _told(observed: Observed, pace: Pace, text: str) -> Priced:
    now, beyond = pace_of(observed), stretch(observed, pace)
    # The report's own seconds, less what the change saves: rows and gauges never disagree.
    wait = _anchored(observed.wait.seconds, now, pace, _wait_s)
    total = _anchored(observed.budget.total_s, now, pace, _total_s)
    step = interval(pace.mid_answer_step_s, beyond)
    return Priced(
        change=text,
        wait_s=_seconds(interval(wait, beyond)),
        stream_tps=None if step is None or step.likely <= 0.0 else step.divided_into(1.0),
        total_s=_seconds(interval(total, beyond)),
    )


def _anchored(told_s: float | None, now: Pace, then: Pace, of: Callable[[Pace], Any]) -> Any:  # noqa: ANN401 (an array)
    if told_s is None:
        return constant(np.nan)
    return of(then) + (told_s - of(now)[0])


def _wait_s(pace: Pace) -> Floats:
    return pace.before_s + pace.prefill_s + (pace.reasoning_s if pace.reasoning_steps[0] else 0.0)


def _total_s(pace: Pace) -> Floats:
    return pace.before_s + pace.prefill_s + pace.reasoning_s + pace.answer_s


def _seconds(found: Interval | None) -> Interval | None:
    """An interval of seconds: nothing takes less than none."""
    if found is None:
        return None
    return Interval(*(max(value, 0.0) for value in (found.low, found.likely, found.high)))


def _read(word: str) -> Wanted:
    key, equals, text = (part.strip() for part in word.partition("="))
    key, text = key.lower().replace("-", "_"), text.lower()
    knob = knobs().get(key)
    if not equals or knob is None:
        raise UsageError(
            f"--what-if {_shown(word)}: not a change that can be priced.", hint=_keys()
        )
    try:
        return Wanted(key=key, text=text, value=knob.read(text))
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--what-if {_shown(word)}: {key} takes {knob.form}.") from error


def _keys() -> str:
    return f"Use {', '.join(f'{key}=' for key in sorted(knobs()))} as in prompt=0.5,cache=on."


def _shown(text: str) -> str:
    kept = "".join(letter for letter in text if letter.isprintable())
    return kept if len(kept) <= LONGEST_SHOWN else f"{kept[:LONGEST_SHOWN]}…"
