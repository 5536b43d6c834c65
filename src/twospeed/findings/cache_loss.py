"""Which kind of lost prompt cache the evidence supports, most certain first."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from twospeed.findings.finding import Cause, Certainty, Evidence
from twospeed.findings.turns import Turn
from twospeed.fits.phases import prompt_parts
from twospeed.records.request_record import RequestRecord, ServerSigns
from twospeed.records.run import Run

MATCHED_FRAC = 0.8
"""A match with so much of what was held means that the text did not change."""
HARDLY = 0.2
"""Reuse of less than this share of a match is none."""
ALL_KEPT = 0.9995
"""What llama-server prints as 1.000."""
UNLIKE = 0.2
"""A prompt of which less was held is another text."""
CONSTANT_TOKENS = 16
"""Two matches that differ by no more end at the same place."""
FULL_FRAC = 0.97
"""A context of which so much is used cuts the next prompt."""
MOSTLY = 0.5
FEWEST_TURNS = 3
"""Fewer prompts that grow by chance are no conversation."""
TEMPLATE_TOKENS = 32
"""A chat template alone matches as much as this between unrelated prompts."""

Loss = tuple[Cause, Certainty, tuple[Evidence, ...]]


def loss_kind(run: Run, lost: Sequence[Turn]) -> Loss | None:
    """The kind of loss that these turns show; None where they may be prompts of no conversation."""
    return (
        _asked_for_none(lost)
        or _cannot_rewind(run, lost)
        or _switched_off(run)
        or _evicted(lost)
        or _prefix_changed(run, lost)
        or _never_reused(lost)
    )


def overflow(run: Run) -> Loss | None:
    """Prompts that the context does not hold: cut by the runtime, or as long as the context."""
    records = [r for r in run.records if r.step == "user" and r.error is None]
    if not records:
        return None
    cut = [record for record in records if record.signs and record.signs.context_cut]
    if len(cut) >= MOSTLY * len(records):
        told = Evidence(what="requests whose context was cut", value=len(cut), origin="server")
        return "prompt_cache.context_overflow", "reported", (told,)
    full = [record for record in records if _fills(record, run.facts.n_ctx)]
    if len(full) < 2 or len(full) < MOSTLY * len(records) or any(map(_reused, full[1:])):
        return None
    size = Evidence(what="context", value=run.facts.n_ctx, unit="tok", origin="server")
    seen = Evidence(what="requests that filled it", value=len(full), origin="server")
    return "prompt_cache.context_overflow", "inferred", (size, seen)


def _fills(record: RequestRecord, n_ctx: int | None) -> bool:
    counts = record.counts
    if not n_ctx or counts.prompt_tokens is None:
        return False
    return counts.prompt_tokens + (counts.output_tokens or 0) >= FULL_FRAC * n_ctx


def _reused(record: RequestRecord) -> bool:
    parts = prompt_parts(record)
    return parts is not None and parts[1] > MOSTLY * sum(parts)


def _cannot_rewind(run: Run, lost: Sequence[Turn]) -> Loss | None:
    if any(turn.signs.cannot_rewind for turn in lost):
        said = Evidence(what="the state cannot be cut back", value=True, origin="server")
        return "prompt_cache.cannot_rewind", "reported", (said,)
    matched = [turn for turn in lost if _matched_in_vain(turn)]
    if matched:
        # A share of the prompt alone would look the same with reuse switched off by the request.
        counted = matched[-1].signs.matched_tokens is not None
        certainty: Certainty = "inferred" if counted else "possible"
        return "prompt_cache.cannot_rewind", certainty, _of_match(matched[-1])
    if run.header is not None and run.header.sliding_window:
        window = Evidence(
            what="sliding window", value=run.header.sliding_window, unit="tok", origin="header"
        )
        return "prompt_cache.cannot_rewind", "possible", (window,)
    return None


def _asked_for_none(lost: Sequence[Turn]) -> Loss | None:
    """The slot could have kept all that it held, so that nothing had to be cut back, and used none.

    What is left is a request that asks for no reuse.
    """
    kept = [turn for turn in lost if _all_was_kept(turn) and _matched_in_vain(turn)]
    if len(kept) < MOSTLY * len(lost) or any(turn.signs.cannot_rewind for turn in lost):
        return None
    turn = kept[-1]
    held = turn.signs.held_tokens or turn.held_tokens
    # Three decimals are printed: of a long text a few tokens may be cut back unseen.
    certainty: Certainty = "inferred" if held * (1.0 - ALL_KEPT) < 1.0 else "possible"
    return (
        "prompt_cache.disabled",
        certainty,
        (
            Evidence(what="part of the slot that could stay", value=1.0, origin="server"),
            Evidence(what="tokens held before", value=held, unit="tok", origin="server"),
            Evidence(what="tokens reused", value=turn.cached_tokens, unit="tok", origin="server"),
        ),
    )


def _all_was_kept(turn: Turn) -> bool:
    """Whether the prompt only goes on from what the slot held."""
    kept, share = turn.signs.kept_frac, turn.signs.similarity_frac
    return kept is not None and kept >= ALL_KEPT and share is not None and share < 1.0


def _matched_in_vain(turn: Turn) -> bool:
    """Most of the prompt was there, by its count or by its share, and next to nothing was used."""
    matched, share = turn.signs.matched_tokens, turn.signs.similarity_frac
    if matched is None and share is not None:
        matched = int(share * turn.prompt_tokens)
    held = turn.signs.held_tokens or turn.held_tokens
    if matched is None or matched < MATCHED_FRAC * held:
        return False
    return turn.cached_tokens < HARDLY * matched


def _of_match(turn: Turn) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(what=what, value=value, unit="tok", origin="server")
        for what, value in (
            ("tokens that matched", turn.signs.matched_tokens),
            ("tokens held before", turn.signs.held_tokens or turn.held_tokens),
        )
        if value is not None
    )


def _switched_off(run: Run) -> Loss | None:
    if run.facts.prefix_cache_enabled is not False:
        return None
    off = Evidence(what="prompt cache switched on", value=False, origin="server")
    return "prompt_cache.disabled", "reported", (off,)


def _evicted(lost: Sequence[Turn]) -> Loss | None:
    """Another conversation came in between, in most of the turns that lost."""
    company = [turn for turn in lost if turn.had_company]
    if len(company) < MOSTLY * len(lost) or any(_is_partial(turn) for turn in company):
        return None
    other = company[-1].between[-1].counts.prompt_tokens
    seen = Evidence(what="another prompt in between", value=other, unit="tok", origin="server")
    return "prompt_cache.evicted", "inferred", (seen,)


def _prefix_changed(run: Run, lost: Sequence[Turn]) -> Loss | None:
    """The match ends early: at the same place again and again, or somewhere before half."""
    ends = [turn.signs.matched_tokens or turn.cached_tokens for turn in lost]
    partial = [turn for turn in lost if _is_partial(turn)]
    if partial:
        constant = len(ends) > 1 and max(ends) - min(ends) <= CONSTANT_TOKENS
        at = Evidence(
            what="reuse ends at",
            value=median(ends),
            unit="tok",
            origin="server",
        )
        same = Evidence(what="the same place in every turn", value=constant, origin="server")
        return "prompt_cache.prefix_changed", "inferred" if constant else "possible", (at, same)
    unlike = [turn for turn in lost if _is_unlike(turn.signs)]
    if unlike:
        share = unlike[-1].signs.similarity_frac
        seen = Evidence(what="part of the prompt that was held", value=share, origin="server")
        return "prompt_cache.prefix_changed", "possible", (seen,)
    little = [turn.cached_tokens for turn in lost if turn.cached_tokens > 0]
    if little:
        at = Evidence(what="reuse ends at", value=median(little), unit="tok", origin="server")
        return "prompt_cache.prefix_changed", "possible", (at,)
    kept = sum(map(_reused, run.records))
    if kept:
        seen = Evidence(what="other requests that were reused", value=kept, origin="server")
        return "prompt_cache.prefix_changed", "possible", (seen,)
    return None


def _is_partial(turn: Turn) -> bool:
    return turn.cached_tokens > TEMPLATE_TOKENS


def _is_unlike(signs: ServerSigns) -> bool:
    return (signs.similarity_frac is not None and signs.similarity_frac < UNLIKE) or (
        signs.matched_tokens is not None
        and signs.held_tokens is not None
        and signs.matched_tokens < UNLIKE * signs.held_tokens
        and signs.matched_tokens > 0
    )


def _never_reused(lost: Sequence[Turn]) -> Loss | None:
    """Nothing in any turn, although the slot still held the text, or again and again."""
    told = [turn for turn in lost if turn.signs.held_tokens and _says_no_more(turn.signs)]
    if not told and len(lost) < FEWEST_TURNS:
        return None
    seen = Evidence(what="turns of which nothing was reused", value=len(lost), origin="server")
    return "prompt_cache.disabled", "possible", (seen,)


def _says_no_more(signs: ServerSigns) -> bool:
    """Whether it is open how much of the prompt was held."""
    return not signs.matched_tokens and signs.similarity_frac is None
