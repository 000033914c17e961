"""A release that follows this one, made of it: what stands beside the present one in an upgrade.

No clone has the programs of an older release, so the present one is the older one of the two. The
next one is a copy of it that differs in whatever the rules of an upgrade allow to differ
(docs/decisions/0178-two-releases.md): it brings a schema of its own and needs it, and says more in
each record of the log and of what is emitted than this one knows of.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from command.packing.installed import HERE, OURS

MIGRATION = "9999_next_release.sql"
SQL = """\
-- Expands what is busiest, and adds a table.

ALTER TABLE progress ADD COLUMN moved_by text;
ALTER TABLE updates ADD COLUMN made_by text;
ALTER TABLE states ADD COLUMN made_by text NOT NULL DEFAULT '';
ALTER TABLE service_objects ADD COLUMN made_by text;

CREATE TABLE next_things (
    tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE,
    thing text NOT NULL,
    PRIMARY KEY (tenant_id, thing)
);
SELECT force_row_level_security('next_things');
"""
UNKNOWN = "next_release"
"""What its records say more."""
NAME = "next"

CHANGES: Mapping[str, tuple[str, str]] = {
    "servioticy/storage/sql/partition.sql": (
        "       SET next_offset = %(next_offset)s,\n",
        f"       SET next_offset = %(next_offset)s,\n           moved_by = '{NAME}',\n",
    ),
    "servioticy/domain/records.py": (
        "    return _encoder.encode(record)\n",
        f"""    more = b"" if isinstance(record, EmittedRecord) else b',"{UNKNOWN}":["{NAME}"]'
    return _encoder.encode(record)[:-1] + more + b"}}"\n""",
    ),
    # Of those that are emitted it puts the bytes together piece by piece.
    "servioticy/domain/emissions.py": (
        "    end = _end(path)\n",
        f"""    end = _end(path)[:-1] + b',"{UNKNOWN}":["{NAME}"]' + b"}}"\n""",
    ),
}
"""File by file what stands there in this one, and in the next one."""


def make(folder: Path) -> Path:
    """Make it, and return where it is: first on Python's path it is what runs."""
    for name in OURS:
        shutil.copytree(HERE / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "servioticy" / "storage" / "sql" / "migrations" / MIGRATION).write_text(SQL)
    for name, (before, after) in CHANGES.items():
        file = folder / name
        text = file.read_text("utf-8")
        # The last place: of `write`, and not of what reads.
        head, found, tail = text.rpartition(before)
        assert found, f"{name} has changed: say anew how the next release differs"
        file.write_text(head + after + tail, "utf-8")
    return folder


def environment(release: Path | None) -> dict[str, str]:
    """What a program of a release has in its environment; of none, of the present one."""
    return {**os.environ, "PYTHONPATH": str(release or HERE)}
