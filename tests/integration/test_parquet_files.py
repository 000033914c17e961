"""Parquet as a source: rows by portions, in a process apart that may end."""

from __future__ import annotations

import datetime
import decimal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet

from functions.files import columns as files
from functions.files import columns_process
from functions.files.columns import Columns
from functions.files.columns_process import Reader
from functions.files.records import BadFile
from functions.files.spool import Spool
from functions.files.store import StillCopied, StoreAway, TakesTooMuch
from servioticy.ports.atoms import Seen
from servioticy.turns import Turns


class Store:
    """Has one file, and says how often it was read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.file = Seen("a", "1", len(content))
        self.reads = 0

    def read(self, _file: Seen, start: int, length: int) -> bytes:
        self.reads += 1
        return self.content[start : start + length]

    def page(self, prefix: str, after: str) -> Any:
        raise NotImplementedError


def written(rows: list[dict[str, Any]], tmp_path: Path, group: int = 100) -> Store:
    path = tmp_path / "written.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return Store(path.read_bytes())


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Columns]:
    found = Columns(Spool(tmp_path_factory.mktemp("copies")))
    yield found
    found.close()


def all_rows(columns: Columns, store: Store, whose: str, most: int = 70) -> list[Any]:
    found: list[Any] = []
    at: int | None = 0
    while at is not None:
        portion = columns.rows(store, store.file, whose, at, most)
        found += map(orjson.loads, portion.atoms)
        at = portion.at
    return found


def test_rows_come_by_portions_over_all_groups(columns: Columns, tmp_path: Path) -> None:
    """And the file is copied once, and its copy goes with the last of them."""
    rows = [{"n": n, "t": f"row {n}"} for n in range(350)]
    store = written(rows, tmp_path)

    assert all_rows(columns, store, "w") == rows
    assert store.reads == 1
    assert columns._copies == {}


def test_whoever_goes_on_elsewhere_has_the_same_rows(columns: Columns, tmp_path: Path) -> None:
    rows = [{"n": n} for n in range(350)]
    store = written(rows, tmp_path)

    found = columns.rows(store, store.file, "x", 170, 100)

    assert [orjson.loads(each)["n"] for each in found.atoms] == list(range(170, 270))
    assert found.at == 270


def test_what_json_has_not_is_text(columns: Columns, tmp_path: Path) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    rows = [{"at": at, "d": decimal.Decimal("1.50"), "b": b"\xff", "l": [1], "o": {"x": None}}]
    store = written(rows, tmp_path)

    (row,) = all_rows(columns, store, "y")

    assert row == {
        "at": "2026-01-02T03:04:05+00:00",
        "d": "1.50",
        "b": "/w==",
        "l": [1],
        "o": {"x": None},
    }


def test_a_row_that_is_too_large_is_no_atom(columns: Columns, tmp_path: Path) -> None:
    store = written([{"t": "a"}, {"t": "x" * 40_000}, {"t": "b"}], tmp_path)

    found = columns.rows(store, store.file, "z", 0)

    assert [orjson.loads(each)["t"] for each in found.atoms] == ["a", "b"]
    assert [(each.at, each.reason) for each in found.bad] == [
        (1, "an atom has at most 32768 bytes")
    ]


def test_of_a_row_that_is_too_large_nothing_leaves_the_process_that_reads(tmp_path: Path) -> None:
    """To the byte; and the portion is over where it alone is as much as one may be."""
    longest = len(orjson.dumps({"t": "x" * 100}))
    store = written([{"t": "x" * size} for size in (100, 101, 500, 1)], tmp_path)
    path = tmp_path / "written.parquet"
    assert path.stat().st_size == store.file.size
    asked = {"file": str(path), "at": 0, "most": 9, "bytes": 600, "longest": longest}

    about, *lines = Reader().answer(orjson.dumps(asked)).split(b"\n")

    assert orjson.loads(about)["next"] == 3
    assert [len(each) for each in lines] == [longest, 0, 0]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"x" * 5_000])
def test_what_is_no_parquet_is_told_and_others_are_read(
    columns: Columns, tmp_path: Path, content: bytes
) -> None:
    store = Store(content)

    with pytest.raises(BadFile, match="no Parquet"):
        columns.rows(store, store.file, "w", 0)
    assert len(all_rows(columns, written([{"n": 1}], tmp_path), "w2")) == 1


def test_a_process_that_ends_over_a_file_is_begun_again_for_others(
    columns: Columns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And for that one some times: perhaps it was the machine, and not the file."""
    store = written([{"n": 1}], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(columns._process, "command", ("false",))
        columns._process.stop()
        with pytest.raises(TakesTooMuch, match="takes too much"):
            columns.rows(store, store.file, "w3", 0)

    assert len(all_rows(columns, store, "w3")) == 1


def test_a_file_has_so_many_bytes_and_copies_so_many_together(
    tmp_path: Path, columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = written([{"n": 1}, {"n": 2}], tmp_path)
    own = Columns(Spool(tmp_path / "few"), most=store.file.size)
    for whose in ("a", "b"):
        own.rows(store, store.file, whose, 0, 1)
    (copies,) = (tmp_path / "few").iterdir()
    assert len(list(copies.iterdir())) == 1
    own.close()
    assert list((tmp_path / "few").iterdir()) == []

    monkeypatch.setattr(files, "MAX_FILE_BYTES", store.file.size)
    assert len(all_rows(columns, store, "w4")) == 2
    monkeypatch.setattr(files, "MAX_FILE_BYTES", store.file.size - 1)
    with pytest.raises(BadFile, match="at most"):
        columns.rows(store, store.file, "w5", 0)


def test_rows_before_a_part_that_cannot_be_read_come(columns: Columns, tmp_path: Path) -> None:
    """And the portion after them says what is wrong."""
    path = tmp_path / "broken.parquet"
    rows = [{"n": f"{n:08}"} for n in range(300)]
    parquet.write_table(pa.Table.from_pylist(rows), path, 100, compression="none")
    place = parquet.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 60] = b"\xff" * 60
    store = Store(bytes(content))

    found = columns.rows(store, store.file, "v", 0)

    assert [orjson.loads(each) for each in found.atoms] == rows[:100]
    assert found.at == 100
    with pytest.raises(BadFile, match="no Parquet"):
        columns.rows(store, store.file, "v", 100)


def test_copies_that_are_being_made_count(tmp_path: Path) -> None:
    """However many instances begin together: who finds no room comes again later."""
    store = written([{"n": 1}, {"n": 2}], tmp_path)
    spool = Spool(tmp_path / "copies")
    copies = spool.folder()
    own = Columns(spool, most=2 * store.file.size - 1)

    class Meanwhile(Store):
        """Another one begins while it is read."""

        def read(self, file: Seen, start: int, length: int) -> bytes:
            with pytest.raises(StoreAway, match="copied"):
                own.rows(store, store.file, "other", 0, 1)
            return super().read(file, start, length)

    assert own.rows(Meanwhile(store.content), store.file, "one", 0, 1).at == 1
    assert store.reads == 0
    assert own.rows(store, store.file, "other", 0, 1).at == 1
    with pytest.raises(StoreAway, match="less"):
        own.rows(Store(b""), store.file, "third", 0, 1)
    copies.rename(tmp_path / "moved")
    with pytest.raises(StoreAway, match="cannot be copied"):
        own.rows(store, store.file, "third", 0, 1)
    (tmp_path / "moved").rename(copies)
    assert own.rows(store, store.file, "third", 0, 1).at == 1
    assert len(list(copies.iterdir())) == 1
    own.close()


def test_a_tenants_own_copies_go_before_others(tmp_path: Path) -> None:
    """Though they are newer: who has many files does not take the room of who has one."""
    store = written([{"n": 1}, {"n": 2}], tmp_path)
    own = Columns(Spool(tmp_path / "copies"), most=2 * store.file.size)
    for whose, name in (("one", "a"), ("many", "a"), ("many", "b"), ("many", "c")):
        own.rows(store, store.file, whose, 0, 1, name)

    assert [key[:2] for key in own._copies] == [("one", "a"), ("many", "c")]
    own.close()


def test_several_files_go_on_each_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read in turn none is begun anew, and none is gone through to where it had come."""
    opened: list[str] = []
    real = parquet.ParquetFile

    def noted(path: str, *others: Any, **more: Any) -> Any:
        opened.append(path)
        return real(path, *others, **more)

    monkeypatch.setattr(columns_process.parquet, "ParquetFile", noted)
    paths = []
    for name in ("a", "b", "c"):
        paths.append(str(tmp_path / name))
        rows = [{"n": f"{name}{n}"} for n in range(500)]
        parquet.write_table(pa.Table.from_pylist(rows), paths[-1], 200)
    reader, found, at = Reader(), dict[str, list[str]](), dict.fromkeys(paths, 0)
    for _ in range(9):
        for path in paths:
            asked = {"file": path, "at": at[path], "most": 60, "bytes": 10**6, "longest": 10**4}
            about, *lines = reader.answer(orjson.dumps(asked)).split(b"\n")
            found.setdefault(path, []).extend(orjson.loads(each)["n"] for each in lines)
            at[path] = orjson.loads(about)["next"]

    assert {path[-1]: rows for path, rows in found.items()} == {
        name: [f"{name}{n}" for n in range(500)] for name in ("a", "b", "c")
    }
    assert opened == paths
    assert reader._open == {}


def test_places_that_are_gone_on_from_are_few_and_those_of_copies_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is not among them goes on exactly all the same."""
    monkeypatch.setattr(columns_process, "MOST_OPEN", 2)
    reader = Reader()
    for name in ("a", "b", "c"):
        parquet.write_table(pa.Table.from_pylist([{"n": n} for n in range(9)]), tmp_path / name)

    def read(name: str, at: int) -> list[int]:
        asked = {"file": str(tmp_path / name), "at": at, "most": 3, "bytes": 999, "longest": 99}
        _, *lines = reader.answer(orjson.dumps(asked)).split(b"\n")
        return [orjson.loads(each)["n"] for each in lines]

    for name in ("a", "b", "c"):
        assert read(name, 0) == [0, 1, 2]
    assert [Path(path).name for path, _ in reader._open] == ["b", "c"]
    assert read("a", 3) == [3, 4, 5]
    (tmp_path / "a").unlink()

    assert read("c", 3) == [3, 4, 5]
    assert [Path(path).name for path, _ in reader._open] == ["c"]


def test_what_others_have_open_is_let_go_where_memory_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is told to be none because of what was read of others."""
    path = tmp_path / "a"
    parquet.write_table(pa.Table.from_pylist([{"n": n} for n in range(9)]), path)
    reader = Reader()
    asked = {"file": str(path), "at": 0, "most": 3, "bytes": 999, "longest": 99}
    reader.answer(orjson.dumps(asked))
    real = parquet.ParquetFile

    def missing(*given: Any, **more: Any) -> Any:
        if reader._open:
            raise MemoryError
        return real(*given, **more)

    monkeypatch.setattr(columns_process.parquet, "ParquetFile", missing)
    about, *lines = reader.answer(orjson.dumps({**asked, "at": 5})).split(b"\n")

    assert orjson.loads(about)["next"] == 8
    assert [orjson.loads(each)["n"] for each in lines] == [5, 6, 7]


def test_a_process_that_dies_in_the_middle_goes_on_exactly(
    columns: Columns, tmp_path: Path
) -> None:
    """In the middle of a row group of each of two files that are cut in turn."""
    stores = {}
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        stores[name] = written([{"n": f"{name}{n}"} for n in range(250)], folder, 100)
    found: dict[str, list[str]] = {name: [] for name in stores}
    at: dict[str, int | None] = dict.fromkeys(stores, 0)
    for turn in range(4):
        for name, store in stores.items():
            portion = columns.rows(store, store.file, f"dies {name}", at[name] or 0, 70)
            found[name] += [orjson.loads(each)["n"] for each in portion.atoms]
            at[name] = portion.at
            if turn == 1:
                columns._process.stop()

    assert found == {name: [f"{name}{n}" for n in range(250)] for name in stores}
    assert at == {"a": None, "b": None}


def test_a_file_is_copied_a_while_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt is short, and the next one goes on; what nobody goes on with makes room."""
    rows = [{"n": n, "t": "x" * 100} for n in range(300)]
    store = written(rows, tmp_path)
    monkeypatch.setattr(files, "COPY_SECONDS", 0.0)
    monkeypatch.setattr(files, "PART", store.file.size // 3 + 1)
    own = Columns(Spool(tmp_path / "copies"), most=store.file.size)
    for reads in (1, 2):
        with pytest.raises(StillCopied):
            own.rows(store, store.file, "a", 0)
        assert store.reads == reads
    with pytest.raises(StoreAway, match="copied"):
        own.rows(store, store.file, "b", 0)

    found = own.rows(store, store.file, "a", 0)

    assert [orjson.loads(each) for each in found.atoms] == rows
    assert store.reads == 3
    with pytest.raises(StillCopied):
        own.rows(store, store.file, "c", 0)
    monkeypatch.setattr(files, "PARTIAL_SECONDS", -1.0)
    with pytest.raises(StillCopied):
        own.rows(store, store.file, "c", 0)
    with pytest.raises(StillCopied):
        own.rows(store, store.file, "d", 0)
    assert [key[0] for key in own._partial] == ["d"]
    own.close()


def test_a_tenant_has_half_of_the_room_for_copies_beside_its_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has begun is kept for minutes, and another one's file has a place beside it."""
    monkeypatch.setattr(files, "COPY_SECONDS", 0.0)
    monkeypatch.setattr(files, "PART", 1)
    own = Columns(Spool(tmp_path / "copies"), most=100)

    def begin(whose: str, key: str, size: int) -> None:
        own.rows(Store(b"x" * size), Seen(key, "1", size), whose, 0)

    with pytest.raises(StillCopied):
        begin("many", "a", 60)
    with pytest.raises(StoreAway, match="copied"):
        begin("many", "b", 40)
    with pytest.raises(StillCopied):
        begin("one", "a", 40)
    own.close()


def test_waiting_for_a_turn_is_not_what_reading_took(
    columns: Columns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who does not get one may read later; who gets one late is charged from then on."""
    store = written([{"n": 1}], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(columns, "_turns", Turns(0.0))
        with columns._turns.turn("other"), pytest.raises(StoreAway, match="turn"):
            columns.rows(store, store.file, "waits", 0)
    turn = columns._turns.turn("other")
    turn.__enter__()
    ends = threading.Timer(1.0, lambda: turn.__exit__(None, None, None))
    with monkeypatch.context() as patch:
        patch.setattr(columns._process, "command", ("false",))
        columns._process.stop()
        began = time.monotonic()
        ends.start()
        with pytest.raises(TakesTooMuch) as told:
            columns.rows(store, store.file, "waits", 0)
        seconds = time.monotonic() - began

    assert 0 < told.value.seconds <= seconds - 0.9


def test_copies_of_who_was_killed_go_when_the_next_one_begins(tmp_path: Path) -> None:
    """And none of who lives."""
    dead, alive = tmp_path / "copies-dead", Spool(tmp_path)
    dead.mkdir()
    (dead / "1.parquet").write_bytes(b"x")
    own = alive.folder()
    (own / "1.parquet").write_bytes(b"y")

    other = Spool(tmp_path)
    assert other.folder() != own

    assert not dead.exists()
    assert (own / "1.parquet").exists()
    other.close()
    alive.close()
    assert list(tmp_path.iterdir()) == []


def test_what_the_reader_used_of_the_processor_is_told(columns: Columns, tmp_path: Path) -> None:
    rows = [{"n": n, "t": "x" * 300} for n in range(900)]
    store = written(rows, tmp_path)

    assert columns.rows(store, store.file, "used", 0).processor_us > 0
