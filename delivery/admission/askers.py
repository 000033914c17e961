"""With whom a request for a socket shares its turn, before we know whose it is.

A token that opened a socket before counts to its tenant. All other requests of an address
share a turn: whoever invents a new token for each does not get more of them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Hashable

MAX_TOKENS = 10_000


class Askers:
    """The tenants of the tokens that were good last; whether they still are is not asked here."""

    def __init__(self, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._tenants: OrderedDict[bytes, int] = OrderedDict()

    def of(self, token: str, address: str) -> Hashable:
        """With whom a request with this token from this address shares."""
        tenant = self._tenants.get(_digest(token))
        return ("address", address) if tenant is None else ("tenant", tenant)

    def note(self, token: str, tenant: int) -> None:
        """The token is this tenant's."""
        digest = _digest(token)
        self._tenants[digest] = tenant
        self._tenants.move_to_end(digest)
        if len(self._tenants) > self._max_tokens:
            self._tenants.popitem(last=False)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
