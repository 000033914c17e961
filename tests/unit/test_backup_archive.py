"""The file of a back-up: what is written is read, and nothing else is."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from command import cli
from servioticy.backup.about import FORMAT, About, read
from servioticy.backup.archive import Archive, BadBackup, written
from servioticy.backup.framing import MOST, read_records, write_record
from servioticy.errors import ServioticyError
from servioticy.messaging.stretches import Record

ROWS = b"".join(b"%d\ttext %d\n" % (n, n * n) for n in range(3_000))
RECORDS = [
    Record(7, None, b'{"v":1}'),
    Record(8, b"so/a", b""),
    Record(9, b"", bytes(range(256)) * 40),
]
TABLE, UPDATES, EMITTED = "tables/things", "log/updates-0", "log/emitted-0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """One with a table, and a partition of each topic."""
    path = tmp_path / "file"
    with written(path) as archive:
        with archive.part(TABLE, ("a", "b")) as part:
            part.file.write(ROWS)
        for name in (UPDATES, EMITTED):
            with archive.part(name) as part:
                for each in RECORDS:
                    write_record(each, part.file)
                    part.count += 1
        archive.end(
            About(FORMAT, "now", "1", "18", "updates", "x", {}, {0: 7}, {}, tuple(archive.parts))
        )
    return path


def everything(file: Path) -> tuple[About, bytes, list[list[Record]]]:
    """All that can be read of it, once it was checked."""
    with Archive(file) as archive:
        archive.check()
        with archive.part(TABLE) as part:
            rows = part.read()
        records = []
        for name in (UPDATES, EMITTED):
            with archive.part(name) as part:
                records.append(list(read_records(part)))
        return archive.about, rows, records


def test_what_is_written_is_read(file: Path) -> None:
    about, rows, records = everything(file)

    assert rows == ROWS
    assert records == [RECORDS, RECORDS]
    assert {each.name: each.count for each in about.parts} == {
        TABLE: 3_000,
        UPDATES: 3,
        EMITTED: 3,
    }
    assert about.parts[0].columns == ("a", "b")
    assert about.progress == {0: 7}


def test_any_tool_shows_what_is_in_it(file: Path) -> None:
    with zipfile.ZipFile(file) as found:
        assert found.namelist() == [TABLE, UPDATES, EMITTED, "about.json"]
        assert read(found.read("about.json")).made_at == "now"
        assert found.testzip() is None


def test_nobody_else_may_read_it(file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_cut_off_is_refused(file: Path) -> None:
    """Wherever."""
    whole = file.read_bytes()
    for length in (0, 1, 100, *range(0, len(whole), 997), len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(BadBackup):
            everything(file)


def test_a_file_that_was_altered_is_refused_or_says_the_same(file: Path) -> None:
    """A zip has a few bytes that say nothing, such as dates: whatever is read is as written."""
    whole, expected = file.read_bytes(), everything(file)
    chance = random.Random(5)
    refused = 0
    places = [
        *range(120),
        *chance.sample(range(len(whole)), 400),
        *range(len(whole) - 300, len(whole)),
    ]
    for at in places:
        altered = bytearray(whole)
        altered[at] ^= 1 << chance.randrange(8)
        file.write_bytes(altered)
        try:
            assert everything(file) == expected, at
        except BadBackup:
            refused += 1

    assert refused > len(places) // 2


def test_parts_that_were_exchanged_are_refused(file: Path) -> None:
    """Each of them is whole by itself."""
    other = file.with_name("other")
    with zipfile.ZipFile(file) as found, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(TABLE, found.read(TABLE).replace(b"text 4\n", b"text 5\n"))
        for name in (UPDATES, EMITTED, "about.json"):
            made.writestr(name, found.read(name))

    with pytest.raises(BadBackup, match="not as it was written"):
        everything(other)


@pytest.mark.parametrize("change", ["left out", "more", "twice"])
def test_other_parts_than_it_says_are_refused(file: Path, change: str) -> None:
    other = file.with_name("other")
    with zipfile.ZipFile(file) as found, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as made:
        for name in found.namelist():
            if change != "left out" or name != EMITTED:
                made.writestr(name, found.read(name))
        if change == "more":
            made.writestr("tables/more", b"")
        if change == "twice":
            with pytest.warns(UserWarning):
                made.writestr(TABLE, ROWS)

    with pytest.raises(BadBackup, match="other parts"):
        everything(other)


def test_another_format_is_told(file: Path) -> None:
    def about(text: bytes) -> Path:
        other = file.with_name("other")
        with zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as made:
            made.writestr("about.json", text)
        return other

    for text, said in (
        (b'{"servioticy_backup": 2}', "format 2, this release reads format 1"),
        (b"{}", "does not say of itself"),
        (b"not JSON", "does not say of itself"),
        (b'{"servioticy_backup": 1}', "about.json"),
    ):
        with pytest.raises(BadBackup, match=said):
            Archive(about(text))


def test_what_is_no_file_of_ours_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04", b"some text", bytes(100_000)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(BadBackup, match="no whole back-up"):
            Archive(tmp_path / "file")
    with pytest.raises(BadBackup, match="there is no file"):
        Archive(tmp_path / "none")


@pytest.mark.parametrize("how", ["cut off", "altered"])
def test_a_restore_of_a_damaged_file_begins_with_nothing(
    file: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server is started, no folder made."""
    for name in ("SERVIOTICY_DSN", "SERVIOTICY_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    whole, data = file.read_bytes(), file.with_name("data")
    at = whole.index(b"tables/things") + 500
    altered = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    file.write_bytes(whole[:-100] if how == "cut off" else altered)

    assert cli.main(["restore", str(file), "--data", str(data)]) == 1

    assert "is no whole back-up" in capsys.readouterr().err
    assert not data.exists()


def test_a_file_that_is_there_is_not_written_over(file: Path) -> None:
    before = file.read_bytes()

    with pytest.raises(ServioticyError, match="is there already"), written(file):
        pass

    assert file.read_bytes() == before


def test_what_fails_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), written(tmp_path / "file") as archive:
        with archive.part(TABLE, ("a",)) as part:
            part.file.write(ROWS)
        raise ZeroDivisionError

    assert list(tmp_path.iterdir()) == []


def test_what_was_killed_on_the_way_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / "file.partial").write_bytes(bytes(10_000))
    (tmp_path / "file.partial").chmod(0o644)

    with written(tmp_path / "file") as archive:
        archive.end(About(FORMAT, "", "", "", "", "", {}, {}, {}, ()))

    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    with Archive(tmp_path / "file") as found:
        found.check()


def test_two_do_not_write_one_file(tmp_path: Path) -> None:
    with written(tmp_path / "file") as archive:
        with pytest.raises(ServioticyError, match="another back-up"), written(tmp_path / "file"):
            pass
        archive.end(About(FORMAT, "", "", "", "", "", {}, {}, {}, ()))

    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_progress_is_told_in_bytes_of_all_parts(tmp_path: Path) -> None:
    told: list[tuple[int, str]] = []
    with written(tmp_path / "file", lambda done, what: told.append((done, what))) as archive:
        for name in ("tables/a", "tables/b"):
            with archive.part(name, ("x",)) as part:
                part.file.write(ROWS)
        archive.end(About(FORMAT, "", "", "", "", "", {}, {}, {}, ()))

    assert told[-1] == (2 * len(ROWS), "tables/b")
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    "broken",
    [
        lambda data: data[:-1],
        lambda data: data[:5],
        lambda data: data[:8] + b"\x7f" + data[9:],
        lambda data: data[:12] + b"\xff" + data[13:],
    ],
)
def test_records_that_are_none_are_refused(
    tmp_path: Path, broken: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "part"
    with path.open("wb") as file:
        for each in RECORDS[:2]:
            write_record(each, file)
    path.write_bytes(broken(path.read_bytes()))

    with path.open("rb") as file, pytest.raises(ValueError, match="a record is"):
        list(read_records(file))
    assert MOST > 2_000_000
