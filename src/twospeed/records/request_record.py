"""What one request did, by phase: the unit that every source yields.

Client and server numbers never share a field. Unknown is None, never 0. No record can hold itself,
so the garbage collector need not look at them (`gc=False`): it took a third of the time of a log.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Origin = Literal["server", "client", "fit", "header", "catalogue", "assumed"]
"""Where a number comes from.

server: the runtime said so. client: twospeed saw it (an arrival, or a probe on this machine).
fit: a curve fitted to either. header: a model file. catalogue: a published specification.
assumed: a stated default.
"""

TextKind = Literal["answer", "reasoning", "tool"]
Step = Literal["warmup", "curve", "reuse", "together", "bare", "user"]
"""The part of an experiment: "warmup" stays out of the fits, "reuse" asks about an earlier prompt,
"together" runs beside other requests of ours, "bare" leaves out the fields that the user adds to
each request; "user" is a request that someone else made."""
APART: frozenset[Step] = frozenset({"warmup", "together", "bare"})
"""Requests of ours that no request of the workload is like."""
Change = Literal[
    "same", "appended", "end_edited", "middle_edited", "start_edited", "other", "returned"
]
"""How a prompt differs from the earlier one that it asks about.

same: nothing. appended: a turn more. *_edited: a few words replaced there. other: an unrelated
conversation in between. returned: the earlier conversation goes on after the other one.
"""


Seconds = Annotated[float, Meta(ge=0, le=1e10)]
"""A duration or a moment after the clock started; a file with any other is refused."""
Tokens = Annotated[int, Meta(ge=0, le=2**40)]
"""Of one request or context: far above what any model takes."""


class Probe(Struct, frozen=True, kw_only=True, gc=False):
    """One request that an experiment wants measured."""

    step: Step
    prompt_tokens: Tokens
    """Wanted prompt length; the server's own count is what enters the record."""
    output_tokens: Tokens
    """Wanted answer length (upper bound)."""
    repeats: int | None = None
    """Number of the earlier request whose prompt is sent again, changed as `change` says.

    None for a new, unique prompt.
    """
    change: Change | None = None
    """None where `repeats` is; a repeat without a change is the same prompt."""


class TextArrival(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """One event that carried text, at the moment it arrived."""

    at_s: Seconds
    """Seconds after the clock of the request started."""
    kind: TextKind
    chars: int
    coalesced: bool
    """True when an earlier text event came in the same read: the stamp is an upper bound."""
    output_tokens: Tokens | None = None
    """Tokens generated up to this event, where the event itself tells."""


class TokenCounts(Struct, frozen=True, kw_only=True, gc=False):
    """How many tokens the request had, as told by the server."""

    prompt_tokens: Tokens | None = None
    """Whole prompt, cached part included."""
    cached_prompt_tokens: Tokens | None = None
    """Part of the prompt taken from the prompt cache; None where the runtime does not say."""
    output_tokens: Tokens | None = None
    """Generated tokens, reasoning included."""
    reasoning_tokens: Tokens | None = None
    """Part of the output that was hidden reasoning."""


class ClientTimes(Struct, frozen=True, kw_only=True, gc=False):
    """What this side saw, in seconds after the last request byte was handed over."""

    clock: Literal["user", "kernel"] = "user"
    """"kernel": receive stamps of the network stack; "user": read after the socket call."""
    connect_s: Seconds | None = None
    """Opening the connection, before the clock started; None on a reused one."""
    dns_s: Seconds | None = None
    """Part of connect_s: looking up the name; None for an address."""
    tcp_s: Seconds | None = None
    """Part of connect_s: connecting, attempts at other addresses of the name included."""
    tls_s: Seconds | None = None
    """Part of connect_s: agreeing on keys. What is left is a proxy opening a tunnel."""
    headers_s: Seconds | None = None
    ttft_s: Seconds | None = None
    """First non-empty answer, reasoning or tool text."""
    ttft_is_upper_bound: bool = False
    """True when the first read with text held several text events."""
    first_answer_s: Seconds | None = None
    """First non-empty answer or tool text, reasoning excluded."""
    last_text_s: Seconds | None = None
    finish_s: Seconds | None = None
    """Arrival of the event that said why generation ended."""
    end_s: Seconds | None = None
    """End of the response."""


class ServerTimes(Struct, frozen=True, kw_only=True, gc=False):
    """What the runtime said about its own phases. Rates are never kept, only counts and times."""

    told_by: str
    """Name of the object that told it, for example "timings" or "eval_duration"."""
    load_s: Seconds | None = None
    queue_s: Seconds | None = None
    prefill_s: Seconds | None = None
    prefill_tokens: Tokens | None = None
    """Tokens that prefill_s covers: the uncached part of the prompt."""
    decode_s: Seconds | None = None
    decode_steps: Tokens | None = None
    """Tokens that decode_s covers: output - 1 where the first token is counted into prefill."""
    total_s: Seconds | None = None


Frac = Annotated[float, Meta(ge=0, le=1)]


class DecodeWindow(Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """Decode over a few seconds of one answer, as a log tells while it runs."""

    output_tokens: Tokens
    """Generated up to the end of the window."""
    per_token_s: Seconds


class ServerSigns(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the runtime showed about one request beside its times; None where it did not."""

    slot: Tokens | None = None
    chosen_by: Literal["similarity", "lru"] | None = None
    """How the slot was chosen; "lru": none held a similar prompt."""
    similarity_frac: Frac | None = None
    """Part of the new prompt that the slot already held."""
    kept_frac: Frac | None = None
    """Part of what the slot held that stays."""
    matched_tokens: Tokens | None = None
    """Tokens of the new prompt that equal what the slot held, counted from the start."""
    held_tokens: Tokens | None = None
    """Tokens that the slot held before."""
    cannot_rewind: bool | None = None
    """True where the runtime said that its state cannot be cut back."""
    context_cut: bool | None = None
    """True where the prompt was truncated, or the context shifted."""
    prefill_step_tokens: Tokens | None = None
    """Prompt tokens of the largest step of prefill; one that ends early tells no batch."""
    drafted_tokens: Tokens | None = None
    accepted_tokens: Tokens | None = None
    """Of the drafted tokens."""
    sampling_s: Seconds | None = None
    """Choosing tokens, apart from computing them."""
    disturbed_s: Seconds | None = None
    """Seconds of its decode in which other requests had their prompts read."""
    preempted: bool | None = None
    decode_windows: tuple[DecodeWindow, ...] = ()


class RequestError(Struct, frozen=True, kw_only=True, gc=False):
    """Why a request failed; what had arrived until then is still in the record."""

    kind: str
    message: str
    http_status: int | None = None


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One request, by phase."""

    number: int
    """Counts from 1 within a run; other records refer to it."""
    step: Step = "user"
    probe: Probe | None = None
    started_at: str | None = None
    """UTC, ISO 8601."""
    dialect: str | None = None
    model: str | None = None
    counts: TokenCounts = TokenCounts()
    client: ClientTimes = ClientTimes()
    server: ServerTimes | None = None
    signs: ServerSigns | None = None
    arrivals: tuple[TextArrival, ...] = ()
    finish_reason: str | None = None
    repeats: int | None = None
    """Number of the earlier request whose prompt this one asks about (see `change`)."""
    change: Change | None = None
    """How the prompt differs from that one; None for the very same."""
    retries: int = 0
    """Times that a dead keep-alive connection was replaced and the clock restarted."""
    redirects: int = 0
    """Redirects within the same endpoint that were followed, the clock restarted at each."""
    other_requests: int | None = None
    """Most other requests seen inside the server meanwhile; None when it does not show."""
    error: RequestError | None = None
    line: int | None = None
    """First line of the log that this was read from."""
