"""Unique prompts of a wanted length in tokens, sized by what the server counted before."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from twospeed.records.request_record import Change
from twospeed.sources.live.words import ADJECTIVES, LINKS, NOUNS, VERBS

# Before the first count: English prose in common words, and a chat template of the usual size.
FIRST_RATE = 1.35
FIRST_TEMPLATE_TOKENS = 20.0
# How far off those may be (one standard deviation); counts soon outweigh them.
RATE_DOUBT = 0.4
TEMPLATE_DOUBT = 30.0

CLOSING = (
    "Continue this story at length. Describe every person and every place in detail, and do not"
    " come to an end soon."
)
CLOSING_WORDS = len(CLOSING.split())
APPENDED_SENTENCES = 3
EDITED_WORDS = 6
# Kept steady along the text: fine tokenizers count letters more than words.
LETTERS_PER_WORD = 4.4


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; kept in memory only."""

    text: str = field(repr=False)
    words: int
    salt: str | None = None
    """Never used by another prompt, for runtimes that separate caches by a value."""
    seed: int = 0
    opening: str = field(default="", repr=False)
    """First words, which no other prompt has; empty for a text that the user gave."""
    earlier: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Turns before this one: what was asked, and what was answered."""

    @classmethod
    def given(cls, text: str) -> Prompt:
        """A text of the user's own: nothing about it is learned, nothing keeps it from a cache."""
        return cls(text, len(text.split()))


class PromptWriter:
    """Writes prompts that share no beginning, and learns how many tokens a word costs.

    The server's count is modelled as `template + rate · words`: least squares over all counts so
    far, held near the first guess while there are few.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.Random(seed)  # noqa: S311  (texts, not secrets)
        self._counts: list[tuple[int, int]] = []
        self._first_words: list[str] = []
        self.rate = FIRST_RATE
        self.template_tokens = FIRST_TEMPLATE_TOKENS

    def write(self, tokens: int) -> Prompt:
        """Write a new prompt of about so many tokens, chat template included.

        Args:
            tokens: wanted length; the shortest possible prompt has about 40 words.
        """
        return self._compose(self._opening(), self._random.getrandbits(64), self._words_for(tokens))

    def resized(self, prompt: Prompt, words: int) -> Prompt:
        """The same prompt with fewer or more words in its middle."""
        return self._compose(prompt.opening, prompt.seed, words)

    def changed(self, prompt: Prompt, answer: str, change: Change | None) -> Prompt:
        """An earlier prompt as the next request of an experiment sends it.

        Args:
            prompt: the earlier one.
            answer: what was answered to it.
            change: what to do to it; None, "same" and "returned" leave it as it is.
        """
        if change == "appended":
            earlier = (*prompt.earlier, (prompt.text, answer))
            text = " ".join(" ".join(_sentence(self._random)) for _ in range(APPENDED_SENTENCES))
            return replace(prompt, text=f"{text} {CLOSING}", earlier=earlier)
        if change == "start_edited":
            return replace(prompt, text=prompt.text.replace(prompt.opening, self._opening(), 1))
        words = prompt.text.split(" ")
        if change == "middle_edited":
            at = len(words) // 2
        elif change == "end_edited":
            at = max(len(words) - CLOSING_WORDS - EDITED_WORDS, 0)
        else:
            return prompt
        words[at : at + EDITED_WORDS] = _sentence(self._random)[:EDITED_WORDS]
        return replace(prompt, text=" ".join(words))

    def learn(self, words: int, tokens: int) -> None:
        """Take in that the server counted so many tokens for a prompt of so many words."""
        self._counts.append((words, tokens))
        self._fit()

    def _words_for(self, tokens: int) -> int:
        return round((tokens - self.template_tokens) / self.rate)

    def _fit(self) -> None:
        """Weighted least squares with the first guess as two more observations."""
        at, bt = 1 / TEMPLATE_DOUBT**2, 1 / RATE_DOUBT**2
        s_1, s_w, s_ww = at, 0.0, bt
        s_t, s_wt = at * FIRST_TEMPLATE_TOKENS, bt * FIRST_RATE
        for words, tokens in self._counts:
            # Word choice makes a count wander by a few tokens and about half a percent.
            weight = 1 / (2.0 + 0.005 * tokens) ** 2
            s_1 += weight
            s_w += weight * words
            s_ww += weight * words * words
            s_t += weight * tokens
            s_wt += weight * words * tokens
        determinant = s_1 * s_ww - s_w * s_w
        self.template_tokens = (s_t * s_ww - s_wt * s_w) / determinant
        self.rate = max(0.2, (s_wt * s_1 - s_t * s_w) / determinant)

    def _opening(self) -> str:
        """First words of a prompt: no two prompts of this writer have them."""
        if not self._first_words:
            self._first_words = [*NOUNS, *ADJECTIVES]
            self._random.shuffle(self._first_words)
        number = self._random.randrange(100_000, 1_000_000)
        return f"{self._first_words.pop().capitalize()} {number} is the title of this story."

    def _compose(self, opening: str, seed: int, words: int) -> Prompt:
        """Text as a function of opening, seed and length, so that resizing keeps its beginning."""
        chooser = random.Random(seed)  # noqa: S311
        body: list[str] = []
        wanted = max(words, 0) - len(opening.split()) - CLOSING_WORDS
        letters = 0
        while len(body) < wanted:
            sentences = [_sentence(chooser) for _ in range(4)]
            due = LETTERS_PER_WORD * (len(body) + len(sentences[0])) - letters
            nearest = min(sentences, key=lambda words: abs(_letters(words) - due))
            letters += _letters(nearest)
            body += nearest
        del body[max(wanted, 0) :]
        if body:
            body[-1] = body[-1].rstrip(".,") + "."
        text = " ".join([opening, *body, CLOSING])
        salt = f"{seed:016x}"
        return Prompt(text, len(text.split()), salt, seed, opening)


def _letters(words: list[str]) -> int:
    return sum(map(len, words))


def _sentence(chooser: random.Random) -> list[str]:
    """Thirteen or fourteen words; the steady shape keeps tokens per word steady."""
    pick = chooser.choice
    words = ["The", pick(ADJECTIVES), pick(NOUNS), pick(VERBS), "the", pick(NOUNS), pick(LINKS)]
    words += ["the", pick(ADJECTIVES), pick(NOUNS) + ",", "and"]
    return [*words, *pick((["they"], ["then", "we"])), pick(VERBS), "it."]
