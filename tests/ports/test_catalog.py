"""What every Catalog promises."""

from __future__ import annotations

import threading

import pytest
from port_builders import PARTITIONS, Storage, a_service_object

from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.addresses import Address
from servioticy.ports.catalog import Change, Source


def test_a_token_names_its_tenant(storage: Storage) -> None:
    first, token = storage.tenant("acme")
    other, _ = storage.tenant("umbrella")

    assert storage.catalog.tenant_of(token) == first != other


def test_a_tenant_may_have_several_tokens(storage: Storage) -> None:
    tenant, token = storage.tenant("acme")
    again, another = storage.tenant("acme")

    assert tenant == again
    assert token != another
    assert storage.catalog.tenant_of(token) == tenant


def test_an_unknown_token_names_nobody(storage: Storage) -> None:
    assert storage.catalog.tenant_of("nonsense") is None
    assert storage.catalog.address("nonsense", "so1", "a") is None


def test_an_address_tells_all_a_request_needs(storage: Storage) -> None:
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")

    address = storage.catalog.address(token, "so1", "a")

    assert address is not None
    assert address == Address(tenant, "so1", tenant, False, 1, 0, address.stream_id)
    assert isinstance(address.stream_id, int)


@pytest.mark.parametrize("name", ["nothing", "", "so1\0"])
def test_what_does_not_exist_has_no_id_in_an_address(storage: Storage, name: str) -> None:
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")

    missing = Address(tenant, None, None, False, 0, 0, None)
    assert storage.catalog.address(token, name, "a") == missing


@pytest.mark.parametrize("name", [None, "nothing", "A"])
def test_what_is_no_stream_has_no_stream_id(storage: Storage, name: str | None) -> None:
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")

    address = storage.catalog.address(token, "so1", name)

    assert address is not None
    assert (address.service_object, address.stream_id) == ("so1", None)


def test_an_address_tells_whose_and_whether_public(storage: Storage) -> None:
    owner, _ = storage.tenant("acme")
    caller, token = storage.tenant("umbrella")
    storage.catalog.create(a_service_object(owner, "so1", public=True), PARTITIONS)

    address = storage.catalog.address(token, "so1", None)

    assert address is not None
    assert (address.caller, address.owner, address.public) == (caller, owner, True)


def test_a_document_comes_back_untouched(storage: Storage) -> None:
    """Its order of keys is the order of computing; NUL and large numbers stay as written."""
    document = '{"z":1,"a":{"é":"\\u0000","n":123456789012345678901234567890}}'.encode()
    tenant, _ = storage.tenant()
    storage.catalog.create(a_service_object(tenant, "so1", document=document), PARTITIONS)

    assert storage.catalog.document("so1", 1) == document
    assert storage.catalog.document("so1", 2) is None
    assert storage.catalog.document("so2", 1) is None


def test_ids_are_listed_in_order_of_creation(storage: Storage) -> None:
    tenant, _ = storage.tenant("acme")
    other, _ = storage.tenant("umbrella")
    for id_ in ("so3", "so1", "so2"):
        storage.create(tenant, id_)
    storage.create(other, "so4")

    assert storage.catalog.ids(tenant) == ["so3", "so1", "so2"]


def test_an_id_is_taken_once(storage: Storage) -> None:
    """All or nothing: what failed leaves no pending change."""
    tenant, _ = storage.tenant()
    storage.create(tenant, "so1")

    with pytest.raises(Exception, match=r"so1|duplicate"):
        storage.create(tenant, "so1")
    assert len(storage.catalog.pending()) == 1


def test_sources_tell_what_a_group_needs_to_know(storage: Storage) -> None:
    tenant, _ = storage.tenant()
    storage.create(tenant, "so1")

    found = storage.catalog.sources(["so1", "nothing"])

    streams = found["so1"].streams
    assert found == {"so1": Source("so1", tenant, False, "so1", 0, streams)}
    assert sorted(streams) == ["a", "b"]


def test_new_components_go_to_the_quietest_partition(storage: Storage) -> None:
    tenant, _ = storage.tenant()
    partitions = [storage.create(tenant, f"so{n}").partition for n in range(4)]

    assert partitions == [0, 1, 0, 1]


def test_a_composite_joins_its_source(storage: Storage) -> None:
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")
    storage.create(tenant, "so2")

    change = storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    assert change == Change("so3", 1, 1)
    assert storage.catalog.sources(["so3"])["so3"].component == "so2"
    address = storage.catalog.address(token, "so3", None)
    assert address is not None and address.partition == 1


def test_the_smaller_component_moves_to_the_larger(storage: Storage) -> None:
    """And is routed there only when the log knows."""
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")
    storage.create(tenant, "so2")
    storage.create(tenant, "so3", (("g", StreamRef("so2", "a")),))

    sources = (("g", StreamRef("so1", "a")), ("g", StreamRef("so2", "a")))
    change = storage.create(tenant, "so4", sources)

    assert change == Change("so4", 1, 1, ((0, ("so1",)),))
    components = {each.component for each in storage.catalog.sources(["so1", "so4"]).values()}
    assert components == {"so2"}
    assert routed(storage, token, "so1") == 0

    for number, each in storage.catalog.pending():
        storage.catalog.finish(number, each)

    assert routed(storage, token, "so1") == 1
    assert storage.catalog.pending() == []


def test_changes_are_pending_until_finished(storage: Storage) -> None:
    tenant, _ = storage.tenant()
    changes = [storage.create(tenant, "so1"), storage.create(tenant, "so2")]

    pending = storage.catalog.pending()
    assert [change for _, change in pending] == changes

    storage.catalog.finish(*pending[0])
    assert storage.catalog.pending() == pending[1:]


def test_one_at_a_time_changes_the_graph(storage: Storage) -> None:
    entered = threading.Event()

    def other() -> None:
        with storage.catalog.changing():
            entered.set()

    thread = threading.Thread(target=other)
    with storage.catalog.changing():
        thread.start()
        assert not entered.wait(0.2)

    assert entered.wait(5)
    thread.join()


def test_the_right_to_change_is_given_back_after_an_error(storage: Storage) -> None:
    with pytest.raises(LookupError), storage.catalog.changing():
        raise LookupError

    thread = threading.Thread(target=lambda: storage.catalog.changing().__enter__())
    thread.start()
    thread.join(5)
    assert not thread.is_alive()


def test_the_same_pubsub_subscription_is_refused(storage: Storage) -> None:
    tenant, token = storage.tenant()
    storage.create(tenant, "so1")
    a, b = (storage.stream_id(token, "so1", name) for name in "ab")

    def subscribe(id_: str, stream: int, callback: str, destination: str) -> bool:
        return storage.catalog.subscribe(
            id_, tenant, stream, callback, destination, b'{"k":1}', 1000
        )

    assert subscribe("1", a, "pubsub", "x")
    assert not subscribe("2", a, "pubsub", "x")
    assert subscribe("3", b, "pubsub", "x")
    assert subscribe("4", a, "pubsub", "y")
    assert subscribe("5", a, "websocket", "x")
    assert subscribe("6", a, "websocket", "x")


def routed(storage: Storage, token: str, id_: str) -> int:
    address = storage.catalog.address(token, id_, None)
    assert address is not None
    return address.partition


def test_a_change_does_not_wait_for_ever_for_another(storage: Storage) -> None:
    """Who changes the graph holds a thread of the API; a stuck one must not hold them all."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with storage.catalog.changing():
            held.set()
            done.wait(30)

    other = threading.Thread(target=hold)
    other.start()
    held.wait(30)
    with pytest.raises(Unavailable, match="others are changing"), storage.catalog.changing():
        pass
    done.set()
    other.join()

    with storage.catalog.changing():
        pass
