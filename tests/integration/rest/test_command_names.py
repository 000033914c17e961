"""What the words of a command mean: ids and names of Service Objects, and streams alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_builders import Caller, Served
from command_runs import Run, run

from servioticy.client import follower
from servioticy.domain.model import StreamRef

__all__ = ["run"]

UPDATE = {"channels": {"x": {"current-value": 5}}, "lastUpdate": 1423072260000}
ONE = ("history", "export", "get", "tail")
"""Commands of a stream that print what it has."""


def made(alice: Caller, name: str, *streams: str) -> str:
    """A Service Object with these streams, each with an update."""
    own = {each: {"channels": {"x": {"type": "number"}}} for each in streams}
    id_ = alice.create({"name": name, "streams": own})
    for each in streams:
        assert alice.put(id_, json.dumps(UPDATE).encode(), each).status_code == 202
    return id_


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> list[StreamRef]:
    """The streams that `tail` would follow."""
    seen: list[StreamRef] = []

    def updates(self: follower.Follower) -> Any:
        seen.append(self.stream)
        return iter([json.dumps(UPDATE)])

    monkeypatch.setattr(follower.Follower, "updates", updates)
    return seen


@pytest.mark.parametrize("command", ONE)
def test_every_command_of_a_stream_takes_names(
    command: str, run: Run, served: Served, alice: Caller, followed: list[StreamRef], capsys
) -> None:
    roof = made(alice, "roof", "air", "sun")
    served.store()
    for words in ([roof, "air"], ["roof", "air"], ["air"]):
        assert run(command, *words) == 0
        assert run(command, *words[:1], "--token", alice.token, *words[1:]) == 0

    assert capsys.readouterr().err == ""
    assert set(followed) <= {StreamRef(roof, "air")}
    assert len(followed) == (6 if command == "tail" else 0)


def test_an_update_is_put_by_names(run: Run, served: Served, alice: Caller) -> None:
    roof = made(alice, "roof", "air", "sun")
    for at, words in enumerate(([roof, "air"], ["roof", "air"], ["air"]), start=1):
        assert run("put", *words, f"x={at}", "--at", 1423072260000 + at) == 0
        served.store()

        last = alice.ask("GET", f"/{roof}/streams/air/lastUpdate").get_json()
        assert last["data"][0]["channels"]["x"]["current-value"] == at


def test_a_file_goes_to_a_stream_alone(run: Run, served: Served, alice: Caller, tmp_path) -> None:
    roof = made(alice, "roof", "air")
    file = tmp_path / "in.csv"
    file.write_text("lastUpdate,x\n1423072260009,9\n")

    assert run("import", "air", file) == 0
    served.store()
    last = alice.ask("GET", f"/{roof}/streams/air/lastUpdate").get_json()
    assert last["data"][0]["lastUpdate"] == 1423072260009


@pytest.mark.parametrize("command", ONE)
def test_a_stream_that_two_have_is_not_guessed(
    command: str, run: Run, alice: Caller, followed: list[StreamRef], capsys
) -> None:
    ids = {made(alice, "roof", "air"), made(alice, "cellar", "air")}

    assert run(command, "air") == 1
    told = capsys.readouterr().err
    assert all(each in told for each in {*ids, "roof", "cellar"})
    assert told.count("\n") == 1
    assert not followed


@pytest.mark.parametrize("command", ONE)
def test_two_of_one_name_are_told_by_their_ids(
    command: str, run: Run, alice: Caller, followed: list[StreamRef], capsys
) -> None:
    ids = {made(alice, "roof", "air"), made(alice, "roof", "air")}

    assert run(command, "roof", "air") == 1
    told = capsys.readouterr().err
    assert all(each in told for each in ids)
    assert not followed


@pytest.mark.parametrize("command", ["history", "export", "tail"])
def test_a_service_object_alone_means_its_only_stream(
    command: str, run: Run, alice: Caller, followed: list[StreamRef], capsys
) -> None:
    made(alice, "cellar", "damp")
    made(alice, "roof", "air", "sun")

    assert run(command, "cellar") == 0
    assert run(command, "roof") == 1
    assert "air, sun" in capsys.readouterr().err


@pytest.mark.parametrize("command", ONE)
def test_a_name_that_nothing_has_is_one_line(
    command: str, run: Run, alice: Caller, followed: list[StreamRef], capsys
) -> None:
    for words in (["nothing"], ["nothing", "air"]):
        assert run(command, *words) == 1
        told = capsys.readouterr().err
        assert "'nothing'" in told
        assert told.count("\n") == 1


@pytest.mark.parametrize("command", ["get", "put", "history", "export", "tail", "apply"])
def test_a_wrong_token_is_one_line(
    command: str, run: Run, alice: Caller, followed: list[StreamRef], tmp_path, capsys
) -> None:
    made(alice, "roof", "air")
    (tmp_path / "a.json").write_text("{}")
    words = [tmp_path, "--yes"] if command == "apply" else ["roof", "air"]

    assert run(command, *words, "--token", "wrong") == 1
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1
