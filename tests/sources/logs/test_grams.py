"""The quick search against the plain one: whatever the words, the text and the place."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from twospeed.sources.logs.grams import Grams
from twospeed.sources.logs.registry import marks_by_sign

FEW_LETTERS = st.text("ab \n", max_size=200).map(str.encode)
WORDS = st.sets(st.text("ab ", min_size=4, max_size=12).map(str.encode), min_size=1, max_size=6)
KNOWN = sorted({word for marks in marks_by_sign().values() for word in marks} | {*marks_by_sign()})


@given(WORDS, FEW_LETTERS)
@example({b"aaaa"}, b"aaaa")
@example({b"abab"}, b"b")
def test_every_word_is_found_and_no_other(words: set[bytes], text: bytes):
    assert Grams(words).words_in(text) == {word for word in words if word in text}


@given(st.sampled_from(KNOWN), st.integers(0, 40), st.binary(max_size=9))
def test_a_word_has_a_place_within_it(word: bytes, before: int, after: bytes):
    text = b"\n" * before + word + after
    places = Grams(KNOWN).places(text).tolist()
    assert places == sorted(places)
    assert any(before <= place < before + len(word) for place in places)


@given(st.binary(max_size=300))
def test_few_places_only_look_like_a_word(text: bytes):
    """A word of up to eight bytes stands at each of its places, but for the end of the text."""
    short = [word for word in KNOWN if len(word) <= 8]
    for place in Grams(short).places(text).tolist():
        assert place + 8 > len(text) or any(text.startswith(word, place) for word in short)
