"""What a command is, and how the commands are found.

Every module directly in this room is a command and has a `COMMAND`; what commands share lies in the
packages beside them. Nothing heavy is imported before `run`.
"""

from __future__ import annotations

import importlib
import pkgutil
from argparse import ArgumentParser, Namespace
from typing import Protocol

import twospeed.cli as room


class Command(Protocol):
    """One word of the command line."""

    name: str
    summary: str

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare options, with an epilogue of real examples."""

    def run(self, args: Namespace) -> int:
        """Do it and return the exit status (README, Exit status)."""


def all_commands() -> tuple[Command, ...]:
    """Every command of the room, by name."""
    modules = (
        importlib.import_module(f"{room.__name__}.{found.name}")
        for found in pkgutil.iter_modules(room.__path__)
        if not found.ispkg and found.name not in {"main", "command"}
    )
    return tuple(sorted((module.COMMAND for module in modules), key=lambda command: command.name))
