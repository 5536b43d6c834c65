"""Settings of the embedded engine: from the command line, with defaults, into llama.cpp.

The parent checks values without loading llama.cpp; the child applies them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from twospeed.records.errors import UsageError
from twospeed.sources.engine.setting_values import Choice, Value, switch
from twospeed.sources.engine.settings_table import ALIASES, SETTINGS, Setting
from twospeed.sources.machine.cores import usable_cores

Settings = dict[str, Value]
"""Flag without dashes → value."""

# Two flags of older builds that later ones merged into load-mode.
MEMORY_FLAGS = ("mmap", "mlock")
LOAD_MODES = {
    (True, True): "mmap+mlock",
    (True, False): "mmap",
    (False, True): "mlock",
    (False, False): "none",
}

DEFAULT_CONTEXT_TOKENS = 4096
# llama-server would take up to 8 GiB for prompts of other conversations.
DEFAULT_CACHE_RAM_MIB = 256


def parse_settings(pairs: Iterable[str]) -> Settings:
    """What the user asked for, checked: `threads=2`, `--flash-attn=on`, `no-warmup`.

    Args:
        pairs: FLAG=VALUE texts, flags with or without dashes; a flag alone switches on, and
            `no-` before it off. The last one wins.

    Raises:
        UsageError: unknown flag (close ones are named) or a value that cannot be.
    """
    settings: Settings = {}
    memory: dict[str, bool] = {}
    for pair in pairs:
        flag, value = _parse_one(pair)
        if flag in MEMORY_FLAGS:
            memory[flag] = bool(value)
        else:
            settings[flag] = value
    if memory:
        settings["load-mode"] = LOAD_MODES[memory.get("mmap", False), memory.get("mlock", False)]
    return settings


def _parse_one(pair: str) -> tuple[str, Value]:
    written, has_value, text = pair.partition("=")
    flag, negated = _resolve(written.strip())
    read = switch if flag in MEMORY_FLAGS else SETTINGS[flag].read
    if not has_value and read is not switch:
        raise UsageError(f"--engine {pair}: this setting needs a value (--engine {pair}=VALUE).")
    try:
        value = read(text.strip() if has_value else "on")
    except ValueError as error:
        raise UsageError(f"--engine {pair}: expected {error}.") from error
    return flag, not value if negated else value


def _resolve(written: str) -> tuple[str, bool]:
    """The flag that was meant, and whether it was written with no- before it."""
    name = written.lstrip("-").lower().replace("_", "-")
    name = ALIASES.get(name, name)
    if name in SETTINGS or name in MEMORY_FLAGS:
        return name, False
    positive = name.removeprefix("no-")
    if positive != name and positive in _switches():
        return positive, True
    close = difflib.get_close_matches(name, [*SETTINGS, *MEMORY_FLAGS], n=3)
    raise UsageError(
        f"--engine {written}: the embedded engine has no such setting.",
        hint=f"Did you mean {' or '.join(close)}?" if close else "Known: " + ", ".join(SETTINGS),
    )


def _switches() -> set[str]:
    return {flag for flag, each in SETTINGS.items() if each.read is switch} | {*MEMORY_FLAGS}


def with_defaults(asked: Mapping[str, Value], model: Path) -> Settings:
    """All settings that the engine is started with, in the order of the table.

    Args:
        asked: what the user asked for.
        model: model file that is used unless the user named one.
    """
    threads = asked.get("threads", usable_cores())
    path = str(asked.get("model", model))
    settings: Settings = {
        "model": path,
        "alias": Path(path).stem,
        "threads": threads,
        "threads-batch": threads,
        "ctx-size": DEFAULT_CONTEXT_TOKENS,
        "parallel": 1,
        "cache-ram": DEFAULT_CACHE_RAM_MIB,
        "metrics": True,
        "slots": True,
        **_draft_defaults(asked, threads),
        **asked,
    }
    return {flag: settings[flag] for flag in SETTINGS if flag in settings}


def _draft_defaults(asked: Mapping[str, Value], threads: Value) -> Settings:
    """llama.cpp drafts only when told by which method, and with all threads of the machine."""
    if "model-draft" not in asked:
        return {}
    return {
        "spec-type": "draft-simple",
        "threads-draft": threads,
        "threads-batch-draft": threads,
    }


def describe(settings: Mapping[str, Value]) -> list[tuple[str, str]]:
    """Flag and value of every setting, as they would be written for llama-server."""
    return [(flag, _written(settings[flag])) for flag in SETTINGS if flag in settings]


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(f"{each:g}" for each in value)
    return str(value)


def apply(settings: Mapping[str, Value], params: object, xllamacpp: ModuleType) -> None:
    """Set the attributes of xllamacpp.CommonParams; only the child process calls this.

    Args:
        settings: as `with_defaults` returns them.
        params: an xllamacpp.CommonParams.
        xllamacpp: the module, which holds the enums.
    """
    for flag, value in settings.items():
        setting = SETTINGS[flag]
        *path, name = setting.attribute.split(".")
        target = params
        for step in path:
            target = getattr(target, step)
        setattr(target, name, _native(setting, value, xllamacpp))


def _native(setting: Setting, value: Value, xllamacpp: ModuleType) -> object:
    """The value as xllamacpp wants it."""
    if isinstance(setting.read, Choice):
        enum = getattr(xllamacpp, setting.read.enum)
        member = enum[setting.read.members[str(value)]]
        return [member] if setting.read.listed else member
    if setting.inverted:
        return not value
    if setting.wrapped:
        return [value]
    if setting.padded_to and isinstance(value, Sequence):
        return [*value, *[0.0] * (setting.padded_to - len(value))]
    return value
