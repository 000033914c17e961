"""Why the broker does not want us, and what an operator can do about it."""

from __future__ import annotations

import ssl

UNKNOWN_VERSION = (0x01, 0x84)
_IDENTIFIER = "it does not take our name: choose another bridge_client_id"
_RIGHTS = "it does not know bridge_user with bridge_password, or does not allow it: check that"
_BUSY = "it is busy, or not ready"
_ANSWERS = {
    0x02: _IDENTIFIER,
    0x03: _BUSY,
    0x04: _RIGHTS,
    0x05: _RIGHTS,
    0x85: _IDENTIFIER,
    0x86: _RIGHTS,
    0x87: _RIGHTS,
    0x88: _BUSY,
    0x89: _BUSY,
    0x97: _BUSY,
}
TAKEN_OVER = 0x8E
_FAREWELLS = {
    TAKEN_OVER: "another client has bridge_client_id: each platform needs its own",
    0x95: "a message was larger than it takes",
    0x87: _RIGHTS,
    0x97: _BUSY,
}
NOT_NOW = frozenset({0x80, 0x83, 0x97})
"""Codes of a PUBACK that tell nothing of the message: full, or another fault of the broker's."""


class Lost(Exception):
    """A connection has come to its end, or to nothing, and why."""


def refused(code: int) -> Lost:
    """Return why a CONNACK lets us not in."""
    return Lost(f"the broker refuses us ({code:#04x}): {_ANSWERS.get(code, 'its log tells why')}")


def farewell(code: int) -> Lost:
    """Return why a DISCONNECT ends the connection."""
    told = _FAREWELLS.get(code, "its log tells why")
    return Lost(f"the broker ends the connection ({code:#04x}): {told}")


def unreachable(error: OSError) -> Lost:
    """Return why no connection has come about."""
    if isinstance(error, ssl.SSLCertVerificationError):
        told = f"{error.verify_message}: bridge_ca names the file of who vouches for it"
        return Lost(f"we are not sure of the broker's certificate: {told}")
    if isinstance(error, ssl.SSLError):
        return Lost(f"no encryption could be agreed on: {error.reason or error}")
    return Lost(f"the broker cannot be reached: {error.strerror or error}")
