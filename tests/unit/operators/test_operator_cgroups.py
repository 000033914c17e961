"""Control groups of programs: where they can be made, and what is written there.

Against files that lie as the kernel's do; on the kernel's own where this machine lets us.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operators.cgroups import BESIDE_BYTES, BESIDE_PROCESSES, NAME, Groups, NoGroups, found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A cgroup v2 as the kernel shows it, with one below it that is ours."""
    for each in (tmp_path, tmp_path / "service"):
        each.mkdir(exist_ok=True)
        (each / "cgroup.controllers").write_text("cpu memory pids\n")
        (each / "cgroup.subtree_control").write_text("")
    (tmp_path / "own").write_text("1:cpu:/elsewhere\n0::/service\n")
    return tmp_path


def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make folders as the kernel does: with their files, which go with them."""
    make, take = Path.mkdir, Path.rmdir

    def made(self: Path, *words: int, exist_ok: bool = False) -> None:
        make(self, *words, exist_ok=exist_ok)
        for name in ("cgroup.procs", "cgroup.subtree_control", "memory.swap.max", "cgroup.kill"):
            (self / name).touch()

    def taken(self: Path) -> None:
        if (self / "cgroup.procs").read_text():
            raise OSError("somebody is in it")
        for each in self.iterdir():
            each.unlink()
        take(self)

    monkeypatch.setattr(Path, "mkdir", made)
    monkeypatch.setattr(Path, "rmdir", taken)


@pytest.mark.parametrize("named", [False, True])
def test_groups_are_made_where_we_are_or_where_we_are_told(
    root: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """With the controllers handed down on the way."""
    kernel(monkeypatch)
    above = root / "service"
    place = found(str(above) if named else "", root, root / "own")

    assert place == above / NAME
    for each in (above, place):
        assert (each / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert [each for each in place.iterdir() if each.is_dir()] == []


def test_a_group_bounds_memory_and_processes_and_goes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a program may have, and what it takes beside."""
    kernel(monkeypatch)
    place = found("", root, root / "own")
    group = Groups(place).group(1000, 5)
    assert group is not None
    (folder,) = (each for each in place.iterdir() if each.is_dir())

    assert (folder / "memory.max").read_text() == str(1000 + BESIDE_BYTES)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert not (folder / "memory.oom.group").exists()
    assert (folder / "pids.max").read_text() == str(5 + BESIDE_PROCESSES)
    os.write(group.entrance, b"0")
    group.close()
    group.kill()
    assert (folder / "cgroup.procs").read_text() == "0"
    assert (folder / "cgroup.kill").read_text() == "1"
    group.remove()
    assert folder.exists()
    (folder / "cgroup.procs").write_text("")
    group.remove()
    assert not folder.exists()


def test_groups_of_the_dead_are_taken_away(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those in which somebody still is."""
    kernel(monkeypatch)
    place = found("", root, root / "own")
    for name, inside in (("1-1", ""), ("2-1", "77")):
        (place / name).mkdir()
        (place / name / "cgroup.procs").write_text(inside)
    Groups(place)

    assert [each.name for each in place.iterdir() if each.is_dir()] == ["2-1"]


def test_where_no_group_can_be_had_a_program_runs_without(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own limits have to do."""
    kernel(monkeypatch)
    groups = Groups(found("", root, root / "own"))

    def refused(_self: Path, *_words: int, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", refused)
    assert groups.group(1000, 5) is None


def test_a_machine_without_says_why(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For `servioticy doctor`."""
    own = root / "own"
    with pytest.raises(NoGroups, match="no cgroup v2 at"):
        found("", root / "none", own)
    with pytest.raises(NoGroups, match=r"none.*No such file"):
        found(str(root / "none"), root, own)
    (root / "service/cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(NoGroups, match="has no controller memory"):
        found("", root, own)
    own.write_text("1:cpu:/elsewhere\n")
    with pytest.raises(NoGroups, match="we are in no cgroup v2"):
        found("", root, own)
    kernel(monkeypatch)
    (root / "service/cgroup.controllers").write_text("cpu memory pids\n")

    def busy(_self: Path, _content: str) -> int:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "write_text", busy)
    with pytest.raises(NoGroups, match="busy"):
        found(str(root / "service"), root, own)
