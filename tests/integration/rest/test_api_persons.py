"""Persons who ask: for which tenant, and what they are told where they may not come in."""

from __future__ import annotations

from api_builders import Caller, Served
from member_builders import added, person
from token_issuer import ISSUER, TokenIssuer


def test_a_person_says_for_which_tenant_it_asks(
    alice: Caller, bob: Caller, served: Served, issuer: TokenIssuer
) -> None:
    """Whoever makes somebody a member takes over no request of his."""
    added(alice)
    token = issuer.token("carol")
    client = served.app.test_client()
    answer = Caller(client, f"Bearer {token}").ask("GET", "/")
    assert answer.status_code == 403
    assert "NAME~TOKEN" in answer.get_json()["message"]

    added(bob, role="viewer")
    assert person(served, token).ask("GET", "/members").status_code == 200
    assert person(served, token, "bob").ask("GET", "/members").status_code == 403
    assert person(served, token, "bob").ask("GET", "/").status_code == 200
    for nobodys in ("carol", "", "alice%00", "%ff", "a~alice"):
        assert person(served, token, nobodys).ask("GET", "/").status_code == 403
    assert Caller(client, f"al%69ce~{token}").ask("GET", "/").status_code == 200


def test_who_is_no_member_is_told_who_he_is_and_nothing_of_the_tenant(
    alice: Caller, served: Served, issuer: TokenIssuer
) -> None:
    """The same words whether there is such a tenant."""
    token = issuer.token("mallory")
    answers = [person(served, token, each).ask("GET", "/") for each in ("alice", "alika")]

    assert [each.status_code for each in answers] == [403, 403]
    one, other = (each.get_json()["message"] for each in answers)
    assert one.startswith(f"mallory of {ISSUER} is no member of the tenant alice")
    assert one == other.replace("alika", "alice")


def test_a_token_that_does_not_count_is_refused_with_the_reason(
    alice: Caller, served: Served, issuer: TokenIssuer
) -> None:
    added(alice)
    expired = issuer.token("carol", exp=5)
    answer = person(served, expired).ask("GET", "/")

    assert answer.status_code == 403
    assert answer.get_json()["message"].endswith("not accepted: it has expired")


def test_where_the_keys_are_not_known_yet_it_is_worth_another_try(
    alice: Caller, served: Served, issuer: TokenIssuer
) -> None:
    """As after the issuer has begun to sign with another one."""
    added(alice)
    issuer.clock.now += 1
    issuer.rotate()
    carol = person(served, issuer.token("carol"))
    answer = carol.ask("GET", "/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.get_json()["message"] == "The keys of the token's issuer are not known yet"

    issuer.keys.refresh()
    assert carol.ask("GET", "/").status_code == 200
