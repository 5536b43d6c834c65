from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.simulator.cache import PromptCache, common_prefix


def tokens(*values: int) -> array:
    return array("I", values)


def sequence(start: int, length: int, head: int = 4) -> array:
    """A conversation of its own behind a shared head."""
    return array("I", [*range(head), *range(1000 * start, 1000 * start + length - head)])


def use(cache: PromptCache, prompt: array, salt: str = "", at_ns: int = 0) -> int:
    slot, cached = cache.take(prompt, salt)
    cache.give_back(slot, prompt, at_ns)
    return cached


@given(st.lists(st.integers(0, 2), max_size=700), st.lists(st.integers(0, 2), max_size=700))
def test_common_prefix_is_that_of_a_naive_count(one, other):
    pairs = zip(one, other, strict=False)
    shorter = min(len(one), len(other))
    naive = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    assert common_prefix(array("I", one), array("I", other)) == naive


def test_a_long_common_prefix_across_blocks():
    one = array("I", range(1000))
    other = array("I", [*range(777), 5, *range(778, 1000)])
    assert common_prefix(one, other) == 777


def test_a_full_hit_leaves_one_token():
    cache = PromptCache(1)
    prompt = sequence(1, 100)
    assert [use(cache, prompt), use(cache, prompt)] == [0, 99]


def test_another_conversation_shares_only_the_head():
    cache = PromptCache(1)
    use(cache, sequence(1, 100))
    assert use(cache, sequence(2, 100)) == 4


def test_conversations_in_turn_are_all_kept_when_on():
    cache = PromptCache(1, "on")
    found = [use(cache, sequence(number, 100), at_ns=number) for number in (1, 2, 1, 2, 1)]
    assert found == [0, 4, 99, 99, 99]


def test_a_conversation_that_grows_reuses_all_of_it():
    cache = PromptCache(1)
    use(cache, sequence(1, 100))
    assert use(cache, sequence(1, 150)) == 100


def test_a_changed_beginning_loses_everything():
    cache = PromptCache(1)
    use(cache, sequence(1, 100))
    assert use(cache, tokens(9, *sequence(1, 100))) == 0


def test_a_changed_middle_keeps_what_is_before():
    cache = PromptCache(1)
    use(cache, sequence(1, 100))
    changed = sequence(1, 100)
    changed[60] = 7
    assert use(cache, changed) == 60


def test_evicted_slots_keep_only_the_head():
    cache = PromptCache(1, "evict")
    prompt = sequence(1, 100)
    assert [use(cache, prompt), use(cache, prompt), use(cache, prompt)] == [0, 4, 4]


def test_off_reuses_nothing():
    cache = PromptCache(2, "off")
    prompt = sequence(1, 100)
    assert [use(cache, prompt), use(cache, prompt)] == [0, 0]


def test_a_request_may_refuse_reuse_and_is_cached_afterwards():
    cache = PromptCache(1)
    prompt = sequence(1, 100)
    use(cache, prompt)
    slot, cached = cache.take(prompt, reuse=False)
    cache.give_back(slot, prompt, 1)
    assert cached == 0
    assert use(cache, prompt) == 99


def test_salts_separate():
    cache = PromptCache(1)
    prompt = sequence(1, 100)
    use(cache, prompt, "a")
    assert use(cache, prompt, "b") == 0
    assert use(cache, prompt, "a") == 99


def test_blocks_round_down():
    cache = PromptCache(1, block_tokens=16)
    prompt = sequence(1, 97)
    use(cache, prompt)
    assert use(cache, prompt) == 96
    assert use(cache, prompt[:96]) == 80  # the last token is never reused


def test_a_conversation_gets_its_own_slot_again():
    cache = PromptCache(3)
    first, _ = cache.take(sequence(1, 100))
    second, _ = cache.take(sequence(2, 100))
    cache.give_back(first, sequence(1, 100), 10)
    cache.give_back(second, sequence(2, 100), 20)
    again, _ = cache.take(sequence(2, 120))
    assert again is second


def test_a_new_conversation_takes_the_slot_that_was_free_longest():
    cache = PromptCache(2)
    first, _ = cache.take(sequence(1, 100))
    second, _ = cache.take(sequence(2, 100))
    cache.give_back(second, sequence(2, 100), 10)
    cache.give_back(first, sequence(1, 100), 20)
    assert cache.take(sequence(3, 100))[0] is second


def test_nothing_is_given_when_all_are_busy():
    cache = PromptCache(1)
    cache.take(sequence(1, 10))
    with pytest.raises(ValueError):
        cache.take(sequence(2, 10))


def test_clearing_forgets_slots_and_what_was_moved_out():
    cache = PromptCache(1)
    use(cache, sequence(1, 100))
    use(cache, sequence(2, 100))
    cache.clear()
    assert use(cache, sequence(1, 100)) == 0
