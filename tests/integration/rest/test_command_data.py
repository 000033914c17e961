"""The command sends, reads, exports and imports updates."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from api_builders import NOW, Caller, Served
from command_runs import RAW, Run, run
from pyarrow import parquet
from rich.console import Console

from servioticy import terminal

__all__ = ["run"]


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


def test_what_is_odd_about_an_update_is_told(
    run: Run, alice: Caller, caplog: pytest.LogCaptureFixture
) -> None:
    """Seconds after milliseconds would compute nothing, and nobody would know why."""
    alice.create({**RAW, "name": "raw"})
    found = []
    for at in (int(NOW) * 1000, int(NOW)):
        assert run("put", "raw", "a", "x=1", "--at", at) == 0
        found.append([e.getMessage() for e in caplog.records if e.name == "servioticy.client"])

    assert found[0] == []
    (told,) = found[1]
    assert f"warning: lastUpdate {int(NOW)} is in seconds" in told


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
