from __future__ import annotations

import asyncio
import socket

import pytest
from tiny_server import MODELS, Act, TinyServer, answer, models

from twospeed.sources.live import discovery
from twospeed.sources.live.discovery import Found, find_local

LLAMA = "Server: llama.cpp"


def found_on(routes, *, every=None, environment=None) -> tuple[int, list[Found]]:
    """What is found on the port of one scripted server; other listeners of this machine aside."""

    async def main():
        async with TinyServer(routes, every=every) as server:
            where = {} if environment is None else environment(server)
            ports = () if environment else (server.port,)
            found = await find_local(ports, environment=where)
            return server.port, [f for f in found if f.url.endswith(f":{server.port}")]

    return asyncio.run(main())


def test_a_runtime_is_found_with_its_model():
    port, found = found_on({MODELS: models("nomic-embed-text", "tiny")})
    assert found == [Found(url=f"http://127.0.0.1:{port}", runtime_id="openai", model="tiny")]


def test_a_loading_server_is_found_as_such():
    loading = answer({"error": {"code": 503, "message": "Loading model"}}, 503, LLAMA)
    _, found = found_on(dict.fromkeys((MODELS, "/health", "/props"), loading))
    assert [(f.runtime_id, f.model, f.loading) for f in found] == [("llama-server", None, True)]


@pytest.mark.parametrize(
    "every",
    [
        [Act.HANG],
        [Act.CLOSE],
        [b"220 mail ready\r\n", Act.HANG],
        [*answer(b"<html>hello</html>"), Act.CLOSE],
        [*answer({"name": "some other JSON service"}), Act.CLOSE],
    ],
)
def test_other_services_are_passed_over(every):
    assert found_on({}, every=every)[1] == []


def test_a_silent_listener_costs_under_a_second():
    async def main():
        async with TinyServer({}, every=[Act.HANG]) as server:
            loop = asyncio.get_running_loop()
            before_s = loop.time()
            await find_local([server.port], environment={})
            return loop.time() - before_s

    assert asyncio.run(main()) < 2, "0.3 s for the first question, and room for a busy machine"


@pytest.mark.parametrize(
    ("variable", "form"),
    [
        ("OLLAMA_HOST", "127.0.0.1:{port}"),
        ("OLLAMA_HOST", "0.0.0.0:{port}"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:{port}/v1"),
    ],
)
def test_addresses_in_the_environment_are_looked_at(variable: str, form: str):
    port, found = found_on(
        {MODELS: models("tiny")},
        environment=lambda server: {variable: form.format(port=server.port)},
    )
    assert [f.url for f in found] == [f"http://127.0.0.1:{port}"]


@pytest.mark.parametrize(
    ("environment", "urls"),
    [
        ({}, []),
        ({"OPENAI_BASE_URL": "https://api.example.com/v1"}, []),
        ({"OLLAMA_HOST": "not an address"}, []),
        ({"OLLAMA_HOST": "127.0.0.1"}, ["http://127.0.0.1:11434"]),
        ({"OLLAMA_HOST": "127.0.0.1:80"}, ["http://127.0.0.1"]),
        ({"OLLAMA_HOST": "192.168.1.9:11434"}, []),
    ],
)
def test_only_loopback_addresses_of_the_environment_count(environment, urls):
    assert [target.url for target in discovery._named_targets(environment)] == urls


def test_one_server_on_both_loopback_addresses_is_one_find():
    async def main():
        async with TinyServer({MODELS: models("tiny")}) as four:
            six = await asyncio.start_server(four._serve, "::1", four.port)
            try:
                return four.port, await find_local([four.port], environment={})
            finally:
                six.close()

    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    port, found = asyncio.run(main())
    assert [f.url for f in found if f.url.endswith(f":{port}")] == [f"http://127.0.0.1:{port}"]
