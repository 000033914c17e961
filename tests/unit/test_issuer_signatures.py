"""Which keys of an issuer count, and for what."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from support.token_issuer import TokenIssuer

from servioticy.identity.errors import NoKeys, NotAccepted


@pytest.fixture
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("RS256", RSAKey.generate_key(2048, {"kid": "k"})),
        ("PS256", RSAKey.generate_key(2048, {"kid": "k"})),
        ("ES384", ECKey.generate_key("P-384", {"kid": "k"})),
        ("EdDSA", OKPKey.generate_key("Ed25519", {"kid": "k"})),
        ("Ed25519", OKPKey.generate_key("Ed25519", {"kid": "k"})),
    ],
    ids=["RS256", "PS256", "ES384", "EdDSA", "Ed25519"],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_keys_of_all_kinds_verify_with_an_algorithm_of_theirs(
    issuer: TokenIssuer, algorithm: str, key: Any
) -> None:
    issuer.key, issuer.published = key, [key.as_dict(private=False)]
    tokens = issuer.tokens()

    assert tokens.verified(issuer.token(header={"alg": algorithm})).person.subject == "alice"


def test_a_key_is_good_for_what_its_issuer_says(issuer: TokenIssuer) -> None:
    token = issuer.token()
    (public,) = issuer.published
    for other in ({"use": "enc"}, {"alg": "ES384"}, {"kty": "oct", "k": "AA"}, {"crv": "P-384"}):
        issuer.published = [{**public, **other}]
        with pytest.raises((NotAccepted, NoKeys)):
            issuer.tokens().verified(token)


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_weak_and_odd_keys_are_left_out(issuer: TokenIssuer) -> None:
    """A set with a key that is no key is good for its other keys."""
    weak = RSAKey.generate_key(1024, {"kid": "weak"}).as_dict(private=False)
    secret = ECKey.generate_key("P-256", {"kid": "told"}).as_dict(private=True)
    odd: list[Any] = [None, 5, {}, {"kty": "RSA"}, {"kty": "EC", "crv": "P-256", "x": 1, "y": 2}]
    odd += [{"kty": "RSA", "n": "AA", "e": "AA"}, {"kty": "oct", "k": "AAAA", "kid": "s"}]
    issuer.published = [*odd, weak, secret, OctKey.generate_key(256).as_dict(), *issuer.published]

    assert [each.id for each in issuer.fetch()] == [issuer.key.kid]
    assert issuer.tokens().verified(issuer.token()).person.subject == "alice"


def test_a_token_without_the_name_of_its_key_is_for_an_issuer_with_one(
    issuer: TokenIssuer,
) -> None:
    header = {"alg": "ES256", "typ": "at+jwt"}
    token = jwt.encode(header, issuer.claims(), issuer.key, ["ES256"])
    assert issuer.tokens().verified(token).person.subject == "alice"

    other = ECKey.generate_key("P-256", {"kid": "other"})
    issuer.published.append(other.as_dict(private=False))
    with pytest.raises(NoKeys):
        issuer.tokens().verified(token)
