"""What answers at an endpoint: the cheap questions, and what their answers say together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from twospeed.records.errors import (
    ConnectFailed,
    EndpointError,
    HttpRefused,
    ProtocolBroken,
    TimedOut,
    UsageError,
)
from twospeed.runtimes.registry import all_runtimes, identify_asks, recognise, runtime_by_id
from twospeed.runtimes.runtime import Answer, Answers, Ask, Runtime
from twospeed.sources.live.channel import Channel
from twospeed.sources.live.failures import LOADING, status_hint
from twospeed.sources.live.target import Target
from twospeed.sources.live.time_limits import Limits

LOADING_PAUSE_S = 0.25
NOT_FOR_TEXT = re.compile(
    r"embed|rerank|\bbge\b|\bbge-|\be5-|\bgte-|minilm|whisper|\bclip\b|\btts\b", re.IGNORECASE
)

OnLoading = Callable[[float], None]
"""Told while a server loads its model: seconds waited so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What answers at an endpoint."""

    runtime: Runtime
    answers: dict[str, Answer]
    loading_s: float | None
    """Seconds that the server spent loading while we waited; None when it was ready."""


def named_runtime(runtime_id: str) -> Runtime:
    """The runtime that the user named.

    Raises:
        UsageError: there is none of that name.
    """
    runtime = runtime_by_id(runtime_id)
    if runtime is None:
        known = ", ".join(runtime.id for runtime in all_runtimes())
        raise UsageError(f"No runtime is called {runtime_id!r}.", hint=f"Use one of: {known}.")
    return runtime


async def ask_all(
    channel: Channel, asks: Iterable[Ask], *, each_s: float = 2.0, all_s: float = 6.0
) -> dict[str, Answer]:
    """Put the questions one after the other over one connection.

    One connection, because some servers keep a worker thread busy for each idle one. A question
    that times out is left unanswered.

    Args:
        channel: way to the endpoint.
        asks: questions; a path asked twice is asked once.
        each_s: seconds for one question.
        all_s: seconds after which the rest stays unanswered.

    Raises:
        EndpointError: no question got an answer; the first failure says why.
    """
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + all_s
    answers: dict[str, Answer] = {}
    first_failure: EndpointError | None = None
    for ask in asks:
        left_s = ends_s - loop.time()
        if ask.path in answers or left_s <= 0:
            continue
        answer, failure = await channel.ask(ask, Limits.short(min(each_s, left_s)))
        if failure is not None and _is_hopeless(failure, answers):
            raise failure
        first_failure = first_failure or failure
        answers[ask.path] = answer
    if first_failure is not None and all(answer.status is None for answer in answers.values()):
        raise first_failure
    return answers


async def identify(
    channel: Channel,
    *,
    runtime: Runtime | None = None,
    load_wait_s: float = 300.0,
    on_loading: OnLoading | None = None,
) -> Identity:
    """Find out which runtime answers, waiting while it loads its model.

    Args:
        channel: way to the endpoint.
        runtime: what the user says it is; None to recognise it.
        load_wait_s: longest wait for a server that is loading, in seconds.
        on_loading: told about that wait.

    Raises:
        EndpointError: nothing usable answers; the message says what does.
    """
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    asks = identify_asks() if runtime is None else runtime.identify
    loading_s: float | None = None
    while True:
        answers = await ask_all(channel, asks)
        waiting = [path for path, answer in answers.items() if is_loading(answer)]
        if not waiting:
            break
        await _until_loaded(channel, _ask_of(asks, waiting[0]), started_s, load_wait_s, on_loading)
        loading_s = loop.time() - started_s
    refuse_what_is_no_runtime(channel.access.target, answers)
    return Identity(runtime=runtime or recognise(answers), answers=answers, loading_s=loading_s)


async def _until_loaded(
    channel: Channel,
    ask: Ask,
    started_s: float,
    load_wait_s: float,
    on_loading: OnLoading | None,
) -> None:
    """Ask again and again until the server no longer says that it is loading."""
    loop = asyncio.get_running_loop()
    while True:
        waited_s = loop.time() - started_s
        if waited_s > load_wait_s:
            raise TimedOut(
                f"{channel.access.target.url} was still loading its model after {waited_s:.0f} s.",
                hint="Wait until it is ready, then start again.",
                http_status=503,
            )
        if on_loading is not None:
            on_loading(waited_s)
        await asyncio.sleep(LOADING_PAUSE_S)
        answer, failure = await channel.ask(ask, Limits.short(2.0))
        if isinstance(failure, ConnectFailed):
            raise failure
        if answer.status is not None and not is_loading(answer):
            return


def is_loading(answer: Answer) -> bool:
    """Whether a server says that its model is not ready yet."""
    return answer.status == 503 and bool(
        LOADING.search(answer.body[:2000].decode("utf-8", "replace"))
    )


def refuse_what_is_no_runtime(target: Target, answers: Answers) -> None:
    """Say clearly what answers when it is not a model server.

    Raises:
        HttpRefused: every question needs a key.
        ProtocolBroken: a web page, or something that speaks no JSON at all.
    """
    heard = [answer for answer in answers.values() if answer.status is not None]
    if any(answer.status == 200 and answer.json is not None for answer in heard):
        return
    denied = [answer.status for answer in heard if answer.status in {401, 403}]
    if denied:
        raise HttpRefused(
            f"{target.url} refuses access (HTTP {denied[0]}).",
            hint=status_hint(denied[0]),
            http_status=denied[0],
        )
    check = "Check host and port: model servers answer in JSON, for example at /v1/models."
    if any(is_html(answer) for answer in heard):
        raise ProtocolBroken(f"{target.url} answers with web pages, not with an API.", hint=check)
    statuses = ", ".join(sorted({str(answer.status) for answer in heard}))
    raise ProtocolBroken(
        f"{target.url} speaks HTTP but answers like no model server (status {statuses}).",
        hint=check,
    )


def is_html(answer: Answer) -> bool:
    """Whether an answer is a web page."""
    kind = answer.headers.get("content-type", "")
    return "html" in kind or answer.body[:200].lstrip().lower().startswith((b"<!doctype", b"<html"))


def chosen_model(target: Target, wanted: str | None, models: Sequence[str]) -> str | None:
    """The model to measure: the wanted one as the server spells it, else the first for text.

    Args:
        target: the endpoint, for the message.
        wanted: what the user named: full name, name without tag, or file name; None for no wish.
        models: what the server lists, loaded ones first.

    Returns:
        A name, or None when the server lists none and the user named none.

    Raises:
        EndpointError: the wanted model is not in the list.
    """
    if wanted is None:
        writers = [model for model in models if not NOT_FOR_TEXT.search(model)]
        return next(iter([*writers, *models]), None)
    if not models or wanted in models:
        return wanted
    alike = [model for model in models if _short(model) == _short(wanted)]
    if len(alike) == 1:
        return alike[0]
    raise EndpointError(
        f"{target.url} has no model {wanted!r}.",
        hint=f"Pass one of these to --model: {', '.join(models)}.",
        http_status=404,
    )


def _short(model: str) -> str:
    """Name without directories, file ending and default tag."""
    return (
        model.replace("\\", "/")
        .rpartition("/")[2]
        .lower()
        .removesuffix(":latest")
        .removesuffix(".gguf")
    )


def _ask_of(asks: Iterable[Ask], path: str) -> Ask:
    return next(ask for ask in asks if ask.path == path)


def _is_hopeless(failure: EndpointError, answers: Answers) -> bool:
    """Whether the questions that are left would only fail in the same way."""
    if isinstance(failure, TimedOut):
        return not answers
    return isinstance(failure, ConnectFailed | ProtocolBroken)
