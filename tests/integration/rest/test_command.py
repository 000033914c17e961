"""The commands of a tenant, asked of a real API over a socket."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from api_builders import Caller, Served
from pyarrow import parquet
from rich.console import Console
from werkzeug.serving import make_server

from servioticy import terminal
from servioticy.tools.command import cli

RAW: dict[str, Any] = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
SUM = {
    "version": "0.2.0",
    "groups": {"raw": {"soIds": ["raw"], "stream": "a"}},
    "streams": {
        "s": {"channels": {"x": {"type": "number", "current-value": "function(raw){return 1}"}}}
    },
}
Run = Callable[..., int]


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


@pytest.fixture
def run(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Runs a command as alice, against the API."""
    server = make_server("127.0.0.1", 0, served.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("SERVIOTICY_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("SERVIOTICY_TOKEN", alice.token)
    monkeypatch.setenv("SERVIOTICY_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def command(*arguments: object) -> int:
        return cli.main([str(each) for each in arguments])

    yield command
    server.shutdown()
    thread.join()
    server.server_close()


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
    assert "no Service Object of yours has the name 'nobody'" in capsys.readouterr().err


def test_an_update_is_sent_and_read_back(
    run: Run, served: Served, alice: Caller, capsys: pytest.CaptureFixture[str]
) -> None:
    alice.create({**RAW, "name": "raw"})
    assert run("get", "raw", "a") == 1
    assert run("put", "raw", "a", "x=21.5", "--at", 7) == 0
    served.store()
    capsys.readouterr()

    assert run("get", "raw", "a") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"channels": {"x": {"current-value": 21.5}}, "lastUpdate": 7}
    assert run("put", "raw", "a", "x") == 1
    assert run("put", "raw", "a", "x=hot") == 1
    assert "does not match" in capsys.readouterr().err


def test_updates_are_sent_from_standard_input(
    run: Run,
    served: Served,
    alice: Caller,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line each; what is refused is told by its line, and the others are sent."""
    so = alice.create({**RAW, "name": "raw"})
    lines = [
        json.dumps({"channels": {"x": {"current-value": at}}, "lastUpdate": at}) for at in (1, 2)
    ]
    (tmp_path / "in").write_text("\n".join([lines[0], "{}", lines[1]]))
    with (tmp_path / "in").open() as standard_input:
        monkeypatch.setattr("sys.stdin", standard_input)
        assert run("put", "raw", "a") == 1

    told = capsys.readouterr().err
    assert "line 1 refused: " in told
    assert "2 accepted, 1 refused" in told
    served.store()
    assert len(alice.ask("GET", f"/{so}/streams/a").get_json()["data"]) == 2


@pytest.fixture
def with_history(served: Served, alice: Caller) -> str:
    """A Service Object `raw` with updates at 1 to 25."""
    so = alice.create({**RAW, "name": "raw"})
    lines = "".join(
        f'{{"channels":{{"x":{{"current-value":{at}}}}},"lastUpdate":{at}}}\n'
        for at in range(1, 26)
    )
    alice.ask("POST", f"/{so}/streams/a/updates", data=lines, content_type="application/x-ndjson")
    served.store()
    return so


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ([], list(range(1, 26))),
        (["--from", 3, "--to", 5], [3, 4, 5]),
        (["--newest-first", "--limit", 2], [25, 24]),
        (["--limit", 0], []),
    ],
)
def test_a_history_is_printed_a_line_an_update(
    run: Run, with_history: str, capsys: pytest.CaptureFixture[str], options: list[Any], times: Any
) -> None:
    assert run("history", "raw", "a", *options) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(each)["lastUpdate"] for each in lines] == times


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_what_is_exported_can_be_imported(
    run: Run, with_history: str, served: Served, alice: Caller, tmp_path: Path, form: str
) -> None:
    file = tmp_path / f"a.{form}"
    assert run("export", "raw", "a", "--output", file) == 0
    assert [each.name for each in tmp_path.glob(f"*{form}*")] == [file.name]
    copy = alice.create({**RAW, "name": "copy"})
    assert run("import", "copy", "a", file) == 0
    served.store()

    found = alice.ask("GET", f"/{copy}/streams/a").get_json()
    assert found == alice.ask("GET", f"/{with_history}/streams/a").get_json()


def test_a_terminal_shows_how_far_an_import_is(
    run: Run, alice: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody looks, nothing is drawn."""
    alice.create({**RAW, "name": "raw"})
    (tmp_path / "a.csv").write_text("lastUpdate,x\n1,1\n2,2\n")
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=100)
    monkeypatch.setattr(terminal, "console", lambda _stream: console)

    assert run("import", "raw", "a", tmp_path / "a.csv") == 0
    assert "import a.csv" in shown.getvalue()
    assert "2 updates" in shown.getvalue()


def test_rows_that_are_refused_are_told_and_the_others_sent(
    run: Run, served: Served, alice: Caller, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    so = alice.create({**RAW, "name": "raw"})
    (tmp_path / "a.csv").write_text("lastUpdate,x\n1,1\n2,hot\n3,3\n")
    assert run("import", "raw", "a", tmp_path / "a.csv") == 1

    told = capsys.readouterr().err
    assert "row 1 refused: " in told
    assert "2 accepted, 1 refused" in told
    served.store()
    assert len(alice.ask("GET", f"/{so}/streams/a").get_json()["data"]) == 2


def test_an_export_that_fails_leaves_no_file(
    run: Run, with_history: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("export", "raw", "nowhere", "--output", tmp_path / "a.csv") == 1
    assert "does not have this stream" in capsys.readouterr().err
    assert run("export", "raw", "a", "--output", tmp_path / "a.xls") == 1
    assert run("export", "raw", "a", "--output", tmp_path / "no" / "a.csv") == 1
    assert list(tmp_path.glob("*a.*")) == []


def test_a_parquet_file_of_somebody_else_is_taken(
    run: Run, served: Served, alice: Caller, tmp_path: Path
) -> None:
    so = alice.create({**RAW, "name": "raw"})
    table = pyarrow.table({"lastUpdate": [1, 2], "x": [1.5, None]})
    parquet.write_table(table.slice(0, 1), tmp_path / "a.parquet")

    assert run("import", "raw", "a", tmp_path / "a.parquet") == 0
    served.store()
    assert len(alice.ask("GET", f"/{so}/streams/a").get_json()["data"]) == 1


@pytest.mark.parametrize("command", ["apply", "get"])
def test_without_a_token_it_is_said_where_to_put_one(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, command: str
) -> None:
    monkeypatch.delenv("SERVIOTICY_TOKEN")

    assert run(command, folder) == 1
    assert "SERVIOTICY_TOKEN" in capsys.readouterr().err
