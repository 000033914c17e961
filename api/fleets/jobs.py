"""Jobs: the next batch of what is to be made or changed. After a crash it is the next one again.

Nothing is done twice: a Service Object that is to be made has its id already, and one that is
to follow its template says which version it has; both are stored with the change itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from api.fleets.making import Follower, Maker, VersionOfTemplate
from api.services import Services
from servioticy.changes import Changed, StillRead
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.model import ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.statements import Row
from servioticy.refusals import Refused

BATCH = 300
"""Service Objects that a turn changes: whoever else changes something waits for so many."""
TURN_SECONDS = 1.0
"""Then what is made is stored, and others' work has its turn."""
MAX_FAILURES = 100
"""Told of one job with their reasons; more are counted."""
MAX_REASON = 300
MAX_VERSIONS = 32
MAX_CAREFUL = 1_000
"""Jobs remembered that go on one by one; of more all are forgotten, and found out again."""

log = logging.getLogger("api.fleets")


class Job(NamedTuple):
    """A job whose turn it is."""

    id: str
    tenant: int
    kind: str
    template: str
    version: int
    reached: str


Failure = dict[str, Any]


class Jobs:
    """Works off jobs, a batch of one at a time. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._monotonic = monotonic
        self._sql = services.ports.statements("jobs")
        self._maker = Maker(services)
        self._versions: dict[tuple[str, int], VersionOfTemplate] = {}
        self._careful: set[str] = set()
        """Jobs with a batch that could not be stored: they go on one by one."""

    def turn(self) -> bool:
        """Do a batch of the job whose turn it is; False: there is none. Raises Unavailable."""
        row = self._sql.row("next")
        if row is None:
            self._careful.clear()
            return False
        job = Job(*row)
        if job.kind == "creation":
            self._create(job)
        else:
            self._roll_out(job)
        return True

    def _create(self, job: Job) -> None:
        limit = self._limit(job)
        items = self._sql.rows("items", job=job.id, tenant=job.tenant, limit=limit)
        version = self._version(job, job.version)
        news: list[NewServiceObject] = []
        failures: list[Failure] = []

        def make(row: Row) -> None:
            number, id_, parameters, made = row
            if made:
                return
            try:
                key = ServiceObjectKey(job.tenant, id_)
                news.append(self._maker.created(key, version, orjson.loads(parameters)))
            except (BadDocument, Refused) as error:
                failures.append({"item": number - 1, **_told(error)})

        done = self._made_now(items, make)
        try:
            self._services.ports.changes.create_all(news)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  the rest of the job goes on
            if self._one_by_one(job, limit, error):
                return
            failures.append({"item": items[0][0] - 1, "message": "It cannot be stored"})
        self._sql.rows(
            "made",
            numbers=[number for number, *_ in items[:done]],
            **self._ended(job, failures),
            last=done == len(items) < limit,
        )

    def _roll_out(self, job: Job) -> None:
        limit = self._limit(job)
        rows = self._sql.rows(
            "followers",
            template=job.template,
            tenant=job.tenant,
            version=job.version,
            reached=job.reached,
            limit=limit,
        )
        done, wanted, failures = self._changes(job, rows)
        refused: dict[str, Changed | StillRead] = {}
        try:
            refused = self._services.ports.changes.replace_all(wanted)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  the rest of the job goes on
            if self._one_by_one(job, limit, error):
                return
            failures.append({"serviceObject": rows[0][0], "message": "It cannot be stored"})
        failures += [
            {"serviceObject": id_, "message": f"Others read a stream that would go: {why}"}
            for id_, why in refused.items()
            if isinstance(why, StillRead)
        ]
        passed = before_changed([row[0] for row in rows[:done]], refused)
        self._sql.rows(
            "rolled_out",
            reached=passed[-1] if passed else job.reached,
            **self._ended(job, [each for each in failures if each["serviceObject"] in passed]),
            last=len(rows) < limit and len(passed) == len(rows),
        )

    def _changes(
        self, job: Job, rows: Sequence[Row]
    ) -> tuple[int, list[tuple[NewServiceObject, int]], list[Failure]]:
        """Return how many were looked at, and of these as the version makes them those that it
        can, each with the revision it is made from."""
        version = self._version(job, job.version)
        wanted: list[tuple[NewServiceObject, int]] = []
        failures: list[Failure] = []

        def change(row: Row) -> None:
            follower = _follower(row)
            try:
                before = self._version(job, follower.template_version)
                new = self._maker.changed(job.tenant, follower, version, before)
                wanted.append((new, follower.revision))
            except (BadDocument, Refused) as error:
                failures.append({"serviceObject": follower.id, **_told(error)})

        return self._made_now(rows, change), wanted, failures

    def _made_now(self, rows: Sequence[Row], make: Callable[[Row], None]) -> int:
        """Make of these rows, in order, what can be made in this turn; return how many.

        The rest is for the job's next turn: what is made is not to be made again, and others'
        work does not wait for this code to be looked at. Raises Unavailable: none can be made.
        """
        until = self._monotonic() + TURN_SECONDS
        for done, row in enumerate(rows):
            if done and self._monotonic() >= until:
                return done
            try:
                make(row)
            except Unavailable:
                if not done:
                    raise
                return done
        return len(rows)

    def _limit(self, job: Job) -> int:
        return 1 if job.id in self._careful else BATCH

    def _one_by_one(self, job: Job, limit: int, error: Exception) -> bool:
        """Go on one by one after what nobody foresaw; False: that is done already."""
        log.error("fleet_change_failed", extra={"job": job.id}, exc_info=error)
        if len(self._careful) >= MAX_CAREFUL:
            self._careful.clear()
        self._careful.add(job.id)
        return limit > 1

    def _ended(self, job: Job, failures: list[Failure]) -> dict[str, Any]:
        """Return what the statements that end a batch have in common."""
        values: dict[str, Any] = {"job": job.id, "tenant": job.tenant}
        row = self._sql.row("failures", **values)
        told = (orjson.loads(row[0]) if row else []) + failures
        return values | {
            "failed": len(failures),
            "failures": orjson.dumps(told[:MAX_FAILURES]).decode(),
            "now": self._services.now(),
        }

    def _version(self, job: Job, number: int) -> VersionOfTemplate:
        found = self._versions.get((job.template, number))
        if found is None:
            rows = self._sql.rows(
                "content", template=job.template, tenant=job.tenant, versions=[number]
            )
            template = parse_template(orjson.loads(rows[0][1]))
            found = VersionOfTemplate(job.template, number, template)
            if len(self._versions) >= MAX_VERSIONS:
                self._versions.clear()
            self._versions[job.template, number] = found
        return found


def before_changed(
    ids: Sequence[str], refused: Mapping[str, Changed | StillRead]
) -> Sequence[str]:
    """Return those before the first that has changed meanwhile: from there on it is done again."""
    again = min((id_ for id_, why in refused.items() if isinstance(why, Changed)), default=None)
    return [each for each in ids if again is None or each < again]


def _follower(row: Row) -> Follower:
    id_, template_version, parameters, version, revision, document, fields, created_at = row
    return Follower(
        id_,
        template_version,
        orjson.loads(parameters),
        version,
        revision,
        document.encode(),
        None if fields is None else fields.encode(),
        created_at,
    )


def _told(error: Exception) -> Failure:
    place = (
        {"pointer": error.pointer, "code": error.code} if isinstance(error, BadDocument) else {}
    )
    return {"message": str(error)[:MAX_REASON], **place}
