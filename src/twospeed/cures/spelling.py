"""The exact change for the user's own runtime, in the spelling that travels with the run."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise

import msgspec
from msgspec import Struct

from twospeed.cures.cure import CureName
from twospeed.records.run import Run, Setting

LONGEST_VALUE = 24
"""Longer words of a command line are no value of a setting."""


class Tried(Struct, frozen=True, kw_only=True):
    """One setting with its value before and after: what a comparison of the two would set."""

    setting: str
    """Shared name (see `records.run.Setting`)."""
    old: str | None
    """None where the present value is not known."""
    new: str
    beside: tuple[str, ...] = ()
    """Settings that change with it in the same way."""


def change_line(run: Run, name: str, value: str = "", *, otherwise: str) -> str:
    """How to change one setting.

    Args:
        run: for the spelling, and for the command line that holds the present value.
        name: shared name of the setting.
        value: new value; empty for a switch.
        otherwise: what to say where the runtime has no known spelling.
    """
    setting = run.settings.get(name, Setting())
    request = None if setting.request is None else spelled(setting.request, value)
    if setting.flag is None:
        in_environment = None if setting.env is None else f"set {spelled(setting.env, value)}"
        in_request = None if request is None else f"send {request}"
        return " or ".join(part for part in (in_environment, in_request) if part) or otherwise
    flag = spelled(setting.flag, value)
    if run.source.kind == "engine" and flag.startswith("--"):
        return f"run with {engine_option(flag)}"
    if not flag.startswith("-"):
        return f"run `{flag}`"
    present = present_flag(run, setting)
    if present is not None:
        return f"change {present} to {flag}"
    env = None if setting.env is None else spelled(setting.env, value)
    return f"start with {flag}" if env is None else f"start with {flag} (or {env})"


def request_line(run: Run, name: str, value: str = "", *, otherwise: str) -> str:
    """How to change one setting with each request, where the runtime allows it; else by flag."""
    request = run.settings.get(name, Setting()).request
    if request is not None:
        return f"send {spelled(request, value)}"
    return change_line(run, name, value, otherwise=otherwise)


def context_lines(run: Run, tokens: int, otherwise: str) -> tuple[str, ...]:
    """How to give each slot a context of so many tokens."""
    line = change_line(run, "n_ctx", str(tokens), otherwise=otherwise)
    if (run.facts.slots or 1) < 2:
        return (line,)
    return (line, f"that much for each of the {run.facts.slots} slots, where they share it out")


def spelled(template: str, value: str) -> str:
    """A spelling with its value; requests hold other braces, so this is no format string."""
    return template.replace("{value}", value)


def present_flag(run: Run, setting: Setting) -> str | None:
    """The flag with its value as the server's command line holds it; None where it does not."""
    server = None if run.machine is None else run.machine.server
    if server is None or setting.flag is None:
        return None
    names = (setting.flag.split()[0], *setting.also)
    takes_value = "{value}" in setting.flag or " " in setting.flag
    for word, following in pairwise((*server.command, "")):
        if word in names:
            return f"{word} {_short(following)}".strip() if takes_value else word
        if word.partition("=")[0] in names:
            return _short(word)
    return None


def present_value(run: Run, name: str) -> str | None:
    """The value that the server's command line gives to a setting; None where it gives none."""
    setting = run.settings.get(name)
    present = None if setting is None else present_flag(run, setting)
    value = "" if present is None else re.split(r"[ =]", present, maxsplit=1)[-1]
    return value if value and not value.startswith("-") else None


def engine_option(flag: str) -> str:
    """A flag of llama-server as an option of the embedded engine."""
    name, _, value = flag.removeprefix("--").partition(" ")
    return f"--engine {name}={value or 'on'}"


def verify_line(run: Run, cure: CureName, tried: Tried | None = None) -> str:
    """The command that checks a prediction: by pairs where it can set both values itself.

    Args:
        run: what was diagnosed.
        cure: the change.
        tried: the setting that it changes, if it is one.
    """
    return _by_pairs(run, tried) or _against_before(run, cure)


def _by_pairs(run: Run, tried: Tried | None) -> str | None:
    setting = None if tried is None else run.settings.get(tried.setting)
    if tried is None or setting is None or tried.old is None:
        return None
    if run.source.kind == "engine":
        return _engine_pair(run, tried)
    if run.source.kind in ("live", "simulated") and setting.request is not None:
        both = [_request_field(setting.request, value) for value in (tried.old, tried.new)]
        if None not in both:
            fields = " ".join(f"--request {shlex.quote(str(field))}" for field in both)
            return f"twospeed verify {_where(run)} {fields}"
    return None


def _engine_pair(run: Run, tried: Tried) -> str | None:
    flags = [
        run.settings.get(name, Setting()).flag or "" for name in (tried.setting, *tried.beside)
    ]
    if not all(flag.startswith("--") for flag in flags):
        return None
    names = [flag.removeprefix("--").split()[0] for flag in flags]
    arms = (",".join(f"{name}={value}" for name in names) for value in (tried.old, tried.new))
    return " ".join(["twospeed verify --embedded", *(f"--engine {shlex.quote(a)}" for a in arms)])


def _request_field(template: str, value: str) -> str | None:
    """`FIELD=VALUE` of a member of a request; None where it is nested."""
    try:
        members = msgspec.json.decode("{" + spelled(template, value) + "}")
    except msgspec.DecodeError:
        return None
    ((name, told),) = members.items()
    if isinstance(told, dict):
        return None
    # A switch is spelled in one direction; its other one is the value that is asked for.
    return f"{name}={value if '{value}' not in template else msgspec.json.encode(told).decode()}"


def _against_before(run: Run, cure: CureName) -> str:
    arm = "--embedded" if run.source.kind == "engine" else _where(run)
    return f"twospeed verify --before before.jsonl {arm} --cure {shlex.quote(cure)}"


def _where(run: Run) -> str:
    if run.source.kind not in ("live", "simulated"):
        return "URL"
    return shlex.quote(re.sub(r"[^\x21-\x7e]", "", run.source.where)) or "URL"


def _short(word: str) -> str:
    """A word of a command line, safe to show."""
    return "".join(letter for letter in word if letter.isprintable())[:LONGEST_VALUE]
