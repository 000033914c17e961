"""With whom a request for a socket shares its turn, before we know whose it is.

A token that opened a socket before counts to its tenant. All other requests of an address
share a turn: whoever invents a new token for each does not get more of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from servioticy.domain.tokens import digest

MAX_TOKENS = 10_000


class Askers:
    """The tenants of the tokens that were good last; whether they still are is not asked here."""

    def __init__(self, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._tenants: OrderedDict[bytes, int] = OrderedDict()

    def of(self, token: str, address: str) -> Hashable:
        """With whom a request with this token from this address shares."""
        tenant = self._tenants.get(digest(token))
        return ("address", address) if tenant is None else ("tenant", tenant)

    def note(self, token: str, tenant: int) -> None:
        """The token is this tenant's."""
        key = digest(token)
        self._tenants[key] = tenant
        self._tenants.move_to_end(key)
        if len(self._tenants) > self._max_tokens:
            self._tenants.popitem(last=False)
