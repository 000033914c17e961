"""The commands of a tenant, asked of a real API over a socket."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from api_builders import Caller
from command_runs import RAW, Run, run

__all__ = ["run"]

SUM = {
    "version": "0.2.0",
    "groups": {"raw": {"soIds": ["raw"], "stream": "a"}},
    "streams": {
        "s": {"channels": {"x": {"type": "number", "current-value": "function(raw){return 1}"}}}
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two documents, of which one reads the other's stream."""
    found = tmp_path / "documents"
    found.mkdir()
    write(found, "raw", RAW)
    write(found, "sum", SUM)
    return found


def write(folder: Path, name: str, document: Any) -> None:
    (folder / f"{name}.json").write_text(json.dumps(document))


def named(alice: Caller) -> dict[str, dict[str, Any]]:
    """The documents that there are, by name."""
    ids = alice.ask("GET", "/").get_json()
    documents = [alice.ask("GET", f"/{id_}").get_json() for id_ in ids]
    return {each["name"]: each for each in documents}


def test_a_folder_is_applied_and_then_as_it_should_be(
    run: Run, folder: Path, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("apply", folder, "--yes") == 0
    told = capsys.readouterr().out
    found = named(alice)
    assert found["sum"]["groups"]["raw"]["soIds"] == [found["raw"]["id"]]
    assert "2 to create, 0 to change, 0 as they are" in told
    assert told.index("created raw") < told.index("created sum")

    assert run("apply", folder, "--yes") == 0
    assert capsys.readouterr().out == "0 to create, 0 to change, 2 as they are\n"
    assert named(alice) == found


def test_a_changed_document_is_changed_alone(
    run: Run, folder: Path, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    run("apply", folder, "--yes")
    before = named(alice)
    write(folder, "raw", {**RAW, "description": "new", "customFields": {"room": "kitchen"}})
    capsys.readouterr()
    assert run("apply", folder, "--yes") == 0

    told, after = capsys.readouterr().out, named(alice)
    assert '+  "description": "new"' in told
    assert f"changed raw {before['raw']['id']}" in told
    assert after["raw"]["id"] == before["raw"]["id"]
    assert after["raw"]["customFields"] == {"room": "kitchen"}
    assert after["sum"] == before["sum"]


@pytest.mark.parametrize("options", [["--dry-run"], ["--dry-run", "--yes"], []])
def test_nothing_is_done_unless_somebody_says_yes(
    run: Run, folder: Path, alice: Caller, options: list[str]
) -> None:
    """Exit code 3; here nobody sits at the terminal."""
    assert run("apply", folder, *options) == 3
    assert named(alice) == {}


class Terminal(io.StringIO):
    """Somebody who sits there, and types this."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 3), ("", 3)])
def test_who_sits_at_the_terminal_is_asked(
    run: Run,
    folder: Path,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    code: int,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))

    assert run("apply", folder) == code
    assert "apply? [y/N]" in capsys.readouterr().err
    assert set(named(alice)) == ({"raw", "sum"} if code == 0 else set())


def test_what_changed_since_it_was_shown_is_not_changed(
    run: Run,
    folder: Path,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """While somebody reads the differences, somebody else puts another document in force."""
    run("apply", folder, "--yes")
    so = named(alice)["raw"]["id"]
    write(folder, "raw", {**RAW, "description": "mine"})

    class Slow(Terminal):
        def readline(self, *_: Any) -> str:
            theirs = {**RAW, "name": "raw", "description": "theirs"}
            assert alice.ask("PUT", f"/{so}", json=theirs).status_code == 200
            return "y\n"

    monkeypatch.setattr("sys.stdin", Slow())

    assert run("apply", folder) == 1
    assert "raw.json: somebody has changed it" in capsys.readouterr().err
    assert named(alice)["raw"]["description"] == "theirs"


def test_what_others_still_read_goes_when_they_have_changed(
    run: Run, folder: Path, alice: Caller
) -> None:
    """The stream's own document comes first, and cannot change before its reader has."""
    run("apply", folder, "--yes")
    write(folder, "raw", {"streams": {"b": {"channels": {"x": {"type": "number"}}}}})
    write(folder, "sum", {"streams": {}})

    assert run("apply", folder, "--yes") == 0
    assert list(named(alice)["raw"]["streams"]) == ["b"]


def test_what_others_read_does_not_go(
    run: Run, folder: Path, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    run("apply", folder, "--yes")
    write(folder, "raw", {"streams": {}})

    assert run("apply", folder, "--yes") == 1
    assert "raw.json: The streams a cannot go" in capsys.readouterr().err


def test_a_document_that_is_refused_is_named_with_the_place(
    run: Run, folder: Path, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was done before stays, so that the same can be run again."""
    write(folder, "sum", {"streams": {"s": {"channels": {"x": {"type": "nmber"}}}}})

    assert run("apply", folder, "--yes") == 1
    told = capsys.readouterr().err
    assert "sum.json: Channel x with incorrect type: nmber" in told
    assert "/streams/s/channels/x/type" in told
    write(folder, "sum", SUM)
    assert run("apply", folder, "--yes") == 0
    assert set(named(alice)) == {"raw", "sum"}


def test_a_name_that_several_have_is_refused(
    run: Run, folder: Path, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        alice.create({**RAW, "name": "raw"})

    assert run("apply", folder, "--yes") == 1
    assert "several Service Objects of yours have the name 'raw'" in capsys.readouterr().err
    assert run("get", "raw") == 1
    assert "2 Service Objects have the name 'raw'" in capsys.readouterr().err


def test_a_document_is_printed_by_name_and_by_id(
    run: Run, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    so = alice.create({**RAW, "name": "raw"})

    assert run("get", "raw") == run("get", so) == 0
    first, second = capsys.readouterr().out.split("\n}\n{\n")
    assert json.loads(first + "\n}")["id"] == json.loads("{\n" + second)["id"] == so
    assert run("get", "nobody") == 1
    assert (
        "none of your streams and Service Objects has the name 'nobody'" in capsys.readouterr().err
    )


@pytest.mark.parametrize("command", ["apply", "get"])
def test_without_a_token_it_is_said_where_to_put_one(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, command: str
) -> None:
    monkeypatch.delenv("SERVIOTICY_TOKEN")

    assert run(command, folder) == 1
    assert "SERVIOTICY_TOKEN" in capsys.readouterr().err
