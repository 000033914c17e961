"""Files of updates are cut into batches of CSV that the API takes."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from command.remote.files import Batch, batches
from servioticy.client.batches import MAX_BYTES, MAX_ITEMS
from servioticy.errors import ServioticyError


def rows(batch: Batch) -> list[list[str]]:
    return list(csv.reader(io.StringIO(batch.content.decode(), newline="")))


def test_a_csv_file_goes_as_it_is(tmp_path: Path) -> None:
    """Quotes, commas and new lines in cells, and the mark at the beginning that Excel writes."""
    file = tmp_path / "a.csv"
    file.write_bytes('\ufefflastUpdate,t\r\n1,"a ""b"",\nc"\r\n\r\n2,é\r\n'.encode())

    [batch] = batches(file)
    assert rows(batch) == [["lastUpdate", "t"], ["1", 'a "b",\nc'], ["2", "é"]]
    assert (batch.rows, batch.read) == (2, file.stat().st_size)


def test_each_batch_has_the_names_and_no_more_rows_than_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("lastUpdate,t\n" + "".join(f"{at},1\n" for at in range(MAX_ITEMS + 5)))

    first, second = batches(file)
    assert (first.rows, second.rows) == (MAX_ITEMS, 5)
    assert rows(first)[0] == rows(second)[0] == ["lastUpdate", "t"]
    assert rows(second)[1] == [str(MAX_ITEMS), "1"]
    assert 0 < first.read <= second.read == file.stat().st_size


def test_no_batch_has_more_bytes_than_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("lastUpdate,t\n" + "".join(f"{at},{'x' * 90_000}\n" for at in range(30)))

    found = list(batches(file))
    assert sum(each.rows for each in found) == 30
    assert max(len(each.content) for each in found) <= MAX_BYTES


@pytest.mark.parametrize("content", [b"", b"lastUpdate,t\n", b"\n\n"])
def test_a_file_without_updates_has_no_batch(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    assert list(batches(tmp_path / "a.csv")) == []


@pytest.mark.parametrize("content", [b'a,b\n1,"x', b"a\n\xff\n", b"PAR1 and nothing", b"PAR1"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)

    with pytest.raises(ServioticyError, match=r"a\.csv cannot be read"):
        list(batches(tmp_path / "a.csv"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServioticyError, match=r"nowhere\.csv cannot be read"):
        list(batches(tmp_path / "nowhere.csv"))


def of_parquet(tmp_path: Path, columns: dict[str, Any]) -> list[Batch]:
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    return list(batches(tmp_path / "a.parquet"))


def test_a_parquet_file_has_the_values_as_cells(tmp_path: Path) -> None:
    """Text as it is, no value empty, all else as in JSON; a date in milliseconds of UTC."""
    at = datetime(2014, 6, 3, 18, 22, 5, tzinfo=UTC)
    [batch] = of_parquet(
        tmp_path,
        {
            "lastUpdate": pyarrow.array([at.replace(tzinfo=None), at.replace(tzinfo=None)]),
            "n": [1.5, None],
            "i": [2**60, -1],
            "b": [True, None],
            "s": ["a,b", ""],
            "l": [[1, 2], None],
        },
    )

    assert rows(batch) == [
        ["lastUpdate", "n", "i", "b", "s", "l"],
        ["1401819725000", "1.5", str(2**60), "true", "a,b", "[1, 2]"],
        ["1401819725000", "", "-1", "", "", ""],
    ]


def test_a_large_parquet_file_comes_in_batches(tmp_path: Path) -> None:
    count = 2 * MAX_ITEMS + 1
    found = of_parquet(tmp_path, {"lastUpdate": range(count), "t": [0.0] * count})

    assert [each.rows for each in found] == [MAX_ITEMS, MAX_ITEMS, 1]
    assert found[-1].read == (tmp_path / "a.parquet").stat().st_size
    assert found[0].read < found[-1].read


def test_a_value_that_is_nothing_of_ours_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServioticyError, match="a value is a bytes"):
        of_parquet(tmp_path, {"lastUpdate": [1], "t": [b"x"]})
