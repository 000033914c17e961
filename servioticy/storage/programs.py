"""Programs of tenants' own in Postgres, for whoever runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Run, StoredProgram
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

MAX_VERSION = 2**31 - 1


class PostgresPrograms:
    """The StoredPrograms in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("programs")
        self._runs = queries("operator_runs")

    def found(self, programs: Sequence[Program]) -> Mapping[Program, StoredProgram]:
        """Return those of these that their tenants may use. Raises Unavailable."""
        asked = [
            each for each in programs if 0 < each.version <= MAX_VERSION and "\0" not in each.name
        ]
        if not asked:
            return {}
        parts = [each.name.rpartition("/") for each in asked]
        values = {
            "tenants": [each.tenant for each in asked],
            "owners": [owner for owner, _, _ in parts],
            "names": [name for _, _, name in parts],
            "versions": [each.version for each in asked],
        }
        rows = self._database.rows(self._sql["found"], values)
        return {
            asked[number - 1]: StoredProgram(manifest, digest) for number, manifest, digest in rows
        }

    def archive(self, program: Program, digest: str) -> bytes | None:
        """Return its archive; None if there is none any more. Raises Unavailable."""
        owner, _, name = program.name.rpartition("/")
        values = {
            "tenant": program.tenant,
            "owner": owner,
            "name": name,
            "version": program.version,
            "digest": digest,
        }
        rows = self._database.rows(self._sql["archive"], values)
        return bytes(rows[0][0]) if rows else None

    def tell(self, node: str, runs: Sequence[Run]) -> None:
        """Note how programs are on a node, and forget what is old. Raises Unavailable."""
        if runs:
            programs, states, restarts, problems, printed = zip(*runs, strict=True)
            tenants, names, versions = zip(*programs, strict=True)
            values = {
                "node": node,
                "of": list(tenants),
                "names": list(names),
                "versions": list(versions),
                "states": list(states),
                "restarts": list(restarts),
                "problems": list(problems),
                "printed": list(printed),
            }
            self._database.rows(self._runs["tell"], values)
        self._database.rows(self._runs["forget"], {"node": node})
