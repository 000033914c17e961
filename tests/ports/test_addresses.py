"""What Addresses tell of a request."""

from __future__ import annotations

import pytest
from port_builders import Stored

from servioticy.domain.access import Resource
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.addresses import Address

pytestmark = pytest.mark.real


def test_an_unknown_token_has_no_address(stored: Stored) -> None:
    stored.create("so1")

    assert stored.addresses.address("nonsense", "so1", "a") is None


def test_an_address_tells_all_a_request_needs(stored: Stored) -> None:
    key, stream = stored.create("so1"), stored.stream("so1")

    address = stored.addresses.address(stored.token, "so1", "a")

    assert address is not None
    assert len(address.token_id) == 32
    assert address._replace(token_id="") == Address(
        stored.tenant, "so1", stored.tenant, False, 1, 0, stream.stream_id
    )
    assert (address.key, address.stream) == (key, stream)


@pytest.mark.parametrize("name", ["nothing", "", "so1\0", None])
def test_what_does_not_exist_has_no_id_in_an_address(stored: Stored, name: str | None) -> None:
    """What is asked then is about the caller."""
    stored.create("so1")

    address = stored.addresses.address(stored.token, name, "a")

    assert address is not None
    assert address._replace(token_id="") == Address(stored.tenant, None, None, False, 0, 0, None)
    assert (address.key, address.stream) == (None, None)
    assert address.resource == Resource((stored.tenant,))


@pytest.mark.parametrize("name", [None, "nothing", "A", "a\0"])
def test_what_is_no_stream_has_no_stream_id(stored: Stored, name: str | None) -> None:
    stored.create("so1")

    address = stored.addresses.address(stored.token, "so1", name)

    assert address is not None
    assert address.stream is None


def test_an_address_tells_whose_and_whether_public(stored: Stored) -> None:
    stored.create("so1", public=True)

    address = stored.addresses.address(stored.other_token, "so1", None)

    assert address is not None
    assert (address.caller, address.owner, address.public) == (stored.other, stored.tenant, True)
    assert address.key == ServiceObjectKey(stored.tenant, "so1")
    assert address.resource == Resource((stored.tenant,), True)


def test_what_is_deleted_has_no_address(stored: Stored) -> None:
    stored.change_store.delete(stored.create("so1"), None, 2000)

    address = stored.addresses.address(stored.token, "so1", "a")

    assert address is not None
    assert address.key is None
