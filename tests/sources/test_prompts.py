from __future__ import annotations

import asyncio
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.runtimes.runtime import Answer, Ask, Runtime
from twospeed.sources.live.prompts import CLOSING, Prompt, PromptWriter
from twospeed.sources.live.sizing import PromptSizer


def pieces(text: str, letters_per_token: int) -> int:
    """Tokens of a made-up tokenizer: long words cost several."""
    return sum(math.ceil(len(word) / letters_per_token) for word in text.split())


def test_no_two_prompts_share_a_beginning():
    writer = PromptWriter(7)
    texts = [writer.write(60).text for _ in range(200)]
    assert len({text.split()[0] for text in texts}) == 200


def test_openings_stay_unique_when_first_words_run_out():
    writer = PromptWriter(7)
    openings = [writer.write(60).opening for _ in range(600)]
    assert len(set(openings)) == 600


def test_prompts_are_repeatable_with_a_seed_and_new_without():
    assert PromptWriter(3).write(500).text == PromptWriter(3).write(500).text
    assert PromptWriter().write(500).text != PromptWriter().write(500).text


def test_a_prompt_reads_like_a_story_and_invites_a_long_answer():
    text = PromptWriter(1).write(400).text
    assert text.endswith(CLOSING)
    assert "at length" in CLOSING
    assert text.count(". ") > 10
    assert text.isascii()


def test_resizing_keeps_the_beginning():
    writer = PromptWriter(1)
    prompt = writer.write(400)
    longer, shorter = writer.resized(prompt, prompt.words + 50), writer.resized(prompt, 100)
    assert longer.words == prompt.words + 50
    assert shorter.words == 100
    middle = prompt.text.removesuffix(CLOSING)[:-10]
    assert longer.text.startswith(middle[: len(middle) - 10])
    assert prompt.text.startswith(shorter.text.removesuffix(CLOSING)[:-10])
    assert longer.salt == prompt.salt


def test_salts_differ():
    writer = PromptWriter(1)
    assert len({writer.write(50).salt for _ in range(100)}) == 100


def test_the_text_is_not_shown_by_accident():
    prompt = PromptWriter(1).write(100)
    assert prompt.text not in repr(prompt)
    assert prompt.opening not in repr(prompt)


def test_the_first_guess_is_of_the_right_order():
    prompt = PromptWriter(1).write(1000)
    assert prompt.words == round((1000 - 20) / 1.35)


def test_a_tiny_wish_still_gives_a_prompt():
    prompt = PromptWriter(1).write(1)
    assert prompt.text.endswith(CLOSING)
    assert prompt.words < 40


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    letters_per_token=st.integers(2, 20),
    template=st.integers(0, 60),
    lengths=st.lists(st.integers(300, 6000), min_size=3, max_size=6),
)
def test_two_counts_suffice_for_three_percent(
    seed: int, letters_per_token: int, template: int, lengths: list[int]
):
    writer = PromptWriter(seed)
    for number, wanted in enumerate([400, 2000, *lengths]):
        prompt = writer.write(wanted)
        got = template + pieces(prompt.text, letters_per_token)
        writer.learn(prompt.words, got)
        if number >= 2:
            # The 20 are for tokenizers finer than any real one, on short prompts.
            assert got == pytest.approx(wanted, abs=max(20, 0.03 * wanted))


def test_the_fit_finds_template_and_rate():
    writer = PromptWriter(1)
    for words in (100, 400, 1600, 6400):
        writer.learn(words, 37 + 2 * words)
    assert writer.rate == pytest.approx(2, rel=1e-3)
    assert writer.template_tokens == pytest.approx(37, abs=1)


class Counting(Runtime):
    """A runtime whose tokenizer can be asked."""

    def tokenize(self, model, prompt):
        return Ask("/tokenize", "POST", {"content": prompt})

    def token_count(self, answer):
        return answer.json


def sized(wanted: list[int], *, template: int, count, runtime: Runtime) -> tuple[list[int], int]:
    """Lengths as a server counts them, and how often its tokenizer was asked."""
    asked = itertools.count()

    async def ask(question: Ask) -> Answer:
        next(asked)
        return Answer(status=200, json=count(question.body["content"]))

    async def main():
        sizer = PromptSizer(PromptWriter(5), runtime, None)
        lengths = []
        for tokens in wanted:
            prompt = await sizer.prompt_of(tokens, ask)
            lengths.append(template + pieces(prompt.text, 3))
            sizer.learn(prompt, lengths[-1])
        return lengths

    return asyncio.run(main()), next(asked)


def test_a_tokenizer_makes_lengths_exact_once_the_template_is_known():
    lengths, asked = sized(
        [500, 300, 4000, 120], template=47, count=lambda text: pieces(text, 3), runtime=Counting()
    )
    assert lengths[0] == pytest.approx(500, abs=40)
    assert lengths[1:] == [pytest.approx(n, abs=max(4, 0.01 * n)) for n in (300, 4000, 120)]
    assert asked <= 16


def test_a_tokenizer_that_does_not_count_is_asked_once():
    _, asked = sized([500, 300, 4000], template=47, count=lambda _: None, runtime=Counting())
    assert asked == 1


def test_without_a_tokenizer_nothing_is_asked():
    lengths, asked = sized([500, 2000, 3000], template=47, count=None, runtime=Runtime())
    assert asked == 0
    assert lengths[2] == pytest.approx(3000, rel=0.03)


def test_nothing_is_learned_from_a_text_of_the_users_own():
    writer = PromptWriter(1)
    sizer = PromptSizer(writer, Runtime(), None)
    sizer.learn(Prompt.given("one two three"), 4000)
    assert writer.rate == 1.35


@pytest.mark.parametrize("tokens", [1, 2, 10**6])
def test_a_tokenizer_that_lies_does_not_blow_the_prompt_up(tokens: int):
    lengths, _ = sized([500, 1000], template=0, count=lambda _: tokens, runtime=Counting())
    assert max(lengths) < 10_000


def shared_start(one: str, other: str) -> int:
    """Words that two texts share from the start."""
    pairs = zip(one.split(), other.split(), strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


@pytest.mark.parametrize(
    ("change", "least", "most"),
    [("end_edited", 0.85, 0.97), ("middle_edited", 0.48, 0.55), ("start_edited", 0.0, 0.02)],
)
def test_an_edit_keeps_what_comes_before_it(change, least, most):
    writer = PromptWriter(1)
    prompt = writer.write(600)
    edited = writer.changed(prompt, "", change)
    assert edited.words == prompt.words == len(edited.text.split())
    assert least <= shared_start(prompt.text, edited.text) / prompt.words <= most


@pytest.mark.parametrize("change", [None, "same", "returned"])
def test_the_same_prompt_again(change):
    writer = PromptWriter(1)
    prompt = writer.write(600)
    assert writer.changed(prompt, "an answer", change) == prompt


def test_a_turn_more_keeps_the_conversation():
    writer = PromptWriter(1)
    prompt = writer.write(600)
    next_turn = writer.changed(prompt, "an answer", "appended")
    assert next_turn.earlier == ((prompt.text, "an answer"),)
    assert next_turn.text.endswith(CLOSING)
    assert 20 < len(next_turn.text.split()) < 100
    third = writer.changed(next_turn, "another", "appended")
    assert third.earlier == (*next_turn.earlier, (next_turn.text, "another"))
