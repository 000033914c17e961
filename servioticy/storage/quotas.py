"""The quotas that operators give to tenants, in Postgres."""

from __future__ import annotations

from servioticy.domain.quotas import Exceeded, Quota
from servioticy.storage.database import Database
from servioticy.storage.queries import queries


class PostgresQuotas:
    """What tenants may have that is not what every tenant may have."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("quotas")

    def of_all(self, quota: str) -> dict[int, int]:
        """Return of those tenants that have another one what it is. Raises Unavailable."""
        return dict(self._database.rows(self._sql["of_all"], {"name": quota}))

    def used_up(self, quota: Quota) -> dict[int, Exceeded]:
        """Return who has used up its quota of this hour. Raises Unavailable."""
        values = {"name": quota.name, "most": quota.most}
        rows = self._database.rows(self._sql["used_up"], values)
        return {
            tenant: Exceeded(quota._replace(most=most), max(1, left))
            for tenant, most, left in rows
        }

    def of_tenant(self, name: str) -> dict[str, int] | None:
        """Return those of the tenant of this name; None: there is no such tenant."""
        rows = self._database.rows(self._sql["of_tenant"], {"name": name})
        if not rows:
            return None
        return {quota: most for _tenant, quota, most in rows if quota is not None}

    def give(self, name: str, quota: str, most: int | None) -> bool:
        """Let the tenant have so much; None: what every tenant has. False: no such tenant."""
        values = {"name": name, "quota": quota, "most": most}
        if most is None:
            self._database.rows(self._sql["unset"], values)
            return self.of_tenant(name) is not None
        return bool(self._database.rows(self._sql["set"], values))
