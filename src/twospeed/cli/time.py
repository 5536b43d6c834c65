"""`twospeed time`: the bare stopwatch, one request or many at once, both phases, no diagnosis."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from twospeed.cli.measuring.connection_options import add_connection_arguments
from twospeed.cli.terminal.argument_types import (
    positive_int,
    timeout_argument,
)

EPILOGUE = """\
examples:
  twospeed time :8080                    one request, 2000 tokens in, 300 out
  twospeed time :8080 --prompt-tokens 500 --output-tokens 100 --requests 10
  twospeed time :8000 --concurrency 64 --requests 256 --json > load.json
  twospeed time :11434 --model qwen3:8b --prompt question.txt
  cat long.txt | twospeed time :8080 --prompt - --output-tokens 50

A TTFT marked < is an upper bound: its first read held several tokens, or the
answer came whole. Percentiles interpolate between the nearest two values; p90
needs 10 values, p99 needs 100.
"""


class Time:
    """Times requests to an endpoint, each as it completes, and sums them up."""

    name = "time"
    summary = "Time requests to a running model: first token, token gaps, both speeds."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE
        parser.formatter_class = RawDescriptionHelpFormatter
        _endpoint_arguments(parser)
        _load_arguments(parser)
        add_connection_arguments(parser)
        _output_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Send the requests and print what they took."""
        # Here and not above: `--help` must not wait for numpy and asyncio.
        from twospeed.cli.timing.stopwatch import timed  # noqa: PLC0415

        return timed(args)


def _endpoint_arguments(parser: ArgumentParser) -> None:
    where = parser.add_argument_group("what to time")
    where.add_argument("url", metavar="URL", help="endpoint, for example :8080")
    where.add_argument("-m", "--model", help="model name (default: the loaded or first one)")
    where.add_argument(
        "--api-key", default=None, help="sent as bearer token (default: OPENAI_API_KEY)"
    )
    where.add_argument("--runtime", metavar="ID", help="take the endpoint for this runtime")
    timeout_argument(where)


def _load_arguments(parser: ArgumentParser) -> None:
    load = parser.add_argument_group("what to send")
    prompt = load.add_mutually_exclusive_group()
    prompt.add_argument("--prompt", metavar="FILE", help="a text of your own; - for stdin")
    prompt.add_argument(
        "--prompt-tokens",
        type=positive_int,
        metavar="N",
        help="a made-up prompt of so many tokens for each request (default 2000)",
    )
    load.add_argument("--output-tokens", type=positive_int, metavar="N", help="default 300")
    load.add_argument(
        "--concurrency",
        type=positive_int,
        default=1,
        metavar="N",
        help="connections, each with one request at a time (default 1)",
    )
    load.add_argument(
        "--requests", type=positive_int, metavar="N", help="in all (default: one per connection)"
    )
    load.add_argument(
        "--start",
        choices=("together", "spread"),
        default="together",
        help="first requests at once (default), or spread over one second",
    )
    load.add_argument(
        "--no-stream", action="store_true", help="ask for whole answers: only their ends are seen"
    )
    load.add_argument(
        "--clock",
        choices=("kernel", "user"),
        help="stamps of the network stack (default on Linux), or of our own after each read",
    )


def _output_arguments(parser: ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="one JSON object (twospeed.timing/1)")
    out.add_argument("-o", "--out", type=Path, metavar="FILE", help="write there, not to stdout")
    out.add_argument("--save", type=Path, metavar="FILE", help="keep every record as it is made")
    out.add_argument("--no-color", action="store_true", help="also: NO_COLOR=1")


COMMAND = Time()
