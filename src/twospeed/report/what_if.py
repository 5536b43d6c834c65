"""What a user asks beyond the run: scenarios, and a machine elsewhere."""

from __future__ import annotations

from msgspec import Struct

from twospeed.cures.elsewhere import Remote
from twospeed.cures.scenario import Priced, Scenario, price, price_now
from twospeed.findings.observed import Observed


class Asked(Struct, frozen=True, kw_only=True):
    """Questions of the command line."""

    scenarios: tuple[Scenario, ...] = ()
    remote: Remote | None = None


def priced_rows(observed: Observed, asked: Asked) -> tuple[Priced, ...]:
    """The request as it is, then under each scenario; empty without any."""
    if not asked.scenarios:
        return ()
    return (price_now(observed), *(price(observed, one) for one in asked.scenarios))
