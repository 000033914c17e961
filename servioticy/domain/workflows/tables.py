"""The sink of a workflow that is a table, and the databases that an operator lets tenants name.

As with stores of files a tenant names no host and no credential, but a database by the setting
`functions_databases`, and a table of the schema that is its own there:

    postgres://USER:SECRET@HOST[:PORT]/DATABASE/{tenant}?sslmode=verify-full

Without `{tenant}` as the schema `tenants` says whose that is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from servioticy.domain.documents.codes import DUPLICATE, REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.domain.workflows.files import STORE
from servioticy.domain.workflows.model import SinkTable
from servioticy.domain.workflows.named_urls import TENANT, is_of, named_url

SETTING = "functions_databases"
SCHEMES = ("postgres", "postgresql")
TABLE_KEYS = ("database", "table", "key")
MAX_NAME_BYTES = 63
"""Of what Postgres knows a table or a column by; it would cut a longer one, and mean another."""
MAX_KEY = 8
TLS = ("require", "verify-ca", "verify-full", "prefer", "disable")
_TABLE = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_NAME_BYTES - 1}}}")


@dataclass(frozen=True, slots=True)
class Server:
    """A database of a server, as who may write there."""

    host: str
    port: int
    database: str
    user: str
    secret: str = field(repr=False)
    tls: str
    """One of TLS, as libpq has it."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of it by its name, and whose it is."""

    server: Server
    name: str
    tenants: frozenset[str]
    """As `Store` has them."""

    def of(self, tenant: str) -> str | None:
        """Return the schema of a tenant, by its public id; None: it has none."""
        if not is_of(self.tenants, tenant):
            return None
        name = self.name.replace(TENANT, tenant)
        return name if len(name.encode()) <= MAX_NAME_BYTES else None


def databases(setting: Mapping[str, str]) -> dict[str, Schema]:
    """Understand the setting `functions_databases`. Raises SettingsError, without the secret."""
    return {name: _schema(name, url) for name, url in setting.items()}


def _schema(name: str, url: str) -> Schema:
    own = named_url(SETTING, name, url, ("sslmode",))
    parts, steps = own.parts, own.steps
    if parts.scheme not in SCHEMES:
        raise own.wrong(f"begins with {SCHEMES[0]}:")
    user, secret = parts.username, parts.password
    if not parts.hostname or len(steps) != 2 or TENANT in steps[0] or not user or not secret:
        raise own.wrong(f"is written {SCHEMES[0]}://USER:SECRET@HOST/DATABASE/SCHEMA")
    tls = own.one("sslmode", TLS[0], TLS)
    port = parts.port or 5432
    server = Server(parts.hostname, port, steps[0], unquote(user), unquote(secret), tls)
    return Schema(server, steps[1], own.tenants)


def sink_table_of(content: Mapping[str, Any], part: Part) -> SinkTable:
    """Understand it. Raises BadDocument; whether there is such a database is asked by who can."""
    database, table = content.get("database"), content.get("table")
    if database is None:
        raise part.at("database").bad("a table is in a database, by its name", REQUIRED)
    if not isinstance(database, str) or not STORE.fullmatch(database):
        reason = "a database has a name of 1 to 50 of A-Z a-z 0-9 _ -"
        raise part.at("database").bad(reason, WRONG_TYPE)
    if table is None:
        raise part.at("table").bad("rows go into one, by its name", REQUIRED)
    if not isinstance(table, str) or not _TABLE.fullmatch(table):
        reason = f"is 1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 _, and begins with no digit"
        raise part.at("table").bad(reason, WRONG_TYPE)
    return SinkTable(database, table, _key(content.get("key", []), part.at("key")))


def _key(columns: Any, part: Part) -> Sequence[str]:
    if not isinstance(columns, list):
        raise part.bad("is a list of columns", WRONG_TYPE)
    if len(columns) > MAX_KEY:
        raise part.bad(f"there are at most {MAX_KEY}", TOO_MUCH)
    for number, each in enumerate(columns):
        if not isinstance(each, str) or not is_column(each):
            raise part.at(number).bad(f"is text of 1 to {MAX_NAME_BYTES} bytes", WRONG_TYPE)
        if each in columns[:number]:
            raise part.at(number).bad("is there twice", DUPLICATE)
    return tuple(columns)


def is_column(name: str) -> bool:
    """Tell whether a column may be called so."""
    try:
        return 0 < len(name.encode()) <= MAX_NAME_BYTES and "\0" not in name
    except UnicodeEncodeError:
        return False
