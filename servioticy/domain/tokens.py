"""A tenant's token: where it stands in a request, and what of it may be kept."""

from __future__ import annotations

import hashlib
import secrets


def read_token(authorization: str) -> str:
    """Return the token in the value of an `Authorization` header, alone or after `Bearer`.

    Both kinds of clients exist. Empty: there is none.
    """
    scheme, _, rest = authorization.strip().partition(" ")
    return rest.strip() if scheme.lower() == "bearer" else authorization.strip()


def new_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_hex(32)


def digest(token: str) -> bytes:
    """Return the SHA-256 of a token, which stands for it wherever it is kept."""
    return hashlib.sha256(token.encode()).digest()
