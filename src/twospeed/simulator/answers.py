"""What the simulator says: plain sentences whose every word is one token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice

from twospeed.simulator.tokens import pieces

# Letters of two and three bytes come early, so that even a short answer holds some.
SENTENCES = (
    "The café by the river opens early, and its crème is famous far beyond the old bridge.",
    "A naïve visitor once asked the miller how long a sack of grain would last.",
    "He smiled, counted on his fingers, and said that it depends on who comes to dinner.",
    "In winter the water freezes at the edges, yet the wheel keeps turning in the middle.",
    "Children throw small stones to hear the ice sing, a sound like wire under rain.",
    "Every evening the lamps are lit one after another along the quay ✓ without a break.",
    "Somebody plays the piano behind an open window, slowly, as if the notes were heavy.",
    "The señora from the bakery leaves two loaves on the step and never says for whom.",
    "When the first boats return, the market fills with voices, baskets and silver fish.",
    "By noon the square is empty again, and only the clock above the gate seems awake.",
    "Travellers who stay a week often stay a year, and later cannot say why they did.",
    "They learn the names of the winds, the price of rope, and the patience of tides.",
)
THOUGHTS = (
    "First consider what the question really asks, then see which facts are given.",
    "One reading is literal, another is broader, and the second one seems more useful.",
    "If that is right, the answer should be short, concrete and easy to verify later.",
    "Check the opposite case as well, because a rule that never fails says very little.",
)


def _cut(sentences: Sequence[str]) -> list[list[str]]:
    """Pieces of each sentence as it stands after another one."""
    return [pieces(" " + sentence) for sentence in sentences]


_ANSWER = _cut(SENTENCES)
_THOUGHT = _cut(THOUGHTS)


def answer_pieces(seed: int, tokens: int) -> list[str]:
    """So many tokens of an answer.

    Args:
        seed: chooses the sentence that it begins with.
        tokens: wanted length.
    """
    return _from_sentence(_ANSWER, seed, tokens)


def reasoning_pieces(seed: int, tokens: int) -> list[str]:
    """So many tokens of reasoning."""
    return _from_sentence(_THOUGHT, seed, tokens)


def _from_sentence(sentences: list[list[str]], seed: int, tokens: int) -> list[str]:
    start = seed % len(sentences)
    round_trip = list(chain.from_iterable(sentences[start:] + sentences[:start]))
    times = tokens // len(round_trip) + 1
    found = list(islice(chain.from_iterable([round_trip] * times), tokens))
    if found:
        found[0] = found[0].lstrip(" ")
    return found
