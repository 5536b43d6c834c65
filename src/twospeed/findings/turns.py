"""Conversations in a log or a recording: which turns go on from the one before, and what was kept.

A chat's next prompt holds the last one and its answer. A prompt that is longer than both by no more
than a few messages is taken for the next turn; that it really repeats them, only what the runtime
says of the match can show.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from twospeed.fits.phases import prompt_parts
from twospeed.records.request_record import RequestRecord, ServerSigns
from twospeed.records.run import Run

SHORTEST_TOKENS = 256
"""Losing less of a prompt is not noticed."""
GROWTH = 1.5
"""A next turn is at most so many times as long as what came before, ..."""
GROWTH_TOKENS = 1024
"""... or longer by no more than this."""
LOST_FRAC = 0.5
"""A turn that reused less of what could be reused lost its cache."""
FOREIGN_FRAC = 0.75
"""A request in between that is shorter than this share of the turn is another conversation."""

MOST_BETWEEN = 8
"""Requests that may lie between two turns of one conversation."""


class Turn(Struct, frozen=True, kw_only=True):
    """A request that goes on from an earlier one."""

    record: RequestRecord
    before: RequestRecord
    between: tuple[RequestRecord, ...]
    """Other requests that came between the two, in the same slot where slots are told."""
    prompt_tokens: int
    held_tokens: int
    """What the turn before left behind: its prompt and its answer."""
    cached_tokens: int

    @property
    def signs(self) -> ServerSigns:
        """What the runtime showed of it."""
        return self.record.signs or ServerSigns()

    @property
    def lost(self) -> bool:
        """Whether most of what was there before had to be read again."""
        reusable = min(self.held_tokens, self.prompt_tokens)
        return self.cached_tokens < LOST_FRAC * reusable

    @property
    def had_company(self) -> bool:
        """Whether another conversation came in between."""
        return any((_prompt(one) or 0) < FOREIGN_FRAC * self.prompt_tokens for one in self.between)


def turns_of(run: Run) -> list[Turn]:
    """Every request that can be taken for a next turn, in their order."""
    if run.facts.reports_cached_tokens is False:
        return []
    users = [r for r in run.records if r.step == "user" and r.error is None]
    found = []
    for index, record in enumerate(users):
        turn = _turn(record, users[max(index - MOST_BETWEEN - 1, 0) : index])
        if turn is not None:
            found.append(turn)
    return found


def lost_turns(run: Run) -> list[Turn]:
    """The turns that lost most of what could have been reused."""
    return [turn for turn in turns_of(run) if turn.lost]


def _turn(record: RequestRecord, earlier: Sequence[RequestRecord]) -> Turn | None:
    prompt, parts = _prompt(record), prompt_parts(record)
    if prompt is None or parts is None or prompt < SHORTEST_TOKENS:
        return None
    between: list[RequestRecord] = []
    for before in reversed(earlier):
        held = _held(before)
        if held is not None and _may_precede(held, prompt):
            return Turn(
                record=record,
                before=before,
                between=tuple(one for one in between if _same_slot(one, record)),
                prompt_tokens=prompt,
                held_tokens=held,
                cached_tokens=parts[1],
            )
        between.append(before)
    return None


def _may_precede(held: int, prompt: int) -> bool:
    """Whether a prompt can be the next turn of what held so many tokens."""
    grown = held <= prompt <= max(GROWTH * held, held + GROWTH_TOKENS)
    return grown and held >= SHORTEST_TOKENS


def _held(record: RequestRecord) -> int | None:
    prompt = _prompt(record)
    return None if prompt is None else prompt + (record.counts.output_tokens or 0)


def _prompt(record: RequestRecord) -> int | None:
    if record.counts.prompt_tokens is not None:
        return record.counts.prompt_tokens
    parts = prompt_parts(record)
    return sum(parts) if parts else None


def _same_slot(one: RequestRecord, other: RequestRecord) -> bool:
    slots = (one.signs.slot if one.signs else None, other.signs.slot if other.signs else None)
    return slots[0] == slots[1] or None in slots
