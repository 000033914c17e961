"""A history as a file: every update of the span, in each format, in pieces."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import orjson
import pyarrow as pa
import pytest
from api_builders import Caller, Served
from histories import store_documents
from pyarrow import parquet

from api.exports import columns
from api.resources import exports
from servioticy.errors import Unavailable
from servioticy.storage.history import PostgresHistory

CHANNELS = {
    "x": {"type": "number"},
    "on": {"type": "boolean"},
    "t": {"type": "string"},
    "at": {"type": "geo_point"},
    "many": {"type": "array[number]"},
}
DOCUMENT = {"streams": {"a": {"channels": CHANNELS}}}
VALUES: list[dict[str, Any]] = [
    {"x": 1, "on": True, "t": 'a "quoted", one\nand another', "at": "41.4,2.1", "many": [1, 2]},
    {"x": -2.5, "at": [2.1, 41.4]},
    {"t": "1"},
    {"x": 9007199254740993, "on": False},
]
STORED = [
    orjson.dumps({"channels": {k: {"current-value": v} for k, v in each.items()}, "lastUpdate": n})
    for n, each in enumerate(VALUES)
]
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture
def so(served: Served, alice: Caller) -> str:
    found = alice.create(DOCUMENT)
    store_documents(served, found, STORED)
    return found


@pytest.fixture(params=[2, 1_000], ids=["pages", "page"])
def page_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the pages are, the file is the same."""
    monkeypatch.setattr(exports, "PAGE_ROWS", request.param)
    monkeypatch.setattr(columns, "GROUP_ROWS", 1)


def export(caller: Caller, so: str, query: str = "", **headers: str) -> bytes:
    answer = caller.ask("GET", f"/{so}/streams/a/export?{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.data


@pytest.mark.usefixtures("page_rows")
def test_lines_are_the_updates_as_they_are_stored(alice: Caller, so: str) -> None:
    assert export(alice, so, "format=ndjson") == b"".join(each + b"\n" for each in STORED)
    assert export(alice, so, "format=ndjson&from=1&to=2") == STORED[1] + b"\n" + STORED[2] + b"\n"


@pytest.mark.usefixtures("page_rows")
def test_csv_is_taken_back_as_a_batch(served: Served, alice: Caller, so: str) -> None:
    """Import and export know the same form."""
    text = export(alice, so, "format=csv")

    assert text.splitlines()[0] == b"lastUpdate,x,on,t,at,many,/more"
    other = alice.create(DOCUMENT)
    headers = {"Content-Type": "text/csv"}
    answer = alice.ask("POST", f"/{other}/streams/a/updates", data=text, headers=headers)
    assert answer.get_json() == {"accepted": 4, "refused": 0}
    served.store()
    assert export(alice, other, "format=ndjson") == b"".join(each + b"\n" for each in STORED)


@pytest.mark.usefixtures("page_rows")
@pytest.mark.parametrize("name", ["arrow", "parquet"])
def test_columns_have_the_types_of_the_channels(name: str, alice: Caller, so: str) -> None:
    """What is neither number, boolean nor text is told as JSON."""
    content = io.BytesIO(export(alice, so, f"format={name}"))

    table = (
        pa.ipc.open_stream(content).read_all() if name == "arrow" else parquet.read_table(content)
    )
    text = pa.string()
    assert table.schema.types == [pa.int64(), pa.float64(), pa.bool_(), text, text, text, text]
    assert table.column_names == ["lastUpdate", *CHANNELS, "/more"]
    assert table["lastUpdate"].to_pylist() == [0, 1, 2, 3]
    assert table["x"].to_pylist() == [1.0, -2.5, None, 9007199254740992.0]
    assert table["on"].to_pylist() == [True, None, None, False]
    assert table["t"].to_pylist() == [VALUES[0]["t"], None, "1", None]
    assert table["at"].to_pylist() == ["41.4,2.1", "[2.1,41.4]", None, None]
    assert table["many"].to_pylist() == ["[1,2]", None, None, None]


def test_what_was_of_another_type_is_left_out_of_columns(served: Served, alice: Caller) -> None:
    so = alice.create(DOCUMENT)
    odd = [b'{"channels":{"x":{"current-value":"1"},"on":{"current-value":1},"t":7}}', b"{}"]
    store_documents(served, so, odd)

    table = pa.ipc.open_stream(export(alice, so, "format=arrow")).read_all()

    assert [table[name].to_pylist() for name in ("x", "on", "t")] == [[None, None]] * 3


@pytest.mark.parametrize("name", ["csv", "ndjson", "arrow", "parquet"])
def test_an_export_of_nothing_is_a_whole_file(name: str, alice: Caller) -> None:
    content = export(alice, alice.create(DOCUMENT), f"format={name}")

    if name == "csv":
        assert content == b"lastUpdate,x,on,t,at,many,/more\r\n"
    elif name == "ndjson":
        assert content == b""
    else:
        source = io.BytesIO(content)
        read = pa.ipc.open_stream(source).read_all if name == "arrow" else None
        table = read() if read else parquet.read_table(source)
        assert table.num_rows == 0


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("text/csv", "text/csv"),
        ("application/json;q=0.1, text/*", "text/csv"),
        ("*/*", "application/x-ndjson"),
        (PARQUET, PARQUET),
        (f"text/csv;q=0.5, {ARROW}", ARROW),
    ],
)
def test_the_format_may_be_named_by_accept(
    accept: str, content_type: str, alice: Caller, so: str
) -> None:
    headers = {"Accept": accept}
    answer = alice.ask("GET", f"/{so}/streams/a/export", headers=headers)
    named = alice.ask("GET", f"/{so}/streams/a/export?format=ndjson", headers=headers)

    assert answer.headers["Content-Type"] == content_type
    assert named.headers["Content-Type"] == "application/x-ndjson"


@pytest.mark.parametrize("accept", ["application/xml", "nonsense", "text/html, image/*"])
def test_no_other_format_is_made(accept: str, alice: Caller, so: str) -> None:
    answers = [
        alice.ask("GET", f"/{so}/streams/a/export", headers={"Accept": accept}),
        alice.ask("GET", f"/{so}/streams/a/export?format=xml"),
    ]

    assert [each.status_code for each in answers] == [406, 406]


@pytest.mark.parametrize("query", ["from=2&to=1", "from=-1", "to=x"])
def test_a_span_that_is_none_is_refused(query: str, alice: Caller, so: str) -> None:
    assert alice.ask("GET", f"/{so}/streams/a/export?{query}").status_code == 400


def test_an_export_breaks_off_where_the_store_fails(
    alice: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file never looks like a whole one: the connection ends without the last chunk."""
    monkeypatch.setattr(exports, "PAGE_ROWS", 2)
    answer = alice.ask("GET", f"/{so}/streams/a/export?format=csv", buffered=False)
    pieces = iter(answer.response)
    first = next(pieces)

    def fail(*_arguments: object, **_more: object) -> None:
        raise Unavailable("Postgres does not answer")

    monkeypatch.setattr(PostgresHistory, "page", fail)

    assert first.count(b"\r\n") > 2
    with pytest.raises(Unavailable):
        next(pieces)


def test_an_export_that_cannot_begin_is_an_error(
    alice: Caller, so: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_more: object) -> None:
        raise Unavailable("Postgres does not answer")

    monkeypatch.setattr(PostgresHistory, "page", fail)

    assert alice.ask("GET", f"/{so}/streams/a/export").status_code == 503


@pytest.mark.parametrize("name", ["csv", "ndjson", "arrow", "parquet"])
def test_an_export_takes_no_more_memory_however_long_it_is(
    name: str, served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    so = alice.create(DOCUMENT)
    text = "y" * 1_000
    documents = [
        orjson.dumps({"channels": {"t": {"current-value": f"{n}{text}"}}, "lastUpdate": n})
        for n in range(3_000)
    ]
    store_documents(served, so, documents)
    monkeypatch.setattr(exports, "PAGE_BYTES", 16_384)
    monkeypatch.setattr(columns, "GROUP_BYTES", 65_536)
    answer = alice.ask("GET", f"/{so}/streams/a/export?format={name}", buffered=False)
    pieces = iter(answer.response)
    next(pieces)

    tracemalloc.start()
    try:
        whole = sum(map(len, pieces))
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 600_000
    assert name == "parquet" or whole > 2_500_000


def test_only_what_is_public_is_exported_to_others(alice: Caller, bob: Caller) -> None:
    private, public = alice.create(DOCUMENT), alice.create(DOCUMENT | {"public": True})

    answers = [bob.ask("GET", f"/{so}/streams/a/export") for so in (private, public, "none")]

    assert [each.status_code for each in answers] == [401, 200, 404]
