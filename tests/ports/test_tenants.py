"""What every Tenants promises."""

from __future__ import annotations

from port_builders import Storage


def test_a_token_names_its_tenant(storage: Storage) -> None:
    first, other = (storage.tenants.create_tenant(name) for name in ("acme", "umbrella"))

    assert storage.tenants.tenant_of(first) is not None
    assert storage.tenants.tenant_of(first) != storage.tenants.tenant_of(other)


def test_a_tenant_may_have_several_tokens(storage: Storage) -> None:
    first, second = (storage.tenants.create_tenant("acme") for _ in range(2))

    assert first != second
    assert storage.tenants.tenant_of(first) == storage.tenants.tenant_of(second)


def test_an_unknown_token_names_nobody(storage: Storage) -> None:
    assert storage.tenants.tenant_of("nonsense") is None


def test_a_deleted_tenants_tokens_are_good_for_nothing(storage: Storage) -> None:
    deleted, other = (storage.tenants.create_tenant(name) for name in ("acme", "umbrella"))

    assert storage.tenants.delete_tenant("acme")
    assert not storage.tenants.delete_tenant("acme")
    assert storage.tenants.tenant_of(deleted) is None
    assert storage.tenants.tenant_of(other) is not None
