"""Whatever an update says, an export in any format and an import of it give it back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from api.resources.exports import FORMATS
from command.remote import files
from servioticy.domain.batches import csv_rows, json_items
from servioticy.domain.batches.items import Item
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import Channel, Stream, StreamRef
from servioticy.ports.history import VersionedUpdate

ORIGIN = StreamRef("so", "s")
TYPES = {
    "x": "number",
    "on": "boolean",
    "t": "string",
    "at": "geo_point",
    "many": "array[string]",
    "lastUpdate": "string",
}
CHANNELS = [Channel(name, type_name) for name, type_name in TYPES.items()]
READER = UpdateReader(Stream(ORIGIN, tuple(CHANNELS)))

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = {
    "number": numbers,
    "boolean": st.booleans(),
    "string": texts,
    "geo_point": st.sampled_from(["41.4,2.1", [2.1, 41.4]]),
    "array[string]": st.lists(texts, max_size=3),
}
own = st.dictionaries(st.sampled_from(["unit", "Sensor 7", "é"]), texts | numbers, max_size=2)
channels = st.fixed_dictionaries(
    {},
    optional={
        name: st.builds(lambda value, more: {**more, "current-value": value}, VALUES[type_], own)
        for name, type_ in TYPES.items()
    },
).filter(bool)
updates = st.builds(lambda some, more: {**more, "channels": some}, channels, own)


def table(content: bytes, name: str, folder: Path) -> bytes:
    """The CSV that `servioticy import` sends of a file."""
    file = folder / "file"
    if name == "arrow":
        parquet.write_table(pa.ipc.open_stream(io.BytesIO(content)).read_all(), file)
    else:
        file.write_bytes(content)
    return b"".join(each.content for each in files.batches(file))


def taken_back(content: bytes, name: str, folder: Path) -> Iterator[dict[str, Any]]:
    found = (
        json_items.lines(content, ORIGIN)
        if name == "ndjson"
        else csv_rows.rows(table(content, name, folder), ORIGIN)
    )
    for each in found:
        assert isinstance(each, Item), each
        yield orjson.loads(each.read(READER).document)


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(sent=st.lists(updates, min_size=1, max_size=4))
def test_nothing_is_lost(name: str, sent: list[dict[str, Any]], tmp_path: Path) -> None:
    sent = [{**each, "lastUpdate": n} for n, each in enumerate(sent)]
    bodies = [READER.parse(orjson.dumps(each)).document for each in sent]
    stored = [VersionedUpdate(n, body, 1) for n, body in enumerate(bodies)]
    writer = FORMATS[name].make(CHANNELS)

    content = writer.page(stored) + writer.end()

    assert list(taken_back(content, name, tmp_path)) == sent


def test_an_edited_cell_is_what_is_imported() -> None:
    """The last column has what is beside the cells, and not the cells again."""
    stored = b'{"channels":{"x":{"current-value":1,"unit":"F"}},"lastUpdate":1}'
    writer = FORMATS["csv"].make(CHANNELS)
    text = (writer.page([VersionedUpdate(1, stored, 1)]) + writer.end()).replace(b"1,1,", b"1,7,")

    (item,) = csv_rows.rows(text, ORIGIN)

    assert isinstance(item, Item)
    assert orjson.loads(item.read(READER).document)["channels"]["x"] == {
        "current-value": 7,
        "unit": "F",
    }
