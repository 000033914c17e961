"""Who sees the applications that are not ours, and what of them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from api_builders import NOW, Platform, Served
from application_builders import a_package
from console_visits import signed_in

from api.app import create_app
from monitoring.applications import package, repository, states
from monitoring.applications.repository import Place
from monitoring.applications.states import Written
from monitoring.model import Node, RuntimePerformance
from monitoring.state import birth
from sandbox.text import argument_names
from servioticy.settings import Settings, changed


@pytest.fixture
def machine(backend: Platform, tmp_path: Path) -> Served:
    """The API of a machine on which an application runs."""
    folder = a_package(tmp_path / "package")
    found = repository.register(tmp_path, package.read(folder), folder)
    pid = os.getpid()
    place = Place(tmp_path, "loop")
    states.write(place, Written(found.turn, "running", pid, birth(pid), 4711, 5, 2, "", 4, 1))
    node = Node("here/loop/1", "stepping")
    steps = [RuntimePerformance(node, "f", 0, n * 1_000_000, str(n)) for n in range(1, 5)]
    place.measurements.parent.mkdir()
    place.measurements.write_bytes(msgspec.json.Encoder().encode_lines(steps))
    settings = changed(Settings(), data=str(tmp_path), operator_tenant="examples")
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


def test_the_operator_sees_how_each_is_and_how_long_its_steps_take(machine: Served) -> None:
    operator = machine.tenant("examples")
    (listed,) = operator.ask("GET", "/platform/applications").get_json()["data"]
    told = operator.ask("GET", "/platform/applications/loop").get_json()

    assert (listed["name"], listed["state"], listed["process"]) == ("loop", "running", 4711)
    assert (listed["starts"], listed["stored"], listed["lost"]) == (2, 4, 1)
    assert {name: told[name] for name in listed} == listed
    (runtime,) = told["runtime"]
    assert (runtime["what"], runtime["node"], runtime["count"]) == ("stepping", "here/loop/1", 4)
    assert (runtime["least"], runtime["middle"], runtime["most"]) == (1.0, 3.0, 4.0)
    assert (told["latency"], told["sequences"]) == ([], [])


@pytest.mark.parametrize("path", ["", "/loop"])
def test_nobody_else_does(machine: Served, path: str) -> None:
    answer = machine.tenant("alice").ask("GET", f"/platform/applications{path}")

    assert (answer.status_code, "loop" in answer.text) == (403, False)


@pytest.mark.parametrize("name", ["gone", "..", "%2e%2e", "loop%2f..%2floop"])
def test_what_is_not_registered_is_not_found(machine: Served, name: str) -> None:
    answer = machine.tenant("examples").ask("GET", f"/platform/applications/{name}")

    assert answer.status_code == 404


@pytest.mark.parametrize(("path", "says"), [("", "loop"), ("/loop", "stepping")])
def test_the_operator_sees_them_in_the_console(machine: Served, path: str, says: str) -> None:
    operator = signed_in(machine, machine.tenant("examples").token)
    answer = operator.get(f"/console/platform/applications{path}")

    assert (answer.status_code, says in answer.text) == (200, True)
    assert "running" in answer.text
    stranger = signed_in(machine, machine.tenant("alice").token)
    assert stranger.get(f"/console/platform/applications{path}").status_code == 403
