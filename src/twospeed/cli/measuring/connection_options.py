"""The options that say how an endpoint is reached, the same for every command that asks one."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from twospeed.records.errors import UsageError

if TYPE_CHECKING:
    from twospeed.sources.live.reach import Reach


def add_connection_arguments(parser: ArgumentParser) -> None:
    """Declare them; `access_options` reads them."""
    # No value is parsed by argparse: its messages would repeat keys and passwords.
    way = parser.add_argument_group("connection (as for curl)")
    way.add_argument(
        "--unix-socket", metavar="PATH", help="connect to this socket; URL still names the host"
    )
    way.add_argument(
        "-x",
        "--proxy",
        metavar="URL",
        help="HTTP proxy for any URL; '' for none (default: HTTPS_PROXY, http_proxy, ALL_PROXY and"
        " NO_PROXY, never for a loopback address)",
    )
    way.add_argument(
        "-H",
        "--header",
        dest="headers",
        action="append",
        default=[],
        metavar="LINE",
        help="send 'Name: value' with every request, in place of ours if need be; 'Name:' leaves"
        " ours out (repeatable)",
    )
    way.add_argument(
        "-k", "--insecure", action="store_true", help="do not check the server's certificate"
    )
    way.add_argument(
        "--cacert", metavar="FILE", help="trust the authorities in this PEM file, and no others"
    )
    way.add_argument("--cert", metavar="FILE", help="show this client certificate (PEM)")
    way.add_argument("--key", metavar="FILE", help="its key, if --cert does not hold it")


def access_options(args: Namespace) -> Reach:
    """The way to the endpoint that a command line asks for, for `Endpoint.open`.

    Args:
        args: parsed by a parser with `add_connection_arguments`, and a `url` that may be None.

    Raises:
        UsageError: options that exclude each other, or a line that is no header.
    """
    # Here and not above: `--help` must not wait for ssl and asyncio.
    from twospeed.sources.live.headers import headers_of  # noqa: PLC0415
    from twospeed.sources.live.reach import Reach  # noqa: PLC0415
    from twospeed.sources.live.trust import Trust  # noqa: PLC0415

    if args.unix_socket is not None and args.url is None:
        raise UsageError(
            "--unix-socket needs a URL too: it names scheme, host and path.",
            hint="For example: http://localhost --unix-socket /run/server.sock",
        )
    if args.key is not None and args.cert is None:
        raise UsageError("--key needs --cert.")
    return Reach(
        unix_socket=args.unix_socket,
        proxy=args.proxy,
        environment=os.environ,
        headers=headers_of(args.headers),
        trust=Trust(
            insecure=args.insecure,
            authorities=args.cacert,
            certificate=args.cert,
            key=args.key,
        ),
    )
