"""Which tokens of issuers are believed, and what hostile ones get."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey
from support.token_issuer import AUDIENCE, ISSUER, RULES, SECONDS, TokenIssuer

from servioticy.domain.persons import Person
from servioticy.identity import tokens as module
from servioticy.identity.errors import NotAccepted
from servioticy.identity.tokens import MAX_TENANTS, MAX_TOKEN, Tokens, Verified


@pytest.fixture
def issuer() -> TokenIssuer:
    return TokenIssuer()


@pytest.fixture
def tokens(issuer: TokenIssuer) -> Tokens:
    return issuer.tokens()


def refused(tokens: Tokens, token: str) -> str:
    with pytest.raises(NotAccepted) as error:
        tokens.verified(token)
    return str(error.value).partition(": ")[2]


def part(value: Any) -> str:
    """JSON as a part of a token."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def test_whoever_its_issuer_names_is_believed_until_it_ends(
    issuer: TokenIssuer, tokens: Tokens
) -> None:
    token = issuer.token("alice", jti="1", client_id="app", scope="openid")
    end = issuer.clock.now + SECONDS
    assert tokens.verified(token) == Verified(Person(ISSUER, "alice"), None, end)

    issuer.clock.now = end - 1
    assert tokens.verified(token).person.subject == "alice"
    issuer.clock.now = end
    assert refused(tokens, token) == "it has expired"
    assert refused(issuer.tokens(), token) == "it has expired"


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["other", AUDIENCE]])
def test_it_may_be_for_others_too(issuer: TokenIssuer, tokens: Tokens, audience: Any) -> None:
    assert tokens.verified(issuer.token(aud=audience)).person.subject == "alice"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": "other"}, f"it is for another audience than {AUDIENCE}"),
        ({"aud": None}, f"it is for another audience than {AUDIENCE}"),
        ({"aud": [[AUDIENCE]]}, f"it is for another audience than {AUDIENCE}"),
        ({"aud": {AUDIENCE: 1}}, f"it is for another audience than {AUDIENCE}"),
        ({"iss": "https://evil.example.org"}, "it is of an issuer that is not known here"),
        ({"iss": ISSUER + "/"}, "it is of an issuer that is not known here"),
        ({"iss": None}, "it is of an issuer that is not known here"),
        ({"iss": [ISSUER]}, "it is of an issuer that is not known here"),
        ({"exp": None}, "it has no exp"),
        ({"exp": "soon"}, "it has no exp"),
        ({"exp": True}, "it has no exp"),
        ({"exp": 1}, "it has expired"),
        ({"iat": None}, "it has no iat"),
        ({"iat": 1_500_000_001}, "it is issued in the future"),
        ({"nbf": 1_500_000_001}, "it is not valid yet"),
        ({"nbf": "now"}, "it has no nbf"),
        ({"sub": None}, "it names no subject"),
        ({"sub": ""}, "it names no subject"),
        ({"sub": 5}, "it names no subject"),
        ({"sub": "a\0"}, "it names no subject"),
        ({"sub": "x" * 256}, "it names no subject"),
    ],
)
def test_what_is_wrong_with_one_is_told(
    issuer: TokenIssuer, tokens: Tokens, claims: dict[str, Any], reason: str
) -> None:
    assert refused(tokens, issuer.token(**claims)) == reason


def test_clocks_may_be_apart_by_so_much(issuer: TokenIssuer) -> None:
    tokens, now = issuer.tokens(RULES._replace(leeway=30.0)), int(issuer.clock.now)
    good = issuer.token(iat=now + 30, nbf=now + 30, exp=now - 29)
    assert tokens.verified(good).good_until == now + 1

    for wrong in ({"iat": now + 31}, {"nbf": now + 31}, {"exp": now - 30}):
        assert refused(tokens, issuer.token(**wrong))


@pytest.mark.parametrize("type_", ["JWT", "jwt", "dpop+jwt", "", 5, None])
def test_other_tokens_of_the_issuer_give_no_access(
    issuer: TokenIssuer, tokens: Tokens, type_: Any
) -> None:
    """An ID token tells an application who has logged in; whoever gets it may be anybody."""
    header = issuer.token().split(".")[0]
    head = json.loads(base64.urlsafe_b64decode(header + "=="))
    head = {**head, "typ": type_} if type_ is not None else head | {"typ": "JWT"}
    if type_ is None:
        del head["typ"]
    if isinstance(type_, int):
        assert refused(tokens, f"{part(head)}.e30.AA").startswith("it is not a token")
        return
    token = jwt.encode(head, issuer.claims(), issuer.key, ["ES256"], default_type=None)

    assert refused(tokens, token) == "its type is not at+jwt"


def test_where_an_operator_says_so_plain_tokens_count_but_no_id_tokens(
    issuer: TokenIssuer,
) -> None:
    tokens = issuer.tokens(RULES._replace(types=frozenset({"at+jwt", "jwt"})))
    plain = {"typ": "JWT"}

    assert tokens.verified(issuer.token(header=plain)).person.subject == "alice"
    assert tokens.verified(issuer.token(header={"typ": "application/at+jwt"}))
    for claim in ({"nonce": "n"}, {"at_hash": "h"}, {"c_hash": "h"}, {"typ": "ID"}):
        assert refused(tokens, issuer.token(header=plain, **claim)).startswith("its type")


STRANGE = [
    "",
    "a.b",
    "..",
    "a.b.c",
    "a.b.c.d.e",
    "eyJhbGciOiJFUzI1NiJ9..",
    "e30.e30.AA",
    "\ud800.a.b",
    "\u0661.\u0661.\u0661",
    "eyJ" * 4_000,
    f"{part([])}.{part({})}.AA",
    f"{part({'alg': 'ES256'})}.{part(b'[' * 5_000)}.AA",
    f"{part(b'[' * 1_400)}.{part({})}.AA",
    f"{part({'alg': 'ES256'})}.{part([1])}.AA",
    f"{part({'alg': 'ES256'})}.{part(b'{')}.AA",
    f"{part({'alg': 'ES256'})}.{part(bytes([255]))}.AA",
    f"{part({'alg': ['ES256']})}.{part({})}.AA",
    f"{part({'alg': 'ES256', 'kid': {}})}.{part({})}.AA",
    f"{part({'alg': 'ES256', 'crit': ['x'], 'x': 1})}.{part({})}.AA",
    f"{part({'alg': 'ES256', 'crit': 'x'})}.{part({})}.AA",
]


@pytest.mark.parametrize("token", STRANGE, ids=range(len(STRANGE)))
def test_what_is_no_token_is_refused(tokens: Tokens, token: str) -> None:
    assert refused(tokens, token)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "HS256", "HS512", "ES256K"])
def test_no_algorithm_counts_that_anybody_can_sign_with(
    issuer: TokenIssuer, tokens: Tokens, algorithm: str
) -> None:
    said = f"{part({'alg': algorithm, 'kid': issuer.key.kid})}.{part(issuer.claims())}"
    for signature in ("", "AA", issuer.token().rpartition(".")[2]):
        assert refused(tokens, f"{said}.{signature}").startswith("it is not a token")


def test_a_public_key_is_no_secret_to_sign_with(issuer: TokenIssuer) -> None:
    """The oldest trick: HS256, with what everybody may read as the key."""
    key = RSAKey.generate_key(2048, {"kid": "rsa"})
    issuer.published = [key.as_dict(private=False)]
    tokens = issuer.tokens()
    said = f"{part({'alg': 'HS256', 'kid': 'rsa', 'typ': 'at+jwt'})}.{part(issuer.claims())}"
    for secret in (key.as_pem(private=False), key.as_der(private=False)):
        signature = part(hmac.digest(secret, said.encode(), "sha256"))
        assert refused(tokens, f"{said}.{signature}").startswith("it is not a token")


def test_what_is_changed_after_signing_is_refused(issuer: TokenIssuer, tokens: Tokens) -> None:
    header, claims, signature = issuer.token().split(".")
    mallory = part(issuer.claims("mallory"))
    assert refused(tokens, f"{header}.{mallory}.{signature}") == "its issuer has not signed it"
    for other in ("", "AA", signature[:-4] + "AAAA", part(b"\0" * 64)):
        assert refused(tokens, f"{header}.{claims}.{other}") == "its issuer has not signed it"


def test_keys_and_addresses_in_a_token_are_not_looked_at(
    issuer: TokenIssuer, tokens: Tokens
) -> None:
    own = ECKey.generate_key("P-256", {"kid": "mine"})
    header = {
        "alg": "ES256",
        "typ": "at+jwt",
        "kid": issuer.key.kid,
        "jwk": own.as_dict(),
        "jku": "https://evil.example.org/keys",
        "x5u": "https://evil.example.org/x",
        "x5c": ["MIIB"],
    }
    asked = issuer.asked
    forged = jwt.encode(header, issuer.claims(), own, ["ES256"])

    assert refused(tokens, forged) == "its issuer has not signed it"
    assert issuer.asked == asked


def test_a_token_of_another_issuer_with_the_same_subject_is_another_person() -> None:
    ours, theirs = TokenIssuer(), TokenIssuer("https://evil.example.org")
    ours.keys.refresh()
    theirs.keys.refresh()
    tokens = Tokens({each.url: each.keys for each in (ours, theirs)}, RULES, ours.clock)
    mixed = theirs.token(iss=ours.url, header={"kid": ours.key.kid})

    assert tokens.verified(theirs.token()).person == Person(theirs.url, "alice")
    assert tokens.verified(ours.token()).person.digest != Person(theirs.url, "alice").digest
    assert refused(tokens, mixed) == "its issuer has not signed it"
    assert Person("a", "b,c").digest != Person("a,b", "c").digest


@pytest.mark.parametrize("claim", ["", "acme", ["acme"], ["acme", "umbrella"], []])
def test_a_claim_may_name_the_tenants(issuer: TokenIssuer, claim: Any) -> None:
    tokens = issuer.tokens(RULES._replace(tenant_claim="org"))

    found = tokens.verified(issuer.token(org=claim)).tenants

    assert found == ((claim,) if isinstance(claim, str) else tuple(claim))
    assert tokens.verified(issuer.token()).tenants is None


@pytest.mark.parametrize("claim", [5, {}, [5], ["a"] * (MAX_TENANTS + 1)])
def test_a_claim_that_names_no_tenants_is_refused(issuer: TokenIssuer, claim: Any) -> None:
    tokens = issuer.tokens(RULES._replace(tenant_claim="org"))

    assert "claim org" in refused(tokens, issuer.token(org=claim))


def test_its_length_has_a_border(issuer: TokenIssuer, tokens: Tokens) -> None:
    def padded(size: int) -> str:
        return issuer.token(p="x" * size)

    size = next(n for n in range(MAX_TOKEN) if len(padded(n)) > MAX_TOKEN) - 1
    assert tokens.verified(padded(size)).person.subject == "alice"
    assert refused(tokens, padded(size + 1)).startswith("it has more than")


def test_what_was_verified_is_remembered_until_the_keys_change(
    issuer: TokenIssuer, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a key that its issuer withdraws counts no longer than until we hear of it."""
    token = issuer.token()
    tokens.verified(token)
    monkeypatch.setattr(module, "take_apart", None)
    assert tokens.verified(token).person.subject == "alice"
    issuer.keys.refresh()
    assert tokens.verified(token).person.subject == "alice"
    monkeypatch.undo()

    issuer.clock.now += 1
    issuer.rotate()
    issuer.keys.refresh()
    assert refused(tokens, token) == "its issuer has no such key"
    assert tokens.verified(issuer.token()).person.subject == "alice"


def test_what_is_remembered_is_bounded(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever gets many tokens of his issuer fills nothing; the oldest is verified again."""
    monkeypatch.setattr(module, "REMEMBERED_BYTES", 4_000)
    tokens, made = issuer.tokens(), [issuer.token(jti=str(number)) for number in range(4)]
    for each in made:
        tokens.verified(each)
    monkeypatch.setattr(module, "take_apart", None)

    assert tokens.verified(made[-1]).person.subject == "alice"
    with pytest.raises(TypeError):
        tokens.verified(made[0])
