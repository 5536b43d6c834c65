"""Which configurations a command line wants compared."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twospeed.cli.terminal.request_fields import parts_of, request_fields
from twospeed.records.errors import UsageError
from twospeed.report.verdict import ArmKind

CACHE_FIELDS = frozenset({"cache_prompt"})
"""Request fields that only matter for a prompt that is known in part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSpec:
    """One configuration as it was asked for."""

    kind: ArmKind
    name: str
    url: str | None = None
    engine: tuple[str, ...] | None = None
    """FLAG=VALUE settings; None where it is no embedded engine."""
    command: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Request fields that it sends."""

    @property
    def launched(self) -> bool:
        """Whether twospeed starts and stops it."""
        return self.url is None


def arms_of(args: Namespace) -> list[ArmSpec]:
    """The arms of a command line: two, or one beside --before.

    Raises:
        UsageError: too few, too many, or options that exclude each other.
    """
    refuse_contradictions(args)
    if args.requests:
        return request_arms(args)
    arms = [ArmSpec(kind="url", name=url, url=url) for url in args.urls]
    engines = [*args.engine, *([""] if args.embedded and not args.engine else [])]
    arms += [
        ArmSpec(kind="engine", name=f"engine {text}".strip(), engine=parts_of(text))
        for text in engines
    ]
    arms += [ArmSpec(kind="command", name=line, command=line) for line in args.commands]
    wanted = 1 if args.before is not None else 2
    if len(arms) != wanted:
        raise UsageError(
            f"{'--before needs one arm' if wanted == 1 else 'verify needs two arms'}, "
            f"and {len(arms)} were given.",
            hint="An arm is a URL, --engine SETTINGS or --command LINE.",
        )
    return arms


def refuse_contradictions(args: Namespace) -> None:
    """Refuse options that cannot be meant together.

    Raises:
        UsageError: names them.
    """
    if args.cure is not None and args.before is None:
        raise UsageError(
            "--cure needs --before FILE: the diagnosis that predicted it.",
            hint="Keep one next time: twospeed diagnose URL --save before.jsonl.",
        )
    if args.before is not None and args.from_file is not None:
        raise UsageError("--before brings its own workload: leave --from out.")
    if args.before is not None and args.requests:
        raise UsageError("--before and --request exclude each other.")


def refuse_arms(args: Namespace) -> None:
    """The ledger is shown, not written, by --ledger.

    Raises:
        UsageError: something to compare was named beside it.
    """
    named = [*args.urls, *args.engine, *args.commands, *args.requests]
    if named or args.embedded or args.before is not None:
        raise UsageError(
            "--ledger shows the outcomes so far and measures nothing: leave the arms out.",
            hint="An outcome is kept by --before FILE with --cure NAME.",
        )


def request_arms(args: Namespace) -> list[ArmSpec]:
    """One endpoint asked in two ways.

    Raises:
        UsageError: not one URL and two --request.
    """
    others = [*args.engine, *args.commands, *([1] if args.embedded else [])]
    if len(args.urls) != 1 or others or len(args.requests) != 2:
        raise UsageError(
            "--request compares two ways of asking one endpoint: give one URL and --request twice."
        )
    return [
        ArmSpec(
            kind="request", name=f"request {text}", url=args.urls[0], fields=request_fields(text)
        )
        for text in args.requests
    ]


def compares_reuse(arms: Sequence[ArmSpec]) -> bool:
    """Whether the arms differ in a field that only matters for a prompt that is known in part."""
    first, second = (dict(arm.fields) for arm in (arms[0], arms[-1]))
    return any(first.get(name) != second.get(name) for name in CACHE_FIELDS)
