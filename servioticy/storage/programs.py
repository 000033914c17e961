"""Programs of tenants' own in Postgres, for whoever runs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Run, StoredProgram, Wanted
from servioticy.storage.accounts import account
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

MAX_VERSION = 2**31 - 1

CHANNEL = "servioticy_programs"
"""How channels of notifications begin, one for each partition."""
_LISTENS = 1_701_016  # class of our advisory locks: any number that nothing else uses


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
        values = {
            "tenants": [each.tenant for each in asked],
            "owners": [_owner(each) for each in asked],
            "names": [_name(each) for each in asked],
            "versions": [each.version for each in asked],
        }
        rows = self._database.rows(self._sql["found"], values)
        return {
            asked[number - 1]: StoredProgram(manifest, digest) for number, manifest, digest in rows
        }

    def archive(self, program: Program, digest: str) -> bytes | None:
        """Return its archive; None if there is none any more. Raises Unavailable."""
        values = {
            "owner": _owner(program),
            "name": _name(program),
            "version": program.version,
            "digest": digest,
        }
        rows = self._database.rows(self._sql["archive"], values)
        return bytes(rows[0][0]) if rows else None

    def owners(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return who has these names now, of tenants that are there. Raises Unavailable."""
        return dict(self._database.rows(self._sql["owners"], {"names": list(names)}))

    def tell(self, node: str, runs: Sequence[Run]) -> None:
        """Note how programs are on a node, and forget what is old. Raises Unavailable."""
        if runs:
            # Of two owners of one name, one after the other, the later one is told of.
            named = {each.program[:3]: each for each in runs}
            _, states, restarts, problems, printed, warmed = zip(*named.values(), strict=True)
            tenants, names, versions = zip(*named, strict=True)
            values = {
                "node": node,
                "of": list(tenants),
                "names": list(names),
                "versions": list(versions),
                "states": list(states),
                "restarts": list(restarts),
                "problems": list(problems),
                "printed": list(printed),
                "warmed": list(warmed),
            }
            self._database.rows(self._runs["tell"], values)
        self._database.rows(self._runs["forget"], {"node": node})

    def is_listened_to(self, partition: int) -> bool:
        """Tell whether somebody hears what is wanted of a partition. Raises Unavailable."""
        values = {"key": _LISTENS, "partition": partition}
        return bool(self._database.rows(self._runs["is_listened_to"], values)[0][0])

    def spend(self, used: Mapping[tuple[int, StreamRef], int]) -> None:
        """Add processor time to accounts, as the port has it."""
        uses = [
            Use(tenant, stream, tenant, microseconds=each)
            for (tenant, stream), each in used.items()
        ]
        account(self._database, uses)

    def want(self, partition: int, wanted: Wanted) -> int:
        """Say that a program is to be begun, as the port has it."""
        said = orjson.dumps([[*wanted.program], wanted.payer]).decode()
        values = {"channel": _channel(partition), "said": said}
        return int(self._database.rows(self._runs["want"], values)[0][0])

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Return what was wanted since the last call, as the port has it."""
        heard = self._database.heard(_channel(partition), seconds)
        if heard is None:  # in this order: who is told that it is listened to is heard
            values = {"key": _LISTENS, "partition": partition}
            self._database.rows(self._runs["listen"], values)
        said = [orjson.loads(each) for each in heard or ()]
        return [Wanted(Program(*program), payer) for program, payer in said]

    def warmed(self, partition: int, program: Program, since: int) -> str | None:
        """Return what is wrong with it, as the port has it."""
        values = {"tenant": program.tenant, "name": program.name, "version": program.version}
        row = self._database.row(
            self._runs["warmed"], values | {"partition": str(partition), "since": since}
        )
        return None if row is None else str(row[0])


def _channel(partition: int) -> str:
    return f"{CHANNEL}_{partition}"


def _owner(program: Program) -> int | None:
    """Whose it is; None: it is another tenant's, and it is not known whose."""
    return program.owner if "/" in program.name else program.tenant


def _name(program: Program) -> str:
    return program.name.rpartition("/")[2]
