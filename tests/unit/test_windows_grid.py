"""Where windows begin and end: by definition, by calendars, and by pandas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.time_units import PER_SECOND
from servioticy.domain.windows.grid import Grid, grid_of
from servioticy.domain.windows.model import Length, Window
from servioticy.domain.windows.spans import Span
from servioticy.domain.windows.timezones import names, timezone

NOW = 1_700_000_000
HOUR = 3_600_000
DAY = 24 * HOUR
ZONES = (
    *("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana"),
    *("Pacific/Apia", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "UTC"),
)
ALL = 2**80


def tumbling(amount: int, unit: str = "milliseconds", **more: object) -> Window:
    return Window("tumbling", Length(amount, unit), **more)  # type: ignore[arg-type]


def hopping(size: int, every: int, offset: int = 0, per_second: int = 1000) -> Grid:
    return grid_of(Window("hopping", Length(size), Length(every), offset), per_second)


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def day_of(text: str, zone: str, **more: object) -> Span:
    """The day with this time, in seconds."""
    return grid_of(tumbling(1, "days", timezone=zone, **more), 1).pane_of(seconds(text))


@given(
    timestamp=st.integers(0, 5000),
    size=st.integers(1, 40),
    every=st.integers(1, 40),
    offset=st.integers(0, 100),
    after=st.integers(-100, 6000),
    length=st.integers(0, 200),
)
def test_hopping_windows_are_those_of_the_definition(
    timestamp: int, size: int, every: int, offset: int, after: int, length: int
) -> None:
    """Windows begin at offset + k * every; a pane is in a window wholly or not at all."""
    every = min(every, size)
    grid = hopping(size, every, offset)
    pane = grid.pane_of(timestamp)
    windows = [
        Span(begin, begin + size)
        for begin in range(offset - 200 * every, timestamp + 2 * every + offset, every)
        if begin <= timestamp < begin + size
    ]
    ends = [each.end for each in windows]

    assert pane.begin <= timestamp < pane.end
    assert grid.pane_of(pane.begin) == grid.pane_of(pane.end - 1) == pane
    assert all(each.begin <= pane.begin and pane.end <= each.end for each in windows)
    assert grid.ends(pane, -ALL, ALL) == ends
    assert grid.ends(pane, after, after + length) == [
        each for each in ends if after < each <= after + length
    ]
    assert [grid.begin_of(each) for each in ends] == [each.begin for each in windows]
    assert grid.last_end(pane) == ends[-1]


@given(st.integers(0, 2**63 - 1), st.sampled_from(sorted(PER_SECOND.values())))
def test_tumbling_windows_tile_the_time_in_every_unit(timestamp: int, per_second: int) -> None:
    grid = grid_of(tumbling(20_000), per_second)
    pane = grid.pane_of(timestamp)

    assert pane.begin <= timestamp < pane.end == pane.begin + 20 * per_second
    assert pane.begin % (20 * per_second) == 0
    assert grid.ends(pane, pane.begin, pane.end) == [pane.end] == [grid.last_end(pane)]
    assert grid.ends(pane, pane.end, ALL) == grid.ends(pane, 0, pane.end - 1) == []
    assert grid.begin_of(pane.end) == pane.begin


@given(st.integers(0, 2**63 - 1), st.integers(1, 10_000))
def test_a_sliding_window_holds_what_is_less_than_its_size_older(t: int, size: int) -> None:
    """(t - size, t]: an update of t - size is not in it, one of t + size - 1 closes one with t."""
    grid = grid_of(Window("sliding", Length(size)), 1000)
    pane = grid.pane_of(t)
    (end,) = grid.ends(pane, t, t + 1)
    last = grid.last_end(pane)

    assert pane == (t, t + 1)
    assert grid.begin_of(end) == t - size + 1
    assert grid.ends(pane, t + 1, ALL) == grid.ends(pane, 0, t) == []
    assert grid.begin_of(last) == t
    assert grid.ends(grid.pane_of(t + size - 1), 0, ALL) == [last]


@pytest.mark.parametrize("window", [tumbling(500), Window("sliding", Length(1500))])
def test_a_size_that_is_no_whole_number_of_the_unit_is_an_error(window: Window) -> None:
    with pytest.raises(ValueError, match=r"a size of \d+ ms is no whole number of seconds"):
        grid_of(window, 1)

    assert grid_of(window, 1000) is grid_of(window, 1000)


@pytest.mark.parametrize(
    ("window", "word"),
    [
        (Window("hopping", Length(1000), Length(500)), "every"),
        (tumbling(1000, offset=1), "an offset"),
        (tumbling(1, "days", timezone="Europe/Berlin", offset=1), "an offset"),
    ],
)
def test_other_durations_have_to_be_whole_too(window: Window, word: str) -> None:
    with pytest.raises(ValueError, match=f"{word} of"):
        grid_of(window, 1)


@pytest.mark.parametrize("kind", ["session", "count", "global"])
def test_other_windows_have_no_grid(kind: str) -> None:
    with pytest.raises(ValueError, match=f"a {kind} window has no grid of time"):
        grid_of(Window(kind), 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [
        ("2023-11-14T12:00:00Z", "Europe/Berlin", 24),
        ("2024-03-31T12:00:00Z", "Europe/Berlin", 23),
        ("2024-10-27T12:00:00Z", "Europe/Berlin", 25),
        ("2018-11-04T12:00:00Z", "America/Sao_Paulo", 23),  # there is no midnight
        ("2018-02-17T12:00:00Z", "America/Sao_Paulo", 25),
        ("2023-11-05T12:00:00Z", "America/Havana", 25),  # midnight is twice
        ("2023-03-12T12:00:00Z", "America/Havana", 23),
        ("2024-04-06T20:00:00Z", "Australia/Lord_Howe", 24.5),
    ],
)
def test_a_day_has_the_hours_that_the_clocks_give_it(day: str, zone: str, hours: float) -> None:
    pane = day_of(day, zone)

    assert pane.end - pane.begin == hours * 3600


def test_a_day_without_midnight_begins_when_it_is_past() -> None:
    pane = day_of("2018-11-04T12:00:00Z", "America/Sao_Paulo")

    assert pane.begin == seconds("2018-11-04T03:00:00Z")
    local = datetime.fromtimestamp(pane.begin, ZoneInfo("America/Sao_Paulo"))
    assert local.isoformat() == "2018-11-04T01:00:00-02:00"


def test_a_day_that_a_timezone_leaves_out_has_no_window() -> None:
    """Samoa went from 29 to 31 December 2011."""
    before, after = (
        day_of(f"2011-12-{each}T12:00:00{zone}", "Pacific/Apia")
        for each, zone in ((29, "-10:00"), (31, "+14:00"))
    )

    assert before.end == after.begin == seconds("2011-12-30T10:00:00Z")


def test_where_midnight_is_twice_the_day_begins_with_the_first() -> None:
    """In St. John's clocks went back at a minute past midnight, to the day before."""
    zone = "America/St_Johns"
    first = seconds("2010-11-07T00:00:00-02:30")

    assert day_of("2010-11-07T12:00:00-03:30", zone).begin == first
    assert day_of("2010-11-06T23:30:00-03:30", zone).begin == first
    assert day_of("2010-11-06T23:30:00-02:30", zone).end == first


@given(
    zone=st.sampled_from(ZONES),
    second=st.integers(0, 4 * 10**9),
    per_second=st.sampled_from(sorted(PER_SECOND.values())),
)
def test_a_day_is_all_that_has_one_date(zone: str, second: int, per_second: int) -> None:
    pane = grid_of(tumbling(1, "days", timezone=zone), per_second).pane_of(second * per_second)

    def date(timestamp: int) -> object:
        return datetime.fromtimestamp(timestamp // per_second, timezone(zone)).date()

    assert date(pane.begin) == date(second * per_second) == date(pane.end - 1)
    assert date(pane.begin - 1) < date(pane.begin)  # type: ignore[operator]
    assert date(pane.end) > date(pane.begin)  # type: ignore[operator]


@given(
    zone=st.sampled_from((None, *ZONES)),
    amount=st.integers(1, 40),
    unit=st.sampled_from(["days", "months"]),
    offset=st.integers(0, 48 * 3600).map(lambda each: each * 1000),
    timestamps=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=100),
    per_second=st.sampled_from(sorted(PER_SECOND.values())),
)
def test_windows_of_calendars_tile_the_time_whatever_was_asked_before(
    zone: str | None,
    amount: int,
    unit: str,
    offset: int,
    timestamps: list[int],
    per_second: int,
) -> None:
    """Up to the last timestamp there is, in any unit: 292 milliards of years from now."""
    window = tumbling(amount, unit, timezone=zone, offset=offset)
    grid = grid_of(window, per_second)
    fresh = grid_of.__wrapped__(window, per_second)
    for timestamp in timestamps:
        pane = grid.pane_of(timestamp)

        assert pane.begin <= timestamp < pane.end
        assert pane == fresh.pane_of(timestamp)
        assert grid.pane_of(pane.end - 1) == pane
        assert grid.pane_of(pane.end).begin == pane.end
        assert grid.begin_of(pane.end) == pane.begin
        assert grid.ends(pane, pane.begin, ALL) == [grid.last_end(pane)] == [pane.end]


@given(st.integers(0, 10**10), st.integers(1, 40))
def test_days_of_utc_are_those_of_24_hours(second: int, amount: int) -> None:
    window = tumbling(amount, "days")
    utc = tumbling(amount, "days", timezone="UTC")

    assert grid_of(window, 1).pane_of(second) == grid_of(utc, 1).pane_of(second)


def test_400_years_later_days_are_alike() -> None:
    """Clocks go by rules then, and rules by weekdays, which are the same again."""
    grid = grid_of(tumbling(1, "days", timezone="Europe/Berlin"), 1)
    cycle = 146_097 * 86_400
    for start in (seconds("2100-03-28T12:00:00Z"), seconds("2399-12-31T12:00:00Z")):
        for day in range(400):
            pane = grid.pane_of(start + day * 86_400)
            later = grid.pane_of(start + day * 86_400 + 1000 * cycle)

            assert later == (pane.begin + 1000 * cycle, pane.end + 1000 * cycle)


def test_weeks_begin_on_monday_and_quarters_in_january() -> None:
    def begins(window: Window, text: str) -> str:
        begin = grid_of(window, 1).pane_of(seconds(text)).begin
        zone = UTC if window.timezone is None else ZoneInfo(window.timezone)
        return datetime.fromtimestamp(begin, zone).isoformat()

    berlin = {"timezone": "Europe/Berlin"}
    at = "2024-03-31T12:00:00Z"

    assert begins(tumbling(7, "days"), at) == "2024-03-25T00:00:00+00:00"
    assert begins(tumbling(7, "days", **berlin), at) == "2024-03-25T00:00:00+01:00"
    assert begins(tumbling(3, "months", **berlin), "2024-06-30T23:59:00+02:00") == (
        "2024-04-01T00:00:00+02:00"
    )
    assert begins(tumbling(12, "months"), at) == "2024-01-01T00:00:00+00:00"
    assert begins(tumbling(1, "months"), "2024-02-29T12:00:00Z") == "2024-02-01T00:00:00+00:00"


def test_an_offset_is_by_the_clock() -> None:
    """From six to six, whatever the clocks did at night."""
    pane = day_of("2024-03-31T00:00:00Z", "Europe/Berlin", offset=6 * HOUR)

    assert pane == (seconds("2024-03-30T06:00:00+01:00"), seconds("2024-03-31T06:00:00+02:00"))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize(("unit", "rule"), [("days", "D"), ("months", "MS")])
def test_pandas_cuts_alike(zone: str, unit: str, rule: str) -> None:
    times = pandas.date_range("2023-12-30", "2025-01-03", freq="97min", tz=zone)
    counted = pandas.Series(1, index=times).resample(rule).sum()
    grid = grid_of(tumbling(1, unit, timezone=zone), 10**9)

    found: dict[int, int] = {}
    for each in times:
        begin = grid.pane_of(each.value).begin
        found[begin] = found.get(begin, 0) + 1

    assert found == {each.value: int(n) for each, n in counted.items()}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("window", "rule", "more"),
    [
        (tumbling(20 * 60_000), "20min", {}),
        (tumbling(7 * 60_000), "7min", {}),
        (tumbling(DAY), "24h", {}),
        (tumbling(2 * HOUR, offset=30 * 60_000), "2h", {"offset": timedelta(minutes=30)}),
    ],
)
def test_pandas_cuts_alike_in_equal_pieces(window: Window, rule: str, more: dict) -> None:
    times = pandas.date_range("2024-02-27", "2024-03-02", freq="61s", tz="UTC")
    counted = pandas.Series(1, index=times).resample(rule, origin="epoch", **more).sum()
    grid = grid_of(window, 1)
    found: dict[int, int] = {}
    for each in times:
        begin = grid.pane_of(int(each.timestamp())).begin
        found[begin] = found.get(begin, 0) + 1

    assert found == {int(each.timestamp()): int(n) for each, n in counted.items()}  # type: ignore[attr-defined]


def test_timezones_are_those_of_the_installed_release() -> None:
    """Whatever the machine has: else programs might cut otherwise."""
    assert timezone("Europe/Berlin") is timezone("Europe/Berlin")
    for name in names() - {"Factory"}:
        assert timezone(name).utcoffset(datetime(2024, 1, 1)) is not None
    for name in ("", "Europe", "../zones", "/etc/localtime", "posix/UTC"):
        with pytest.raises(ValueError, match="there is no timezone"):
            timezone(name)
