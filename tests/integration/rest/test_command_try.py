"""`servioticy try`: where a changed document would differ, as a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api_builders import NOW, Caller, Served
from command_runs import RAW, Run, run

__all__ = ["run"]

CODE = {"channels": {"v": {"type": "number", "current-value": "function(a) { return 1 }"}}}
DOCUMENT = {"version": "0.2.0", "streams": {**RAW["streams"], "out": CODE}}


@pytest.fixture
def so(served: Served, alice: Caller) -> str:
    """With two updates, and nothing that is computed of them."""
    made = alice.create({**RAW, "name": "cellar"})
    for at in (7, 8):
        body = b'{"channels":{"x":{"current-value":1}},"lastUpdate":%d}' % at
        assert alice.put(made, body).status_code == 202
    served.store()
    return made


def test_differences_are_a_table_and_what_it_takes_is_told(
    run: Run, so: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cellar.json"
    file.write_text(json.dumps(DOCUMENT))

    assert run("try", file, "--last", "1") == 0
    first, names, row, played, before, after = capsys.readouterr().out.splitlines()
    assert first == f"version 1 of {so} and {file}"
    assert names.split() == ["update", "stream", "channel", "before", "after"]
    assert row.split()[-4:] == ["out", "v", "none", "8"]
    assert played == "1 updates played, 1 of them differ"
    assert before.startswith("before: nothing computed; ")
    assert after.startswith("after: emitted 1; ")

    assert run("try", file, "--json") == 0
    assert [each["lastUpdate"] for each in json.loads(capsys.readouterr().out)["updates"]] == [
        7,
        8,
    ]


def test_what_is_no_document_and_what_has_no_name_there_is_one_line(
    run: Run, so: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text, told in (
        ("cellar.json", "{", "cannot be read"),
        ("cellar.json", '{"streams": {"a": 7}}', "a"),
        ("attic.json", json.dumps(RAW), "'attic'"),
    ):
        (tmp_path / name).write_text(text)
        assert run("try", tmp_path / name) == 1
        error = capsys.readouterr().err
        assert told in error
        assert len(error.splitlines()) == 1


def test_results_of_windows_are_told_by_their_time(
    run: Run,
    so: str,
    alice: Caller,
    served: Served,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(3):
        at = int(NOW) - 7200 + 60 * number
        body = b'{"channels":{"x":{"current-value":1}},"lastUpdate":%d}' % at
        assert alice.put(so, body).status_code == 202
    served.store()
    window = {"window": {"type": "tumbling", "size": "1m", "emit": "updates"}}
    count = {"window": {"type": "count", "size": 2}}
    file = tmp_path / "cellar.json"
    streams = {**RAW["streams"], "out": CODE | window, "pairs": CODE | count}
    file.write_text(json.dumps({"version": "0.2.0", "streams": streams}))

    assert run("try", file, "--last", "2") == 0
    told = capsys.readouterr().out
    assert ", early 1" in told
    assert "2 updates played, 0 of them differ" in told
    assert "left out, as they may hold what was not played: 0 windows before, 2 after" in told
    assert "note: " in told
    assert "pairs: where windows of so many updates begin" in told
