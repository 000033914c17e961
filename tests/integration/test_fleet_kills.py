"""A fleet goes on where it was after kill -9: everything is done, and exactly once."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from fleet_builders import DOCUMENT, TEMPLATE
from port_builders import values
from running_platform import until

from servioticy import bootstrap
from servioticy.domain.records import DefinitionRecord, read_record
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.database import Database

SECONDS = 300.0
OBJECTS = 900
"""Some batches."""


class Program:
    """The API program, which is killed and started again."""

    def __init__(self, settings: Settings, token: str) -> None:
        self._settings = settings
        self._token = token
        self._start()

    def _start(self) -> None:
        environment = {**os.environ, **to_environment(self._settings)}
        command = [sys.executable, "-P", "-m", "api"]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        until(self._answers, SECONDS)

    def _answers(self) -> bool:
        try:
            return "status" not in self.ask("GET", "/jobs")
        except OSError:
            return False

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self._settings.api.port, timeout=30)
        try:
            content = None if body is None else orjson.dumps(body)
            connection.request(method, path, content, {"Authorization": self._token})
            return orjson.loads(connection.getresponse().read())
        finally:
            connection.close()

    def kill_in_the_middle_of(self, job: str) -> None:
        """Kill it when a part of the job is done, and start it again."""
        until(lambda: self.ask("GET", f"/jobs/{job}")["done"] > 0, SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill it, and start it again."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._start()

    def finished(self, job: str) -> Any:
        """The job, when it is finished."""
        until(lambda: self.ask("GET", f"/jobs/{job}")["state"] == "done", SECONDS)
        return self.ask("GET", f"/jobs/{job}")


@pytest.fixture
def settings(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Settings:
    found = changed(
        Settings(),
        dsn=dsn,
        bootstrap_servers=real_kafka.bootstrap_servers,
        topic_prefix=topic_prefix,
        api_port=ports.free(),
        api_metrics_port=0,
    )
    bootstrap.make_topics(found)
    return found


@pytest.fixture
def program(settings: Settings) -> Iterator[Program]:
    token = bootstrap.ports(settings).tenants.create_tenant("acme")
    program = Program(settings, token)
    yield program
    program.process.terminate()
    program.process.wait(SECONDS)


def changes(settings: Settings) -> dict[str, set[tuple[int, int]]]:
    """The changes of each Service Object that the log tells of: their numbers and versions."""
    topic = bootstrap.topics(settings).updates
    found: dict[str, set[tuple[int, int]]] = {}
    for partition in range(bootstrap.log_ends(settings).partitions()):
        for value in values(settings.log.bootstrap_servers, topic, partition):
            record = read_record(value)
            assert isinstance(record, DefinitionRecord)
            found.setdefault(record.service_object, set()).add((record.change, record.version))
    return found


def test_everything_is_done_once_whenever_the_program_is_killed(
    settings: Settings, program: Program
) -> None:
    """While a fleet is made, while it is changed, and while it is rolled back."""
    template = f"/templates/{program.ask('POST', '/templates', TEMPLATE)['id']}"
    sets = [{"room": f"room {number}"} for number in range(OBJECTS)]
    made = program.ask("POST", f"{template}/objects", sets)
    program.kill_in_the_middle_of(made["job"])
    created = program.finished(made["job"])
    after_creation = changes(settings)

    content = {**TEMPLATE, "document": {**DOCUMENT, "description": "new"}}
    forth = program.ask("PUT", template, content)
    program.kill_in_the_middle_of(forth["job"])
    rolled_out = program.finished(forth["job"])
    after_roll_out = changes(settings)

    back = program.ask("POST", f"{template}/versions/1/activate", {})
    program.kill_in_the_middle_of(back["job"])
    rolled_back = program.finished(back["job"])

    for job in (created, rolled_out, rolled_back):
        assert (job["total"], job["done"], job["failed"]) == (OBJECTS, OBJECTS, 0)
    for times, told in enumerate((after_creation, after_roll_out, changes(settings)), start=1):
        assert set(told) == set(made["ids"])
        # A change may be told twice after a crash; by its number it is the same one.
        assert Counter(len(each) for each in told.values()) == {times: OBJECTS}
        assert all(
            {version for _, version in each} == set(range(1, times + 1)) for each in told.values()
        )
    with_old_document = (
        "SELECT count(*) FROM service_objects JOIN definitions ON service_object = id"
        " AND definitions.version = service_objects.version"
        " WHERE service_objects.version = 3 AND document ->> 'description' IS NULL"
    )
    assert Database(settings.store.dsn).rows(with_old_document) == [(OBJECTS,)]


def test_claims_count_once_whenever_the_program_is_killed(
    settings: Settings, program: Program
) -> None:
    """Each device asks until it is answered; there are more of them than the code has uses."""
    uses, devices = 40, 44
    template = program.ask("POST", "/templates", TEMPLATE)["id"]
    wanted = {"uses": uses, "deviceAs": "room"}
    made = program.ask("POST", f"/templates/{template}/claim-codes", wanted)
    (code,) = made["claimCodes"]
    told: dict[int, Any] = {}

    def claims(number: int) -> None:
        body = {"code": code["code"], "device": f"room {number}", "key": f"{number:016}"}

        def is_answered() -> bool:
            try:
                answer = program.ask("POST", "/claims", body)
            except (OSError, http.client.HTTPException):
                return False
            if answer.get("status", 0) >= 429:
                return False
            told[number] = answer
            return True

        until(is_answered, SECONDS)

    with ThreadPoolExecutor(8) as threads:
        asking = [threads.submit(claims, number) for number in range(devices)]
        until(lambda: len(told) >= uses // 4, SECONDS)
        program.kill()
        for each in asking:
            each.result()

    given = [each for each in told.values() if "api_token" in each]
    assert len(given) == len({each["id"] for each in given}) == uses
    assert {each["status"] for each in told.values() if each not in given} == {409}
    assert sorted(program.ask("GET", "/")) == sorted(each["id"] for each in given)
    assert program.ask("GET", f"/claim-codes/{code['id']}")["used"] == uses
    assert set(changes(settings)) == {each["id"] for each in given}
