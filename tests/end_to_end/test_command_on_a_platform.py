"""The commands of a tenant on a whole platform, each a process of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from running_platform import RunningPlatform

from servioticy.domain.model import StreamRef

RAW: dict[str, Any] = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
TWICE = "function(raw) { return 2 * raw.channels.x['current-value']; }"
DERIVED = {
    "version": "0.2.0",
    "groups": {"raw": {"soIds": ["command-raw"], "stream": "a"}},
    "streams": {"b": {"channels": {"x": {"type": "number", "current-value": TWICE}}}},
}
FLOW = {
    "source": {"stream": {"serviceObject": "command-derived", "stream": "b"}},
    "procedures": {"pass": {"code": "x => x"}},
    "links": [["source", "pass"], ["pass", "sink"]],
    "sink": {"none": {}},
}
COUNT = 12_000
"""More than go into one batch."""


def test_a_folder_a_file_and_what_is_computed_of_them(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    """Applied, imported, computed, exported."""
    documents = {"command-raw": RAW, "command-derived": DERIVED, "command-flow": FLOW}
    for name, document in documents.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    rows = "".join(f"{at},{at}\n" for at in range(1, COUNT + 1))
    (tmp_path / "in.csv").write_text(f"lastUpdate,x\n{rows}")
    token = ("--token", platform.token)
    applied = platform.command("apply", str(tmp_path), "--yes", *token).stdout
    derived = applied.split("created command-derived ")[1].split()[0]
    again = platform.command("apply", str(tmp_path), "--dry-run", *token).stdout
    assert again == "0 to create, 0 to change, 3 as they are\n"
    (tmp_path / "command-flow.json").write_text(json.dumps({**FLOW, "sink": {"collect": {}}}))
    changed = platform.command("apply", str(tmp_path), "--yes", *token).stdout
    assert "changed command-flow " in changed

    platform.command("import", "command-raw", "a", str(tmp_path / "in.csv"), *token)
    assert len(platform.updates(StreamRef(derived, "b"))) == COUNT
    out = tmp_path / "out.csv"
    platform.command("export", "command-derived", "b", "--output", str(out), *token)
    names, *lines = out.read_text().splitlines()
    assert names.split(",")[:2] == ["lastUpdate", "x"]
    values = dict(each.split(",")[:2] for each in lines)
    assert {int(at): float(value) for at, value in values.items()} == {
        at: 2.0 * at for at in range(1, COUNT + 1)
    }
    last = platform.command("get", "command-derived", "b", *token).stdout
    assert json.loads(last)["lastUpdate"] == COUNT


def test_the_platform_tells_its_state(platform: RunningPlatform) -> None:
    """Every program runs, and what the pipeline counts is found where it says it."""
    found = json.loads(platform.command("status", "--json").stdout)
    pids = {each["name"]: each["pid"] for each in found["programs"] if each["runs"]}
    assert found["well"]
    assert pids == platform.pids()
    assert set(pids) >= {"postgres", "kafka", "pipeline", "api", "delivery", "broker"}
    assert all(each["since"] for each in found["programs"])
    assert [each["name"] for each in found["health"]] == ["api", "delivery"]
    assert not found["unknown"]

    told = platform.command("status").stdout
    assert "not known" not in told
    assert f"{pids['pipeline']}" in told


def test_a_composite_tells_how_its_computations_ended(platform: RunningPlatform) -> None:
    """One update made a value, of another the code threw an error."""
    code = "function(a) { if (a.channels.x['current-value'] > 1) throw 'too much'; return 1; }"
    channels = {"x": {"type": "number", "current-value": code}}
    document = {**RAW, "name": "status-asked", "version": "0.2.0"}
    so = platform.create({**document, "streams": {**RAW["streams"], "c": {"channels": channels}}})
    raw, derived = StreamRef(so, "a"), StreamRef(so, "c")
    platform.put(raw, 1, x=1)
    platform.put(raw, 2, x=2)
    assert [each["lastUpdate"] for each in platform.updates(derived)] == [1]

    asked = ("status", "status-asked", "c", "--token", platform.token)
    told = platform.command(*asked).stdout
    assert told.index("script-error  1") < told.index("too much") < told.index("emitted  1")
    lines = platform.command("status", so, "--token", platform.token).stdout.splitlines()
    assert lines[2].split()[0] == "c"
    used = platform.command("usage", "--token", platform.token).stdout
    assert "\ndocuments  " in used
