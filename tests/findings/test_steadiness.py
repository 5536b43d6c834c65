"""Repeats that disagree make a run untrusted; one of them does not."""

from __future__ import annotations

from twospeed.findings.steadiness import is_unsteady
from twospeed.fits.observations import DecodePoint, PrefillPoint


def prefills(*timings: tuple[int, float]) -> list[PrefillPoint]:
    return [
        PrefillPoint(prompt_tokens=tokens, cached_tokens=0, s=s, origin="server", record=number)
        for number, (tokens, s) in enumerate(timings, 1)
    ]


def decodes(*timings: tuple[float, float]) -> list[DecodePoint]:
    return [
        DecodePoint(depth_tokens=depth, per_token_s=s, steps=30.0, origin="server", record=number)
        for number, (depth, s) in enumerate(timings, 1)
    ]


def test_ordinary_scatter_is_steady():
    timings = prefills((500, 1.0), (505, 1.3), (1000, 2.1), (1000, 2.9), (2000, 5.0))
    assert not is_unsteady(timings, decodes((500, 0.01), (500, 0.014)))


def test_one_disturbed_length_is_outvoted():
    assert not is_unsteady(prefills((500, 1.0), (500, 3.0), (1000, 2.0), (1000, 2.1)), [])


def test_two_disturbed_lengths_of_either_phase_are_not():
    assert is_unsteady(prefills((500, 1.0), (500, 1.7), (1000, 2.0), (1000, 4.1)), [])
    assert is_unsteady([], decodes((500, 0.01), (500, 0.02), (1000, 0.02), (1010, 0.011)))


def test_nothing_measured_is_not_unsteady():
    assert not is_unsteady([], [])
