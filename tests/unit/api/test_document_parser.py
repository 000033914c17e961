"""Documents that take long are parsed in a separate process, in turn, and not for ever."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from benchmarks import worst_documents
from ingest.parsing.definitions import AT_ONCE, Definitions
from ingest.parsing.document_parser import COMMAND, DocumentParser, parsing_process
from sandbox.text import argument_names
from servioticy.apart.asking import OtherProcess, TookTooLong
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.limits import MAX_STEPS, Laborious, Meter
from servioticy.domain.model import Definition
from servioticy.errors import Unavailable

SECONDS = 60.0
"""The longest a test waits for what has to happen."""
SIMPLE = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
NEVER_ANSWERS = (sys.executable, "-c", "import time; time.sleep(600)")
ENDS = (sys.executable, "-c", "")


@pytest.fixture
def parser() -> Iterator[DocumentParser]:
    parser = DocumentParser(process=parsing_process(SECONDS))
    yield parser
    parser.close()


def ending() -> DocumentParser:
    """A parser whose process could not answer."""
    return DocumentParser(process=OtherProcess(ENDS, SECONDS, "the process that parses documents"))


def definitions(new: DocumentParser, stored: DocumentParser) -> Definitions:
    nothing_stored: Any = None
    return Definitions(nothing_stored, argument_names, new, stored)


def large(size: int = 100_000) -> dict[str, Any]:
    return worst_documents.steps(size)


def test_it_parses_as_one_would_here(parser: DocumentParser) -> None:
    document = worst_documents.everything(50_000)
    there, here = Meter(), Meter()
    found = parser.parse(orjson.loads(orjson.dumps(document)), "so", there)

    assert found == parse_service_object(document, "so", argument_names, here)
    assert there.counts == here.counts
    assert there.share(0) == pytest.approx(here.share(0))


def test_what_is_wrong_is_told_as_it_would_be_here(parser: DocumentParser) -> None:
    with pytest.raises(BadDocument, match="group g without soIds or stream") as refused:
        parser.parse(SIMPLE | {"groups": {"g": {}}}, "so", Meter())

    assert (refused.value.code, refused.value.pointer) == ("incomplete-group", "/groups/g")


def test_a_fault_of_ours_ends_neither_process(parser: DocumentParser) -> None:
    """It is the request's that met it."""
    with pytest.raises(RuntimeError, match="AttributeError"):
        parser.parse([], "so", Meter())  # type: ignore[arg-type]

    assert parser.parse(SIMPLE, "so", Meter()).id == "so"


def test_what_is_quickly_parsed_is_parsed_at_once() -> None:
    """No process is started for it."""
    found = definitions(ending(), ending())

    assert found.parsed(worst_documents.sentences(10_000), "so").id == "so"


def test_the_border_is_what_a_parsing_takes() -> None:
    meter = Meter(AT_ONCE)
    meter.count(MAX_STEPS, int(AT_ONCE * MAX_STEPS.most))
    with pytest.raises(Laborious):
        meter.count(MAX_STEPS, 1)


def test_what_takes_long_is_parsed_beside(parser: DocumentParser) -> None:
    found = definitions(parser, ending())

    assert len(found.parsed(large(), "so").streams) > 1
    with pytest.raises(Unavailable, match="the process that parses documents ended"):
        found.understood("so", 1, orjson.dumps(large()))


def test_a_document_that_takes_too_long_is_refused_and_the_next_is_parsed() -> None:
    """What nobody has thought of yet holds neither a thread nor a core for ever."""
    process = OtherProcess(NEVER_ANSWERS, 0.2, "the process that parses documents")
    stuck = DocumentParser(process=process)
    other = OtherProcess(NEVER_ANSWERS, 0.2, "the process that parses documents")
    found = definitions(stuck, DocumentParser(process=other))
    document = worst_documents.everything(400_000)
    with pytest.raises(BadDocument, match="takes too long to understand") as refused:
        found.parsed(document, "so")
    assert refused.value.code == "too-slow"
    with pytest.raises(TookTooLong):
        found.understood("so", 1, orjson.dumps(document))

    assert process._process is None
    process.command, process.seconds = COMMAND, SECONDS
    assert found.parsed(document, "so").id == "so"
    stuck.close()


class Gated(DocumentParser):
    """Parses here, when the test lets it."""

    def __init__(self, wait_seconds: float = SECONDS) -> None:
        super().__init__(lambda: threading.current_thread().name, wait_seconds=wait_seconds)
        self.gate = threading.Event()
        self.parsed: list[str] = []

    def parse(self, document: dict[str, Any], service_object: str, meter: Meter) -> Definition:
        self.parsed.append(service_object)
        assert self.gate.wait(SECONDS)
        return parse_service_object(document, service_object, argument_names, meter)

    def waiting(self) -> int:
        return sum(map(len, self._turns._waiting.values()))


def run(work: Callable[[], object], caller: str) -> threading.Thread:
    thread = threading.Thread(target=work, name=caller, daemon=True)
    thread.start()
    return thread


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_document_that_many_wait_for_is_parsed_once() -> None:
    """After a start all devices of an object come at once."""
    gated, document, answers = Gated(), orjson.dumps(large()), []
    found = definitions(ending(), gated)
    threads = [
        run(lambda: answers.append(found.understood("so", 1, document)), f"tenant {number % 2}")
        for number in range(6)
    ]
    until(lambda: gated.waiting() == 5)
    gated.gate.set()
    for each in threads:
        each.join(SECONDS)

    assert gated.parsed == ["so"]
    assert len(answers) == 6
    assert all(each is answers[0] for each in answers)


def named(name: str) -> bytes:
    """A large document that means something else than all others, as those that mean the same are
    understood together."""
    document = large()
    document["streams"][name.replace(" ", "")] = {"channels": {"x": {"type": "number"}}}
    return orjson.dumps(document)


def test_a_document_does_not_wait_for_another_one_for_ever() -> None:
    gated = Gated(wait_seconds=0.05)
    found = definitions(gated, gated)
    first = run(lambda: found.understood("first", 1, named("first")), "tenant")
    until(lambda: gated.parsed == ["first"])

    with pytest.raises(Unavailable, match="try again"):
        found.understood("second", 1, named("second"))
    with pytest.raises(Unavailable, match="try again"):
        found.parsed(large(), "third")
    gated.gate.set()
    first.join(SECONDS)
    assert found.understood("second", 1, named("second")).problem is None
    assert gated.parsed == ["first", "second"]


def test_who_has_many_large_documents_delays_another_by_one() -> None:
    """Else a tenant could hold all others off, request after request, until they give up."""
    gated = Gated()
    found = definitions(ending(), gated)
    threads = []
    for number, caller in enumerate(["greedy", "greedy", "greedy", "other"]):
        name = f"{caller} {number}"
        threads.append(run(lambda name=name: found.understood(name, 1, named(name)), caller))
        until(lambda number=number: len(gated.parsed) + gated.waiting() == number + 1)
    gated.gate.set()
    for each in threads:
        each.join(SECONDS)

    assert gated.parsed == ["greedy 0", "greedy 1", "other 3", "greedy 2"]
