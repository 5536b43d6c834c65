"""Limits and stops of control groups, in both versions and where they are mixed."""

from __future__ import annotations

import os

import pytest

from twospeed.sources.machine.control_group import (
    group_directories,
    memory_left_bytes,
    quota_cores,
    throttled_s,
)
from twospeed.sources.machine.cores import allowed_cores, usable_cores

V2 = {"sys/fs/cgroup/cgroup.controllers": "cpu memory"}
V1 = {"proc/7/cgroup": "3:memory:/box\n2:cpu,cpuacct:/box\n1:name=systemd:/\n0::/"}


def test_version_2_the_narrowest_group_counts(machine):
    root = machine(
        V2
        | {
            "proc/7/cgroup": "0::/outer/inner",
            "sys/fs/cgroup/cpu.stat": "usage_usec 5",
            "sys/fs/cgroup/outer/cpu.max": "150000 100000",
            "sys/fs/cgroup/outer/cpu.stat": "nr_throttled 2\nthrottled_usec 1500000",
            "sys/fs/cgroup/outer/inner/cpu.max": "max 100000",
            "sys/fs/cgroup/outer/inner/cpu.stat": "throttled_usec 500000",
        }
    )
    assert [each.name for each in group_directories(7, "cpu", root)] == ["inner", "outer", "cgroup"]
    assert quota_cores(7, root) == 1.5
    assert throttled_s(7, root) == 2.0
    assert memory_left_bytes(7, root) is None
    assert group_directories(8, "cpu", root) == []


@pytest.mark.parametrize("mount", ["cpu,cpuacct", "cpu"])
def test_version_1(machine, mount):
    root = machine(
        V1
        | {
            f"sys/fs/cgroup/{mount}/box/cpu.cfs_quota_us": 50_000,
            f"sys/fs/cgroup/{mount}/box/cpu.cfs_period_us": 100_000,
            f"sys/fs/cgroup/{mount}/box/cpu.stat": "nr_periods 9\nthrottled_time 2500000000",
            f"sys/fs/cgroup/{mount}/cpu.cfs_quota_us": -1,
            f"sys/fs/cgroup/{mount}/cpu.cfs_period_us": 100_000,
            "sys/fs/cgroup/memory/box/memory.limit_in_bytes": 5000,
            "sys/fs/cgroup/memory/box/memory.usage_in_bytes": 4000,
            "sys/fs/cgroup/memory/box/memory.stat": "inactive_file 1\ntotal_inactive_file 500",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712,
            "sys/fs/cgroup/memory/memory.usage_in_bytes": 9000,
        }
    )
    assert quota_cores(7, root) == 0.5
    assert throttled_s(7, root) == 2.5
    assert memory_left_bytes(7, root) == 1500


def test_in_a_container_the_hosts_path_is_not_there(machine):
    root = machine(
        {
            "proc/7/cgroup": "2:cpu:/docker/abc\n0::/",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": 200_000,
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": 100_000,
        }
    )
    assert quota_cores(7, root) == 2.0


def test_a_group_outside_of_what_is_shown_is_not_guessed(machine):
    root = machine(V2 | {"proc/7/cgroup": "0::/../other", "sys/fs/cgroup/cpu.max": "1 1"})
    assert quota_cores(7, root) is None


@pytest.mark.parametrize("text", ["max 100000", "", "garbage", "100000 0", "1"])
def test_no_quota(machine, text):
    root = machine(V2 | {"proc/7/cgroup": "0::/", "sys/fs/cgroup/cpu.max": text})
    assert quota_cores(7, root) is None
    assert throttled_s(7, root) is None


@pytest.mark.parametrize(("text", "most"), [("100000 100000", 1), ("50000 100000", 1)])
def test_a_quota_bounds_the_cores(machine, text, most):
    me = os.getpid()
    root = machine(V2 | {f"proc/{me}/cgroup": "0::/", "sys/fs/cgroup/cpu.max": text})
    assert allowed_cores(me, root) == usable_cores(root) == most
    assert usable_cores(root / "none") >= most


def test_what_a_process_that_is_gone_may_use_is_unknown(tmp_path):
    assert allowed_cores(2**22 + 1, tmp_path) is None
    assert allowed_cores(2**22 + 1, tmp_path, most=4) == 4
