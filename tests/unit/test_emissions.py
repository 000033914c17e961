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
)
def test_it_is_the_record_as_it_is_written(
    stream: StreamRef,
    tenant: int,
    version: int,
    timestamp: int,
    document: bytes,
    place: tuple[int, list[int]],
) -> None:
    """Byte for byte, whatever names and documents hold."""
    offset, hops = place
    record = EmittedRecord(
        *stream, tenant, version, timestamp, msgspec.Raw(document), (offset, len(hops), *hops)
    )

    found = placed(head(stream, tenant, version), timestamp, document, offset, tuple(hops))

    assert found == emission(record) == (str(stream).encode(), write(record))
    assert read_emitted(found[1]) == record
