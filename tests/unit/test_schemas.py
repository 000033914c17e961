"""The schemas and the parsers agree: they accept and refuse the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object, parse_update
from servioticy.domain.documents.actions import check_actions
from servioticy.domain.letters import read_letter
from servioticy.domain.model import Channel, Stream, StreamRef
from servioticy.domain.records import (
    UnreadableRecord,
    read_emitted,
    read_record,
)

FOLDER = Path(__file__).parent.parent.parent / "schemas"
SCHEMAS = {
    file.name: json.loads(file.read_text())
    for file in sorted(FOLDER.glob("*.json"))
    # Contracts refer to them.
    if file.name not in ("asyncapi.json", "console.json", "delivery.json")
}

STREAM = Stream(
    StreamRef("so", "s"),
    (
        Channel("location", "geo_point"),
        Channel("rssi", "number"),
        Channel("name", "string"),
        Channel("on", "boolean"),
    ),
)
DEFINITION = {"kind": "definition", "service_object": "so", "version": 1}
EMITTED = {
    "service_object": "so",
    "stream": "s",
    "tenant": 1,
    "version": 1,
    "timestamp": 1,
    "update": {},
}
UPDATE = {"kind": "update", "service_object": "so", "stream": "s", "timestamp": 1, "update": {}}
TICK = {
    "kind": "tick",
    "service_object": "so",
    "stream": "s",
    "timestamp": 1,
    "keys": ["a2V5"],
}
ANSWER = {
    "kind": "answer",
    "service_object": "so",
    "stream": "s",
    "timestamp": 1,
    "program": "p",
    "version": 1,
    "begun": 1,
    "states": 0,
    "events": [[0, 5, [[None, {"v": 1}], [7, {"v": 2}]], ""]],
    "state": "a2V5",
    "keeps": False,
    "ends": True,
}
READING = {
    "kind": "reading",
    "reader": "so",
    "tenant": 1,
    "provider": 2,
    "to_partition": 0,
    "sources": [["so", "s"]],
    "change": 3,
}
BEGIN = {
    "kind": "begin",
    "source": [0, 1, 0],
    "provider": 2,
    "tenant": 1,
    "readers": ["so"],
    "streams": [["so", "s", 1, {}]],
}
END = {**BEGIN, "kind": "end", "streams": [["so", "s"]]}
BORDER = {
    "kind": "border",
    "source": [0, 1],
    "provider": 2,
    "updates": [["so", "s", 1, [0, 1], {}]],
}
LETTER = {"partition": "0", "offset": "0", "reason": "r", "kind": "log"}
CHANNEL = {"type": "number"}


def of_stream(stream: Any) -> dict[str, Any]:
    return {"streams": {"s": stream}}


CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
BAD_CONTEXTS = (None, 1, "", CONTEXT[:-1], f"{CONTEXT}-more", f"{CONTEXT[:-1]}4")
CALLED = {"destination": "https://example.org/"}
ASKED = {"action": "a", "serviceObject": "other"}
BAD_TIMEOUTS = (0, 1.5, "1", None, 2592001)
CODE = CHANNEL | {"current-value": "1"}


def of_composite(**content: Any) -> dict[str, Any]:
    return of_stream({"channels": {"c": CODE}, **content})


def of_channel(channel: Any, name: str = "c") -> dict[str, Any]:
    return of_stream({"channels": {name: channel}})


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


ACCEPTED: dict[str, list[Any]] = {
    "service-object.json": [
        *({"streams": {}, "groups": each} for each in (None, [], {})),
        {"streams": {}},
        of_stream({"channels": {}}),
        of_channel({"type": " Array[ Number ] "}),
        of_channel({"type": "GEO_POINT"}, "location"),
        of_stream({"channels": {"c": CHANNEL}, "pre-filter": 1, "missing": 1}),
        of_composite(**{"pre-filter": None, "post-filter": "", "missing": "skip", "more": 1}),
        {"streams": {}, "groups": None, "actions": None, "aliases": None, "URL": "x"},
        {"streams": {}, "aliases": {"a": "b"}, "actions": [], "id": "mine", "userId": 5},
        {"streams": {}, "actions": [{"name": "a", "timeout": 1}], "actuationCallback": None},
        {"streams": {}, "actuationCallback": CALLED | {"format": "plain", "customFields": None}},
        of_composite(actions=None),
        of_composite(actions=[]),
        of_composite(actions=[ASKED, ASKED | {"if": None, "parameters": [1, None]}]),
        of_stream({"channels": {"c": CHANNEL}, "actions": 1}),
    ],
    "sensor-update.json": [
        {"channels": {"name": {"current-value": ""}}, "lastUpdate": 0, "more": [1]},
        {"channels": {"on": {"current-value": True}}, "lastUpdate": 2**63 - 1},
    ],
    "log-record.json": [
        {**DEFINITION, "later": 1},
        {"kind": "release", "service_objects": [], "to_partition": 0},
        {"kind": "deletion", "service_object": "so", "later": 1},
        {"kind": "erasure", "service_object": "so", "stream": "s"},
        {**UPDATE, "timestamp": 0},
        {**UPDATE, "at": 2**63 - 1, "trace": CONTEXT},
        {**BORDER, "at": 0, "trace": CONTEXT},
        ANSWER,
        {**ANSWER, "state": None, "keeps": True},
        TICK,
        {**UPDATE, "timestamp": 2**63 - 1},
        {**DEFINITION, "version": 2**31 - 1, "change": 2**63 - 1},
        {**READING, "sources": [], "ends": False},
        {**BORDER, "updates": [], "readers": []},
        {**BORDER, "source": [0, -3]},
        {**BORDER, "updates": [["so", "s", 1, [-1, 2**40], {}]]},
        {**BEGIN, "streams": [["so", "s"]]},
        {**BEGIN, "streams": [["so", "s", None, None]]},
        {**BEGIN, "moved_from": None, "forwarded": None},
        {**END, "streams": []},
    ],
    "emitted-record.json": [
        {**EMITTED, "later": 1},
        {**EMITTED, "place": [1, 2, 0, 0], "trace": CONTEXT},
    ],
    "dead-letter.json": [{**LETTER, "later": "1"}, {**LETTER, "cut": "true", "bytes": "9"}],
}
REFUSED: dict[str, list[Any]] = {
    "service-object.json": [
        {},
        {"streams": None},
        {"streams": []},
        *({"streams": {}, "groups": each} for each in (False, 0, "", [{}], [[]])),
        {"streams": {"a/b": {"channels": {}}}},
        {"streams": {" ": {"channels": {}}}},
        {"streams": {"x" * 201: {"channels": {}}}},
        of_stream({}),
        of_stream([]),
        of_composite(**{"pre-filter": 1}),
        of_composite(**{"post-filter": []}),
        of_composite(missing=1),
        of_channel({"type": 5}),
        of_channel({}),
        of_channel("number"),
        of_channel({"type": "numeric"}),
        of_channel({"type": "Array[Array[number]]"}),
        of_channel({"type": "number", "unit": 1}),
        of_channel({"type": "number", "current-value": 1}),
        of_channel({"type": "number"}, "location"),
        {"streams": {}, "actions": {}},
        {"streams": {}, "dataTTL": "1"},
        {"streams": {}, "actions": ["reboot"]},
        {"streams": {}, "actions": [{"name": " "}]},
        *({"streams": {}, "actions": [{"name": "a", "timeout": each}]} for each in BAD_TIMEOUTS),
        *({"streams": {}, "actuationCallback": each} for each in (1, {}, CALLED | {"x": 1})),
        {"streams": {}, "actuationCallback": {"destination": "ftp://example.org"}},
        {"streams": {}, "actuationCallback": CALLED | {"format": "xml"}},
        *(of_composite(actions=each) for each in (1, {}, [1], [{}], [{"action": 1}])),
        of_composite(actions=[ASKED | {"if": 1}]),
        of_composite(actions=[ASKED | {"serviceObject": None}]),
        of_composite(actions=[ASKED] * 101),
        {"streams": {}, "aliases": [{"a": 1}]},
        {"streams": {}, "groups": {"g": {"soIds": ["x"]}}},
        {"streams": {}, "groups": {"g": {"stream": "s"}}},
        {"streams": {}, "groups": {"g": {"stream": "s", "soIds": [1]}}},
        {"streams": {}, "groups": {"": {"stream": "s", "soIds": []}}},
    ],
    "sensor-update.json": [
        [],
        {"channels": {"rssi": {"current-value": 1}}},
        {"channels": {"rssi": {"current-value": 1}}, "lastUpdate": 1.5},
        {"channels": {"rssi": {"current-value": 1}}, "lastUpdate": "1"},
        {"channels": {"rssi": {"current-value": 1}}, "lastUpdate": True},
        {"channels": {"rssi": {"current-value": 1}}, "lastUpdate": -1},
        {"channels": {"rssi": {"current-value": 1}}, "lastUpdate": 2**63},
        {"lastUpdate": 1},
        {"channels": {}, "lastUpdate": 1},
        {"channels": {"rssi": 1}, "lastUpdate": 1},
        {"channels": {"rssi": {}}, "lastUpdate": 1},
        {"channels": {"rssi": {"current-value": None}}, "lastUpdate": 1},
        {"channels": {"rssi": {"current-value": {}}}, "lastUpdate": 1},
    ],
    "log-record.json": [
        {},
        {"kind": "nonsense"},
        without(DEFINITION, "kind"),
        without(DEFINITION, "version"),
        {**DEFINITION, "version": "1"},
        {"kind": "release", "service_objects": "so", "to_partition": 0},
        {"kind": "update", "service_object": "so", "stream": "s", "timestamp": 1},
        {"kind": "acquire", "service_objects": [], "from_partition": 0},
        {**DEFINITION, "change": "1"},
        {**DEFINITION, "version": 2**31},
        {**DEFINITION, "change": 2**63},
        {**UPDATE, "timestamp": 2**63},
        {**TICK, "keys": []},
        {**ANSWER, "events": []},
        {**ANSWER, "events": [[0, 5, [[-1, {"v": 1}]], ""]]},
        {**ANSWER, "events": [[0, 5, [[1, [1]]], ""]]},
        {**ANSWER, "state": 1},
        {**TICK, "keys": ["a2V5"] * 101},
        {**TICK, "keys": [1]},
        {**TICK, "timestamp": -1},
        {**UPDATE, "timestamp": 10**30},
        {**UPDATE, "timestamp": -1},
        {**UPDATE, "update": 5},
        {**UPDATE, "at": -1},
        {**UPDATE, "at": "1"},
        *({**UPDATE, "trace": each} for each in BAD_CONTEXTS),
        {**BORDER, "trace": CONTEXT.upper()},
        {**UPDATE, "update": []},
        {"kind": "deletion"},
        {"kind": "erasure", "service_object": "so"},
        {"kind": "erasure", "service_object": "so", "stream": "s", "change": None},
        *(without(READING, each) for each in READING),
        *(without(BEGIN, each) for each in BEGIN),
        *(without(END, each) for each in END),
        *(without(BORDER, each) for each in BORDER),
        {**READING, "sources": [["so"]]},
        {**READING, "to_partition": 2**31},
        {**BORDER, "updates": [["so", "s", 1, []]]},
        {**BORDER, "updates": [["so", "s", 1, [], 5]]},
        {**BORDER, "updates": [["so", "s", 1, [2**63], {}]]},
        {**BORDER, "updates": [["so", "s", -1, [], {}]]},
        {**BORDER, "source": [0]},
        {**BORDER, "source": 5},
        {**BEGIN, "streams": [["so", "s", 5, []]]},
        {**BEGIN, "streams": [["so", "s", -5, {}]]},
        {**BEGIN, "readers": "so"},
        {**END, "streams": [["so", 5]]},
        {**END, "moved_to": "1"},
    ],
    "emitted-record.json": [without(EMITTED, key) for key in EMITTED]
    + [{**EMITTED, "tenant": ""}, {**EMITTED, "update": "x"}, {**EMITTED, "place": 1}],
    "dead-letter.json": [without(LETTER, key) for key in LETTER]
    + [{**LETTER, "offset": ""}, {**LETTER, "offset": "x"}, {**LETTER, "cut": "true"}],
}


def parse_document(value: Any) -> None:
    """As the API looks at one."""
    parse_service_object(value, "so", argument_names)
    check_actions(value, "so", argument_names)


PARSERS: dict[str, Any] = {
    "service-object.json": parse_document,
    "sensor-update.json": lambda value: parse_update(json.dumps(value).encode(), STREAM),
    "log-record.json": lambda value: read_record(json.dumps(value).encode()),
    "emitted-record.json": lambda value: read_emitted(json.dumps(value).encode()),
    "dead-letter.json": lambda value: read_letter(
        b"{", [(name, text.encode()) for name, text in value.items()]
    ),
}


def cases(table: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(name, value, id=f"{name}-{number}")
        for name, values in table.items()
        for number, value in enumerate(values)
    ]


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_schemas_with_words_and_examples(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])

    assert SCHEMAS[name]["$schema"].endswith("2020-12/schema")
    assert SCHEMAS[name]["$id"].endswith(name)
    assert SCHEMAS[name]["description"]
    assert SCHEMAS[name]["examples"]


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_fit_their_schema(name: str) -> None:
    for example in SCHEMAS[name]["examples"]:
        jsonschema.Draft202012Validator(SCHEMAS[name]).validate(example)


EXAMPLES = {name: SCHEMAS[name]["examples"] for name in PARSERS}


@pytest.mark.parametrize(("name", "value"), cases(EXAMPLES) + cases(ACCEPTED))
def test_what_is_accepted_fits(name: str, value: Any) -> None:
    PARSERS[name](value)

    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(value)


@pytest.mark.parametrize(("name", "value"), cases(REFUSED))
def test_what_is_refused_does_not_fit(name: str, value: Any) -> None:
    with pytest.raises((BadDocument, UnreadableRecord, msgspec.DecodeError)):
        PARSERS[name](value)

    assert not jsonschema.Draft202012Validator(SCHEMAS[name]).is_valid(value)
