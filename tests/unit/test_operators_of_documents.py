"""Streams that a program computes: what a document may say of them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.operators import MAX_INPUTS
from servioticy.domain.documents.spelling import check_document
from servioticy.domain.model import Composite, StreamRef
from servioticy.domain.program_code import PROGRAMS, ProgramCode, SideCode

CHANNELS = {"v": {"type": "number"}}
COUNTS = {"name": "counts", "version": 3}


def a_document(operator: Any, *, version: str | None = "0.2.0", **more: Any) -> dict[str, Any]:
    streams = {
        "a": {"channels": CHANNELS},
        "b": {"channels": CHANNELS},
        "p": {"channels": CHANNELS, "operator": operator, **more},
    }
    return {"streams": streams} | ({} if version is None else {"version": version})


def composite_of(document: dict[str, Any]) -> Composite | None:
    stream = parse_service_object(document, "so", argument_names).stream("p")
    assert stream is not None
    return stream.composite


@pytest.mark.parametrize("version", ["0.2.0", "0.1.0", None])
def test_a_program_computes_it_in_either_version(version: str | None) -> None:
    found = composite_of(a_document(COUNTS, version=version))

    assert found is not None
    assert (found.evaluator, found.operator) == (PROGRAMS, ProgramCode("counts", 3))
    assert [each.name for each in found.inputs] == ["a", "b"], "all simple streams"
    assert [each.code for each in found.channels] == [None]


def test_groups_wake_it_where_there_are_some_or_what_it_names() -> None:
    document = a_document(COUNTS)
    document["groups"] = {"all": {"soIds": ["x", "y"], "stream": "s"}}
    found = composite_of(document)
    assert found is not None
    assert [(each.name, each.members) for each in found.inputs] == [
        ("all", (StreamRef("x", "s"), StreamRef("y", "s")))
    ]

    document["streams"]["p"]["operator"] = {**COUNTS, "inputs": ["b", "all", "b"]}
    found = composite_of(document)
    assert found is not None
    assert [each.name for each in found.inputs] == ["b", "all"]


def test_the_program_of_another_stream_may_make_its_updates() -> None:
    document = a_document({"of": "q", "name": None})
    document["streams"]["q"] = {"channels": CHANNELS, "operator": COUNTS}
    found = composite_of(document)
    assert found is not None
    assert (found.evaluator, found.operator) == (PROGRAMS, SideCode("q", "p"))
    assert [(each.name, each.members) for each in found.inputs] == [("q", (StreamRef("so", "q"),))]

    document["streams"]["q"] = {"channels": CHANNELS, "operator": {"of": "p"}}
    with pytest.raises(BadDocument, match="no stream of this document that names a program"):
        composite_of(document)


def test_null_is_no_operator() -> None:
    assert composite_of(a_document(None)) is None


def test_it_may_be_of_another_tenant() -> None:
    found = composite_of(a_document({"name": "Acme Corp./counts", "version": 1}))
    assert found is not None
    assert found.operator == ProgramCode("Acme Corp./counts", 1)


@pytest.mark.parametrize(
    ("operator", "pointer", "code"),
    [
        ("counts", "/streams/p/operator", "wrong-type"),
        ({"version": 1}, "/streams/p/operator/name", "required"),
        ({"name": "counts"}, "/streams/p/operator/version", "required"),
        ({"name": "Counts!", "version": 1}, "/streams/p/operator/name", "bad-name"),
        ({"name": "a/b/c", "version": 1}, "/streams/p/operator/name", "bad-name"),
        ({"name": 5, "version": 1}, "/streams/p/operator/name", "wrong-type"),
        ({**COUNTS, "version": True}, "/streams/p/operator/version", "wrong-type"),
        ({**COUNTS, "version": 0}, "/streams/p/operator/version", "wrong-type"),
        ({**COUNTS, "version": 2**31}, "/streams/p/operator/version", "wrong-type"),
        ({**COUNTS, "inputs": []}, "/streams/p/operator/inputs", "required"),
        ({**COUNTS, "inputs": "a"}, "/streams/p/operator/inputs", "wrong-type"),
        ({**COUNTS, "inputs": ["a", "c"]}, "/streams/p/operator/inputs/1", "unknown-source"),
        ({**COUNTS, "inputs": ["p"]}, "/streams/p/operator/inputs/0", "unknown-source"),
        ({**COUNTS, "inputs": ["a"] * (MAX_INPUTS + 1)}, "/streams/p/operator/inputs", "too-much"),
        ({**COUNTS, "code": ""}, "/streams/p/operator/code", "bad-operator"),
        ({"of": "a"}, "/streams/p/operator/of", "unknown-source"),
        ({"of": "p"}, "/streams/p/operator/of", "unknown-source"),
        ({"of": "nobody"}, "/streams/p/operator/of", "unknown-source"),
        ({"of": ["p"]}, "/streams/p/operator/of", "wrong-type"),
        ({**COUNTS, "of": "q"}, "/streams/p/operator/name", "bad-operator"),
        ({"of": "q", "inputs": ["a"]}, "/streams/p/operator/inputs", "bad-operator"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(operator: Any, pointer: str, code: str) -> None:
    with pytest.raises(BadDocument) as found:
        composite_of(a_document(operator))

    assert (found.value.pointer, found.value.code) == (pointer, code)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pre-filter", "true"),
        ("post-filter", "true"),
        ("window", {"type": "global"}),
        ("silent", "10m"),
        ("fold", "function(state) {}"),
        ("diamonds", "settle"),
        ("staleness", "input"),
        ("missing", "skip"),
    ],
)
def test_what_code_has_means_nothing_beside_it(key: str, value: Any) -> None:
    with pytest.raises(BadDocument) as found:
        composite_of(a_document(COUNTS, **{key: value}))

    assert (found.value.pointer, found.value.code) == (f"/streams/p/{key}", "bad-operator")


def test_its_channels_have_no_code() -> None:
    channels = {"v": {"type": "number", "current-value": "function(a) { return 1 }"}}
    with pytest.raises(BadDocument, match="so it has no current-value"):
        composite_of(a_document(COUNTS, channels=channels))


def test_something_has_to_wake_it() -> None:
    document = a_document(COUNTS)
    document["streams"] = {"p": document["streams"]["p"]}
    with pytest.raises(BadDocument, match="neither groups nor simple streams"):
        composite_of(document)


def test_misspelt_keys_are_told() -> None:
    with pytest.raises(BadDocument, match="did you mean 'version'"):
        composite_of(a_document({"name": "counts", "versoin": 1}))
    document = a_document(COUNTS)
    document["streams"]["p"]["operater"] = document["streams"]["p"].pop("operator")
    with pytest.raises(BadDocument, match="did you mean 'operator'"):
        check_document(document)
