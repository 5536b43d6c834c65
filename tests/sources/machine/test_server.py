"""What the server's processes did over a run, and which other programs were busy."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from twospeed.sources.machine.others import OthersWatch, busiest, spent_by_all
from twospeed.sources.machine.server import Counters, ServerWatch, counters_of


class FakeProcess:
    """A process as psutil shows it, whose counts a test moves."""

    def __init__(self, pid, *, cpu_s=0.0, threads=1, rss=100):
        self.pid = pid
        self.cpu_s = cpu_s
        self.count = threads
        self.thread_s = {}
        self.rss = rss
        self.hidden = False
        self.ended = False

    def is_running(self):
        return not self.ended

    def _shown(self, fact):
        if self.hidden:
            raise psutil.AccessDenied(self.pid)
        return fact

    def cpu_times(self):
        return self._shown(SimpleNamespace(user=self.cpu_s, system=0.0))

    def memory_info(self):
        return self._shown(SimpleNamespace(rss=self.rss))

    def num_threads(self):
        return self._shown(self.count)

    def threads(self):
        return self._shown(
            [
                SimpleNamespace(id=one, user_time=spent_s, system_time=0.0)
                for one, spent_s in self.thread_s.items()
            ]
        )


class Family:
    """A server's processes, and a clock."""

    def __init__(self, machine):
        self._machine = machine
        self.now_s = 100.0
        self.members = []
        self.watch = ServerWatch(
            2**22 + 5, root=machine({}), tree=lambda _: self.members, clock=lambda: self.now_s
        )

    def add(self, pid, *, faults=0, read=0, **process):
        self.members.append(FakeProcess(pid, **process))
        self.tell(pid, faults=faults, read=read)
        return self.members[-1]

    def tell(self, pid, *, faults, read):
        before = "7 (a) b) S 1 1 1 0 -1 0 50 0"
        self._machine(
            {
                f"proc/{pid}/stat": f"{before} {faults} 99 5 6",
                f"proc/{pid}/io": f"rchar: 1\nread_bytes: {read}\nwrite_bytes: 3",
                f"proc/{pid}/status": "Name: a\nVmSwap:\t 2 kB",
            }
        )


@pytest.fixture
def family(machine):
    return Family(machine)


def test_the_counts_of_a_run_are_what_it_added(family):
    server = family.add(1, faults=10, read=4096, cpu_s=5.0, threads=9)
    family.watch.start()
    family.now_s += 2.0
    server.cpu_s += 3.0
    server.rss = 500
    family.tell(1, faults=14, read=8192)
    told = family.watch.stop()
    assert (told.major_faults, told.read_bytes) == (4, 4096)
    assert (told.resident_bytes, told.swapped_bytes) == (500, 2048)
    assert told.busy_threads == pytest.approx(1.5)
    assert told.threads == 9
    assert told.command == ()


@pytest.mark.parametrize(
    ("added_s", "working"),
    [
        ({1: 2.0, 2: 1.9, 3: 2.1, 4: 0.01}, 3),
        ({1: 2.0}, 1),
        ({1: 0.1, 2: 0.1}, None),  # too little to tell
        ({7: 3.0, 8: 3.0}, 2),  # begun in the run
        ({}, None),
    ],
)
def test_threads_that_share_the_work_are_counted(family, added_s, working):
    server = family.add(1, threads=40)
    server.thread_s = {1: 50.0, 2: 9.0, 3: 0.5, 4: 0.0}
    family.watch.start()
    family.now_s += 4.0
    for one, spent_s in added_s.items():
        server.thread_s[one] = server.thread_s.get(one, 0.0) + spent_s
    assert family.watch.stop().working_threads == working


def test_a_child_that_begins_in_the_run_counts_from_its_birth(family):
    family.add(1, faults=10)
    family.watch.start()
    family.add(2, faults=7, read=100, cpu_s=4.0, threads=5)
    family.now_s += 4.0
    told = family.watch.stop()
    assert (told.major_faults, told.read_bytes) == (7, 100)
    assert told.threads == 5, "those of the process that computed most"
    assert told.busy_threads == pytest.approx(1.0)
    assert family.watch.pids == {1, 2}


def test_a_child_that_ends_keeps_what_was_last_seen(family):
    family.add(1)
    child = family.add(2, faults=1)
    family.watch.start()
    family.tell(2, faults=6, read=0)
    family.now_s += 1.0
    family.watch.sample()
    child.ended = True
    family.now_s += 1.0
    assert family.watch.stop().major_faults == 5


def test_the_busiest_span_counts_and_one_too_short_does_not(family):
    server = family.add(1)
    family.watch.start()
    for span_s, spent_s in [(2.0, 1.0), (0.1, 5.0), (1.9, 3.0), (10.0, 0.0)]:
        family.now_s += span_s
        server.cpu_s += spent_s
        family.watch.sample()
    assert family.watch.stop().busy_threads == pytest.approx(4.0), "8 s in 2.0 s"


def test_one_process_that_hides_leaves_the_sums_unknown(family):
    family.add(1, faults=3)
    hidden = family.add(2)
    hidden.hidden = True
    (family.watch._root / "proc/2/stat").unlink()
    (family.watch._root / "proc/2/io").unlink()
    family.watch.start()
    family.now_s += 1.0
    told = family.watch.stop()
    assert (told.major_faults, told.read_bytes) == (None, None)
    assert told.resident_bytes == 100


def test_nothing_in_swap_is_known_to_be_nothing(family):
    family.add(1)
    (family.watch._root / "proc/1/status").write_text("Name: a\nVmSwap:\t 0 kB\n")
    family.watch.start()
    assert family.watch.stop().swapped_bytes == 0


def test_a_server_that_is_gone_shows_nothing(family):
    family.watch.start()
    family.watch.sample()
    assert family.watch.stop() is None


def test_faults_of_a_system_that_counts_them_as_pages_read_in(tmp_path):
    process = FakeProcess(1)
    process.memory_info = lambda: SimpleNamespace(rss=1, pageins=8)
    assert counters_of(process, tmp_path) == Counters(
        cpu_s=0.0, major_faults=8, read_bytes=None, resident_bytes=1
    )


def test_a_real_process(server_process):
    watch = ServerWatch(server_process.pid)
    watch.start()
    told = watch.stop()
    assert told.command[0] == sys.executable
    assert told.command[-2:] == ("--api-key", "***")
    assert told.threads >= 1
    assert told.allowed_cores >= 1
    assert told.resident_bytes > 1_000_000


@pytest.fixture
def server_process():
    command = [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"]
    pipe = subprocess.PIPE
    with subprocess.Popen([*command, "--api-key", "k"], stdin=pipe, stdout=pipe) as process:
        process.stdout.readline()
        yield process
        process.stdin.close()


def spent(**cpu_s):
    return {FakeProcess(len(name)): (name, seconds) for name, seconds in cpu_s.items()}


def test_the_busiest_of_others_come_first():
    before = spent(a=1.0, bb=1.0, ccc=1.0, dddd=1.0, eeeee=1.0)
    after = {
        process: (name, seconds + added)
        for (process, (name, seconds)), added in zip(
            before.items(), (0.4, 3.0, 9.0, 2.0, 1.0), strict=True
        )
    }
    assert busiest(before, after, 10.0, frozenset()) == ("ccc", "bb", "dddd")
    assert busiest(before, after, 10.0, frozenset({3, 4})) == ("bb", "eeeee"), "0.4 s is too little"
    assert busiest(before, before, 10.0, frozenset()) == ()


def test_programs_of_one_name_count_together():
    after = {FakeProcess(n): ("tab", 0.3) for n in range(4)} | {FakeProcess(9): ("one", 0.9)}
    assert busiest({}, after, 10.0, frozenset()) == ("tab", "one")


def test_our_own_process_is_among_all_and_never_a_neighbour():
    assert os.getpid() in {process.pid for process in spent_by_all()}
    watch = OthersWatch()
    watch.start()
    everyone = [process.pid for process in spent_by_all()]
    assert watch.stop(range(max(everyone) + 1000)) == ()
