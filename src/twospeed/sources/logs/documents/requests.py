"""Requests out of answers: one record for each, however often a stream or a paste repeats it."""

from __future__ import annotations

from collections.abc import Hashable

from msgspec.structs import replace

from twospeed.records.request_record import RequestRecord


class Requests:
    """Records by what tells requests apart; a later one of the same request replaces the first."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, RequestRecord] = {}

    def add(self, record: RequestRecord, *, key: Hashable | None = None) -> None:
        """Take up a record.

        Args:
            record: of one request; its number is given here.
            key: equal for the same request; None where nothing tells them apart.
        """
        self._by_key[("unnamed", len(self._by_key)) if key is None else key] = record

    @property
    def records(self) -> list[RequestRecord]:
        """All requests in the order in which they appeared first."""
        return [
            replace(record, number=number)
            for number, record in enumerate(self._by_key.values(), start=1)
        ]


def common(values: list[str | None]) -> str | None:
    """The one value that all known ones share; None where they differ or none is known."""
    known = {value for value in values if value}
    return known.pop() if len(known) == 1 else None
