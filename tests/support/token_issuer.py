"""An issuer of tokens in memory: it signs what a test wants, good and bad."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key

from servioticy.identity.keys import IssuerKeys
from servioticy.identity.signatures import PublicKey, read_keys
from servioticy.identity.tokens import Rules, Tokens

ISSUER = "https://login.example.org"
"""As the examples of the OpenAPI document have it."""
AUDIENCE = "https://iot.example.org"
OIDC = {"oidc_issuers": ISSUER, "oidc_audience": AUDIENCE}
"""Settings that know it."""
RULES = Rules(AUDIENCE)
NOW = 1_500_000_000.0
SECONDS = 600


class Clock:
    """Stands still until it is set."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class TokenIssuer:
    """Has one key at a time, unless a test publishes others."""

    def __init__(self, url: str = ISSUER, clock: Clock | None = None) -> None:
        self.url = url
        self.clock = clock or Clock()
        self.asked = 0
        self._numbers = itertools.count()
        self.rotate()
        self.keys = IssuerKeys(url, self.fetch, self.clock)

    def rotate(self) -> None:
        """Sign with another key from now on, and publish no other."""
        parameters: Any = {"kid": f"key-{next(self._numbers)}", "use": "sig", "alg": "ES256"}
        self.key: Key = ECKey.generate_key("P-256", parameters)
        self.published: list[Mapping[str, Any]] = [self.key.as_dict(private=False)]

    def fetch(self) -> Sequence[PublicKey]:
        """What the platform asks."""
        self.asked += 1
        return read_keys({"keys": self.published})

    def claims(self, subject: str = "alice", **others: Any) -> dict[str, Any]:
        """What an access token says; None takes a claim away."""
        now = int(self.clock())
        claims = {"iss": self.url, "sub": subject, "aud": AUDIENCE, "iat": now}
        claims |= {"exp": now + SECONDS, **others}
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, subject: str = "alice", header: Mapping[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token for a person, signed with the present key."""
        named = {"alg": "ES256", "typ": "at+jwt", "kid": self.key.kid, **(header or {})}
        algorithms = [str(named["alg"])]
        return jwt.encode(named, self.claims(subject, **claims), self.key, algorithms)

    def tokens(self, rules: Rules = RULES) -> Tokens:
        """What verifies them, once the keys were asked for."""
        self.keys.refresh()
        return Tokens({self.url: self.keys}, rules, self.clock)
