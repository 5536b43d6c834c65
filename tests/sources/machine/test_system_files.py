"""Files of Linux as they are written, cut and garbled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.sources.machine.memory import available_bytes, swapped_in_bytes
from twospeed.sources.machine.pressure import share_between, stalled_s
from twospeed.sources.machine.system_files import (
    listed_numbers,
    named_number,
    number_of,
    numbered,
    text_of,
)

PRESSURE = (
    "some avg10=1.53 avg60=0.87 avg300=0.30 total=1500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=7"
)


def test_pressure_as_linux_writes_it(machine):
    root = machine({"proc/pressure/cpu": PRESSURE, "proc/pressure/memory": "garbage"})
    assert stalled_s("cpu", root) == 1.5
    assert stalled_s("memory", root) is None
    assert stalled_s("memory", root / "none") is None


def test_a_share_is_known_only_between_two_known_moments():
    assert share_between(1.0, 3.0, 10.0) == pytest.approx(0.2)
    assert share_between(1.0, 3.0, 1.0) == 1.0
    for unknown in ((None, 3.0, 10.0), (1.0, None, 10.0), (1.0, 3.0, 0.0)):
        assert share_between(*unknown) is None


@pytest.mark.parametrize(
    ("text", "number"), [("4096", 4096), ("max", None), ("-1", None), ("", None), ("7 kB", None)]
)
def test_a_number_or_none(machine, text, number):
    assert number_of(machine({"n": text}) / "n") == number


def test_a_file_that_cannot_be_read_is_unknown(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff\x00 7")
    assert text_of(tmp_path) is None, "a directory"
    assert text_of(tmp_path / "none") is None
    assert number_of(tmp_path / "bytes") is None
    assert named_number(tmp_path / "none", "x") is None


def test_named_numbers_of_several_spellings(machine):
    root = machine({"stat": "pswpin_other 9\npswpin 5\nVmSwap:\t  12 kB\nread_bytes: 7\na=3"})
    told = [named_number(root / "stat", name) for name in ("pswpin", "VmSwap", "read_bytes", "a")]
    assert told == [5, 12, 7, 3]
    assert named_number(root / "stat", "swpin") is None


@given(st.sets(st.integers(0, 200)))
def test_lists_of_numbers(numbers):
    assert set(listed_numbers(",".join(map(str, sorted(numbers))))) == numbers


def test_spans_of_numbers():
    assert listed_numbers("0-3,8\n") == (0, 1, 2, 3, 8)
    assert listed_numbers(None) == ()


def test_directories_with_numbers_come_in_their_order(machine):
    root = machine({f"{name}/x": 1 for name in ("cpu10", "cpu2", "cpufreq", "cpu", "card0-DP-1")})
    assert [path.name for path in numbered(root, "cpu")] == ["cpu2", "cpu10"]
    assert numbered(root, "card") == []
    assert numbered(root / "none", "cpu") == []


def test_swap_is_counted_in_pages(machine):
    assert swapped_in_bytes(machine({"proc/vmstat": "pswpout 9\npswpin 3"})) % 3 == 0
    assert swapped_in_bytes(machine({"proc/vmstat": "pgpgin 9"})) is None


def test_a_containers_limit_bounds_the_memory(machine):
    root = machine(
        {
            "proc/7/cgroup": "0::/box",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/box/memory.max": 1000,
            "sys/fs/cgroup/box/memory.current": 900,
            "sys/fs/cgroup/box/memory.stat": "anon 700\ninactive_file 150",
        }
    )
    assert available_bytes(7, root) == 250
    assert available_bytes(8, root) > 1_000_000
    assert available_bytes(None, root) > 1_000_000
