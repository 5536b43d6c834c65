"""`twospeed simulate`: feel a machine before buying it, and ground truth for our own tests."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

EPILOGUE = """\
examples:
  twospeed simulate --prefill-tps 500 --decode-tps 20
  twospeed simulate --prefill-tps 60 --decode-tps 9 --speak ollama --load-s 6 --port 11434
  twospeed simulate --prefill-tps 2400 --decode-tps 73 --attention-half-depth 12000 --slots 4
  twospeed simulate --prefill-tps 500 --decode-tps 20 --fault buffered --truth truth.jsonl

faults:
  {faults}

Point a chat program at the printed address as an OpenAI-compatible (or Ollama) server; any key
will do. docs/simulator.md shows how.
"""
SPEAK = ("openai", "llama-server", "ollama", "vllm", "lmstudio", "mlx", "transformers")
FAULTS = (
    "buffered, early-role, role-only-first, progress, no-usage, crlf, pings, split-utf8,\n"
    "  garbage-json, error-mid-stream, stall, abrupt-close, silent-close, gzip, http10, html,\n"
    "  401, 404, 429, 500, 503-then-ready; NAME:N meets only the first N requests"
)


class Simulate:
    """Serves answers at the pace of a given machine."""

    name = "simulate"
    summary = "Serve an API that answers as fast as a given machine would."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE.format(faults=FAULTS)
        parser.formatter_class = RawDescriptionHelpFormatter
        _machine_arguments(parser)
        _server_arguments(parser)
        _trouble_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Serve until Ctrl-C, or until --duration or --max-requests is reached."""
        # Here and not above: `--help` must not wait for sockets and parsers.
        from twospeed.cli.simulating.service import serve  # noqa: PLC0415

        serve(args)
        return 0


def _machine_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("the machine")
    group.add_argument("--prefill-tps", type=_above_zero, required=True, metavar="TOK/S")
    group.add_argument("--decode-tps", type=_above_zero, required=True, metavar="TOK/S")
    group.add_argument(
        "--attention-half-depth",
        type=_above_zero,
        metavar="N",
        help="depth in tokens at which prefill is half as fast (default: never)",
    )
    group.add_argument(
        "--decode-half-depth",
        type=_above_zero,
        metavar="N",
        help="depth in tokens at which decode is half as fast (default: never)",
    )
    group.add_argument(
        "--load-s", type=_from_zero, default=0.0, metavar="S", help="load before the first request"
    )
    group.add_argument(
        "--unload-after-s",
        type=_above_zero,
        metavar="S",
        help="load again after so long without a request",
    )
    group.add_argument(
        "--shared-batch",
        type=_from_zero,
        default=0.0,
        metavar="F",
        help="every further stream adds this share to the time of a token (default 0)",
    )
    group.add_argument(
        "--draft-tokens",
        type=_count,
        default=0,
        metavar="N",
        help="speculative decoding: bursts of 1 to N+1 tokens at the same mean speed",
    )
    group.add_argument(
        "--draft-accepted",
        type=_part,
        default=0.5,
        metavar="F",
        help="part of the drafted tokens that is accepted (default 0.5)",
    )
    group.add_argument(
        "--jitter", type=_share, default=0.0, metavar="F", help="each step is off by up to F"
    )
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of the jitter")


def _server_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("the server")
    group.add_argument("--speak", choices=SPEAK, default="openai", help="(default: openai)")
    group.add_argument("--slots", type=_positive, default=1, metavar="N", help="(default 1)")
    group.add_argument(
        "--cache",
        choices=("on", "off", "evict"),
        help="prompt cache (default: on; off for transformers, as by itself); evict: another "
        "conversation takes the slot after each request",
    )
    group.add_argument(
        "--context", type=_positive, default=32_768, metavar="N", help="tokens (default 32768)"
    )
    group.add_argument(
        "--answer-tokens",
        type=_positive,
        default=128,
        metavar="N",
        help="length of an answer that the client does not limit (default 128)",
    )
    group.add_argument(
        "--reasoning-tokens", type=_count, default=0, metavar="N", help="think so long first"
    )
    group.add_argument(
        "--tokens-per-chunk",
        type=_positive,
        default=1,
        metavar="N",
        help="tokens in an event; the first one always comes alone",
    )
    group.add_argument(
        "--report-cached", action="store_true", help="vllm: as --enable-prompt-tokens-details"
    )
    group.add_argument(
        "--report-times", action="store_true", help="vllm: as --enable-per-request-metrics"
    )
    group.add_argument(
        "--gpu-part",
        type=_part,
        default=1.0,
        metavar="F",
        help="ollama: tells that this part of the model is in graphics memory (default 1); "
        "the speeds stay as given",
    )
    group.add_argument("--port", type=_port, default=8090, metavar="N", help="0: any free one")
    group.add_argument("--host", default="127.0.0.1", help="loopback only (default 127.0.0.1)")
    group.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="also answer under this name, such as host.docker.internal (repeatable)",
    )
    group.add_argument("--tls", nargs=2, type=Path, metavar=("CERT", "KEY"))


def _trouble_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("trouble and truth")
    group.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:N]", help="see below (repeatable)"
    )
    group.add_argument(
        "--stall-s", type=_above_zero, default=30.0, metavar="S", help="of the fault (default 30)"
    )
    group.add_argument(
        "--truth", type=Path, metavar="FILE", help="write the true times of each request there"
    )
    group.add_argument("--max-requests", type=_positive, metavar="N", help="end after so many")
    group.add_argument("--duration", type=_above_zero, metavar="S", help="end after so long")
    group.add_argument("--json", action="store_true", help="announce the address as JSON")


def _positive(text: str) -> int:
    return _whole(text, 1)


def _count(text: str) -> int:
    return _whole(text, 0)


def _port(text: str) -> int:
    return _whole(text, 0, 65_535)


def _whole(text: str, least: int, most: int = 10**9) -> int:
    value = int(text)
    if not least <= value <= most:
        raise ArgumentTypeError(f"must be between {least} and {most}")
    return value


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ArgumentTypeError("must be a number above 0")
    return value


def _from_zero(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError("must be a number from 0 up")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ArgumentTypeError("must be from 0 up to, but not including, 1")
    return value


def _part(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ArgumentTypeError("must be from 0 to 1")
    return value


COMMAND = Simulate()
