"""Folders as archives: what comes out is what went in, and nothing leaves its folder."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from operators import archives
from operators.archives import MAX_FILES, MAX_UNPACKED_BYTES, File, digest, pack, unpack
from operators.errors import NotAnOperator


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a member of a tar file."""
    made = tarfile.TarInfo(name)
    made.size, made.type = len(content), kind
    made.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    return made.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % 512)


def an_archive(*members: bytes) -> bytes:
    """Return an archive of these."""
    return gzip.compress(b"".join(members) + bytes(1024))


def test_a_folder_comes_out_as_it_went_in(tmp_path: Path) -> None:
    """Names, contents, what is executable; not what is hidden, nor what Python leaves."""
    (tmp_path / "lib/deep").mkdir(parents=True)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/main.pyc").write_bytes(b"x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_bytes(b"x")
    (tmp_path / "main.py").write_bytes(b"print()")
    (tmp_path / "lib/deep/größe").write_bytes(b"")
    (tmp_path / "run").write_bytes(b"\0\1")
    (tmp_path / "run").chmod(0o755)

    assert unpack(pack(tmp_path)) == {
        "main.py": File(b"print()", False),
        "lib/deep/größe": File(b"", False),
        "run": File(b"\0\1", True),
    }
    assert pack(tmp_path) == pack(tmp_path)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_others_are_read(form: int) -> None:
    """As `tar czf - .` writes them."""
    name = "./" + "/".join(["a" * 40] * 4) if form == tarfile.GNU_FORMAT else "./main.py"
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", format=form) as archive:
        folder = tarfile.TarInfo("./")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        file = tarfile.TarInfo(name)
        file.size, file.mtime = 3, 1.5
        archive.addfile(file, io.BytesIO(b"abc"))

    assert unpack(made.getvalue()) == {name.removeprefix("./"): File(b"abc", False)}


@pytest.mark.parametrize(
    "name",
    [
        *("../a", "a/../../b", "/etc/passwd", "a//b", "a/./b", "a\nb", "", ".."),
        *("b" * 201, "/".join("a" * 17)),
    ],
)
def test_a_name_that_leaves_the_folder_is_refused(name: str) -> None:
    """Or one that nobody could read."""
    with pytest.raises(NotAnOperator):
        unpack(an_archive(member(name, b"x")))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, b"S", b"?"]
)
def test_links_and_devices_are_refused(kind: bytes) -> None:
    """They could name what is not the tenant's."""
    with pytest.raises(NotAnOperator, match="a link or a device"):
        unpack(an_archive(member("a", kind=kind)))


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo])
def test_a_folder_with_a_link_is_not_packed(tmp_path: Path, make: object) -> None:
    """What it names might be a secret of who pushes."""
    make(tmp_path / "secret")  # type: ignore[operator]
    with pytest.raises(NotAnOperator, match="secret: a link or a device"):
        pack(tmp_path)


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    """Nor is what is in it packed."""
    (tmp_path / "etc").symlink_to("/etc")
    with pytest.raises(NotAnOperator, match="etc: a link or a device"):
        pack(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        gzip.compress(b"a" * 600),
        an_archive(member("a", b"x"))[:-20],
        gzip.compress(member("a", b"x" * 2000)[:1000]),
        an_archive(member("a"), member("a")),
        an_archive(member("a"), member("a/b")),
        an_archive(member("a").replace(b"00000000000", b"0000000009x")),
        an_archive(*(member(f"{each}") for each in range(MAX_FILES + 1))),
        gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)),
        bytes(archives.MAX_ARCHIVE_BYTES + 1),
    ],
    ids=range(11),
)
def test_what_is_no_archive_or_too_large_is_refused(content: bytes) -> None:
    """A bomb is not unpacked beyond its bound."""
    with pytest.raises(NotAnOperator):
        unpack(content)


def test_as_many_files_as_may_be_are_taken() -> None:
    """And as many bytes."""
    assert len(unpack(an_archive(*(member(f"{each}") for each in range(MAX_FILES))))) == MAX_FILES
    most = MAX_UNPACKED_BYTES - 512 - 1024
    assert len(unpack(an_archive(member("a", bytes(most))))["a"].content) == most


@given(some.binary(max_size=2000))
def test_anything_is_refused_or_read(content: bytes) -> None:
    """Whatever tar it claims to be."""
    for whole in (content, member("a", b"x") + content):
        try:
            unpack(gzip.compress(whole))
        except NotAnOperator as error:
            assert str(error)


def test_digests_differ_where_files_do() -> None:
    """By name, content and what is executable."""
    a = {"a": File(b"1", False)}
    others = [{"b": File(b"1", False)}, {"a": File(b"2", False)}, {"a": File(b"1", True)}, {}]

    assert len({digest(each) for each in [a, *others]}) == 5
    assert digest(a) == digest(dict(a))
