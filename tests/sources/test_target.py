from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twospeed.records.errors import UsageError
from twospeed.sources.live.target import Target


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("8080", "http://127.0.0.1:8080"),
        (":8080", "http://127.0.0.1:8080"),
        ("localhost:8080", "http://127.0.0.1:8080"),
        ("LOCALHOST:8080", "http://127.0.0.1:8080"),
        ("localhost:8080/v1", "http://127.0.0.1:8080"),
        ("127.0.0.1", "http://127.0.0.1"),
        ("myhost:1234", "http://myhost:1234"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("::1", "http://[::1]"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://[fe80::1%eth0]:8080", "http://[fe80::1%25eth0]:8080"),
        ("http://[fe80::1%25eth0]:8080/v1", "http://[fe80::1%25eth0]:8080"),
        ("HTTPS://Example.COM:443/v1/", "https://example.com"),
        ("https://example.com:8443", "https://example.com:8443"),
        ("http://a.b/v1/chat/completions", "http://a.b"),
        ("http://a.b/gateway/v1/chat/completions/", "http://a.b/gateway"),
        ("http://a.b/api", "http://a.b"),
        ("http://a.b/api/chat", "http://a.b"),
        ("http://a.b/api/v1", "http://a.b"),
        ("http://a.b/openai/", "http://a.b/openai"),
        ("  http://a.b:81  ", "http://a.b:81"),
        ("http://bücher.example", "http://xn--bcher-kva.example"),
    ],
)
def test_what_people_type(typed: str, url: str):
    assert Target.parse(typed).url == url


@pytest.mark.parametrize(
    ("typed", "part"),
    [
        ("", "not an address"),
        ("http://", "names no host"),
        ("ftp://host", "neither http"),
        ("ws://host:1", "neither http"),
        ("http://host:99999", "port"),
        ("http://host:0", "port"),
        ("70000", "port"),
        ("http://host:abc", "port"),
        ("http://ho st", "not an address"),
        ("http://host\r\nX: y", "not an address"),
        ("http://[::1", "not an address"),
        ("http://host/?a=b", "after ?"),
        ("http://-\u2603\u2603-..x", "names no host"),
        ("http://300.1.1.1", "names no host"),
        ("http://[fe80::1%25]", "names no host"),
        ("http://[fe80::1%25a/b]", "an address"),
    ],
)
def test_what_cannot_be_an_address(typed: str, part: str):
    with pytest.raises(UsageError, match=part.replace("?", r"\?")) as caught:
        Target.parse(typed)
    assert caught.value.hint


def test_credentials_are_refused_without_repeating_them():
    with pytest.raises(UsageError) as caught:
        Target.parse("http://user:secret@host")
    assert "secret" not in str(caught.value)
    assert "--api-key" in caught.value.hint


def test_a_zone_is_for_this_machine_only():
    target = Target.parse("https://[fe80::1%25eth0]")
    assert target.host == "fe80::1%eth0"
    assert target.authority == "[fe80::1]"
    assert target.bare_host == "fe80::1"
    assert target.host_and_port == "[fe80::1]:443"


@pytest.mark.parametrize(
    ("typed", "loopback"),
    [
        ("http://127.8.9.1", True),
        ("http://[::1]", True),
        ("http://[::ffff:127.0.0.1]", True),
        ("http://localhost", True),
        ("http://192.168.1.4", False),
        ("http://example.com", False),
    ],
)
def test_loopback(typed: str, loopback: bool):
    assert Target.parse(typed).is_loopback is loopback


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_a_usage_error(text: str):
    try:
        target = Target.parse(text)
    except UsageError:
        return
    assert Target.parse(target.url) == target
    assert target.authority.isascii()
    assert target.path_of("/x").isascii()


@given(
    st.sampled_from(["http://", "https://", ""]),
    st.sampled_from(["h", "[::1]", "127.0.0.1", "localhost"]),
    st.integers(1, 65535),
    st.sampled_from(["", "/", "/v1", "/v1/", "/base", "/base/v1/models", "/api/generate"]),
)
def test_host_and_port_survive(scheme: str, host: str, port: int, path: str):
    target = Target.parse(f"{scheme}{host}:{port}{path}")
    assert target.port == port
    assert target.base_path == ("/base" if "base" in path else "")
    assert target.scheme == (scheme.rstrip(":/") or "http")
