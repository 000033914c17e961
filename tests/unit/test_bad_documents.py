"""What is wrong with a document is told by a code and a JSON Pointer to the place."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from bad_documents import NUMBER, SIMPLE, refusal, resolved, streams

from servioticy.domain.documents import BadDocument, parse_update
from servioticy.domain.documents import codes as words
from servioticy.domain.documents.codes import CODES
from servioticy.domain.documents.errors import MAX_POINTER, WHOLE
from servioticy.domain.model import Channel, Stream, StreamRef

STREAM = Stream(StreamRef("so", "s"), (Channel("x", "number"), Channel("a/b~c", "string")))


def channel(content: Any, name: str = "c") -> dict[str, Any]:
    return streams(s={"channels": {"x": NUMBER, name: content}})


def code(*texts: str, version: str = "0.2.0", **more: Any) -> dict[str, Any]:
    """A composite stream `b` with these codes in its channels `c0`, `c1`, ..."""
    channels = {f"c{n}": NUMBER | {"current-value": text} for n, text in enumerate(texts)}
    return {"version": version, **streams(b={"channels": channels, **more})}


def groups(content: Any, name: str = "g") -> dict[str, Any]:
    return streams() | {"groups": {name: content}}


def expression(text: str, **more: Any) -> dict[str, Any]:
    return code("1", text, version="0.1.0", **more)


DOCUMENTS: list[tuple[Any, str, str]] = [
    ({}, "required", ""),
    ({"streams": None}, "required", ""),
    ({"streams": []}, "wrong-type", "/streams"),
    ({"streams": {f"s{n}": SIMPLE for n in range(1001)}}, "too-much", "/streams"),
    (streams(s=5), "wrong-type", "/streams/s"),
    (streams(s={}), "required", "/streams/s"),
    (streams(s={"channels": None}), "required", "/streams/s"),
    (streams(s={"channels": 1}), "wrong-type", "/streams/s/channels"),
    (
        code("1", version="0.1.0", actions=[{"action": "none"}]),
        "unknown-action",
        "/streams/b/actions/0/action",
    ),
    ({"streams": {" ": SIMPLE}}, "bad-name", "/streams/ "),
    ({"streams": {"a/b~": SIMPLE}}, "bad-name", "/streams/a~1b~0"),
    ({"streams": {"x" * 2000: SIMPLE}}, "bad-name", "/streams"),
    (
        streams(s={"channels": {f"c{n}": NUMBER for n in range(1001)}}),
        "too-much",
        "/streams/s/channels",
    ),
    (channel(5), "wrong-type", "/streams/s/channels/c"),
    (channel({}), "required", "/streams/s/channels/c"),
    (channel(NUMBER, "a\nb"), "bad-name", "/streams/s/channels/a\nb"),
    (channel({"type": "numeric"}), "channel-type", "/streams/s/channels/c/type"),
    (channel({"type": 5}), "channel-type", "/streams/s/channels/c/type"),
    (channel(NUMBER, "location"), "channel-type", "/streams/s/channels/location/type"),
    (channel(NUMBER | {"unit": 5}), "wrong-type", "/streams/s/channels/c/unit"),
    (channel(NUMBER | {"current-value": 5}), "wrong-type", "/streams/s/channels/c/current-value"),
    (channel(NUMBER | {"current-value": "1"}), "mixed-channels", "/streams/s/channels"),
    (groups(5), "wrong-type", "/groups/g"),
    (streams() | {"groups": []} | {"groups": [1]}, "wrong-type", "/groups"),
    (groups({"soIds": []}), "incomplete-group", "/groups/g"),
    (groups({"stream": "s"}), "incomplete-group", "/groups/g"),
    (groups({"soIds": ["p", "q", 5], "stream": "s"}), "wrong-type", "/groups/g/soIds/2"),
    (groups({"soIds": ["\0"], "stream": "s"}), "wrong-type", "/groups/g/soIds/0"),
    (groups({"soIds": ["p"], "stream": "a/b"}), "bad-name", "/groups/g/stream"),
    (groups({"soIds": ["p"], "stream": "s"}, ""), "bad-name", "/groups/"),
    (groups({"soIds": ["p"] * 50_001, "stream": "s"}), "too-much", "/groups/g/soIds"),
    (streams() | {"actions": {}}, "wrong-type", "/actions"),
    (streams() | {"actions": [{"name": "a"}, 5]}, "wrong-type", "/actions/1"),
    (streams() | {"actions": [{"name": "a"}, {}]}, "required", "/actions/1"),
    (streams() | {"actions": [{"name": 5}]}, "wrong-type", "/actions/0/name"),
    (streams() | {"actions": [{"name": " "}]}, "bad-name", "/actions/0/name"),
    (streams() | {"actions": [{"name": "a"}] * 2}, "duplicate", "/actions/1/name"),
    (streams() | {"aliases": 5}, "wrong-type", "/aliases"),
    (streams() | {"aliases": [{}, 5]}, "wrong-type", "/aliases/1"),
    (streams() | {"aliases": [{}, {"@x": "", "@y": 5}]}, "wrong-type", "/aliases/1/@y"),
    (streams() | {"aliases": {"@x": "", "@y": 5}}, "wrong-type", "/aliases/@y"),
    (streams() | {"aliases": {f"@{n}": "" for n in range(201)}}, "too-much", "/aliases"),
    (streams() | {"aliases": [{"@x": "@y"}, {"@y": "1@x"}]}, "alias-cycle", "/aliases/1/@y"),
    (
        streams() | {"aliases": {"@x": "@z", "@y": "@x", "@z": "@y", "@u": "@z"}},
        "alias-cycle",
        "/aliases/@z",
    ),
    (
        streams() | {"aliases": [{"@x": "x" * 100}, {"@y": "@x" * 700}]},
        "too-much",
        "/aliases/1/@y",
    ),
    (
        code("@" * 700, version="", **{"post-filter": "1"}) | {"aliases": {"@": "x" * 100}},
        "too-much",
        "/streams/b/channels/c0/current-value",
    ),
    (
        channel({"type": "@" * 700}) | {"aliases": {"@": "x" * 100}},
        "too-much",
        "/streams/s/channels/c/type",
    ),
    (
        channel(NUMBER | {"unit": "@" * 700}) | {"aliases": {"@": "x" * 100}},
        "too-much",
        "/streams/s/channels/c/unit",
    ),
    (code("function(a){}", window={"type": "session"}), "required", "/streams/b/window"),
    (
        code("1", version="", operator={"name": "count", "version": 1}),
        "bad-operator",
        "/streams/b/channels/c0",
    ),
    (
        code("function(a){}", window={"type": "session", "gap": "1s", "size": "1s"}),
        "bad-window",
        "/streams/b/window/size",
    ),
    (
        code("function(a){}", window={"type": "session", "gap": "1 second"}),
        "bad-duration",
        "/streams/b/window/gap",
    ),
    (
        code("function(a){}", "x" * 65_537),
        "too-much",
        "/streams/b/channels/c1/current-value",
    ),
    (code("function(a){}", **{"pre-filter": "x" * 65_537}), "too-much", "/streams/b/pre-filter"),
    (code("function(a){}", **{"post-filter": 5}), "wrong-type", "/streams/b/post-filter"),
    (code("function(a){}", "5"), "bad-code", "/streams/b/channels/c1/current-value"),
    (
        code("function(a){}", "function(a, z){}"),
        "unknown-source",
        "/streams/b/channels/c1/current-value",
    ),
    (code("function(a){}", diamonds="third"), "no-choice", "/streams/b/diamonds"),
    (expression("{$a} + {$z.x}"), "unknown-source", "/streams/b/channels/c1/current-value"),
    (expression("2", **{"pre-filter": "{$z}"}), "unknown-source", "/streams/b/pre-filter"),
    (expression("{$a[}"), "bad-reference", "/streams/b/channels/c1/current-value"),
    (
        expression("2", **{"post-filter": "{$result.`len`}"}),
        "bad-reference",
        "/streams/b/post-filter",
    ),
    (
        code(
            *("".join(f"{{$a.x{n}_{m}}}" for n in range(100)) for m in range(10)),
            "{$a.y}",
            version="",
        ),
        "too-much",
        "/streams/b/channels/c10/current-value",
    ),
]

UPDATES: list[tuple[bytes, str, str]] = [
    (b"{", "not-json", ""),
    (b"[]", "wrong-type", ""),
    (b'{"channels":{"x":{"current-value":1}}}', "required", ""),
    (b'{"lastUpdate":"1"}', "wrong-type", "/lastUpdate"),
    (b'{"lastUpdate":1}', "required", ""),
    (b'{"lastUpdate":1,"channels":{}}', "required", "/channels"),
    (b'{"lastUpdate":1,"channels":[1]}', "wrong-type", "/channels"),
    (b'{"lastUpdate":1,"channels":{"z/":{}}}', "unknown-channel", "/channels/z~1"),
    (b'{"lastUpdate":1,"channels":{"x":5}}', "wrong-type", "/channels/x"),
    (b'{"lastUpdate":1,"channels":{"x":{}}}', "required", "/channels/x"),
    (
        b'{"lastUpdate":1,"channels":{"x":{"current-value":{}}}}',
        "wrong-type",
        "/channels/x/current-value",
    ),
    (
        b'{"lastUpdate":1,"channels":{"a/b~c":{"current-value":1}}}',
        "wrong-type",
        "/channels/a~1b~0c/current-value",
    ),
    (
        b'{"channels":{"x":{"current-value":1}},"lastUpdate":1,"z":%b%b}'
        % (b"[" * 260, b"]" * 260),
        "too-nested",
        "",
    ),
]

OF_THE_API = {
    "has-nul",
    "too-slow",
    "unknown-service-object",
    "unknown-stream",
    "too-far-ahead",
    "not-understood",
    "not-csv",
    "bad-parameter",
    "bad-condition",
    "bad-link",
    "unknown-operator",
}
"""Codes of what only the API finds; its own tests meet them."""


@pytest.mark.parametrize(("document", "code", "pointer"), DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_a_bad_service_object_is_told_with_its_place(
    document: Any, code: str, pointer: str
) -> None:
    error = refusal(document)

    assert error is not None
    assert (error.code, error.pointer) == (code, pointer)
    resolved(pointer, document)


@pytest.mark.parametrize(("body", "code", "pointer"), UPDATES, ids=range(len(UPDATES)))
def test_a_bad_update_is_told_with_its_place(body: bytes, code: str, pointer: str) -> None:
    with pytest.raises(BadDocument) as raised:
        parse_update(body, STREAM)

    assert (raised.value.code, raised.value.pointer) == (code, pointer)


def test_every_code_is_met_and_has_a_sentence() -> None:
    met = {code for _, code, _ in (*DOCUMENTS, *UPDATES)}

    assert met | OF_THE_API == set(CODES)
    assert set(CODES) == {
        value for name, value in vars(words).items() if name.isupper() and name != "CODES"
    }
    for code, meaning in CODES.items():
        assert re.fullmatch("[a-z]+(-[a-z]+)*", code)
        assert re.fullmatch(r"[A-Z].*\.", meaning)


def test_the_pages_say_of_each_code_what_the_list_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest" / "errors.md").read_text()
    _, _, table = page.partition("| code | what is wrong |\n| --- | --- |\n")
    rows = re.findall(r"\| `([^`]*)` \| (.*) \|\n", table.partition("\n\n")[0] + "\n")

    assert rows == list(CODES.items())


def test_a_pointer_has_a_length() -> None:
    """Then it leads to what holds the part; nobody gets back a megabyte of what he sent."""
    part = WHOLE.at("streams", "s").at("channels", "~" * MAX_POINTER, words="channel")

    assert part.pointer == "/streams/s/channels"
    assert len(WHOLE.at("x" * (MAX_POINTER - 1)).pointer) == MAX_POINTER


def test_an_error_survives_the_way_out_of_its_process() -> None:
    error = pickle.loads(pickle.dumps(BadDocument("why", "/a", "required")))

    assert (str(error), error.reason, error.pointer, error.code) == (
        "why",
        "why",
        "/a",
        "required",
    )
