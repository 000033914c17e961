"""As whom statements run in Postgres: its roles, and the tenants whose rows they may see.

Policies of row level security go by both (migration 0080). What is set is set in the message of
the statement itself and ends with its transaction, so that no connection ever carries a tenant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple

import psycopg2.errors

from servioticy.domain.actor import current_actor
from servioticy.errors import SetupError
from servioticy.storage.queries import queries


class Role(Enum):
    """The roles of the programs; none of them owns a table or passes a policy."""

    API = "servioticy_api"
    """Sees what belongs to the tenants that a statement names."""
    PLATFORM = "servioticy_platform"
    """The API between tenants: statements whose text says so (`-- Between tenants`)."""
    PIPELINE = "servioticy_pipeline"
    DELIVERY = "servioticy_delivery"
    BACKUP = "servioticy_backup"
    """Sees all rows of all tables, for a back-up; changes none."""


class Standing(NamedTuple):
    """As whom a statement runs; as it is, nobody's rows are seen."""

    between: bool = False
    """Whether as PLATFORM."""
    tenants: str = ""
    """An array of numbers."""
    actor: str = ""
    """On whose behalf it writes; for the audit log."""


NOBODY = Standing()

_WRITING = re.compile(r"\b(?:INSERT|UPDATE|DELETE)\b")
_BETWEEN = re.compile(r"^-- Between tenants\b", re.MULTILINE)


def standing(role: Role | None, sql: str, values: Mapping[str, Any]) -> Standing:
    """Return as whom a connection of this role runs the statement.

    Its values `tenant` and `tenants` say whose rows it is about, whatever its text does.
    """
    if role not in (Role.API, Role.DELIVERY):
        return NOBODY
    tenants = set(values.get("tenants") or ())
    if values.get("tenant") is not None:
        tenants.add(values["tenant"])
    text = "{" + ",".join(str(int(each)) for each in sorted(tenants)) + "}" if tenants else ""
    return Standing(role is Role.API and is_between_tenants(sql), text, _actor(sql))


def _actor(sql: str) -> str:
    actor = current_actor()
    if actor is None or not _writes(sql):
        return ""
    return f"{int(actor.tenant)} {actor.token}".replace("'", "")


@cache
def _writes(sql: str) -> bool:
    return _WRITING.search(sql) is not None


@cache
def is_between_tenants(sql: str) -> bool:
    """Tell whether the statement says that it is about rows of no certain tenant."""
    return _BETWEEN.search(sql) is not None


def changing(before: Standing, after: Standing) -> str:
    """Return what makes one the other until the end of the transaction."""
    text = ""
    if after.between != before.between:
        role = Role.PLATFORM if after.between else Role.API
        text += f"SET LOCAL ROLE {role.value};"
    if after.tenants != before.tenants:
        text += f"SET LOCAL servioticy.tenants = '{after.tenants}';"
    if after.actor != before.actor:
        text += f"SET LOCAL servioticy.actor = '{after.actor}';"
    return text


def give_logins(database: Any, passwords: Mapping[Role, str]) -> None:
    """Let these roles log in themselves, so that a program that does can be nothing else."""
    for role, password in passwords.items():
        database.rows(
            f"ALTER ROLE {role.value} LOGIN PASSWORD %(password)s", {"password": password}
        )


def make_roles(database: Any) -> None:
    """Make those that the server lacks. Raises SetupError where that may not be, saying how."""
    sql = queries("roles")
    try:
        database.rows(sql["make"])
    except psycopg2.errors.InsufficientPrivilege as error:
        made = " ".join(f"CREATE ROLE {each.value} NOLOGIN NOINHERIT;" for each in Role)
        granted = ", ".join(each.value for each in Role)
        raise SetupError(
            "the user of `dsn` may not make the roles that row level security needs "
            f"({str(error).strip()}). Let an administrator of this Postgres run: {made} "
            f"GRANT servioticy_platform TO servioticy_api; GRANT {granted} TO that user"
        ) from error
    names = [each.value for each in Role]
    mighty = [name for (name,) in database.rows(sql["too_mighty"], {"roles": names})]
    if mighty:
        raise SetupError(
            f"the roles {', '.join(mighty)} own tables or pass row level security, so tenants "
            "would not be kept apart: take SUPERUSER and BYPASSRLS from them, and their tables"
        )
