"""The certificate of a port that speaks TLS: read at the start, and when its files change.

What cannot be used at the start ends the program with a line that says what to do. Later the one
that was good stays in use: a certificate and its key are two files, and for a moment one of them
is the old one.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from servioticy.errors import SettingsError, SetupError

LOOK_SECONDS = 1.0
"""Between two looks whether the files have changed."""
REMIND_SECONDS = 86_400.0
SOON = timedelta(days=14)
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE+AES"
"""Of TLS 1.2; those of TLS 1.3 are all good. None with which a handshake costs us more than one
signature, and none that a key that is stolen later opens."""

log = logging.getLogger("servioticy.doors")


@dataclass(frozen=True, slots=True)
class Files:
    """Where a certificate stands."""

    certificate: str
    """PEM: ours, then those between it and an authority that clients know"""
    key: str
    key_password: str = ""
    client_ca: str = ""
    """PEM of the authorities that vouch for clients, each of which has to show a certificate;
    empty: none is asked for one"""

    def state(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Return what is another one when a file has changed, or what a link leads to."""
        return tuple(_state(each) for each in (self.certificate, self.key, self.client_ca) if each)


class Certificate:
    """What new connections are shown; those that are there keep what they were shown."""

    def __init__(self, files: Files) -> None:
        """Raises SettingsError where a file is not named, SetupError where one is of no use."""
        if not files.certificate or not files.key:
            lacks = "tls_key" if files.certificate else "tls_certificate"
            raise SettingsError(
                f"{lacks} is not set: TLS needs tls_certificate and tls_key, both of them"
            )
        self._files = files
        self._state = files.state()
        self.context = _context(files)
        self.ends = _told(files)
        self._stopped = threading.Event()
        self.renewed: Callable[[], object] = _nothing
        """Called, in a thread of its own, when another one is in use."""

    def start(self) -> None:
        """Look for other files from now on."""
        threading.Thread(target=self._watch, name="certificate", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def look(self) -> bool:
        """Take what the files have now, if they have changed; tell whether it is in use."""
        state = self._files.state()
        if state == self._state:
            return False
        try:
            self.context = _context(self._files)
        except SetupError as error:
            log.warning("certificate_not_taken", extra={"reason": str(error)})
            return False
        finally:
            self._state = state
        self.ends = _told(self._files)
        self.renewed()
        return True

    def _watch(self) -> None:
        waited = 0.0
        while not self._stopped.wait(LOOK_SECONDS):
            waited += LOOK_SECONDS
            if self.look():
                waited = 0.0
            elif waited >= REMIND_SECONDS:
                waited = 0.0
                _tell(self._files.certificate, self.ends)


def _nothing() -> None:
    """Nobody wants to know."""


def _state(file: str) -> tuple[int, int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _context(files: Files) -> ssl.SSLContext:
    """Return what handshakes are made with. Raises SetupError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _readable("tls_certificate", files.certificate, "its certificate and its chain")
    _readable("tls_key", files.key, "the key of the certificate")
    # Without a function OpenSSL would ask for it on the terminal.
    wanted: list[bool] = []

    def password() -> str:
        wanted.append(True)
        return files.key_password

    try:
        context.load_cert_chain(files.certificate, files.key, password)
    except (ssl.SSLError, ValueError, OSError) as error:
        raise SetupError(_why(files, error, bool(wanted))) from error
    if files.client_ca:
        _readable("mqtt_client_ca", files.client_ca, "the authorities that vouch for clients")
        try:
            context.load_verify_locations(files.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise SetupError(
                f"mqtt_client_ca = {files.client_ca}: no certificate in it; give a PEM file"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _readable(setting: str, file: str, what: str) -> None:
    """Raises SetupError, with the setting's name."""
    try:
        with Path(file).open("rb"):
            pass
    except OSError as error:
        raise SetupError(
            f"{setting} = {file}: {error.strerror}; name a PEM file with {what}, which the user "
            "that runs this program may read"
        ) from error


def _why(files: Files, error: Exception, is_locked: bool) -> str:
    """Return why they cannot be used together, and what to do."""
    if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
        return (
            f"tls_key = {files.key} is not the key of tls_certificate = {files.certificate}; "
            "name the two that were made together, our own certificate first in its file"
        )
    try:
        x509.load_pem_x509_certificate(Path(files.certificate).read_bytes())
    except (OSError, ValueError):
        return (
            f"tls_certificate = {files.certificate}: no certificate in it; it has to begin with "
            "-----BEGIN CERTIFICATE-----"
        )
    if is_locked:
        return f"tls_key = {files.key} is locked by a password: tls_key_password does not open it"
    return f"tls_key = {files.key}: no key in it that fits ({error}); name a PEM file with the key"


def _told(files: Files) -> datetime:
    """Log what is in use, and return when it ends."""
    certificate = x509.load_pem_x509_certificate(Path(files.certificate).read_bytes())
    ends = certificate.not_valid_after_utc
    log.info("certificate_in_use", extra={"file": files.certificate, "ends": ends.isoformat()})
    if certificate.not_valid_before_utc > datetime.now(UTC):
        begins = certificate.not_valid_before_utc.isoformat()
        log.warning("certificate_not_yet_good", extra={"begins": begins})
    _tell(files.certificate, ends)
    return ends


def _tell(file: str, ends: datetime) -> None:
    """Warn before clients turn away, and while they do: who runs on could renew it meanwhile."""
    now = datetime.now(UTC)
    if ends < now + SOON:
        event = "certificate_has_ended" if ends < now else "certificate_ends_soon"
        log.warning(event, extra={"file": file, "ends": ends.isoformat(), "do": "renew it"})
