"""Secrets by which receivers of callbacks know us, as Standard Webhooks 1.0 writes them."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

PREFIX = "whsec_"
MIN_BYTES = 24
MAX_BYTES = 64
OVERLAP_MS = 24 * 3_600_000
"""So long the one before is in force, too."""


class BadSecret(ValueError):
    """The secret is not one of Standard Webhooks."""


def new_secret() -> str:
    """Return a secret that nobody has."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for. Raises BadSecret."""
    if not secret.startswith(PREFIX):
        raise BadSecret(f"a secret begins with {PREFIX}")
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise BadSecret(f"after {PREFIX} a secret is Base64") from None
    if not MIN_BYTES <= len(key) <= MAX_BYTES:
        raise BadSecret(f"a secret has {MIN_BYTES} to {MAX_BYTES} bytes")
    return key


def in_force(stored: Iterable[Mapping[str, Any]], now_ms: int) -> tuple[str, ...]:
    """Return those of the stored secrets that sign now, the newest first."""
    return tuple(each["secret"] for each in stored if each.get("until", now_ms + 1) > now_ms)


def exchanged(
    stored: Iterable[Mapping[str, Any]], secret: str, now_ms: int
) -> list[dict[str, Any]]:
    """Return the secrets to store when a new one comes: the last one stays for a while."""
    before = [dict(each) for each in stored if "until" not in each]
    return [{"secret": secret}, *(each | {"until": now_ms + OVERLAP_MS} for each in before[:1])]
