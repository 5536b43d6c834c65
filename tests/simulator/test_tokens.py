from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twospeed.simulator.answers import answer_pieces, reasoning_pieces
from twospeed.simulator.tokens import (
    ALL_IDS,
    TEMPLATE_HEAD_TOKENS,
    encode,
    ids_of,
    pieces,
    render_chat,
    text_of,
)


@settings(deadline=None)
@given(st.text())
def test_pieces_are_the_text_again(text):
    assert "".join(pieces(text)) == text


@settings(deadline=None)
@given(st.text(min_size=1))
def test_ids_are_in_the_vocabulary(text):
    assert all(0 <= token < ALL_IDS for token in encode(text))


def test_words_are_one_token_each():
    assert pieces("Hello big world, 12345 times!") == [
        "Hello",
        " big",
        " world",
        ",",
        " ",
        "123",
        "45",
        " times",
        "!",
    ]


@pytest.mark.parametrize("make", [answer_pieces, reasoning_pieces])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_said_counts_the_same_when_it_is_sent_back(make, seed):
    for tokens in (1, 2, 60, 700):
        said = make(seed, tokens)
        assert len(said) == tokens
        assert encode("".join(said)) == ids_of(said)


def test_short_answers_hold_characters_of_several_bytes():
    assert any(len(piece.encode()) > len(piece) for piece in answer_pieces(0, 8))


def test_chats_of_one_role_share_the_head_and_nothing_else():
    one, other = render_chat([("user", "Zebra one")]), render_chat([("user", "Apple two")])
    shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert shared == TEMPLATE_HEAD_TOKENS


def test_the_next_turn_begins_with_the_last_one_and_its_answer():
    said = answer_pieces(3, 20)
    first = render_chat([("user", "Hello")])
    second = render_chat([("user", "Hello"), ("assistant", "".join(said)), ("user", "Go on")])
    so_far = first + ids_of(said)
    assert second[: len(so_far)] == so_far


def test_tools_come_before_all_messages():
    plain, armed = render_chat([("user", "Hi")]), render_chat([("user", "Hi")], "a tool")
    assert len(armed) == len(plain) + len(encode("a tool")) + 4
    assert armed[: len(plain)] != plain


def test_contents_of_every_form():
    assert text_of(None) == ""
    assert text_of("a") == "a"
    assert text_of([{"type": "text", "text": "a"}, {"type": "image_url"}, "b"]) == "ab"
    assert text_of({"text": "a"}) is None


def test_tokens_are_kept_compactly():
    assert isinstance(encode("a b c"), array)
    assert encode("a b c").itemsize == 4
