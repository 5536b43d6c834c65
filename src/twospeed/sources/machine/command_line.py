"""Keys and tokens in a command line, which must not get into a report that is shared."""

from __future__ import annotations

import re
from collections.abc import Iterable

BLANK = "***"
SECRET = re.compile(
    r"password|passwd|secret|credential|api-?key|auth-?token|(?:^|-)(?:key|token|auth)(?:$|-)",
    re.IGNORECASE,
)
"""In the name of a flag or a variable, - and _ being the same: --api-key, --hf-token, HF_TOKEN."""
# A file with secrets, or a number of one, is none itself.
ONLY_NAMES_ONE = re.compile(r"-(?:file|path|env|id|type)$", re.IGNORECASE)
LOOKS_SECRET = re.compile(
    r"\b(?:sk-|hf_|ghp_|gsk_|nvapi-)[A-Za-z0-9_-]{16,}|\bbearer\s+\S+", re.IGNORECASE
)
USER_IN_ADDRESS = re.compile(r"(\w+://)[^/\s@]+@")
IN_JSON = re.compile(r'"([\w-]+)"\s*:\s*"[^"]*"')
SETTING = re.compile(r"^(-{0,2}[A-Za-z][\w-]*)=(?=.)", re.DOTALL)


def without_secrets(cmdline: Iterable[str]) -> tuple[str, ...]:
    """A command line with every key, token and password blanked.

    What follows a flag for secrets is blanked up to the next flag, since some take several. Rather
    a word too many than one too few.
    """
    words: list[str] = []
    blanking = just_named = False
    for word in cmdline:
        blanking = just_named or (blanking and not word.startswith("-"))
        is_flag = word.startswith("-") and "=" not in word and not blanking
        just_named = is_flag and _names_secret(word)
        words.append(BLANK if blanking else _cleaned(word))
    return tuple(words)


def _names_secret(name: str) -> bool:
    plain = name.replace("_", "-").lstrip("-")
    return bool(SECRET.search(plain)) and not ONLY_NAMES_ONE.search(plain)


def _cleaned(word: str) -> str:
    """One word: a setting with a secret name, a script in one word, or a text that looks secret."""
    setting = SETTING.match(word)
    if setting is not None and _names_secret(setting[1]):
        return f"{setting[1]}={BLANK}"
    word = USER_IN_ADDRESS.sub(rf"\1{BLANK}@", LOOKS_SECRET.sub(BLANK, word))
    if word.startswith(("{", "[")):
        return IN_JSON.sub(_json_setting, word)
    parts = word.split()
    return word if len(parts) < 2 else " ".join(without_secrets(parts))


def _json_setting(found: re.Match[str]) -> str:
    return f'"{found[1]}": "{BLANK}"' if _names_secret(found[1]) else found[0]
