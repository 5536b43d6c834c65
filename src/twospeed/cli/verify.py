"""`twospeed verify`: did a change help, phase by phase, and was the prediction right?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path

from twospeed.cli.measuring.connection_options import add_connection_arguments
from twospeed.cli.terminal.argument_types import positive_float, positive_int

EPILOGUE = """\
examples:
  twospeed verify :8080 :8081                                  two endpoints
  twospeed verify --engine cache-type-k=f16 --engine cache-type-k=q8_0,flash-attn=on
  twospeed verify --command 'llama-server -m m.gguf -ub 512 --port {port}' \\
                  --command 'llama-server -m m.gguf -ub 2048 --port {port}'
  twospeed verify :8080 --request cache_prompt=false --request cache_prompt=true
  twospeed diagnose :8080 --save before.jsonl     ... change something, restart ...
  twospeed verify --before before.jsonl :8080 --cure 'larger batch'
  twospeed verify :8080 :8081 --fail-on slower:5% --junit verify.xml
  twospeed verify --ledger                        how often predictions held

All ratios are seconds of the second over seconds of the first: below 1 the
second one is faster. Give two of URL, --engine and --command, in any mixture.
"""


class Verify:
    """Compares two configurations by interleaved pairs, and scores predictions."""

    name = "verify"
    summary = "Compare two configurations, phase by phase, by interleaved pairs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE
        parser.formatter_class = RawDescriptionHelpFormatter
        _arm_arguments(parser)
        _before_arguments(parser)
        _request_arguments(parser)
        add_connection_arguments(parser)
        _output_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Run the experiment and report it."""
        # Here and not above: `--help` must not wait for numpy and asyncio.
        from twospeed.cli.verifying.conduct import verified  # noqa: PLC0415

        return verified(args)


def _arm_arguments(parser: ArgumentParser) -> None:
    arms = parser.add_argument_group("what to compare")
    arms.add_argument("urls", nargs="*", metavar="URL", help="endpoint, for example :8080")
    arms.add_argument(
        "--engine",
        action="append",
        default=[],
        metavar="SETTINGS",
        help="settings of the embedded engine, such as threads=2,flash-attn=on (twice for two)",
    )
    arms.add_argument(
        "--embedded", action="store_true", help="the embedded engine with its own settings"
    )
    arms.add_argument(
        "--command",
        dest="commands",
        action="append",
        default=[],
        metavar="LINE",
        help="a server that twospeed starts and stops; {port} stands for its port (repeatable)",
    )
    arms.add_argument(
        "--request",
        dest="requests",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="with one URL: request fields of the first and of the second arm (twice)",
    )
    arms.add_argument("-m", "--model", help="model name, or model file of the embedded engine")
    arms.add_argument(
        "--api-key",
        default=None,
        help="sent as bearer token (default: OPENAI_API_KEY when URL is given)",
    )
    arms.add_argument("--runtime", metavar="ID", help="take the endpoints for this runtime")


def _before_arguments(parser: ArgumentParser) -> None:
    before = parser.add_argument_group("against an earlier diagnosis (weaker than pairs)")
    before.add_argument(
        "--before", type=Path, metavar="FILE", help="a run of diagnose --save; now give one arm"
    )
    before.add_argument(
        "--cure",
        metavar="NAME",
        help="the change that was made: scores what that diagnosis predicted of it",
    )
    before.add_argument(
        "--ledger", action="store_true", help="show how often predictions held, by change"
    )


def _request_arguments(parser: ArgumentParser) -> None:
    how = parser.add_argument_group("your request and its cost")
    how.add_argument("--prompt-tokens", type=positive_int, metavar="N", help="default 2000")
    how.add_argument("--output-tokens", type=positive_int, metavar="N", help="default 300")
    how.add_argument(
        "--from", dest="from_file", type=Path, metavar="FILE", help="workload of a saved run"
    )
    how.add_argument(
        "--budget", type=positive_float, default=60.0, metavar="SECONDS", help="default 60"
    )
    how.add_argument(
        "--starts",
        choices=("auto", "each", "once"),
        default="auto",
        help="start servers of --engine and --command anew for each pair, beside the budget, or "
        "once (auto: for each pair unless starting takes far longer than measuring)",
    )
    how.add_argument("--seed", type=int, default=0, metavar="N", help="of the order (default 0)")
    how.add_argument(
        "--timeout",
        type=positive_float,
        default=300.0,
        metavar="SECONDS",
        help="longest silence of a server, model load included (default 300)",
    )


def _output_arguments(parser: ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    form = out.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object (twospeed.verdict/1)")
    form.add_argument("--markdown", action="store_true", help="fit for an issue or a build summary")
    out.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML there")
    out.add_argument("-o", "--out", type=Path, metavar="FILE", help="write there, not to stdout")
    out.add_argument(
        "--save",
        type=Path,
        metavar="FILE",
        help="keep every record; two arms get FILE with -1 and -2 before its ending",
    )
    out.add_argument("--no-color", action="store_true", help="also: NO_COLOR=1")
    out.add_argument(
        "--fail-on",
        metavar="slower[:P%]",
        help="exit 1 if anything is shown slower (by more than P per cent)",
    )


COMMAND = Verify()
