"""What one batch may hold in CSV and SenML, at each border and one beyond."""

from __future__ import annotations

import orjson
import pytest

from servioticy.domain.batches import csv_rows, senml
from servioticy.domain.batches.items import Item, Unreadable
from servioticy.domain.documents import BadDocument
from servioticy.domain.model import StreamRef

STREAM = StreamRef("so", "s")


def pack(*records: object) -> list[Item | Unreadable]:
    body = orjson.dumps(records)
    return list(senml.pack(body, STREAM, lambda: 1e9, milliseconds=True))


def test_a_csv_has_so_many_columns() -> None:
    names = [f"c{n}" for n in range(csv_rows.MAX_COLUMNS - 1)]
    body = ",".join(["lastUpdate", *names]).encode()

    assert list(csv_rows.rows(body, STREAM)) == []
    with pytest.raises(BadDocument, match="more than 1004 columns"):
        csv_rows.rows(body + b",more", STREAM)


def test_a_column_that_is_named_twice_is_refused() -> None:
    with pytest.raises(BadDocument, match="names b twice"):
        csv_rows.rows(b"lastUpdate,a,b,c,b", STREAM)


@pytest.mark.parametrize(("field", "most"), [("bn", 1_000), ("n", 1_000), ("bu", 200), ("u", 200)])
def test_names_and_units_of_senml_are_bounded(field: str, most: int) -> None:
    """A base name that is refused is none for the records after it."""
    record = {"n": "x", "v": 1}

    assert isinstance(pack(record | {field: "u" * most})[0], Item)
    beyond = pack(record | {field: "u" * (most + 1)})[0]
    assert isinstance(beyond, Unreadable)
    assert (beyond.error.pointer, beyond.error.code) == (f"/{field}", "too-much")


def test_a_base_is_paid_for_in_each_record() -> None:
    """What is sent once and stands in thousands of records is counted as often."""
    base, each = {"bn": "x" * 999, "bt": 1}, {"n": "a", "v": 1}
    most = senml.MAX_RESOLVED // 1_000

    assert len(pack(base, *[each] * most)) == most
    with pytest.raises(BadDocument, match="names and units"):
        pack(base, *[each] * (most + 1))
