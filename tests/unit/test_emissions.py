"""What is put together for subscribers is what would be written."""

from __future__ import annotations

import msgspec
import orjson
from hypothesis import given
from hypothesis import strategies as some

from servioticy.domain.emissions import emission, head, placed
from servioticy.domain.model import StreamRef
from servioticy.domain.records import EmittedRecord, read_emitted, write

NAMES = some.text(some.characters(exclude_categories=["Cs"]))
NUMBERS = some.integers(-(2**63), 2**63 - 1)
DOCUMENTS = some.dictionaries(NAMES, NAMES | some.integers(0, 9)).map(orjson.dumps)


@given(
    stream=some.builds(StreamRef, NAMES, NAMES),
    tenant=some.integers(1, 2**63 - 1),
    version=some.integers(0, 2**31 - 1),
    timestamp=NUMBERS,
    document=DOCUMENTS,
    place=some.tuples(NUMBERS, some.lists(some.integers(0, 2000))),
    trace=some.sampled_from(["", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"]),
)
def test_it_is_the_record_as_it_is_written(
    stream: StreamRef,
    tenant: int,
    version: int,
    timestamp: int,
    document: bytes,
    place: tuple[int, list[int]],
    trace: str,
) -> None:
    """Byte for byte, whatever names and documents hold."""
    offset, hops = place
    whole = (offset, len(hops), *hops)
    record = EmittedRecord(
        *stream, tenant, version, timestamp, msgspec.Raw(document), whole, trace
    )

    found = placed(head(stream, tenant, version), timestamp, document, offset, tuple(hops), trace)

    assert found == emission(record) == (str(stream).encode(), write(record))
    assert read_emitted(found[1]) == record
