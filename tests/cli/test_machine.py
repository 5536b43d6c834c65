"""The machine under a local server is watched and kept; of one far away nothing is."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from twospeed.cli.measuring.book import Book
from twospeed.cli.measuring.this_machine import RunWatch
from twospeed.records.run import Conditions, Goals, Workload
from twospeed.records.run_file import read_run


def test_the_machine_is_kept_with_the_run(saved_run):
    run = read_run(saved_run)
    assert run.machine is not None
    assert run.machine.logical_cores == os.cpu_count()
    assert run.machine.server is not None, "the fake runtime listens in this very process"
    assert run.machine.server.command


class FakeEndpoint:
    """Knows only where it is."""

    port_here = None

    def __init__(self, *, local):
        self._source = SimpleNamespace(local=local)

    def source(self):
        return self._source


@pytest.mark.parametrize("local", [True, False, None])
def test_only_a_local_server_has_a_machine(local):
    book = Book(
        Workload(prompt_tokens=1, output_tokens=1), Goals(), save=None, ignore_timings=False
    )
    watch = RunWatch(FakeEndpoint(local=local), None)
    watch.start()
    watch.sample()
    watch.stop(book)
    assert book.run.conditions != Conditions()
    assert (book.run.machine is not None) is (local is True)
    assert ("the server's process" in {blind.what for blind in book.run.unknown}) is (local is True)
