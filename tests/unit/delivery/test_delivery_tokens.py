"""Whose turn a request for a socket takes, when its token is revoked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from support.delivery_stores import a_capacity

from delivery.admission.reception import Reception
from delivery.admission.refusals import Refusal
from delivery.admission.requests import Admission
from delivery.admission.resting import Resting
from servioticy.domain.known_tokens import share_of, stranger
from servioticy.ports.addresses import Address

TENANT = 7


class Catalog:
    """One token, until it is revoked."""

    def __init__(self) -> None:
        self.revoked = False

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        if self.revoked:
            return None
        return Address(TENANT, service_object, TENANT, False, 1, 0, 42)


class Client:
    """Somebody who connects."""

    address = "here"

    def when_lost(self, ending: Callable[[], None]) -> None:
        pass


def test_a_token_that_is_refused_takes_no_turn_of_its_tenant_any_more() -> None:
    """Else whoever found it could make the tenant's own devices wait, or be refused."""
    catalog = Catalog()
    reception = Reception(catalog, a_capacity(), Resting())
    reception.is_open = True
    client = cast(Any, Client())

    def decided() -> Admission | Refusal:
        return asyncio.run(reception.decide(client, "/so/streams/s/live", "token"))

    assert reception._tokens.share("token", "here") == stranger("here")
    assert isinstance(decided(), Admission)
    assert reception._tokens.share("token", "here") == share_of(TENANT)
    catalog.revoked = True
    assert isinstance(decided(), Refusal)
    assert reception._tokens.share("token", "here") == stranger("here")
