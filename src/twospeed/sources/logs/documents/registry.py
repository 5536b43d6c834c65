"""All document formats of this package: a module with `recognises` and `read` is one.

Adding a format is adding a file. A text may hold several documents of several formats; what they
tell is joined in the order of the modules' names.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, cast

from twospeed.sources.logs import documents
from twospeed.sources.logs.content import Content
from twospeed.sources.logs.documents.plain_text import cleaned


class DocumentFormat(Protocol):
    """What a module of this package offers to be found."""

    def recognises(self, text: str) -> bool:
        """Whether words of the format occur; cheap, and no promise that there is anything."""

    def read(self, text: str) -> Content | None:
        """What the text tells in this format; None when nothing."""


@cache
def formats() -> tuple[DocumentFormat, ...]:
    """Every format, by name of its module."""
    names = [f"{documents.__name__}.{module.name}" for module in iter_modules(documents.__path__)]
    modules = [import_module(name) for name in sorted(names)]
    return tuple(
        cast("DocumentFormat", one)
        for one in modules
        if hasattr(one, "recognises") and hasattr(one, "read")
    )


def read_document(text: str) -> Content | None:
    """What all documents in a text tell; None when there is none.

    Args:
        text: a whole paste or file. Quote marks, code fences, colours, CRLF and prose around the
            documents may still be there.
    """
    plain = cleaned(text)
    told = [one.read(plain) for one in formats() if one.recognises(plain)]
    found = [content for content in told if content is not None]
    if not found:
        return None
    whole = found[0]
    for more in found[1:]:
        whole.join(more)
    return whole
