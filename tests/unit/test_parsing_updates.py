"""What an update has to be, and what is kept of it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.documents import BadDocument, json_texts, parse_update
from servioticy.domain.model import Channel, Stream, StreamRef
from servioticy.domain.values import fits

STREAM = Stream(
    StreamRef("so", "s"),
    (Channel("x", "number"), Channel("t", "string"), Channel("l", "geo_point")),
)


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"channels": {"x": {"current-value": 1}}}, "The lastUpdate field was not found"),
        ({"lastUpdate": 1.5}, "The lastUpdate has to be a long type"),
        ({"lastUpdate": "1"}, "The lastUpdate has to be a long type"),
        ({"lastUpdate": True}, "The lastUpdate has to be a long type"),
        ({"lastUpdate": 2**63}, "The lastUpdate has to be a long type"),
        ({"lastUpdate": 1}, "No channels"),
        ({"lastUpdate": 1, "channels": {}}, "No channels"),
        ({"lastUpdate": 1, "channels": {"x": {}}}, "channel x without current-value"),
        (
            {"lastUpdate": 1, "channels": {"x": {"current-value": {}}}},
            "current-value cannot be an Object. channel: x",
        ),
        (
            {"lastUpdate": 1, "channels": {"z": {"current-value": 1}}},
            "The Service Object Stream does not have a channel: z",
        ),
        (
            {"lastUpdate": 1, "channels": {"x": {"current-value": "1"}}},
            "The Service Object stream channel x data type does not match",
        ),
        ([], "A Sensor Update has to be a JSON object"),
    ],
)
def test_what_is_wrong_with_an_update_is_said(update: Any, message: str) -> None:
    with pytest.raises(BadDocument) as raised:
        parse_update(orjson.dumps(update), STREAM)

    assert str(raised.value).startswith(message)


def test_an_update_is_kept_compact_and_whole() -> None:
    body = b'{ "z": 1, "lastUpdate": 7, "channels": {"t": {"unit": null, "current-value": ""}} }'

    update = parse_update(body, STREAM)

    assert (update.origin, update.timestamp) == (StreamRef("so", "s"), 7)
    kept = b'{"z":1,"lastUpdate":7,"channels":{"t":{"unit":null,"current-value":""}}}'
    assert update.document == kept


def test_a_deeply_nested_update_is_refused() -> None:
    more = b"[" * 300 + b"]" * 300
    body = b'{"channels":{"x":{"current-value":1}},"lastUpdate":1,"more":' + more + b"}"

    with pytest.raises(BadDocument, match="nested too deeply"):
        parse_update(body, STREAM)


@pytest.mark.parametrize(
    ("value", "type_name", "fitting"),
    [
        (1, "number", True),
        (1.5, "number", True),
        (True, "number", False),
        ("1", "number", False),
        (1, "string", False),
        (1, "boolean", False),
        (None, "string", False),
        ([1, 2.5], "array[number]", True),
        ([1, "a"], "array[number]", False),
        (1, "array[number]", False),
        ([1], "number", False),
        ("41.38, 2.11", "geo_point", True),
        ("-90,+180.", "geo_point", True),
        ("91,0", "geo_point", False),
        ("0,181", "geo_point", False),
        ("1_0,2", "geo_point", False),
        ("nan,1", "geo_point", False),
        ("1,2,3", "geo_point", False),
        ("u4pruydqqvj", "geo_point", True),
        ("ail", "geo_point", False),
        ("", "geo_point", False),
        ([2.11, 41.38], "geo_point", True),
        ([2.11, "41.38"], "geo_point", False),
        ([2.11], "geo_point", False),
        ({"lat": 1, "lon": 2}, "geo_point", False),
    ],
)
def test_values_fit_their_declared_type(value: Any, type_name: str, fitting: bool) -> None:
    assert fits(value, type_name) is fitting


@given(st.binary(max_size=80))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    try:
        parse_update(body, STREAM)
    except BadDocument as error:
        assert str(error)


@pytest.mark.parametrize(
    ("update", "pointer"),
    [
        (
            b'{"lastUpdate":1,"channels":{"t":{"current-value":"a\\u0000"}}}',
            "/channels/t/current-value",
        ),
        (b'{"lastUpdate":1,"x":["\\u0000"],"channels":{"t":{"current-value":"a"}}}', "/x/0"),
        (b'{"lastUpdate":1,"x":{"\\u0000":1},"channels":{"t":{"current-value":"a"}}}', "/x"),
    ],
)
def test_a_nul_is_refused_with_its_place(update: bytes, pointer: str) -> None:
    """The store looks into no document with one: not for the channels beside it, either."""
    with pytest.raises(BadDocument) as told:
        parse_update(update, STREAM)

    assert (told.value.code, told.value.pointer) == ("has-nul", pointer)


def test_a_text_that_spells_an_escape_has_no_nul() -> None:
    update = b'{"lastUpdate":1,"channels":{"t":{"current-value":"\\\\u0000"}}}'

    kept = orjson.loads(parse_update(update, STREAM).document)

    assert kept["channels"]["t"]["current-value"] == "\\u0000"


@pytest.mark.parametrize(("digits", "is_taken"), [(1_000, True), (1_001, False)])
def test_a_number_has_so_many_digits(digits: int, is_taken: bool) -> None:
    """Behind its point: before it 309 are infinite already. In a text they are free."""
    update = b'{"lastUpdate":1,"channels":{"t":{"current-value":"%b"},"x":{"current-value":0.%b}}}'
    whole = update % (b"1" * 2_000, b"1" * digits)

    if is_taken:
        assert parse_update(whole, STREAM).timestamp == 1
    else:
        with pytest.raises(BadDocument, match="more than 1000 digits: line 1 column 20"):
            parse_update(whole, STREAM)


@given(before=st.integers(0, 2_100), digits=st.integers(990, 1_010), behind=st.integers(0, 1_100))
def test_too_many_digits_are_found_wherever_they_begin(
    before: int, digits: int, behind: int
) -> None:
    """What is before and behind has as many digits as are taken at most, and is in texts."""
    some = ('"' + "1" * 1_000 + '",') * 2
    text = f'[{some}"{"x" * before}",0.{"7" * digits},"{"y" * behind}"]'.encode()
    if digits <= 1_000:
        assert len(json_texts.read(text)) == 5
    else:
        with pytest.raises(BadDocument, match="more than 1000 digits"):
            json_texts.read(text)
