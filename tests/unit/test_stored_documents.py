"""What becomes of documents that were accepted, whatever the rules are today."""

from __future__ import annotations

import gc
import logging
import tracemalloc
from typing import Any

import orjson
import pytest

from benchmarks import worst_documents
from sandbox.text import argument_names
from servioticy.domain.documents import Documents, parse_update
from servioticy.domain.documents.stored import memory, reading
from servioticy.domain.model import Channel
from servioticy.domain.values import ANY

ROOM = 10_000_000
STRICTER = {
    "version": "0.2.0",
    "public": "true",
    "groups": {"g": {"soIds": ["other"], "stream": "s"}, "gone": 5},
    "streams": {
        "b": {"channels": {"x": {"type": "number", "current-value": "function(unknown){}"}}},
        "a": {"channels": {"x": {"type": "numeric"}, "y": {}, "z": {"type": "String"}}},
        "odd": 7,
    },
}


def understood(document: Any, version: int = 1, documents: Documents | None = None) -> Any:
    documents = documents or Documents(reading(argument_names), ROOM)
    return documents.understood("so", version, orjson.dumps(document))


def test_what_is_not_understood_any_more_keeps_its_streams() -> None:
    """They are simple: nothing of it computes."""
    found = understood(STRICTER)

    assert list(found.streams) == ["b", "a", "odd"]
    assert all(stream.composite is None for stream in found.definition.streams)
    assert found.streams["b"].channels == (Channel("x", "number"),)
    assert [each.name for each in found.definition.groups] == ["g"]
    assert found.definition.public
    assert found.problem == "group gone: has to be a JSON object"


def test_an_update_of_it_follows_the_declared_names_and_known_types() -> None:
    stream = understood(STRICTER).streams["a"]
    put = b'{"channels":{"x":{"current-value":["?"]},"y":{"current-value":1}},"lastUpdate":1}'

    assert [each.type for each in stream.channels] == [ANY, ANY, "string"]
    assert parse_update(put, stream).timestamp == 1
    for wrong in (put.replace(b'"y"', b'"unheard"'), put.replace(b'"y"', b'"z"')):
        with pytest.raises(Exception, match=r"does not have a channel|does not match"):
            parse_update(wrong, stream)


@pytest.mark.parametrize("document", [b"", b"[]", b"{", b'{"streams":[]}', b"[" * 100_000])
def test_whatever_is_stored_is_a_definition(document: bytes) -> None:
    """A partition loads it; what it raised would be raised at every start."""
    found = Documents(reading(argument_names), ROOM).understood("so", 1, document)

    assert (found.definition.streams, found.problem is None) == ((), False)


def test_what_a_parser_breaks_with_is_no_reason_to_stop() -> None:
    def broken(_code: str) -> tuple[str, ...]:
        raise KeyError("a fault of ours")

    found = Documents(reading(broken), ROOM).understood("so", 1, orjson.dumps(STRICTER))

    assert list(found.streams) == ["b", "a", "odd"]


def test_its_reason_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """Also where it does not stay in memory, and again for another version."""
    documents = Documents(reading(argument_names), 0)
    with caplog.at_level(logging.ERROR, "servioticy"):
        for version in (1, 1, 2):
            understood(STRICTER, version, documents)

    told = [(each.message, each.service_object, each.version) for each in caplog.records]
    assert told == [("definition_not_understood", "so", n) for n in (1, 2)]
    assert caplog.records[0].reason


def test_a_version_is_parsed_once() -> None:
    documents = Documents(reading(argument_names), ROOM)
    found = understood({"streams": {}}, 1, documents)

    assert documents.known("so", 1) is found
    assert documents.understood("so", 1, b"not read") is found
    assert documents.known("so", 2) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        worst_documents.inputs,
        worst_documents.references,
        worst_documents.channels,
        worst_documents.long_paths,
        worst_documents.short_members,
        worst_documents.sentences,
        worst_documents.aliases_that_are_references,
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_memory_of_a_definition_is_known(kind: worst_documents.Kind) -> None:
    """What is kept is bounded by it: at most twice is really taken."""
    text = orjson.dumps(kind(12_000))
    tracemalloc.start()
    try:
        found = Documents(reading(argument_names), ROOM).understood("so", 1, text)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert found.problem is None
    assert taken <= 2 * memory(found.definition)


ALIKE = {
    "version": "0.2.0",
    "streams": {
        "a": {"channels": {"x": {"type": "number"}}},
        "b": {"channels": {"x": {"type": "number", "current-value": "function(a,b){return 1}"}}},
    },
}


@pytest.mark.parametrize("groups", [{}, {"a": {"soIds": ["one", "two"], "stream": "s"}}])
def test_equal_documents_of_several_objects_are_understood_as_each_alone(groups: Any) -> None:
    """Those without groups are parsed once: a fleet has thousands of them."""
    text = orjson.dumps({**ALIKE, "groups": groups})
    parsed: list[str] = []

    def parse(document: Any, service_object: str, meter: Any) -> Any:
        parsed.append(service_object)
        return reading(argument_names)(document, service_object, meter)

    documents = Documents(parse, ROOM)
    one, two = (documents.understood(each, 1, text) for each in ("one", "two"))

    assert parsed == (["one", "two"] if groups else ["one"])
    for id_, found in (("one", one), ("two", two)):
        assert found == Documents(reading(argument_names), ROOM).understood(id_, 1, text)
        assert list(found.streams.values()) == list(found.definition.streams)


def test_what_was_never_understood_is_not_taken_for_another() -> None:
    documents = Documents(reading(argument_names), ROOM)
    problems = [understood({**STRICTER, "groups": {}}, documents=documents).problem]
    problems.append(
        documents.understood("two", 1, orjson.dumps({**STRICTER, "groups": {}})).problem
    )

    assert all(problems)
