"""Graphics devices as Linux shows them in /sys/class/drm: AMD's and Intel's, each by its driver.

Source: Documentation/gpu/amdgpu/ and Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon,
sysfs-driver-intel-xe-hwmon of Linux.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.system_files import ROOT, number_of, numbered, text_of

Reader = Callable[[Path, str], GraphicsDevice]
"""From a card's directory and name to what it shows."""


class DrmGraphics:
    """The cards of one maker."""

    def __init__(self, cards: list[Path], maker: str, read: Reader) -> None:
        """Read cards.

        Args:
            cards: their directories in /sys/class/drm.
            maker: its name.
            read: how its driver shows them.
        """
        self._cards = [(card, card_name(card, maker)) for card in cards]
        self._read = read

    def look(self) -> tuple[GraphicsDevice, ...]:
        """Each device at this moment. One that sleeps is not asked: that would wake it."""
        return tuple(
            GraphicsDevice(name=name) if asleep(card) else self._read(card, name)
            for card, name in self._cards
        )

    def look_closely(self, server: frozenset[int]) -> tuple[GraphicsDevice, ...]:  # noqa: ARG002
        """The same: whose memory it is, is not told."""
        return self.look()

    def close(self) -> None:
        """Nothing is kept open."""


def cards_of(vendor: str, root: Path = ROOT) -> list[Path]:
    """Directories of the cards of a maker.

    Args:
        vendor: its PCI number, for example "0x1002".
        root: below it lies /sys.
    """
    cards = numbered(root / "sys/class/drm", "card")
    return [card for card in cards if text_of(card / "device/vendor") == vendor]


def card_name(card: Path, maker: str) -> str:
    """The product's name where the driver knows it, else the maker and the PCI number."""
    product = text_of(card / "device/product_name")
    number = text_of(card / "device/device") or card.name
    return product or f"{maker} {number.removeprefix('0x')}"


def asleep(card: Path) -> bool:
    """Whether the device is switched off at this moment to save power."""
    return text_of(card / "device/power/runtime_status") in {"suspended", "suspending"}


def sensor(card: Path, *names: str) -> int | None:
    """The first of some readings that the card's sensors have, in the sensors' unit."""
    for chip in numbered(card / "device/hwmon", "hwmon"):
        for name in names:
            if (value := number_of(chip / name)) is not None:
                return value
    return None


def in_units(value: int | None, divisor: float) -> float | None:
    """A reading of micro- or milli-units, in units."""
    return None if value is None else value / divisor


def link_generation(card: Path) -> int | None:
    """Generation of the PCI Express link as it runs, from its transfers per second."""
    text = text_of(card / "device/current_link_speed") or ""
    found = re.match(r"([\d.]+) GT/s", text)
    speeds = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
    return None if found is None else speeds.get(found[1])
