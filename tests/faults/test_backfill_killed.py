"""A backfill is taking its place when who computes, who stores and who works off jobs are killed.

Its transaction is caught while it is open, with old rows gone in it and new ones there: whoever
reads finds all of the old ones or all of the new ones, before and after, and nothing twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from process_walks import below, pipeline_workers, spark_drivers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.domain.model import StreamRef
from servioticy.embedded.folder import read_run
from servioticy.storage import swapping
from servioticy.storage.database import Database

ROWS = 10_000
OLD = -1
ATTEMPTS = range(2, 40)
"""By what the composite multiplies, one for each time that a backfill is too quick."""

STORED = """
INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version, log_partition,
                     log_offset, log_position)
SELECT streams.tenant_id, stored_as, n, json_build_object(
           'channels', json_build_object('v', json_build_object('current-value', %(value)s)),
           'lastUpdate', n), 1, route_partition, 0, %(place)s
  FROM streams
  JOIN service_objects ON service_objects.id = service_object
 CROSS JOIN generate_series(1, %(rows)s) AS n
 WHERE service_object = %(id)s
   AND name = %(stream)s
"""
"""As if the log's first record had made them."""

SEEN = """
SELECT (document -> 'channels' -> 'v' ->> 'current-value')::float, count(*)
  FROM updates
  JOIN streams ON stored_as = stream_id
 WHERE service_object = %(id)s
   AND name = 'b'
 GROUP BY 1
"""

OPEN = """
SELECT state
  FROM pg_locks
  JOIN pg_stat_activity USING (pid)
 WHERE locktype = 'advisory'
   AND classid = %(swap)s
   AND granted
   AND backend_xid IS NOT NULL
"""
"""What a transaction does that lets a backfill take its place, and has changed rows."""


def document(factor: int) -> dict[str, Any]:
    code = f"function(a){{return iot.value(a, 'v') * {factor}}}"
    number = {"type": "number"}
    return {
        "version": "0.2.0",
        "streams": {
            "a": {"channels": {"v": number}},
            "b": {"channels": {"v": number | {"current-value": code}}},
        },
    }


class World:
    """A composite with rows of a definition before, and history to fill it from."""

    def __init__(self, platform: RunningPlatform, owner: Database) -> None:
        self.platform = platform
        self._owner = owner
        self.id = platform.create(document(1))
        platform.put(StreamRef(self.id, "a"), 0, v=0)
        assert len(platform.updates(StreamRef(self.id, "b"))) == 1
        for stream, value, place in (("a", 1, 0), ("b", OLD, 1)):
            named = {"id": self.id, "stream": stream, "value": value, "place": place}
            owner.rows(STORED, named | {"rows": ROWS})

    def seen(self) -> dict[float, int]:
        """How many rows the composite has, by their values, at one moment; not that of 0."""
        found = dict(self._owner.rows(SEEN, {"id": self.id}))
        assert found.pop(0) == 1
        return found

    def ordered(self, factor: int) -> str:
        """The composite has another definition, and is filled by it."""
        status, _headers, body = self.platform.request("PUT", f"/{self.id}", document(factor))
        assert status == 200, body
        path = f"/{self.id}/streams/b/backfill"
        status, _headers, body = self.platform.request("POST", path, {"from": 1, "to": ROWS + 1})
        assert status == 202, body
        return str(json.loads(body)["job"])

    def state_of(self, job: str) -> str:
        _status, _headers, body = self.platform.request("GET", f"/jobs/{job}")
        return str(json.loads(body)["state"])

    def is_caught(self, job: str) -> bool:
        """Whether workers have been stopped while its transaction was open; else it is done."""
        workers = pipeline_workers(self.platform.pids()["pipeline"])
        caught: list[str] = []

        def is_over() -> bool:
            if not self._open():
                return self.state_of(job) == "done"
            _tell(workers, signal.SIGSTOP)
            until(lambda: self._open() != ["active"], SECONDS_TO_RECOVER)
            caught.extend(self._open())
            if not caught:
                _tell(workers, signal.SIGCONT)
            return bool(caught)

        until(is_over, SECONDS_TO_RECOVER)
        return bool(caught)

    def _open(self) -> list[str]:
        return [state for (state,) in self._owner.rows(OPEN, {"swap": swapping._SWAP})]


def _tell(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@pytest.fixture
def owner(platform: RunningPlatform) -> Iterator[Database]:
    found = Database((read_run(platform.data) or {})["dsn"])
    yield found
    found.close()


@pytest.mark.timeout(900)
def test_all_rows_are_the_old_ones_or_the_new_ones_whoever_is_killed(
    platform: RunningPlatform, owner: Database
) -> None:
    world = World(platform, owner)
    before: float = OLD
    for factor in ATTEMPTS:
        job = world.ordered(factor)
        if world.is_caught(job):
            break
        assert world.seen() == {factor: ROWS}
        before = factor
    else:
        pytest.fail("every backfill had taken its place before anybody could be killed")
    assert world.seen() == {before: ROWS}, "nobody sees what is not whole"
    pids = platform.pids()
    drivers = spark_drivers(pids["pipeline"])
    _tell([*below(pids["pipeline"]), *drivers, pids["pipeline"]], signal.SIGKILL)
    _tell([*below(pids["api"]), pids["api"], pids["postgres"]], signal.SIGKILL)
    states: list[str] = []

    def is_over() -> bool:
        found = world.seen()
        assert found in ({before: ROWS}, {factor: ROWS}), found
        states.append(world.state_of(job))
        return states[-1] in ("done", "failed")

    until(is_over, SECONDS_TO_RECOVER)
    assert world.seen() == {factor if states[-1] == "done" else before: ROWS}
    beside = "SELECT FROM backfilled WHERE job = %(job)s LIMIT 1"
    until(lambda: owner.rows(beside, {"job": job}) == [], SECONDS_TO_RECOVER)
    platform.put(StreamRef(world.id, "a"), ROWS + 1, v=1)  # and it goes on
    until(lambda: sum(world.seen().values()) == ROWS + 1, SECONDS_TO_RECOVER)
