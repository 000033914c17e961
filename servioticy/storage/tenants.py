"""The Tenants in Postgres."""

from __future__ import annotations

from servioticy.domain.tokens import digest, new_token
from servioticy.errors import Rejected
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresTenants:
    """Who owns Service Objects, and by which tokens they are known."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("tenants")

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""
        token = new_token()
        with self._database.transaction():
            row = self._database.row(self._sql["add_tenant"], {"name": name})
            row = row or self._database.row(self._sql["tenant_named"], {"name": name})
            if row is None:
                raise Rejected(f"the tenant {name} is being deleted; its name is free after that")
            values = {"digest": digest(token), "tenant": row[0]}
            self._database.rows(self._sql["add_token"], values)
        return token

    def delete_tenant(self, name: str) -> bool:
        """Let nobody of the tenant in from now on, and all of its go; False: there is none."""
        with self._database.transaction():
            row = self._database.row(self._sql["delete_tenant"], {"name": name})
            if row is not None:
                for drop in ("drop_tokens", "drop_members"):
                    self._database.rows(self._sql[drop], {"tenant": row[0]})
        return row is not None

    def tenant_of(self, token: str) -> int | None:
        """Return whose token it is, or None."""
        row = self._database.row(self._sql["tenant_of_token"], {"digest": digest(token)})
        return None if row is None else row[0]
