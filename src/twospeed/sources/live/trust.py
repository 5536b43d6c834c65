"""Whom to trust over TLS, and by which certificate to be known."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import NoReturn

from twospeed.records.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What the user says about certificates."""

    insecure: bool = False
    """Talk to a server whoever it is."""
    authorities: str | None = None
    """File with the only authorities to trust; None for this machine's own."""
    certificate: str | None = None
    """File with our own certificate."""
    key: str | None = None
    """File with its key; None when the certificate's file holds it."""

    def context(self) -> ssl.SSLContext:
        """Read the files.

        Raises:
            InputError: one of them is not what it should be.
        """
        try:
            context = ssl.create_default_context(cafile=self.authorities)
        except OSError as error:
            raise _unusable("--cacert", self.authorities, error) from None
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate is not None:
            self._show_certificate(context, self.certificate)
        return context

    def _show_certificate(self, context: ssl.SSLContext, certificate: str) -> None:
        def passphrase() -> NoReturn:
            # Without this, OpenSSL would stop and ask on the terminal.
            raise InputError(
                f"The key of {certificate} is encrypted.",
                hint="Give one without a passphrase to --key.",
            )

        try:
            context.load_cert_chain(certificate, self.key, passphrase)
        except OSError as error:
            files = certificate if self.key is None else f"{certificate} with {self.key}"
            raise _unusable("--cert", files, error) from None


def _unusable(option: str, files: str | None, error: OSError) -> InputError:
    reason = error.strerror or str(error)
    if isinstance(error, ssl.SSLError) and error.reason:
        reason = error.reason.replace("_", " ").lower()
    return InputError(
        f"{option}: {files} cannot be used: {reason}.", hint="It must be a file in PEM format."
    )
