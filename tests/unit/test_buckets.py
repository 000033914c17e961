"""How wide a bucket is, and what stands in for an empty one."""

from __future__ import annotations

import pytest

from servioticy.domain.buckets import BadWidth, Bucket, Fill, filled, width


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("60", None, 60),
        ("60", "ms", 60),
        ("1h", "s", 3_600),
        ("1h", "ms", 3_600_000),
        ("2d", "s", 172_800),
        ("1w", "s", 604_800),
        ("5m", "ms", 300_000),
        ("2000ms", "s", 2),
        ("9223372036854775807", None, 2**63 - 1),
    ],
)
def test_a_width_is_in_the_streams_own_unit(text: str, unit: str | None, expected: int) -> None:
    """A bare number is never scaled: nobody knows what the device counts."""
    assert width(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", None),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("1h", None),
        ("500ms", "s"),
        ("1y", "s"),
        ("1 h", "s"),
        ("٣", None),
        ("9223372036854775808", None),
        ("9999999999999999999w", "ms"),
    ],
)
def test_what_is_no_width_is_refused(text: str, unit: str | None) -> None:
    with pytest.raises(BadWidth):
        width(text, unit)


BUCKETS = [Bucket(2, 1, {"mean": 10.0}), Bucket(5, 4, {"mean": 40.0})]


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ("none", [(2, 10.0), (5, 40.0)]),
        ("null", [(1, None), (2, 10.0), (3, None), (4, None), (5, 40.0), (6, None)]),
        ("previous", [(1, None), (2, 10.0), (3, 10.0), (4, 10.0), (5, 40.0), (6, 40.0)]),
        ("linear", [(1, None), (2, 10.0), (3, 20.0), (4, 30.0), (5, 40.0), (6, None)]),
    ],
)
def test_empty_buckets_are_filled(fill: Fill, expected: list[tuple[int, float | None]]) -> None:
    """Nothing is made up before the first and after the last, but what went on may go on."""
    found = list(filled(BUCKETS, 1, 6, ["mean"], fill))

    means = [(each.number, each.values["mean"]) for each in found]
    assert means == [
        (n, value if value is None else pytest.approx(value)) for n, value in expected
    ]
    assert {each.number: each.updates for each in found if each.updates} == {2: 1, 5: 4}


def test_without_any_bucket_nothing_is_made_up() -> None:
    assert [each.values for each in filled([], 1, 2, ["mean"], "linear")] == [{"mean": None}] * 2


def test_a_line_needs_both_ends() -> None:
    buckets = [Bucket(1, 1, {"mean": None}), Bucket(3, 1, {"mean": 1.0})]

    assert next(b for b in filled(buckets, 1, 3, ["mean"], "linear") if not b.updates).values == {
        "mean": None
    }
