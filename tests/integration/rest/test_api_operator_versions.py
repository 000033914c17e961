"""A document that names another program: that one is begun first, and can refuse to take over."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_builders import NOW, Caller, Platform, Served
from operator_folders import SECONDS, until, write

from api.app import create_app
from operators import archives, attending
from operators.instance import Place
from operators.line import Running
from operators.node import Node
from operators.registry import Registry
from operators.shelf import Shelf
from operators.telling import Telling
from operators.warming import Warming
from sandbox.text import argument_names
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Wanted
from servioticy.settings import Settings, changed
from servioticy.storage.programs import PostgresPrograms

GOOD = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)\n"
BAD = "raise SystemExit('there is no model')\n"


@contextmanager
def listening(platform: Platform, folder: Path) -> Iterator[Node]:
    """Run programs as the pipeline does, for both partitions."""
    stored = PostgresPrograms(platform.database.pipeline)
    registry = Registry(stored)
    shelf = Shelf(folder, registry)
    node = Node(shelf, Place(shelf.base, strangers=False))
    tellings = [
        Telling(
            registry,
            f"here/{each}",
            node.running,
            Warming(registry, f"here/{each}", each, node),
            seconds=0.1,
            spent=node.spent,
        )
        for each in (0, 1)
    ]
    try:
        until(lambda: all(map(stored.is_listened_to, (0, 1))))
        yield node
    finally:
        for each in tellings:
            each.close()
        node.close()
        shelf.close()


@pytest.fixture
def pushed(alice: Caller, served: Served, tmp_path: Path) -> Caller:
    """Have a program with a version that runs, one that does not, and one more that does.

    On however busy a machine: who changes a document waits for as long as that takes.
    """
    for number, main in enumerate((GOOD, BAD, f"# another\n{GOOD}")):
        content = archives.pack(write(tmp_path / f"v{number}", main))
        assert alice.ask("PUT", "/operators/tried", data=content).status_code == 201
    settings = changed(Settings(), operators_protection="any", change_wait_seconds=SECONDS)
    app = create_app(served.platform.ports, settings, lambda: NOW, argument_names)
    return Caller(app.test_client(), alice.token)


def document(version: int) -> dict[str, Any]:
    """Return one with a stream that this version computes."""
    channels = {"value": {"type": "number"}}
    computed = {"channels": channels, "operator": {"name": "tried", "version": version}}
    return {"streams": {"a": {"channels": channels}, "b": computed}}


def test_a_version_is_ready_before_it_is_in_force(
    pushed: Caller, served: Served, tmp_path: Path
) -> None:
    """There and back; one that cannot begin takes over from nobody, and it is told why."""
    id_ = pushed.ask("POST", "/", json=document(1)).get_json()["id"]
    with listening(served.platform, tmp_path / "shelf") as node:
        refused = pushed.ask("PUT", f"/{id_}", json=document(2))
        kept = pushed.ask("GET", f"/{id_}/versions").get_json()["versions"]
        taken = pushed.ask("PUT", f"/{id_}", json=document(3))
        ready = {each.program.version: each.state for each in node.running()}
        back = pushed.ask("POST", f"/{id_}/versions/1/activate")
        both = {each.program.version: each.state for each in node.running()}

    assert refused.status_code == 409
    assert "tried@2 cannot take over, what was in force still is" in refused.text
    assert "there is no model" in refused.text
    assert [each["version"] for each in kept] == [1]
    assert taken.status_code == 200, taken.text
    assert ready[3] == "idle"
    assert back.status_code == 200, back.text
    assert (both[1], both[3]) == ("idle", "idle")


def test_who_has_a_program_begun_pays_for_it(
    pushed: Caller, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it never takes over, and nobody asks it anything."""
    monkeypatch.setattr(attending, "SETTLE_SECONDS", 0.0)
    id_ = pushed.ask("POST", "/", json=document(1)).get_json()["id"]
    rows = served.platform.database.rows
    paid = (
        "SELECT service_object, stream, processor_us > 0 FROM usage_hours WHERE processor_us > 0"
    )
    with listening(served.platform, tmp_path / "shelf"):
        assert pushed.ask("PUT", f"/{id_}", json=document(2)).status_code == 409
        until(lambda: bool(rows(paid)))
        assert rows(paid) == [(id_, "b", True)]
        assert rows("SELECT processor_us > 0 FROM used_amounts WHERE processor_us > 0") == [
            (True,)
        ]


def test_where_nobody_computes_nobody_is_asked(pushed: Caller) -> None:
    """What is wrong with the program shows once somebody does."""
    id_ = pushed.ask("POST", "/", json=document(1)).get_json()["id"]
    assert pushed.ask("PUT", f"/{id_}", json=document(2)).status_code == 200


def test_what_is_not_said_in_time_is_asked_again(
    pushed: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever listens may be busy, or have died: 503, and the document stays."""
    id_ = pushed.ask("POST", "/", json=document(1)).get_json()["id"]
    monkeypatch.setattr(PostgresPrograms, "is_listened_to", lambda _self, _partition: True)
    settings = changed(Settings(), change_wait_seconds=0)
    app = create_app(served.platform.ports, settings, lambda: NOW, argument_names)
    hurried = Caller(app.test_client(), pushed.token)
    answer = hurried.ask("PUT", f"/{id_}", json=document(2))
    plain = hurried.ask("PUT", f"/{id_}", json=document(1) | {"public": "true"})

    assert answer.status_code == 503
    assert "tried@2 is not ready yet" in answer.text
    assert plain.status_code == 200, "what concerns no program waits for none"


def test_all_who_wait_for_a_program_have_its_answer(
    pushed: Caller, served: Served, tmp_path: Path
) -> None:
    """Of several objects, each in force at the first try."""
    ids = [pushed.ask("POST", "/", json=document(1)).get_json()["id"] for _ in range(4)]
    statuses: list[int] = []

    def put(id_: str) -> None:
        caller = Caller(pushed.client.application.test_client(), pushed.token)
        statuses.append(caller.ask("PUT", f"/{id_}", json=document(3)).status_code)

    with listening(served.platform, tmp_path / "shelf"):
        threads = [threading.Thread(target=put, args=(each,)) for each in ids]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    assert statuses == [200] * len(ids)


def test_an_answer_is_newer_than_its_question(served: Served, pushed: Caller) -> None:
    """And of the node that runs the partition; what is told in between changes nothing."""
    database = served.platform.database
    ((tenant,),) = database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    program, stored = Program(tenant, "tried", 1), PostgresPrograms(database)
    registry = Registry(PostgresPrograms(database.pipeline))
    running = Running(program, "idle", 0, "", b"", None)
    since = stored.want(0, Wanted(program, "so/b"))
    assert stored.warmed(0, program, since) is None
    registry.tell_warmed("here/0", running, "it has\0ended")
    assert stored.warmed(0, program, since) == "it has?ended"
    assert stored.warmed(1, program, since) is None
    registry.tell("here/0", [running])
    assert stored.warmed(0, program, since) == "it has?ended", "told in between"
    assert stored.warmed(0, program, since + 10**9) is None
    registry.tell_warmed("here/0", running, "")
    assert stored.warmed(0, program, since) == ""


def test_an_emergency_waits_for_no_program(pushed: Caller, served: Served, tmp_path: Path) -> None:
    """Nor does what is put back; and nonsense is refused."""
    id_ = pushed.ask("POST", "/", json=document(1)).get_json()["id"]
    with listening(served.platform, tmp_path / "shelf"):
        assert pushed.ask("PUT", f"/{id_}?warm=maybe", json=document(2)).status_code == 400
        assert pushed.ask("PUT", f"/{id_}?warm=false", json=document(2)).status_code == 200
        path = f"/{id_}/versions/1/activate?warm=false"
        assert pushed.ask("POST", path).status_code == 200
