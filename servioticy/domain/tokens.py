"""A tenant's token: where it stands in a request, and what of it may be kept."""

from __future__ import annotations

import hashlib
import secrets
import string

LETTERS = string.digits + string.ascii_letters
LENGTH = 22
"""62 letters to the power of 22 are 131 bits: small devices have to keep it, and send it."""


def read_token(authorization: str) -> str:
    """Return the token in the value of an `Authorization` header, alone or after `Bearer`.

    Both kinds of clients exist. Empty: there is none.
    """
    scheme, _, rest = authorization.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else authorization.strip()


def new_token() -> str:
    """Return a token that nobody can guess."""
    return token_of(secrets.token_bytes(32))


def token_of(secret: bytes) -> str:
    """Return 32 secret bytes as a token: the same for the same, and nothing tells them by it."""
    number, letters = int.from_bytes(secret, "big"), []
    for _ in range(LENGTH):
        number, left = divmod(number, len(LETTERS))
        letters.append(LETTERS[left])
    return "".join(letters)


def digest(token: str) -> bytes:
    """Return the SHA-256 of a token, which stands for it wherever it is kept."""
    return hashlib.sha256(token.encode()).digest()
