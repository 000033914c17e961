"""Row level security holds for every table, and nobody who serves tenants may pass it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import psycopg2.errors
import pytest
from port_builders import PARTITIONS, Stored, a_service_object

from servioticy.embedded.postgres import EmbeddedPostgres, login
from servioticy.errors import SetupError, Unavailable
from servioticy.storage.database import Database
from servioticy.storage.migrations import migrate
from servioticy.storage.roles import Role, give_logins

NOT_OF_TENANTS = {
    "migrations": "which files were applied",
    "progress": "how far partitions of the log are stored",
    "forwarded": "how far partitions of the log are forwarded",
    "crossings": "what partitions of the log have still to send to others",
    "log_identity": "which log that is",
    "console_keys": "by which the API signs what browsers keep of sign-ins",
    "retention": "a setting of the operator's",
    "measurements": "what is measured of our own steps, which no tenant is named by",
    "log_losses": "what an operator has accepted",
    "stored_updates": "the partition of updates that COPY goes into, and nobody else",
}
ALL_TENANTS = {
    Role.API: set(),
    Role.PLATFORM: {
        *("dead_atoms", "collected_atoms", "workflow_hours"),
        *("tenants", "tokens", "service_objects", "definitions", "streams", "graph_edges"),
        *("pending_changes", "subscriptions", "cursors", "listings", "template_objects"),
        *("dynamic_groups", "group_looks", "membership_marks", "jobs", "audit", "audit_counts"),
        "backfills",
        "audit_parts",
        "ended_grants",
        *("idempotency", "templates", "dead_deliveries"),
        *("grants", "usage_hours", "quotas", "claim_codes", "members", "console_sessions"),
        "console_sign_ins",
        *("inputs_from_outside", "marks"),
        *("operators", "operator_versions", "operator_grants"),
    },
    Role.PIPELINE: {
        *("tenants", "service_objects", "definitions", "streams", "graph_edges", "subscriptions"),
        *(
            "updates",
            "superseded",
            "states",
            "kept_entries",
            "verdicts",
            "usage",
            "purge",
            "searched_streams",
        ),
        *("search_blocks", "put_off", "grants", "usage_hours", "stored_amounts", "used_amounts"),
        *("quotas", "inputs_from_outside", "outside_readers", "marks"),
        *("jobs", "backfills", "backfilled"),
        *("aspects", "aspect_minutes"),
        *("operator_versions", "operator_grants", "operator_runs"),
    },
    Role.DELIVERY: {
        *("tenants", "tokens", "service_objects", "streams", "subscriptions", "cursors"),
        *("dead_deliveries", "callback_tests", "actuations", "actuation_callbacks"),
        *("acting_streams", "graph_edges", "usage_hours", "used_amounts", "quotas", "grants"),
        "members",
        "console_sessions",
        *("workflows", "workflow_versions", "atoms", "atom_counts", "dead_atoms"),
        *("collected_atoms", "workflow_instances", "workflow_hours", "workflow_objects"),
        *("operator_versions", "operator_grants", "operator_runs"),
    },
}
"""Of which tables each role sees rows of no certain tenant: who adds one says it here."""


@pytest.fixture(scope="module")
def owner(session_dsn: str) -> Iterator[Database]:
    found = Database(session_dsn)
    yield found
    found.close()


@pytest.fixture
def stored(dsn: str) -> Iterator[Stored]:
    databases = [Database(dsn), Database(dsn, role=Role.API), Database(dsn, role=Role.PIPELINE)]
    found = Stored(*databases)
    for tenant, id_ in ((found.tenant, "so1"), (found.other, "so2")):
        found.change_store.create(a_service_object(tenant, id_), PARTITIONS)
    yield found
    for each in databases:
        each.close()


def tables(owner: Database) -> dict[str, tuple[bool, bool]]:
    """Whether row level security is on, and forced, for each table."""
    rows = owner.rows(
        "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    )
    return {name: (on, forced) for name, on, forced in rows}


def test_it_is_forced_for_every_table_of_tenants(owner: Database) -> None:
    found = tables(owner)

    assert {name for name, how in found.items() if how != (True, True)} == set(NOT_OF_TENANTS)


def test_every_such_table_lets_a_tenant_see_its_own_rows_only(owner: Database) -> None:
    """One policy for all commands, which goes by the setting for what is written, too."""
    policies = owner.rows(
        "SELECT tablename, cmd, qual, with_check FROM pg_policies"
        " WHERE 'servioticy_api' = ANY(roles)"
    )

    assert {row[0] for row in policies} == set(tables(owner)) - set(NOT_OF_TENANTS)
    for table, command, sees, writes in policies:
        column = "id" if table == "tenants" else "tenant_id"
        assert command == "ALL"
        assert sees == writes
        assert sees.startswith(f"({column} = ANY (")
        assert "servioticy.tenants" in sees


@pytest.mark.parametrize("role", Role)
def test_a_role_sees_all_tenants_rows_where_that_is_told_only(owner: Database, role: Role) -> None:
    rows = owner.rows(
        "SELECT DISTINCT tablename FROM pg_policies"
        " WHERE %(role)s = ANY(roles) AND 'true' IN (qual, with_check)",
        {"role": role.value},
    )

    every = {name for name, how in tables(owner).items() if how[0]}
    assert {table for (table,) in rows} == (every if role is Role.BACKUP else ALL_TENANTS[role])


def test_who_makes_back_ups_changes_nothing(owner: Database) -> None:
    rows = owner.rows(
        "SELECT DISTINCT cmd FROM pg_policies WHERE 'servioticy_backup' = ANY(roles)"
    )

    assert rows == [("SELECT",)]


@pytest.mark.parametrize("role", Role)
def test_a_role_passes_no_policy_and_owns_no_table(owner: Database, role: Role) -> None:
    attributes = owner.row(
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolinherit"
        " FROM pg_roles WHERE rolname = %(role)s",
        {"role": role.value},
    )
    owned = owner.rows(
        "SELECT relname FROM pg_class WHERE relkind <> 'i' AND relowner = %(role)s::regrole",
        {"role": role.value},
    )

    assert attributes == (False,) * 6
    assert owned == []


MAY_BE_ASKED = {
    "is_granted": set(Role) - {Role.BACKUP},
    "granted_for": {Role.PLATFORM, Role.DELIVERY},
    "granted_objects": {Role.PLATFORM},
    "grant_used": {Role.PLATFORM, Role.PIPELINE, Role.DELIVERY},
    "note_grant_used": {Role.PLATFORM, Role.PIPELINE, Role.DELIVERY},
}
"""Functions that see rows of all tenants, and who needs them. Triggers' nobody can call."""


def test_what_sees_all_tenants_rows_may_be_asked_by_whom_that_is_told_only(
    owner: Database,
) -> None:
    rows = owner.rows(
        "SELECT proname, rolname FROM pg_proc, pg_roles"
        " WHERE pronamespace = 'public'::regnamespace AND prosecdef"
        "   AND prorettype <> 'trigger'::regtype AND rolname = ANY(%(roles)s)"
        "   AND rolname <> 'servioticy_platform'"
        "   AND has_function_privilege(rolname, pg_proc.oid, 'EXECUTE')",
        {"roles": [each.value for each in Role]},
    )

    assert set(rows) == {
        (name, role.value)
        for name, roles in MAY_BE_ASKED.items()
        for role in roles - {Role.PLATFORM}  # owns them
    }


@pytest.mark.parametrize("role", [Role.API, Role.DELIVERY])
def test_without_a_tenant_no_row_is_seen(stored: Stored, dsn: str, role: Role) -> None:
    """Of no table that is not told above; and where reading is not granted, that is an error."""
    database = Database(dsn, role=role)
    seen = set()
    for table in set(tables(stored.database)) - set(NOT_OF_TENANTS) - ALL_TENANTS[role]:
        try:
            (count,) = database.rows(f"SELECT count(*) FROM {table}")[0]
        except psycopg2.errors.InsufficientPrivilege:
            continue
        seen |= {table} if count else set()
    database.close()

    assert seen == set()


def test_a_statement_sees_the_rows_of_the_tenants_that_it_names(stored: Stored, dsn: str) -> None:
    """Though its condition is forgotten; and the next one on the connection sees none."""
    api = Database(dsn, role=Role.API)
    every = "SELECT id FROM service_objects ORDER BY id"
    both = {"tenants": [stored.tenant, stored.other]}
    named = [api.rows(every, each) for each in ({"tenant": stored.tenant}, {}, both, {})]
    with api.transaction():
        inside = [api.rows(every, each) for each in ({"tenant": stored.other}, {}, both)]
    after = api.rows(every)
    api.close()

    assert named == [[("so1",)], [], [("so1",), ("so2",)], []]
    assert inside == [[("so2",)], [], [("so1",), ("so2",)]]
    assert after == []


def test_nobody_writes_what_is_anothers(stored: Stored, dsn: str) -> None:
    api = Database(dsn, role=Role.API)
    theirs = {"tenant": stored.tenant, "other": stored.other}
    rename = "UPDATE streams SET name = 'x' WHERE service_object = 'so2' RETURNING id"
    give = "UPDATE streams SET tenant_id = %(other)s WHERE service_object = 'so1'"
    add = "INSERT INTO streams (tenant_id, service_object, name) VALUES (%(other)s, 'so2', 'z')"

    assert api.rows(rename, theirs) == []
    for each in (give, add):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="row-level security"):
            api.rows(each, theirs)
    api.close()


@pytest.mark.parametrize("role", [Role.API, Role.PLATFORM, Role.DELIVERY])
def test_nobody_goes_around_the_policies_of_updates(dsn: str, role: Role) -> None:
    """The partition that has none is the pipeline's to add to, and nobody's to read."""
    database = Database(dsn, role=role)
    for each in ("SELECT FROM stored_updates", "DELETE FROM stored_updates"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            database.rows(each)
    database.close()


def test_the_pipeline_may_not_read_the_partition_or_a_token(dsn: str) -> None:
    database = Database(dsn, role=Role.PIPELINE)
    for each in ("SELECT FROM stored_updates", "SELECT FROM tokens"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            database.rows(each)
    database.close()


def test_a_program_with_a_login_of_its_own_becomes_nothing_else(
    real_postgres: EmbeddedPostgres, dsn: str
) -> None:
    database = Database(dsn)
    passwords = {Role.DELIVERY: login(dsn, Role.DELIVERY.value).password}
    give_logins(database, passwords)
    own = login(dsn, Role.DELIVERY.value).dsn
    program = Database(own, role=Role.DELIVERY)

    assert program.rows("SELECT session_user::text") == [("servioticy_delivery",)]
    for role in ("servioticy", "servioticy_platform", "servioticy_pipeline"):
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            program.rows(f"SET ROLE {role}")
    with pytest.raises(Unavailable, match="servioticy migrate"):
        Database(own, role=Role.PIPELINE).rows("SELECT 1")
    program.close()
    database.close()


@pytest.fixture
def plain(real_postgres: EmbeddedPostgres, migrated: str, empty_dsn: str) -> Iterator[str]:
    """An owner of a database who is nothing else, as on a server of others.

    The roles are there: they are made with the first database that is migrated.
    """
    database = Database(empty_dsn)
    name = empty_dsn.rpartition("/")[2]
    database.rows(
        "CREATE ROLE plain LOGIN PASSWORD 'plain' CREATEROLE;"
        f"ALTER DATABASE {name} OWNER TO plain; ALTER SCHEMA public OWNER TO plain"
    )
    yield empty_dsn.replace(real_postgres.dsn.split("//")[1].split("@")[0], "plain:plain")
    database.rows(f"ALTER DATABASE {name} OWNER TO CURRENT_USER")
    database.rows("REASSIGN OWNED BY plain TO CURRENT_USER; DROP OWNED BY plain; DROP ROLE plain")
    database.close()


def granted(dsn: str) -> None:
    database = Database(dsn)
    database.rows(f"GRANT {', '.join(each.value for each in Role)} TO plain")
    database.close()


def test_an_owner_who_is_no_superuser_migrates(plain: str, empty_dsn: str) -> None:
    """And the programs work by its login; a forgotten NO FORCE is an error, not a hole."""
    granted(empty_dsn)
    owner = Database(plain)
    migrate(owner)
    api, pipeline = Database(plain, role=Role.API), Database(plain, role=Role.PIPELINE)
    found = Stored(owner, api, pipeline)
    found.create("so1")
    with (
        pytest.raises(psycopg2.errors.InsufficientPrivilege, match="row-level security"),
        owner.transaction(),
    ):
        owner.rows("SET LOCAL row_security = off")
        owner.rows("UPDATE tenants SET name = 'x'")

    assert found.service_objects.ids(found.tenant) == ["so1"]
    assert found.service_objects.ids(found.other) == []
    for each in (owner, api, pipeline):
        each.close()


def test_who_may_not_be_these_roles_is_told_what_to_ask_for(plain: str) -> None:
    """The roles are there, made by another installation: only who made them may grant them."""
    owner = Database(plain)
    with pytest.raises(SetupError, match=r"GRANT servioticy_api, .* TO that user"):
        migrate(owner)
    owner.close()


def test_a_role_that_passes_policies_is_refused(dsn: str) -> None:
    database = Database(dsn)
    database.rows("ALTER ROLE servioticy_delivery BYPASSRLS")
    try:
        with pytest.raises(SetupError, match="servioticy_delivery own tables or pass row level"):
            migrate(database)
    finally:
        database.rows("ALTER ROLE servioticy_delivery NOBYPASSRLS")
    database.close()
