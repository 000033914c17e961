"""Texts that only who has a secret can read: sealed with AES-256-GCM."""

from __future__ import annotations

import hashlib
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


def sealed(text: str, secret: str) -> bytes:
    """Return the text as only `unsealed` with the same secret reads it."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(_key(secret)).encrypt(nonce, text.encode(), None)


def unsealed(content: bytes, secret: str) -> str | None:
    """Return the text; None where it was sealed with another secret, or has changed."""
    try:
        text = AESGCM(_key(secret)).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        return None
    return text.decode()


def _key(secret: str) -> bytes:
    # The secret itself has 256 bits of chance: nothing has to be made slow.
    return hashlib.sha256(b"servioticy: seal " + secret.encode()).digest()
