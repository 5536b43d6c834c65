"""The arms in being: both loaded, or in turn where memory is short; always ended."""

from __future__ import annotations

import asyncio
import io
import os
from argparse import Namespace

import psutil
import pytest
from served_fake import serving

from twospeed.cli.main import build_parser
from twospeed.cli.terminal.progress import Progress
from twospeed.cli.terminal.request_fields import parts_of, request_fields
from twospeed.cli.verifying.arms import arms_of, compares_reuse
from twospeed.cli.verifying.sending import Sending
from twospeed.cli.verifying.stage import Stage
from twospeed.records.errors import EndpointError
from twospeed.records.request_record import Probe

pytestmark = pytest.mark.skipif(os.name != "posix", reason="quoting of POSIX shells")
PROBE = Probe(step="curve", prompt_tokens=100, output_tokens=10)
WARMUP = Probe(step="warmup", prompt_tokens=100, output_tokens=2)


@pytest.fixture
def runner():
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        yield runner


def asked(*words: str) -> Namespace:
    args = build_parser().parse_args(["verify", *words])
    args.url = None
    return args


def stage_of(args: Namespace, runner, said: io.StringIO, **options) -> Stage:
    return Stage(arms_of(args), args, runner, Progress(said), **options)


def sending_on(stage: Stage, runner, said: io.StringIO, **options) -> Sending:
    options = {"kept": lambda arm, record: None, **options}
    return Sending(stage, runner, Progress(said), shared=False, primed=False, **options)


def pids(stage: Stage) -> set[int]:
    return {server.pid for server in stage._servers.values()}


def test_both_stay_loaded_where_memory_allows(runner):
    args, said = asked("--command", serving(0.001), "--command", serving(0.001)), io.StringIO()
    with stage_of(args, runner, said, room=0.0) as stage:
        stage.open_all()
        running = pids(stage)
        assert len(running) == 2
        stage.use(0)
        stage.use(1)
        assert pids(stage) == running
        assert not stage.alternates
    assert not any(psutil.pid_exists(pid) for pid in running)
    assert said.getvalue() == ""


def test_they_are_started_in_turn_where_it_does_not(runner):
    args, said = asked("--command", serving(0.001), "--command", serving(0.001)), io.StringIO()
    records = []
    with stage_of(args, runner, said, room=1e9) as stage:
        stage.open_all()
        assert stage.alternates
        assert set(stage.known) == {0, 1}
        sending = sending_on(
            stage, runner, said, kept=lambda arm, record: records.append((arm, record))
        )
        for arm in (0, 1):
            assert sending.measure(arm, PROBE, 1).record.error is None
            assert len(pids(stage)) == 1
        assert stage.outside_s > 0.0
    assert [arm for arm, _ in records] == [0, 1]
    assert "started in turn" in said.getvalue()


@pytest.mark.parametrize(("starts", "renewed"), [("each", True), ("auto", False), ("once", False)])
def test_servers_are_started_for_each_pair_where_that_pays(runner, starts: str, renewed: bool):
    """The stand-in answers in no time: its start is far longer than a pair."""
    args, said = asked("--command", serving(0.001), "--command", serving(0.001)), io.StringIO()
    with stage_of(args, runner, said, room=0.0) as stage:
        stage.open_all()
        sending = sending_on(stage, runner, said, starts=starts)
        before = pids(stage)
        for arm in (0, 1):
            sending.measure(arm, PROBE, 1)
        assert sending.renew(WARMUP, 1) == renewed
        assert len(pids(stage) & before) == (0 if renewed else 2)
        assert (stage.outside_s > 0.0) == renewed
        assert ("servers are started once" in said.getvalue()) == (starts == "auto")
        assert sending.measure(0, PROBE, 2).record.error is None


def test_servers_of_others_are_never_started(runner, fake):
    args, said = asked(fake().url, fake().url), io.StringIO()
    with stage_of(args, runner, said, room=0.0) as stage:
        stage.open_all()
        sending = sending_on(stage, runner, said, starts="each")
        assert not sending.renew(WARMUP, 0)
        assert said.getvalue() == ""


def test_one_that_cannot_start_even_alone_is_an_error(runner):
    args, said = asked("--command", serving(0.001), "--command", "no-such {port}"), io.StringIO()
    with stage_of(args, runner, said, room=0.0) as stage:
        with pytest.raises(EndpointError, match="Cannot start no-such"):
            stage.open_all()
        assert pids(stage) <= {None}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("threads=2,flash-attn=on", ("threads=2", "flash-attn=on")),
        ("tensor-split=3,1,threads=2", ("tensor-split=3,1", "threads=2")),
        ("no-warmup, -ub=64", ("no-warmup", "-ub=64")),
        ("", ()),
    ],
)
def test_settings_with_commas(text: str, parts: tuple[str, ...]):
    assert parts_of(text) == parts


def test_request_fields_are_json_or_text():
    assert request_fields("temperature=0.5,cache_prompt=true,user=ada,stop=[1]") == {
        "temperature": 0.5,
        "cache_prompt": True,
        "user": "ada",
        "stop": [1],
    }


def test_only_fields_of_the_cache_compare_reuse():
    def arms(*texts: str):
        return arms_of(asked(":1", *[word for text in texts for word in ("--request", text)]))

    assert compares_reuse(arms("cache_prompt=false", "cache_prompt=true"))
    assert not compares_reuse(arms("cache_prompt=true", "cache_prompt=true,seed=1"))
    assert not compares_reuse(arms("temperature=0", "temperature=1"))
