"""How long a request takes that costs the server nothing: the way there and back."""

from __future__ import annotations

from collections.abc import Mapping

from twospeed.runtimes.runtime import Answer, Runtime
from twospeed.sources.live.channel import Channel
from twospeed.sources.live.time_limits import Limits

ROUND_TRIPS = 5
ROUND_TRIP_S = 2.0


def lightest_path(runtime: Runtime, answers: Mapping[str, Answer]) -> str:
    """The path with the shortest answer among those that identified the runtime."""
    paths = {ask.path for ask in runtime.identify if ask.method == "GET"}
    sizes = {p: len(a.body) for p, a in answers.items() if p in paths and a.status == 200}
    return min(sizes, key=lambda path: sizes[path], default="/v1/models")


async def fastest_round_trip_s(channel: Channel, path: str) -> float | None:
    """Fastest round trip of a trivial request over a warm connection, in seconds.

    Args:
        channel: way to the endpoint.
        path: of a GET request.

    Returns:
        The minimum of five, or None when the server answered none of them.
    """
    request = channel.access.request(path, method="GET")
    times_s = []
    for _ in range(ROUND_TRIPS):
        exchange = await channel.exchange(request, Limits.short(ROUND_TRIP_S))
        end_ns = exchange.reader.end_ns
        if exchange.failure is None and exchange.sent_ns is not None and end_ns is not None:
            times_s.append((end_ns - exchange.sent_ns) / 1e9)
    return min(times_s, default=None)
