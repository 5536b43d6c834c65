"""TLS of one connection over buffers in memory, so that reads keep the stamp of their packet."""

from __future__ import annotations

import ssl
from pathlib import Path

from twospeed.records.errors import InputError

_READ_BYTES = 65_536


class BrokenTlsError(OSError):
    """The other side does not speak TLS, or not to us."""


class Tls:
    """The server's side of one connection.

    Args:
        context: with certificate and key.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def decrypt(self, data: bytes) -> tuple[bytes, bytes]:
        """Take in bytes from the wire.

        Returns:
            What they say, and what has to be sent because of them.

        Raises:
            BrokenTlsError: they are no TLS, or the other side gave up.
        """
        self._incoming.write(data)
        plain = bytearray()
        try:
            if self._object.version() is None:
                self._object.do_handshake()
            while part := self._object.read(_READ_BYTES):
                plain += part
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise BrokenTlsError(str(error)) from error
        return bytes(plain), self._outgoing.read()

    def encrypt(self, data: bytes) -> bytes:
        """Bytes for the wire; they must be sent in the order in which they were encrypted."""
        self._object.write(data)
        return self._outgoing.read()


def context_of(certificate: Path, key: Path) -> ssl.SSLContext:
    """The context for a certificate and its key.

    Raises:
        InputError: they cannot be read or do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"Cannot use {certificate} with {key}: {error}.") from error
    return context
