"""What is told of tokens and Service Objects, as soon as it is committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import waiting
from port_builders import Stored

from servioticy.domain.model import Grant
from servioticy.domain.persons import Person
from servioticy.domain.tokens import digest
from servioticy.errors import Unavailable
from servioticy.ports.access_changes import AccessChange
from servioticy.ports.change_store import NewGrant
from servioticy.storage.access_changes import PostgresAccessChanges
from servioticy.storage.database import Database
from servioticy.storage.statements import PostgresStatements

pytestmark = pytest.mark.real

SECONDS = 20.0
EVERYTHING, NOTHING = AccessChange(everything=True), AccessChange([], [])


@pytest.fixture
def listening(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    yield database
    database.close()


@pytest.fixture
def changes(listening: Database) -> PostgresAccessChanges:
    found = PostgresAccessChanges(listening)
    assert found.wait(0) == EVERYTHING
    return found


def make(stored: Stored, token: str) -> None:
    PostgresStatements(stored.database, "tokens").rows(
        "make",
        digest=digest(token),
        tenant=stored.tenant,
        id=token,
        name=token,
        service_object=None,
        stream=None,
        rights=None,
        expires=None,
        most=10,
    )


@pytest.mark.parametrize("overlap", [0, 60])
def test_a_token_that_is_rotated_is_told(
    stored: Stored, changes: PostgresAccessChanges, overlap: int
) -> None:
    make(stored, "a")
    values = {"before": "a", "id": "b", "tenant": stored.tenant, "overlap": overlap}
    stored_tokens = PostgresStatements(stored.database, "tokens")
    stored_tokens.rows("rotate", **values, digest=digest("b"), expires=None, most=9, most_of_one=9)

    assert changes.wait(SECONDS) == AccessChange([digest("a")], [])
    found = stored.addresses.address("a", None, None)
    assert (found is not None) == bool(overlap)
    if found is not None:
        assert 0 < (found.expires_in or 0) <= overlap


def test_a_token_that_is_revoked_is_told(stored: Stored, changes: PostgresAccessChanges) -> None:
    make(stored, "a")
    PostgresStatements(stored.database, "tokens").rows("revoke", id="a", tenant=stored.tenant)

    assert changes.wait(SECONDS) == AccessChange([digest("a")], [])


def test_a_member_of_another_role_or_of_none_is_told_and_other_changes_are_not(
    stored: Stored, changes: PostgresAccessChanges
) -> None:
    """All that a person has opened is looked at anew, for whatever tenant."""
    alice = Person("https://login.example.org", "alice")
    stored.add_member("m", alice, "admin")
    changed = {"id": "m", "tenant": stored.tenant, "role": None, "name": None, "email": None}
    assert stored.members.rows("change", **{**changed, "name": "Alice"})
    assert changes.wait(0) == NOTHING

    assert stored.members.rows("change", **{**changed, "role": "viewer"})
    assert changes.wait(SECONDS) == AccessChange([alice.digest], [])
    assert stored.members.rows("remove", id="m", tenant=stored.tenant)
    assert changes.wait(SECONDS) == AccessChange([alice.digest], [])


def test_what_becomes_private_or_goes_is_told_and_other_changes_are_not(
    stored: Stored, changes: PostgresAccessChanges
) -> None:
    open_, other = stored.create("open", public=True), stored.create("other")
    values = {"id": "other", "tenant": stored.tenant, "now": 2, "custom_fields": "{}"}
    customise = PostgresStatements(stored.database, "service_objects")
    assert customise.rows("customise", **values, revision=1)
    assert changes.wait(0) == NOTHING
    stored.database.rows("UPDATE service_objects SET public = false WHERE id = 'open'")
    assert changes.wait(SECONDS) == AccessChange([], ["open"])
    stored.change_store.delete(open_, None, 2000)
    assert changes.wait(SECONDS).service_objects == ["open"]
    stored.change_store.delete(other, None, 2000)
    assert changes.wait(SECONDS).service_objects == ["other"]


def test_a_grant_is_told_and_its_end(stored: Stored, changes: PostgresAccessChanges) -> None:
    """So who reads by it goes at once, as who reads what becomes private."""
    key = stored.create("lent")
    grant = Grant("g", stored.other, None, derived_only=False)
    stored.change_store.grant(NewGrant(key, grant, 1000, None), 9)
    assert changes.wait(SECONDS) == AccessChange([], ["lent"])

    stored.change_store.revoke(stored.tenant, "g", 2000)
    assert changes.wait(SECONDS) == AccessChange([], ["lent"])


def test_what_is_rolled_back_is_not_told(stored: Stored, changes: PostgresAccessChanges) -> None:
    make(stored, "a")
    with pytest.raises(LookupError), stored.database.transaction():
        stored.database.rows("DELETE FROM tokens")
        raise LookupError

    assert changes.wait(0) == NOTHING


def test_after_a_lost_connection_everything_may_have_changed(
    stored: Stored, changes: PostgresAccessChanges
) -> None:
    stored.database.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    )
    with pytest.raises(Unavailable):  # at the latest after what was told before
        waiting.until(lambda: changes.wait(SECONDS) is None)

    assert changes.wait(0) == EVERYTHING
    make(stored, "a")
    stored.database.rows("DELETE FROM tokens WHERE id = 'a'")
    assert changes.wait(SECONDS).callers == [digest("a")]
