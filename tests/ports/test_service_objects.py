"""What ServiceObjects keep: documents, versions, customFields."""

from __future__ import annotations

from dataclasses import replace

import pytest
from port_builders import Stored, a_service_object

from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.service_objects import CurrentVersion, VersionKey

pytestmark = pytest.mark.real

AGAIN = b'{"streams":{"c":{"channels":{}},"a":{"channels":{}}}}'


@pytest.fixture
def key(stored: Stored) -> ServiceObjectKey:
    return stored.create("so1")


def another(key: ServiceObjectKey, custom_fields: bytes | None = None) -> NewServiceObject:
    """A document with the streams `c` and `a`, accepted later."""
    new = a_service_object(*key, document=AGAIN)
    return replace(new, streams=("c", "a"), created_at=2000, custom_fields=custom_fields)


def test_a_document_comes_back_untouched(stored: Stored) -> None:
    """Its order of keys is the order of computing; NUL and large numbers stay as written."""
    document = '{"z":1,"a":{"é":"\\u0000","n":123456789012345678901234567890}}'.encode()
    key = stored.create("so1", document=document)

    assert stored.service_objects.document(VersionKey(*key, 1)) == document
    assert stored.service_objects.document(VersionKey(*key, 2)) is None
    assert stored.service_objects.document(VersionKey(stored.tenant, "so2", 1)) is None


def test_ids_are_listed_in_order_of_creation(stored: Stored) -> None:
    for id_ in ("so3", "so1", "so2"):
        stored.create(id_)
    stored.change_store.create(a_service_object(stored.other, "so4"), 1)
    stored.change_store.delete(ServiceObjectKey(stored.tenant, "so1"), None, 2000)

    assert stored.service_objects.ids(stored.tenant) == ["so3", "so2"]


def test_a_new_version_is_in_force_for_the_api_at_once(
    stored: Stored, key: ServiceObjectKey
) -> None:
    stored.change_store.replace(another(key, b"{}"), 1)

    assert stored.service_objects.current(key) == CurrentVersion(2, 2, AGAIN, b"{}", 2000)
    assert stored.service_objects.versions(key) == [(1, 1000), (2, 2000)]


def test_an_earlier_version_comes_back_under_its_number(
    stored: Stored, key: ServiceObjectKey
) -> None:
    """The customFields are not part of it and stay as they are."""
    stored.change_store.replace(another(key, b'{"k":2}'), 1)
    first = replace(a_service_object(*key), created_at=3000)

    stored.change_store.replace(first, 2, version=1)

    current = stored.service_objects.current(key)
    assert current is not None
    assert (current.version, current.revision, current.custom_fields) == (1, 3, b'{"k":2}')
    assert stored.service_objects.versions(key) == [(1, 1000), (2, 2000)]


def test_a_change_of_an_earlier_revision_changes_nothing(
    stored: Stored, key: ServiceObjectKey
) -> None:
    stored.change_store.replace(another(key), 1)
    before = stored.service_objects.current(key)

    assert stored.change_store.replace(another(key, b"{}"), 1) is None
    assert not stored.service_objects.customise(key, 1, b"{}", 3000)
    assert stored.service_objects.current(key) == before
    assert stored.service_objects.versions(key) == [(1, 1000), (2, 2000)]


def test_custom_fields_change_without_a_version(stored: Stored, key: ServiceObjectKey) -> None:
    pending = stored.change_store.pending()

    assert stored.service_objects.customise(key, 1, b'{"k":1}', 2000)

    current = stored.service_objects.current(key)
    assert current is not None
    assert current == CurrentVersion(1, 2, current.document, b'{"k":1}', 2000)
    assert stored.change_store.pending() == pending


def test_documents_are_those_of_the_versions_named(stored: Stored, key: ServiceObjectKey) -> None:
    stored.change_store.replace(another(key), 1)
    versions = [VersionKey(*key, number) for number in (1, 2)]
    nothing = [VersionKey(*key, 3), VersionKey(stored.tenant, "nothing", 1)]

    assert stored.service_objects.documents([*versions, *nothing]) == {
        each: stored.service_objects.document(each) for each in versions
    }
    assert stored.service_objects.documents([]) == {}


def test_what_is_deleted_has_no_current_version(stored: Stored, key: ServiceObjectKey) -> None:
    stored.change_store.delete(key, None, 2000)

    assert stored.service_objects.current(key) is None
    assert stored.service_objects.ids(stored.tenant) == []
    assert not stored.service_objects.customise(key, 2, b"{}", 3000)
