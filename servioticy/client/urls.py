"""Addresses of the platform as people write them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from servioticy.errors import ServioticyError

API = {"http": "http", "https": "https"}
LIVE = {"ws": "ws", "wss": "wss", "http": "ws", "https": "wss"}


def api(text: str) -> str:
    """Return the address of an API without a slash at its end. Raises ServioticyError."""
    return _checked(text, API)


def live(text: str) -> str:
    """Return the address of delivery for WebSockets, of whichever scheme it was written with.

    Raises ServioticyError.
    """
    return _checked(text, LIVE)


def _checked(text: str, schemes: Mapping[str, str]) -> str:
    expected = f"expected {', '.join(f'{each}://HOST:PORT' for each in schemes)}"
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:  # a port that is no number, or an address that is none
        raise ServioticyError(f"{text!r} is no address: {error}; {expected}") from None
    if parts.scheme not in schemes or not usable or not text.isascii() or not text.isprintable():
        raise ServioticyError(f"{text!r} is no address of the platform: {expected}")
    if parts.query or parts.fragment or parts.username is not None or " " in text:
        raise ServioticyError(f"{text!r} has more than host, port and path: {expected}")
    return f"{schemes[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}"


def token(text: str) -> str:
    """Return a token that can be sent as a header; it may be empty. Raises ServioticyError."""
    if not text.isascii() or not text.isprintable() or text.strip() != text:
        raise ServioticyError("the token is none: it has characters that no token has")
    return text
