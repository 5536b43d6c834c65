"""TLS between a socket of our own and the HTTP reader, so that stamps stay those of the socket."""

from __future__ import annotations

import asyncio
import socket
import ssl

READ_BYTES = 64 * 1024


class Tls:
    """Ciphertext in, plaintext out; only the handshake touches the socket."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    async def handshake(self, sock: socket.socket) -> None:
        """Agree on keys over a connected non-blocking socket.

        Raises:
            ssl.SSLError: the certificate or the protocol is not acceptable.
            OSError: the connection failed.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                self._object.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush(sock)
                data = await loop.sock_recv(sock, READ_BYTES)
                if data:
                    self._incoming.write(data)
                else:
                    self._incoming.write_eof()
            else:
                return await self._flush(sock)

    async def _flush(self, sock: socket.socket) -> None:
        if pending := self._outgoing.read():
            await asyncio.get_running_loop().sock_sendall(sock, pending)

    def encrypted(self, plaintext: bytes) -> bytes:
        """Ciphertext of a whole request, with whatever else TLS wants to say first."""
        rest = memoryview(plaintext)
        while rest:
            rest = rest[self._object.write(rest) :]
        return self._outgoing.read()

    def decrypted(self, ciphertext: bytes) -> tuple[bytes, bool]:
        """Plaintext of one socket read, and whether the other side said goodbye.

        Raises:
            ssl.SSLError: the bytes are not what the keys allow.
        """
        self._incoming.write(ciphertext)
        plain = bytearray()
        while True:
            try:
                piece = self._object.read(READ_BYTES)
            except ssl.SSLWantReadError:
                return bytes(plain), False
            except ssl.SSLZeroReturnError:
                return bytes(plain), True
            if not piece:
                return bytes(plain), True
            plain += piece
