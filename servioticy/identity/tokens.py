"""Who shows a token of an issuer: verified once, and remembered for as long as it is good."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from servioticy.domain.cache import Cache
from servioticy.domain.persons import MAX_SUBJECT, Person, is_name
from servioticy.domain.tokens import digest
from servioticy.identity.errors import NotAccepted
from servioticy.identity.keys import IssuerKeys
from servioticy.identity.signatures import Signed, is_signed_by, take_apart

MAX_TOKEN = 8_192
"""Characters."""
REMEMBERED_BYTES = 8_388_608
SIZE = 1_000
"""Bytes that are counted for one that is remembered, beside its own: what it says is kept."""
MAX_TENANTS = 100
"""Named by one token."""
OF_ID_TOKENS = ("at_hash", "c_hash", "nonce")
"""Claims of tokens that tell an application who has logged in, and are for nobody else."""


class Rules(NamedTuple):
    """What a token has to be, beside being signed by its issuer."""

    audience: str
    tenant_claim: str = ""
    types: frozenset[str] = frozenset({"at+jwt"})
    """in small letters, of the header `typ`"""
    leeway: float = 0.0
    """seconds that our clock and an issuer's may be apart"""


class Verified(NamedTuple):
    """Somebody whom an issuer vouches for."""

    person: Person
    tenants: tuple[str, ...] | None
    """those that the token is for; None: it does not say"""
    good_until: float


class _Remembered(NamedTuple):
    verified: Verified
    keys: IssuerKeys
    changes: int
    """of the keys: what was verified with others is verified anew"""


class Tokens:
    """Verifies tokens of issuers. Threads may share it."""

    def __init__(
        self,
        issuers: Mapping[str, IssuerKeys],
        rules: Rules,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuers = tuple(issuers.values())
        self._issuers = issuers
        self._rules = rules
        self._clock = clock
        self._known: Cache[bytes, _Remembered] = Cache(REMEMBERED_BYTES)

    def verified(self, token: str) -> Verified:
        """Return whose token it is. Raises NotAccepted, NoKeys."""
        if len(token) > MAX_TOKEN or not token.isascii():
            raise NotAccepted(f"it has more than {MAX_TOKEN} characters, or strange ones")
        key = digest(token)
        known = self._known.get(key)
        if known is not None and known.changes == known.keys.changes:
            if known.verified.good_until <= self._clock():
                raise NotAccepted("it has expired")
            return known.verified
        signed = take_apart(token)
        keys = self._keys(signed)
        changes = keys.changes
        verified = self._checked(signed, keys)
        self._known.put(key, _Remembered(verified, keys, changes), SIZE + len(token))
        return verified

    def _keys(self, signed: Signed) -> IssuerKeys:
        issuer = signed.claims.get("iss")
        keys = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if keys is None:
            raise NotAccepted("it is of an issuer that is not known here")
        return keys

    def _checked(self, signed: Signed, keys: IssuerKeys) -> Verified:
        """Return whose it is, where all of it is right. Raises NotAccepted, NoKeys.

        What is wrong is told of tokens that their issuer has signed, and of no others.
        """
        claims = signed.claims
        issued_at, good_until = _time(claims, "iat"), _time(claims, "exp")
        leeway, now = self._rules.leeway, self._clock()
        if issued_at > now + leeway:
            raise NotAccepted("it is issued in the future")
        if not is_signed_by(signed, keys.of(signed.key_id, issued_at + leeway)):
            raise NotAccepted("its issuer has not signed it")
        if good_until + leeway <= now:
            raise NotAccepted("it has expired")
        if "nbf" in claims and _time(claims, "nbf") > now + leeway:
            raise NotAccepted("it is not valid yet")
        self._check_purpose(signed)
        subject = claims.get("sub")
        if not is_name(subject, MAX_SUBJECT):
            raise NotAccepted("it names no subject")
        person = Person(keys.issuer, str(subject))
        return Verified(person, self._tenants(claims), good_until + leeway)

    def _check_purpose(self, signed: Signed) -> None:
        """Raises NotAccepted where the token is not for us, or not to get access."""
        claims, audience = signed.claims, signed.claims.get("aud")
        audiences = audience if isinstance(audience, list) else [audience]
        if self._rules.audience not in audiences:
            raise NotAccepted(f"it is for another audience than {self._rules.audience}")
        type_ = str(signed.header.get("typ", "JWT")).lower().removeprefix("application/")
        is_id = claims.get("typ") == "ID" or any(each in claims for each in OF_ID_TOKENS)
        if type_ not in self._rules.types or (type_ == "jwt" and is_id):
            raise NotAccepted(f"its type is not {' or '.join(sorted(self._rules.types))}")

    def _tenants(self, claims: Mapping[str, Any]) -> tuple[str, ...] | None:
        claim = self._rules.tenant_claim
        if not claim or claim not in claims:
            return None
        value = claims[claim]
        named = value if isinstance(value, list) else [value]
        if len(named) > MAX_TENANTS or not all(isinstance(each, str) for each in named):
            raise NotAccepted(f"its claim {claim} is not the name of a tenant, or a list of them")
        return tuple(named)


def _time(claims: Mapping[str, Any], name: str) -> float:
    """Return when something is, in seconds since 1970. Raises NotAccepted."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise NotAccepted(f"it has no {name}")
    try:
        return float(value)
    except OverflowError:
        raise NotAccepted(f"its {name} is no time") from None
