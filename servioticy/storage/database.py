"""Postgres: a connection a thread, or shared ones; opened when needed, replaced when lost."""

from __future__ import annotations

import io
import re
import select
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import psycopg2
import psycopg2.errors
import psycopg2.extensions

from servioticy.errors import Unavailable
from servioticy.storage.connections import Connection, Shared
from servioticy.storage.failures import LOST, answering
from servioticy.storage.roles import NOBODY, Role, changing, standing

Row: TypeAlias = Any
"""A tuple of columns, as the statement names them."""

_VALUE = re.compile(r"%\((\w+)\)s")

_COMMENT = re.compile(r"--.*")
_READING = re.compile(r"\s*(SELECT|WITH)\b", re.IGNORECASE)
_WRITING = re.compile(
    r"\b(INSERT\s+INTO|(?<!FOR )(?<!KEY )UPDATE|DELETE\s+FROM|MERGE\s+INTO)\b", re.IGNORECASE
)

_OF_THE_SESSION = re.compile(r"\bpg_(try_)?advisory_lock(_shared)?\(", re.IGNORECASE)
"""What a connection holds until it is let go, or the connection ends."""

_NOTICED = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""How soon it is noticed that the server's machine has vanished: seconds, and milliseconds."""

_MISSED = (
    "SET tcp_keepalives_idle TO 5",
    "SET tcp_keepalives_interval TO 2",
    "SET tcp_keepalives_count TO 3",
    "SET tcp_user_timeout TO 11000",
)
"""How soon the server notices that our machine has: eleven seconds. By itself it takes two hours,
and until then it keeps all locks of the connection, such as the claim of a partition."""


class Prepared(NamedTuple):
    """A statement that is planned once a connection, by its name; and its values."""

    name: str
    sql: str
    values: Mapping[str, Any]


class Copied(NamedTuple):
    """A `COPY ... FROM STDIN` and its rows, in the format that it says."""

    sql: str
    rows: bytes


class Database:
    """Runs named SQL. Autocommit: one statement is one transaction, unless in `transaction`.

    Every method raises Unavailable where the server does not answer. The statement that was
    running at that moment may or may not have taken effect.

    A Database that is not `durable` commits without waiting for the disk. If the server is
    killed, it forgets the newest transactions: each of them wholly, and none that is older
    than one that it keeps.

    A statement that runs for longer than `statement_seconds` is ended, and the caller gets
    Unavailable. Without that number no statement is ended. So it is with one that waits for a lock
    for longer than `lock_seconds`.

    With a `role` it is nobody else, and what a statement sees is decided by row level security
    (`servioticy/storage/roles.py`); without one it is whoever logs in.

    Each thread keeps its connection, unless connections are `shared`: then one is a thread's for a
    statement, a transaction or a `session`, and as long as it listens
    (`servioticy/storage/connections.py`).
    """

    def __init__(
        self,
        dsn: str,
        *,
        role: Role | None = None,
        durable: bool = True,
        statement_seconds: float | None = None,
        lock_seconds: float | None = None,
        shared: bool = False,
    ) -> None:
        self._dsn = dsn
        self._role = role
        self._statement_seconds = statement_seconds
        self._lock_seconds = lock_seconds
        self._durable = durable
        self._shared = Shared() if shared else None
        self._local = threading.local()

    def rows(self, sql: str | Prepared, values: Mapping[str, Any] | None = None) -> list[Row]:
        """Run a statement and return its rows, if it makes any.

        A connection found dead is replaced once, because servers restart, and a statement that
        only reads is tried again. Not so if this Database is not `durable`: the server may
        have forgotten what the caller has read before, so the caller has to know.
        """
        with self._connected() as (connection, fresh):
            try:
                return self._run(connection, sql, values)
            except psycopg2.errors.QueryCanceled:
                raise  # tried again it would take as long again
            except LOST:
                self.close()
                inside = getattr(self._local, "inside", False)
                text = sql.sql if isinstance(sql, Prepared) else sql
                if fresh or inside or not self._durable or not _reads(text):
                    raise
                return self._run(self._connection()[0], sql, values)

    def together(self, parts: Sequence[Prepared | Copied]) -> None:
        """Run all of them in one message: they take effect together or not at all.

        One of them at most is Copied. For hot paths that write; nothing is tried again.
        """
        with self._connected() as (connection, _fresh):
            try:
                with connection.raw.cursor() as cursor:
                    self._send(connection, cursor, parts)
            except LOST:
                self.close()
                raise

    def _send(
        self, connection: Connection, cursor: Any, parts: Sequence[Prepared | Copied]
    ) -> None:
        message, rows = [], None
        for part in parts:
            if isinstance(part, Copied):
                rows = part.rows
                message.append(part.sql.strip().rstrip(";").encode())
            else:
                message.append(self._execution(connection, cursor, part))
        if rows is None:
            cursor.execute(b";".join(message))
        else:
            cursor.copy_expert(b";".join(message), io.BytesIO(rows), max(1, len(rows)))

    def _execution(self, connection: Connection, cursor: Any, part: Prepared) -> bytes:
        statement, order = _positional(part.sql)
        if part.name not in connection.prepared:
            cursor.execute(f"PREPARE {part.name} AS {statement}")
            connection.prepared.add(part.name)
        places = ", ".join(["%s"] * len(order))
        values = [part.values[each] for each in order]
        execution: bytes = cursor.mogrify(f"EXECUTE {part.name} ({places})", values)
        return execution

    def copy(
        self,
        sql: str,
        file: BinaryIO,
        at_once: int = 1 << 20,
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Run a `COPY`: its rows go to the file, or come from it, a part at a time.

        What it selects may have `values`.
        """
        with self._connected() as (connection, _fresh):
            try:
                with connection.raw.cursor() as cursor:
                    statement = sql if values is None else cursor.mogrify(sql, values)
                    cursor.copy_expert(statement, file, at_once)
            except LOST:
                self.close()
                raise

    def row(self, sql: str | Prepared, values: Mapping[str, Any] | None = None) -> Row | None:
        """The first row, or None."""
        return next(iter(self.rows(sql, values)), None)

    def heard(self, channel: str, seconds: float) -> list[str] | None:
        """Return what is notified on a channel, within so many seconds of silence.

        None: this thread listens from now on, and has missed what was said before.
        """
        with self._connected() as (connection, _fresh):
            raw = connection.raw
            try:
                if channel not in connection.listening:
                    connection.listening.add(channel)  # it is this thread's until it is closed
                    self._run(connection, f"LISTEN {channel}", None)
                    return None
                raw.poll()
                if not raw.notifies:
                    waiting = select.poll()  # `select` knows no more than 1,024 descriptors
                    waiting.register(raw.fileno(), select.POLLIN)
                    waiting.poll(seconds * 1000)
                    raw.poll()
                said = [each.payload for each in raw.notifies if each.channel == channel]
                raw.notifies.clear()
            except LOST:
                self.close()
                raise
            return said

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Statements of this thread inside it take effect together or not at all.

        Inside another transaction of this thread it is a part of that one.
        """
        if getattr(self._local, "inside", False):
            yield
            return
        with self._connected() as (connection, _fresh):
            raw = connection.raw
            try:
                raw.autocommit = False
                self._local.inside = True
                self._local.standing = NOBODY
                try:
                    yield
                    raw.commit()
                except BaseException:
                    if not raw.closed:
                        raw.rollback()
                    raise
                finally:
                    self._local.inside = False
                    if not raw.closed:
                        raw.autocommit = True
            except LOST:
                self.close()
                raise

    @contextmanager
    def session(self) -> Iterator[None]:
        """Statements of this thread inside have one connection, which holds what they lock."""
        self._local.sessions = getattr(self._local, "sessions", 0) + 1
        try:
            yield
        finally:
            self._local.sessions -= 1
            self._let_go()

    def another(self) -> Database:
        """Return one that is the same, with connections of its own: for a transaction beside."""
        return Database(
            self._dsn,
            role=self._role,
            durable=self._durable,
            statement_seconds=self._statement_seconds,
            lock_seconds=self._lock_seconds,
            shared=self._shared is not None,
        )

    def close(self) -> None:
        """Close this thread's connection, if it has one, and those that nobody uses."""
        connection: Connection | None = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()
        if self._shared is not None:
            self._shared.close()

    def _run(
        self, connection: Connection, sql: str | Prepared, values: Mapping[str, Any] | None
    ) -> list[Row]:
        text = sql.sql if isinstance(sql, Prepared) else sql
        if self._shared is not None and not self._keeps(connection) and _holds(text):
            raise RuntimeError(f"a lock of a connection that is given away: {text[:80]}")
        with connection.raw.cursor() as cursor:
            if isinstance(sql, Prepared):
                before = self._stand(sql.sql, sql.values)
                cursor.execute(before.encode() + self._execution(connection, cursor, sql))
            else:
                cursor.execute(self._stand(sql, values or {}) + sql, values)
            return cursor.fetchall() if cursor.description else []

    def _stand(self, sql: str, values: Mapping[str, Any]) -> str:
        """Return what is to stand before the statement, in its message: as whom it runs."""
        wanted = standing(self._role, sql, values)
        if not getattr(self._local, "inside", False):
            return changing(NOBODY, wanted)
        before, self._local.standing = self._local.standing, wanted
        return changing(before, wanted)

    @contextmanager
    def _connected(self) -> Iterator[tuple[Connection, bool]]:
        """Let this thread have a connection; whether it is a new one."""
        with answering():
            try:
                yield self._connection()
            finally:
                self._let_go()

    def _let_go(self) -> None:
        """Let others use this thread's connection, unless something of it is to stay."""
        connection: Connection | None = getattr(self._local, "connection", None)
        if self._shared is None or connection is None or self._keeps(connection):
            return
        if not getattr(self._local, "inside", False):
            self._local.connection = None
            self._shared.give(connection)

    def _keeps(self, connection: Connection) -> bool:
        return bool(getattr(self._local, "sessions", 0) or connection.listening)

    def _connection(self) -> tuple[Connection, bool]:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None and self._shared is not None:
            connection = self._local.connection = self._shared.take()
        if connection is not None and connection.is_open:
            return connection, False
        raw = psycopg2.connect(
            self._dsn, connect_timeout=5, application_name="servioticy", **_NOTICED
        )
        raw.autocommit = True
        try:
            self._settle(raw)
        except BaseException:
            raw.close()
            raise
        connection = self._local.connection = Connection(raw)
        return connection, True

    def _settle(self, connection: Any) -> None:
        """Make the connection what this Database promises."""
        settings = [*_MISSED]
        if self._role is not None:
            settings.append(f"SET ROLE {self._role.value}")
        if self._statement_seconds:
            limit = int(self._statement_seconds * 1000)
            settings.append(f"SET statement_timeout TO {limit}")
        if self._lock_seconds:
            settings.append(f"SET lock_timeout TO {int(self._lock_seconds * 1000)}")
        if not self._durable:
            settings.append("SET synchronous_commit TO off")
        try:
            with connection.cursor() as cursor:
                cursor.execute(";".join(settings))
        except (
            psycopg2.errors.InsufficientPrivilege,
            psycopg2.errors.InvalidParameterValue,
        ) as no:
            raise Unavailable(
                f"Postgres does not let this program be what it has to be ({str(no).strip()}): "
                "run `servioticy migrate`, or grant its user that role"
            ) from no


@cache
def _positional(sql: str) -> tuple[str, list[str]]:
    """The statement with `$1`, `$2`, ... for its named values, and their names in order."""
    order = list(dict.fromkeys(_VALUE.findall(sql)))
    numbered = _VALUE.sub(lambda match: f"${order.index(match[1]) + 1}", sql)
    return numbered.strip().rstrip(";"), order


@lru_cache(1_024)
def _holds(sql: str) -> bool:
    """Whether a connection holds something after it that is to be let go."""
    return bool(_OF_THE_SESSION.search(sql))


def _reads(sql: str) -> bool:
    """Whether running it twice does no harm: it begins as reading does, and nothing writes."""
    statement = _COMMENT.sub("", sql)
    return bool(_READING.match(statement)) and not _WRITING.search(statement)
