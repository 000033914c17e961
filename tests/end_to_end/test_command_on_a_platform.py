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
COUNT = 12_000
"""More than go into one batch."""


def test_a_folder_a_file_and_what_is_computed_of_them(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    """Applied, imported, computed, exported."""
    for name, document in (("command-raw", RAW), ("command-derived", DERIVED)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    rows = "".join(f"{at},{at}\n" for at in range(1, COUNT + 1))
    (tmp_path / "in.csv").write_text(f"lastUpdate,x\n{rows}")
    token = ("--token", platform.token)
    applied = platform.command("apply", str(tmp_path), "--yes", *token).stdout
    derived = applied.split("created command-derived ")[1].split()[0]

    platform.command("import", "command-raw", "a", str(tmp_path / "in.csv"), *token)
    assert len(platform.updates(StreamRef(derived, "b"))) == COUNT
    out = tmp_path / "out.csv"
    platform.command("export", "command-derived", "b", "--output", str(out), *token)
    names, *lines = out.read_text().splitlines()
    assert names == "lastUpdate,x"
    values = dict(each.split(",") for each in lines)
    assert {int(at): float(value) for at, value in values.items()} == {
        at: 2.0 * at for at in range(1, COUNT + 1)
    }
    last = platform.command("get", "command-derived", "b", *token).stdout
    assert json.loads(last)["lastUpdate"] == COUNT
