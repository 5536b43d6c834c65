"""Keys never get into a report; what a cure needs stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.sources.machine.command_line import without_secrets

KEY = "S3cretS3cretS3cretS3cret"


@pytest.mark.parametrize(
    "words",
    [
        ["llama-server", "--api-key", KEY, "-c", "4096"],
        ["llama-server", f"--api-key={KEY}"],
        ["llama-server", f"--api_key={KEY}"],
        ["vllm", "serve", "--api-key", "another", KEY, "--port", "1"],
        ["serve", "--hf-token", KEY],
        ["koboldcpp", "--adminpassword", KEY],
        ["serve", "--API-KEY", KEY],
        ["env", f"OPENAI_API_KEY={KEY}", "serve"],
        ["docker", "run", "-e", f"HF_TOKEN={KEY}", "image"],
        ["sh", "-c", f"exec llama-server --api-key {KEY} -c 4096"],
        ["bash", "-c", f"HF_TOKEN={KEY} serve"],
        ["serve", "--header", f"Authorization: Bearer {KEY}"],
        ["serve", "--upstream", f"https://me:{KEY}@example.org/v1"],
        ["serve", f"sk-{KEY}"],
        ["serve", "--config", f'{{"api_key": "{KEY}", "n": "8"}}'],
        ["serve", "--token", f"-{KEY}"],
    ],
    ids=lambda words: " ".join(words[:3]).replace(KEY, "KEY"),
)
def test_a_key_is_blanked(words):
    shown = without_secrets(words)
    assert KEY not in " ".join(shown)
    assert "***" in " ".join(shown)
    assert shown[0] == words[0]


@pytest.mark.parametrize(
    "words",
    [
        ["llama-server", "-m", "/models/a b.gguf", "-c", "4096", "--cache-type-k", "q8_0"],
        ["llama-server", "--api-key-file", "/etc/keys", "--override-kv", "a=int:1"],
        ["vllm", "serve", "hf-internal-testing/tiny-model", "--max-num-batched-tokens", "2048"],
        ["vllm", "serve", "--tokenizer", "x", "--tokenizer-mode", "auto", "--kv-cache-dtype=fp8"],
        ["serve", '{"n": "8"}', "http://127.0.0.1:8080/v1", "--skip-tokenizer-init", ""],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_settings_stay_as_they_are(words):
    assert without_secrets(words) == tuple(words)


def test_what_follows_the_secret_is_seen_again():
    shown = without_secrets(["s", "--token", "a", "b", "--threads", "4", "--api-key=c", "-m", "x"])
    assert shown == ("s", "--token", "***", "***", "--threads", "4", "--api-key=***", "-m", "x")


@given(
    st.lists(st.sampled_from(["--api-key", "--token", "-c", "4096", "-m", "x", "--port=1"])),
    st.sampled_from(["--api-key", "--hf-token", "--password", "--admin_secret"]),
    st.booleans(),
)
def test_a_key_is_blanked_wherever_it_stands(before, flag, joined):
    named = [f"{flag}={KEY}"] if joined else [flag, KEY]
    assert KEY not in " ".join(without_secrets([*before, *named, "--last"]))
