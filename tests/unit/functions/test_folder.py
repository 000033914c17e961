"""A folder as a store: in order, whole, once settled, and nothing of what is outside of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from functions.files import folder as folders
from functions.files.folder import SETTLED_SECONDS, LocalFolder
from functions.files.store import FileGone, FileRefused, StoreAway, StoreRefuses
from servioticy.ports.atoms import Seen

NOW = 1_000_000.0


def put(path: Path, content: bytes = b"{}", at: float = NOW - 100) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (at, at))
    return path


def keys(path: Path, prefix: str = "", after: str = "") -> list[str]:
    return [each.key for each in LocalFolder(str(path), NOW).page(prefix, after).files]


def test_files_are_listed_by_the_bytes_of_their_names(tmp_path: Path) -> None:
    names = ["b", "a/z", "a-b", "a/ü", "a/b/c"]
    for each in names:
        put(tmp_path / each)

    assert keys(tmp_path) == sorted(names, key=str.encode)
    assert keys(tmp_path, after="a/b/c") == ["a/z", "a/ü", "b"]
    assert keys(tmp_path, "a/") == ["a/b/c", "a/z", "a/ü"]


def test_pages_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "PAGE", 2)
    for each in "abcde":
        put(tmp_path / each)
    store, found, after = LocalFolder(str(tmp_path), NOW), list[str](), ""

    for _ in range(3):
        page = store.page("", after)
        found += [each.key for each in page.files]
        after = page.upto or ""

    assert found == list("abcde")
    assert page.upto is None


def test_a_file_is_left_alone_until_it_is_settled(tmp_path: Path) -> None:
    put(tmp_path / "new", at=NOW - SETTLED_SECONDS + 0.1)
    put(tmp_path / "old", at=NOW - SETTLED_SECONDS)
    put(tmp_path / ".hidden")
    put(tmp_path / ".folder" / "a")

    assert keys(tmp_path) == ["old"]


def test_a_part_is_read_and_a_file_that_has_changed_is_not(tmp_path: Path) -> None:
    path = put(tmp_path / "a" / "b", b"0123456789")
    store = LocalFolder(str(tmp_path), NOW)
    (file,) = store.page("", "").files

    assert store.read(file, 3, 4) == b"3456"
    assert store.read(file, 8, 4) == b"89"
    put(path, b"0123456789", at=NOW - 50)
    with pytest.raises(FileGone):
        store.read(file, 3, 4)
    path.unlink()
    with pytest.raises(FileGone):
        store.read(file, 3, 4)


def test_no_link_leads_out(tmp_path: Path) -> None:
    """Neither one that is listed, nor one that takes the place of what was listed."""
    secret = put(tmp_path / "outside" / "secret", b"secret")
    inside = tmp_path / "inside"
    listed = put(inside / "sub" / "file", b"public")
    (inside / "link").symlink_to(secret)
    (inside / "folder").symlink_to(secret.parent)
    store = LocalFolder(str(inside), NOW)
    (file,) = store.page("", "").files

    assert file.key == "sub/file"
    listed.unlink()
    listed.symlink_to(secret)
    with pytest.raises(FileGone):
        store.read(file, 0, 9)
    listed.unlink()
    listed.parent.rmdir()
    listed.parent.symlink_to(secret.parent)
    for key in ("sub/secret", "../outside/secret", "link", "sub/\0"):
        with pytest.raises(FileGone):
            store.read(Seen(key, file.etag, 6), 0, 9)


def test_what_is_no_file_holds_nobody_up(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for."""
    os.mkfifo(tmp_path / "pipe")

    assert keys(tmp_path) == []
    with pytest.raises(FileGone):
        LocalFolder(str(tmp_path), NOW).read(Seen("pipe", "1", 1), 0, 1)


def test_a_folder_has_so_many_files_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_LISTED", 3)
    for each in "abc":
        put(tmp_path / each)
    assert keys(tmp_path) == list("abc")

    put(tmp_path / "d")
    with pytest.raises(StoreRefuses, match="more than 3"):
        keys(tmp_path)


def test_a_root_that_is_not_there_is_away_and_not_empty(tmp_path: Path) -> None:
    """As where a mount has failed: else all would be forgotten, and come again when it is back."""
    inside = tmp_path / "inside"
    put(inside / "a")
    store = LocalFolder(str(inside), NOW)
    (file,) = store.page("", "").files
    inside.rename(tmp_path / "away")

    with pytest.raises(StoreAway, match="No such file"):
        store.page("", "")
    with pytest.raises(StoreAway):
        store.read(file, 0, 1)
    put(inside)
    with pytest.raises(StoreRefuses, match="Not a directory"):
        store.page("", "")


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES, errno.EMFILE])
def test_trouble_below_the_root_is_no_end_of_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    put(tmp_path / "sub" / "file")
    store = LocalFolder(str(tmp_path), NOW)
    (file,) = store.page("", "").files
    for function, name in (("open", b"sub"), ("open", b"file"), ("stat", b"file")):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, _failing(getattr(os, function), name, number))
            if (function, name) != ("open", b"file"):
                with pytest.raises(StoreAway):
                    store.page("", "")
            if function == "open":
                expected = FileRefused if number == errno.EACCES else StoreAway
                with pytest.raises(expected):
                    store.read(file, 0, 1)

    assert store.read(file, 0, 2) == b"{}"


def _failing(real: Any, name: bytes | str, number: int) -> Any:
    def fails(path: Any, *others: Any, **more: Any) -> Any:
        if path == name:
            raise OSError(number, os.strerror(number))
        return real(path, *others, **more)

    return fails


def test_no_step_from_the_tenants_own_on_is_a_link(tmp_path: Path) -> None:
    """Who owns a folder in the middle may put a link to another's in the place of the next one."""
    put(tmp_path / "real" / "t1" / "in" / "own")
    put(tmp_path / "real" / "t2" / "in" / "secret")
    (tmp_path / "trusted").symlink_to("real")  # an operator may
    first = LocalFolder(str(tmp_path / "trusted"), NOW, ["t1", "in"])
    (file,) = first.page("", "").files
    assert file.key == "own"

    (tmp_path / "real" / "t1" / "in").rename(tmp_path / "real" / "t1" / "out")
    (tmp_path / "real" / "t1" / "in").symlink_to("../t2/in")
    with pytest.raises(StoreRefuses):
        first.page("", "")
    with pytest.raises(StoreRefuses):
        first.read(file, 0, 1)
    for steps in (["t1", ".."], ["."], [""]):
        with pytest.raises(StoreAway):
            LocalFolder(str(tmp_path / "real"), NOW, steps).page("", "")


def test_no_name_leads_above(tmp_path: Path) -> None:
    put(tmp_path / "inside" / "sub" / "a")
    outside = put(tmp_path / "outside" / "secret")
    at = outside.stat()
    etag = f"{at.st_ino}-{at.st_size}-{at.st_mtime_ns}"
    store = LocalFolder(str(tmp_path / "inside"), NOW)

    for key in ("../outside/secret", "sub/../../outside/secret", "./sub/a", "sub//a", "..", ""):
        with pytest.raises(FileGone):
            store.read(Seen(key, etag, 2), 0, 2)


def test_of_a_page_no_more_is_looked_at_than_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that are before it, behind it, or of other names are not entered."""
    monkeypatch.setattr(folders, "PAGE", 2)
    for folder in ("a", "b", "c", "d"):
        for n in range(50):
            put(tmp_path / "in" / folder / f"{n:02}")
    put(tmp_path / "out" / "a")
    looked: list[bytes] = []
    real_stat, real_open = os.stat, os.open

    def stat(path: Any, *others: Any, **more: Any) -> Any:
        looked.append(path)
        return real_stat(path, *others, **more)

    def opened(path: Any, *others: Any, **more: Any) -> Any:
        looked.append(path)
        return real_open(path, *others, **more)

    monkeypatch.setattr(os, "stat", stat)
    monkeypatch.setattr(os, "open", opened)
    page = LocalFolder(str(tmp_path), NOW).page("in/", "in/b/20")

    assert [each.key for each in page.files] == ["in/b/21", "in/b/22"]
    assert looked == [str(tmp_path), b"in", b"b", b"21", b"22", b"23"]


def test_a_file_is_written_as_a_whole_in_the_place_of_another(tmp_path: Path) -> None:
    """Folders on its way are made; what is half written has a name that nobody lists."""
    store = LocalFolder(str(tmp_path), below=["t1"])
    store.write("a/b/c", b"1")
    store.write("a/b/c", b"22")

    assert (tmp_path / "t1" / "a" / "b" / "c").read_bytes() == b"22"
    assert [each.name for each in (tmp_path / "t1" / "a" / "b").iterdir()] == ["c"]


def test_folders_that_are_made_are_there_after_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the file, which was said to be written, would be in none."""
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    LocalFolder(str(tmp_path), below=["t1"]).write("a/b/c", b"1")

    *above, _file, own = synced
    assert above == [str(tmp_path), str(tmp_path / "t1"), str(tmp_path / "t1" / "a")]
    assert own == str(tmp_path / "t1" / "a" / "b")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "file", b"before")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "folder").symlink_to(outside.parent)
    (inside / "link").symlink_to(outside)
    store = LocalFolder(str(inside))

    with pytest.raises(FileRefused):
        store.write("folder/file", b"after")
    store.write("link", b"after")

    assert outside.read_bytes() == b"before"
    assert (inside / "link").read_bytes() == b"after"
    assert not (inside / "link").is_symlink()
    for key in ("../outside/file", "a/../../outside/file"):
        with pytest.raises((StoreAway, FileRefused)):
            store.write(key, b"after")
    assert outside.read_bytes() == b"before"


def test_a_write_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreAway, match="No space"):
        LocalFolder(str(tmp_path)).write("a", b"1")

    assert list(tmp_path.iterdir()) == []
