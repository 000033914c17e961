"""Dates where a client may write one: what they stand for, and what is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.dates import NoDate, milliseconds, moment_in_address
from servioticy.domain.documents import BadDocument, parse_update
from servioticy.domain.documents.callbacks import check_subscription, history_after
from servioticy.domain.documents.criteria import parse_criteria
from servioticy.domain.documents.updates import MOST_LISTED
from servioticy.domain.model import Channel, Stream, StreamRef

DATE, VALUE = "2026-11-24T09:30:00.250Z", 1_795_512_600_250
STREAM = Stream(StreamRef("so", "a"), (Channel("x", "number"),))
zones = st.integers(-14 * 60, 14 * 60).map(lambda n: timezone(timedelta(minutes=n)))


@given(st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1), timezones=zones))
def test_a_date_is_the_milliseconds_of_its_moment(moment: datetime) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)

    assert milliseconds(moment.isoformat(), "") == expected


@given(st.text(max_size=60))
def test_any_other_text_is_told_why_it_is_none(text: str) -> None:
    try:
        assert milliseconds(text, "a number") >= 0
    except NoDate as error:
        assert str(error)


def test_search_and_subscription_take_dates() -> None:
    found = parse_criteria({"timerange": True, "rangefrom": DATE, "rangeto": DATE}, STREAM)
    wanted = {"callback": "pull", "expire": DATE, "from": DATE}
    check_subscription(wanted)

    assert found.spans == ((VALUE, VALUE),)
    assert (wanted["expire"], wanted["from"]) == (VALUE, VALUE)
    assert history_after(wanted) == VALUE - 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (DATE, VALUE),
        ("2026-11-24T10:30:00.250 01:00", VALUE),
        ("2026-11-24 09:30:00.250Z", VALUE),
        ("17", 17),
        ("-5", -5),
    ],
)
def test_behind_a_question_mark_it_is_a_date_or_a_number(text: str, value: int) -> None:
    """A plus sign arrives as a blank."""
    assert moment_in_address(text, -10) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [("-11", "from -10 to"), ("9" * 25, "a whole number, or a date"), ("", "or a date")],
)
def test_what_is_neither_number_nor_date_is_told_why(text: str, why: str) -> None:
    with pytest.raises(NoDate, match=why):
        moment_in_address(text, -10)


@pytest.mark.parametrize("text", ["2026-11-24T09:30:00", "tomorrow", "1969-01-01T00:00:00Z"])
def test_what_is_no_moment_is_refused_with_its_place(text: str) -> None:
    wanted: list[tuple[Any, Any, str]] = [
        (check_subscription, ({"callback": "pull", "expire": text},), "/expire"),
        (check_subscription, ({"callback": "pull", "from": text},), "/from"),
        (parse_criteria, ({"timerange": True, "rangeto": text}, STREAM), "/rangeto"),
    ]
    for parse, arguments, pointer in wanted:
        with pytest.raises(BadDocument) as told:
            parse(*arguments)
        assert told.value.pointer == pointer


@pytest.mark.parametrize("count", [1, MOST_LISTED, MOST_LISTED + 1])
def test_an_unknown_channel_is_told_which_there_are(count: int) -> None:
    channels = tuple(Channel(f"c{n}", "number") for n in range(count))
    stream = Stream(StreamRef("so", "a"), channels)
    with pytest.raises(BadDocument) as told:
        parse_update(b'{"channels":{"d":{"current-value":1}},"lastUpdate":1}', stream)

    assert told.value.reason == "The Service Object Stream does not have a channel: d"
    assert ("and 1 more" in told.value.hint) is (count > MOST_LISTED)
    assert "c0" in told.value.hint
