"""What Node-RED is given to do, and what it is fetched by."""

from __future__ import annotations

import json
from importlib import resources

from benchmarks.rivals.on_node_red import _flow

LOCK = resources.files("benchmarks.rivals").joinpath("node_red", "package-lock.json")


def test_each_package_has_its_hash_and_no_address() -> None:
    packages = json.loads(LOCK.read_text())["packages"]
    asked = packages.pop("")["dependencies"]

    assert {name: packages[f"node_modules/{name}"]["version"] for name in asked} == asked
    assert [name for name, each in packages.items() if not each.get("integrity")] == []
    assert [name for name, each in packages.items() if "resolved" in each] == []


def test_a_request_is_answered_and_told_by_the_function_that_stores_it() -> None:
    nodes = {each["id"]: each for each in _flow("d7")}
    (request,) = (each for each in nodes.values() if each["type"] == "http in")
    (function,) = request["wires"][0]
    (answer,), (socket,) = nodes[function]["wires"]

    assert request["url"] == "/d7/streams/s0"
    assert "INSERT INTO node_red" in nodes[function]["func"]
    assert nodes[answer]["type"] == "http response"
    assert nodes[nodes[socket]["server"]]["path"] == "/d7/live"
