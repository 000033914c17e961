"""Documents that take long are read in a process beside, and not for ever."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import orjson
import pytest

from api.definitions import AT_ONCE, Definitions
from api.reading import COMMAND, Reader, TookTooLong
from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.limits import MAX_STEPS, Laborious, Meter
from servioticy.errors import Unavailable
from servioticy.memory import MemoryPlatform
from servioticy.tools.bench import worst_documents

SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
NEVER_ANSWERS = (sys.executable, "-c", "import time; time.sleep(600)")
ENDS = (sys.executable, "-c", "")


@pytest.fixture
def reader() -> Iterator[Reader]:
    reader = Reader(60)
    yield reader
    reader.close()


def definitions(*readers: Reader) -> Definitions:
    left = list(readers)
    catalog = MemoryPlatform(1).catalog
    return Definitions(catalog, argument_names, readers=lambda: left.pop(0))


def test_it_reads_as_one_would_here(reader: Reader) -> None:
    document = worst_documents.everything(50_000)
    there, here = Meter(), Meter()
    found = reader.read(orjson.loads(orjson.dumps(document)), "so", there)

    assert found == parse_service_object(document, "so", argument_names, here)
    assert there.counts == here.counts
    assert there.share(0) == pytest.approx(here.share(0))


def test_what_is_wrong_is_told_as_it_would_be_here(reader: Reader) -> None:
    with pytest.raises(BadDocument, match="group g without soIds or stream") as refused:
        reader.read(SIMPLE | {"groups": {"g": {}}}, "so", Meter())

    assert (refused.value.code, refused.value.pointer) == ("incomplete-group", "/groups/g")


def test_a_fault_of_ours_ends_neither_process(reader: Reader) -> None:
    """It is the request's that met it."""
    with pytest.raises(RuntimeError, match="AttributeError"):
        reader.read([], "so", Meter())  # type: ignore[arg-type]

    assert reader.read(SIMPLE, "so", Meter()).id == "so"


def test_what_is_quickly_read_is_read_at_once() -> None:
    """No process is started for it: these could not answer."""
    found = definitions(Reader(60, ENDS), Reader(60, ENDS))

    assert found.parsed(worst_documents.sentences(10_000), "so").id == "so"


def test_the_border_is_what_a_reading_takes() -> None:
    meter = Meter(AT_ONCE)
    meter.count(MAX_STEPS, int(AT_ONCE * MAX_STEPS.most))
    with pytest.raises(Laborious):
        meter.count(MAX_STEPS, 1)


def test_what_takes_long_is_read_beside(reader: Reader) -> None:
    found = definitions(reader, Reader(60, ENDS))

    assert len(found.parsed(worst_documents.steps(100_000), "so").streams) > 1
    with pytest.raises(Unavailable, match="the reader of documents ended"):
        found.understood("so", 1, orjson.dumps(worst_documents.steps(100_000)))


def test_a_document_that_takes_too_long_is_refused_and_the_next_is_read() -> None:
    """What nobody has thought of yet holds neither a thread nor a core for ever."""
    stuck = Reader(0.2, NEVER_ANSWERS)
    found = definitions(stuck, Reader(0.2, NEVER_ANSWERS))
    large = worst_documents.everything(400_000)
    with pytest.raises(BadDocument, match="takes too long to understand") as refused:
        found.parsed(large, "so")
    assert refused.value.code == "too-slow"
    with pytest.raises(TookTooLong):
        found.understood("so", 1, orjson.dumps(large))

    assert stuck._process is None
    stuck._command, stuck._seconds = COMMAND, 60
    assert found.parsed(large, "so").id == "so"
    stuck.close()


def test_the_process_ends_with_those_who_ask(reader: Reader) -> None:
    """Also where they are killed: its end of the socket closes."""
    reader.read(SIMPLE, "so", Meter())
    assert reader._process is not None
    reader._process._connection.close()

    assert reader._process._process.wait(30) == 0
