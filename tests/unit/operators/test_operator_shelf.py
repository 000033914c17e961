"""The shelf of unpacked programs: what the dead have left goes, and nobody waits for another."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from operators import archives
from operators.manifest import FILE
from operators.shelf import BASE, Shelf
from servioticy.ports.programs import Program

SECONDS = 60.0


class Stored:
    """Archives by the versions of a program."""

    def __init__(self, folder: Path, versions: int) -> None:
        self.archives: dict[int, bytes] = {}
        for version in range(1, versions + 1):
            made = folder / f"{version}"
            made.mkdir()
            (made / FILE).write_text(json.dumps({"name": "tried", "command": ["./main"]}))
            (made / "main").write_text(f"{version}")
            self.archives[version] = archives.pack(made)
        self.slow: dict[int, Event] = {}
        self.asked = Event()

    def digest(self, program: Program) -> str:
        """Return it."""
        return archives.digest(archives.unpack(self.archives[program.version]))

    def archive(self, program: Program) -> tuple[str, bytes]:
        """Return it; of a slow one when it may come."""
        if program.version in self.slow:
            self.asked.set()
            assert self.slow[program.version].wait(SECONDS)
        return self.digest(program), self.archives[program.version]


def program(version: int) -> Program:
    """Return a version."""
    return Program(1, "tried", version)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock as another process does."""
    descriptor = os.open(path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        os.close(descriptor)


def test_what_the_dead_have_left_goes_at_the_next_start(tmp_path: Path) -> None:
    """What somebody is unpacking stays, and what somebody is about to."""
    place, stored = tmp_path / "shelf", Stored(tmp_path, 1)
    Shelf(place, stored).close()
    for name in ("new-left", "new-busy"):
        (place / name / "files").mkdir(parents=True)
        (place / name / "files" / "main").write_text("x")
    for name in ("left.lock", "busy.lock"):
        (place / name).touch()
    with locked(place / "new-busy"), locked(place / "busy.lock"):
        Shelf(place, stored).close()

    assert sorted(each.name for each in place.iterdir()) == ["busy.lock", "new-busy"]


def test_a_folder_that_is_there_keeps_its_lock(tmp_path: Path) -> None:
    """By its age it is told who is used."""
    place, stored = tmp_path / "shelf", Stored(tmp_path, 1)
    shelf = Shelf(place, stored)
    _, folder = shelf.folder(program(1))
    shelf.close()
    Shelf(place, stored).close()

    assert (folder / "main").read_text() == "1"
    assert folder.with_suffix(".lock").exists()


def test_a_lock_goes_with_its_folder(tmp_path: Path) -> None:
    """Else there would be one for each version that ever was."""
    place, stored = tmp_path / "shelf", Stored(tmp_path, 3)
    for version in (1, 2, 3):
        shelf = Shelf(place, stored, most_bytes=1)
        shelf.folder(program(version))
        shelf.close()
    left = stored.digest(program(3))

    assert sorted(each.name for each in place.iterdir()) == sorted([left, f"{left}.lock", BASE])


def test_who_fetches_slowly_keeps_nobody(tmp_path: Path) -> None:
    """Another tenant's program is there at once."""
    stored = Stored(tmp_path, 2)
    stored.slow[1] = go_on = Event()
    shelf = Shelf(tmp_path / "shelf", stored)
    with ThreadPoolExecutor(2) as starters:
        slow = starters.submit(shelf.folder, program(1))
        try:
            assert stored.asked.wait(SECONDS)
            other = starters.submit(shelf.folder, program(2))
            assert (other.result(SECONDS)[1] / "main").read_text() == "2"
            assert not slow.done()
        finally:
            go_on.set()
        assert (slow.result(SECONDS)[1] / "main").read_text() == "1"
    shelf.close()


def test_several_may_put_the_same_there(tmp_path: Path) -> None:
    """At once, and over one that is not what it was."""
    place, stored = tmp_path / "shelf", Stored(tmp_path, 1)
    broken = place / stored.digest(program(1))
    broken.mkdir(parents=True)
    (broken / "main").write_text("other")
    shelves = [Shelf(place, stored) for _ in range(2)]
    with ThreadPoolExecutor(8) as starters:
        asked = [starters.submit(shelves[each % 2].folder, program(1)) for each in range(16)]
        found = {each.result(SECONDS)[1] for each in asked}
    for each in shelves:
        each.close()

    assert [(each / "main").read_text() for each in found] == ["1"]
    assert not list(place.glob("new-*"))


def test_who_comes_second_leaves_what_the_first_has_put_there(tmp_path: Path) -> None:
    """It may run already."""
    stored = Stored(tmp_path, 1)
    stored.slow[1] = go_on = Event()
    shelf = Shelf(tmp_path / "shelf", stored)
    with ThreadPoolExecutor(1) as starters:
        slow = starters.submit(shelf.folder, program(1))
        try:
            assert stored.asked.wait(SECONDS)
            del stored.slow[1]
            first = shelf.folder(program(1))[1].stat().st_ino
        finally:
            go_on.set()
        second = slow.result(SECONDS)[1].stat().st_ino
    shelf.close()

    assert second == first
