"""Everything that was observed in one run, as the finding modules read it."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from twospeed.findings.budget import (
    Stream,
    TimeBudget,
    Wait,
    judge_stream,
    judge_wait,
    slow_phase,
    time_budget,
)
from twospeed.findings.bursts import Holding, observe_holding
from twospeed.findings.clocks import Disagreement, observe_clocks
from twospeed.findings.finding import SlowPhase
from twospeed.findings.judgement import settled
from twospeed.findings.loading import Load, observe_load
from twospeed.findings.phase_times import (
    PhaseTimes,
    mid_answer_depth,
    phase_times,
    uncached_tokens,
)
from twospeed.findings.reuse import CacheObservation, observe_reuse
from twospeed.findings.steadiness import is_unsteady
from twospeed.findings.summary import LoadView, view_load
from twospeed.findings.table import is_noisy
from twospeed.findings.waiting import (
    Queue,
    Reasoning,
    observe_queue,
    observe_reasoning,
    unexplained_seconds,
)
from twospeed.fits.interval import Interval
from twospeed.limits.ceilings import Limits, limits_of
from twospeed.records.run import Goals, Run


class Observed(PhaseTimes, frozen=True, kw_only=True):
    """Records, fits and limits of one run, and the seconds of its workload."""

    run: Run
    limits: Limits
    load: Load
    queue: Queue
    reasoning: Reasoning
    reuse: CacheObservation
    clocks: Disagreement | None
    """Set when the server's clock and ours disagree."""
    unsteady: bool
    """True when repeats of the same request differ too much to be believed."""
    holding: Holding | None = None
    """Set when text is held back between server and client."""
    load_view: LoadView | None = None
    """What sums over many requests tell, where there are no single ones."""
    budget: TimeBudget
    wait: Wait
    stream: Stream
    slow_phase: SlowPhase

    @property
    def depth_tokens(self) -> float:
        """Depth at which decode is judged: the middle of the workload's answer."""
        return mid_answer_depth(self.run.workload)


def observe(run: Run) -> Observed:
    """Fits both phases, asks the limits, and puts the seconds of the workload together.

    Where the server tells less time than its user waited, its clock is left out.
    """
    holding = observe_holding(run)
    clocks = None if holding is not None else observe_clocks(run)
    if clocks is not None and clocks.server_tells_less:
        run = replace(run, ignore_timings=True)
    times = phase_times(run)
    reasoning, queue = observe_reasoning(run.records), observe_queue(run)
    load = observe_load(run, times.prefill)
    budget = _budget(run, times, reasoning, load, queue)
    wait = judge_wait(budget, run.goals, prefill=times.prefill_s, answer_seen=reasoning.answer_seen)
    stream = judge_stream(times.decode_tps, run.goals)
    parted = times.prefill_s is not None or times.decode_s is not None
    view = None if parted else view_load(run.summary, run.goals)
    if view is not None:
        budget, wait, stream = _by_load(view, run.goals)
    return Observed(
        **asdict(times),
        run=run,
        limits=_limits(run, times),
        load=load,
        queue=queue,
        reasoning=reasoning,
        reuse=observe_reuse(run, times.prefill),
        clocks=clocks,
        unsteady=_is_unsteady(run, times),
        holding=holding,
        load_view=view,
        budget=budget,
        wait=wait,
        stream=stream,
        slow_phase=_slow_phase(run, times, view, slow_phase(budget, wait, stream)),
    )


def _slow_phase(
    run: Run, times: PhaseTimes, view: LoadView | None, by_goals: SlowPhase
) -> SlowPhase:
    """By the goals, then by what else the evidence shows; nothing where it cannot be believed."""
    if is_noisy(run.points):
        return "both" if by_goals == "both" else "unknown"
    by_goals = view.phase if view is not None else by_goals
    return settled(run, times, by_goals)


def _by_load(view: LoadView, goals: Goals) -> tuple[TimeBudget, Wait, Stream]:
    """Budget and judgement of a load: its wait is not parted, except into a queue."""
    queue_s = view.ttft_s if view.queued else None
    budget = TimeBudget(
        queue_s=queue_s,
        unexplained_s=None if view.queued else view.ttft_s,
        total_s=view.ttft_s,
    )
    wait, tps = view.ttft_s, view.stream_tps
    return (
        budget,
        Wait(
            seconds=wait,
            goal_s=goals.wait_s,
            verdict="unknown" if wait is None else "slow" if wait > goals.wait_s else "fine",
        ),
        Stream(
            tps=tps,
            goal_tps=goals.stream_tps,
            verdict="unknown" if tps is None else "slow" if tps < goals.stream_tps else "fine",
        ),
    )


def _is_unsteady(run: Run, times: PhaseTimes) -> bool:
    if is_noisy(run.points):
        return True
    return is_experiment(run) and is_unsteady(times.prefill_seen, times.decode_seen)


def is_experiment(run: Run) -> bool:
    """Whether the requests were ours: equal lengths are repeats there, and chance in a log."""
    return any(record.step == "curve" for record in run.records)


def _budget(
    run: Run, times: PhaseTimes, reasoning: Reasoning, load: Load, queue: Queue
) -> TimeBudget:
    # Our own prefill clock already holds whatever the server's leaves unexplained.
    by_client = any(point.origin == "client" for point in times.prefill_seen)
    return time_budget(
        run,
        prefill_s=_likely(times.prefill_s),
        decode_s=_likely(times.decode_s),
        reasoning_frac=reasoning.share,
        load_s=load.seconds,
        queue_s=queue.seconds,
        unexplained_s=None if by_client else unexplained_seconds(run),
    )


def _limits(run: Run, times: PhaseTimes) -> Limits:
    return limits_of(
        run,
        prefill_tps=_likely(times.prefill_tps),
        decode_tps=_likely(times.decode_tps),
        depth_tokens=mid_answer_depth(run.workload),
        prompt_tokens=uncached_tokens(run.workload),
    )


def _likely(interval: Interval | None) -> float | None:
    return None if interval is None else interval.likely
