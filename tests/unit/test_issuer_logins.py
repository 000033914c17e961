"""Sign-ins at an issuer: what it is asked, and what of its answers counts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from token_issuer import AUDIENCE, ISSUER, NOW, TokenIssuer

from servioticy.errors import SettingsError, Unavailable
from servioticy.identity import logins
from servioticy.identity.errors import NotGranted
from servioticy.identity.issuers import with_persons
from servioticy.identity.logins import Client, Login, Pending, Said
from servioticy.settings import Settings, changed

BACK = "https://iot.example.org/console/sign-in/callback"
PENDING = Pending("of this browser")
CLIENT = Client("console", "", "openid", {"resource": AUDIENCE})
DISCOVERED = {
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "end_session_endpoint": f"{ISSUER}/end?of=us",
}


class Asked:
    """Answers as it is told to, and keeps what it was asked."""

    def __init__(self, status: int, answer: object) -> None:
        self.answers = [(status, answer)]
        self.sent: list[tuple[str, Mapping[str, str], tuple[str, str] | None]] = []

    def __call__(
        self, url: str, form: Mapping[str, str], account: tuple[str, str] | None
    ) -> tuple[int, object]:
        self.sent.append((url, form, account))
        return self.answers[0]


def tokens(issuer: TokenIssuer, **of_id: Any) -> dict[str, Any]:
    """What an issuer gives; `of_id` are claims of the ID token."""
    claims = {"aud": CLIENT.id, "nonce": PENDING.nonce} | of_id
    named = {"typ": "JWT"}
    given = {"access_token": issuer.token(), "refresh_token": "more"}
    return given | {"id_token": issuer.token(header=named, **claims)}


def a_login(issuer: TokenIssuer, asked: Asked, client: Client = CLIENT, **said: Any) -> Login:
    issuer.keys.refresh()
    told = Said(ISSUER)
    told.learn(DISCOVERED | said)
    return Login(issuer.keys, client, told, asked, issuer.clock)


def test_the_browser_is_sent_with_a_digest_of_what_only_we_can_show() -> None:
    there = urlsplit(a_login(TokenIssuer(), Asked(200, {})).begin(PENDING, BACK))
    asked = {name: values[0] for name, values in parse_qs(there.query).items()}

    digest = hashlib.sha256(PENDING.verifier.encode()).digest()
    assert there.geturl().startswith(f"{ISSUER}/auth?")
    assert asked == {
        "client_id": "console",
        "response_type": "code",
        "scope": "openid",
        "redirect_uri": BACK,
        "state": PENDING.state,
        "nonce": PENDING.nonce,
        "resource": AUDIENCE,
        "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    assert len({PENDING.state, PENDING.nonce, PENDING.verifier, PENDING.secret}) == 4


def test_a_code_is_given_for_tokens() -> None:
    issuer = TokenIssuer()
    asked = Asked(200, tokens(issuer))
    found = a_login(issuer, asked).granted(PENDING, "the code", BACK)

    ((url, form, account),) = asked.sent
    assert (url, account) == (f"{ISSUER}/token", None)
    assert form == {
        "grant_type": "authorization_code",
        "code": "the code",
        "redirect_uri": BACK,
        "code_verifier": PENDING.verifier,
        "client_id": "console",
        "resource": AUDIENCE,
    }
    assert (found.seconds, found.renewal) == (600, "more")


@pytest.mark.parametrize(
    ("methods", "account", "in_form"),
    [
        (None, ("us%20too", "s%3Acret"), False),
        (["client_secret_basic"], ("us%20too", "s%3Acret"), False),
        (["client_secret_post"], None, True),
    ],
)
def test_who_has_a_secret_shows_it_as_the_issuer_wants(
    methods: Any, account: Any, in_form: bool
) -> None:
    issuer = TokenIssuer()
    asked = Asked(200, tokens(issuer, aud="us too"))
    client = Client("us too", "s:cret", "openid", {})
    said = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
    a_login(issuer, asked, client, **said).granted(PENDING, "x", BACK)

    ((_, form, shown),) = asked.sent
    assert (shown, form.get("client_secret")) == (account, "s:cret" if in_form else None)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"nonce": Pending("of another").nonce}, "of another sign-in"),
        ({"nonce": None}, "of another sign-in"),
        ({"aud": "another"}, "another application"),
        ({"aud": ["another", "console"], "azp": "another"}, "another application"),
        ({"exp": int(NOW) - 61}, "has expired"),
        ({"exp": "soon"}, "can be verified"),
        ({"sub": "mallory"}, "another person"),
    ],
)
def test_an_id_token_that_is_not_for_this_sign_in_lets_nobody_in(
    claims: dict[str, Any], why: str
) -> None:
    issuer = TokenIssuer()
    login = a_login(issuer, Asked(200, tokens(issuer, **claims)))
    with pytest.raises(NotGranted, match=why):
        login.granted(PENDING, "x", BACK)


def test_an_id_token_that_another_has_signed_lets_nobody_in() -> None:
    issuer, other = TokenIssuer(), TokenIssuer()
    forged = tokens(other)["id_token"]
    login = a_login(issuer, Asked(200, tokens(issuer) | {"id_token": forged}))
    with pytest.raises(NotGranted, match="not signed by it"):
        login.granted(PENDING, "x", BACK)


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (400, {"error": "invalid_grant", "error_description": "it\\nis"}, "invalid_grant: it"),
        (400, {}, "does not say why"),
        (200, None, "without JSON"),
        (200, [], "without JSON"),
        (200, {"access_token": 7}, "no access token"),
        (200, {"access_token": "x" * 8_193}, "no access token"),
        (200, {"access_token": "opaque"}, "oidc_parameters"),
    ],
)
def test_what_an_issuer_refuses_or_gives_amiss_is_told(
    status: int, answer: object, why: str
) -> None:
    login = a_login(TokenIssuer(), Asked(status, answer))
    with pytest.raises(NotGranted, match=why):
        login.granted(PENDING, "x", BACK)


@pytest.mark.parametrize("code", ["", "x" * (logins.MAX_CODE + 1)])
def test_what_can_be_no_code_is_not_even_sent(code: str) -> None:
    asked = Asked(200, {})
    with pytest.raises(NotGranted, match="no code"):
        a_login(TokenIssuer(), asked).granted(PENDING, code, BACK)
    assert asked.sent == []


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_an_issuer_in_trouble_is_no_refusal(status: int) -> None:
    login = a_login(TokenIssuer(), Asked(status, {"error": "x"}))
    with pytest.raises(Unavailable):
        login.renewed("more", TokenIssuer().token(), 1)


def test_before_it_has_told_where_nobody_is_sent_there() -> None:
    issuer = TokenIssuer()
    login = Login(issuer.keys, CLIENT, Said(ISSUER), Asked(200, {}))
    with pytest.raises(Unavailable, match="authorization_endpoint"):
        login.begin(PENDING, BACK)
    assert login.leaving == ""


def test_nobody_is_sent_where_others_can_read_along() -> None:
    login = a_login(TokenIssuer(), Asked(200, {}), token_endpoint="http://127.0.0.1/token")
    with pytest.raises(Unavailable, match="token_endpoint"):
        login.granted(PENDING, "x", BACK)


def test_one_signs_out_at_the_issuer_too() -> None:
    login = a_login(TokenIssuer(), Asked(200, {}))
    assert login.leaving == f"{ISSUER}/end?of=us&client_id=console"


def test_a_renewed_token_is_the_same_persons_and_what_renews_it_stays() -> None:
    issuer = TokenIssuer()
    asked = Asked(200, {"access_token": issuer.token()})
    login = a_login(issuer, asked)

    assert login.renewed("more", issuer.token(), 1).renewal == "more"
    assert asked.sent[0][1]["refresh_token"] == "more"
    with pytest.raises(NotGranted, match="somebody else"):
        login.renewed("more", issuer.token("mallory"), 1)


def test_what_an_issuer_says_is_short_and_of_one_line() -> None:
    assert logins.reason("bad\x1b[31m", "x\ny") == "bad [31m: x y"
    assert len(logins.reason("x" * 9_999)) == logins.MAX_REASON


@pytest.mark.parametrize(
    ("most", "whose"),
    [(logins.RENEWALS_OF_ONE, [1] * 9), (logins.RENEWALS, list(range(99)))],
)
def test_so_many_are_renewed_at_once_and_so_many_of_one(most: int, whose: list[int]) -> None:
    places = logins._Places(logins.RENEWALS, logins.RENEWALS_OF_ONE)
    held = 0
    with ExitStack() as stack:
        with pytest.raises(Unavailable):
            for each in whose:
                stack.enter_context(places.one(each))
                held += 1
        assert held == most
    with places.one(whose[0]):
        assert places._held.total() == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"oidc_client": "us"}, "oidc_issuers has to be"),
        ({"oidc_scope": "profile"}, "openid is missing"),
        ({"oidc_parameters": "resource"}, "no query"),
        ({"oidc_parameters": "state=x"}, "state is not to be chosen"),
    ],
)
def test_settings_that_cannot_be_are_told(settings: dict[str, str], why: str) -> None:
    known = {"oidc_issuers": ISSUER, "oidc_audience": AUDIENCE, "oidc_client": "us"}
    chosen = changed(Settings(), **(settings if "oidc_client" in settings else known | settings))
    with pytest.raises(SettingsError, match=why):
        with_persons(None, chosen.identity)  # type: ignore[arg-type]
