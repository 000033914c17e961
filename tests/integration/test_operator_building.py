"""What the pipeline is given: a node, its shelf and who tells of it, by the settings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from operator_folders import SECONDS, question, write

from operators import archives, manifest
from operators.building import Programs
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Run, StoredProgram, Wanted
from servioticy.settings import Settings, changed

PROGRAM = Program(1, "other/tried", 4)
MAIN = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)"


class Store:
    """One program, and what has been told."""

    def __init__(self, folder: Path) -> None:
        self.packed = archives.pack(folder)
        self.files = archives.unpack(self.packed)
        self.told: list[Sequence[Run]] = []

    def found(self, programs: Sequence[Program]) -> dict[Program, StoredProgram]:
        """Return the program."""
        content = self.files[manifest.FILE].content.decode()
        kept = StoredProgram(content, archives.digest(self.files))
        return {each: kept for each in programs if each == PROGRAM}

    def archive(self, program: Program, digest: str) -> bytes | None:
        """Return its archive."""
        return self.packed

    def tell(self, node: str, runs: Sequence[Run]) -> None:
        """Note it."""
        self.told.append(runs)

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Nobody wants anything to be begun."""
        time.sleep(seconds)
        return ()


@pytest.mark.parametrize("transport", ["socket", "queue"])
def test_a_program_of_the_store_is_unpacked_and_run(tmp_path: Path, transport: str) -> None:
    """Below the data folder; nothing is there before somebody asks, and no process after."""
    store = Store(write(tmp_path / "folder", MAIN, batch={"max": 3}))
    data = tmp_path / "data"
    own = {"operators_protection": "any", "operators_transport": transport}
    settings = changed(Settings(), data=str(data), **own)
    programs = Programs(settings, store, 0)
    try:
        assert not data.exists()
        assert programs.known.manifests([PROGRAM])[PROGRAM].batch == 3
        unknown = Program(1, "tried", 4)
        assert programs.ask(question(1, PROGRAM))
        assert programs.ask(question(2, unknown))
        replies = {}
        end = time.monotonic() + SECONDS
        while len(replies) < 2 and time.monotonic() < end:
            replies |= {each.id: each for each in programs.replies(1.0)}
    finally:
        programs.close()

    assert replies[b"q1"].outputs[0].channels == b'{"value":1}'
    assert replies[b"q2"].error == "there is no operator tried of version 4"
    assert sorted(each.suffix for each in (data / "operators").iterdir()) == ["", "", ".lock"]
