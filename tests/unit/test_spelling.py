"""What is almost a word of the platform's is refused; whatever resembles none is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from servioticy.domain.documents import BadDocument, parse_update
from servioticy.domain.documents.callbacks import check_subscription
from servioticy.domain.documents.spelling import (
    CHANNEL,
    DOCUMENT,
    MAX_KEYS,
    STREAM,
    check_document,
    misspelt,
    nearest,
)
from servioticy.domain.model import Channel, Stream, StreamRef

AIR = Stream(StreamRef("so", "air"), (Channel("x", "number"),), None)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("curent-value", "current-value"),
        ("currentValue", "current-value"),
        ("current_value", "current-value"),
        ("curretn-value", "current-value"),
        ("units", "unit"),
        ("stream", "streams"),
        ("chanels", "channels"),
        ("pre-filtr", "pre-filter"),
        ("current-value", None),
        ("description", None),
        ("URL", None),
        ("properties", None),
        ("iserveAnnotation", None),
        ("x" * 10_000, None),
    ],
)
def test_what_resembles_a_word_names_it(word: str, meant: str | None) -> None:
    assert nearest(word, [*DOCUMENT, *STREAM, *CHANNEL]) == meant


@pytest.mark.parametrize("words", [DOCUMENT, STREAM, CHANNEL])
def test_no_word_of_ours_is_taken_for_another(words: tuple[str, ...]) -> None:
    for word in words:
        assert nearest(word, [each for each in words if each != word]) is None


def channel(**content: Any) -> dict[str, Any]:
    return {"streams": {"a": {"channels": {"x": {"type": "number", **content}}}}}


def test_a_misspelt_key_of_a_document_is_told_with_its_place() -> None:
    with pytest.raises(
        BadDocument, match=r"stream a: channel x: .*did you mean 'current-value'"
    ) as e:
        check_document(channel(**{"curent-value": "function(a){return 1}"}))

    assert e.value.pointer == "/streams/a/channels/x/curent-value"


def test_what_stands_beside_the_right_word_is_the_tenants_own() -> None:
    check_document(channel(unit="C", units=["C", "F"]))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"channels":{"x":{"curent-value":1}},"lastUpdate":1}', "'current-value'"),
        (b'{"channels":{"x":{"current-value":1,"units":"F"}},"lastUpdate":1}', "'unit'"),
        (b'{"chanels":{"x":{"current-value":1}},"lastUpdate":1}', "'channels'"),
        (b'{"channels":{"x":{"current-value":1}},"lastupdate":1}', "'lastUpdate'"),
        (b'{"channels":{"x":{"current-value":1}},"lastUpdate":"2026-11-24T09:30:00"}', "a zone"),
        (
            b'{"channels":{"x":{"current-value":1}},"lastUpdate":"yesterday"}',
            "long type, or a date",
        ),
        (b'{"channels":{"x":{"current-value":1}},"lastUpdate":"1969-01-01T00:00:00Z"}', "1970"),
    ],
)
def test_an_update_is_told_what_is_meant(body: bytes, said: str) -> None:
    with pytest.raises(BadDocument, match=said):
        parse_update(body, AIR)


@pytest.mark.parametrize(
    "date", ["2026-11-24T09:30:00.250Z", "2026-11-24T10:30:00.250+01:00", "20261124T093000.250Z"]
)
def test_a_date_is_milliseconds(date: str) -> None:
    body = f'{{"channels":{{"x":{{"current-value":1}}}},"lastUpdate":"{date}"}}'

    update = parse_update(body.encode(), AIR)

    assert update.timestamp == 1_795_512_600_250
    assert b'"lastUpdate":1795512600250' in update.document


def test_a_misspelt_key_of_a_subscription_is_told() -> None:
    with pytest.raises(BadDocument, match="did you mean 'destination'"):
        check_subscription({"callback": "http", "destinaton": "http://example.com/"})


def test_no_more_keys_are_looked_at_than_take_milliseconds() -> None:
    """A body has room for 100,000 of them; the border, and one beyond."""
    many = {f"odd{number:07}": 1 for number in range(MAX_KEYS - 1)}
    with pytest.raises(BadDocument, match="did you mean 'streams'"):
        check_document(many | {"stream": {}})

    check_document(many | {"another": 1, "stream": {}})


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (["form"], "from"),
        (["From"], "from"),
        (["fom"], "from"),
        (["limit", "oder"], "order"),
        (["customField.room"], "customFields"),
        (["customFields.rom", "from"], None),
        (["size", "_", "x" * 10_000], None),
        (["from", "form"], None),
    ],
)
def test_a_misspelt_parameter_names_the_one_that_is_meant(
    names: list[str], meant: str | None
) -> None:
    told = misspelt(names, ("from", "to", "limit", "order", "customFields"))

    assert told == "" if meant is None else told.endswith(f"did you mean {meant!r}?")


@pytest.mark.parametrize("key", ["window", "silent", "fold", "emit", "lateness", "revisions"])
def test_a_word_of_windows_at_a_wrong_place_is_told(key: str) -> None:
    """There it would be kept, and mean nothing."""
    streams = {"a": {"channels": {"v": {"type": "number"}}}}
    places: dict[str, dict[str, Any]] = {
        "": {"streams": streams},
        "/groups/g": {"streams": streams, "groups": {"g": {}}},
        "/streams/a/channels/v": {"streams": streams},
    }
    if key in ("emit", "lateness", "revisions"):
        places["/streams/a"] = {"streams": streams}
    for pointer, whole in places.items():
        document = json.loads(json.dumps(whole))
        inner = document
        for step in pointer.split("/")[1:]:
            inner = inner[step]
        inner[key] = None
        check_document(document)
        inner[key] = "1m"
        with pytest.raises(BadDocument, match="means nothing here") as raised:
            check_document(document)
        assert (raised.value.code, raised.value.pointer) == ("bad-window", f"{pointer}/{key}")


def test_words_of_windows_at_their_places_are_none() -> None:
    stream = {"channels": {}, "window": {"emit": 1, "lateness": 1}, "fold": "", "silent": "1m"}
    check_document({"streams": {"a": stream}})
