"""Whose certificates are believed: those of named authorities, or one that is known beforehand."""

from __future__ import annotations

import ssl
from pathlib import Path

from servioticy.errors import SettingsError
from servioticy.settings import Settings

_NO_CHECK_TIME = 0x200000
"""Of OpenSSL (X509_V_FLAG_NO_CHECK_TIME), which `ssl` has no name for."""
_END = b"-----END CERTIFICATE-----"


def authorities(file: str) -> ssl.SSLContext:
    """Believe those whom the authorities in this PEM file vouch for. Raises SettingsError."""
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"{file}: {error.strerror or error}; expected a PEM file of authorities"
        ) from error


def own(settings: Settings) -> ssl.SSLContext | str:
    """Return whom to believe who asks the platform of these settings on its own machine.

    Raises SettingsError.
    """
    return Known(settings.tls.certificate).context if settings.tls.certificate else ""


class Known:
    """Our own certificate, by whatever name the machine is asked for: that of its file.

    Programs on one machine ask each other at 127.0.0.1, which no certificate names, and have the
    file. Whether it has ended is for clients to judge.
    """

    def __init__(self, certificate: str) -> None:
        """Raises SettingsError."""
        self._file = certificate
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self.context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
        self.add()

    def add(self) -> None:
        """Know what the file has now, too. Raises SettingsError."""
        try:
            first, end, _ = Path(self._file).read_bytes().partition(_END)
            self.context.load_verify_locations(cadata=(first + end).decode("ascii"))
        except (OSError, ValueError, ssl.SSLError) as error:
            raise SettingsError(f"tls_certificate = {self._file}: {error}") from error
