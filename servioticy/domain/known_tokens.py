"""With whom a request shares what the platform gives it, before it is known whose it is.

A token that was good a moment ago counts to its tenant. All other requests of an address
share: whoever invents a new token for each does not get more. Whether a token is still good
is not asked here; that is found out when the request is worked on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from servioticy.domain.tokens import digest

MAX_TOKENS = 10_000
GOOD_SECONDS = 5.0
"""So long after it was last good a token counts to its tenant: it may be revoked any time."""


class KnownTokens:
    """The tenants of the tokens that were good last, by their SHA-256. For one thread.

    A token that was good longer ago has a share beside its tenant's: if it is revoked by now,
    what is sent with it takes nothing from its tenant, and if it is not, it does not share
    with everybody who invents tokens at the same address.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, max_tokens: int = MAX_TOKENS
    ) -> None:
        """The clock gives seconds."""
        self._clock = clock
        self._max_tokens = max_tokens
        self._tenants: OrderedDict[bytes, tuple[int, float]] = OrderedDict()

    def share(self, token: str, address: str) -> Hashable:
        """Return whose share a request with this token from this address takes."""
        known = self._tenants.get(digest(token))
        if known is None:
            return stranger(address)
        tenant, good_at = known
        is_fresh = self._clock() - good_at <= GOOD_SECONDS
        return share_of(tenant) if is_fresh else ("unconfirmed", tenant)

    def good(self, token: str, tenant: int) -> None:
        """The token is this tenant's now."""
        key = digest(token)
        self._tenants[key] = (tenant, self._clock())
        self._tenants.move_to_end(key)
        if len(self._tenants) > self._max_tokens:
            self._tenants.popitem(last=False)

    def refused(self, token: str) -> None:
        """The token is nobody's, or nobody's any more."""
        self._tenants.pop(digest(token), None)

    def __len__(self) -> int:
        """How many are known."""
        return len(self._tenants)


def share_of(tenant: int) -> Hashable:
    """Return the share of a tenant whose request it is for certain."""
    return ("tenant", tenant)


def tenant_of(share: Hashable) -> int | None:
    """Return whose share it is; None where it is not a tenant's for certain."""
    match share:
        case ("tenant", int(tenant)):
            return tenant
    return None


def stranger(address: str) -> Hashable:
    """Return the share of all that come from there and are not known."""
    return ("address", address)
