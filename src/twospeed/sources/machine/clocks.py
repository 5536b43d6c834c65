"""How fast the processor runs, how fast it could, and what holds it back.

Source: Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst of Linux;
arch/x86/kernel/cpu/mce/therm_throt.c for the counters, which Intel's processors have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from twospeed.sources.machine.cores import CPUS
from twospeed.sources.machine.system_files import ROOT, number_of, numbered, text_of

CAPPED = 0.95
"""Below this share of what it can do, a limit on the clock was set by someone."""
COOLED = ("Processor", "cpufreq", "thermal-cpufreq", "intel_powerclamp")
"""Kinds of cooling devices that cool by slowing the processor down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling:
    """How often the processor has slowed itself down since start-up."""

    hot: int
    over_power: int | None = None

    def since(self, before: Throttling) -> Throttling:
        """What was added to an earlier count."""
        power = None
        if self.over_power is not None and before.over_power is not None:
            power = max(0, self.over_power - before.over_power)
        return Throttling(hot=max(0, self.hot - before.hot), over_power=power)


def governor(root: Path = ROOT) -> str | None:
    """Who chooses the clock, by the name that most processors have; None where it is not told."""
    names = Counter(text_of(cpu / "cpufreq/scaling_governor") for cpu in _cpus(root))
    del names[None]
    return names.most_common(1)[0][0] if names else None


def clock_hz(root: Path = ROOT) -> float | None:
    """Clock at this moment of the faster half of the processors, their median, in Hz.

    The faster half is the one at work. A virtual machine shows none: what /proc/cpuinfo says there
    never changes.
    """
    clocks = sorted(_clocks(root, "scaling_cur_freq"), reverse=True)
    return float(median(clocks[: (len(clocks) + 1) // 2])) if clocks else None


def clock_max_hz(root: Path = ROOT) -> float | None:
    """Highest clock of the fastest processor, in Hz; all at once rarely reach it."""
    return max(_clocks(root, "cpuinfo_max_freq"), default=None)


def standing_limits(root: Path = ROOT) -> tuple[str, ...]:
    """What keeps the clock low all the time: "boost_off", "clock_cap"."""
    most = clock_max_hz(root)
    allowed = max(_clocks(root, "scaling_max_freq"), default=None)
    off = text_of(root / CPUS / "cpufreq/boost") == "0"
    off = off or text_of(root / CPUS / "intel_pstate/no_turbo") == "1"
    capped = most is not None and allowed is not None and allowed < CAPPED * most
    return (*(["boost_off"] if off else []), *(["clock_cap"] if capped else []))


def being_cooled(root: Path = ROOT) -> bool:
    """Whether the system slows the processor down at this moment, to cool it."""
    devices = numbered(root / "sys/class/thermal", "cooling_device")
    return any(
        (text_of(device / "type") or "").startswith(COOLED) and number_of(device / "cur_state")
        for device in devices
    )


def throttling(root: Path = ROOT) -> Throttling | None:
    """Counts since start-up; None where the processor keeps none."""
    hot = _count(root, "throttle_count")
    if hot is None:
        return None
    return Throttling(hot=hot, over_power=_count(root, "power_limit_count"))


def _count(root: Path, what: str) -> int | None:
    """Sum over the cores, and the package's own, which each of its processors repeats."""
    core, package = (
        [number_of(cpu / "thermal_throttle" / f"{whose}_{what}") for cpu in _cpus(root)]
        for whose in ("core", "package")
    )
    known = [each for each in core if each is not None]
    whole = max((each for each in package if each is not None), default=None)
    return None if not known and whole is None else sum(known) + (whole or 0)


def _clocks(root: Path, name: str) -> list[float]:
    told = (number_of(cpu / "cpufreq" / name, times=1000) for cpu in _cpus(root))
    return [float(each) for each in told if each]


def _cpus(root: Path) -> list[Path]:
    return numbered(root / CPUS, "cpu")
