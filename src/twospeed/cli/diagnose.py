"""`twospeed diagnose`: the main job, from a URL to a verdict."""

from __future__ import annotations

import os
from argparse import (
    ArgumentParser,
    BooleanOptionalAction,
    Namespace,
    RawDescriptionHelpFormatter,
)
from pathlib import Path

from twospeed.cli.measuring.connection_options import add_connection_arguments
from twospeed.cli.terminal.argument_types import (
    fail_on_argument,
    positive_float,
    question_arguments,
    request_arguments,
    timeout_argument,
)

EPILOGUE = """\
examples:
  twospeed diagnose                            the runtime found on this machine
  twospeed diagnose http://127.0.0.1:11434 --model qwen3:8b
  twospeed diagnose :8080 --prompt-tokens 8000 --output-tokens 400
  twospeed diagnose --embedded --engine threads=2 --engine ubatch-size=64
  twospeed diagnose :8080 --save run.jsonl --log server.log
  twospeed diagnose :8080 --request n_probs=20,temperature=0
  twospeed diagnose --from run.jsonl --wait-goal 1 --markdown
  twospeed diagnose --from run.jsonl --what-if prompt=0.5,cache=on
  twospeed diagnose --from run.jsonl --remote-ttft 0.8 --remote-tps 60
"""


class Diagnose:
    """Finds or takes an endpoint, measures both phases, prints the verdict."""

    name = "diagnose"
    summary = "Measure both phases of a running model and say which one is slow."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.epilog = EPILOGUE
        parser.formatter_class = RawDescriptionHelpFormatter
        _where_arguments(parser)
        add_connection_arguments(parser)
        request_arguments(parser, prompt="default 2000", output="default 300")
        _cost_arguments(parser)
        question_arguments(parser)
        _output_arguments(parser)

    def run(self, args: Namespace) -> int:
        """Measure or read, then report."""
        # Here and not above: `--help` must not wait for numpy and rich.
        from twospeed.cli.measuring.conduct import measured_or_read_run  # noqa: PLC0415
        from twospeed.cli.terminal.output import check_output, deliver, exit_status  # noqa: PLC0415
        from twospeed.cli.terminal.questions import (  # noqa: PLC0415
            asked_of,
            known_outcomes,
            with_settings,
        )
        from twospeed.report.build import build_report  # noqa: PLC0415

        check_output(args)
        asked = asked_of(args)
        run = with_settings(measured_or_read_run(args))
        report = build_report(run, asked, known_outcomes())
        deliver(report, args)
        return exit_status(report, args.fail_on)


def _where_arguments(parser: ArgumentParser) -> None:
    where = parser.add_argument_group("what to measure")
    where.add_argument("url", nargs="?", metavar="URL", help="endpoint, for example :8080")
    where.add_argument(
        "--embedded", action="store_true", help="measure a real llama.cpp started by twospeed"
    )
    where.add_argument(
        "--engine",
        action="append",
        default=[],
        metavar="FLAG=VALUE",
        help="a llama-server setting of the embedded engine, such as threads=2 (repeatable)",
    )
    where.add_argument("-m", "--model", help="model name (default: the loaded or first one)")
    where.add_argument(
        "--api-key",
        default=None,
        help="sent as bearer token (default: OPENAI_API_KEY when URL is given)",
    )
    where.add_argument(
        "--request",
        metavar="FIELD=VALUE",
        help="fields of your own requests, such as n_probs=20,temperature=0; what they cost the "
        "stream is measured",
    )
    where.add_argument("--runtime", metavar="ID", help="take the endpoint for this runtime")
    where.add_argument(
        "--log",
        type=Path,
        metavar="FILE",
        help="the server's log: tells layers, buffers and settings that it does not answer",
    )
    where.add_argument(
        "--from", dest="from_file", type=Path, metavar="FILE", help="report a saved run again"
    )


def _cost_arguments(parser: ArgumentParser) -> None:
    cost = parser.add_argument_group("cost and conduct")
    cost.add_argument(
        "--budget", type=positive_float, default=40.0, metavar="SECONDS", help="default 40"
    )
    timeout_argument(cost)
    cost.add_argument(
        "--ignore-timings",
        action="store_true",
        help="judge by arrival times alone, as for a runtime without clocks of its own",
    )
    cost.add_argument(
        "--together",
        action=BooleanOptionalAction,
        help="also send two and four requests at once (default: only to a server on this machine)",
    )
    cost.add_argument(
        "--no-probe",
        action="store_true",
        help="leave out the memory and processor probe of this machine",
    )


def _output_arguments(parser: ArgumentParser) -> None:
    out = parser.add_argument_group("output")
    form = out.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object (twospeed.report/1)")
    form.add_argument("--markdown", action="store_true", help="fit for a forum or an issue")
    out.add_argument("-o", "--out", type=Path, metavar="FILE", help="write there, not to stdout")
    out.add_argument("--save", type=Path, metavar="FILE", help="keep every record as it is made")
    out.add_argument("--no-color", action="store_true", help="also: NO_COLOR=1")
    fail_on_argument(out)


def api_key(args: Namespace) -> str | None:
    """The key to send: the option, or the environment's when the user named the endpoint.

    A key from the environment is never sent to an endpoint that was merely found.
    """
    given: str | None = args.api_key
    if given is not None or args.url is None:
        return given
    return os.environ.get("OPENAI_API_KEY") or None


COMMAND = Diagnose()
