"""Which unit a timestamp is in, and who is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.warning_headers import MOST, warned
from ingest.hints import MOST_NAMED, UpdateHints
from servioticy.domain.documents import parse_update
from servioticy.domain.model import Channel, Stream, StreamKey, StreamRef
from servioticy.domain.time_units import PER_SECOND, unit_of, unlike

NOW = 1_700_000_000.0
KEY = StreamKey(1, 1)
DECLARED = Stream(StreamRef("so", "a"), tuple(Channel(n, "number", "C") for n in "abcdef"))


def told(hints: UpdateHints, at: int, key: StreamKey = KEY, unit: str = "C") -> list[str]:
    body = b'{"channels":{"a":{"current-value":1,"unit":"%b"}},"lastUpdate":%d}'
    return hints.of(key, parse_update(body % (unit.encode(), at), DECLARED), DECLARED)


@pytest.mark.parametrize(("unit", "per_second"), PER_SECOND.items())
@pytest.mark.parametrize("year", [1975.5, 1990, 2023, 2076])
def test_a_time_of_these_years_has_its_unit(unit: str, per_second: int, year: float) -> None:
    assert unit_of(int((year - 1970) * 31_556_952) * per_second, NOW) == unit


@pytest.mark.parametrize("counted", [0, 1, 100, 86_400, 20_000_000, 2**63 - 1])
def test_what_only_counts_has_no_unit(counted: int) -> None:
    assert unit_of(counted, NOW) is None
    assert unlike(counted, 1_700_000_000_000, NOW) == ""


@given(st.integers(0, 2**63 - 1), st.floats(1e9, 4e9))
def test_no_timestamp_has_two_units(timestamp: int, now: float) -> None:
    found = [u for u, per in PER_SECOND.items() if unit_of(timestamp // per, now) == "seconds"]

    assert len(found) <= 1


def test_seconds_after_milliseconds_are_told_each_time() -> None:
    """What the stream's newest is does not change by what is older."""
    hints = UpdateHints(lambda: NOW)

    assert told(hints, 1_700_000_000_000) == []
    for at in (1_700_000_001, 1_700_000_002):
        (hint,) = told(hints, at)
        assert "is in seconds" in hint
        assert "is in milliseconds" in hint
    assert told(hints, 1_700_000_001_000) == []


def test_milliseconds_after_seconds_are_told_once() -> None:
    hints = UpdateHints(lambda: NOW)

    found = [bool(told(hints, at)) for at in (1_700_000_000, 1_700_000_001_000, 1_700_000_002_000)]

    assert found == [False, True, False]


def test_only_so_many_streams_are_remembered() -> None:
    hints = UpdateHints(lambda: NOW, room=2)

    for number in (1, 2, 3):
        told(hints, 1_700_000_000_000, StreamKey(1, number))

    found = [bool(told(hints, 1_700_000_000, StreamKey(1, n))) for n in (3, 2)]
    assert found == [True, True]
    assert told(hints, 1_700_000_000, StreamKey(1, 1)) == []


def test_a_value_in_another_unit_is_told_with_both() -> None:
    hints = UpdateHints(lambda: NOW)

    assert told(hints, 1) == []
    (hint,) = told(hints, 2, unit="F")
    assert "channel a is in C" in hint
    assert "came in F" in hint


def test_a_channel_without_a_unit_and_a_value_without_one_are_told_nothing() -> None:
    free = Stream(StreamRef("so", "a"), (Channel("a", "number"), Channel("b", "number", "C")))
    body = b'{"channels":{"a":{"current-value":1,"unit":"F"},"b":{"current-value":1}}'
    update = parse_update(body + b',"lastUpdate":1}', free)

    assert UpdateHints(lambda: NOW).of(KEY, update, free) == []


def test_of_many_channels_some_are_named_and_the_rest_counted() -> None:
    channels = ",".join(f'"{n}":{{"current-value":1,"unit":"F"}}' for n in "abcdef")
    update = parse_update(b'{"channels":{%b},"lastUpdate":1}' % channels.encode(), DECLARED)

    found = UpdateHints(lambda: NOW).of(KEY, update, DECLARED)

    assert len(found) == MOST_NAMED + 1
    assert found[-1] == "and 3 more channels"


@given(st.lists(st.text(), min_size=1, max_size=MOST + 2))
def test_a_header_is_one_line_whatever_stands_in_it(texts: list[str]) -> None:
    """Units and names are what tenants write: no line of a head may begin in them."""
    value = warned(texts)["Warning"]

    assert value.isascii()
    assert value.isprintable()
    assert value.count('299 - "') >= 1
    assert len(value) < 40_000


def test_nothing_to_tell_is_no_header() -> None:
    assert warned([]) == {}
