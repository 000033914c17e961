"""The Addresses where issuers are known: tokens of the platform's own, and those of persons.

For which tenant a person asks is always said, by whom it concerns: by the token itself
(`tenant_claim`), by the name before it (`NAME~TOKEN`), or by the operator (`default_tenant`). That
somebody has been made a member decides nothing: else any tenant could take over the requests of
a person whose subject it knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from servioticy.errors import Stranger, Unavailable
from servioticy.identity.tokens import Tokens, Verified
from servioticy.ports.addresses import Address, Lookup, LookupByPerson, StoredAddresses

if TYPE_CHECKING:
    from servioticy.identity.logins import Login

BEFORE = "~"
"""Stands between the name of the tenant, percent-encoded, and the token."""


class AddressesOfPersons:
    """Looks up what requests name, whoever has made the token."""

    def __init__(
        self,
        stored: StoredAddresses,
        tokens: Tokens,
        default_tenant: str = "",
        clock: Callable[[], float] = time.time,
        login: Login | None = None,
    ) -> None:
        self.issuers = tokens.issuers
        """The keys of each, which are asked for beside all requests."""
        self.login = login
        """Where persons sign in to the console; None: nowhere."""
        self._stored = stored
        self._tokens = tokens
        self._default_tenant = default_tenant
        self._clock = clock

    def address(
        self, token: str, service_object: str | None, stream: str | None
    ) -> Address | None:
        """Return who asks, and what they name; None for an unknown token."""
        if not is_of_an_issuer(token):
            return self._stored.address(token, service_object, stream)
        verified, tenant = self._read(token)
        lookup = LookupByPerson(verified.person, tenant, service_object, stream)
        (found,) = self._stored.of_members([lookup])
        if found is None:
            raise Stranger(
                f"{verified.person.subject} of {verified.person.issuer} is no member of the "
                f"tenant {tenant:.200}: an admin of it adds members (POST /members)"
            )
        return self._until(found, verified)

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        """Return the same for many requests at once; None whatever is wrong with a token."""
        if not any(is_of_an_issuer(token) for token, _, _ in lookups):
            return self._stored.addresses(lookups)
        found: list[Address | None] = [None] * len(lookups)
        own = [n for n, each in enumerate(lookups) if not is_of_an_issuer(each[0])]
        if own:
            answers = self._stored.addresses([lookups[n] for n in own])
            for n, address in zip(own, answers, strict=True):
                found[n] = address
        persons = self._persons(lookups)
        if persons:
            answers = self._stored.of_members([each for _, each in persons.values()])
            for (n, (verified, _)), address in zip(persons.items(), answers, strict=True):
                found[n] = None if address is None else self._until(address, verified)
        return found

    def _persons(self, lookups: Sequence[Lookup]) -> dict[int, tuple[Verified, LookupByPerson]]:
        """Return who asks as a person, each by the number of its request."""
        persons = {}
        for n, (token, service_object, stream) in enumerate(lookups):
            if not is_of_an_issuer(token):
                continue
            try:
                verified, tenant = self._read(token)
            except (Stranger, Unavailable):
                continue  # whoever asks for this alone is told
            lookup = LookupByPerson(verified.person, tenant, service_object, stream)
            persons[n] = verified, lookup
        return persons

    def _read(self, token: str) -> tuple[Verified, str]:
        """Return whose token it is, and for which tenant he asks. Raises Stranger, NoKeys."""
        before, _, rest = token.rpartition(BEFORE)
        verified = self._tokens.verified(rest)
        named, allowed = unquote(before), verified.tenants
        if not named:
            named = self._default_tenant if allowed is None else ""
            named = allowed[0] if allowed is not None and len(allowed) == 1 else named
        if not named:
            raise Stranger(f"Say for which tenant you ask, before the token: NAME{BEFORE}TOKEN")
        if allowed is not None and named not in allowed:
            raise Stranger(f"The token is not for the tenant {named:.200}")
        return verified, named

    def _until(self, address: Address, verified: Verified) -> Address:
        """Return it as it is until the token ends, or what is granted, whichever is first."""
        ends = verified.good_until - self._clock()
        granted = address.expires_in
        return address._replace(expires_in=ends if granted is None else min(ends, granted))


def is_of_an_issuer(token: str) -> bool:
    """Tell whether a token can be one of an issuer: tokens of the platform have no dots.

    Names of tenants before it may have some.
    """
    return token.rpartition(BEFORE)[2].count(".") == 2
