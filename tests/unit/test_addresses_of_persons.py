"""Who asks, and for which tenant, where tokens are of the platform and of issuers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.token_issuer import ISSUER, NOW, RULES, SECONDS, TokenIssuer

from servioticy.domain.persons import Person
from servioticy.errors import Stranger
from servioticy.identity.addresses import AddressesOfPersons
from servioticy.identity.errors import NoKeys
from servioticy.identity.keys import IssuerKeys
from servioticy.identity.tokens import Tokens
from servioticy.ports.addresses import Address, Lookup, LookupByPerson

TENANTS = {"acme": 1, "umbrella": 2, "Größe & ~": 3, "acme.eu": 4}
"""Alice is a member of these."""
OURS = "0123456789abcdef"


class Stored:
    """One token of tenant 9, and the members of three tenants."""

    def __init__(self) -> None:
        self.questions = 0
        self.granted_for: float | None = None
        """Seconds until what members are granted ends."""

    def address(self, token: str, so: str | None, stream: str | None) -> Address | None:
        self.questions += 1
        return Address(9, so, 9, False, 1, 0, None) if token == OURS else None

    def addresses(self, lookups: Sequence[Lookup]) -> list[Address | None]:
        found = [self.address(*each) for each in lookups]
        self.questions += 1 - len(lookups)
        return found

    def of_members(self, lookups: Sequence[LookupByPerson]) -> list[Address | None]:
        self.questions += 1
        return [self._member(each) for each in lookups]

    def _member(self, lookup: LookupByPerson) -> Address | None:
        tenant = TENANTS.get(lookup.tenant) if lookup.person == Person(ISSUER, "alice") else None
        found = Address(tenant or 0, lookup.service_object, 1, False, 1, 0, 5)
        return None if tenant is None else found._replace(expires_in=self.granted_for)


class World:
    def __init__(self, default_tenant: str = "") -> None:
        self.issuer, self.stored = TokenIssuer(), Stored()
        tokens = self.issuer.tokens(RULES._replace(tenant_claim="org"))
        clock = self.issuer.clock
        self.addresses = AddressesOfPersons(self.stored, tokens, default_tenant, clock)

    def caller(self, before: str, **claims: Any) -> int:
        found = self.addresses.address(before + self.issuer.token(**claims), None, None)
        assert found is not None
        return found.caller


@pytest.mark.parametrize(
    ("before", "claim", "default", "tenant"),
    [
        ("acme~", None, "", 1),
        ("umbrella~", None, "acme", 2),
        ("Gr%C3%B6%C3%9Fe%20%26%20~~", None, "", 3),
        ("Größe & ~~", None, "", 3),
        ("acme.eu~", None, "", 4),
        ("", "acme", "", 1),
        ("", ["umbrella"], "acme", 2),
        ("umbrella~", ["acme", "umbrella"], "", 2),
        ("", None, "acme", 1),
    ],
)
def test_the_tenant_is_said_by_token_caller_or_operator(
    before: str, claim: Any, default: str, tenant: int
) -> None:
    assert World(default).caller(before, org=claim) == tenant


@pytest.mark.parametrize(
    ("before", "claim", "default", "reason"),
    [
        ("", None, "", "Say for which tenant"),
        ("~", None, "", "Say for which tenant"),
        ("", ["acme", "umbrella"], "", "Say for which tenant"),
        ("", ["acme", "umbrella"], "acme", "Say for which tenant"),
        ("", [], "acme", "Say for which tenant"),
        ("umbrella~", "acme", "", "is not for the tenant umbrella"),
        ("umbrella~", [], "", "is not for the tenant umbrella"),
        ("initech~", None, "acme", "no member of the tenant initech"),
        ("acme~acme~", None, "", "no member of the tenant acme~acme"),
    ],
)
def test_no_tenant_is_guessed(before: str, claim: Any, default: str, reason: str) -> None:
    with pytest.raises(Stranger, match=reason):
        World(default).caller(before, org=claim)


@pytest.mark.parametrize(
    ("granted", "left"), [(None, SECONDS - 100), (5.0, 5.0), (1e9, SECONDS - 100)]
)
def test_what_a_person_may_do_ends_with_its_token_or_with_what_is_granted(
    granted: float | None, left: float
) -> None:
    world = World()
    world.stored.granted_for = granted
    token = world.issuer.token()
    world.issuer.clock.now += 100

    found = world.addresses.address(f"acme~{token}", None, None)

    assert found is not None
    assert found.expires_in == left


def test_many_are_looked_up_with_two_questions_whatever_is_wrong_with_some() -> None:
    world = World()
    good, expired = world.issuer.token(), world.issuer.token(exp=int(NOW) - 1)
    lookups = [
        Lookup(OURS, "a", None),
        Lookup(f"acme~{good}", "b", "s"),
        Lookup(f"acme~{expired}", None, None),
        Lookup(good, None, None),
        Lookup("strange", None, None),
        Lookup(f"umbrella~{good}", None, None),
        Lookup(f"acme~{world.issuer.token('mallory')}", None, None),
        Lookup("a.b.c", None, None),
    ]

    found = world.addresses.addresses(lookups)

    assert [each and (each.caller, each.service_object) for each in found] == [
        *((9, "a"), (1, "b"), None, None, None, (2, None), None, None),
    ]
    assert [each and each.expires_in for each in found[:2]] == [None, SECONDS]
    assert world.stored.questions == 2


def test_tokens_of_the_platform_cost_what_they_did() -> None:
    world = World()
    assert world.addresses.address(OURS, None, None) is not None
    assert world.addresses.address("unknown", None, None) is None
    assert world.addresses.addresses([Lookup(OURS, None, None), Lookup("", None, None)])[1] is None
    assert world.stored.questions == 3


def test_where_the_keys_are_not_known_one_is_told_and_many_are_nobody() -> None:
    """Those that ask at the same moment are not to suffer."""
    issuer = TokenIssuer()
    unknown = IssuerKeys(ISSUER, issuer.fetch, issuer.clock)
    addresses = AddressesOfPersons(Stored(), Tokens({ISSUER: unknown}, RULES, issuer.clock))
    token = f"acme~{issuer.token()}"

    with pytest.raises(NoKeys):
        addresses.address(token, None, None)
    found = addresses.addresses([Lookup(token, None, None), Lookup(OURS, None, None)])
    assert [each is not None for each in found] == [False, True]
