"""Every way in which twospeed can fail, with its exit code and its remedy.

TwospeedError (70)            our own bug when raised bare
├── UsageError (2)            the command line asks for something impossible
├── InputError (3)            a file cannot be read as what it claims to be
├── EndpointError (3)         the endpoint cannot be reached or refuses
│   ├── ConnectFailed         nobody listens, name unknown, TLS refused
│   ├── TimedOut              a stage outlasted its limit
│   ├── HttpRefused           a status other than 2xx (401, 404, 503 …)
│   ├── ProtocolBroken        bytes that are not the protocol they claim to be
│   └── StreamBroken          a stream that ended early or carried an error
└── EngineError (3)           the embedded engine or its model cannot be had
"""

from __future__ import annotations

from typing import ClassVar


class TwospeedError(Exception):
    """A failure that is told to the user in one line.

    Attributes:
        hint: what the user can do about it, or an empty string.
        exit_code: the status with which the command ends (2 usage, 3 input, 70 bug).
    """

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what} {self.hint}".strip()


class UsageError(TwospeedError):
    """The command line asks for something impossible."""

    exit_code = 2


class InputError(TwospeedError):
    """A file cannot be read as what it claims to be."""

    exit_code = 3


class EndpointError(TwospeedError):
    """The endpoint cannot be reached or refuses.

    Attributes:
        kind: short machine-readable name, kept in the request record.
        http_status: status code when there was one, else None.
    """

    exit_code = 3
    kind: ClassVar[str] = "endpoint"

    def __init__(self, what: str, *, hint: str = "", http_status: int | None = None) -> None:
        super().__init__(what, hint=hint)
        self.http_status = http_status


class ConnectFailed(EndpointError):
    """Nobody listens there, the name is unknown, or TLS was refused."""

    kind = "connect"


class TimedOut(EndpointError):
    """A stage (connect, headers, first token, next token) outlasted its limit."""

    kind = "timeout"


class HttpRefused(EndpointError):
    """The endpoint answered with a status other than 2xx."""

    kind = "http"


class ProtocolBroken(EndpointError):
    """The bytes are not the protocol that they claim to be (HTML, garbage)."""

    kind = "protocol"


class StreamBroken(EndpointError):
    """The stream ended early or carried an error object."""

    kind = "stream"


class EngineError(TwospeedError):
    """The embedded engine or its model cannot be had."""

    exit_code = 3
