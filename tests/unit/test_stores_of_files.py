"""The setting that makes stores: whose each is, and nothing of its secret in any message."""

from __future__ import annotations

import pytest

from servioticy.domain.workflows.stores import Bucket, Folder, Keys, stores
from servioticy.errors import SettingsError
from servioticy.settings import changed, load

S3 = "s3+https://KEY:s%2Fcret@s3.example.org/lake"


def test_each_tenant_has_a_part_of_its_own() -> None:
    found = stores({"in": "file:///srv/in/{tenant}", "lake": S3 + "/raw/{tenant}?region=eu"})

    assert found["in"].of("t1") == Folder("/srv/in", ("t1",))
    keys = Keys("KEY", "s/cret")
    expected = Bucket("s3.example.org", 443, True, "lake", "raw/t1/", "eu", keys)
    assert found["lake"].of("t1") == expected


def test_what_has_no_parts_is_for_whom_it_says() -> None:
    own = stores({"in": "file:///srv/in?tenants=t1,t2"})["in"]

    assert own.of("t2") == Folder("/srv", ("in",))
    assert own.of("t3") is None


def test_what_tenants_may_own_is_told_from_what_they_may_not() -> None:
    """In every step from the first one that is a tenant's, a link could lead to another's."""
    own = stores({"in": "file:///srv/of-{tenant}/in/{tenant}?tenants=t1"})["in"]

    assert own.of("t1") == Folder("/srv", ("of-t1", "in", "t1"))


@pytest.mark.parametrize("tenant", ["", ".", "..", "a/b", "../t1", "\0"])
def test_who_is_no_step_of_a_path_has_no_files(tenant: str) -> None:
    """A tenant that is gone has an empty id: what is above its folder would be everybody's."""
    found = stores({"in": "file:///srv/in/{tenant}", "lake": S3 + "/raw/{tenant}"})

    assert found["in"].of(tenant) is None
    assert found["lake"].of(tenant) is None


@pytest.mark.parametrize(
    "url",
    [
        "file:///srv/in",
        "file://host/srv/{tenant}",
        "file:///srv/../{tenant}",
        "file:///",
        "https://KEY:s%2Fcret@host/bucket/{tenant}",
        "s3+https://KEY:s%2Fcret@host/{tenant}",
        "s3+https://KEY:s%2Fcret@host:port/bucket/{tenant}",
        "s3+https://host/bucket/{tenant}",
        "s3+https://KEY:s%2Fcret@host/bucket",
        S3 + "/{tenant}?color=red",
    ],
)
def test_what_is_wrong_is_told_without_the_secret(url: str) -> None:
    with pytest.raises(SettingsError, match="functions_stores: lake: ") as told:
        stores({"lake": url})

    assert "cret" not in str(told.value)


def test_the_setting_shows_no_secret() -> None:
    settings = changed(load({}), functions_stores={"lake": S3})

    assert "cret" not in repr(settings)
    assert "cret" not in repr(stores({"lake": S3 + "/{tenant}"}))
    with pytest.raises(SettingsError) as told:
        changed(load({}), functions_stores={"a b": S3})
    assert "cret" not in str(told.value)


def test_an_operator_says_where_may_be_written() -> None:
    found = stores({"a": "file:///srv/{tenant}", "b": "file:///srv/{tenant}?write=yes"})

    assert [each.is_writable for each in found.values()] == [False, True]
    with pytest.raises(SettingsError, match="yes or no"):
        stores({"a": "file:///srv/{tenant}?write=1"})
