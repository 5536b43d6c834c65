"""Order of sending and preparing, on a clock of its own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from twospeed.simulator.pacing import LONGEST_FIRE_NS, TOGETHER_NS, Pacer

US = 1_000
STEP_NS = 20_000 * US


@dataclass
class Answer:
    """What the pacer needs of an answer."""

    name: int = 0
    actual_ns: int = 0
    over: bool = False


class Machine:
    """Every send and every preparation takes its time; the rest of the time is slept through."""

    def __init__(self, send_ns: int = 10 * US, prepare_ns: int = 15 * US, step_ns: int = STEP_NS):
        self.now_ns = 0
        self.send_ns, self.prepare_ns, self.step_ns = send_ns, prepare_ns, step_ns
        self.log: list[tuple[str, int]] = []
        self.late_ns: list[int] = []
        self.due: dict[int, int] = {}
        self.pacer = Pacer(
            step_ns / 1e9, send=self.send, follow=self.follow, now_ns=lambda: self.now_ns
        )

    def add(self, answer: Answer, at_ns: int) -> None:
        self.due[answer.name] = at_ns
        self.pacer.add(at_ns, answer)

    def send(self, answer: Answer) -> None:
        self.log.append(("send", answer.name))
        self.late_ns.append(self.now_ns - self.due[answer.name])
        self.now_ns += self.send_ns

    def follow(self, answer: Answer) -> None:
        self.log.append(("prepare", answer.name))
        self.now_ns += self.prepare_ns
        self.add(answer, self.due[answer.name] + self.step_ns)

    def run(self, until_ns: int) -> None:
        while self.now_ns < until_ns:
            self.pacer.fire()
            deadline_ns = self.pacer.deadline_ns()
            # Looking at sockets takes a moment as well, or nothing would ever move on.
            self.now_ns = max(self.now_ns + 100, deadline_ns or until_ns)


def test_nothing_is_sent_early():
    machine = Machine()
    machine.add(Answer(), 500 * US)
    machine.pacer.fire()
    assert machine.log == []
    machine.now_ns = 500 * US
    machine.pacer.fire()
    assert machine.log == [("send", 0), ("prepare", 0)]


def test_all_that_is_due_goes_out_before_anything_is_prepared():
    machine = Machine()
    for name in range(5):
        machine.add(Answer(name), 100 * US)
    machine.now_ns = 100 * US
    machine.pacer.fire()
    assert machine.log == [
        *(("send", name) for name in range(5)),
        *(("prepare", name) for name in range(5)),
    ]


def test_nothing_is_prepared_shortly_before_a_deadline():
    machine = Machine()
    machine.add(Answer(0), 0)
    machine.add(Answer(1), 40 * US)
    machine.pacer.fire()
    assert machine.log == [("send", 0)]
    machine.now_ns = 40 * US
    machine.pacer.fire()
    assert machine.log == [("send", 0), ("send", 1), ("prepare", 0), ("prepare", 1)]


def test_many_at_nearly_one_moment_go_together():
    machine = Machine()
    for name in range(3):
        machine.add(Answer(name), 1_000 * US + name * 10 * US)
    assert machine.pacer.deadline_ns() == 1_000 * US + TOGETHER_NS
    apart = Machine()
    for name in range(3):
        apart.add(Answer(name), 1_000 * US + name * 30 * US)
    assert apart.pacer.deadline_ns() == 1_000 * US


def test_what_is_not_prepared_is_not_slept_over():
    # More sends than one firing may hold: the others' next writes still wait to be prepared.
    machine = Machine(send_ns=LONGEST_FIRE_NS)
    for name in range(2):
        machine.add(Answer(name), 0)
    machine.pacer.fire()
    machine.pacer.fire()
    assert machine.log == [("send", 0), ("send", 1)]
    assert machine.pacer.deadline_ns() == machine.now_ns


def test_an_answer_that_waits_too_long_is_served_before_others_deadlines():
    machine = Machine(step_ns=200 * US)
    machine.add(Answer(0), 0)
    machine.pacer.fire()
    for name in range(1, 30):
        machine.add(Answer(name), 1)
    machine.log.clear()
    machine.pacer.fire()
    first = machine.log.index(("prepare", 1))
    assert first < machine.log.index(("send", 29))


def test_ended_answers_are_passed_over():
    machine = Machine()
    gone, ended_meanwhile = Answer(0, over=True), Answer(1)
    machine.add(gone, 0)
    machine.add(ended_meanwhile, 0)
    machine.send = lambda answer: setattr(answer, "over", True)
    machine.pacer._send = machine.send
    machine.pacer.fire()
    assert machine.log == []


@pytest.mark.parametrize("streams", [1, 64, 256])
@pytest.mark.parametrize("spread", [True, False])
def test_no_stream_falls_behind_for_good(streams, spread):
    machine = Machine()
    for name in range(streams):
        machine.add(Answer(name), round(STEP_NS * name / streams) if spread else 0)
    machine.run(25 * STEP_NS)
    assert len(machine.late_ns) >= 24 * streams
    assert min(machine.late_ns) >= 0
    bound_ns = TOGETHER_NS + (100 * US if spread else streams * 12 * US)
    assert max(machine.late_ns) <= bound_ns


def test_too_much_work_is_shared_evenly():
    # 256 streams at 1 ms steps cannot be kept; each must still get its share.
    machine = Machine(step_ns=1_000 * US)
    for name in range(256):
        machine.add(Answer(name), 0)
    machine.run(200_000 * US)
    counts = [sum(1 for kind, who in machine.log if (kind, who) == ("send", n)) for n in (0, 255)]
    assert abs(counts[0] - counts[1]) <= 2
    assert min(counts) >= 25
